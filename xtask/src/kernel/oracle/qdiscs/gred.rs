//! `gred`: virtual queues with their own thresholds, alone (the first two mixes; in the second one a limit is
//! reached, and some packets belong to the default queue), with equal priorities, and with different ones.

use crate::kernel::oracle::watched::{Watched, case};

pub const GRED: Watched = Watched {
    kind: "gred",
    lane: "lane1",
    enqueue: "gred_enqueue",
    dequeue: "gred_dequeue",
    state: "WATCH_GRED",
    cases: &[
        case(
            3,
            "equal",
            "20mbit",
            "setup vqs 3 default 0 limit 10000000\
             /vq 0 limit 300000 min 20000 max 60000 avpkt 1000 burst 40 probability 0.02 bandwidth 20mbit\
             /vq 1 limit 300000 min 15000 max 45000 avpkt 1000 burst 30 probability 0.05 bandwidth 20mbit\
             /vq 2 limit 300000 min 10000 max 30000 avpkt 1000 burst 20 probability 0.1 bandwidth 20mbit",
            "gred key class limit 10000000 vqs [(red limit 300000b min 20000b max 60000b avpkt 1000b burst 40p probability 0.02 bandwidth 20mbit) \
             (red limit 300000b min 15000b max 45000b avpkt 1000b burst 30p probability 0.05 bandwidth 20mbit) \
             (red limit 300000b min 10000b max 30000b avpkt 1000b burst 20p probability 0.1 bandwidth 20mbit)]",
        ),
        case(
            6,
            "mixed",
            "20mbit",
            "setup vqs 3 default 1 limit 10000000\
             /vq 0 limit 40000 min 15000 max 40000 avpkt 1000 burst 200 probability 0.1 bandwidth 20mbit\
             /vq 1 limit 30000 min 10000 max 30000 avpkt 1000 burst 20 probability 0.05 bandwidth 20mbit\
             /vq 2 limit 25000 min 8000 max 24000 avpkt 1000 burst 100 probability 0.2 bandwidth 20mbit",
            "gred key class limit 10000000 default 1 vqs [(red limit 40000b min 15000b max 40000b avpkt 1000b burst 200p probability 0.1 bandwidth 20mbit) \
             (red limit 30000b min 10000b max 30000b avpkt 1000b burst 20p probability 0.05 bandwidth 20mbit) \
             (red limit 25000b min 8000b max 24000b avpkt 1000b burst 100p probability 0.2 bandwidth 20mbit)]",
        ),
        case(
            3,
            "mixed",
            "20mbit",
            "setup vqs 3 default 0 grio limit 10000000\
             /vq 0 prio 4 limit 60000 min 20000 max 60000 avpkt 1000 burst 40 probability 0.02 bandwidth 20mbit\
             /vq 1 prio 4 limit 50000 min 10000 max 45000 avpkt 1000 burst 40 probability 0.05 bandwidth 20mbit\
             /vq 2 prio 4 limit 40000 min 7500 max 30000 avpkt 1000 burst 40 probability 0.1 bandwidth 20mbit",
            "gred key class grio limit 10000000 prios [4 4 4] vqs [(red limit 60000b min 20000b max 60000b avpkt 1000b burst 40p probability 0.02 bandwidth 20mbit) \
             (red limit 50000b min 10000b max 45000b avpkt 1000b burst 40p probability 0.05 bandwidth 20mbit) \
             (red limit 40000b min 7500b max 30000b avpkt 1000b burst 40p probability 0.1 bandwidth 20mbit)]",
        ),
        case(
            3,
            "mixed",
            "20mbit",
            "setup vqs 3 default 0 grio limit 10000000\
             /vq 0 prio 1 limit 400000 min 20000 max 60000 avpkt 1000 burst 40 probability 0.02 bandwidth 20mbit\
             /vq 1 prio 2 limit 400000 min 15000 max 45000 avpkt 1000 burst 40 probability 0.05 bandwidth 20mbit\
             /vq 2 prio 3 limit 400000 min 10000 max 30000 avpkt 1000 burst 40 probability 0.1 bandwidth 20mbit",
            "gred key class grio limit 10000000 prios [1 2 3] vqs [(red limit 400000b min 20000b max 60000b avpkt 1000b burst 40p probability 0.02 bandwidth 20mbit) \
             (red limit 400000b min 15000b max 45000b avpkt 1000b burst 40p probability 0.05 bandwidth 20mbit) \
             (red limit 400000b min 10000b max 30000b avpkt 1000b burst 40p probability 0.1 bandwidth 20mbit)]",
        ),
        case(
            3,
            "mixed",
            "20mbit",
            "setup vqs 3 default 0 grio limit 60000\
             /vq 0 prio 1 limit 400000 min 20000 max 60000 avpkt 1000 burst 40 probability 0.02 bandwidth 20mbit\
             /vq 1 prio 2 limit 400000 min 15000 max 45000 avpkt 1000 burst 40 probability 0.05 bandwidth 20mbit\
             /vq 2 prio 2 limit 400000 min 10000 max 30000 avpkt 1000 burst 40 probability 0.1 bandwidth 20mbit",
            "gred key class grio limit 60000 prios [1 2 2] vqs [(red limit 400000b min 20000b max 60000b avpkt 1000b burst 40p probability 0.02 bandwidth 20mbit) \
             (red limit 400000b min 15000b max 45000b avpkt 1000b burst 40p probability 0.05 bandwidth 20mbit) \
             (red limit 400000b min 10000b max 30000b avpkt 1000b burst 40p probability 0.1 bandwidth 20mbit)]",
        ),
    ],
};
