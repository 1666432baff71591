//! What is reserved must fit: every link carries the reservations of all traffic that crosses it at the same time.

use qdisc::Rate;

use super::topology::Topology;
use super::traffic::Stream;
use crate::diagnostic::Diagnostic;
use crate::fields::Reading;
use crate::tree::Value;

/// Refuses the first reservation on each link that does not fit beside those written before it.
pub(crate) fn check(reading: &mut Reading, traffic: &[Stream], topology: &Topology) {
    if !topology.whole || traffic.iter().all(|stream| stream.reserved == Rate::default()) {
        return;
    }
    let routes = topology.routes();
    // Of each stream, what it reserves on each port.
    let reserved: Vec<Vec<u64>> = traffic
        .iter()
        .map(|stream| {
            let mut on_port = vec![0u64; topology.ports.len()];
            let each = stream.reserved.as_bit().saturating_mul(flows(stream));
            let ways = stream.pairs.iter().filter_map(|(from, to)| topology.way(&routes, *from, *to));
            ways.flatten().for_each(|port| on_port[port] = on_port[port].saturating_add(each));
            on_port
        })
        .collect();
    for (number, port) in topology.ports.iter().enumerate() {
        let refused = (0..traffic.len()).find(|last| {
            let fits = |at: &Stream| {
                let active = (0..=*last).filter(|other| {
                    let other = &traffic[*other];
                    other.start <= at.start && at.start < other.stop
                });
                active.map(|other| reserved[other][number]).fold(0, u64::saturating_add) <= port.rate.as_bit()
            };
            reserved[*last][number] > 0 && !traffic[..=*last].iter().all(fits)
        });
        let Some(stream) = refused.map(|last| &traffic[last]) else { continue };
        let message = format!("traffic \"{}\" reserves more than {} has left", stream.name, port.name);
        let wrong = Diagnostic::error(stream.table.place("reserved"), message);
        let each = format!("{} for each of its flows; the link has {}", stream.reserved, port.rate);
        reading.tell(wrong.label(each).help("reserve less here or above, or make the link faster"));
    }
}

/// How many flows a stream has between each pair of nodes at once, as far as it says so: those that come and go count as one.
fn flows(stream: &Stream) -> u64 {
    match stream.table.get("flows").map(|node| &node.value) {
        Some(Value::Integer(flows)) => u64::try_from(*flows).unwrap_or(1),
        _ => 1,
    }
}
