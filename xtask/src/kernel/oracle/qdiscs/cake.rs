//! `cake`: below an HTB class without its own shaper, and at the root with one.
//!
//! Not compared yet: the choice among tins below a shaper, and the victims of a full memory.
//!
//! The Rust discipline gets the lengths of the kernel, which have 14 bytes of the link header. With a word
//! about overhead Linux takes the IP length, so the Rust discipline has 14 bytes less of overhead there.

use crate::kernel::oracle::watched::{Case, Headers, Watched};

pub const CAKE: Watched = Watched {
    kind: "cake",
    lane: "lane0",
    enqueue: "cake_enqueue",
    dequeue: "cake_dequeue",
    state: "WATCH_CAKE",
    cases: &[
        case(2, "equal", "100mbit", "unlimited besteffort flowblind", "cake besteffort flowblind"),
        case(50, "mixed", "50mbit", "unlimited besteffort flows", "cake besteffort flows"),
        case(50, "mixed", "50mbit", "unlimited besteffort triple-isolate", "cake besteffort triple-isolate"),
        case(50, "mixed", "50mbit", "unlimited diffserv4 dual-srchost", "cake diffserv4 dual-srchost"),
        case(
            50,
            "mixed",
            "root",
            "bandwidth 50mbit besteffort flows",
            "cake bandwidth 50mbit besteffort flows",
        ),
        case(
            500,
            "mixed",
            "root",
            "bandwidth 100mbit besteffort triple-isolate overhead 44 atm memlimit 15000000",
            "cake bandwidth 100mbit besteffort triple-isolate overhead 30 atm memlimit 15000000b",
        ),
        case(
            50,
            "mixed",
            "root",
            "bandwidth 50mbit diffserv4 dual-dsthost overhead 30 ptm mpu 64 ingress rtt 20ms memlimit 15000000",
            "cake bandwidth 50mbit diffserv4 dual-dsthost overhead 16 ptm mpu 64 ingress rtt 20ms memlimit 15000000b",
        ),
        case(2, "equal", "3mbit", "unlimited besteffort flowblind", "cake besteffort flowblind").with_gaps(),
        case(4, "equal", "3mbit", "unlimited besteffort flows rtt 20ms", "cake besteffort flows rtt 20ms")
            .with_gaps(),
    ],
};

const fn case(
    flows: u32,
    sizes: &'static str,
    link: &'static str,
    parameters: &'static str,
    discipline: &'static str,
) -> Case {
    Case { flows, sizes, headers: Headers::Hosts, link, parameters, discipline, gaps: false }
}
