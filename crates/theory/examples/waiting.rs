//! Prints the mean waiting time of packets at a link, in transmission times, for random arrivals.

use giveway_theory::queues::md1_waiting;

fn main() {
    for load in [0.5, 0.8, 0.9, 0.95, 1.0] {
        match md1_waiting(load, 1.0) {
            Some(waiting) => println!("load {load:.2}: {waiting:.2}"),
            None => println!("load {load:.2}: the queue grows without end"),
        }
    }
}
