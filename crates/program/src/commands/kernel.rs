//! The flags of `giveway kernel`.

use std::path::PathBuf;

use clap::Subcommand;
use giveway_kernel::object;
use giveway_kernel_plan::route::{Route, RouteError};
use giveway_qdisc::{Limit, Rate};

use crate::headings::HARNESS;

/// Runs disciplines in the kernel, as BPF qdiscs.
///
/// A loaded discipline needs no process. It makes the same decisions, packet by packet, as the discipline of
/// the same name in simulations. Packet lengths include the link header, as in every qdisc of the kernel.
/// Needs root, Linux 6.16 or later with CONFIG_NET_SCH_BPF, tc and bpftool; clang and libbpf's headers to
/// compile.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// The subcommand
    #[command(subcommand)]
    pub command: Command,
}

const EXAMPLES: &str = "\
Examples:
  giveway kernel load efd --dev eth0 --rate 20mbit
  giveway kernel load \"drr limit 500p\" --dev eth0
  giveway kernel load trr --dev eth0 --rate 10mbit --reserve 1=2mbit    # each flow with mark 1 has 2 Mbit/s
  giveway kernel load bsq --dev eth0 --rate 10mbit --hops 1=4 --hops 2=5  # next hop 4 for mark 1, 5 for mark 2
  giveway kernel show --dev eth0
  giveway kernel unload --dev eth0

Exit codes: 0 success, 1 failure, 2 wrong usage or a missing prerequisite.";

/// A subcommand of `giveway kernel`.
#[derive(Subcommand)]
pub enum Command {
    /// Attach a discipline to an interface; unload restores the earlier qdisc
    Load(Load),
    /// Detach a discipline, and restore the earlier qdisc
    Unload {
        /// Interface, as in `ip link`
        #[arg(long, value_name = "IF", required_unless_present = "gone")]
        dev: Option<String>,
        /// Instead, clean up after interfaces and network namespaces that were removed
        #[arg(long, conflicts_with = "dev")]
        gone: bool,
    },
    /// Show counters of the loaded disciplines: packets, drops by reason, flows
    Show {
        /// Only this interface [default: all]
        #[arg(long, value_name = "IF")]
        dev: Option<String>,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// List the disciplines for the kernel, and those that are loaded
    List {
        /// Print one JSON object instead of text
        #[arg(long)]
        json: bool,
    },
    /// Compile a discipline without loading it, for a machine without a compiler, or for another kernel
    Build(Build),
}

/// The flags of `giveway kernel load`.
#[derive(clap::Args)]
pub struct Load {
    /// Discipline (fifo, drr, efd, trr or bsq); with parameters in quotes, as in "efd limit 300p"
    pub discipline: String,
    /// Interface, as in `ip link`
    #[arg(long, value_name = "IF")]
    pub dev: String,
    /// Rate of the shaper, as in 20mbit [default: the rate of the interface]
    #[arg(long, value_name = "RATE")]
    pub rate: Option<Rate>,
    /// Largest backlog, in packets (300p) or bytes (500kb); short for the parameter limit
    #[arg(long, value_name = "LIMIT")]
    pub limit: Option<Limit>,
    /// trr: reserved rate of each flow whose packets carry this mark, as in 1=2mbit; may be repeated
    #[arg(long, value_name = "MARK=RATE", value_parser = reservation)]
    pub reserve: Vec<(u32, u64)>,
    /// bsq: next hops of packets with this mark, nearest first, as in 1=4 or 2=5.7; may be repeated
    #[arg(long = "hops", alias = "way", value_name = "MARK=HOPS", value_parser = marked_route)]
    pub route: Vec<(u32, Route)>,
    /// Object file of `giveway kernel build` [default: compile the discipline]
    #[arg(long, value_name = "FILE")]
    pub object: Option<PathBuf>,
    /// Replace a qdisc that was configured by hand, until unload
    #[arg(long)]
    pub replace: bool,
}

/// The flags of `giveway kernel build`.
#[derive(clap::Args)]
pub struct Build {
    /// Discipline; with parameters in quotes, as in "efd limit 300p"
    pub discipline: String,
    /// Object file to write
    #[arg(long, value_name = "FILE")]
    pub out: PathBuf,
    /// Type information of the kernel that will run it: an uncompressed kernel image, or a copy of its
    /// /sys/kernel/btf/vmlinux
    #[arg(long, value_name = "FILE", default_value = object::RUNNING)]
    pub btf: PathBuf,
    /// Name of the qdisc in tc, at most 15 letters; a second interface needs a second name [default:
    /// giveway_NAME, as in giveway_efd]
    #[arg(long)]
    pub name: Option<String>,
    /// Size of a journal of all operations, in entries of 40 bytes, for comparison with the Rust discipline
    #[arg(long, value_name = "ENTRIES", help_heading = HARNESS, hide = true)]
    pub journal: Option<u32>,
    /// Rate of the shaper, as for `load`
    #[arg(long, value_name = "RATE")]
    pub rate: Option<Rate>,
    /// Largest backlog, as for `load`
    #[arg(long, value_name = "LIMIT")]
    pub limit: Option<Limit>,
    /// Replace the file of --out, even if it is not an object file
    #[arg(long)]
    pub force: bool,
}

/// Parses a mark and its reserved rate in bit/s.
fn reservation(text: &str) -> Result<(u32, u64), String> {
    let both = marked(text).and_then(|(mark, rate)| Some((mark, rate.parse::<Rate>().ok()?.as_bit())));
    both.ok_or_else(|| {
        "write a mark and a rate, as in 1=2mbit; packets without a mark have mark 0, which cannot be reserved"
            .to_owned()
    })
}

/// Parses a mark and its route.
fn marked_route(text: &str) -> Result<(u32, Route), String> {
    let (mark, route) = marked(text).ok_or("write a mark and a route, as in 1=4 or 2=5.7; packets without a mark have mark 0, which has no route")?;
    Ok((mark, route.parse().map_err(|error: RouteError| error.to_string())?))
}

/// Splits a text into a mark and the part after the equals sign. Mark 0 is not accepted: packets without a
/// mark have it.
fn marked(text: &str) -> Option<(u32, &str)> {
    let (mark, rest) = text.split_once('=')?;
    let mark = match mark.strip_prefix("0x") {
        Some(digits) => u32::from_str_radix(digits, 16).ok(),
        None => mark.parse().ok(),
    };
    Some((mark.filter(|mark| *mark != 0)?, rest))
}
