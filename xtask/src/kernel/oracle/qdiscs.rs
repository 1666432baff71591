//! The qdiscs of Linux that are compared, each with its mixes of traffic. A further qdisc is a constant here,
//! or a file below this one, and a line in [`WATCHED`].

mod cake;
mod fq;
mod gred;
mod hfsc;
mod htb;

use super::watched::{Watched, case};

/// The compared qdiscs.
pub const WATCHED: [Watched; 13] =
    [DRR, ETS, SFQ, FQ_CODEL, CODEL, RED, gred::GRED, PIE, FQ_PIE, cake::CAKE, htb::HTB, hfsc::HFSC, fq::FQ];

/// `drr`. The parameters for tc are the quantum of each class and the limit of its queue.
const DRR: Watched = Watched {
    kind: "drr",
    lane: "lane0",
    enqueue: "drr_enqueue",
    dequeue: "drr_dequeue",
    state: "WATCH_NONE",
    cases: &[
        case(2, "equal", "100mbit", "1514 60", "drr limit 100000p quantum 1514b"),
        case(50, "mixed", "50mbit", "500 40", "drr limit 100000p quantum 500b"),
        case(500, "mixed", "50mbit", "1514 20", "drr limit 100000p quantum 1514b"),
    ],
};

/// `ets`. The parameters for tc are the limit of each band's queue, and the words of tc. Each mark is a band.
/// Linux raises a quantum below 256 bytes to 256.
const ETS: Watched = Watched {
    kind: "ets",
    lane: "lane0",
    enqueue: "ets_qdisc_enqueue",
    dequeue: "ets_qdisc_dequeue",
    state: "WATCH_NONE",
    cases: &[
        case(
            4,
            "equal",
            "100mbit",
            "60 bands 4 strict 1 quanta 4542 3028 1514",
            "ets strict 1 quanta [4542b 3028b 1514b] children [(fifo limit 100000p) (fifo limit 100000p) (fifo limit \
             100000p) (fifo limit 100000p)]",
        ),
        case(
            5,
            "mixed",
            "50mbit",
            "40 bands 5 quanta 500 1000 1514 3000 256",
            "ets quanta [500b 1000b 1514b 3000b 256b] children [(fifo limit 100000p) (fifo limit 100000p) (fifo limit \
             100000p) (fifo limit 100000p) (fifo limit 100000p)]",
        ),
    ],
};

/// `sfq`.
const SFQ: Watched = Watched {
    kind: "sfq",
    lane: "lane1",
    enqueue: "sfq_enqueue",
    dequeue: "sfq_dequeue",
    state: "WATCH_NONE",
    cases: &[
        case(
            2,
            "equal",
            "100mbit",
            "limit 127 depth 127 flows 127 divisor 1024 quantum 1514",
            "sfq limit 127 depth 127 flows 127 divisor 1024 quantum 1514",
        ),
        case(
            50,
            "mixed",
            "50mbit",
            "limit 300 depth 20 flows 30 divisor 256 quantum 500 headdrop",
            "sfq limit 300 depth 20 flows 30 divisor 256 quantum 500 headdrop",
        ),
        case(
            500,
            "mixed",
            "50mbit",
            "limit 250 depth 127 flows 500 divisor 1024 quantum 1514",
            "sfq limit 250 depth 127 flows 500 divisor 1024 quantum 1514",
        ),
    ],
};

/// `fq_codel`. Linux rounds the times of CoDel down to multiples of 1,024 ns: 5 ms are 4,999,168 ns.
const FQ_CODEL: Watched = Watched {
    kind: "fq_codel",
    lane: "lane1",
    enqueue: "fq_codel_enqueue",
    dequeue: "fq_codel_dequeue",
    state: "WATCH_FQ_CODEL",
    cases: &[
        case(
            2,
            "equal",
            "100mbit",
            "limit 10240 flows 1024 quantum 1514 target 5ms interval 100ms noecn memory_limit 512mb",
            "fq_codel limit 10240p flows 1024 quantum 1514 target 4999168ns interval 99999744ns noecn memory_limit 512mb",
        ),
        case(
            50,
            "mixed",
            "50mbit",
            "limit 10240 flows 64 quantum 300 target 1ms interval 10ms noecn memory_limit 512mb",
            "fq_codel limit 10240p flows 64 quantum 300 target 999424ns interval 9999360ns noecn memory_limit 512mb",
        ),
        case(
            500,
            "mixed",
            "50mbit",
            "limit 100 flows 512 quantum 300 target 1ms interval 10ms noecn memory_limit 512mb",
            "fq_codel limit 100p flows 512 quantum 300 target 999424ns interval 9999360ns noecn memory_limit 512mb",
        ),
        case(
            4,
            "equal",
            "2mbit",
            "limit 2000 flows 1024 quantum 1514 target 5ms interval 20ms noecn memory_limit 512mb",
            "fq_codel limit 2000p flows 1024 quantum 1514 target 4999168ns interval 19999744ns noecn memory_limit 512mb",
        )
        .with_gaps(),
    ],
};

/// `codel`. Linux rounds the times of CoDel down to multiples of 1,024 ns: 5 ms are 4,999,168 ns.
const CODEL: Watched = Watched {
    kind: "codel",
    lane: "lane0",
    enqueue: "codel_qdisc_enqueue",
    dequeue: "codel_qdisc_dequeue",
    state: "WATCH_CODEL",
    cases: &[
        case(
            2,
            "equal",
            "100mbit",
            "limit 1000 target 5ms interval 100ms noecn",
            "codel limit 1000p target 4999168ns interval 99999744ns noecn",
        ),
        case(
            50,
            "mixed",
            "50mbit",
            "limit 300 target 1ms interval 10ms noecn",
            "codel limit 300p target 999424ns interval 9999360ns noecn",
        ),
        case(
            500,
            "mixed",
            "50mbit",
            "limit 10000 target 5ms interval 100ms noecn",
            "codel limit 10000p target 4999168ns interval 99999744ns noecn",
        ),
        case(
            4,
            "equal",
            "3mbit",
            "limit 2000 target 5ms interval 100ms noecn",
            "codel limit 2000p target 4999168ns interval 99999744ns noecn",
        )
        .with_gaps(),
        case(
            4,
            "equal",
            "3mbit",
            "limit 2000 target 5ms interval 20ms noecn",
            "codel limit 2000p target 4999168ns interval 19999744ns noecn",
        )
        .with_gaps(),
    ],
};

/// `red`.
const RED: Watched = Watched {
    kind: "red",
    lane: "lane1",
    enqueue: "red_enqueue",
    dequeue: "red_dequeue",
    state: "WATCH_RED",
    cases: &[
        case(
            50,
            "equal",
            "100mbit",
            "limit 600000 min 50000 max 150000 avpkt 1000 burst 85 probability 0.02",
            "red limit 600000b min 50000b max 150000b avpkt 1000b burst 85p probability 0.02",
        ),
        case(
            500,
            "mixed",
            "50mbit",
            "limit 300000 min 25000 max 75000 avpkt 1000 burst 42 probability 0.1",
            "red limit 300000b min 25000b max 75000b avpkt 1000b burst 42p probability 0.1",
        ),
    ],
};

/// `pie`.
const PIE: Watched = Watched {
    kind: "pie",
    lane: "lane0",
    enqueue: "pie_qdisc_enqueue",
    dequeue: "pie_qdisc_dequeue",
    state: "WATCH_PIE",
    cases: &[
        case(
            50,
            "equal",
            "100mbit",
            "limit 1000 target 15ms tupdate 16ms alpha 2 beta 20 noecn",
            "pie limit 1000p target 15ms tupdate 16ms alpha 2 beta 20 noecn",
        ),
        case(
            500,
            "mixed",
            "50mbit",
            "limit 10000 target 5ms tupdate 16ms alpha 2 beta 20 noecn",
            "pie limit 10000p target 5ms tupdate 16ms alpha 2 beta 20 noecn",
        ),
    ],
};

/// `fq_pie`.
const FQ_PIE: Watched = Watched {
    kind: "fq_pie",
    lane: "lane0",
    enqueue: "fq_pie_qdisc_enqueue",
    dequeue: "fq_pie_qdisc_dequeue",
    state: "WATCH_FQ_PIE",
    cases: &[
        case(
            3,
            "equal",
            "20mbit",
            "limit 10000 flows 64 target 15ms tupdate 16ms alpha 2 beta 20 quantum 1514 memory_limit 512mb",
            "fq_pie limit 10000p flows 64 target 15ms tupdate 16ms alpha 2 beta 20 quantum 1514 memory_limit 512mb",
        ),
        case(
            20,
            "mixed",
            "20mbit",
            "limit 10000 flows 64 target 5ms tupdate 16ms alpha 2 beta 20 quantum 300 memory_limit 512mb",
            "fq_pie limit 10000p flows 64 target 5ms tupdate 16ms alpha 2 beta 20 quantum 300 memory_limit 512mb",
        ),
        case(
            20,
            "mixed",
            "20mbit",
            "limit 40 flows 64 target 15ms tupdate 16ms alpha 2 beta 20 quantum 1514 memory_limit 512mb",
            "fq_pie limit 40p flows 64 target 15ms tupdate 16ms alpha 2 beta 20 quantum 1514 memory_limit 512mb",
        ),
    ],
};
