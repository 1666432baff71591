//! Checks reservations: at no time may their sum at a link exceed its rate.

use giveway_qdisc::Rate;

use super::crossings::{Crossing, crossings};
use super::paths::Paths;
use super::topology::Topology;
use super::traffic::Stream;
use crate::diagnostic::Diagnostic;
use crate::fields::Reading;
use crate::tree::Value;

/// Reports the first reservation at each link that exceeds its rate together with those before it in the
/// file.
pub(crate) fn check(reading: &mut Reading, traffic: &[Stream], topology: &Topology, paths: &Paths) {
    if !topology.whole {
        return;
    }
    let reserving = traffic.iter().filter(|stream| stream.reserved.as_bit() > 0);
    let crossings = crossings(reserving, topology.ports.len(), paths);
    for (port, crossings) in topology.ports.iter().zip(&crossings) {
        let reservations: Vec<Reservation<'_>> =
            crossings.iter().filter(|crossing| crossing.data).map(Reservation::new).collect();
        let Some(stream) = first_too_many(&reservations, port.rate) else { continue };
        let message =
            format!("traffic \"{}\" reserves more than the unreserved rate of {}", stream.name, port.name);
        let wrong = Diagnostic::error(stream.table.place("reserved"), message);
        let each = format!("{} for each of its flows; the link has {}", stream.reserved, port.rate);
        reading.report(wrong.label(each).help("reserve less here or above, or make the link faster"));
    }
}

/// The reservations of a stream at a port.
struct Reservation<'a> {
    /// The stream.
    stream: &'a Stream,
    /// The sum of its flows, in bit/s.
    rate: u64,
}

impl<'a> Reservation<'a> {
    fn new(crossing: &Crossing<'a>) -> Reservation<'a> {
        let stream = crossing.stream;
        let flows = flows(stream).saturating_mul(crossing.pairs);
        Reservation { stream, rate: stream.reserved.as_bit().saturating_mul(flows) }
    }
}

/// The first stream, in the order of the file, with which the reservations exceed `rate` at some time. The
/// sum grows only when a stream starts, so only these times are checked.
fn first_too_many<'a>(reservations: &[Reservation<'a>], rate: Rate) -> Option<&'a Stream> {
    // The common case takes linear time: the sum of all reservations fits.
    let all = reservations.iter().fold(0, |sum: u64, reservation| sum.saturating_add(reservation.rate));
    if all <= rate.as_bit() {
        return None;
    }
    // The sum of reservations at the start of each earlier stream.
    let mut at_start: Vec<(&Stream, u64)> = Vec::new();
    for (number, Reservation { stream, rate: own }) in reservations.iter().enumerate() {
        for (other, sum) in &mut at_start {
            if stream.start <= other.start && other.start < stream.stop {
                *sum = sum.saturating_add(*own);
            }
        }
        let earlier = reservations[..number]
            .iter()
            .filter(|earlier| earlier.stream.start <= stream.start && stream.start < earlier.stream.stop);
        at_start.push((stream, earlier.fold(*own, |sum, earlier| sum.saturating_add(earlier.rate))));
        if at_start.iter().any(|(_, sum)| *sum > rate.as_bit()) {
            return Some(*stream);
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
