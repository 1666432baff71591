//! What is reserved must fit: every link carries the reservations of all traffic that crosses it at the same time.

use giveway_qdisc::Rate;

use super::Paths;
use super::topology::Topology;
use super::traffic::Stream;
use crate::diagnostic::Diagnostic;
use crate::fields::Reading;
use crate::tree::Value;

/// Refuses the first reservation on each link that does not fit beside those written before it.
pub(crate) fn check(reading: &mut Reading, traffic: &[Stream], topology: &Topology, paths: &Paths) {
    if !topology.whole {
        return;
    }
    // On each port, what each stream reserves there: its place in the traffic, and the sum of its flows.
    let mut on_port: Vec<Vec<(usize, u64)>> = vec![Vec::new(); topology.ports.len()];
    for (number, stream) in traffic.iter().enumerate().filter(|(_, stream)| stream.reserved.as_bit() > 0) {
        let each = stream.reserved.as_bit().saturating_mul(flows(stream));
        let crossed = stream.pairs.iter().filter_map(|(from, to)| paths.path(*from, *to)).flatten();
        for port in crossed {
            match on_port[port].last_mut() {
                Some((last, sum)) if *last == number => *sum = sum.saturating_add(each),
                _ => on_port[port].push((number, each)),
            }
        }
    }
    for (port, reserving) in topology.ports.iter().zip(&on_port) {
        let Some(stream) = first_too_many(reserving, traffic, port.rate) else { continue };
        let message = format!("traffic \"{}\" reserves more than {} has left", stream.name, port.name);
        let wrong = Diagnostic::error(stream.table.place("reserved"), message);
        let each = format!("{} for each of its flows; the link has {}", stream.reserved, port.rate);
        reading.tell(wrong.label(each).help("reserve less here or above, or make the link faster"));
    }
}

/// The first stream in the order of the file with which more than `rate` is reserved at some time. What is reserved at
/// once only grows when a stream starts, so these are the times to look at.
fn first_too_many<'a>(reserving: &[(usize, u64)], traffic: &'a [Stream], rate: Rate) -> Option<&'a Stream> {
    // The common case, in linear time: all of it fits at once.
    let all = reserving.iter().fold(0, |sum: u64, (_, each)| sum.saturating_add(*each));
    if all <= rate.as_bit() {
        return None;
    }
    // How much is reserved when each stream seen so far starts.
    let mut at_start: Vec<(&Stream, u64)> = Vec::new();
    for (number, each) in reserving {
        let new = &traffic[*number];
        let mut own = *each;
        for (other, sum) in &mut at_start {
            if new.start <= other.start && other.start < new.stop {
                *sum = sum.saturating_add(*each);
            }
        }
        for (earlier, each) in reserving.iter().take_while(|(earlier, _)| earlier < number) {
            let earlier = &traffic[*earlier];
            if earlier.start <= new.start && new.start < earlier.stop {
                own = own.saturating_add(*each);
            }
        }
        at_start.push((new, own));
        if at_start.iter().any(|(_, sum)| *sum > rate.as_bit()) {
            return Some(new);
        }
    }
    None
}

/// How many flows a stream has between each pair of nodes at once, as far as it says so: those that come and go count as one.
fn flows(stream: &Stream) -> u64 {
    match stream.table.get("flows").map(|node| &node.value) {
        Some(Value::Integer(flows)) => u64::try_from(*flows).unwrap_or(1),
        _ => 1,
    }
}
