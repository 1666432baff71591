use std::collections::BTreeMap;

use giveway_qdisc::{Ecn, FlowKey, Outbox, Streams};
use proptest::prelude::*;

use super::tin::Set;
use super::*;
use crate::Spec;
use crate::testing::events::{build_error, context};
use crate::testing::trace::trace;

/// A discipline with its time, on a link of 1 Gbit/s.
struct Bench {
    q: Cake<u64>,
    now: Time,
    out: Outbox<u64>,
}

/// A sender: source, destination and DSCP. Its number is its flow.
type Sender = (u16, u16, u8);

impl Bench {
    fn new(spec: &str) -> Bench {
        let Spec::cake(config) = spec.parse::<Spec>().unwrap() else { panic!("{spec} is not cake") };
        Bench { q: config.build(&context()).unwrap(), now: Time::ms(1), out: Outbox::default() }
    }

    fn offer(&mut self, number: usize, (from, to, dscp): Sender, bytes: u32) {
        let mut pkt = Packet::new(FlowKey(number as u64), bytes, number as u64);
        pkt.meta.arrived = self.now;
        (pkt.meta.from, pkt.meta.to) = (from, to);
        pkt.meta.header = pkt.meta.header.with_dscp(Dscp::new(dscp).unwrap());
        self.q.enqueue(pkt, &mut Cx::new(self.now, &mut self.out));
    }

    /// The next packet, and waits for it.
    fn take(&mut self) -> Option<Packet<u64>> {
        loop {
            match self.q.dequeue(&mut Cx::new(self.now, &mut self.out)) {
                Next::Packet(pkt) => return Some(pkt),
                Next::At(at) => self.now = at,
                Next::Empty => return None,
            }
        }
    }

    fn gauge(&self, wanted: &str) -> f64 {
        let mut found = None;
        self.q.gauges(&mut |name, value| found = found.or((name == wanted).then_some(value)));
        found.unwrap_or_else(|| panic!("there is a gauge {wanted}"))
    }
}

/// Shares of the bytes that each sender sent, while each always has twenty packets queued. COBALT has no
/// effect: "interplanetary" has a target of three minutes.
fn shares(spec: &str, senders: &[Sender]) -> Vec<f64> {
    const PACKETS: usize = 40_000;
    let mut bench = Bench::new(&format!("cake interplanetary memlimit 32mb {spec}"));
    for _ in 0..20 {
        senders.iter().enumerate().for_each(|(number, sender)| bench.offer(number, *sender, 1000));
    }
    let mut sent = vec![0; senders.len()];
    for _ in 0..PACKETS {
        let number = bench.take().expect("all senders have packets").payload as usize;
        bench.now += Span::us(8);
        sent[number] += 1;
        bench.offer(number, senders[number], 1000);
    }
    assert!(bench.out.dropped.is_empty());
    sent.iter().map(|packets| f64::from(*packets) / PACKETS as f64).collect()
}

fn near(found: f64, expected: f64) -> bool {
    (found - expected).abs() < 0.01
}

/// The quantum is 1,514 bytes. A's first two packets use it up, so B, which is new, goes before A3.
#[test]
fn new_flows_go_before_old_ones() {
    assert_eq!(
        trace("cake besteffort flows", 1000, "0 A1 1000; 0.1 A2 1000; 0.2 A3 1000; 0.3 B1 500"),
        "A1[0-1] A2[1-2] B1[2-2.5] A3[2.5-3.5] |"
    );
}

/// Four packets of A fill 4,096 bytes. B1 does not fit, so A loses its oldest packet.
#[test]
fn the_largest_queue_loses_its_head_when_the_memory_is_full() {
    let arrivals = "0 A1 1000; 0.1 A2 1000; 0.2 A3 1000; 0.3 A4 1000; 0.4 A5 1000; 0.5 B1 500";
    assert_eq!(
        trace("cake besteffort flows memlimit 4kb", 1000, arrivals),
        "A1[0-1] A3[1-2] B1[2-2.5] A4[2.5-3.5] A5[3.5-4.5] | A2@0.5"
    );
}

/// At 8 Mbit/s a packet of 1,000 bytes takes 1 ms, and what the link adds takes its time. An idle link saves
/// nothing: A4 and A5 are a packet apart again. The link itself is ten times as fast.
#[test]
fn the_shaper_counts_what_the_link_adds() {
    let apart = |words: &str, bytes: u32| {
        let arrivals = format!("0 A1 {bytes}, A2 {bytes}, A3 {bytes}; 20 A4 {bytes}, A5 {bytes}");
        let line = trace(&format!("cake bandwidth 8mbit {words}"), 10_000, &arrivals);
        let starts: Vec<f64> = line
            .split(['[', '-'])
            .filter_map(|part| part.rsplit_once(' ').map_or(Some(part), |_| None))
            .filter_map(|part| part.parse().ok())
            .collect();
        assert_eq!(starts.len(), 5, "{line}");
        assert_eq!((starts[0], starts[3]), (0.0, 20.0));
        assert_eq!(starts[2] - starts[1], starts[1]);
        assert!((starts[4] - 20.0 - starts[1]).abs() < 1e-9);
        starts[1]
    };
    assert_eq!(apart("", 1000), 1.0);
    assert_eq!(apart("overhead 250", 1000), 1.25);
    assert_eq!(apart("overhead -50", 1000), 0.95);
    assert_eq!(apart("overhead 10 mpu 250", 100), 0.25);
    // 21 cells of 48 bytes hold 1,000 bytes, and 48 bytes more need one more cell.
    assert_eq!(apart("atm", 1000), 1.113);
    assert_eq!(apart("conservative", 1000), 1.166);
    // 16 bytes for 1,000, and 17 for 1,030.
    assert_eq!(apart("ptm", 1000), 1.016);
    assert_eq!(apart("pppoe-ptm", 1000), 1.047);
    assert_eq!(apart("docsis", 1000), 1.018);
    assert_eq!(apart("ethernet ether-vlan", 1000), 1.042);
}

/// A hundred seconds of packets of many lengths leave at the rate, up to a picosecond per packet.
#[test]
fn the_rate_is_exact_over_any_interval() {
    let mut bench = Bench::new("cake bandwidth 7mbit besteffort flowblind interplanetary memlimit 100mb");
    let lengths: Vec<u32> = (0..80_000).map(|n| 40 + n * 7919 % 1461).collect();
    lengths.iter().enumerate().for_each(|(number, bytes)| bench.offer(number, (1, 2, 0), *bytes));
    let mut bits = 0;
    for bytes in lengths {
        bench.take().unwrap();
        let at = u128::from(bench.now.since(Time::ms(1)).as_ps()) * 7_000_000;
        let expected = bits * 1_000_000_000_000;
        assert!(at >= expected && at - expected < 80_000 * 7_000_000);
        bits += 8 * u128::from(bytes);
    }
}

/// Host 1 has one flow and host 2 has eight, to nine destinations: equal halves for the hosts, or a ninth for
/// each flow.
#[test]
fn a_host_gains_nothing_by_more_flows() {
    let senders: Vec<Sender> = (0..9).map(|n| (if n == 0 { 1 } else { 2 }, 100 + n, 0)).collect();
    let back: Vec<Sender> = senders.iter().map(|(from, to, dscp)| (*to, *from, *dscp)).collect();
    for shaper in ["", "bandwidth 50mbit"] {
        let first = |words: &str, senders: &[Sender]| {
            let shares = shares(&format!("{words} {shaper}"), senders);
            assert!(shares[1..].iter().all(|each| near(each / (1.0 - shares[0]), 1.0 / 8.0)), "{shares:?}");
            shares[0]
        };
        assert!(near(first("triple-isolate", &senders), 0.5));
        assert!(near(first("triple-isolate", &back), 0.5));
        assert!(near(first("dual-srchost", &senders), 0.5));
        assert!(near(first("dual-dsthost", &back), 0.5));
        assert!(near(first("dual-dsthost", &senders), 1.0 / 9.0), "nine destinations");
        assert!(near(first("flows", &senders), 1.0 / 9.0));
    }
    // Queues of hosts: all flows of a host share one.
    let by_host = shares("srchost", &senders);
    assert!(near(by_host[0], 0.5), "{by_host:?}");
}

/// The arithmetic of DRR++: below 10 Mbit/s a quantum is 300 bytes, and the part of a flow among seven of
/// its host is 42 6/7 bytes. Without the fraction, the host of seven flows would have 49.5 % instead of 50
/// %.
#[test]
fn a_part_of_a_quantum_keeps_its_fraction() {
    let senders: Vec<Sender> = (0..8).map(|n| (if n == 0 { 1 } else { 2 }, 100 + n, 0)).collect();
    let shares = shares("besteffort dual-srchost bandwidth 5mbit", &senders);
    assert!((shares[0] - 0.5).abs() < 0.001, "{shares:?}");
    assert!(shares[1..].iter().all(|share| (share - 0.5 / 7.0).abs() < 0.001), "{shares:?}");
}

/// If all flows have a host in common, each has the same share, as if it were not counted.
#[test]
fn a_common_host_divides_nothing() {
    let senders: Vec<Sender> = (0..4).map(|n| (if n == 0 { 1 } else { 2 }, 9, 0)).collect();
    let shares = shares("triple-isolate", &senders);
    assert!(shares.iter().all(|share| near(*share, 0.25)), "{shares:?}");
}

/// Voice (EF) has 25 % and bulk (CS1) 6.25 % while best effort has packets, and each has all that the others
/// leave.
#[test]
fn tins_get_their_thresholds() {
    let (best, bulk, voice) = ((1, 11, 0), (1, 12, 8), (1, 13, 46));
    let shaped = |words: &str, senders: &[Sender]| shares(&format!("bandwidth 50mbit {words}"), senders);
    let all = shaped("diffserv3", &[best, bulk, voice]);
    assert!(near(all[0], 0.6875) && near(all[1], 0.0625) && near(all[2], 0.25), "{all:?}");
    let two = shaped("diffserv3", &[bulk, voice]);
    assert!(two[1] > 0.9 && two[0] > 0.05, "{two:?}");
    let video = shaped("diffserv4", &[best, (1, 14, 34)]);
    assert!(near(video[1], 0.5), "{video:?}");
    let one = shaped("besteffort", &[best, bulk, voice]);
    assert!(one.iter().all(|share| near(*share, 1.0 / 3.0)), "{one:?}");
    // Without a shaper the shares have these proportions: 16, 1 and 4 of 21.
    let turns = shares("diffserv3", &[best, bulk, voice]);
    assert!(near(turns[0], 16.0 / 21.0) && near(turns[1], 1.0 / 21.0), "{turns:?}");
}

/// A voice packet that arrives behind a second of best effort is the next to leave.
#[test]
fn urgent_packets_below_the_threshold_go_first() {
    let mut bench = Bench::new("cake bandwidth 8mbit");
    (0..1000).for_each(|_| bench.offer(0, (1, 2, 0), 1000));
    (0..10).for_each(|_| assert_eq!(bench.take().unwrap().payload, 0));
    bench.offer(7, (1, 2, 46), 200);
    assert_eq!(bench.take().unwrap().payload, 7);
}

/// tc-cake(8): the code points of each tin.
#[test]
fn code_points_select_their_tins() {
    let of = |mode, name: &str| classes::tins(mode)[usize::from(name.parse::<Dscp>().unwrap().number())];
    for (name, three, four, eight, precedence) in [
        ("CS0", 0, 0, 2, 0),
        ("LE", 1, 1, 0, 0),
        ("CS1", 1, 1, 1, 1),
        ("AF11", 0, 0, 1, 1),
        ("CS2", 0, 2, 5, 2),
        ("AF23", 0, 2, 4, 2),
        ("AF41", 0, 2, 3, 4),
        ("CS4", 0, 3, 6, 4),
        ("CS5", 0, 3, 6, 5),
        ("VA", 2, 3, 6, 5),
        ("EF", 2, 3, 6, 5),
        ("CS7", 2, 3, 7, 7),
    ] {
        assert_eq!(of(Tins::Besteffort, name), 0);
        assert_eq!(
            (of(Tins::Diffserv3, name), of(Tins::Diffserv4, name), of(Tins::Diffserv8, name)),
            (three, four, eight),
            "{name}"
        );
        assert_eq!(of(Tins::Precedence, name), precedence, "{name}");
    }
}

/// Eight flows of one set have eight queues, the ninth shares the queue of its own place, and a flow keeps
/// its queue.
#[test]
fn eight_flows_of_a_set_do_not_share_queues() {
    let mut bench = Bench::new("cake besteffort flows");
    let tin = &mut bench.q.tins[0];
    let hash = |flow: u64| (83 << 32) | (flow + 1);
    let mut place = |flow: u64| {
        let place = tin.queue_of(hash(flow));
        tin.tags.set_taken(place);
        place
    };
    let queues: Vec<usize> = (0..8).map(&mut place).collect();
    assert_eq!(queues, [83, 84, 85, 86, 87, 80, 81, 82]);
    assert_eq!(place(8), 83, "the set is full");
    assert_eq!((0..8).map(&mut place).collect::<Vec<_>>(), queues);
    let counters = bench.q.tins[0].counters;
    assert_eq!((counters.misses, counters.indirect, counters.collisions), (8, 7, 1));
}

/// The packets that leave and those that are dropped, of arrivals at once. A capital letter is an
/// acknowledgement with a higher number than those before, of the flow with this letter; a small letter is
/// any other packet of the flow, such as a duplicate.
fn filtered(spec: &str, arrivals: &str) -> String {
    let names: Vec<&str> = arrivals.split_whitespace().collect();
    let mut bench = Bench::new(spec);
    for (number, name) in names.iter().enumerate() {
        let letter = name.chars().next().unwrap();
        let mut pkt = Packet::new(FlowKey(letter.to_ascii_uppercase().into()), 40, number as u64);
        pkt.meta.arrived = bench.now;
        pkt.meta.header = pkt.meta.header.with_advance(letter.is_uppercase());
        bench.q.enqueue(pkt, &mut Cx::new(bench.now, &mut bench.out));
    }
    let acks = bench.gauge("tin0_dropped_acks") + bench.gauge("tin1_dropped_acks");
    let dropped: Vec<&str> =
        bench.out.dropped.drain(..).map(|(pkt, _)| names[pkt.payload as usize]).collect();
    assert_eq!(acks, dropped.len() as f64);
    let mut left = Vec::new();
    while let Some(pkt) = bench.take() {
        left.push(names[pkt.payload as usize]);
    }
    format!("{} | {}", left.join(" "), dropped.join(" "))
}

/// Of five acknowledgements in a row the last two remain, which still clock the sender. The first goes when
/// the third arrives, and so on.
#[test]
fn of_acknowledgements_in_a_row_the_last_two_remain() {
    assert_eq!(filtered("cake ack-filter", "A1 A2 A3 A4 A5"), "A4 A5 | A1 A2 A3");
    assert_eq!(filtered("cake ack-filter-aggressive", "A1 A2 A3 A4 A5"), "A5 | A1 A2 A3 A4");
    assert_eq!(filtered("cake no-ack-filter", "A1 A2 A3"), "A1 A2 A3 | ");
}

/// The duplicates a3, a4 and a5 of A2 make the sender retransmit. None of them is dropped, nor is A2, without
/// which one of them would be news.
#[test]
fn duplicates_and_what_they_duplicate_remain() {
    let arrivals = "A1 A2 a3 a4 a5 A6 A7 A8";
    assert_eq!(filtered("cake ack-filter", arrivals), "A1 A2 a3 a4 a5 A7 A8 | A6");
    assert_eq!(filtered("cake ack-filter-aggressive", arrivals), "A2 a3 a4 a5 A8 | A1 A6 A7");
}

/// Two connections have a queue together. An acknowledgement of B says nothing about A.
#[test]
fn only_acknowledgements_of_one_connection_are_redundant() {
    let spec = "cake flowblind ack-filter-aggressive";
    assert_eq!(filtered(spec, "A1 B1 A2 B2 A3 B3"), "A1 B1 A2 B2 A3 B3 | ");
    assert_eq!(filtered(spec, "A1 A2 B1 B2 A3"), "A2 B2 A3 | A1 B1");
}

/// A flood at three times the rate, next to a call. The call loses no packets and waits for a packet; BLUE
/// thins the flood, so that less of it finds the memory full.
#[test]
fn an_unresponsive_flow_harms_only_itself() {
    let mut bench = Bench::new("cake bandwidth 8mbit besteffort memlimit 100kb");
    let (mut pushed, mut longest, mut lost_calls) = (0, Span::ZERO, 0);
    let start = bench.now;
    for ms in 0..20_000u64 {
        let until = start + Span::ms(ms);
        while bench.now < until {
            match bench.q.dequeue(&mut Cx::new(bench.now, &mut bench.out)) {
                Next::Packet(pkt) if pkt.payload == 1 => {
                    longest = longest.max(bench.now.since(pkt.meta.arrived));
                }
                Next::Packet(_) => {}
                Next::At(at) if at < until => bench.now = at,
                _ => bench.now = until,
            }
        }
        (0..3).for_each(|_| bench.offer(0, (1, 2, 0), 1000));
        if ms % 20 == 0 {
            bench.offer(1, (3, 4, 0), 200);
        }
        for (pkt, why) in bench.out.dropped.drain(..) {
            lost_calls += u32::from(pkt.payload == 1);
            pushed += u32::from(ms >= 10_000 && why == DropReason::Pushout);
        }
    }
    assert_eq!(lost_calls, 0);
    assert!(longest < Span::ms(3), "{longest}");
    assert_eq!(bench.gauge("tin0_unresponsive_flows"), 1.0);
    assert!(pushed < 600, "{pushed} of 30,000 packets were pushed out");
}

/// On the way in, a dropped packet has already used the bottleneck. Of twice the rate the shaper then passes
/// less than its rate, but never less than two thirds.
#[test]
fn dropped_packets_count_on_the_way_in() {
    let sent = |words: &str| {
        let mut bench = Bench::new(&format!("cake bandwidth 8mbit besteffort memlimit 10kb {words}"));
        let (mut sent, start) = (0, bench.now);
        for half in 0..2000u64 {
            let until = start + Span::us(500 * half);
            while bench.now < until {
                match bench.q.dequeue(&mut Cx::new(bench.now, &mut bench.out)) {
                    Next::Packet(_) => sent += 1,
                    Next::At(at) if at < until => bench.now = at,
                    _ => bench.now = until,
                }
            }
            bench.offer(0, (1, 2, 0), 1000);
        }
        sent
    };
    assert_eq!(sent("egress"), 1000);
    assert_eq!(sent("ingress"), 667);
}

/// Two packets arrive per millisecond: 16 Mbit/s. The shaper starts at 1 Mbit/s and follows, to 15/16.
#[test]
fn the_rate_follows_the_arrivals() {
    let mut bench = Bench::new("cake bandwidth 1mbit autorate-ingress");
    assert_eq!(bench.gauge("bandwidth_bps"), 1e6);
    for _ in 0..20_000 {
        bench.now += Span::us(500);
        bench.offer(0, (1, 2, 0), 1000);
        let _ = bench.q.dequeue(&mut Cx::new(bench.now, &mut bench.out));
        bench.out.dropped.clear();
    }
    let rate = bench.gauge("bandwidth_bps");
    assert!((14.9e6..15.1e6).contains(&rate), "{rate}");
}

#[test]
fn washed_packets_have_no_dscp() {
    for (words, expected) in [("wash", 0), ("nowash", 46)] {
        let mut bench = Bench::new(&format!("cake {words}"));
        bench.offer(0, (1, 2, 46), 200);
        assert_eq!(bench.gauge("tin2_queued_packets"), 1.0);
        assert_eq!(bench.take().unwrap().meta.header.dscp().number(), expected);
    }
}

/// ECN-capable packets of a standing queue are marked, by the tin's counter as well.
#[test]
fn senders_with_ecn_get_marks() {
    let mut bench = Bench::new("cake bandwidth 8mbit");
    for n in 0..600 {
        let mut pkt = Packet::new(FlowKey(1), 1000, n);
        pkt.meta.arrived = bench.now;
        pkt.meta.ecn = Ecn::Ect0;
        bench.q.enqueue(pkt, &mut Cx::new(bench.now, &mut bench.out));
    }
    while bench.take().is_some() {}
    assert!(bench.out.dropped.is_empty());
    assert!(bench.out.marked.len() > 5);
    assert_eq!(bench.gauge("tin1_marked_packets"), bench.out.marked.len() as f64);
}

/// The words of tc, and the same spec as it is written.
#[test]
fn words_of_tc_are_read() {
    let written = |words: &str| format!("cake {words}").parse::<Spec>().unwrap().to_string();
    for (words, expected) in [
        (
            "unlimited diffserv3 triple-isolate nonat nowash no-ack-filter split-gso rtt 100ms raw overhead 0",
            "cake link raw overhead 0",
        ),
        (
            "bandwidth 20mbit diffserv4 dual-srchost nat wash",
            "cake bandwidth 20mbit diffserv4 dual-srchost nat wash",
        ),
        ("besteffort flowblind satellite", "cake besteffort flowblind rtt 1s"),
        ("pppoe-ptm ether-vlan ingress", "cake ether-vlan ingress pppoe-ptm"),
        ("conservative egress no-split-gso", "cake conservative nosplit-gso"),
        ("overhead -4 mpu 84 noatm memlimit 32mb", "cake framing noatm overhead -4"),
        ("autorate-ingress datacentre", "cake autorate-ingress rtt 100us"),
    ] {
        let text = written(words);
        assert_eq!(text.parse::<Spec>().unwrap(), format!("cake {words}").parse::<Spec>().unwrap(), "{text}");
        let sorted = |text: &str| {
            let mut words: Vec<String> = text.split(' ').map(str::to_owned).collect();
            words.sort();
            words
        };
        let (found, wanted) = (sorted(&text), sorted(expected));
        let missing: Vec<&String> = wanted.iter().filter(|word| !found.contains(word)).collect();
        assert!(missing.iter().all(|word| ["link", "framing"].contains(&word.as_str())), "{text}");
    }
}

#[test]
fn mistakes_are_answered_with_the_nearest_word() {
    let error = |words: &str| format!("cake {words}").parse::<Spec>().unwrap_err().to_string();
    assert_eq!(
        error("bandwith 20mbit"),
        "unknown parameter \"bandwith\" of cake; did you mean \"bandwidth\"?"
    );
    assert_eq!(error("difserv4"), "unknown parameter \"difserv4\" of cake; did you mean \"diffserv4\"?");
    assert_eq!(error("pppoe-pmt"), "unknown parameter \"pppoe-pmt\" of cake; did you mean \"pppoe-ptm\"?");
    assert_eq!(error("besteffort diffserv4"), "\"tins\" is given twice, here as \"diffserv4\"");
    assert_eq!(
        error("overhead x"),
        "overhead: \"x\" is not a whole number; write for example \"overhead -4\""
    );
    for (words, parameter) in [
        ("ack-filter ack-filter-aggressive", "ack-filter-aggressive"),
        ("fwmark 0xff", "fwmark"),
        ("docsis overhead 22", "overhead"),
        ("overhead 300", "overhead"),
        ("mpu 300", "mpu"),
        ("rtt 0s", "rtt"),
        ("bandwidth 0bit", "bandwidth"),
        ("memlimit 1kb", "memlimit"),
        ("memlimit 8gb", "memlimit"),
    ] {
        assert_eq!(build_error(&format!("cake {words}")).parameter, parameter);
    }
    let warnings = |words: &str| {
        format!("cake {words}")
            .parse::<Spec>()
            .unwrap()
            .warnings(&LinkContext::new(Rate::mbit(10), Streams::new(1)))
    };
    assert!(warnings("bandwidth 9mbit").is_empty());
    // 1,500 bytes and 44 are 33 cells of 53: 8.58 Mbit/s of IP packets.
    assert!(warnings("bandwidth 10mbit overhead 44 atm").is_empty());
    assert!(warnings("bandwidth 10mbit overhead -4")[0].starts_with("bandwidth: 10mbit is not below"));
    assert!(warnings("bandwidth 10mbit")[0].starts_with("bandwidth: 10mbit is not below"));
    assert!(warnings("ingress")[0].starts_with("ingress: "));
    assert!(warnings("nat")[0].starts_with("nat: "));
}

/// The interval and the target follow from the round-trip time, and from the rate if a packet takes long.
#[test]
fn the_target_is_a_twentieth_of_the_round_trip_time() {
    let of = |words: &str, tin: usize| {
        let bench = Bench::new(&format!("cake {words}"));
        let gauge = |name: &str| bench.gauge(&format!("tin{tin}_{name}"));
        (gauge("target_s"), gauge("interval_s"), gauge("quantum_bytes"))
    };
    assert_eq!(of("besteffort", 0), (0.005, 0.1, 1514.0));
    assert_eq!(of("besteffort bandwidth 100mbit metro", 0), (0.0005, 0.01, 1514.0));
    // Tin 2 is voice; 25 % of 20 Mbit/s are 625,000 bytes per second.
    assert_eq!(of("bandwidth 20mbit", 2), (0.005, 0.1, 300.0));
    // At 1 Mbit/s a packet of 1,514 bytes takes 12.112 ms.
    assert_eq!(of("besteffort bandwidth 1mbit", 0), (0.018168, 0.113168, 300.0));
}

proptest! {
    /// Each queue with packets is in turns, counters match the queues, and a flow keeps its order.
    #[test]
    fn lists_and_counters_are_consistent(
        ops in prop::collection::vec((0..8u64, 40..1500u32, 0..3u8), 1..400),
        shaped in any::<bool>(),
    ) {
        let words = if shaped { "bandwidth 30mbit" } else { "" };
        let mut bench = Bench::new(&format!("cake {words} rtt 1ms memlimit 20kb"));
        let mut last = BTreeMap::new();
        for (serial, (flow, bytes, op)) in (1u64..).zip(ops) {
            bench.now += Span::us(100);
            if op > 0 {
                let mut pkt = Packet::new(FlowKey(flow), bytes, serial);
                pkt.meta.arrived = bench.now;
                (pkt.meta.from, pkt.meta.to) = ((flow / 2) as u16, (flow % 3) as u16);
                pkt.meta.header = pkt.meta.header.with_dscp(Dscp::of_service((flow * 8) as u8 * 4));
                bench.q.enqueue(pkt, &mut Cx::new(bench.now, &mut bench.out));
            } else if let Some(pkt) = bench.take() {
                let before = last.insert(pkt.meta.flow, pkt.payload).unwrap_or(0);
                prop_assert!(before < pkt.payload);
            }
            let mut total = Backlog::ZERO;
            for tin in &bench.q.tins {
                let count = |set: &[Set]| tin.flows.iter().filter(|flow| set.contains(&flow.set)).count() as u32;
                prop_assert_eq!(count(&[Set::Sparse, Set::SparseWaiting]), tin.sparse_flows);
                prop_assert_eq!(count(&[Set::Bulk]), tin.bulk_flows);
                prop_assert_eq!(count(&[Set::Decaying]), tin.decaying_flows);
                let mut backlog = Backlog::ZERO;
                for (place, flow) in tin.flows.iter().enumerate() {
                    prop_assert_eq!(tin.tags.free(place) == Some(place), flow.set == Set::Free);
                    prop_assert!(flow.queue.is_empty() || matches!(flow.set, Set::Sparse | Set::Bulk));
                    backlog.packets += flow.queue.len() as u64;
                    backlog.bytes += u64::from(flow.bytes);
                }
                prop_assert_eq!(backlog, tin.backlog);
                total.packets += backlog.packets;
                total.bytes += backlog.bytes;
            }
            prop_assert_eq!(total, bench.q.backlog);
        }
        while bench.take().is_some() {}
        prop_assert_eq!(bench.q.tins.iter().map(|tin| tin.backlog.packets).sum::<u64>(), 0);
    }
}
