//! `giveway kernel`: disciplines in the kernel, as BPF qdiscs.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use clap::Subcommand;
use giveway_kernel::KernelError;
use giveway_kernel::attach::{self, Attached, LoadRequest, Source};
use giveway_kernel::object::{self, Recipe};
use giveway_kernel_plan::plan::{Kind, Plan};
use giveway_kernel_plan::way::Way;
use giveway_qdisc::{DropReason, Limit, Rate};
use serde_json::{Map, Value, json};

use crate::outputs::{self, may_write};
use crate::{Outcome, show, terminal};

/// Puts disciplines into the kernel, as BPF qdiscs: no process stays behind.
///
/// The disciplines decide as those of the same name everywhere in giveway, packet for packet. Lengths count the header of the link,
/// as for every qdisc of the kernel. Needs root, Linux 6.16 or later with CONFIG_NET_SCH_BPF, and tc; clang, bpftool and
/// libbpf's headers to build, bpftool to load.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

const EXAMPLES: &str = "\
Examples:
  giveway kernel load efd --dev eth0 --rate 20mbit
  giveway kernel load \"drr limit 500p\" --dev eth0
  giveway kernel load trr --dev eth0 --rate 10mbit --reserve 1=2mbit    # flows marked 1 have 2 Mbit/s each
  giveway kernel load bsq --dev eth0 --rate 10mbit --way 1=4 --way 2=5  # who goes on to node 4 is marked 1, to 5 marked 2
  giveway kernel show --dev eth0
  giveway kernel unload --dev eth0

Exit codes: 0 all is well, 1 it failed, 2 wrong usage, or something is missing here.";

#[derive(Subcommand)]
enum Command {
    /// Puts a discipline on an interface; the qdisc that was there comes back with unload
    Load(Load),
    /// Takes it away again
    Unload {
        /// The interface
        #[arg(long, value_name = "IF", required_unless_present = "gone")]
        dev: Option<String>,
        /// Instead, what belonged to interfaces and network namespaces that are no more
        #[arg(long, conflicts_with = "dev")]
        gone: bool,
    },
    /// Shows what disciplines did: packets, drops by reason, flows
    Show {
        /// Only this interface
        #[arg(long, value_name = "IF")]
        dev: Option<String>,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Lists what there is, and what is loaded
    List,
    /// Only compiles: for a machine without a compiler, or another kernel
    Build(Build),
}

#[derive(clap::Args)]
struct Load {
    /// The discipline, with its parameters in quotes: fifo, drr, efd, trr, bsq
    discipline: String,
    /// The interface
    #[arg(long, value_name = "IF")]
    dev: String,
    /// Send no faster than this; without it the interface's own rate is the link
    #[arg(long, value_name = "RATE")]
    rate: Option<Rate>,
    /// How much is held, in packets (300p) or bytes (500kb); short for the parameter limit
    #[arg(long, value_name = "LIMIT")]
    limit: Option<Limit>,
    /// trr: each flow whose packets have this mark has this rate reserved; may be repeated
    #[arg(long, value_name = "MARK=RATE", value_parser = reservation)]
    reserve: Vec<(u32, u64)>,
    /// bsq: packets that have this mark go on over these nodes, as 1=4 or 2=5.7, the nearest first; may be repeated
    #[arg(long, value_name = "MARK=HOPS", value_parser = marked_way)]
    way: Vec<(u32, Way)>,
    /// An object that giveway kernel build made, instead of compiling here
    #[arg(long, value_name = "FILE")]
    object: Option<PathBuf>,
    /// Take the place of a qdisc that somebody put there, until unload
    #[arg(long)]
    replace: bool,
}

#[derive(clap::Args)]
struct Build {
    /// The discipline, with its parameters in quotes
    discipline: String,
    /// Where to
    #[arg(long, value_name = "FILE")]
    out: PathBuf,
    /// The types of the kernel that will run it: an uncompressed kernel, or a copy of its /sys/kernel/btf/vmlinux
    #[arg(long, value_name = "FILE", default_value = object::RUNNING)]
    btf: PathBuf,
    /// What tc will call it, at most 15 letters: a second interface needs a second name
    #[arg(long)]
    name: Option<String>,
    /// Keep a journal of so many entries of 40 bytes: every packet, for a comparison with the Rust discipline
    #[arg(long, value_name = "ENTRIES")]
    journal: Option<u32>,
    /// As for load
    #[arg(long, value_name = "RATE")]
    rate: Option<Rate>,
    /// As for load
    #[arg(long, value_name = "LIMIT")]
    limit: Option<Limit>,
    /// Replace what is at --out although it is no object file
    #[arg(long)]
    force: bool,
}

/// Does it.
pub fn kernel(args: &Args, out: &mut dyn Write) -> io::Result<Outcome> {
    let done = match &args.command {
        Command::Load(args) => load(args),
        Command::Unload { dev: Some(dev), .. } => unload(dev),
        Command::Unload { dev: None, .. } => unload_gone(),
        Command::Show { dev, json } => shown(dev.as_deref(), *json),
        Command::List => list(),
        Command::Build(args) => build(args),
    };
    match done {
        Ok(text) => {
            write!(out, "{text}")?;
            Ok(Outcome::Done)
        }
        Err(error) => {
            show::sentence(&error.to_string());
            Ok(if error.is_prerequisite() { Outcome::Wrong } else { Outcome::Failed })
        }
    }
}

fn load(args: &Load) -> Result<String, KernelError> {
    let Load { discipline, dev, rate, limit, reserve, way, object, replace } = args;
    let plan = Plan::new(discipline, *rate, *limit, attach::largest_packet(dev)?)?;
    if plan.kind != Kind::Trr && !reserve.is_empty() {
        return Err(KernelError::Precondition(
            "only trr reserves rates: leave --reserve out, or load trr".to_owned(),
        ));
    }
    let said = [reserve.clone(), plan.ways(way)?].concat();
    let attached = attach::load(&LoadRequest {
        device: dev,
        plan: &plan,
        reservations: &said,
        source: object.as_deref().map_or(Source::Compiled, Source::Object),
        overhead: 0,
        keep: false,
        replace: *replace,
    })?;
    Ok(format!("{dev}: {}\n", line(&attached)))
}

fn unload(dev: &str) -> Result<String, KernelError> {
    match attach::unload(dev)? {
        None => Ok(format!("{dev}: as it was before\n")),
        Some(missing) => Err(KernelError::Precondition(missing)),
    }
}

fn unload_gone() -> Result<String, KernelError> {
    let gone = attach::unload_gone()?;
    let told: String = gone.iter().map(|of| format!("{}: {}, taken away\n", of.device, line(of))).collect();
    Ok(if told.is_empty() { "every interface that has one is still there\n".to_owned() } else { told })
}

fn shown(dev: Option<&str>, json: bool) -> Result<String, KernelError> {
    let mut all = attach::all()?;
    if let Some(dev) = dev {
        all = attach::find(dev)?.into_iter().collect();
        if all.is_empty() {
            return Err(KernelError::Precondition(format!(
                "{dev} has no discipline of giveway: giveway kernel list"
            )));
        }
    }
    let mut text = String::new();
    let mut values = Vec::new();
    for attached in &all {
        let counters = attach::counters(attached)?;
        let (drops, others): (Vec<_>, Vec<_>) = counters
            .into_iter()
            .partition(|(name, _)| DropReason::ALL.iter().any(|reason| reason.name() == name));
        let rows = |rows: &[(String, u64)]| -> Map<String, Value> {
            rows.iter().map(|(name, number)| (name.clone(), json!(number))).collect()
        };
        values.push(json!({
            "device": attached.device, "qdisc": attached.name, "discipline": attached.discipline, "rate_bit": attached.rate,
            "counters": rows(&others), "drops": rows(&drops),
        }));
        text.push_str(&format!("{}: {}\n", terminal::bold(&attached.device), line(attached)));
        for (name, number) in &others {
            text.push_str(&format!("  {name:<16} {number:>14}\n"));
        }
        for (reason, number) in drops.iter().filter(|(_, number)| *number > 0) {
            text.push_str(&format!("  dropped, {reason:<10} {number:>10}\n"));
        }
    }
    if json {
        return Ok(format!("{:#}\n", Value::Array(values)));
    }
    Ok(if all.is_empty() { "nothing is loaded: giveway kernel load efd --dev IF\n".to_owned() } else { text })
}

fn list() -> Result<String, KernelError> {
    let mut text = format!("{}\n", terminal::bold("for the kernel"));
    for kind in Kind::ALL {
        let entry = giveway_disciplines::ALL.iter().find(|entry| entry.name == kind.discipline());
        let summary = entry.map(|entry| entry.summary).unwrap_or_default();
        text.push_str(&format!("  {:<5} {summary}\n", kind.name()));
    }
    let all = attach::all()?;
    if !all.is_empty() {
        text.push_str(&format!("\n{}\n", terminal::bold("loaded")));
    }
    for attached in all {
        text.push_str(&format!("  {}: {}\n", attached.device, line(&attached)));
    }
    Ok(text)
}

fn build(args: &Build) -> Result<String, KernelError> {
    let Build { discipline, out, btf, name, journal, rate, limit, force } = args;
    may_write(out, outputs::Kind::Object, *force).map_err(KernelError::Precondition)?;
    // Whatever it is, the object is the same: the rate is told when it is loaded.
    let rate = rate.unwrap_or(Rate::mbit(10));
    let plan = Plan::new(discipline, Some(rate), *limit, 1514)?;
    let own = format!("giveway_{}", plan.kind.name());
    let name = name.as_ref().unwrap_or(&own);
    if !name.starts_with(&own) || name.len() > 15 {
        return Err(KernelError::Precondition(format!(
            "a name begins with {own} and has at most 15 letters, as {own}_2"
        )));
    }
    object::build(&Recipe { kind: plan.kind, name, room: plan.room, journal: *journal, btf }, out)?;
    Ok(format!("{}: {name}, with room for {} packets\n", Path::new(out).display(), plan.room - 2))
}

fn line(attached: &Attached) -> String {
    let rate = match attached.rate {
        0 => "at the rate of the interface".to_owned(),
        rate => format!("at {}", Rate::bit(rate)),
    };
    let elsewhere =
        attached.namespace.map_or(String::new(), |number| format!(", in network namespace {number}"));
    format!("{}, {} {rate}{elsewhere}", attached.name, attached.discipline)
}

fn reservation(text: &str) -> Result<(u32, u64), String> {
    let both = marked(text).and_then(|(mark, rate)| Some((mark, rate.parse::<Rate>().ok()?.as_bit())));
    both.ok_or_else(|| {
        "write a mark and a rate, as 1=2mbit; mark 0 is that of all packets without one".to_owned()
    })
}

fn marked_way(text: &str) -> Result<(u32, Way), String> {
    let (mark, way) = marked(text).ok_or("write a mark and a way, as 1=4 or 2=5.7; mark 0 has none")?;
    Ok((mark, way.parse()?))
}

/// A mark, and what it says.
fn marked(text: &str) -> Option<(u32, &str)> {
    let (mark, rest) = text.split_once('=')?;
    let mark = match mark.strip_prefix("0x") {
        Some(digits) => u32::from_str_radix(digits, 16).ok(),
        None => mark.parse().ok(),
    };
    Some((mark.filter(|mark| *mark != 0)?, rest))
}
