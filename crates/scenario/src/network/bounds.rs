//! Delay bounds of reservations: for each reserved flow and each link of its path, the largest delay of a
//! packet under each discipline.
//!
//! A discipline declares its [`Guarantee`]; [`giveway_theory::latency_rate`] has the formulae. A bound holds
//! for a flow that exceeds its reservation by at most a burst, and for packets that are not dropped. The
//! delay starts with the arrival of a packet and ends with its last bit on the wire, without propagation.
//!
//! On a link whose rate varies, bounds hold for its lowest rate.
//!
//! Best-effort traffic delays a reserved packet by one packet of the largest size. A discipline without
//! reservations, which gives every flow a turn, has a bound only for a known number of flows, and only if the
//! turn is at least the reservation.
//!
//! A discipline with classes guarantees a service to each class. Its bound holds for the traffic of the class
//! together: if all of it is reserved, and the reservations are at most the rate of the class.

use giveway_disciplines::{ClassService, Spec};
use giveway_qdisc::{Bytes, Downstream, Guarantee, Header, LinkContext, Meta, Rate, Streams};
use giveway_sim::Protocol;
use giveway_theory::latency_rate::{Flow, Scheduler, Server};

use super::crossings::{Crossing, crossings};
use super::model::Network;
use super::topology::{Port, Queue, downstream};
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
    /// The burst of a flow: the maximum number of bytes that arrive at once.
    pub burst: Bytes,
    /// The bounds, one for each discipline.
    pub bounds: Vec<Bound>,
}

/// The guarantee of a discipline for a flow.
#[derive(Clone, Debug, PartialEq)]
pub enum Bound {
    /// The largest delay at the link, in seconds.
    Delay(f64),
    /// No guarantee: the discipline has neither reservations nor turns.
    Nothing,
    /// Every flow gets a turn, and the share of this one is less than its reservation.
    Share(Rate),
    /// Every flow gets a turn, and the number of flows varies, so there is no bound.
    Uncounted,
    /// The class of the flow has no bound: the reason, in a sentence.
    Class(String),
}

impl Network {
    /// The delay bounds of reserved flows, for each link with a discipline other than the default, in the
    /// order of the links. `burst` is the maximum number of bytes of a flow that arrive at once, at least one
    /// packet; by default one packet.
    pub fn bounds(&self, burst: Option<Bytes>) -> Vec<LinkBounds> {
        let crossings = crossings(self.traffic.iter(), self.ports.len(), &self.paths());
        let downstream = downstream(&self.ports);
        let links = self.ports.iter().zip(&crossings).filter_map(|(port, crossings)| {
            let link = Link::new(port, crossings, &downstream)?;
            Some(match &port.queue {
                Queue::Compare => {
                    let here: Vec<Spec> = self.disciplines.iter().map(|one| port.spec(one).clone()).collect();
                    link.bounds(&here, burst)
                }
                Queue::Fixed(spec) => link.bounds(std::slice::from_ref(spec), burst),
            })
        });
        links.collect()
    }
}

/// A link with reservations, and its traffic.
struct Link<'a> {
    /// The port that sends to the link.
    port: &'a Port,
    /// The context of the disciplines.
    context: LinkContext,
    /// All traffic that crosses the link.
    crossings: &'a [Crossing<'a>],
    /// The traffic with reservations.
    reserved: Vec<&'a Crossing<'a>>,
    /// The largest packet of traffic without a reservation; zero if there is none.
    best_effort: Bytes,
}

impl<'a> Link<'a> {
    /// The link of a port; `None` if it has no reservations, or the default discipline.
    fn new(port: &'a Port, crossings: &'a [Crossing<'a>], downstream: &Downstream) -> Option<Link<'a>> {
        let reserving = |crossing: &&Crossing<'_>| crossing.data && crossing.stream.reserved.as_bit() > 0;
        let reserved: Vec<&Crossing<'_>> = crossings.iter().filter(reserving).collect();
        if reserved.is_empty() || port.queue.is_usual() {
            return None;
        }
        let best_effort = if reserved.len() < crossings.len() { port.mtu } else { Bytes(0) };
        let mut context = port.context(&Streams::new(0), downstream);
        if port.medium.is_some() {
            // Others decide when the link is served, so that it has no rate of its own.
            context.rate = Rate::bit(1);
        } else if let Some(profile) = &port.impairments.rate {
            context.rate = Rate::bit(profile.least().max(1));
        }
        Some(Link { port, context, crossings, reserved, best_effort })
    }

    /// The bounds of all reserved traffic.
    fn bounds(&self, disciplines: &[Spec], burst: Option<Bytes>) -> LinkBounds {
        let rates = self
            .reserved
            .iter()
            .map(|crossing| crossing.stream.reserved.as_bit().saturating_mul(count(crossing)));
        LinkBounds {
            link: self.port.name.clone(),
            rate: self.port.rate,
            reserved: Rate::bit(rates.fold(0, u64::saturating_add)),
            best_effort: self.best_effort,
            flows: self.crossings.iter().map(flows).sum(),
            disciplines: disciplines.to_vec(),
            streams: self.reserved.iter().map(|crossing| self.stream(crossing, disciplines, burst)).collect(),
        }
    }

    /// The bounds of one reserved stream.
    fn stream(&self, crossing: &Crossing<'_>, disciplines: &[Spec], burst: Option<Bytes>) -> StreamBounds {
        let packet = largest(crossing.stream, self.port.mtu);
        let burst = burst.map_or(packet, |burst| burst.max(packet));
        let server = self.server(crossing);
        StreamBounds {
            name: crossing.stream.name.clone(),
            flows: count(crossing),
            reserved: crossing.stream.reserved,
            packet,
            burst,
            bounds: disciplines.iter().map(|spec| self.bound(spec, crossing, &server, burst)).collect(),
        }
    }

    /// The link as a server of a flow of `crossing`, which is the first, and of the flows that are reserved
    /// at the same time.
    fn server(&self, crossing: &Crossing<'_>) -> Server {
        let flow = |crossing: &Crossing<'_>| Flow {
            rate: crossing.stream.reserved.as_bit() as f64,
            packet: largest(crossing.stream, self.port.mtu).0 as f64,
        };
        let stream = crossing.stream;
        let simultaneous = self
            .reserved
            .iter()
            .filter(|other| other.stream.start < stream.stop && stream.start < other.stream.stop);
        let others = simultaneous.flat_map(|other| {
            let same = std::ptr::eq(*other, crossing);
            std::iter::repeat_n(flow(other), (count(other) - u64::from(same)) as usize)
        });
        Server {
            link: self.port.rate.as_bit() as f64,
            flows: std::iter::once(flow(crossing)).chain(others).collect(),
            best_effort: self.best_effort.0 as f64,
        }
    }

    /// The bound of a discipline for the first flow of `server`, which is one of `crossing`.
    fn bound(&self, spec: &Spec, crossing: &Crossing<'_>, server: &Server, burst: Bytes) -> Bound {
        let scheduler = match spec.properties(&self.context).guarantee {
            Guarantee::Nothing => return Bound::Nothing,
            Guarantee::Turns => return self.turns(spec, crossing, burst),
            Guarantee::Classes => return self.classes(spec, crossing, burst).unwrap_or_else(Bound::Class),
            Guarantee::Reserved => Scheduler::Wfq,
            Guarantee::ReservedInSlots(width) => Scheduler::TimestampRoundRobin(width.as_s()),
            Guarantee::ReservedInClasses(width) => Scheduler::VirtualTimeRoundRobin(width.as_s()),
            Guarantee::ReservedInGroups(packet) => Scheduler::QuickFair(packet.0 as f64),
        };
        delay(scheduler, server, burst)
    }

    /// The bound for a flow of `crossing` if its class has a service, or the reason why there is none.
    fn classes(&self, spec: &Spec, crossing: &Crossing<'_>, burst: Bytes) -> Result<Bound, String> {
        let mut own = self.classes_of(spec, crossing);
        own.sort_unstable();
        own.dedup();
        let mut longest: f64 = 0.0;
        for class in own {
            let class = class.ok_or("its packets match no filter, so they are in no class")?;
            let service = spec.class_service(class, &self.context)?;
            let (mut rates, mut bursts) = (0.0, 0.0);
            for other in self.crossings {
                let here =
                    self.classes_of(spec, other).iter().filter(|of| **of == Some(class)).count() as u64;
                if here == 0 {
                    continue;
                }
                let Some(each) = other.stream.spec.lasting() else { return Ok(Bound::Uncounted) };
                if !other.data || other.stream.reserved.as_bit() == 0 {
                    let name = &other.stream.name;
                    return Err(format!(
                        "class \"{}\" has packets of {name} without a reservation, too",
                        service.class
                    ));
                }
                let flows = (here * u64::from(each)) as f64;
                rates += flows * other.stream.reserved.as_bit() as f64;
                bursts += flows * 8.0 * burst.max(largest(other.stream, self.port.mtu)).0 as f64;
            }
            if rates > service.m2.as_bit() as f64 {
                let ClassService { class, m2, .. } = service;
                return Err(format!(
                    "class \"{class}\" has {m2}, less than its reservations of {rates:.0} bit/s"
                ));
            }
            longest = longest.max(wait_in_class(&service, bursts, rates));
        }
        Ok(Bound::Delay(longest))
    }

    /// The class of the packets of each pair of nodes of a stream.
    fn classes_of(&self, spec: &Spec, crossing: &Crossing<'_>) -> Vec<Option<u32>> {
        let stream = crossing.stream;
        let class = |(from, to): &(u16, u16)| {
            let (from, to) = if crossing.data { (*from, *to) } else { (*to, *from) };
            let header = Header::new(stream.dscp, false);
            spec.class_of(&Meta { class: stream.class, header, from, to, ..Meta::default() }, &self.context)
        };
        stream.pairs.iter().map(class).collect()
    }

    /// The bound for a flow of `crossing` if every flow gets a turn, which determines its rate.
    fn turns(&self, spec: &Spec, crossing: &Crossing<'_>, burst: Bytes) -> Bound {
        let context = &self.context;
        let turn = |crossing: &Crossing<'_>| spec.turn(crossing.stream.class, context).0 as f64;
        let mut turns = vec![(turn(crossing), largest(crossing.stream, context.mtu).0 as f64)];
        for other in self.crossings {
            let Some(count) = flows(other) else { return Bound::Uncounted };
            let packet = if other.data { largest(other.stream, context.mtu) } else { context.mtu };
            let count = count - u64::from(std::ptr::eq(other, crossing));
            turns.extend(std::iter::repeat_n((turn(other), packet.0 as f64), count as usize));
        }
        let quanta: Vec<f64> = turns.iter().map(|(quantum, _)| *quantum).collect();
        let (link, frame) = (context.rate.as_bit() as f64, quanta.iter().sum::<f64>());
        let share = |quantum: f64| link * quantum / frame;
        if share(quanta[0]) < crossing.stream.reserved.as_bit() as f64 {
            return Bound::Share(Rate::bit(share(quanta[0]) as u64));
        }
        let flows = turns.iter().map(|(quantum, packet)| Flow { rate: share(*quantum), packet: *packet });
        let server = Server { link, flows: flows.collect(), best_effort: 0.0 };
        delay(Scheduler::DrrThatForgets(&quanta), &server, burst)
    }
}

/// The longest wait behind a service curve, in seconds, of traffic with a burst in bits and a rate in bit/s:
/// the largest horizontal distance between the two (Cruz 1991; Stoica, Zhang and Ng, theorem 1).
fn wait_in_class(service: &ClassService, burst: f64, rate: f64) -> f64 {
    let (m1, m2) = (service.m1.as_bit() as f64, service.m2.as_bit() as f64);
    let (d, bits) = (service.d.as_s(), service.m1.as_bit() as f64 * service.d.as_s());
    let served_at =
        |bits_sent: f64| if bits_sent <= bits { bits_sent / m1 } else { d + (bits_sent - bits) / m2 };
    // At the burst, and where the curve bends: there the traffic arrived earlier.
    let bend = if bits > burst && rate > 0.0 { d - (bits - burst) / rate } else { 0.0 };
    served_at(burst).max(bend) + service.latency.as_s()
}

/// The number of flows that cross a link; `None` if it varies.
fn flows(crossing: &Crossing<'_>) -> Option<u64> {
    crossing.stream.spec.lasting().map(|each| u64::from(each) * crossing.pairs)
}

/// The number of flows, or one if it varies. The check of reservations assumes that, too.
fn count(crossing: &Crossing<'_>) -> u64 {
    flows(crossing).unwrap_or(1)
}

/// The largest IP packet of a stream at a link with this `mtu`.
fn largest(stream: &Stream, mtu: Bytes) -> Bytes {
    let of_protocol = || match (stream.spec.answered(), stream.spec.protocol()) {
        (true, Protocol::Tcp) => stream.tcp.packet(),
        (true, Protocol::Quic) => Bytes(stream.quic.datagram.0 + 28),
        (false, _) => mtu,
    };
    stream.spec.largest().unwrap_or_else(of_protocol).min(mtu)
}

/// The bound for the first flow of `server`: σ/ρ + Θ - L/ρ, since the packet itself is in σ and in Θ.
fn delay(scheduler: Scheduler<'_>, server: &Server, burst: Bytes) -> Bound {
    let burst = 8.0 * burst.0 as f64 / server.flows[0].rate;
    server.lateness(scheduler, 0).map_or(Bound::Nothing, |late| Bound::Delay(burst + late))
}
