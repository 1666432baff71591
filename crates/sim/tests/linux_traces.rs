//! TCP with the preset "linux" against Linux 7.2, packet by packet: the first 50 data segments of a
//! connection over 10 Mbit/s with a round-trip time of 40 ms, without losses and with losses at given places.
//!
//! The traces in `data/linux/` were recorded in a virtual machine with a counted clock: `cargo xtask
//! senders-linux`. Sizes and order must be equal, and times within a tick of that kernel, 4 ms.

use crate::support::{Gate, Lab};
use giveway_qdisc::{Bytes, Meta, Probe, Rate, Share, Span, Time};
use giveway_sim::tcp::Congestion;
use giveway_sim::{LinkPlan, Segment, TcpConfig};

const MSS: u64 = 1448;
/// Number of data segments that are compared, in most traces.
const FIRST: usize = 50;
/// A tick of a kernel with 250 of them in a second.
const TICK: Span = Span::ms(4);

/// A data segment when its sender sends it: time since the first one, sequence number and length.
type Sent = (Span, u64, u64);

/// The data segments of a trace of Linux, the numbers of those that were lost, and the size of the transfer.
fn recorded(table: &str) -> (Vec<Sent>, Vec<u64>, u64) {
    let (mut sent, mut lost, mut size) = (Vec::new(), Vec::new(), 0);
    for line in table.lines().skip(1) {
        let fields: Vec<&str> = line.split(',').collect();
        let number = |at: usize| fields[at].parse::<u64>().unwrap();
        let (seq, len) = (number(3), number(4));
        if fields[2] == "data" && len > 0 {
            sent.push((Time::us(number(0)), seq, len));
            size = size.max(seq + len - 1);
            if fields[1].is_empty() {
                lost.push((seq - 1) / MSS + 1);
            }
        }
    }
    (since_first(sent), lost, size)
}

fn since_first(sent: Vec<(Time, u64, u64)>) -> Vec<Sent> {
    let first = sent[0].0;
    sent.into_iter().map(|(at, seq, len)| (at.since(first), seq, len)).collect()
}

#[derive(Default)]
struct Emissions(Vec<(Time, u64, u64)>);

impl Probe<Segment> for Emissions {
    fn on_emission(&mut self, node: u16, _: &Meta, segment: &Segment, now: Time) {
        if node == 0 && segment.len > 0 {
            self.0.push((now, segment.seq, u64::from(segment.len)));
        }
    }
}

/// The data segments of the same transfer in the simulator.
fn simulated(congestion: &str, lose: &[u64], size: u64) -> Vec<Sent> {
    let tcp = TcpConfig { congestion: Congestion::named(congestion), mss: Bytes(MSS), ..TcpConfig::linux() };
    let mut lab = Lab::new(2, 1);
    lab.network.link(LinkPlan {
        name: "0->1".into(),
        from: 0,
        to: 1,
        // The kernel counts the Ethernet header, 14 bytes.
        rate: Rate::bit(10_000_000 * 1500 / 1514),
        delay: Span::us(10),
        jitter: Span::ZERO,
        loss: Share::default(),
        cost: 1,
        impairments: Default::default(),
        outages: Vec::new(),
        medium: None,
        qdisc: Box::new(Gate::new(MSS, lose, &[])),
    });
    lab.link(1, 0, Rate::gbit(1), Span::ms(40), "fifo");
    lab.bulk(&[(0, 1)], Some(size), &tcp);
    let mut emissions = Emissions::default();
    lab.run(Time::s(60), Time::ZERO, &mut emissions);
    since_first(emissions.0)
}

/// Compares, and returns the first difference with what comes before it.
fn difference(congestion: &str, table: &str, most: usize) -> Option<String> {
    let (linux, lost, size) = recorded(table);
    let ours = simulated(congestion, &lost, size);
    let mut text = String::new();
    for (n, (theirs, ours)) in linux.iter().zip(&ours).take(most).enumerate() {
        let apart = theirs.0.max(ours.0) - theirs.0.min(ours.0);
        let line =
            |(at, seq, len): &Sent| format!("{:>9.3} {:>3} {len}", at.as_s() * 1e3, (seq - 1) / MSS + 1);
        text += &format!("{n:>3} linux {} | here {}\n", line(theirs), line(ours));
        if (theirs.1, theirs.2) != (ours.1, ours.2) || apart > TICK {
            return Some(text);
        }
    }
    assert!(linux.len() >= most && ours.len() >= most, "{} and {}", linux.len(), ours.len());
    None
}

macro_rules! traces {
    ($($test:ident: $congestion:literal $file:literal $most:expr,)*) => {$(
        #[test]
        fn $test() {
            let found = difference($congestion, include_str!(concat!("data/linux/", $file, ".csv")), $most);
            assert!(found.is_none(), "\n{}", found.unwrap());
        }
    )*};
}

traces! {
    slow_start_of_reno: "reno" "lossless-reno" FIRST,
    slow_start_of_cubic: "cubic" "lossless-cubic" FIRST,
    one_loss_of_reno: "reno" "one_loss-reno" FIRST,
    one_loss_of_cubic: "cubic" "one_loss-cubic" FIRST,
    three_losses_of_reno: "reno" "three_losses-reno" FIRST,
    three_losses_of_cubic: "cubic" "three_losses-cubic" FIRST,
    a_lost_retransmission_of_reno: "reno" "lost_again-reno" FIRST,
    a_lost_retransmission_of_cubic: "cubic" "lost_again-cubic" FIRST,
    // The whole connection: after two round trips a probe repeats the last segment, and its SACK shows that
    // the one before it is lost, too.
    a_lost_tail_of_reno: "reno" "tail_loss-reno" 62,
    a_lost_tail_of_cubic: "cubic" "tail_loss-cubic" FIRST,
}
