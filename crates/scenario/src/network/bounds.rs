//! Delay bounds of reservations: for each reserved flow and each link of its path, the largest delay of a
//! packet under each discipline.
//!
//! A discipline declares its [`Guarantee`]; [`giveway_theory::latency_rate`] has the formulae. A bound holds
//! for a flow that exceeds its reservation by at most a burst, and for packets that are not dropped. The
//! delay begins with the arrival of a packet and ends with its last bit on the wire, without propagation.
//!
//! Best-effort traffic delays a reserved packet by one packet of the largest size. A discipline without
//! reservations, which gives every flow a turn, has a bound only for a known number of flows, and only if the
//! turn is at least the reservation.

use giveway_disciplines::Spec;
use giveway_qdisc::{Bytes, Guarantee, LinkContext, Rate, Streams};
use giveway_theory::latency_rate::{Flow, Scheduler, Server};

use super::model::Network;
use super::topology::{Queue, downstream};
use super::traffic::Stream;

/// The delay bounds at a link that reserved flows cross.
#[derive(Clone, Debug, PartialEq)]
pub struct LinkBounds {
    /// The name of the link, such as "home->isp".
    pub link: String,
    /// The rate of the link.
    pub rate: Rate,
    /// The sum of all reservations at the link.
    pub reserved: Rate,
    /// The largest packet of traffic without a reservation; zero if there is none.
    pub best_effort: Bytes,
    /// The number of flows that cross the link; `None` if it varies.
    pub flows: Option<u64>,
    /// The disciplines, in the order of the bounds.
    pub disciplines: Vec<Spec>,
    /// The reserved traffic at the link.
    pub streams: Vec<StreamBounds>,
}

/// The delay bounds of one reserved traffic at a link.
#[derive(Clone, Debug, PartialEq)]
pub struct StreamBounds {
    /// The name of the traffic.
    pub name: String,
    /// The number of its flows at the link.
    pub flows: u64,
    /// The reserved rate of each flow.
    pub reserved: Rate,
    /// The largest packet of the traffic.
    pub packet: Bytes,
    /// The burst of a flow: the most bytes that arrive at once.
    pub burst: Bytes,
    /// The bounds, one for each discipline.
    pub bounds: Vec<Bound>,
}

/// The guarantee of a discipline for a flow.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Bound {
    /// The largest delay at the link, in seconds.
    Delay(f64),
    /// No guarantee: the discipline has neither reservations nor turns.
    Nothing,
    /// Every flow gets a turn, and the share of this one is less than its reservation.
    Share(Rate),
    /// Every flow gets a turn, and the number of flows varies, so there is no bound.
    Uncounted,
}

/// A stream at a link that it crosses.
struct Crossing<'a> {
    /// The stream.
    stream: &'a Stream,
    /// The number of flows that cross; `None` if it varies.
    flows: Option<u64>,
    /// True if data cross the link, false if acknowledgements do.
    data: bool,
}

impl Network {
    /// The delay bounds of reserved flows, for each link with a discipline other than the default, in the
    /// order of the links. `burst`: the most bytes of a flow that arrive at once, at least one packet; by
    /// default one packet.
    pub fn bounds(&self, burst: Option<Bytes>) -> Vec<LinkBounds> {
        let paths = self.paths();
        // For each port, the data and the acknowledgements of each stream that cross it, with the number of
        // pairs of nodes between which they do: in the order of the streams, data first.
        let mut crossing: Vec<Vec<(&Stream, bool, u64)>> = vec![Vec::new(); self.ports.len()];
        for stream in &self.traffic {
            for data in [true, false] {
                if !data && !stream.spec.answered() {
                    continue;
                }
                for (from, to) in &stream.pairs {
                    let path = if data { paths.path(*from, *to) } else { paths.path(*to, *from) };
                    for port in path.unwrap_or_default() {
                        match crossing[port].last_mut() {
                            Some((same, of_data, pairs))
                                if std::ptr::eq(*same, stream) && *of_data == data =>
                            {
                                *pairs += 1;
                            }
                            _ => crossing[port].push((stream, data, 1)),
                        }
                    }
                }
            }
        }
        let mut links = Vec::new();
        for (at, crossing) in crossing.into_iter().enumerate() {
            let crossings = crossing.into_iter().map(|(stream, data, pairs)| Crossing {
                stream,
                flows: stream.spec.lasting().map(|each| u64::from(each) * pairs),
                data,
            });
            links.extend(self.at(at, &crossings.collect::<Vec<_>>(), burst));
        }
        links
    }

    /// The bounds at one link; `None` if it has no reservations, or the default discipline.
    fn at(&self, at: usize, crossings: &[Crossing<'_>], burst: Option<Bytes>) -> Option<LinkBounds> {
        let port = &self.ports[at];
        let reserving = |crossing: &&Crossing<'_>| crossing.data && crossing.stream.reserved.as_bit() > 0;
        let reserved: Vec<&Crossing<'_>> = crossings.iter().filter(reserving).collect();
        if reserved.is_empty() || port.queue.is_usual() {
            return None;
        }
        let disciplines = match &port.queue {
            Queue::Compare => self.disciplines.clone(),
            Queue::Fixed(spec) => vec![spec.clone()],
        };
        let context = port.context(&Streams::new(0), &downstream(&self.ports));
        // A varying number of flows counts as one: the check of reservations assumes that, too.
        let count = |crossing: &Crossing<'_>| crossing.flows.unwrap_or(1);
        let best_effort = if reserved.len() < crossings.len() { port.mtu } else { Bytes(0) };
        let streams = reserved.iter().map(|of| {
            let packet = largest(of.stream, port.mtu);
            let burst = burst.map_or(packet, |burst| burst.max(packet));
            // Only traffic at the same time counts.
            let beside = reserved
                .iter()
                .filter(|other| other.stream.start < of.stream.stop && of.stream.start < other.stream.stop);
            let flow = |of: &Crossing<'_>| Flow {
                rate: of.stream.reserved.as_bit() as f64,
                packet: largest(of.stream, port.mtu).0 as f64,
            };
            let others = beside.flat_map(|other| {
                let same = std::ptr::eq(*other, *of);
                std::iter::repeat_n(flow(other), (count(other) - u64::from(same)) as usize)
            });
            let flows = std::iter::once(flow(of)).chain(others).collect();
            let server = Server { link: port.rate.as_bit() as f64, flows, best_effort: best_effort.0 as f64 };
            let bound = |spec: &Spec| match spec.properties(&context).guarantee {
                Guarantee::Nothing => Bound::Nothing,
                Guarantee::Turns => turns(spec, of, crossings, burst, &context),
                Guarantee::Reserved => delay(Scheduler::Wfq, &server, burst),
                Guarantee::ReservedInSlots(width) => {
                    delay(Scheduler::TimestampRoundRobin(width.as_s()), &server, burst)
                }
                Guarantee::ReservedInClasses(width) => {
                    delay(Scheduler::VirtualTimeRoundRobin(width.as_s()), &server, burst)
                }
                Guarantee::ReservedInGroups(packet) => {
                    delay(Scheduler::QuickFair(packet.0 as f64), &server, burst)
                }
            };
            StreamBounds {
                name: of.stream.name.clone(),
                flows: count(of),
                reserved: of.stream.reserved,
                packet,
                burst,
                bounds: disciplines.iter().map(bound).collect(),
            }
        });
        let streams = streams.collect();
        let sum = reserved.iter().map(|of| of.stream.reserved.as_bit().saturating_mul(count(of)));
        Some(LinkBounds {
            link: port.name.clone(),
            rate: port.rate,
            reserved: Rate::bit(sum.fold(0, u64::saturating_add)),
            best_effort,
            flows: crossings.iter().map(|crossing| crossing.flows).sum(),
            streams,
            disciplines,
        })
    }
}

/// The largest IP packet of a stream at a link with this `mtu`.
fn largest(stream: &Stream, mtu: Bytes) -> Bytes {
    let of_tcp = || if stream.spec.answered() { Bytes(stream.tcp.mss.0 + 40) } else { mtu };
    stream.spec.largest().unwrap_or_else(of_tcp).min(mtu)
}

/// The bound for the first flow of `server`: σ/ρ + Θ - L/ρ, since the packet itself is in σ and in Θ.
fn delay(scheduler: Scheduler<'_>, server: &Server, burst: Bytes) -> Bound {
    let burst = 8.0 * burst.0 as f64 / server.flows[0].rate;
    server.lateness(scheduler, 0).map_or(Bound::Nothing, |late| Bound::Delay(burst + late))
}

/// The bound for a flow of `of` if every flow gets a turn, which determines its rate.
fn turns(
    spec: &Spec,
    of: &Crossing<'_>,
    crossings: &[Crossing<'_>],
    burst: Bytes,
    context: &LinkContext,
) -> Bound {
    let turn = |of: &Crossing<'_>| spec.turn(of.stream.class, context).0 as f64;
    let mut flows = vec![(turn(of), largest(of.stream, context.mtu).0 as f64)];
    for other in crossings {
        let Some(count) = other.flows else { return Bound::Uncounted };
        let packet = if other.data { largest(other.stream, context.mtu).0 } else { context.mtu.0 } as f64;
        let count = count - u64::from(std::ptr::eq(other, of));
        flows.extend(std::iter::repeat_n((turn(other), packet), count as usize));
    }
    let quanta: Vec<f64> = flows.iter().map(|(quantum, _)| *quantum).collect();
    let (link, frame) = (context.rate.as_bit() as f64, quanta.iter().sum::<f64>());
    let share = |quantum: f64| link * quantum / frame;
    if share(quanta[0]) < of.stream.reserved.as_bit() as f64 {
        return Bound::Share(Rate::bit(share(quanta[0]) as u64));
    }
    let flows = flows.iter().map(|(quantum, packet)| Flow { rate: share(*quantum), packet: *packet });
    delay(
        Scheduler::DrrThatForgets(&quanta),
        &Server { link, flows: flows.collect(), best_effort: 0.0 },
        burst,
    )
}
