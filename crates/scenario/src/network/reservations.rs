//! Checks reservations: at no time may their sum at a link exceed its rate.

use giveway_qdisc::Rate;

use super::paths::Paths;
use super::topology::Topology;
use super::traffic::Stream;
use crate::diagnostic::Diagnostic;
use crate::fields::Reading;
use crate::tree::Value;

/// Reports the first reservation at each link that does not fit beside those before it in the file.
pub(crate) fn check(reading: &mut Reading, traffic: &[Stream], topology: &Topology, paths: &Paths) {
    if !topology.whole {
        return;
    }
    // For each port, the reservations of streams: the index of the stream, and the sum of its flows.
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
        let message =
            format!("traffic \"{}\" reserves more than the unreserved rate of {}", stream.name, port.name);
        let wrong = Diagnostic::error(stream.table.place("reserved"), message);
        let each = format!("{} for each of its flows; the link has {}", stream.reserved, port.rate);
        reading.report(wrong.label(each).help("reserve less here or above, or make the link faster"));
    }
}

/// The first stream, in the order of the file, with which the reservations exceed `rate` at some time. The
/// sum grows only when a stream starts, so only these times are checked.
fn first_too_many<'a>(reserving: &[(usize, u64)], traffic: &'a [Stream], rate: Rate) -> Option<&'a Stream> {
    // The common case takes linear time: the sum of all reservations fits.
    let all = reserving.iter().fold(0, |sum: u64, (_, each)| sum.saturating_add(*each));
    if all <= rate.as_bit() {
        return None;
    }
    // The sum of reservations at the start of each earlier stream.
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

/// The number of simultaneous flows of a stream between each pair of nodes; one if it varies.
fn flows(stream: &Stream) -> u64 {
    match stream.table.get("flows").map(|node| &node.value) {
        Some(Value::Integer(flows)) => u64::try_from(*flows).unwrap_or(1),
        _ => 1,
    }
}
