//! The parts of a workload other than connections: trains of datagrams, pages, and groups.

use crate::support::{C, Found, From, Row, S, Trace};
use giveway_capture::Tunnel;
use giveway_workload::{After, Connection, Direction, Side, Trigger};

// -- trains -----------------------------------------------------------------------------------------

fn call(mut trace: Trace, from: From, gap: impl Fn(u64) -> u64, bytes: u32) -> Trace {
    let mut at = 0;
    for number in 0..100 {
        trace = trace.udp(at, from, bytes);
        at += gap(number);
    }
    trace
}

#[test]
fn an_even_stream_of_small_packets_is_a_call() {
    let trace = call(Trace::new().between((21, 5004), (30, 5004)), C, |_| 20_000, 172);
    let found = call(trace, S, |number| 15_000 + number % 2 * 10_000, 172).found();
    assert_eq!(found.seen.trains, 2, "each direction is a train");
    let train = found.train("voice-like");
    assert_eq!((train.direction, train.start, train.packets.len()), (Direction::Up, 0, 100));
    assert_eq!(train.packets.iter().take(2).collect::<Vec<_>>(), [(0, 200), (20_000_000, 200)]);
    assert_eq!((train.span(), train.bytes()), (99 * 20_000_000, 20_000));
    assert!(found.workload.trains.iter().all(|train| train.group == "voice-like"), "some jitter is allowed");
}

/// A queue held the packets of the middle back for up to 400 ms, and then sent them at once.
#[test]
fn a_call_that_waited_in_a_queue_is_a_call() {
    let gap = |number| match number {
        40 => 400_000,
        41..61 => 1_000,
        _ => 20_000,
    };
    let found = call(Trace::new().between((21, 5004), (30, 5004)), S, gap, 172).found();
    let train = &found.workload.trains[0];
    assert_eq!(train.group, "voice-like");
    // It was sent at an even pace. Without the queue each packet is 20 ms after the one before.
    let gaps: Vec<u64> = train.packets.iter().skip(1).map(|(gap, _)| gap / 1_000_000).collect();
    assert!(gaps.iter().all(|gap| (19..=41).contains(gap)), "{gaps:?}");
}

#[test]
fn other_streams_are_not_calls() {
    let ports = || Trace::new().between((21, 5004), (30, 5004));
    let group = |trace: Trace| trace.found().workload.trains[0].group.clone();
    assert_eq!(group(call(ports(), C, |_| 20_000, 1_000)), "udp 5004", "large packets");
    assert_eq!(group(call(ports(), C, |_| 5_000, 172)), "udp 5004", "200 a second");
    assert_eq!(
        group(call(ports(), C, |number| if number % 10 == 0 { 200_000 } else { 0 }, 172)),
        "udp 5004",
        "bursts"
    );
    assert_eq!(group(ports().udp(0, C, 172).udp(20_000, C, 172)), "udp 5004", "too few");
}

#[test]
fn services_by_their_ports() {
    let found = Trace::new()
        .between((20, 50_000), (53, 53))
        .udp(0, C, 30)
        .udp(25_000, S, 120)
        .between((20, 50_001), (10, 443))
        .udp(1_000, C, 1_200)
        .between((20, 0), (10, 0))
        .other(2, C, 1, 84)
        .other(22, S, 1, 84)
        .found();
    let trains: Vec<_> = found
        .workload
        .trains
        .iter()
        .map(|train| (train.group.as_str(), train.direction, train.start / 1_000_000, train.bytes()))
        .collect();
    assert_eq!(
        trains,
        [
            ("dns", Direction::Up, 0, 58),
            ("quic", Direction::Up, 1, 1_228),
            ("icmp", Direction::Up, 2, 84),
            ("icmp", Direction::Down, 22, 84),
            ("dns", Direction::Down, 25, 148),
        ]
    );
}

/// Only the first fragment has ports. The others form a separate train, so that their bytes count.
#[test]
fn fragments() {
    let found = Trace::new()
        .between((20, 50_000), (10, 6_000))
        .udp(0, C, 1_472)
        .udp(1, C, 500)
        .fragment_at(1_480)
        .tcp(&[(5, C, ".", 1, 400, 1)])
        .fragment_at(1_480)
        .found();
    assert_eq!(found.train("udp 6000").bytes(), 1_500);
    assert_eq!(found.train("udp 0").bytes(), 528);
    assert_eq!(
        (found.seen.headless, found.workload.connections.len()),
        (1, 0),
        "a TCP fragment without its header is left out"
    );
}

#[test]
fn packets_between_local_hosts_are_left_out() {
    let packet = Trace::new().between((20, 50_000), (10, 6_000)).udp(0, C, 100).found();
    assert_eq!((packet.seen.inside, packet.seen.up), (0, (1, 128)));
}

// -- pages ------------------------------------------------------------------------------------------

/// A connection that opens at `at`, with a request of `up` bytes and a response of `down` bytes after 60 ms.
fn requests(at: u64, up: u32, down: u32) -> [Row; 5] {
    [
        (at, C, "S", 0, 0, 0),
        (at + 30, S, "S.", 0, 0, 1),
        (at + 30, C, ".", 1, up, 1),
        (at + 60, S, ".", 1, down, 1 + up),
        (at + 60, C, ".", 1 + up, 0, 1 + down),
    ]
}

fn pages(connections: &[Connection]) -> Vec<Option<u32>> {
    connections.iter().map(|connection| connection.epochs[0].page).collect()
}

/// The event that each connection waits for: the other one, its bytes, and the pause in milliseconds.
fn afters(found: &Found) -> Vec<Option<(usize, u64, u64)>> {
    let ms = |after: After| (after.connection, after.bytes, after.pause / 1_000_000);
    found.workload.connections.iter().map(|connection| connection.after.map(ms)).collect()
}

/// The rows of several connections of client 20 to server 10, each with its own port.
fn traced<'a>(connections: impl IntoIterator<Item = &'a [Row]>) -> Found {
    let ports = (40_000..).zip(connections);
    ports.fold(Trace::new(), |trace, (port, rows)| trace.between((20, port), (10, 443)).tcp(rows)).found()
}

/// The response arrives at 60 ms and names two objects. The connections for them open 5 and 6 ms later, and a
/// second later the next document is requested.
#[test]
fn a_page_is_a_document_and_the_connections_that_open_after_it() {
    let page = |at: u64| [requests(at, 300, 900), requests(at + 65, 300, 700), requests(at + 66, 300, 700)];
    let found = traced([page(0), page(1_060)].iter().flatten().map(|rows| &rows[..]));
    assert_eq!(pages(&found.workload.connections), [Some(0), Some(0), Some(0), Some(1), Some(1), Some(1)]);
    assert_eq!(found.seen.pages, [126_000_000; 2]);
    let [first, second] = [0, 3].map(|document| [5, 6].map(|pause| Some((document, 900, pause))));
    assert_eq!(afters(&found), [&[None], &first[..], &[None], &second[..]].concat());
}

/// A client clicks every 1.5 s. Each document takes 2 s, and two objects come after it.
#[test]
fn clicks_while_a_document_arrives_are_other_pages() {
    let document = |at: u64| {
        [
            (at, C, "S", 0, 0, 0),
            (at + 30, S, "S.", 0, 0, 1),
            (at + 30, C, ".", 1, 300, 1),
            (at + 1_000, S, ".", 1, 1_000, 301),
            (at + 1_000, C, ".", 301, 0, 1_001),
            (at + 2_000, S, ".", 1_001, 600, 301),
            (at + 2_000, C, ".", 301, 0, 1_601),
        ]
    };
    let mut rows: Vec<Vec<Row>> = Vec::new();
    for click in 0..40 {
        let at = 1_500 * click;
        rows.push(document(at).to_vec());
        rows.extend([2_004, 2_005].map(|after| requests(at + after, 300, 700).to_vec()));
    }
    let found = traced(rows.iter().map(|rows| &rows[..]));
    assert_eq!(found.seen.pages, [2_065_000_000; 40]);
    assert_eq!((found.seen.unsure_pages, found.seen.lone_requests), (0, 0));
}

/// The parser of a browser requests what the first part of a document names.
#[test]
fn connections_may_open_while_the_document_arrives() {
    let document = [
        (0, C, "S", 0, 0, 0),
        (30, S, "S.", 0, 0, 1),
        (30, C, ".", 1, 300, 1),
        (60, S, ".", 1, 1_000, 301),
        (400, S, ".", 1_001, 1_000, 301),
        (800, S, ".", 2_001, 600, 301),
    ];
    let found = traced([&document[..], &requests(402, 300, 900), &requests(403, 300, 900)]);
    assert_eq!(pages(&found.workload.connections), [Some(0); 3]);
    assert_eq!(afters(&found), [None, Some((0, 2_000, 2)), Some((0, 2_000, 3))]);
}

/// Nothing has arrived that could name another object: the second connection is opened in advance.
#[test]
fn a_spare_connection_belongs_to_its_click() {
    let found = traced([&requests(0, 300, 900)[..], &requests(40, 300, 900)]);
    assert_eq!(
        (pages(&found.workload.connections), afters(&found)),
        (vec![Some(0); 2], vec![None, Some((0, 0, 40))])
    );
    assert_eq!(found.seen.pages, [100_000_000]);
}

/// The connections of the first page stay open, and the next page uses them.
#[test]
fn a_page_on_open_connections_waits_for_its_document() {
    let again = |first: [Row; 5], at: u64| {
        let next =
            [(at, C, ".", 301, 300, 901), (at + 30, S, ".", 901, 500, 601), (at + 30, C, ".", 601, 0, 1_401)];
        [&first[..], &next].concat()
    };
    let document = again(requests(0, 300, 900), 3_000);
    let objects = [62, 63].map(|at| again(requests(at, 300, 900), 2_970 + at + 2));
    let found = traced([&document[..], &objects[0], &objects[1]]);
    for connection in &found.workload.connections {
        assert_eq!(connection.epochs.iter().map(|epoch| epoch.page).collect::<Vec<_>>(), [Some(0), Some(1)]);
    }
    let waits = |at: usize| found.workload.connections[at].adus[2].after;
    let after = |pause: u64| Some(After { connection: 0, bytes: 1_400, pause: pause * 1_000_000 });
    assert_eq!([waits(0), waits(1), waits(2)], [None, after(4), after(5)]);
    assert_eq!(found.workload.connections[1].adus[2].think_time, 0);
}

/// A document starts 10 ms after a part of another page has ended. That is a click, or a frame of that page.
#[test]
fn a_document_that_follows_a_part_of_another_page_has_two_readings() {
    let ends = [0, 65, 66, 136, 201, 202];
    let rows = ends.map(|at| requests(at, 300, 900));
    let found = traced(rows.iter().map(|rows| &rows[..]));
    assert_eq!(pages(&found.workload.connections), [None; 6]);
    assert_eq!((found.seen.all_pages, found.seen.unsure_pages), (2, 2));
}

/// The client takes 1 ms after documents. A document that it requests 55 ms after the last part of a page is
/// a click.
#[test]
fn a_document_that_begins_later_than_usual_is_a_click() {
    let parts = |at: u64| (1..=5).map(move |after| requests(at + 60 + after, 300, 900));
    let first = std::iter::once(requests(0, 300, 900)).chain(parts(0));
    let second = std::iter::once(requests(180, 300, 900)).chain(parts(180));
    let rows: Vec<[Row; 5]> = first.chain(second).collect();
    let found = traced(rows.iter().map(|rows| &rows[..]));
    assert_eq!(found.seen.pages, [125_000_000; 2]);
}

/// A browser that waits for a response does not ask for more: a request during a long download is another
/// page.
#[test]
fn a_response_on_its_way_holds_no_page_open() {
    let mut slow = requests(0, 300, 900);
    slow[3].0 += 5_000;
    slow[4].0 += 5_000;
    let found = traced([&slow[..], &requests(1_500, 300, 900)]);
    assert_eq!(pages(&found.workload.connections), [Some(0), Some(1)]);
    assert_eq!((found.seen.pages, found.seen.unsure_pages), (vec![5_060_000_000, 60_000_000], 0));
}

/// A single request to another server within a second is a late part of the page, or a click. It is in no
/// page.
#[test]
fn a_single_request_soon_after_a_page_is_left_out() {
    let found = Trace::new()
        .tcp(&requests(0, 300, 900))
        .between((20, 40_001), (11, 443))
        .tcp(&requests(1_040, 300, 900))
        .between((20, 40_002), (11, 443))
        .tcp(&requests(2_101, 300, 900))
        .found();
    assert_eq!(pages(&found.workload.connections), [Some(0), None, Some(1)]);
    assert_eq!((found.seen.all_pages, found.seen.lone_requests), (2, 1));
}

/// Requests on one connection with pauses of half a second: the second pause may be another page.
#[test]
fn more_than_one_late_round_may_be_several_pages() {
    let rounds = |count: u32| {
        let mut rows = requests(0, 300, 900).to_vec();
        for round in 1..=count {
            let (at, up, down) = (560 * u64::from(round), 1 + 300 * round, 1 + 900 * round);
            rows.extend([(at, C, ".", up, 300, down), (at + 30, S, ".", down, 900, up + 300)]);
            rows.push((at + 30, C, ".", up + 300, 0, down + 900));
        }
        traced([&rows[..]]).seen
    };
    assert_eq!((rounds(1).pages, rounds(1).unsure_pages), (vec![590_000_000], 0));
    assert_eq!((rounds(2).pages.len(), rounds(2).unsure_pages), (0, 1));
}

/// Two photos at once: the third starts when the first is complete, and the fourth with the second. The fifth
/// is another upload, which starts a second later.
#[test]
fn an_upload_waits_for_the_one_before() {
    let photo = |at: u64| {
        [
            (at, C, "S", 0, 0, 0),
            (at + 30, S, "S.", 0, 0, 1),
            (at + 30, C, ".", 1, 60_000, 1),
            (at + 31, C, ".", 60_001, 60_000, 1),
            (at + 61, S, ".", 1, 300, 120_001),
            (at + 61, C, ".", 120_001, 0, 301),
        ]
    };
    let rows = [0, 20, 62, 84, 1_150].map(photo);
    let found = traced(rows.iter().map(|rows| &rows[..]));
    assert!(found.workload.connections.iter().all(|connection| connection.group == "upload"));
    let after: Vec<_> = found.workload.connections.iter().map(|connection| connection.after).collect();
    let response = |connection, pause: u64| Some(After { connection, bytes: 300, pause: pause * 1_000_000 });
    assert_eq!(after, [None, None, response(0, 1), response(1, 3), None]);
}

#[test]
fn each_client_opens_its_own_pages() {
    let found = Trace::new()
        .tcp(&requests(0, 300, 900))
        .between((21, 40_000), (10, 80))
        .tcp(&requests(10, 300, 900))
        .between((22, 40_000), (10, 80))
        .tcp(&requests(20, 900, 300)) // an upload
        .between((23, 40_000), (10, 22))
        .tcp(&requests(30, 300, 900)) // not the web
        .found();
    assert_eq!(pages(&found.workload.connections), [Some(0), Some(1), None, None]);
}

// -- groups -----------------------------------------------------------------------------------------

#[test]
fn small_groups_are_joined() {
    let mut trace = Trace::new();
    for (number, port) in [80, 22, 25, 110, 873, 1935].into_iter().enumerate() {
        let number = number as u32;
        trace = trace.between((20, 40_000 + port), (10, port)).tcp(&requests(0, 300, 900 - 100 * number));
    }
    let groups = |trace: Trace| -> Vec<String> {
        let found = trace.found();
        let mut groups: Vec<_> = found.workload.connections.iter().map(|each| each.group.clone()).collect();
        groups.extend(found.workload.trains.iter().map(|each| each.group.clone()));
        groups
    };
    // A call is small but keeps its name; with the seventh group the two smallest become "other".
    let trace = call(trace.between((21, 5_004), (30, 5_004)), C, |_| 20_000, 1);
    assert_eq!(groups(trace), ["web", "ssh", "mail out", "mail in", "other", "other", "voice-like"]);
}

// -- QUIC -------------------------------------------------------------------------------------------

/// A handshake with a round trip of 10 ms to the server and 2 ms to the client, two requests with responses,
/// and acknowledgements.
fn over_quic(mut trace: Trace) -> Trace {
    trace = trace.quic(0, C, true, 1200).quic(10, S, true, 1200).quic(10, S, true, 800);
    trace = trace.quic(12, C, true, 90).quic(12, C, false, 233);
    for packet in 0..10 {
        trace = trace.quic(22 + packet / 2, S, false, 1233).quic(24 + packet / 2, C, false, 40);
    }
    trace = trace.quic(27, S, false, 533);
    // The next request 500 ms later, and its response after 30 ms of the server.
    trace.quic(529, C, false, 133).quic(569, S, false, 1033).quic(571, C, false, 38)
}

#[test]
fn a_quic_connection_is_taken_apart() {
    let found = over_quic(Trace::new().between((20, 50_000), (10, 443))).found();
    assert_eq!((found.seen.quic, found.seen.connections, found.seen.trains), (1, 0, 0));
    let connection = &found.workload.connections[0];
    assert!(connection.quic && connection.begun);
    assert_eq!((connection.rtt, connection.group.as_str()), (Some(12_000_000), "quic"));
    let adus: Vec<_> =
        connection.adus.iter().map(|adu| (adu.side, adu.bytes, adu.trigger, adu.think_time)).collect();
    assert_eq!(
        adus,
        [
            (Side::Client, 200, Trigger::Peer(0), 0),
            (Side::Server, 10 * 1200 + 500, Trigger::Peer(200), 0),
            (Side::Client, 100, Trigger::Peer(12_500), 500_000_000),
            (Side::Server, 1000, Trigger::Peer(300), 30_000_000),
        ],
        "acknowledgements and the handshake are no data"
    );
    let epochs: Vec<_> = connection.epochs.iter().map(|epoch| (epoch.adus, epoch.took / 1_000_000)).collect();
    assert_eq!(epochs, [(2, 27), (2, 40)]);
}

/// The first handshake waits for 400 ms in a queue, and the second one for nothing. A server sends connection
/// IDs before the client has sent data.
#[test]
fn quic_connections_of_two_hosts_have_one_path_and_servers_do_not_speak_first() {
    let upload = |trace: Trace, begin: u64, port: u16, wait: u64| {
        let trace = trace.between((20, port), (10, 443)).quic(begin, C, true, 1200);
        let answer = begin + 10 + wait;
        let trace = trace.quic(answer, S, true, 1200).quic(answer, S, false, 138);
        trace.quic(answer + 2, C, false, 1233).quic(answer + 12, S, false, 35)
    };
    let found = upload(upload(Trace::new(), 0, 50_000, 400), 1000, 50_001, 0).found();
    let rtts: Vec<_> = found.workload.connections.iter().map(|connection| connection.rtt).collect();
    assert_eq!(rtts, [Some(12_000_000); 2]);
    for connection in &found.workload.connections {
        let adus: Vec<_> = connection.adus.iter().map(|adu| (adu.side, adu.bytes, adu.trigger)).collect();
        assert_eq!(adus, [(Side::Client, 1200, Trigger::Peer(0))]);
    }
}

/// A library may clear the second bit of all packets but the first. Data follow the last message of the
/// client's handshake in one datagram, and the last packet repeats that message.
#[test]
fn packets_of_the_handshake_are_known_without_the_bit_of_quic() {
    let trace = Trace::new().between((20, 50_000), (10, 443)).quic(0, C, true, 1200);
    let trace = trace.quic_with(10, S, 0x80, 1200).quic_with(10, S, 0xa0, 1200);
    let trace = trace.quic_with(12, C, 0xa0, 47).quic_with(12, C, 0xa0, 1233).quic_with(12, C, 0x20, 433);
    let found = trace.quic_with(22, S, 0x20, 35).quic_with(600, C, 0xa0, 87).found();
    let connection = &found.workload.connections[0];
    let adus: Vec<_> = connection.adus.iter().map(|adu| (adu.side, adu.bytes)).collect();
    assert_eq!(adus, [(Side::Client, 1200 + 400)]);
}

#[test]
fn what_does_not_begin_like_quic_stays_a_stream_of_datagrams() {
    let ports = || Trace::new().between((20, 50_000), (10, 443));
    let open_before = ports().quic(0, C, false, 300).quic(10, S, false, 1200).found();
    assert_eq!((open_before.seen.quic, open_before.seen.trains), (0, 2));
    let unanswered = ports().quic(0, C, true, 1200).quic(1000, C, true, 1200).found();
    assert_eq!((unanswered.seen.quic, unanswered.seen.trains), (0, 1));
    let other_port =
        Trace::new().between((20, 50_000), (10, 8853)).quic(0, C, true, 1200).quic(10, S, true, 1200);
    assert_eq!(other_port.found().seen.quic, 0);
}

// -- kinds of captures --------------------------------------------------------------------------------

/// Only connections with several packets of one side and none of the other count: a SYN without an answer is
/// no sign of a capture of one direction.
#[test]
fn bytes_of_connections_with_one_direction_are_counted() {
    let sender = |seq: u32| (u64::from(seq), C, ".", 1 + seq * 100, 100, 1);
    let one_sided: Vec<Row> = (0..10).map(sender).collect();
    let trace = Trace::new().tcp(&one_sided);
    assert_eq!(trace.found().seen.one_way_bytes, 10 * 140);
    let both = Trace::new().tcp(&one_sided).tcp(&[(20, S, ".", 1, 0, 1_001)]).found().seen;
    assert_eq!((both.one_way_bytes, both.tcp_bytes), (0, 10 * 140 + 40));
    assert_eq!(Trace::of(&one_sided[..4]).seen.one_way_bytes, 0);
}

#[test]
fn encapsulations_are_counted_with_their_bytes() {
    let seen = Trace::new().other(0, C, 50, 100).other(1, S, 50, 200).udp(2_000, C, 10).found().seen;
    let [ipsec, gre] = [Tunnel::Ipsec, Tunnel::Gre].map(|tunnel| seen.tunnels[tunnel as usize]);
    assert_eq!((ipsec, gre, seen.is_loopback()), ((2, 300), (0, 0), false));
}
