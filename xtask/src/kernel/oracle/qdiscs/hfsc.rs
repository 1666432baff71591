//! `hfsc`, at the root: trees of classes with real-time curves, link-share curves and upper limits.

use crate::kernel::oracle::watched::{Watched, case};

pub const HFSC: Watched = Watched {
    kind: "hfsc",
    lane: "lane0",
    enqueue: "hfsc_enqueue",
    dequeue: "hfsc_dequeue",
    state: "WATCH_CLOCK",
    cases: &[
        case(
            4,
            "equal",
            "root",
            "default 1\
             /0 100 ls rate 80mbit ul rate 80mbit\
             /100 1 rt m1 40mbit d 5ms m2 10mbit ls rate 20mbit\
             /100 2 ls rate 40mbit\
             /100 3 ls rate 10mbit ul rate 20mbit\
             /100 4 sc rate 10mbit",
            "hfsc classes [(name all ls (rate 80mbit) ul (rate 80mbit) classes [(name a rt (m1 40mbit d 5ms m2 \
             10mbit) ls (rate 20mbit) match [(class 0)] leaf (fifo limit 100000p)) (name b ls (rate 40mbit) match \
             [(class 1)] leaf (fifo limit 100000p)) (name c ls (rate 10mbit) ul (rate 20mbit) match [(class 2)] \
             leaf (fifo limit 100000p)) (name d sc (rate 10mbit) match [(class 3)] leaf (fifo limit 100000p))])]",
        ),
        case(
            5,
            "mixed",
            "root",
            "default 1\
             /0 100 ls rate 50mbit ul rate 50mbit\
             /100 1 sc m1 30mbit d 2ms m2 2mbit\
             /100 101 ls rate 30mbit\
             /100 102 ls rate 20mbit ul rate 30mbit\
             /101 2 rt m1 0kbit d 10ms m2 5mbit ls rate 20mbit\
             /101 3 ls m1 20mbit d 10ms m2 10mbit\
             /102 4 sc umax 1500b dmax 5ms rate 1mbit\
             /102 5 ls rate 19mbit",
            "hfsc classes [(name all ls (rate 50mbit) ul (rate 50mbit) classes [(name a sc (m1 30mbit d 2ms m2 \
             2mbit) match [(class 0)] leaf (fifo limit 100000p)) (name x ls (rate 30mbit) classes [(name b rt (m1 \
             0kbit d 10ms m2 5mbit) ls (rate 20mbit) match [(class 1)] leaf (fifo limit 100000p)) (name c ls (m1 \
             20mbit d 10ms m2 10mbit) match [(class 2)] leaf (fifo limit 100000p))]) (name y ls (rate 20mbit) ul \
             (rate 30mbit) classes [(name d sc (umax 1500b dmax 5ms rate 1mbit) match [(class 3)] leaf (fifo \
             limit 100000p)) (name e ls (rate 19mbit) match [(class 4)] leaf (fifo limit 100000p))])])]",
        ),
    ],
};
