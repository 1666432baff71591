//! `giveway run`: runs scenarios and prints their results.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use clap::value_parser;
use giveway_measure::{Style, findings};
use giveway_qdisc::PortId;
use giveway_runner::{Outcome, PortFile, Results, Session, scenario_name};
use giveway_scenario::{Backend, Crossbar, Direction, Scenario};
use giveway_trials::{Reuse, identity_text, processors};
use serde_json::{Value, json};

use crate::error::CliError;
use crate::frontend::Terminal;
use crate::headings::HARNESS;
use crate::scenario_args::{self, ScenarioArgs};
use crate::{provenance, show, stop, terminal, trace};

/// Runs scenarios: each discipline with each seed, with the same workload.
///
/// A trial is one discipline with one seed. Prints a table with one row for each discipline: means over the
/// seeds, with 95 % confidence intervals. A scenario with given seeds has the same results, bit for bit, on
/// every machine and with any number of jobs and threads.
///
/// The sentences below the table say what it shows. Ctrl-C stops the run: finished trials are shown, and
/// kept if --out names a folder; the last line is then the command that resumes the run.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Scenario files
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Keep results, time series and a report in this folder. Trials that the folder already has are not
    /// repeated. Several scenarios get a subfolder each. A folder with other contents is refused
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Run with seeds 1 to N [default: the seeds of the scenario]
    #[arg(long, value_name = "N", value_parser = scenario_args::seeds)]
    seeds: Option<u32>,
    /// Trials at a time [default: one for each processor]
    #[arg(long, short, value_name = "N", value_parser = value_parser!(u16).range(1..=1024))]
    jobs: Option<u16>,
    /// Take finished trials from this folder of a run, a sweep or a card; may be repeated. A trial is found
    /// if everything that its result depends on is the same. They have
    /// metrics and no time series, so they suit no run folder, plot, capture or trace
    #[arg(long, value_name = "DIR", conflicts_with_all = ["out", "plot", "export", "trace_port"])]
    reuse: Vec<PathBuf>,
    /// Threads of each trial that simulates a network, with the same results. The network is divided where
    /// links have a delay; if that gains nothing, one thread is used. With fewer trials than processors it
    /// saves time, otherwise --jobs uses them better [default: 1]
    #[arg(long, value_name = "N", value_parser = value_parser!(u16).range(1..=1024))]
    threads: Option<u16>,
    /// Also run every trial of a network with its network divided among 2, 3, 8 and 64 threads, and fail if
    /// any result differs
    #[arg(long, help_heading = HARNESS, hide = true)]
    check_threads: bool,
    #[command(flatten)]
    scenario: ScenarioArgs,
    /// Write the packets of all queues to a pcapng file, with drops and marks as comments, for Wireshark and
    /// similar programs. Several disciplines get a file each, as in FILE-fifo.pcapng. Only the first seed is
    /// written
    #[arg(long, value_name = "FILE")]
    export: Option<PathBuf>,
    /// Write every operation of the discipline at a port, as in "home->isp=home.trace", for `giveway
    /// replay-check`. Several disciplines get a file each, as with --export. Only the first seed is written;
    /// may be repeated for other ports
    #[arg(long, value_name = "PORT=FILE")]
    trace_port: Vec<PortFile>,
    /// Instead of running a switch, print its first N slots step by step (arrivals, requests, grants,
    /// accepts, crossings, pointers) for each arbiter, with the first seed
    #[arg(long, value_name = "N", value_parser = value_parser!(u32).range(1..=1_000_000),
        conflicts_with_all = ["out", "export", "trace_port", "json"])]
    trace_slots: Option<u32>,
    /// Replace the folder of --out and the files of --export and --trace-port, whatever they contain. Each
    /// removed file is named; files in the folder that Giveway does not write stay
    #[arg(long)]
    force: bool,
    /// Draw the delay of each traffic source over time below the table, a line for each source of each
    /// discipline, with the first seed
    #[arg(long, conflicts_with = "json")]
    plot: bool,
    /// Print one JSON object for each scenario instead of a table; times are in seconds, rates in bit/s
    #[arg(long)]
    json: bool,
    /// Print no progress and no warnings
    #[arg(long, short)]
    quiet: bool,
    /// Also print the number of simulated events and the processor time
    #[arg(long, short, conflicts_with = "quiet")]
    verbose: bool,
    /// Run a quick check, with the settings in [short] of the scenario [default: at most 5 s and one seed]
    #[arg(long, alias = "quick")]
    short: bool,
}

const EXAMPLES: &str = "\
Examples:
  giveway run scenarios/quickstart.toml
  giveway run scenarios/quickstart.toml --seeds 10 --out runs/quickstart
  giveway run scenarios/quickstart.toml --set link.0.rate=2mbit --set duration=20s
  giveway run scenarios/links/lte.toml --plot
  giveway run scenarios/quickstart.toml --short --export home.pcapng
  giveway run scenarios/quickstart.toml --short --trace-port 'home->isp=home.trace'
  giveway run scenarios/switch/short-first.toml --jobs 2
  giveway run scenarios/bench/fat-tree-8.toml --short --threads 2
  giveway run scenarios/quickstart.toml --json | jq '.results[].metrics.sojourn_p99_s.mean'

Exit codes: 0 success, 1 a run failed, 2 wrong usage or an invalid scenario, 130 interrupted.";

/// Runs `giveway run`. Every scenario is checked before the first one runs.
pub fn run(args: &Args, out: &mut dyn Write) -> Result<Outcome, CliError> {
    if args.export.is_some() && args.files.len() > 1 {
        return Err(CliError::Usage("--export takes one scenario at a time".to_owned()));
    }
    if !args.trace_port.is_empty() && args.files.len() > 1 {
        return Err(CliError::Usage("--trace-port takes one scenario at a time".to_owned()));
    }
    let read = |file: &PathBuf| args.scenario.read_as(file, args.short, args.seeds);
    let mut scenarios: Vec<Scenario> = Vec::new();
    let mut invalid = None;
    for scenario in args.files.iter().map(read) {
        match scenario {
            Ok(scenario) => scenarios.push(scenario),
            // The mistakes of all files are shown.
            Err(error) => {
                error.show();
                invalid = Some(error.outcome());
            }
        }
    }
    if let Some(outcome) = invalid {
        return Err(CliError::Reported(outcome));
    }
    if let Some((file, _)) = args.files.iter().zip(&scenarios).find(|(_, one)| one.live().is_some()) {
        let file = file.display();
        return Err(CliError::Usage(format!(
            "{file} is not simulated: write giveway testbed {file}, or --set backend=network"
        )));
    }
    if let Some(count) = args.trace_slots {
        return trace::slots(&scenarios, count, out);
    }
    let frontend = Terminal { quiet: args.quiet };
    let threads = usize::from(args.threads.unwrap_or(1));
    // Trials beside each other share the processors.
    let jobs = args.jobs.map(usize::from).unwrap_or_else(|| (processors() / threads).max(1));
    let reuse = Reuse::of(&args.reuse, &frontend)?;
    let session = session(jobs, &frontend).replacing(args.force).dividing(threads).reusing(reuse);
    let session = session.checking_divisions(args.check_threads).plotting(args.plot);
    let session = session.exporting(args.export.clone()).tracing(args.trace_port.clone());
    let names: Vec<String> = args.files.iter().map(|file| scenario_name(file)).collect();
    let dirs: Vec<Option<PathBuf>> = names.iter().map(|name| folder_of(args, name)).collect();
    // All folders are checked before the first scenario runs.
    if let Some(twice) = dirs.iter().enumerate().find_map(|(at, dir)| dirs[..at].contains(dir).then_some(dir))
        && let Some(dir) = twice
    {
        let dir = dir.display();
        return Err(CliError::Usage(format!(
            "two scenarios have the same name, and would both be kept in {dir}: run them one by one"
        )));
    }
    if scenarios.len() > 1 {
        for (scenario, dir) in scenarios.iter().zip(&dirs) {
            if let Some(outcome) = dir.as_ref().and_then(|dir| session.refused(&identity_text(scenario), dir))
            {
                return Ok(outcome);
            }
        }
    }
    let mut outcome = Outcome::Done;
    for ((scenario, name), dir) in scenarios.iter().zip(&names).zip(&dirs) {
        if !args.quiet {
            args.scenario.warn(scenario);
        }
        outcome = outcome.max(one(&session, scenario, name, dir.as_deref(), args, out)?);
        if stop::requested() {
            break;
        }
    }
    Ok(outcome)
}

/// The folder of a scenario's results, if `--out` is given. Each of several scenarios gets its own subfolder.
fn folder_of(args: &Args, name: &str) -> Option<PathBuf> {
    args.out.as_ref().map(|dir| if args.files.len() > 1 { dir.join(name) } else { dir.clone() })
}

/// Runs one scenario, keeps its results in `dir` if it is given, and prints its table.
fn one(
    session: &Session<'_>,
    scenario: &Scenario,
    name: &str,
    dir: Option<&Path>,
    args: &Args,
    out: &mut dyn Write,
) -> io::Result<Outcome> {
    let results = match session.run(scenario, name, dir, &|_| None) {
        Ok(results) => results,
        Err(outcome) => return Ok(outcome),
    };
    if args.json {
        let mut json = results.table.to_json(name, results.cpu_s);
        if let Some(contest) = &results.contest {
            for (row, result) in
                results.table.rows.iter().zip(json["results"].as_array_mut().into_iter().flatten())
            {
                result["shares"] = contest.to_json(row);
            }
        }
        if results.finished < results.planned {
            json["fingerprint"] = Value::Null;
            json["partial"] = json!({
                "finished": results.finished, "planned": results.planned, "resume": resuming(name, &results),
            });
        }
        writeln!(out, "{json}")?;
    } else {
        print(scenario, name, &results, out)?;
    }
    remark(&results, args.quiet, args.verbose);
    Ok(results.outcome)
}

/// Starts a session that runs `jobs` trials at a time, with the command line of this process as its
/// provenance, and installs the handler of Ctrl-C.
pub fn session(jobs: usize, frontend: &Terminal) -> Session<'_> {
    stop::listen();
    Session::new(jobs, frontend, provenance::command(), provenance::now())
}

/// Prints remarks on results on the standard error: files and the report, and if `verbose` is true the events
/// and the processor time.
pub fn remark(results: &Results, quiet: bool, verbose: bool) {
    if !quiet {
        results.remarks.iter().for_each(|remark| show::message(remark));
    }
    if !quiet || !results.all_exported {
        results.exported.iter().for_each(|text| show::message(text));
    }
    if let (Some(report), false) = (&results.report, quiet) {
        show::message(&format!("the report is {}", report.display()));
    }
    if verbose {
        show::message(&format!("{} events, {:.2} s of processor time", results.table.events, results.cpu_s));
    }
}

/// Formats a time in seconds, with at most one decimal.
fn seconds(span: giveway_qdisc::Span) -> String {
    // Runs of a fabric last milliseconds.
    let short = !span.is_zero() && span < giveway_qdisc::Span::ms(100);
    let (value, unit) = if short { (span.as_s() * 1e3, "ms") } else { (span.as_s(), "s") };
    let text = format!("{value:.1}");
    format!("{} {unit}", text.strip_suffix(".0").unwrap_or(&text))
}

/// Formats a time of a scenario: in slots for a switch, otherwise in seconds.
fn length(scenario: &Scenario, span: giveway_qdisc::Span) -> String {
    match &scenario.backend {
        Backend::Network(_) | Backend::Live(_) => seconds(span),
        Backend::Switch(crossbar) => format!("{} slots", span.as_ps() / crossbar.slot.as_ps()),
    }
}

/// Describes the measured ports.
fn ports(backend: &Backend) -> String {
    match backend {
        Backend::Network(network) => {
            let port = |id: &PortId| &network.ports[id.0 as usize];
            let names: Vec<&str> = network.measured.iter().take(3).map(|id| port(id).name.as_str()).collect();
            let more = if network.measured.len() > names.len() { ", ..." } else { "" };
            let first = port(&network.measured[0]);
            let named = match network.contest {
                Some(_) => format!("{} links", network.measured.len()),
                None => format!("{}{more}", names.join(", ")),
            };
            let mbit = |bit: u64| bit as f64 / 1e6;
            let rate = match &first.impairments.rate {
                None => first.rate.to_string(),
                Some(profile) if profile.bursts() => {
                    format!("{:.1} Mbit/s on average, in bursts", mbit(first.rate.as_bit()))
                }
                Some(profile) => format!(
                    "{:.1} Mbit/s on average, {:.1} to {:.1} Mbit/s",
                    mbit(first.rate.as_bit()),
                    mbit(profile.least()),
                    mbit(profile.most())
                ),
            };
            format!("{named} at {rate}")
        }
        Backend::Switch(crossbar) => {
            let Crossbar { ports, rate, slot, .. } = crossbar;
            format!("switch of {ports} x {ports} ports at {rate}, slots of {slot}")
        }
        Backend::Live(live) => {
            let port = |direction: &Direction| &live.network.ports[direction.port.0 as usize];
            format!("{} at {}, real hosts on this machine", port(&live.forward).name, live.forward.rate)
        }
    }
}

/// Prints the title of a scenario, its settings, its table, and the fingerprint of its results.
pub fn print(scenario: &Scenario, name: &str, results: &Results, out: &mut dyn Write) -> io::Result<()> {
    let Results { table, contest, finished, planned, plot, .. } = results;
    let title = if scenario.title.is_empty() { name } else { &scenario.title };
    writeln!(out, "{}", terminal::bold(title))?;
    writeln!(
        out,
        "{}, {}, measured from {} on, {}{}",
        ports(&scenario.backend),
        length(scenario, scenario.duration),
        length(scenario, scenario.warmup),
        match scenario.seeds.len() {
            1 => format!("seed {}", scenario.seeds[0]),
            seeds => format!("{seeds} seeds"),
        },
        match scenario.network() {
            Some(network) if network.timing.handling.is_zero() => ", phases exact",
            Some(_) => ", phases sampled",
            None => "",
        }
    )?;
    writeln!(out)?;
    if *finished > 0 {
        let style = Style { width: terminal::width(), ascii: false, detailed: false };
        match contest {
            Some(contest) => write!(out, "{}", contest.render(table, style))?,
            None => {
                write!(out, "{}{}", table.render(style), table.render_classes(style))?;
                write!(out, "{}", table.render_sources(style))?;
            }
        }
        if finished == planned {
            let found = match contest {
                Some(contest) => contest.findings(table),
                None => findings(table),
            };
            if !found.is_empty() {
                writeln!(out)?;
            }
            found.iter().try_for_each(|sentence| write!(out, "{}", terminal::paragraph(sentence, "", "")))?;
        }
        if let Some(plot) = plot {
            write!(out, "\n{}", plot.render(style))?;
        }
        writeln!(out)?;
    }
    if finished == planned {
        return writeln!(out, "fingerprint {}", table.fingerprint);
    }
    writeln!(out, "This run is partial: {finished} of {planned} trials finished, so it has no fingerprint.")?;
    if *finished > 0 && results.report.is_none() {
        writeln!(out, "Its trials are not kept. This command begins again, and keeps what finishes:")?;
    } else {
        writeln!(out, "This command resumes it:")?;
    }
    writeln!(out, "  {}", resuming(name, results))
}

/// The command that resumes a partial run. Without a folder it is the same command with one.
fn resuming(name: &str, results: &Results) -> String {
    let command = provenance::command();
    match &results.report {
        None if results.finished > 0 => format!("{command} --out runs/{name}"),
        _ => command,
    }
}
