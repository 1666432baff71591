//! `giveway kernel`: loads disciplines into the kernel as BPF qdiscs, shows them and unloads them.

use std::io::Write;
use std::path::Path;

use giveway_files::NewFile;
use giveway_kernel::KernelError;
use giveway_kernel::attach::{self, Attached, LoadRequest, Source};
use giveway_kernel::object::{self, Recipe};
use giveway_kernel_plan::plan::{Kind, Plan};
use giveway_program::commands::kernel::{Args, Build, Command, Load};
use giveway_program::terminal;
use giveway_qdisc::{DropReason, Rate};
use serde_json::{Map, Value, json};

use crate::error::NetError;
use crate::outcome::Outcome;
use crate::outputs::{self, may_write};

/// Runs `giveway kernel`.
pub fn kernel(args: &Args, out: &mut dyn Write) -> Result<Outcome, NetError> {
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

fn load(args: &Load) -> Result<String, NetError> {
    let Load { discipline, dev, rate, limit, reserve, route, object, replace } = args;
    let plan =
        Plan::new(discipline, *rate, *limit, attach::largest_packet(dev)?).map_err(KernelError::from)?;
    if plan.kind != Kind::Trr && !reserve.is_empty() {
        return Err(NetError::Usage(
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

fn unload(dev: &str) -> Result<String, NetError> {
    match attach::unload(dev)? {
        None => Ok(format!("{dev}: the earlier qdisc is restored\n")),
        Some(missing) => Err(NetError::Usage(missing)),
    }
}

fn unload_gone() -> Result<String, NetError> {
    let gone = attach::unload_gone()?;
    let removed: String = gone.iter().map(|of| format!("{}: {}, removed\n", of.device, line(of))).collect();
    Ok(if removed.is_empty() {
        "nothing to clean up: all interfaces with a discipline exist\n".to_owned()
    } else {
        removed
    })
}

fn shown(dev: Option<&str>, json: bool) -> Result<String, NetError> {
    let mut all = attach::all()?;
    if let Some(dev) = dev {
        all = attach::find(dev)?.into_iter().collect();
        if all.is_empty() {
            return Err(NetError::Usage(format!(
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

fn list(json: bool) -> Result<String, NetError> {
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

fn build(args: &Build) -> Result<String, NetError> {
    let Build { discipline, out, btf, name, journal, rate, limit, force } = args;
    may_write(out, outputs::Kind::Object, *force)?;
    // The rate is a parameter that `load` sets, so the object does not depend on it. But a plan needs one.
    let rate = rate.unwrap_or(Rate::mbit(10));
    let plan = Plan::new(discipline, Some(rate), *limit, 1514).map_err(KernelError::from)?;
    let own = format!("giveway_{}", plan.kind.name());
    let name = name.as_ref().unwrap_or(&own);
    if !name.starts_with(&own) || name.len() > 15 {
        return Err(NetError::Usage(format!(
            "--name: a name begins with {own} and has at most 15 letters, as in {own}_2"
        )));
    }
    // clang follows a link in its place, so it writes to a folder that only this user can change.
    let folder = tempfile::tempdir()?;
    let built = folder.path().join("built.o");
    object::build(&Recipe { kind: plan.kind, name, room: plan.room, journal: *journal, btf }, &built)?;
    let written = std::fs::read(built).and_then(|object| NewFile::begin(out)?.put(&object));
    written.map_err(|source| NetError::Write { path: out.clone(), source })?;
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
