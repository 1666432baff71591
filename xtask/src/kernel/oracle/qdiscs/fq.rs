//! `fq`: flows in turns, alone and with hashes that collide; then flows with priorities, rates and departure
//! times, beyond the horizon, at the root, and with `maxrate`, too. The hash of so many bits as in the first
//! mix never selects one queue for two flows.

use crate::kernel::oracle::watched::{Case, Headers, Watched};

pub const FQ: Watched = Watched {
    kind: "fq",
    lane: "lane1",
    enqueue: "fq_enqueue",
    dequeue: "fq_dequeue",
    state: "WATCH_FQ",
    cases: &[
        case(
            2,
            "equal",
            "100mbit",
            Headers::Hosts,
            "limit 10000 flow_limit 10000 quantum 3028 initial_quantum 15140 orphan_mask 4294967295",
            "fq limit 10000p flow_limit 10000p quantum 3028 initial_quantum 15140 orphan_mask 4294967295",
        ),
        case(
            50,
            "mixed",
            "50mbit",
            Headers::Hosts,
            "limit 300 flow_limit 20 quantum 500 initial_quantum 1000 orphan_mask 4294967295 ce_threshold 5ms",
            "fq limit 300p flow_limit 20p quantum 500 initial_quantum 1000 orphan_mask 4294967295 ce_threshold 5ms",
        ),
        case(
            500,
            "mixed",
            "50mbit",
            Headers::Hosts,
            "limit 10000 flow_limit 100 quantum 1514 initial_quantum 1514 orphan_mask 63",
            "fq limit 10000p flow_limit 100p quantum 1514 initial_quantum 1514 orphan_mask 63",
        ),
        case(
            20,
            "mixed",
            "50mbit",
            Headers::Hosts,
            "limit 10000 flow_limit 100 quantum 1514 initial_quantum 3028 orphan_mask 4294967295 maxrate 4mbit refill_delay 8ms",
            "fq limit 10000p flow_limit 100p quantum 1514 initial_quantum 3028 orphan_mask 4294967295 maxrate 4mbit refill_delay 8ms",
        ),
        case(
            24,
            "mixed",
            "50mbit",
            Headers::Paced,
            "limit 10000 flow_limit 60 quantum 1514 initial_quantum 3028 orphan_mask 4294967295 horizon 50ms ce_threshold 2ms",
            "fq limit 10000p flow_limit 60p quantum 1514 initial_quantum 3028 orphan_mask 4294967295 horizon 50ms ce_threshold 2ms",
        ),
        case(
            24,
            "mixed",
            "root",
            Headers::Paced,
            "limit 10000 flow_limit 100 quantum 3028 initial_quantum 3028 orphan_mask 4294967295 horizon 20ms horizon_cap",
            "fq limit 10000p flow_limit 100p quantum 3028 initial_quantum 3028 orphan_mask 4294967295 horizon 20ms horizon_cap",
        ),
        case(
            24,
            "mixed",
            "50mbit",
            Headers::Paced,
            "limit 10000 flow_limit 60 quantum 1514 initial_quantum 3028 orphan_mask 4294967295 maxrate 4mbit horizon 50ms",
            "fq limit 10000p flow_limit 60p quantum 1514 initial_quantum 3028 orphan_mask 4294967295 maxrate 4mbit horizon 50ms",
        ),
    ],
};

const fn case(
    flows: u32,
    sizes: &'static str,
    link: &'static str,
    headers: Headers,
    parameters: &'static str,
    discipline: &'static str,
) -> Case {
    Case { flows, sizes, headers, link, parameters, discipline, gaps: false }
}
