//! Measures the TCP senders of Linux in the virtual machine, and writes `docs/senders-linux.csv` and the
//! packet traces in `crates/sim/tests/data/linux`.
//!
//! The measurements are in `kernel/test/senders.txt`. The program of the machine is the crate `senders`; the
//! header of its library has what is fixed and what is open. The clock of the machine counts instructions,
//! so the load of this computer changes no result. Two runs are nearly equal, but not quite: qemu delivers
//! the serial line and the disk by the time of this computer.
//!
//! # The columns of the cells
//! - `cell`, `controls`, `rate_mbit_s`, `rtt_ms`, `queue`, `queue_packets`, `threshold_us`, `seconds`,
//!   `warmup_s`, `ecn`, `bundle_segments`: the measurement. `rtt_ms` has no queueing and no transmission;
//!   `bundle_segments` is 0 for the default of Linux.
//! - `flow`, `control`: the connection. A connection starts 0.1 s after the one before it.
//! - `goodput_mbit_s`, `data_packets`, `retransmitted_packets`, `dropped_packets`, `marked_packets`: after
//!   the warm-up, at the router. The largest goodput is 0.9564 of the rate: 1448 of 1514 bytes.
//! - `queueing_mean_ms`, `queueing_p95_ms`: from the arrival at the router until the packet leaves its queue,
//!   of the packets that were not dropped.
//! - `info_...`: TCP_INFO at the end of the run, tcp(7). The retransmissions cover the whole run.
//!
//! # The columns of the traces
//! - `time_us` and `server_us`: the times at the interfaces of the client and of the server, from the first
//!   packet on. A packet that is lost has no time at the server.
//! - `direction`: `data` from the client, `ack` from the server. `seq`, `ack` and `sack` are relative to the
//!   initial sequence numbers: the first byte of data has the number 1. `flags` contains a letter for each
//!   flag: SYN, FIN, RST, PSH, ACK, URG, ECE and CWR (W).

mod image;
mod plan;

use std::fs;
use std::path::Path;
use std::time::Instant;

use super::fetch::Kernel;
use super::machine::{COUNTED, boot_for};
use crate::repository::{Done, Repository};
use plan::{Batch, Line, batches};

/// The table of cells.
const TABLE: &str = "docs/senders-linux.csv";
/// The folder of packet traces.
const TRACES: &str = "crates/sim/tests/data/linux";
/// Time limit of a machine, in seconds.
const SECONDS: &str = "5400";
/// Options of qemu in addition to the counted clock: the same random numbers and the same date each time.
const REPEATABLE: [&str; 4] = ["-seed", "1", "-rtc", "base=2026-01-01,clock=vm"];
/// Names of the columns of the table.
const HEADER: &str = "cell,controls,rate_mbit_s,rtt_ms,queue,queue_packets,threshold_us,seconds,warmup_s,ecn,\
                      bundle_segments,flow,control,goodput_mbit_s,data_packets,retransmitted_packets,\
                      dropped_packets,marked_packets,queueing_mean_ms,queueing_p95_ms,\
                      info_retransmitted_segments,info_srtt_ms,info_min_rtt_ms,info_cwnd_segments,\
                      info_ssthresh_segments,info_delivery_rate_mbit_s";
/// Names of the columns of a packet trace.
const TRACE_HEADER: &str = "time_us,server_us,direction,seq,len,ack,sack,flags";

/// Runs all measurements and writes the files. `flags` may have `--quick`, which measures five short cells
/// and does not write, or `--traces`, which records the packet traces only.
pub fn record(repository: &Repository, folder: &Path, kernel: &Kernel, flags: &[&str]) -> Done {
    let chosen = |batch: &&Batch| match flags {
        ["--quick"] => batch.name == "quick",
        ["--traces"] => batch.name == "packet traces",
        _ => batch.name != "quick",
    };
    // The whole workspace, so that libraries have the features with which the tests have built them.
    repository.cargo(&["build", "--quiet", "--locked", "--workspace", "--bin", "senders"])?;
    let folder = folder.join("senders");
    fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let all = batches(include_str!("../../../kernel/test/senders.txt"))?;
    let mut table = format!("# Linux {}, in qemu, with a counted clock\n{HEADER}\n", kernel.version());
    for batch in all.iter().filter(chosen) {
        let begun = Instant::now();
        image::write(repository, &folder, kernel, &batch.lines)?;
        let output = boot_for(&folder, kernel, 0, &[&COUNTED[..], &REPEATABLE].concat(), SECONDS)?;
        println!("{}: {:.0} s", batch.name, begun.elapsed().as_secs_f64());
        for line in &batch.lines {
            match line {
                Line::Cell(cell) => {
                    let rows = cell.rows(&output)?;
                    print!("{rows}");
                    table.push_str(&rows);
                }
                Line::Trace(trace) => {
                    let rows = trace.rows(&output)?;
                    write(repository, &trace.file(TRACES), &format!("{TRACE_HEADER}\n{rows}"))?;
                }
            }
        }
    }
    if flags.is_empty() { write(repository, TABLE, &table) } else { Ok(()) }
}

fn write(repository: &Repository, file: &str, text: &str) -> Done {
    let path = repository.root.join(file);
    let folder = path.parent().expect("it is a file");
    fs::create_dir_all(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    fs::write(path, text).map_err(|error| format!("{file}: {error}"))?;
    println!("wrote {file}");
    Ok(())
}
