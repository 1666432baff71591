//! `giveway run`: runs scenarios and shows what came out.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use clap::value_parser;
use giveway_measure::Style;
use giveway_qdisc::PortId;
use giveway_runner::{Outcome, PortFile, Results, Session, question, scenario_name};
use giveway_scenario::{Crossbar, Direction, Host, Scenario};

use crate::frontend::Terminal;
use crate::{check, provenance, show, stop, terminal, trace};

/// Runs scenarios: every discipline, with every seed, on the same arrivals.
///
/// Prints a table with a row for each discipline: means over the seeds, with 95 % intervals. The same scenario with the
/// same seeds gives the same bits, whatever the machine and the number of jobs.
///
/// Ctrl-C stops the runs; those that are finished are kept and shown.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Scenario files
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Keep everything in this folder, and resume what is there; several scenarios get a folder each inside. A folder that holds
    /// something else is refused
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Run with seeds 1 to N
    #[arg(long, value_name = "N", value_parser = value_parser!(u32).range(1..=i64::from(Scenario::MOST_SEEDS)))]
    seeds: Option<u32>,
    /// How many runs at a time; by default as many as there are processors
    #[arg(long, short, value_name = "N", value_parser = value_parser!(u16).range(1..=1024))]
    jobs: Option<u16>,
    /// Change something, as in link.0.rate=5mbit or traffic.upload.flows=3; may be repeated
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<String>,
    /// Write what the queues did to a pcapng file, for Wireshark and its like; several disciplines get a file each,
    /// FILE-fifo.pcapng and so on. The first seed of each
    #[arg(long, value_name = "FILE")]
    export: Option<PathBuf>,
    /// Write every operation of the discipline at the port PORT ("home->isp") to a file, for giveway replay-check; several
    /// disciplines get a file each, as with --export. The first seed of each; may be repeated for other ports
    #[arg(long, value_name = "PORT=FILE")]
    trace_port: Vec<PortFile>,
    /// On a switch, instead of running: print the first N slots step by step (arrivals, requests, grants, accepts,
    /// crossings, pointers) for each scheduler, with the first seed
    #[arg(long, value_name = "N", value_parser = value_parser!(u32).range(1..=1_000_000),
        conflicts_with_all = ["out", "export", "trace_port", "json"])]
    trace_slots: Option<u32>,
    /// Replace what is at --out, --export or --trace-port although it is something else. Names each thing that it removes, and
    /// leaves what Giveway does not write
    #[arg(long)]
    force: bool,
    /// Print one JSON object per scenario instead of a table
    #[arg(long)]
    json: bool,
    /// No progress and no warnings
    #[arg(long, short)]
    quiet: bool,
    /// A quick check: as [short] in the scenario says, otherwise at most 5 s and one seed
    #[arg(long)]
    short: bool,
}

const EXAMPLES: &str = "\
Examples:
  giveway run scenarios/quickstart.toml
  giveway run scenarios/quickstart.toml --seeds 10 --out runs/quickstart
  giveway run scenarios/quickstart.toml --set link.0.rate=2mbit --set duration=20s
  giveway run scenarios/quickstart.toml --short --export home.pcapng
  giveway run scenarios/quickstart.toml --short --trace-port 'home->isp=home.trace'
  giveway run scenarios/switch/by-hand.toml --trace-slots 4
  giveway run scenarios/quickstart.toml --json | jq '.results[].metrics.sojourn_p99_s.mean'

Exit codes: 0 all is well, 1 a run failed, 2 wrong usage or a wrong scenario, 130 interrupted.";

/// Does it. Every scenario is checked before the first one runs.
pub fn run(args: &Args, out: &mut dyn Write) -> io::Result<Outcome> {
    if args.export.is_some() && args.files.len() > 1 {
        show::sentence("--export takes one scenario at a time");
        return Ok(Outcome::Wrong);
    }
    if !args.trace_port.is_empty() && args.files.len() > 1 {
        show::sentence("--trace-port takes one scenario at a time");
        return Ok(Outcome::Wrong);
    }
    let read = |file: &PathBuf| check::read_as(file, &args.set, args.short, args.seeds);
    let scenarios: Vec<Option<Scenario>> = args.files.iter().map(read).collect();
    if scenarios.iter().any(Option::is_none) {
        return Ok(Outcome::Wrong);
    }
    if let Some((file, _)) = args.files.iter().zip(&scenarios).find(|(_, one)| is_live(one.as_ref())) {
        let file = file.display();
        show::sentence(&format!(
            "{file} is not simulated: write giveway testbed {file}, or --set host=network"
        ));
        return Ok(Outcome::Wrong);
    }
    if let Some(count) = args.trace_slots {
        return trace::slots(&scenarios.into_iter().flatten().collect::<Vec<_>>(), count, out);
    }
    let frontend = Terminal { quiet: args.quiet };
    let session = match session(args.jobs, &frontend) {
        Ok(session) => session.replacing(args.force),
        Err(sentence) => {
            show::sentence(&sentence);
            return Ok(Outcome::Failed);
        }
    };
    let session = session.exporting(args.export.clone()).tracing(args.trace_port.clone());
    let names: Vec<String> = args.files.iter().map(|file| scenario_name(file)).collect();
    let dirs: Vec<Option<PathBuf>> = names.iter().map(|name| place_of(args, name)).collect();
    let scenarios: Vec<Scenario> = scenarios.into_iter().flatten().collect();
    // All places are looked at before anything runs.
    if let Some(twice) = dirs.iter().enumerate().find_map(|(at, dir)| dirs[..at].contains(dir).then_some(dir))
        && let Some(dir) = twice
    {
        let dir = dir.display();
        show::sentence(&format!(
            "two scenarios have the same name, and would both be kept in {dir}: run them one by one"
        ));
        return Ok(Outcome::Wrong);
    }
    if scenarios.len() > 1 {
        for (scenario, dir) in scenarios.iter().zip(&dirs) {
            if let Some(outcome) = dir.as_ref().and_then(|dir| session.refused(&question(scenario), dir)) {
                return Ok(outcome);
            }
        }
    }
    let mut outcome = Outcome::Done;
    for ((scenario, name), dir) in scenarios.iter().zip(&names).zip(&dirs) {
        if !args.quiet {
            show::diagnostics(scenario.origin(), &scenario.warnings);
        }
        let shown = (args.json, args.quiet);
        outcome = outcome.max(one(&session, scenario, name, dir.as_deref(), shown, out)?);
        if stop::asked() {
            break;
        }
    }
    Ok(outcome)
}

/// Where a scenario is kept, if it is. Several have a folder each.
fn place_of(args: &Args, name: &str) -> Option<PathBuf> {
    args.out.as_ref().map(|dir| if args.files.len() > 1 { dir.join(name) } else { dir.clone() })
}

fn is_live(scenario: Option<&Scenario>) -> bool {
    scenario.is_some_and(|scenario| scenario.live().is_some())
}

/// Runs one scenario, keeps it in `dir` if there is one, and shows its table.
fn one(
    session: &Session<'_>,
    scenario: &Scenario,
    name: &str,
    dir: Option<&Path>,
    (json, quiet): (bool, bool),
    out: &mut dyn Write,
) -> io::Result<Outcome> {
    let results = match session.run(scenario, name, dir, &|_| None) {
        Ok(results) => results,
        Err(outcome) => return Ok(outcome),
    };
    if json {
        writeln!(out, "{}", results.table.to_json(name, results.cpu_s))?;
    } else {
        print(scenario, name, &results, out)?;
    }
    remark(&results, json, quiet);
    Ok(results.outcome)
}

/// A session with the command line of this process as its provenance. Listens for Ctrl-C from now on.
///
/// # Errors
/// A sentence when its threads cannot be started.
pub fn session(jobs: Option<u16>, frontend: &Terminal) -> Result<Session<'_>, String> {
    let session = Session::new(jobs.unwrap_or(0), frontend, provenance::command(), provenance::now())?;
    stop::listen();
    Ok(session)
}

/// Shows what there is to say about results beside their table.
pub fn remark(results: &Results, json: bool, quiet: bool) {
    if !quiet {
        results.remarks.iter().for_each(|remark| show::sentence(remark));
    }
    if !quiet || !results.all_exported {
        results.exported.iter().for_each(|sentence| show::sentence(sentence));
    }
    if let (Some(report), false) = (&results.report, quiet) {
        show::sentence(&format!("the report is {}", report.display()));
    }
    if !quiet && !json {
        show::sentence(&format!("{} events, {:.2} s of processor time", results.table.events, results.cpu_s));
    }
}

/// A time for people: seconds, to a tenth.
fn seconds(span: giveway_qdisc::Span) -> String {
    let text = format!("{:.1}", span.as_s());
    format!("{} s", text.strip_suffix(".0").unwrap_or(&text))
}

/// A time of a scenario for people: in slots where it has slots.
fn length(scenario: &Scenario, span: giveway_qdisc::Span) -> String {
    match &scenario.host {
        Host::Network(_) | Host::Live(_) => seconds(span),
        Host::Switch(crossbar) => format!("{} slots", span.as_ps() / crossbar.slot.as_ps()),
    }
}

/// Where it is measured, for people.
fn place(host: &Host) -> String {
    match host {
        Host::Network(network) => {
            let port = |id: &PortId| &network.ports[id.0 as usize];
            let names: Vec<&str> = network.measured.iter().take(3).map(|id| port(id).name.as_str()).collect();
            let more = if network.measured.len() > names.len() { ", ..." } else { "" };
            format!("{}{more} at {}", names.join(", "), port(&network.measured[0]).rate)
        }
        Host::Switch(crossbar) => {
            let Crossbar { ports, rate, slot, .. } = crossbar;
            format!("switch of {ports} x {ports} ports at {rate}, slots of {slot}")
        }
        Host::Live(live) => {
            let port = |direction: &Direction| &live.network.ports[direction.port.0 as usize];
            format!("{} at {}, real hosts on this machine", port(&live.forth).name, live.forth.rate)
        }
    }
}

/// The table for people.
pub fn print(scenario: &Scenario, name: &str, results: &Results, out: &mut dyn Write) -> io::Result<()> {
    let Results { table, finished, planned, .. } = results;
    let title = if scenario.title.is_empty() { name } else { &scenario.title };
    writeln!(out, "{}", terminal::bold(title))?;
    writeln!(
        out,
        "{}, {}, measured from {} on, {}",
        place(&scenario.host),
        length(scenario, scenario.duration),
        length(scenario, scenario.warmup),
        match scenario.seeds.len() {
            1 => format!("seed {}", scenario.seeds[0]),
            seeds => format!("{seeds} seeds"),
        }
    )?;
    if finished < planned {
        writeln!(out, "{finished} of {planned} runs")?;
    }
    writeln!(out)?;
    if *finished > 0 {
        write!(out, "{}", table.render(Style { width: terminal::width(), ascii: false, detailed: false }))?;
        writeln!(out, "\nfingerprint {}", table.fingerprint)?;
    }
    Ok(())
}
