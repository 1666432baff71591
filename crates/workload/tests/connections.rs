//! The ADUs and epochs of connections, in captures written by hand, with numbers computed by hand.
//!
//! In all of them the round-trip time is 30 ms, and a full segment has 1,000 bytes.

use crate::support::{C, Row, S, Trace, adus};

const NOTHING: [&str; 0] = [];

/// A handshake, captured at the client and complete at 30 ms.
const AT_CLIENT: [Row; 3] = [(0, C, "S", 0, 0, 0), (30, S, "S.", 0, 0, 1), (30, C, ".", 1, 0, 1)];

fn opened(rows: &[Row]) -> Vec<Row> {
    [&AT_CLIENT, rows].concat()
}

/// A packet of 46 bytes whose header has a total length of 65,535 has six bytes of data.
#[test]
fn a_length_above_that_of_the_frame_adds_no_data() {
    let request = [(35, C, ".", 1, 6, 1)];
    let answer = [(75, S, ".", 1, 400, 7), (75, C, ".", 7, 0, 401)];
    let found = Trace::new().tcp(&AT_CLIENT).tcp(&request).with_total_length(65_535).tcp(&answer).found();
    assert_eq!(found.adus(), ["client 6 B once connected, 5 ms", "server 400 B after 6 B, 10 ms"]);
    assert_eq!(found.seen.bytes, 40 * 4 + 46 + 440);
}

// -- one request, at three capture points -----------------------------------------------------------

#[test]
fn a_request_seen_at_the_client() {
    let found = Trace::of(&opened(&[
        (35, C, ".", 1, 300, 1),    // a think time of 5 ms
        (75, S, ".", 1, 1000, 301), // 30 ms for the path and 10 ms for the server
        (75, S, ".", 1001, 400, 301),
        (75, C, ".", 301, 0, 1401),
        (80, C, "F.", 301, 0, 1401),
        (110, S, "F.", 1401, 0, 302),
        (110, C, ".", 302, 0, 1402),
    ]));
    assert_eq!(found.adus(), ["client 300 B once connected, 5 ms", "server 1400 B after 300 B, 10 ms"]);
    assert_eq!(found.rtt(), Some(30));
    assert_eq!(found.epochs(), [(2, 75)], "from the SYN to the last byte");
    let connection = found.connection();
    assert!(connection.begun && connection.ended && connection.epochs[0].whole);
    assert_eq!((connection.start, connection.group.as_str()), (0, "web"));
    assert_eq!((found.seen.connections, found.seen.missed, found.seen.cut_off), (1, 0, 0));
}

/// An upload fills the queue. Its packets of 1,040 bytes arrive every 20 ms, so one takes that long, and a
/// short request waits for 180 ms where they take 200 ms.
#[test]
fn other_data_at_the_same_time_show_the_queue() {
    let mut upload = opened(&[]);
    for number in 0..25u32 {
        let (at, seq) = (100 + 20 * u64::from(number), 1 + 1000 * number);
        upload.extend([(at, C, ".", seq, 1000, 1), (at + 230, S, ".", 1, 0, seq + 1000)]);
    }
    let opened = [(100, C, "S", 0, 0, 0), (310, S, "S.", 0, 0, 1), (330, C, ".", 1, 20, 1)];
    let response = |rows: &[Row]| {
        let found = Trace::new().tcp(&upload).between((20, 40_001), (10, 443)).tcp(&opened).tcp(rows).found();
        adus(&found.workload.connections[1])[1].clone()
    };
    assert_eq!(response(&[(540, S, ".", 1, 700, 21)]), "server 700 B after 20 B, 0 ms");
    assert_eq!(response(&[(571, S, ".", 1, 700, 21)]), "server 700 B after 20 B, 30 ms");
    // An acknowledgement that waited for 20 ms shows that the request did not wait for longer.
    let acknowledged = response(&[(380, S, ".", 1, 0, 21), (540, S, ".", 1, 700, 21)]);
    assert_eq!(acknowledged, "server 700 B after 20 B, 160 ms");
}

/// The server needs 50 ms. It shows that without a queue; with one, its think time is between bounds, and the
/// known one is in them.
#[test]
fn the_known_think_time_of_a_server_is_the_likeliest() {
    let quick = opened(&[(30, C, ".", 1, 300, 1), (60, S, ".", 1, 0, 301), (110, S, ".", 1, 700, 301)]);
    let known = Trace::of(&quick);
    assert_eq!(known.adus()[1], "server 700 B after 300 B, 50 ms");
    let late = [
        (1_000, C, "S", 0, 0, 0),
        (1_200, S, "S.", 0, 0, 1),
        (1_200, C, ".", 1, 300, 1),
        (1_440, S, ".", 1, 0, 301), // the acknowledgement is delayed by 40 ms, and 200 ms are queues and path
        (1_450, S, ".", 1, 700, 301),
    ];
    let found = Trace::new().tcp(&quick).between((20, 40_001), (10, 80)).tcp(&late).found();
    let response = "server 700 B after 300 B, 50 ms, or 10 to 50 ms";
    assert_eq!(adus(&found.workload.connections[1])[1], response);
}

/// 10 ms to the client and back, 20 ms to the server and back.
#[test]
fn a_request_seen_in_the_middle() {
    let found = Trace::of(&[
        (0, C, "S", 0, 0, 0),
        (20, S, "S.", 0, 0, 1),
        (30, C, ".", 1, 0, 1),
        (35, C, ".", 1, 300, 1), // 15 ms after the SYN-ACK, 10 of them on the path
        (65, S, ".", 1, 1000, 301),
        (65, S, ".", 1001, 400, 301),
        (75, C, ".", 301, 0, 1401),
    ]);
    assert_eq!(found.adus(), ["client 300 B once connected, 5 ms", "server 1400 B after 300 B, 10 ms"]);
    assert_eq!(found.rtt(), Some(30), "both parts of the path together");
}

#[test]
fn a_request_seen_at_the_server() {
    let found = Trace::of(&[
        (0, C, "S", 0, 0, 0),
        (0, S, "S.", 0, 0, 1),
        (30, C, ".", 1, 0, 1),
        (35, C, ".", 1, 300, 1),
        (45, S, ".", 1, 1000, 301),
        (45, S, ".", 1001, 400, 301),
        (75, C, ".", 301, 0, 1401),
    ]);
    assert_eq!(found.adus(), ["client 300 B once connected, 5 ms", "server 1400 B after 300 B, 10 ms"]);
    assert_eq!(found.rtt(), Some(30));
}

// -- ADUs and their triggers ------------------------------------------------------------------------

#[test]
fn a_server_speaks_first() {
    let found = Trace::of(&opened(&[
        (67, S, ".", 1, 80, 1), // 30 ms for the round trip to the server, and 7 ms of think time
        (69, C, ".", 1, 20, 81),
    ]));
    assert_eq!(found.adus(), ["server 80 B once connected, 7 ms", "client 20 B after 80 B, 2 ms"]);
}

#[test]
fn requests_of_the_same_length_one_after_another() {
    let found = Trace::of(&opened(&[
        (30, C, ".", 1, 300, 1),
        (60, S, ".", 1, 700, 301),
        (160, C, ".", 301, 300, 701), // 100 ms of think time
        (210, S, ".", 701, 700, 601), // 20 ms
        (1210, C, ".", 601, 300, 1401),
        (1240, S, ".", 1401, 700, 901),
    ]));
    assert_eq!(
        found.adus(),
        [
            "client 300 B once connected, 0 ms",
            "server 700 B after 300 B, 0 ms",
            "client 300 B after 700 B, 100 ms",
            "server 700 B after 600 B, 20 ms",
            "client 300 B after 1400 B, 1000 ms",
            "server 700 B after 900 B, 0 ms",
        ]
    );
    assert_eq!(found.epochs(), [(2, 60), (2, 50), (2, 30)]);
}

/// Responses that end with a full segment are distinguished because the two sides take turns.
#[test]
fn responses_that_are_exact_multiples_of_the_segment() {
    let found = Trace::of(&opened(&[
        (30, C, ".", 1, 300, 1),
        (60, S, ".", 1, 1000, 301),
        (60, S, ".", 1001, 1000, 301),
        (60, C, ".", 301, 0, 2001),
        (70, C, ".", 301, 300, 2001),
        (100, S, ".", 2001, 1000, 601),
    ]));
    let expected = [
        "client 300 B once connected, 0 ms",
        "server 2000 B after 300 B, 0 ms",
        "client 300 B after 2000 B, 10 ms",
        "server 1000 B after 600 B, 0 ms",
    ];
    assert_eq!(found.adus(), expected);
}

#[test]
fn an_upload_is_one_adu_for_any_window() {
    let mut rows = opened(&[]);
    // A flight of two segments for each round trip.
    for flight in 0..10 {
        let (at, seq) = (30 + 30 * flight, 1 + 2000 * flight as u32);
        rows.extend([
            (at, C, ".", seq, 1000, 1),
            (at, C, ".", seq + 1000, 1000, 1),
            (at + 30, S, ".", 1, 0, seq + 2000),
        ]);
    }
    rows.extend([(330, C, ".", 20_001, 500, 1), (360, S, ".", 1, 90, 20_501)]);
    let found = Trace::of(&rows);
    assert_eq!(found.adus(), ["client 20500 B once connected, 0 ms", "server 90 B after 20500 B, 0 ms"]);
    assert_eq!(found.seen.pages, [0; 0], "an upload is not a page");
}

#[test]
fn a_pause_within_the_data_of_one_side() {
    let found = Trace::of(&opened(&[
        (30, C, ".", 1, 300, 1),
        (60, S, ".", 1, 1000, 301),
        (60, S, ".", 1001, 200, 301),
        (60, C, ".", 301, 0, 1201),
        (290, S, ".", 1201, 500, 301), // 230 ms after the acknowledgement, 30 of them on the path
        (290, C, ".", 301, 0, 1701),
        (1820, S, ".", 1701, 100, 301), // 1.5 s: another epoch
    ]));
    assert_eq!(
        found.adus(),
        [
            "client 300 B once connected, 0 ms",
            "server 1200 B after 300 B, 0 ms",
            "server 500 B after its own, 200 ms",
            "server 100 B after its own, 1500 ms",
        ]
    );
    assert_eq!(found.epochs(), [(3, 290), (1, 0)]);
}

#[test]
fn after_a_full_segment_only_a_long_pause_begins_a_new_adu() {
    let found = Trace::of(&opened(&[
        (30, C, ".", 1, 300, 1),
        (60, S, ".", 1, 1000, 301),
        (60, C, ".", 301, 0, 1001),
        (1060, S, ".", 1001, 1000, 301), // a lost segment, retransmitted after a timeout, makes this pause, too
        (1060, C, ".", 301, 0, 2001),
        (62_090, S, ".", 2001, 1000, 301), // 61 s
    ]));
    let pause = "server 1000 B after its own, 61000 ms";
    assert_eq!(found.adus()[1..], ["server 2000 B after 300 B, 0 ms", pause]);
}

/// A capture at the sender shows retransmitted segments, so a shorter pause is one of the application.
#[test]
fn at_the_sender_half_a_second_begins_a_new_adu() {
    let found = Trace::of(&opened(&[
        (30, C, ".", 1, 1000, 1),
        (60, S, ".", 1, 0, 1001),
        (460, C, ".", 1001, 1000, 1),
        (490, S, ".", 1, 0, 2001),
        (1091, C, ".", 2001, 1000, 1), // 601 ms
        (1121, S, ".", 1, 0, 3001),
    ]));
    let pause = "client 1000 B after its own, 601 ms";
    assert_eq!(found.adus(), ["client 2000 B once connected, 0 ms", pause]);
}

/// The second request leaves before the first response is complete. The two responses cannot be
/// distinguished.
#[test]
fn pipelined_requests() {
    let found = Trace::of(&opened(&[
        (30, C, ".", 1, 300, 1),
        (60, S, ".", 1, 1000, 301),
        (61, C, ".", 301, 200, 1001),
        (62, S, ".", 1001, 1000, 301),
        (63, S, ".", 2001, 1000, 301),
        (91, S, ".", 3001, 600, 501),
        (91, C, ".", 501, 0, 3601),
    ]));
    assert_eq!(
        found.adus(),
        [
            "client 300 B once connected, 0 ms",
            "server 3600 B after 300 B, 0 ms",
            "client 200 B after 1000 B, 1 ms",
        ]
    );
}

/// Two sides that send as fast as they can do not wait for each other, so their ADUs do not, either.
#[test]
fn simultaneous_data_in_both_directions_are_independent() {
    let mut rows = opened(&[]);
    for round in 0..40u32 {
        let (at, seq) = (30 + 3 * u64::from(round), 1 + 1000 * round);
        // The client has ten segments in flight; the server's data are acknowledged at once.
        let acked = 1 + 1000 * round.saturating_sub(10);
        rows.extend([
            (at, C, ".", seq, 1000, seq),
            (at + 1, S, ".", seq, 1000, acked),
            (at + 1, C, ".", seq + 1000, 0, seq + 1000),
        ]);
    }
    let found = Trace::of(&rows);
    assert_eq!(found.adus(), ["client 40000 B once connected, 0 ms", "server 40000 B once connected, 0 ms"]);
}

/// Options make the data of a full segment shorter, which does not end an ADU.
#[test]
fn the_length_of_segments_may_vary_with_their_options() {
    let rows = opened(&[
        (30, C, ".", 1, 600, 1),
        (60, S, ".", 1, 90, 601),
        (65, C, ".", 601, 600, 91),
        (95, S, ".", 91, 90, 1201),
    ]);
    let found = Trace::of(&rows);
    assert_eq!(found.connection().adus.len(), 4);
}

/// The request is delayed by a queue that was empty at the handshake. A server that thinks for longer than 40
/// ms acknowledges first, so the think time of this one cannot be 170 ms.
#[test]
fn queueing_delay_does_not_count_as_think_time() {
    let queued = (230, S, ".", 1, 700, 301);
    let found = Trace::of(&opened(&[(30, C, ".", 1, 300, 1), queued]));
    assert_eq!(found.adus()[1], "server 700 B after 300 B, 0 ms, or 0 to 40 ms");
    assert_eq!((found.seen.responses, found.seen.unknown_thinks), (1, 1));
    assert_eq!(found.seen.think_bounds, (0, 40_000_000));
    // The server acknowledges, and responds 140 ms later. The acknowledgement may have been delayed by 30 ms,
    // or it waited as long as the request.
    let found = Trace::of(&opened(&[(30, C, ".", 1, 300, 1), (90, S, ".", 1, 0, 301), queued]));
    assert_eq!(found.adus()[1], "server 700 B after 300 B, 140 ms, or 140 to 170 ms");
    // At the host of the capture the time is exact, because some systems delay acknowledgements for longer.
    let found = Trace::of(&opened(&[
        (30, C, ".", 1, 300, 1),
        (60, S, ".", 1, 700, 301),
        (190, C, ".", 301, 300, 701),
    ]));
    assert_eq!(found.adus()[2], "client 300 B after 700 B, 130 ms");
}

// -- handshakes -------------------------------------------------------------------------------------

/// The second client reaches the server only while there is a queue. The first one has measured the path to
/// it.
#[test]
fn the_path_to_a_server_is_that_of_all_its_clients() {
    let queued = [(500, C, "S", 0, 0, 0), (700, S, "S.", 0, 0, 1), (700, C, ".", 1, 0, 1)];
    let found = Trace::new().tcp(&AT_CLIENT).between((21, 40_000), (10, 80)).tcp(&queued).found();
    let rtts: Vec<_> = found.workload.connections.iter().map(|connection| connection.rtt).collect();
    assert_eq!(rtts, [Some(30_000_000); 2]);
}

#[test]
fn a_lost_syn_gives_no_round_trip_sample() {
    let found = Trace::of(&[
        (0, C, "S", 0, 0, 0),
        (1000, C, "S", 0, 0, 0),
        (1030, S, "S.", 0, 0, 1),
        (1030, C, ".", 1, 0, 1),
        (1030, C, ".", 1, 300, 1),
        (1067, S, ".", 1, 100, 301),
    ]);
    let connection = found.connection();
    assert_eq!((connection.start, connection.begun), (0, true), "it began with the first SYN");
    // The round trip to the client is 0, that to the server at most 37 ms, by its response.
    assert_eq!(found.rtt(), Some(37));
    assert_eq!(found.epochs(), [(2, 1067)], "the first epoch begins with the connection");
    assert_eq!(found.adus()[0], "client 300 B once connected, 0 ms");
}

#[test]
fn a_retransmitted_syn_ack_gives_no_round_trip_sample() {
    let found = Trace::of(&[
        (0, C, "S", 0, 0, 0),
        (30, S, "S.", 0, 0, 1),
        (1030, S, "S.", 0, 0, 1),
        (1031, C, ".", 1, 0, 1),
        (1040, C, ".", 1, 300, 1),
    ]);
    assert_eq!(found.rtt(), Some(30), "only the part to the server is measured");
}

#[test]
fn data_in_the_syn() {
    let found = Trace::of(&[
        (0, C, "S", 0, 300, 0),
        (40, S, "S.", 0, 0, 301),
        (40, S, ".", 1, 500, 301),
        (40, C, ".", 301, 0, 501),
    ]);
    assert_eq!(found.adus(), ["client 300 B once connected, 0 ms", "server 500 B after 300 B, 0 ms"]);
    assert_eq!(found.rtt(), Some(40));
}

#[test]
fn refused_and_unanswered_connections_are_left_out() {
    let found = Trace::new()
        .tcp(&[(0, C, "S", 0, 0, 0), (30, S, "R.", 0, 0, 1)])
        .between((20, 40_001), (10, 80))
        .tcp(&[(0, C, "S", 0, 0, 0), (1000, C, "S", 0, 0, 0), (3000, C, "S", 0, 0, 0)])
        .found();
    assert_eq!(found.workload.connections, []);
    assert_eq!(found.seen.unanswered, 2);
}

/// Some systems retransmit a SYN that was refused.
#[test]
fn a_refused_syn_is_retransmitted_and_answered() {
    let found = Trace::of(&[
        (0, C, "S", 0, 0, 0),
        (30, S, "R.", 0, 0, 1),
        (500, C, "S", 0, 0, 0),
        (530, S, "S.", 0, 0, 1),
        (530, C, ".", 1, 0, 1),
        (530, C, ".", 1, 300, 1),
    ]);
    assert_eq!(found.adus(), ["client 300 B once connected, 0 ms"]);
    assert!(!found.connection().ended);
}

#[test]
fn both_sides_open_at_the_same_time() {
    let found = Trace::of(&[
        (0, C, "S", 0, 0, 0),
        (5, S, "S", 0, 0, 0),
        (6, C, "S.", 0, 0, 1),
        (30, S, "S.", 0, 0, 1),
        (31, C, ".", 1, 300, 1),
        (61, S, ".", 1, 500, 301),
    ]);
    assert_eq!(found.adus().len(), 2);
    assert_eq!(found.connection().bytes(giveway_workload::Side::Server), 500);
}

#[test]
fn another_connection_on_the_same_ports() {
    let first = opened(&[(30, C, ".", 1, 300, 1), (60, S, ".", 1, 500, 301)]);
    let again = |at: u64| -> Vec<Row> {
        let rows = opened(&[(30, C, ".", 1, 111, 1), (60, S, ".", 1, 222, 112)]);
        rows.iter().map(|row| (row.0 + at, row.1, row.2, row.3, row.4, row.5)).collect()
    };
    let closed = [(70, C, "F.", 301, 0, 501), (100, S, "F.", 501, 0, 302), (100, C, ".", 302, 0, 502)];
    for ending in [&closed[..], &[(70, C, "R", 301, 0, 0)], &[]] {
        // In the third case the capture has no end: the client opens again, with another sequence number.
        let found = Trace::new().tcp(&first).tcp(ending).numbered(77_000, 99_000).tcp(&again(5000)).found();
        let writes: Vec<_> = found.workload.connections.iter().map(crate::support::adus).collect();
        assert_eq!(writes[0][1], "server 500 B after 300 B, 0 ms");
        assert_eq!(writes[1], ["client 111 B once connected, 0 ms", "server 222 B after 111 B, 0 ms"]);
        assert_eq!(found.workload.connections[1].start, 5_000_000_000);
    }
}

/// The server still has the old connection and answers with its sequence numbers. The client resets it and
/// opens again.
#[test]
fn an_answer_from_an_earlier_connection() {
    let found = Trace::new()
        .tcp(&[(0, C, "S", 0, 0, 0), (30, S, ".", 800_000, 0, 500_000), (30, C, "R", 500_000, 0, 0)])
        .tcp(&[(1000, C, "S", 0, 0, 0), (1030, S, "S.", 0, 0, 1), (1030, C, ".", 1, 0, 1)])
        .tcp(&[(1030, C, ".", 1, 300, 1), (1060, S, ".", 1, 500, 301)])
        .found();
    assert_eq!(found.adus(), ["client 300 B once connected, 0 ms", "server 500 B after 300 B, 0 ms"]);
    assert_eq!(found.seen.missed, 0);
}

// -- losses, and packets that the capture missed ----------------------------------------------------

#[test]
fn retransmissions_are_not_counted_twice() {
    let found = Trace::of(&opened(&[
        (30, C, ".", 1, 300, 1),
        (230, C, ".", 1, 300, 1),
        (260, S, ".", 1, 1000, 301),
        (460, S, ".", 1, 1000, 301),
        (470, S, ".", 501, 700, 301), // other boundaries: 200 bytes of it are new
        (470, C, ".", 301, 0, 1201),
    ]));
    // It is not known which request was answered. The response carries the acknowledgement.
    assert_eq!(found.adus()[1], "server 1200 B after 300 B, 0 ms, or 0 to 40 ms");
    assert_eq!(found.connection().bytes(giveway_workload::Side::Client), 300);
    assert_eq!(found.rtt(), Some(30), "the response to a retransmitted request is not measured");
}

#[test]
fn segments_out_of_order() {
    let found = Trace::of(&opened(&[
        (30, C, ".", 1, 300, 1),
        (60, S, ".", 1001, 1000, 301),
        (61, S, ".", 1, 1000, 301),
        (62, S, ".", 2001, 400, 301),
        (62, C, ".", 301, 0, 2401),
    ]));
    assert_eq!(found.adus()[1], "server 2400 B after 300 B, 0 ms");
}

#[test]
fn sequence_numbers_wrap() {
    let rows = opened(&[
        (30, C, ".", 1, 300, 1),
        (60, S, ".", 1, 1000, 301),
        (60, S, ".", 1001, 1000, 301),
        (60, S, ".", 1, 1000, 301), // a retransmission from before the wrap
        (60, C, ".", 301, 0, 2001),
        (90, C, ".", 301, 200, 2001),
        (120, S, ".", 2001, 700, 501),
    ]);
    for numbers in [(u32::MAX - 100, u32::MAX - 1500), (u32::MAX, u32::MAX), (u32::MAX - 1, u32::MAX - 2000)]
    {
        let found = Trace::new().numbered(numbers.0, numbers.1).tcp(&rows).found();
        assert_eq!(
            found.adus(),
            [
                "client 300 B once connected, 0 ms",
                "server 2000 B after 300 B, 0 ms",
                "client 200 B after 2000 B, 30 ms",
                "server 700 B after 500 B, 0 ms",
            ],
            "{numbers:?}"
        );
    }
}

#[test]
fn bytes_that_the_capture_missed() {
    let found = Trace::of(&opened(&[
        (30, C, ".", 1, 300, 1),
        // The whole response is missing, but the client has it.
        (75, C, ".", 301, 0, 1401),
        (90, C, ".", 301, 200, 1401),
        (120, S, ".", 1401, 600, 501),
        (120, C, ".", 501, 0, 2001),
    ]));
    assert_eq!(found.seen.missed, 1400);
    let connection = found.connection();
    assert_eq!(connection.bytes(giveway_workload::Side::Server), 2000);
    assert_eq!(connection.bytes(giveway_workload::Side::Client), 500);
    // The acknowledgement of the request is missing, too, so the second request looks like more of the
    // first.
    assert_eq!(connection.epochs.len(), 1);
}

/// A third segment is in the capture, the second is not: it counts as missed until it passes.
#[test]
fn holes_between_segments_are_missed_bytes() {
    let hole = [
        (30, C, ".", 1, 300, 1),
        (60, S, ".", 1, 1000, 301),
        (61, S, ".", 2001, 1000, 301),
        (62, S, ".", 3001, 500, 301),
    ];
    let found = Trace::of(&opened(&hole));
    assert_eq!(found.seen.missed, 1000);
    assert_eq!(found.connection().bytes(giveway_workload::Side::Server), 3500);
    let filled = [&hole[..], &[(90, S, ".", 1001, 1000, 301)]].concat();
    assert_eq!(Trace::of(&opened(&filled)).seen.missed, 0, "a retransmission fills it");
}

/// An acknowledgement far above all data indicates a damaged packet, not a gigabyte of missed data.
#[test]
fn a_single_stray_acknowledgement_is_ignored() {
    let found = Trace::of(&opened(&[
        (30, C, ".", 1, 300, 1),
        (40, C, ".", 301, 0, 700_000_001),
        (60, S, ".", 1, 1000, 301),
        (60, C, ".", 301, 0, 1001),
    ]));
    assert_eq!((found.seen.missed, found.connection().bytes(giveway_workload::Side::Server)), (0, 1000));
}

#[test]
fn keep_alive_probes_have_no_data() {
    let found = Trace::of(&opened(&[
        (30, C, ".", 1, 300, 1),
        (60, S, ".", 1, 500, 301),
        (10_000, C, ".", 300, 1, 501), // with one old byte
        (10_030, S, ".", 501, 0, 301),
        (20_000, S, ".", 500, 0, 301), // and without
        (20_000, C, ".", 301, 0, 501),
    ]));
    assert_eq!(found.adus(), ["client 300 B once connected, 0 ms", "server 500 B after 300 B, 0 ms"]);
    assert_eq!(found.epochs(), [(2, 60)]);
}

// -- beginnings and ends ----------------------------------------------------------------------------

#[test]
fn a_connection_that_was_open_before() {
    let found = Trace::of(&[
        (0, S, ".", 9000, 0, 5000), // only the port identifies the server
        (400, C, ".", 5000, 300, 9000),
        (430, S, ".", 9000, 1000, 5300),
        (430, S, ".", 10_000, 200, 5300),
        (430, C, ".", 5300, 0, 10_200),
        (500, C, ".", 5300, 300, 10_200),
        (530, S, ".", 10_200, 400, 5600),
        (530, C, ".", 5600, 0, 10_600),
    ]);
    assert_eq!(
        found.adus(),
        [
            "client 300 B once connected, 400 ms",
            "server 1200 B after 300 B, 0 ms", // all of the time counts as path
            "client 300 B after 1200 B, 70 ms",
            "server 400 B after 600 B, 0 ms",
        ]
    );
    let connection = found.connection();
    assert!(!connection.begun && !connection.epochs[0].whole && connection.epochs[1].whole);
    assert_eq!(found.rtt(), Some(30), "by the fastest response");
    assert_eq!(found.seen.open_before, 1);
}

#[test]
fn the_first_packet_of_an_open_connection_may_be_a_retransmission() {
    let found = Trace::of(&[
        (0, S, ".", 9000, 1000, 5000),
        (1, S, ".", 7000, 1000, 5000), // a retransmission of data from before the capture
        (2, S, ".", 10_000, 1000, 5000),
        (2, C, ".", 5000, 0, 11_000),
    ]);
    assert_eq!(found.adus(), ["server 2000 B once connected, 0 ms"]);
}

#[test]
fn a_connection_of_which_only_the_end_was_captured_is_left_out() {
    let found =
        Trace::of(&[(0, C, "F.", 5000, 0, 9000), (30, S, "F.", 9000, 0, 5001), (30, C, ".", 5001, 0, 9001)]);
    assert_eq!(found.workload.connections, []);
    assert_eq!(found.seen.strays, 1);
}

#[test]
fn a_connection_that_is_open_at_the_end_of_the_capture() {
    let found = Trace::of(&opened(&[
        (30, C, ".", 1, 300, 1),
        (60, S, ".", 1, 1000, 301),
        (60, C, ".", 301, 0, 1001),
        (61, S, ".", 1001, 1000, 301),
    ]));
    let connection = found.connection();
    assert!(!connection.ended && !connection.epochs[0].whole);
    assert_eq!(found.seen.cut_off, 1);
}

#[test]
fn a_reset_ends_a_connection() {
    let found = Trace::of(&opened(&[
        (30, C, ".", 1, 300, 1),
        (60, S, ".", 1, 1000, 301),
        (61, C, "R", 301, 0, 0),
        (62, S, ".", 1001, 1000, 301), // still in the network
    ]));
    assert!(found.connection().ended);
    assert_eq!(found.connection().bytes(giveway_workload::Side::Server), 2000);
}

#[test]
fn the_last_data_arrive_with_the_fin() {
    let found = Trace::of(&opened(&[
        (30, C, "F.", 1, 300, 1),
        (60, S, ".", 1, 1000, 302),
        (60, S, "F.", 1001, 250, 302),
        (60, C, ".", 302, 0, 1252),
    ]));
    assert_eq!(found.adus(), ["client 300 B once connected, 0 ms", "server 1250 B after 300 B, 0 ms"]);
    assert!(found.connection().ended);
    assert_eq!(found.seen.missed, 0, "a FIN has a sequence number but no data");
}

#[test]
fn a_connection_without_data_has_no_adus() {
    let found = Trace::of(&opened(&[(40, C, "F.", 1, 0, 1), (70, S, "F.", 1, 0, 2)]));
    assert_eq!(found.adus(), NOTHING);
    assert_eq!(found.seen.empty, 1);
}

/// Captures of several interfaces are not always in order. No time in the workload is negative.
#[test]
fn times_step_back() {
    let rows = [
        (500, C, "S", 0, 0, 0),
        (480, S, "S.", 0, 0, 1),
        (490, C, ".", 1, 0, 1),
        (470, C, ".", 1, 300, 1),
        (460, S, ".", 1, 500, 301),
        (465, C, ".", 301, 300, 501),
    ];
    let found = Trace::new().tcp(&rows).found_unsorted();
    assert_eq!(found.connection().bytes(giveway_workload::Side::Server), 500);
    assert!(found.connection().adus.iter().all(|adu| adu.think_time == 0));
    assert!(found.epochs().iter().all(|(_, took)| *took < 500));
}
