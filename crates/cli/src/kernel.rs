//! `giveway kernel`: loads disciplines into the kernel as BPF qdiscs, shows them and unloads them.

use std::io::Write;
use std::path::{Path, PathBuf};

use clap::Subcommand;
use giveway_kernel::KernelError;
use giveway_kernel::attach::{self, Attached, LoadRequest, Source};
use giveway_kernel::object::{self, Recipe};
use giveway_kernel_plan::plan::{Kind, Plan};
use giveway_kernel_plan::route::{Route, RouteError};
use giveway_qdisc::{DropReason, Limit, Rate};
use serde_json::{Map, Value, json};

use crate::error::CliError;
use crate::headings::HARNESS;
use crate::outputs::{self, may_write};
use crate::{Outcome, terminal};

/// Runs disciplines in the kernel, as BPF qdiscs.
///
/// A loaded discipline needs no process. It makes the same decisions, packet by packet, as the discipline of
/// the same name in simulations. Packet lengths include the link header, as for every qdisc of the kernel.
/// Needs root, Linux 6.16 or later with CONFIG_NET_SCH_BPF, tc and bpftool; clang and libbpf's headers to
/// compile.
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
  giveway kernel load trr --dev eth0 --rate 10mbit --reserve 1=2mbit    # each flow with mark 1 has 2 Mbit/s
  giveway kernel load bsq --dev eth0 --rate 10mbit --hops 1=4 --hops 2=5  # next hop 4 for mark 1, 5 for mark 2
  giveway kernel show --dev eth0
  giveway kernel unload --dev eth0

Exit codes: 0 success, 1 failure, 2 wrong usage or a missing prerequisite.";

#[derive(Subcommand)]
enum Command {
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

#[derive(clap::Args)]
struct Load {
    /// Discipline (fifo, drr, efd, trr or bsq); with parameters in quotes, as in "efd limit 300p"
    discipline: String,
    /// Interface, as in `ip link`
    #[arg(long, value_name = "IF")]
    dev: String,
    /// Rate of the shaper, as in 20mbit [default: the rate of the interface]
    #[arg(long, value_name = "RATE")]
    rate: Option<Rate>,
    /// Largest backlog, in packets (300p) or bytes (500kb); short for the parameter limit
    #[arg(long, value_name = "LIMIT")]
    limit: Option<Limit>,
    /// trr: reserved rate of each flow whose packets have this mark, as in 1=2mbit; may be repeated
    #[arg(long, value_name = "MARK=RATE", value_parser = reservation)]
    reserve: Vec<(u32, u64)>,
    /// bsq: next hops of packets with this mark, nearest first, as in 1=4 or 2=5.7; may be repeated
    #[arg(long = "hops", alias = "way", value_name = "MARK=HOPS", value_parser = marked_route)]
    route: Vec<(u32, Route)>,
    /// Object file of `giveway kernel build` [default: compile the discipline]
    #[arg(long, value_name = "FILE")]
    object: Option<PathBuf>,
    /// Replace a qdisc that was configured by hand, until unload
    #[arg(long)]
    replace: bool,
}

#[derive(clap::Args)]
struct Build {
    /// Discipline; with parameters in quotes, as in "efd limit 300p"
    discipline: String,
    /// Object file to write
    #[arg(long, value_name = "FILE")]
    out: PathBuf,
    /// Type information of the kernel that will run it: an uncompressed kernel image, or a copy of its
    /// /sys/kernel/btf/vmlinux
    #[arg(long, value_name = "FILE", default_value = object::RUNNING)]
    btf: PathBuf,
    /// Name of the qdisc in tc, at most 15 letters; a second interface needs a second name [default:
    /// giveway_NAME, as in giveway_efd]
    #[arg(long)]
    name: Option<String>,
    /// Size of a journal of all operations, in entries of 40 bytes, for comparison with the Rust discipline
    #[arg(long, value_name = "ENTRIES", help_heading = HARNESS, hide = true)]
    journal: Option<u32>,
    /// Rate of the shaper, as for `load`
    #[arg(long, value_name = "RATE")]
    rate: Option<Rate>,
    /// Largest backlog, as for `load`
    #[arg(long, value_name = "LIMIT")]
    limit: Option<Limit>,
    /// Replace the file of --out, even if it is not an object file
    #[arg(long)]
    force: bool,
}

/// Runs `giveway kernel`.
pub fn kernel(args: &Args, out: &mut dyn Write) -> Result<Outcome, CliError> {
    let text = match &args.command {
        Command::Load(args) => load(args),
        Command::Unload { dev: Some(dev), .. } => unload(dev),
        Command::Unload { dev: None, .. } => unload_gone(),
        Command::Show { dev, json } => shown(dev.as_deref(), *json),
        Command::List { json } => list(*json),
        Command::Build(args) => build(args),
    }?;
    write!(out, "{text}")?;
    Ok(Outcome::Done)
}

fn load(args: &Load) -> Result<String, CliError> {
    let Load { discipline, dev, rate, limit, reserve, route, object, replace } = args;
    let plan =
        Plan::new(discipline, *rate, *limit, attach::largest_packet(dev)?).map_err(KernelError::from)?;
    if plan.kind != Kind::Trr && !reserve.is_empty() {
        return Err(CliError::Usage(
            "only trr has reservations: leave out --reserve, or load trr".to_owned(),
        ));
    }
    let reservations = [reserve.clone(), plan.routes(route).map_err(KernelError::from)?].concat();
    let attached = attach::load(&LoadRequest {
        device: dev,
        plan: &plan,
        reservations: &reservations,
        source: object.as_deref().map_or(Source::Compiled, Source::Object),
        overhead: 0,
        keep: false,
        replace: *replace,
    })?;
    Ok(format!("{dev}: {}\n", line(&attached)))
}

fn unload(dev: &str) -> Result<String, CliError> {
    match attach::unload(dev)? {
        None => Ok(format!("{dev}: the earlier qdisc is restored\n")),
        Some(missing) => Err(CliError::Usage(missing)),
    }
}

fn unload_gone() -> Result<String, CliError> {
    let gone = attach::unload_gone()?;
    let removed: String = gone.iter().map(|of| format!("{}: {}, removed\n", of.device, line(of))).collect();
    Ok(if removed.is_empty() {
        "nothing to clean up: all interfaces with a discipline exist\n".to_owned()
    } else {
        removed
    })
}

fn shown(dev: Option<&str>, json: bool) -> Result<String, CliError> {
    let mut all = attach::all()?;
    if let Some(dev) = dev {
        all = attach::find(dev)?.into_iter().collect();
        if all.is_empty() {
            return Err(CliError::Usage(format!(
                "{dev} has no discipline of Giveway; giveway kernel list shows all"
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
        let mut value = object(attached);
        value.extend([
            ("counters".to_owned(), rows(&others).into()),
            ("drops".to_owned(), rows(&drops).into()),
        ]);
        values.push(Value::Object(value));
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
    Ok(if all.is_empty() {
        "no discipline is loaded; load one with giveway kernel load efd --dev IF\n".to_owned()
    } else {
        text
    })
}

fn list(json: bool) -> Result<String, CliError> {
    let summary = |kind: Kind| {
        let entry = giveway_disciplines::ALL.iter().find(|entry| entry.name == kind.discipline());
        entry.map(|entry| entry.summary).unwrap_or_default()
    };
    let all = attach::all()?;
    if json {
        let one = |kind: Kind| json!({ "name": kind.name(), "summary": summary(kind) });
        let disciplines: Vec<Value> = Kind::ALL.into_iter().map(one).collect();
        let loaded: Vec<Value> = all.iter().map(|attached| Value::Object(object(attached))).collect();
        return Ok(format!("{}\n", json!({ "disciplines": disciplines, "loaded": loaded })));
    }
    let mut text = format!("{}\n", terminal::bold("for the kernel"));
    for kind in Kind::ALL {
        text.push_str(&format!("  {:<5} {}\n", kind.name(), summary(kind)));
    }
    if !all.is_empty() {
        text.push_str(&format!("\n{}\n", terminal::bold("loaded")));
    }
    for attached in all {
        text.push_str(&format!("  {}: {}\n", attached.device, line(&attached)));
    }
    Ok(text)
}

fn build(args: &Build) -> Result<String, CliError> {
    let Build { discipline, out, btf, name, journal, rate, limit, force } = args;
    may_write(out, outputs::Kind::Object, *force)?;
    // The rate is a parameter that `load` sets, so the object does not depend on it. But a plan needs one.
    let rate = rate.unwrap_or(Rate::mbit(10));
    let plan = Plan::new(discipline, Some(rate), *limit, 1514).map_err(KernelError::from)?;
    let own = format!("giveway_{}", plan.kind.name());
    let name = name.as_ref().unwrap_or(&own);
    if !name.starts_with(&own) || name.len() > 15 {
        return Err(CliError::Usage(format!(
            "--name: a name begins with {own} and has at most 15 letters, as in {own}_2"
        )));
    }
    // clang follows a link in its place, so it writes to a folder that only this user can change.
    let folder = tempfile::tempdir()?;
    let built = folder.path().join("built.o");
    object::build(&Recipe { kind: plan.kind, name, room: plan.room, journal: *journal, btf }, &built)?;
    giveway_record::write_whole(out.as_ref(), &std::fs::read(built)?)?;
    Ok(format!("{}: {name}, for a backlog of up to {} packets\n", Path::new(out).display(), plan.room - 2))
}

/// An attached discipline for programs.
fn object(attached: &Attached) -> Map<String, Value> {
    let Attached { device, name, discipline, rate, namespace, .. } = attached;
    let pairs = [
        ("device", json!(device)),
        ("qdisc", json!(name)),
        ("discipline", json!(discipline)),
        ("rate_bit", json!(rate)),
        ("namespace", json!(namespace)),
    ];
    pairs.into_iter().map(|(key, value)| (key.to_owned(), value)).collect()
}

/// Describes an attached discipline.
fn line(attached: &Attached) -> String {
    let rate = match attached.rate {
        0 => "at the rate of the interface".to_owned(),
        rate => format!("at {}", Rate::bit(rate)),
    };
    let elsewhere =
        attached.namespace.map_or(String::new(), |number| format!(", in network namespace {number}"));
    format!("{}, {} {rate}{elsewhere}", attached.name, attached.discipline)
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
