//! Traces that name packets: arrivals as text in, departures and drops as text out.

use std::collections::BTreeMap;

use giveway_qdisc::{
    Backlog, Cx, DropReason, FlowKey, LinkContext, Meta, Next, Outbox, Packet, Port, PortId, Probe, Qdisc,
    Rate, Span, Streams, Time,
};

use crate::Spec;

/// The trace of the flow disciplines: ten packets of three flows into a short buffer.
pub const T1: &str = "0.0 A1 1000; 0.1 A2 1000; 0.2 A3 1000; 0.3 A4 1000; 0.4 B1 500; 1.2 B2 500; \
                      1.3 A5 1000; 1.4 C1 1000; 2.6 A6 1000; 2.7 B3 500";

/// The trace of LAS and LARS: A sends some time before B starts.
pub const T2: &str =
    "0.0 A1 1000; 0.1 A2 1000; 4.0 B1 1000; 4.1 B2 500; 4.2 B3 1000; 4.3 A3 1000; 4.4 C1 500; 4.45 A4 500";

/// The trace of the sorted and round-robin disciplines. All packets of one instant arrive before the link
/// starts.
pub const MIXED: &str =
    "0 A1 100, A2 100, A3 100, B1 100, B2 100, C1 200, C2 100; 1.5 A4 100; 4.5 D1 100; 5 B3 100";

/// Runs `arrivals` through a discipline at a link of `bytes_per_ms`.
///
/// An arrival is "time name bytes", in milliseconds; the letter of the name is the flow, and its position in
/// the alphabet is the class. After each arrival that ends with ";" an idle link dequeues a packet; arrivals
/// separated by "," are enqueued together before that. At equal times the link finishes first.
pub fn trace(spec: &str, bytes_per_ms: u64, arrivals: &str) -> String {
    let context = LinkContext::new(Rate::bit(bytes_per_ms * 8000), Streams::new(1));
    let qdisc = spec.parse::<Spec>().unwrap().build_numbered(&context).unwrap();
    trace_on(qdisc, bytes_per_ms, arrivals, |_| {})
}

/// Like [`trace`], for a discipline that was built by hand, with packets that `dress` completes.
pub fn trace_on(
    qdisc: Box<dyn Qdisc<u64>>,
    bytes_per_ms: u64,
    arrivals: &str,
    dress: impl Fn(&mut Meta),
) -> String {
    let mut port = Port::new(PortId(0), qdisc, Rate::bit(bytes_per_ms * 8000));
    let mut log = Log::default();
    let mut offsets: BTreeMap<FlowKey, u32> = BTreeMap::new();
    let mut last = Time::ZERO;
    for group in arrivals.split(';') {
        let (time, packets) = group.trim().split_once(' ').expect("time, then packets");
        let now = time_of(time);
        // The link sends all packets that leave before the arrival.
        advance(&mut port, &mut log, last, now);
        last = now;
        for packet in packets.split(',') {
            let (name, bytes) = packet.trim().split_once(' ').expect("name, then bytes");
            let letter = name.bytes().next().expect("a name has a letter");
            let flow = FlowKey(u64::from(letter - b'A'));
            let mut pkt = Packet::new(flow, bytes.parse().expect("bytes"), number_of(name));
            pkt.meta.class = u16::from(letter - b'A');
            let sent = offsets.entry(flow).or_default();
            pkt.meta.offset = *sent;
            *sent += pkt.meta.bytes;
            dress(&mut pkt.meta);
            port.offer(pkt, now, &mut log);
        }
        if now >= port.free_at() {
            let _ = port.pull(now, &mut log);
        }
    }
    advance(&mut port, &mut log, last, Time::NEVER);
    assert_eq!(port.counters().backlog(), Backlog::ZERO);
    let rate = bytes_per_ms as f64;
    let sent = log.sent.iter().map(|(name, bytes, at)| {
        let from = ms(*at);
        format!("{name}[{}-{}]", short(from), short(from + f64::from(*bytes) / rate))
    });
    let dropped = log.dropped.iter().map(|(name, _, at)| format!("{name}@{}", short(ms(*at))));
    let line = format!("{} | {}", sent.collect::<Vec<_>>().join(" "), dropped.collect::<Vec<_>>().join(" "));
    line.trim_end().to_owned()
}

/// The number that stands for the name of a packet, since the payloads of [`Spec::build_numbered`] are
/// numbers: the bytes of the name, the first one the most significant.
///
/// # Panics
/// If the name has more than 8 bytes.
pub fn number_of(name: &str) -> u64 {
    assert!(name.len() <= 8, "the name {name} of a packet has more than 8 bytes: write a shorter name");
    name.bytes().fold(0, |number, byte| number << 8 | u64::from(byte))
}

/// The name of a packet with this number, the inverse of [`number_of`].
pub fn name_of(number: u64) -> String {
    let bytes = number.to_be_bytes().into_iter().skip_while(|byte| *byte == 0).collect();
    String::from_utf8(bytes).expect("the number is that of a name")
}

/// Runs the link until `until`, from the time of the last arrival on, since time never goes back.
fn advance(port: &mut Port<u64>, log: &mut Log, last: Time, until: Time) {
    let mut now = port.free_at().max(last);
    while now <= until && now < Time::NEVER {
        match port.pull(now, log) {
            Next::Packet(_) => now = port.free_at(),
            Next::At(at) => now = at,
            Next::Empty => return,
        }
    }
}

/// Largest difference of the service of two flows while both are backlogged, in bytes per unit of weight, and
/// its bound: one packet of each, divided by its weight. Of all pairs it is the one with the largest
/// violation, or the one nearest to a violation.
///
/// Packets are (flow 0 to 3, bytes), offered `ahead` before the link starts and then one per departure. A
/// flow's class is its number.
pub fn furthest_apart(spec: &str, packets: &[(u8, u32)], ahead: usize, weights: [u32; 4]) -> (f64, f64) {
    let context = LinkContext::new(Rate::mbit(8), Streams::new(1));
    let mut qdisc = spec.parse::<Spec>().unwrap().build_numbered(&context).unwrap();
    let mut out = Outbox::default();
    let mut cx = Cx::new(Time::ms(1), &mut out);
    let mut queued = [0u32; 4];
    let mut longest = [0u32; 4];
    // For each pair: the difference since both are backlogged, with its lowest and highest value.
    let mut apart = [[None::<(f64, f64, f64)>; 4]; 4];
    let mut nearest = (0.0, f64::INFINITY);
    let mut rest = packets.iter();
    let mut first = true;
    loop {
        for (flow, bytes) in rest.by_ref().take(if first { ahead } else { 1 }) {
            let mut pkt = Packet::new(FlowKey(u64::from(*flow)), *bytes, 0);
            pkt.meta.class = u16::from(*flow);
            queued[usize::from(*flow)] += 1;
            longest[usize::from(*flow)] = longest[usize::from(*flow)].max(*bytes);
            qdisc.enqueue(pkt, &mut cx);
        }
        first = false;
        let Some(pkt) = qdisc.dequeue(&mut cx).packet() else { break };
        let sender = pkt.meta.flow.0 as usize;
        for i in 0..4 {
            for j in 0..i {
                if queued[i] == 0 || queued[j] == 0 {
                    apart[i][j] = None;
                    continue;
                }
                let (now, low, high) = apart[i][j].unwrap_or_default();
                let sent = f64::from(pkt.bytes()) / f64::from(weights[sender]);
                let now = now + if sender == i { sent } else { 0.0 } - if sender == j { sent } else { 0.0 };
                let (low, high) = (now.min(low), now.max(high));
                apart[i][j] = Some((now, low, high));
                let allowed = f64::from(longest[i]) / f64::from(weights[i])
                    + f64::from(longest[j]) / f64::from(weights[j]);
                if high - low - allowed > nearest.0 - nearest.1 {
                    nearest = (high - low, allowed);
                }
            }
        }
        queued[sender] -= 1;
    }
    assert!(out.dropped.is_empty(), "shares are compared without losses");
    nearest
}

#[derive(Default)]
struct Log {
    sent: Vec<(String, u32, Time)>,
    dropped: Vec<(String, DropReason, Time)>,
}

impl Probe<u64> for Log {
    fn on_transmission(&mut self, _: PortId, meta: &Meta, name: &u64, now: Time) {
        self.sent.push((name_of(*name), meta.bytes, now));
    }
    fn on_drop(&mut self, _: PortId, _: &Meta, name: &u64, why: DropReason, now: Time) {
        self.dropped.push((name_of(*name), why, now));
    }
}

fn time_of(text: &str) -> Time {
    Time::ZERO + format!("{text}ms").parse::<Span>().expect("a time in milliseconds")
}

fn ms(at: Time) -> f64 {
    at.as_ps() as f64 / 1e9
}

fn short(value: f64) -> String {
    let text = format!("{value:.3}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}
