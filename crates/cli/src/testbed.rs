//! `giveway testbed`: runs a scenario with real hosts on this machine.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use clap::value_parser;
use giveway_papers::layout;
use giveway_qdisc::Span;
use giveway_runner::{Observe, Outcome, Results, Session, question, scenario_name};
use giveway_scenario::{Contender, Diagnostic, Live, Scenario, Severity, Trial};
use giveway_testbed::{Bed, LATE, against};

use crate::frontend::Terminal;
use crate::outputs::{Kind, may_write};
use crate::run::{print, remark, session};
use crate::{check, show};

/// Runs a scenario with host = "live" on real hosts: network namespaces of this machine, our router between them, and real
/// TCP and UDP.
///
/// The traffic is that of the simulator, arrival by arrival; times are measured by the applications. Everything is removed at the
/// end, also after a kill, and nothing that was there before is touched. Needs root, ip and ethtool.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Scenario file
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Simulate the same, with the same seeds, and lay the results side by side
    #[arg(long)]
    against_simulation: bool,
    /// Keep everything in this folder, and resume what is there. A folder that holds something else is refused
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Run with seeds 1 to N
    #[arg(long, value_name = "N", value_parser = value_parser!(u32).range(1..=1000))]
    seeds: Option<u32>,
    /// How often a run is tried while the machine is too busy
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = value_parser!(u32).range(1..=100))]
    attempts: u32,
    /// Take what bpf: loads from here, where giveway kernel build put it (giveway_efd.o), instead of compiling it
    #[arg(long, value_name = "DIR")]
    objects: Option<PathBuf>,
    /// Change something, as in link.1.rate=5mbit or traffic.upload.flows=3; may be repeated
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<String>,
    /// Replace what is at --out although it is something else. Names each thing that it removes, and leaves what Giveway does
    /// not write
    #[arg(long)]
    force: bool,
    /// Print JSON instead of tables
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
  giveway testbed scenarios/testbed/quickstart.toml
  giveway testbed scenarios/testbed/mixed-10.toml --against-simulation --seeds 5 --out runs/mixed-10
  giveway testbed scenarios/testbed/quickstart.toml --set 'disciplines=[\"kernel:fq_codel\", \"bpf:efd\"]'

Exit codes: 0 all is well, 1 a run failed, 2 wrong usage, a wrong scenario, or something is missing here, 130 interrupted.";

/// Does it.
pub fn testbed(args: &Args, out: &mut dyn Write) -> io::Result<Outcome> {
    let Some(scenario) = check::read_as(&args.file, &args.set, args.short, args.seeds) else {
        return Ok(Outcome::Wrong);
    };
    let Some(live) = scenario.live() else {
        let file = args.file.display();
        show::sentence(&format!("{file} is for a simulation: write giveway run {file}, or --set host=live"));
        return Ok(Outcome::Wrong);
    };
    if args.against_simulation && !live.compared.iter().any(|one| matches!(one, Contender::Ours(_))) {
        show::sentence("the kernel's disciplines are not in the simulator: compare one of ours, too");
        return Ok(Outcome::Wrong);
    }
    if !args.quiet {
        show::diagnostics(scenario.origin(), &scenario.warnings);
    }
    if let Err(error) = giveway_testbed::ready().and_then(|()| giveway_testbed::has_tcp(live)) {
        show::sentence(&error.to_string());
        return Ok(Outcome::Wrong);
    }
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
        );
        return Ok(Outcome::Wrong);
    }
    let program = std::env::current_exe()?;
    // One run at a time: they would be in each other's way.
    let frontend = Terminal { quiet: args.quiet };
    let real = match session(Some(1), &frontend) {
        Ok(real) => real.replacing(args.force),
        Err(sentence) => {
            show::sentence(&sentence);
            return Ok(Outcome::Failed);
        }
    };
    let name = scenario_name(&args.file);
    let within = |part: &str| match args.against_simulation {
        true => args.out.as_ref().map(|dir| dir.join(part)),
        false => args.out.clone(),
    };
    if let (Some(dir), true) = (&args.out, args.against_simulation)
        && let Err(sentence) = may_keep(dir, args.force)
    {
        show::sentence(&sentence);
        return Ok(Outcome::Wrong);
    }
    // Known before the test bed runs, not after.
    let simulation = within("simulation").filter(|_| args.against_simulation).zip(scenario.simulated());
    if let Some(outcome) = simulation.and_then(|(dir, simulated)| real.refused(&question(&simulated), &dir)) {
        return Ok(outcome);
    }
    let kept = within("reality").map(|dir| dir.join("router"));
    let bed = Bed { program, attempts: args.attempts, keep: kept, objects: args.objects.clone() };
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
    remark(&done, args.json, args.quiet);
    if args.against_simulation && done.finished > 0 && outcome != Outcome::Interrupted {
        let simulated = scenario.simulated().expect("it is of a test bed");
        // The handler of Ctrl-C is there already, and threads are many again.
        let done_again = match real.run(&simulated, &name, within("simulation").as_deref(), &|_| None) {
            Ok(done) => done,
            Err(outcome) => return Ok(outcome),
        };
        outcome = outcome.max(done_again.outcome);
        let lines = against::lay(&done.table, &done_again.table);
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

/// The latest of all runs, at the 99th percentile of each.
#[derive(Default)]
struct Worst {
    sources: Span,
    router: Span,
}

impl Worst {
    fn see(&mut self, sources: Span, router: Span) {
        *self = Worst { sources: self.sources.max(sources), router: self.router.max(router) };
    }
}

/// A time for people.
fn ms(span: Span) -> String {
    format!("{:.2} ms", span.as_s() * 1e3)
}

/// Every trial on the test bed, and whether the machine lacks something that they need.
fn reality(
    session: &Session<'_>,
    bed: &Bed,
    scenario: &Scenario,
    live: &Live,
    name: &str,
    dir: Option<&Path>,
    quiet: bool,
) -> Result<(Results, bool), Outcome> {
    // What was said about runs, in their order.
    let marks: Mutex<Vec<String>> = Mutex::new(Vec::new());
    let mark = |sentence: String| marks.lock().expect("nobody panics while holding it").push(sentence);
    let worst: Mutex<Worst> = Mutex::default();
    let missing = AtomicBool::new(false);
    let on_the_bed: &Observe<'_> = &|trial, keep_series, go_on| {
        if missing.load(Ordering::Relaxed) {
            return Ok(None); // it was said, and would be said again
        }
        let plan = layout(scenario, keep_series);
        match bed.run(live, trial, &plan, go_on) {
            Ok(Some(ran)) => {
                let (sources, router) = (ran.lateness.p99(), ran.router_late.unwrap_or_default());
                worst.lock().expect("nobody panics while holding it").see(sources, router);
                let (sources, router) = (ms(sources), ms(router));
                let Trial { name, seed, .. } = trial;
                if ran.too_late() {
                    mark(format!(
                        "{name}, seed {seed}: the machine was too busy in all {} attempts (one source in a hundred \
                         was woken {sources} late or later, one frame in a hundred sent {router} late; {LATE} is the \
                         limit): do not trust this run",
                        ran.attempt
                    ));
                } else if ran.attempt > 1 {
                    mark(format!(
                        "{name}, seed {seed}: the machine was too busy at first, attempt {}",
                        ran.attempt
                    ));
                }
                ran.remarks.iter().for_each(|remark| mark(format!("{name}, seed {seed}: {remark}")));
                Ok(Some((ran.record, Vec::new())))
            }
            Ok(None) => Ok(None),
            Err(error) => {
                missing.fetch_or(error.is_missing(), Ordering::Relaxed);
                Err(error.to_string())
            }
        }
    };
    let find = |_: &giveway_measure::Table| {
        let marks = marks.lock().expect("nobody panics while holding it");
        (!marks.is_empty()).then(|| marks.clone())
    };
    let done = session.run_by(scenario, name, dir, &find, on_the_bed)?;
    done.findings.iter().for_each(|mark| show::sentence(mark));
    let Worst { sources, router } = worst.into_inner().expect("nobody panicked while holding it");
    if !quiet && done.finished > 0 {
        let (sources, router) = (ms(sources), ms(router));
        show::sentence(&format!(
            "in the worst run one source in a hundred was woken {sources} late or later, and one frame in a hundred \
             sent {router} late or later"
        ));
    }
    let missing = missing.load(Ordering::Relaxed);
    Ok((done, missing))
}

/// The files beside the two folders.
const AGAINST: [(&str, Kind); 2] = [("against.md", Kind::AgainstText), ("against.json", Kind::AgainstJson)];

/// Checks that both files of the comparison with the simulation may be written in `dir`.
fn may_keep(dir: &Path, force: bool) -> Result<(), String> {
    AGAINST.iter().try_for_each(|(file, kind)| may_write(&dir.join(file), *kind, force))
}

/// Writes the comparison beside the two folders.
fn keep(dir: &Path, scenario: &Scenario, name: &str, lines: &[against::Line]) -> Outcome {
    let title = if scenario.title.is_empty() { name } else { &scenario.title };
    let about = format!("{title}: {} s, {} seeds.", scenario.duration.as_s(), scenario.seeds.len());
    let json = format!("{:#}\n", against::json(lines));
    let texts = [against::markdown(&about, lines), json];
    for ((file, _), text) in AGAINST.iter().zip(texts) {
        if let Err(error) = giveway_record::report::write(&dir.join(file), &text) {
            show::sentence(&error.to_string());
            return Outcome::Failed;
        }
    }
    Outcome::Done
}
