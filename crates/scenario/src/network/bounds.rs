//! What reservations are worth: for each reserved flow and each link on its way the longest that a packet of it may wait there, under each
//! discipline.
//!
//! A discipline says of which kind it is ([`Guarantee`]); [`giveway_theory::latency_rate`] has the formulae. A bound is about a flow that
//! keeps to its reservation, all but a burst, and about packets that are not dropped. It counts from the arrival of a packet to its last bit on the
//! wire, without propagation.
//!
//! What is not reserved delays by a packet of the link's largest size. Turns go to every flow alike: there the number of flows must be
//! known, and a flow is as safe as the turn that it gets, whatever it has reserved.

use giveway_disciplines::Spec;
use giveway_qdisc::{Bytes, Guarantee, LinkContext, Rate, Streams};
use giveway_theory::latency_rate::{Flow, Scheduler, Server};

use super::topology::onward;
use super::{Network, Queue, Stream};

/// A link that reserved flows cross, and what it is worth to them.
#[derive(Clone, Debug, PartialEq)]
pub struct LinkBounds {
    /// "home->isp".
    pub link: String,
    /// How fast it is.
    pub rate: Rate,
    /// All that is reserved on it.
    pub reserved: Rate,
    /// The largest packet of what is not reserved there; zero when everything is.
    pub best_effort: Bytes,
    /// How many flows cross it; `None` when some come and go.
    pub flows: Option<u64>,
    /// The disciplines, in the order of the bounds.
    pub disciplines: Vec<Spec>,
    /// The reserved traffic on it.
    pub streams: Vec<StreamBounds>,
}

/// Reserved traffic on a link.
#[derive(Clone, Debug, PartialEq)]
pub struct StreamBounds {
    /// Its name.
    pub name: String,
    /// How many flows of it cross the link.
    pub flows: u64,
    /// What each of them has reserved.
    pub reserved: Rate,
    /// Its largest packet.
    pub packet: Bytes,
    /// How much of a flow may come at once.
    pub burst: Bytes,
    /// One for each discipline.
    pub bounds: Vec<Bound>,
}

/// What a discipline promises a flow.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Bound {
    /// The longest delay at this link, seconds.
    Delay(f64),
    /// Nothing: it knows no reservations and gives nobody a turn.
    Nothing,
    /// Everyone gets a turn, and this one's share of the link is less than what is reserved.
    Share(Rate),
    /// Everyone gets a turn, and flows come and go, so that nobody knows how many there will be.
    Uncounted,
}

/// A stream on a link.
struct Crossing<'a> {
    stream: &'a Stream,
    /// How many flows of it cross; `None` when they come and go.
    flows: Option<u64>,
    /// Whether what crosses are its data; otherwise acknowledgements.
    data: bool,
}

impl Network {
    /// What every link gives the reserved flows that cross it, where a discipline stands that says something about flows; in the order of
    /// the links. `burst`: how much of a flow may come at once, at least a packet of it; otherwise one packet.
    pub fn bounds(&self, burst: Option<Bytes>) -> Vec<LinkBounds> {
        let paths = self.paths();
        // For each port, the data and the acknowledgements of each stream that cross it, with the number of pairs of
        // nodes between which they do: in the order of the streams, data first.
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

    /// One link; `None` when nobody reserves there, or nothing but a plain queue is there.
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
        let context = port.context(&Streams::new(0), &onward(&self.ports));
        // Those that come and go reserve for one at a time: that is what was checked to fit.
        let count = |crossing: &Crossing<'_>| crossing.flows.unwrap_or(1);
        let best_effort = if reserved.len() < crossings.len() { port.mtu } else { Bytes(0) };
        let streams = reserved.iter().map(|of| {
            let packet = largest(of.stream, port.mtu);
            let burst = burst.map_or(packet, |burst| burst.max(packet));
            // Whoever is there at the same time.
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

/// The largest IP packet of a stream on a link that takes packets up to `mtu`.
fn largest(stream: &Stream, mtu: Bytes) -> Bytes {
    let of_tcp = || if stream.spec.answered() { Bytes(stream.tcp.mss.0 + 40) } else { mtu };
    stream.spec.largest().unwrap_or_else(of_tcp).min(mtu)
}

/// The bound for the first flow of `server`: σ/ρ + Θ - L/ρ, since the packet that waits is in σ and in Θ.
fn delay(scheduler: Scheduler<'_>, server: &Server, burst: Bytes) -> Bound {
    let burst = 8.0 * burst.0 as f64 / server.flows[0].rate;
    server.lateness(scheduler, 0).map_or(Bound::Nothing, |late| Bound::Delay(burst + late))
}

/// The same for a flow of `of` where every flow has a turn: its rate is that of its turns.
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
