//! `htb`, at the root: trees of classes with rates, ceils, priorities, quanta and borrowing.
//!
//! All bytes take whole nanoseconds at these rates, and all bursts whole ticks of tc's clock (64 ns), so that
//! no side rounds. Classes have numbers in the order of the Rust discipline: those nearer to the link first.

use crate::kernel::oracle::watched::{Watched, case};

pub const HTB: Watched = Watched {
    kind: "htb",
    lane: "lane1",
    enqueue: "htb_enqueue",
    dequeue: "htb_dequeue",
    state: "WATCH_HTB",
    cases: &[
        case(
            4,
            "equal",
            "root",
            "default 1/0 100 rate 80mbit ceil 80mbit burst 4000b cburst 4000b\
             /100 1 rate 40mbit ceil 80mbit burst 4000b cburst 4000b prio 0 quantum 1514\
             /100 2 rate 20mbit ceil 80mbit burst 4000b cburst 4000b prio 0 quantum 3028\
             /100 3 rate 10mbit ceil 20mbit burst 4000b cburst 4000b prio 1 quantum 1514\
             /100 4 rate 10mbit ceil 80mbit burst 4000b cburst 4000b prio 1 quantum 1514",
            "htb classes [(name all rate 80mbit burst 4000b cburst 4000b classes [\
             (name a rate 40mbit ceil 80mbit burst 4000b cburst 4000b prio 0 quantum 1514b match [(class 0)] leaf (fifo limit 100000p)) \
             (name b rate 20mbit ceil 80mbit burst 4000b cburst 4000b prio 0 quantum 3028b match [(class 1)] leaf (fifo limit 100000p)) \
             (name c rate 10mbit ceil 20mbit burst 4000b cburst 4000b prio 1 quantum 1514b match [(class 2)] leaf (fifo limit 100000p)) \
             (name d rate 10mbit ceil 80mbit burst 4000b cburst 4000b prio 1 quantum 1514b match [(class 3)] leaf (fifo limit 100000p))])]",
        ),
        case(
            7,
            "mixed",
            "root",
            "default 1/0 100 rate 50mbit ceil 50mbit burst 4000b cburst 4000b\
             /100 1 rate 2mbit ceil 2mbit burst 4000b cburst 4000b prio 0 quantum 1514\
             /100 101 rate 32mbit ceil 50mbit burst 4000b cburst 4000b\
             /100 102 rate 16mbit ceil 40mbit burst 4000b cburst 4000b\
             /101 2 rate 16mbit ceil 50mbit burst 4000b cburst 4000b prio 1 quantum 1514\
             /101 3 rate 8mbit ceil 50mbit burst 4000b cburst 4000b prio 1 quantum 3000\
             /101 4 rate 8mbit ceil 8mbit burst 4000b cburst 4000b prio 2 quantum 1514\
             /102 5 rate 8mbit ceil 40mbit burst 4000b cburst 4000b prio 1 quantum 500\
             /102 6 rate 4mbit ceil 16mbit burst 4000b cburst 4000b prio 2 quantum 1514\
             /102 7 rate 4mbit ceil 40mbit burst 4000b cburst 4000b prio 2 quantum 1514",
            "htb classes [(name all rate 50mbit burst 4000b cburst 4000b classes [\
             (name a rate 2mbit burst 4000b cburst 4000b quantum 1514b match [(class 0)] leaf (fifo limit 100000p)) \
             (name x rate 32mbit ceil 50mbit burst 4000b cburst 4000b classes [\
             (name b rate 16mbit ceil 50mbit burst 4000b cburst 4000b prio 1 quantum 1514b match [(class 1)] leaf (fifo limit 100000p)) \
             (name c rate 8mbit ceil 50mbit burst 4000b cburst 4000b prio 1 quantum 3000b match [(class 2)] leaf (fifo limit 100000p)) \
             (name d rate 8mbit burst 4000b cburst 4000b prio 2 quantum 1514b match [(class 3)] leaf (fifo limit 100000p))]) \
             (name y rate 16mbit ceil 40mbit burst 4000b cburst 4000b classes [\
             (name e rate 8mbit ceil 40mbit burst 4000b cburst 4000b prio 1 quantum 500b match [(class 4)] leaf (fifo limit 100000p)) \
             (name f rate 4mbit ceil 16mbit burst 4000b cburst 4000b prio 2 quantum 1514b match [(class 5)] leaf (fifo limit 100000p)) \
             (name g rate 4mbit ceil 40mbit burst 4000b cburst 4000b prio 2 quantum 1514b match [(class 6)] leaf (fifo limit 100000p))])])]",
        ),
        case(
            5,
            "mixed",
            "root",
            "default 1\
             /0 100 rate 40mbit ceil 40mbit burst 4000b cburst 4000b\
             /100 101 rate 16mbit ceil 40mbit burst 4000b cburst 4000b\
             /100 102 rate 20mbit ceil 40mbit burst 4000b cburst 4000b\
             /100 1 rate 4mbit ceil 40mbit burst 4000b cburst 4000b prio 3 quantum 1514\
             /102 103 rate 16mbit ceil 32mbit burst 4000b cburst 4000b\
             /101 2 rate 8mbit ceil 40mbit burst 4000b cburst 4000b prio 1 quantum 1514\
             /101 3 rate 8mbit ceil 20mbit burst 4000b cburst 4000b prio 1 quantum 1514\
             /103 4 rate 8mbit ceil 32mbit burst 4000b cburst 4000b prio 1 quantum 1514\
             /103 5 rate 8mbit ceil 32mbit burst 4000b cburst 4000b prio 1 quantum 2000",
            "htb classes [(name all rate 40mbit burst 4000b cburst 4000b classes [(name a rate 4mbit ceil 40mbit \
             burst 4000b cburst 4000b prio 3 quantum 1514b match [(class 0)] leaf (fifo limit 100000p)) (name x \
             rate 16mbit ceil 40mbit burst 4000b cburst 4000b classes [(name b rate 8mbit ceil 40mbit burst 4000b \
             cburst 4000b prio 1 quantum 1514b match [(class 1)] leaf (fifo limit 100000p)) (name c rate 8mbit \
             ceil 20mbit burst 4000b cburst 4000b prio 1 quantum 1514b match [(class 2)] leaf (fifo limit \
             100000p))]) (name y rate 20mbit ceil 40mbit burst 4000b cburst 4000b classes [(name z rate 16mbit \
             ceil 32mbit burst 4000b cburst 4000b classes [(name d rate 8mbit ceil 32mbit burst 4000b cburst \
             4000b prio 1 quantum 1514b match [(class 3)] leaf (fifo limit 100000p)) (name e rate 8mbit ceil \
             32mbit burst 4000b cburst 4000b prio 1 quantum 2000b match [(class 4)] leaf (fifo limit \
             100000p))])])])]",
        ),
    ],
};
