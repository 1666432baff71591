//! Trials that run step by step, and are changed while they run.

use giveway_disciplines::Spec;
use giveway_qdisc::{
    Backlog, DropReason, FlowReport, Interest, Meta, PortId, Probe, Rate, Share, Span, Time,
};
use giveway_scenario::{ChangeError, Network, Scenario, Stepped, discipline};
use giveway_sim::{LinkChangeError, Segment};

const UPLINK: &str = r#"
duration = "6 s"
seeds = [5]
disciplines = ["fifo limit 100p"]

[[link]]
from = "s[1-3]"
to = "left"
rate = "1 Gbit/s"
delay = "1 ms"

[[link]]
from = "left"
to = "right"
rate = "8 Mbit/s"
delay = "8 ms"
qdisc = "compare"

[[link]]
from = "right"
to = "d[1-3]"
rate = "1 Gbit/s"
delay = "1 ms"

[[traffic]]
kind = "bulk"
from = "s[1-3]"
to = "d[1-3]"
spread = "0 s"

[[traffic]]
kind = "poisson"
from = "s1"
to = "d2"
rate = "500 kbit/s"
"#;

fn uplink(spec: &str) -> Scenario {
    Scenario::parse(&UPLINK.replace("fifo limit 100p", spec), ".").expect("it is valid")
}

fn stepped(scenario: &Scenario) -> (Stepped, PortId) {
    let network: &Network = scenario.network().expect("the backend is a network");
    let stepped = network.stepped(&scenario.trials()[0], &|_, spec, context| discipline(spec, context));
    let port = stepped.port("left->right").expect("the link exists");
    (stepped, port)
}

/// Keeps what happens at a port, and the flows.
#[derive(Debug, Default, PartialEq)]
struct Log {
    port: PortId,
    sent: Vec<(Time, u64, u32)>,
    /// Time since arrival.
    sojourns: Vec<(Time, Span)>,
    dropped: Vec<(Time, u64, DropReason)>,
    flows: Vec<FlowReport>,
}

impl Probe<Segment> for Log {
    fn interest(&self, at: PortId) -> Interest {
        if at == self.port { Interest::Port } else { Interest::Nothing }
    }
    fn on_transmission(&mut self, at: PortId, meta: &Meta, _: &Segment, now: Time) {
        if at == self.port {
            self.sent.push((now, meta.flow.0, meta.bytes));
            self.sojourns.push((now, now.since(meta.arrived)));
        }
    }
    fn on_drop(&mut self, at: PortId, meta: &Meta, _: &Segment, why: DropReason, now: Time) {
        if at == self.port {
            self.dropped.push((now, meta.flow.0, why));
        }
    }
    fn on_flow(&mut self, report: &FlowReport) {
        self.flows.push(report.clone());
    }
}

impl Log {
    fn of(port: PortId) -> Log {
        Log { port, ..Log::default() }
    }

    /// Bytes that the port sent from one time to another.
    fn bytes(&self, from: Time, until: Time) -> u64 {
        let sent = self.sent.iter().filter(|(at, ..)| (from..until).contains(at));
        sent.map(|(_, _, bytes)| u64::from(*bytes)).sum()
    }

    /// The mean time in the queue of packets that left from one time to another, in milliseconds.
    fn mean_sojourn(&self, from: Time, until: Time) -> f64 {
        let chosen: Vec<f64> = self
            .sojourns
            .iter()
            .filter(|(at, _)| (from..until).contains(at))
            .map(|(_, sojourn)| sojourn.as_s() * 1e3)
            .collect();
        chosen.iter().sum::<f64>() / chosen.len() as f64
    }
}

/// `fifo` is computed in a usual run, `codel` is not.
#[test]
fn steps_and_ports_at_every_link_change_nothing() {
    for spec in ["fifo limit 30p", "codel", "fq_codel limit 50p"] {
        let scenario = uplink(spec);
        let network = scenario.network().unwrap();
        let (_, port) = stepped(&scenario);
        let mut usual = Log::of(port);
        let finished = network.run(&scenario.trials()[0], &mut usual, &|_| true).unwrap();
        assert!(!usual.dropped.is_empty() && usual.flows.len() > 3, "there is something to compare");
        for steps in [1, 1000] {
            let (mut trial, _) = stepped(&scenario);
            let mut log = Log::of(port);
            for step in 1..=steps {
                trial.step_to(Time::ZERO + Span::s(6).scale(step, steps), &mut log);
            }
            assert_eq!(trial.now(), trial.until());
            let (remarks, events) = (trial.remarks(), trial.sim().events());
            assert_eq!((&remarks, trial.finish(&mut log).totals.events), (&finished.remarks, events));
            assert_eq!(log, usual, "{spec} in {steps} steps");
        }
    }
}

#[test]
fn half_the_rate_halves_the_goodput_from_then_on() {
    let scenario = uplink("fifo limit 100p");
    let (mut trial, port) = stepped(&scenario);
    let mut log = Log::of(port);
    trial.step_to(Time::s(3), &mut log);
    let free_at = trial.sim().port(port.0).unwrap().free_at();
    trial.change_rate(port, Rate::mbit(4), &mut log).unwrap();
    assert_eq!(trial.sim().port(port.0).unwrap().free_at(), free_at, "the transmission keeps its end");
    assert_eq!(trial.sim().port(port.0).unwrap().rate(), Rate::mbit(4));
    assert_eq!(trial.context(port).unwrap().rate, Rate::mbit(4));
    trial.step_to(Time::s(6), &mut log);
    let (before, after) = (log.bytes(Time::s(2), Time::s(3)), log.bytes(Time::s(4), Time::s(5)));
    // 1,000,000 bytes per second, and 500,000; a packet more or less.
    assert!(before.abs_diff(1_000_000) <= 1500, "{before}");
    assert!(after.abs_diff(500_000) <= 1500, "{after}");
    assert!(log.bytes(Time::ms(3000), Time::ms(3100)) < 54_000, "the new rate holds at once");
    trial.change_rate(port, Rate::mbit(8), &mut log).unwrap();
    assert_eq!(trial.change_rate(port, Rate::bit(0), &mut log), Err(LinkChangeError::NoRate));
    assert_eq!(trial.change_rate(PortId(999), Rate::mbit(1), &mut log), Err(LinkChangeError::NoLink));
}

#[test]
fn a_target_of_codel_acts_from_its_change_on() {
    let scenario = uplink("codel target 50ms interval 200ms");
    let (mut trial, port) = stepped(&scenario);
    let mut log = Log::of(port);
    trial.step_to(Time::s(3), &mut log);
    let read = |text: &str| text.parse::<Spec>().unwrap();
    trial.replace(port, &read("codel target 5ms interval 100ms"), &mut log).unwrap();
    assert_eq!(trial.sim().port(port.0).unwrap().leaving(), 0, "the new one has taken the queue");
    trial.step_to(Time::s(6), &mut log);
    let (before, after) =
        (log.mean_sojourn(Time::s(2), Time::s(3)), log.mean_sojourn(Time::s(4), Time::s(6)));
    assert!(before > 25.0 && after < 12.0, "{before} ms, then {after} ms");
    assert!(
        log.dropped.iter().all(|(_, _, why)| *why == DropReason::Congested),
        "none was lost for another reason"
    );

    let wrong = trial.replace(port, &read("codel interval 0s"), &mut log).unwrap_err();
    let ChangeError::Invalid(wrong) = wrong else { panic!("{wrong}") };
    assert_eq!(wrong.parameter, "interval");
}

/// At 100 kbit/s the next packet would leave after up to 120 ms. At 100 Mbit/s the bucket is full within 120
/// microseconds, and the link has a timer for that.
#[test]
fn a_link_looks_at_its_queue_after_a_change() {
    let scenario = uplink("tbf rate 100kbit burst 1500b");
    let (mut trial, port) = stepped(&scenario);
    let mut log = Log::of(port);
    trial.step_to(Time::ms(500), &mut log);
    let waits = trial.sim().port(port.0).unwrap();
    assert!(waits.free_at() < trial.now() && waits.counters().backlog().packets > 0, "the link is idle");
    let sent = log.sent.len();
    trial.replace(port, &"tbf rate 100mbit burst 1500b".parse().unwrap(), &mut log).unwrap();
    trial.step_to(Time::us(500_120), &mut log);
    assert_eq!(log.sent.len(), sent + 1);
    // The new discipline takes over nothing, so that the filter goes on with its packets, and goes first.
    trial.replace(port, &"sfq".parse().unwrap(), &mut log).unwrap();
    assert_eq!(trial.sim().port(port.0).unwrap().leaving(), 1);
    trial.step_to(Time::s(2), &mut log);
    assert_eq!(trial.sim().port(port.0).unwrap().leaving(), 0);
    assert!(log.bytes(Time::s(1), Time::s(2)) > 900_000);
}

#[test]
fn a_watched_queue_has_the_packets_of_its_port() {
    let scenario = uplink("fq_codel limit 50p");
    let (mut trial, port) = stepped(&scenario);
    let mut log = Log::of(port);
    trial.watch(port);
    let mut seen = 0;
    let mut last = None;
    for step in 1..=300 {
        trial.step_to(Time::ms(10 * step), &mut log);
        if step == 150 {
            trial.replace(port, &"fq_codel limit 20p target 1ms".parse().unwrap(), &mut log).unwrap();
        }
        let backlog = trial.sim().port(port.0).unwrap().counters().backlog();
        let queue: Vec<(u64, Meta)> = trial.queue(port).unwrap().map(|(id, meta)| (id, *meta)).collect();
        let bytes = queue.iter().map(|(_, meta)| u64::from(meta.bytes)).sum();
        assert_eq!(Backlog { packets: queue.len() as u64, bytes }, backlog);
        assert!(queue.is_sorted_by(|(id, one), (other, two)| id < other && one.arrived <= two.arrived));
        seen += queue.len();
        last = queue.last().map(|(id, _)| *id).max(last);
    }
    assert!(seen > 1000 && last.unwrap() > 1000);
    trial.forget(port);
    assert!(trial.queue(port).is_none());
    trial.finish(&mut log);
}

#[test]
fn a_wire_loses_and_delays_from_its_change_on() {
    let scenario = uplink("fifo limit 100p");
    let (mut trial, port) = stepped(&scenario);
    let mut log = Log::of(port);
    trial.step_to(Time::s(3), &mut log);
    let lost = |log: &Log| log.dropped.iter().filter(|(.., why)| *why == DropReason::Wire).count();
    assert_eq!(lost(&log), 0);
    trial.change_loss(port, Share::new(0.05).unwrap()).unwrap();
    trial.change_delay(port, Span::ms(1)).unwrap();
    trial.step_to(Time::s(5), &mut log);
    let during = lost(&log);
    assert!(during > 20, "{during} packets");
    trial.change_loss(port, Share::default()).unwrap();
    trial.change_delay(port, Span::ms(80)).unwrap();
    trial.step_to(Time::s(6), &mut log);
    assert_eq!(lost(&log), during);
    assert_eq!(trial.change_delay(PortId(999), Span::ms(1)), Err(LinkChangeError::NoLink));
}

/// The rate follows a profile, so that it cannot be set; the discipline can.
#[test]
fn what_varies_by_itself_cannot_be_set() {
    let varying = UPLINK.replace(
        "rate = \"8 Mbit/s\"\ndelay",
        "rate = { steps = [[\"0 s\", \"8 Mbit/s\"], [\"2 s\", \"2 Mbit/s\"]] }\ndelay",
    );
    let scenario = Scenario::parse(&varying, ".").unwrap_or_else(|error| panic!("{error}"));
    let (mut trial, port) = stepped(&scenario);
    let mut log = Log::of(port);
    trial.step_to(Time::s(3), &mut log);
    assert_eq!(trial.change_rate(port, Rate::mbit(4), &mut log), Err(LinkChangeError::RateVaries));
    trial.replace(port, &"fq_codel".parse().unwrap(), &mut log).unwrap();
    trial.step_to(Time::s(6), &mut log);
    let after = log.bytes(Time::s(4), Time::s(6));
    // CoDel leaves the link without a packet now and then.
    assert!((490_000..=500_000).contains(&after), "{after}");
}
