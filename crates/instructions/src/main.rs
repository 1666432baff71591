//! Runs a fixed set of workloads, whose processor instructions `cargo xtask instructions` counts with
//! callgrind.
//!
//! Each workload is prepared first, and then one call of [`measured`] runs it. Callgrind writes a count
//! after each of these calls, and this program prints a line for each: name and number of packets. So the
//! n-th count belongs to the n-th line.

mod discipline;
mod scenario;
mod switch;
mod trees;
mod workload;

use workload::Workload;

fn main() {
    let all = scenario::workloads().chain(switch::workloads()).chain(discipline::workloads());
    let all = all.chain(trees::workloads());
    for Workload { name, mut run } in all {
        let mut packets = 0;
        measured(&mut || packets = run());
        println!("{name} {packets}");
    }
}

/// The function whose calls callgrind counts. It must be a function of the program, under this name.
#[inline(never)]
fn measured(work: &mut dyn FnMut()) {
    work();
}
