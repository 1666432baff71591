//! `giveway testbed`: runs a scenario with real hosts on this machine.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use clap::value_parser;
use giveway_observe::layout;
use giveway_program::other;
use giveway_qdisc::Span;
use giveway_runner::{Observe, Outcome, Results, RunnerError, Session, scenario_name};
use giveway_scenario::{Contender, Diagnostic, Live, Scenario, Severity, Trial};
use giveway_testbed::timing::{MachineLoad, Timing};
use giveway_testbed::{Bed, LATE, Ran, against};
use giveway_trials::identity_text;

use crate::error::CliError;
use crate::frontend::Terminal;
use crate::outputs::{Kind, may_write};
use crate::run::{print, remark, session};
use crate::scenario_args::ScenarioArgs;
use crate::{provenance, show};

/// Runs a scenario with backend = "live" on real hosts of this machine.
///
/// The hosts are network namespaces with the TCP and UDP of the kernel; a `giveway live` between them is the
/// router. The applications generate the simulator's traffic, arrival by arrival, and measure its times. All
/// interfaces and namespaces are removed at the end, even if the program is killed. Existing interfaces are
/// not changed. Needs root, ip and ethtool.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Scenario file
    #[arg(value_name = "FILE", required_unless_present = "measure_timing")]
    file: Option<PathBuf>,
    /// Run no scenario, but measure how late threads of this machine wake up: after a timer, and after the
    /// arrival of a packet. Print a table for an idle machine and for one with a busy core, and write the
    /// distributions of the idle machine to this file (CSV: what, share, delay). Needs no root, but real-time
    /// priority does
    #[arg(long, help_heading = TIMING, value_name = "CSV",
          conflicts_with_all = ["file", "against_simulation", "out", "seeds", "objects", "pcap", "trace", "set", "json", "short"])]
    measure_timing: Option<PathBuf>,
    /// Write the distributions with one busy core instead
    #[arg(long, help_heading = TIMING, requires = "measure_timing")]
    busy: bool,
    /// Wake-ups of each thread; a thousand take a second
    #[arg(long, help_heading = TIMING, value_name = "N", default_value_t = 10_000, requires = "measure_timing",
          value_parser = value_parser!(u32).range(100..=1_000_000))]
    wake_ups: u32,
    /// Also simulate the scenario, with the same seeds, and compare the results
    #[arg(long)]
    against_simulation: bool,
    /// Keep results, time series and a report in this folder. Trials that the folder already has are not
    /// repeated. A folder with other contents is refused
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Run with seeds 1 to N [default: the seeds of the scenario]
    #[arg(long, value_name = "N", value_parser = value_parser!(u32).range(1..=1000))]
    seeds: Option<u32>,
    /// Attempts for each run, if the machine is too busy to trust its times
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = value_parser!(u32).range(1..=100))]
    attempts: u32,
    /// Folder with compiled objects for bpf: disciplines, as `giveway kernel build` writes them
    /// (giveway_efd.o) [default: compile them]
    #[arg(long, value_name = "DIR")]
    objects: Option<PathBuf>,
    /// Write the packets at the interface of the near hosts to this file (pcapng, 96 bytes of each packet).
    /// The scenario must have one discipline and one seed. Needs tcpdump
    #[arg(long, value_name = "FILE")]
    pcap: Option<PathBuf>,
    /// Write every operation of the router's disciplines to this file, for `giveway replay-check`. The
    /// scenario must have one discipline, which runs in giveway, and one seed
    #[arg(long, value_name = "FILE")]
    trace: Option<PathBuf>,
    #[command(flatten)]
    scenario: ScenarioArgs,
    /// Replace the folder of --out and the file of --pcap, whatever they contain. Each removed file is named;
    /// files that Giveway does not write stay
    #[arg(long)]
    force: bool,
    /// Print JSON instead of tables; times are in seconds, rates in bit/s
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

/// Heading of the flags of a measurement in `--help`.
const TIMING: &str = "Timing of this machine";

const EXAMPLES: &str = "\
Examples:
  giveway testbed scenarios/testbed/quickstart.toml
  giveway testbed scenarios/testbed/mixed-10.toml --against-simulation --seeds 5 --out runs/mixed-10
  giveway testbed scenarios/testbed/quickstart.toml --set 'disciplines=[\"kernel:fq_codel\", \"bpf:efd\"]'
  giveway testbed examples/home-uplink.toml --pcap home.pcapng
  giveway testbed --measure-timing timing.csv    # a minute; leave the machine alone for that time

Exit codes: 0 success, 1 a run failed, 2 wrong usage, an invalid scenario or a missing prerequisite, 130 interrupted.";

/// Runs `giveway testbed`.
pub fn testbed(args: &Args, out: &mut dyn Write) -> Result<Outcome, CliError> {
    match (&args.measure_timing, &args.file) {
        (Some(csv), _) => measure_timing(args, csv, out),
        (None, Some(file)) => run_on_hosts(args, file, out),
        (None, None) => unreachable!("the parser requires one of them"),
    }
}

/// Measures how late threads of this machine wake up.
fn measure_timing(args: &Args, csv: &Path, out: &mut dyn Write) -> Result<Outcome, CliError> {
    may_write(csv, Kind::Timing, args.force)?;
    if !args.quiet {
        // Two loads, three threads, a millisecond per wake-up.
        let seconds = (6 * args.wake_ups).div_ceil(1000);
        show::message(&format!("measures for about {seconds} s; leave the machine alone for that time"));
    }
    let timing = Timing::measure(args.wake_ups, &mut |_| true)?.expect("it is not stopped");
    if let (Some(why), false) = (&timing.unprivileged, args.quiet) {
        show::message(&format!("the live path was measured without real-time priority: {why}"));
    }
    let load = if args.busy { MachineLoad::OneBusyCore } else { MachineLoad::Idle };
    if let Err(error) = giveway_record::report::write(csv, &timing.csv(load, &provenance::now())) {
        show::message(&giveway_record::chain(&error));
        return Ok(Outcome::Failed);
    }
    write!(out, "{}", timing.table())?;
    if !args.quiet {
        show::message(&format!("wrote {}", csv.display()));
    }
    Ok(Outcome::Done)
}

/// Runs a scenario on the test bed.
fn run_on_hosts(args: &Args, scenario_file: &Path, out: &mut dyn Write) -> Result<Outcome, CliError> {
    let scenario = args.scenario.read_as(scenario_file, args.short, args.seeds)?;
    let Some(live) = scenario.live() else {
        let file = scenario_file.display();
        return Err(CliError::Usage(format!(
            "{file} is for a simulation: write giveway run {file}, or --set backend=live"
        )));
    };
    if args.against_simulation && !live.compared.iter().any(|one| matches!(one, Contender::Ours(_))) {
        let message =
            "--against-simulation: the simulator has no disciplines of the kernel: add one of giveway list";
        return Err(CliError::Usage(message.to_owned()));
    }
    for (flag, file, kind) in [("--pcap", &args.pcap, Kind::Capture), ("--trace", &args.trace, Kind::Trace)] {
        let Some(file) = file else { continue };
        let trials = scenario.trials().len();
        if trials != 1 {
            return Err(CliError::Usage(format!(
                "{flag} captures one run, and the scenario has {trials}: add --seeds 1 --set 'disciplines=[\"{}\"]'",
                live.names()[0]
            )));
        }
        may_write(file, kind, args.force)?;
    }
    if args.trace.is_some() && !matches!(live.compared[0], Contender::Ours(_)) {
        let message = "--trace: the kernel writes no trace: choose a discipline of giveway list";
        return Err(CliError::Usage(message.to_owned()));
    }
    if !args.quiet {
        args.scenario.warn(&scenario);
    }
    giveway_testbed::ready()
        .and_then(|()| giveway_testbed::has_tcp(live))
        .and_then(|()| args.pcap.as_ref().map_or(Ok(()), |_| giveway_testbed::pcap::ready()))?;
    if let Some((queue, error)) = giveway_testbed::lacks_bpf(live) {
        show::diagnostics(
            scenario.origin(),
            &[Diagnostic {
                severity: Severity::Error,
                span: queue.place.clone(),
                message: error.to_string(),
                label: String::new(),
                help: None,
            }],
            args.scenario.most(),
        );
        return Ok(Outcome::Wrong);
    }
    let program = other::find(other::NET)?;
    // One run at a time, since simultaneous runs would delay each other.
    let frontend = Terminal { quiet: args.quiet };
    let real = session(1, &frontend).replacing(args.force);
    let name = scenario_name(scenario_file);
    let within = |part: &str| match args.against_simulation {
        true => args.out.as_ref().map(|dir| dir.join(part)),
        false => args.out.clone(),
    };
    if let (Some(dir), true) = (&args.out, args.against_simulation) {
        may_keep(dir, args.force)?;
    }
    // A folder that is refused is reported before the test bed runs.
    let simulation = within("simulation").filter(|_| args.against_simulation).zip(scenario.simulated());
    if let Some(outcome) =
        simulation.and_then(|(dir, simulated)| real.refused(&identity_text(&simulated), &dir))
    {
        return Ok(outcome);
    }
    let kept = within("reality").map(|dir| dir.join("router"));
    let (objects, pcap) = (args.objects.clone(), args.pcap.clone());
    let trace = args.trace.clone();
    let bed = Bed { program, attempts: args.attempts, keep: kept, objects, pcap, trace };
    let dir = within("reality");
    let (done, missing) = match reality(&real, &bed, &scenario, live, &name, dir.as_deref(), args.quiet) {
        Ok(done) => done,
        Err(outcome) => return Ok(outcome),
    };
    let mut outcome = if missing { Outcome::Wrong } else { done.outcome };
    if args.json && !args.against_simulation {
        writeln!(out, "{}", done.table.to_json(&name, done.cpu_s))?;
    } else if !args.json {
        print(&scenario, &name, &done, out)?;
    }
    remark(&done, args.quiet, args.verbose);
    if args.against_simulation && done.finished > 0 && outcome != Outcome::Interrupted {
        let simulated = scenario.simulated().expect("a scenario of a test bed can be simulated");
        let simulation = match real.run(&simulated, &name, within("simulation").as_deref(), &|_| None) {
            Ok(done) => done,
            Err(outcome) => return Ok(outcome),
        };
        outcome = outcome.max(simulation.outcome);
        let lines = against::lay(&done.table, &simulation.table);
        if args.json {
            writeln!(out, "{}", against::json(&lines))?;
        } else {
            writeln!(out, "\nSimulation against reality\n\n{}", against::text(&lines))?;
        }
        if let Some(dir) = &args.out {
            outcome = outcome.max(keep(dir, &scenario, &name, &lines));
        }
    }
    Ok(outcome)
}

/// The largest 99th percentiles of lateness among all runs.
#[derive(Default)]
struct Worst {
    sources: Span,
    router: Span,
}

impl Worst {
    fn update(&mut self, sources: Span, router: Span) {
        *self = Worst { sources: self.sources.max(sources), router: self.router.max(router) };
    }
}

/// Formats a time in milliseconds.
fn ms(span: Span) -> String {
    format!("{:.2} ms", span.as_s() * 1e3)
}

/// The remarks on a run: whether it can be trusted, and the remarks of its sources and its router.
fn marks_of(ran: &Ran, trial: &Trial) -> Vec<String> {
    let Trial { name, seed, .. } = trial;
    let remarks = ran.remarks.iter().map(|remark| format!("{name}, seed {seed}: {remark}"));
    lateness_of(ran, trial).into_iter().chain(remarks).collect()
}

/// A remark on a run that cannot be trusted, or took several attempts.
pub fn lateness_of(ran: &Ran, trial: &Trial) -> Option<String> {
    let (sources, router) = (ms(ran.lateness.p99()), ms(ran.router_late.unwrap_or_default()));
    let Trial { name, seed, .. } = trial;
    if ran.too_late() {
        return Some(format!(
            "{name}, seed {seed}: do not trust this run: the machine was too busy in all {} attempts (99th \
             percentile of the lateness of sources {sources}, of frames {router}; the limit is {LATE})",
            ran.attempt
        ));
    }
    let again =
        format!("{name}, seed {seed}: attempt {}, since the machine was too busy before", ran.attempt);
    (ran.attempt > 1).then_some(again)
}

/// Runs every trial on the test bed. The second result is true if a prerequisite is missing.
fn reality(
    session: &Session<'_>,
    bed: &Bed,
    scenario: &Scenario,
    live: &Live,
    name: &str,
    dir: Option<&Path>,
    quiet: bool,
) -> Result<(Results, bool), Outcome> {
    // Remarks on runs, in the order of the runs.
    let marks: Mutex<Vec<String>> = Mutex::new(Vec::new());
    let mark = |text: String| marks.lock().expect("no thread panics while it holds the lock").push(text);
    let worst: Mutex<Worst> = Mutex::default();
    let missing = AtomicBool::new(false);
    let captured = AtomicBool::new(false);
    let on_the_bed: &Observe<'_> = &|trial, keep_series, keep_running| {
        if missing.load(Ordering::Relaxed) {
            return Ok(None); // An earlier trial has reported it.
        }
        let plan = layout(scenario, keep_series);
        match bed.run(live, trial, &plan, keep_running) {
            Ok(Some(ran)) => {
                captured.store(true, Ordering::Relaxed);
                let (sources, router) = (ran.lateness.p99(), ran.router_late.unwrap_or_default());
                worst.lock().expect("no thread panics while it holds the lock").update(sources, router);
                marks_of(&ran, trial).into_iter().for_each(mark);
                Ok(Some((ran.record, Vec::new())))
            }
            Ok(None) => Ok(None),
            Err(error) => {
                missing.fetch_or(error.is_missing(), Ordering::Relaxed);
                Err(error.into())
            }
        }
    };
    let find = |_: &giveway_measure::Table| {
        let marks = marks.lock().expect("no thread panics while it holds the lock");
        (!marks.is_empty())
            .then(|| giveway_record::Conclusion { findings: marks.clone(), ..Default::default() })
    };
    let done = session.run_by(scenario, name, dir, &find, on_the_bed)?;
    if !quiet {
        done.findings.iter().for_each(|mark| show::message(mark));
    }
    let Worst { sources, router } = worst.into_inner().expect("no thread panicked while it held the lock");
    if !quiet && done.finished > 0 {
        let (sources, router) = (ms(sources), ms(router));
        show::message(&format!(
            "99th percentile of the lateness in the worst run: sources {sources}, frames {router}"
        ));
    }
    if let (Some(file), true) = (&bed.pcap, done.finished > 0) {
        let file = file.display();
        if !captured.load(Ordering::Relaxed) {
            let message =
                format!("--pcap: the folder has this run already, so {file} was not written: add --force");
            show::message(&message);
        } else if !quiet {
            show::message(&format!("--pcap: wrote {file}"));
        }
    }
    let missing = missing.load(Ordering::Relaxed);
    Ok((done, missing))
}

/// The files of the comparison with the simulation, next to the folders of both runs.
const AGAINST: [(&str, Kind); 2] = [("against.md", Kind::AgainstText), ("against.json", Kind::AgainstJson)];

/// Checks that both files of the comparison with the simulation may be written in `dir`.
fn may_keep(dir: &Path, force: bool) -> Result<(), RunnerError> {
    AGAINST.iter().try_for_each(|(file, kind)| may_write(&dir.join(file), *kind, force))
}

/// Writes the comparison with the simulation next to the folders of both runs.
fn keep(dir: &Path, scenario: &Scenario, name: &str, lines: &[against::Line]) -> Outcome {
    let title = if scenario.title.is_empty() { name } else { &scenario.title };
    let about = format!("{title}: {} s, {} seeds.", scenario.duration.as_s(), scenario.seeds.len());
    let json = format!("{:#}\n", against::json(lines));
    let texts = [against::markdown(&about, lines), json];
    for ((file, _), text) in AGAINST.iter().zip(texts) {
        if let Err(error) = giveway_record::report::write(&dir.join(file), &text) {
            show::message(&giveway_record::chain(&error));
            return Outcome::Failed;
        }
    }
    Outcome::Done
}
