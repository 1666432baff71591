//! Comparison of disciplines with the traffic of a capture, over links of other rates.
//!
//! The traffic consists either of its applications' requests, responses and think times ([`Mode::Flows`]), or
//! its packets at their captured times ([`Mode::Replay`]). Each link becomes a scenario with this traffic,
//! which can be run again with `giveway run`, and the tables of its runs become findings.

#![forbid(unsafe_code)]

mod advice;
mod capture;
mod chosen;
mod copy;
mod deployed;
mod findings;
mod hours;
mod link;
mod live;
mod mode;
mod pair;
mod reading;
mod sides;
mod situation;
mod tables;
mod traffic;

use std::cell::OnceCell;
use std::io;
use std::path::{Path, PathBuf};

use ::giveway_capture::Pauses;
use giveway_measure::Table;
use giveway_qdisc::{LinkContext, Rate, Span, Streams};
use giveway_record::Conclusion;
use giveway_scenario::{Scenario, ScenarioError};
use giveway_sim::tcp::Congestion;
use giveway_workload::{Direction, Local};

use giveway_record::chain;
use giveway_runner::report::write_report;
use giveway_runner::scenario_name;
use giveway_runner::{Outcome, Results, RunnerError, Session};
use giveway_trials::Frontend;

pub use advice::{Advice, AdviceOptions, Block, Overhead, Target, Tried, ranking};
pub use capture::Capture;
pub use hours::Hours;
pub use link::Link;
pub use live::{Live, User};
pub use mode::{Mode, word};
pub use pair::{Pair, pairs};
pub use reading::Source;
pub use situation::{Situation, Trust};

/// The longest accepted round-trip time. Two hops over a geostationary satellite and back take 2 s.
const LONGEST_RTT: Span = Span::s(10);

/// The request for a comparison.
pub struct Request {
    /// The files of the capture.
    pub capture: Source,
    /// The behaviour of the senders.
    pub mode: Mode,
    /// The disciplines, the first of which is the baseline of the findings.
    pub pairs: Vec<Pair>,
    /// The rates of each link, upstream and downstream.
    pub rates: Vec<(Rate, Rate)>,
    /// The round-trip time of every connection; `None` takes each connection's from the capture.
    pub rtt: Option<Span>,
    /// The congestion control of every TCP connection; `None` is CUBIC, the default of most systems. A
    /// capture does not show it.
    pub congestion: Option<Congestion>,
    /// The local side; `None` guesses it from the addresses.
    pub local: Option<Local>,
    /// Options of the recommendation.
    pub advice: AdviceOptions,
    /// Runs of each discipline; `None` is 5 for flows, 20 for draws of stretches (10 if they are not asked
    /// for), 1 for replay.
    pub seeds: Option<u32>,
    /// The draws of stretches of the capture, another one for each seed.
    pub bootstrap: Bootstrap,
    /// True if a long capture is compared as a whole, and not its busy and idle hours apart.
    pub whole: bool,
    /// The folder for the results; `None` keeps none.
    pub out: Option<PathBuf>,
    /// The file for the packets of the queues; `None` writes none.
    pub export: Option<PathBuf>,
    /// True if outputs may replace any files at their places.
    pub force: bool,
}

/// The draws of stretches of the capture.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Bootstrap {
    /// Stretches of a tenth, if the capture is long and no single connection decides.
    #[default]
    WhereItSuits,
    /// Each seed replays the whole capture.
    Off,
    /// Stretches of a tenth of the capture, at least a second.
    Tenth,
    /// Stretches of about this length.
    Of(Span),
}

impl std::str::FromStr for Bootstrap {
    type Err = String;

    fn from_str(text: &str) -> Result<Bootstrap, String> {
        match text {
            "off" => Ok(Bootstrap::Off),
            text => text
                .parse()
                .map(Bootstrap::Of)
                .map_err(|error| format!("{error}; write the length of a stretch, for example 30s, or off")),
        }
    }
}

/// A part of the capture that is compared.
struct Part {
    /// Its hours; `None` for the whole capture.
    hours: Option<Hours>,
    capture: Capture,
}

/// A comparison that can run: the capture is read, and the outputs are checked.
pub struct Comparison {
    request: Request,
    links: Vec<Link>,
    capture: Capture,
    /// The parts that are compared; empty if it is the whole capture.
    parts: Vec<Part>,
    place: link::Place,
    /// The packets that are replayed, unless one whole file is.
    copy: Option<PathBuf>,
}

/// The findings and the recommendation for one link.
pub struct Reported {
    /// Sentences on the table.
    pub findings: Vec<String>,
    /// The recommendation; `None` if nothing was compared, or the capture does not allow one.
    pub advice: Option<Advice>,
    /// Facts about the capture and the link.
    pub situation: Situation,
}

/// The result of a comparison.
pub struct Compared {
    /// The worst outcome of its runs.
    pub outcome: Outcome,
    /// The path of the report on all links side by side; `None` with one link, or if nothing is kept.
    pub side_by_side: Option<PathBuf>,
}

impl Request {
    /// Checks the request, then reads the capture. A large capture takes a while.
    ///
    /// # Errors
    /// When the request, an output file or the capture cannot be used.
    pub fn begin(self, frontend: &dyn Frontend) -> Result<Comparison, RunnerError> {
        let refused = RunnerError::Usage;
        if let Some(rtt) = self.rtt.filter(|rtt| *rtt > LONGEST_RTT) {
            let message =
                format!("--rtt: no path has a round-trip time of {rtt}; write for example --rtt 30ms");
            return Err(refused(message));
        }
        if self.rtt.is_some() && self.mode == Mode::Replay {
            let message = "--rtt: a replay has no round-trip times, because no sender reacts; leave out --rtt or --mode replay";
            return Err(refused(message.to_owned()));
        }
        if matches!(self.bootstrap, Bootstrap::Tenth | Bootstrap::Of(_)) && self.mode == Mode::Replay {
            let message = "--bootstrap: a replay sends the packets of the whole capture; leave out --bootstrap or --mode replay";
            return Err(refused(message.to_owned()));
        }
        if self.congestion.is_some() && self.mode == Mode::Replay {
            let message =
                "--congestion: in a replay no sender reacts; leave out --congestion or --mode replay";
            return Err(refused(message.to_owned()));
        }
        if let Some(Err(error)) = self.congestion.as_ref().map(Congestion::check) {
            return Err(refused(format!("--congestion: {error}")));
        }
        if self.rates.iter().any(|(up, down)| up.as_bit() == 0 || down.as_bit() == 0) {
            let message = "--rate: a link with rate 0 sends nothing; write for example --rate 10mbit";
            return Err(refused(message.to_owned()));
        }
        let links: Vec<Link> = self
            .rates
            .iter()
            .map(|(up, down)| Link { up: *up, down: *down, rtt: self.rtt, resample: None, hours: None })
            .collect();
        let mut started = self.capture.start(frontend)?;
        let place = link::Place::new(self.out.as_deref(), &links, self.force, frontend)?;
        let copy = place.files().join(reading::PACKETS);
        let mut is_copied = self.mode == Mode::Replay && !self.capture.is_plain();
        let mut read = |copied: bool| {
            Capture::read(
                &self.capture,
                started.take(),
                self.local.as_ref(),
                copied.then_some(&*copy),
                frontend,
            )
        };
        let mut capture = read(is_copied)?;
        if self.mode == Mode::Replay && !is_copied && capture.pauses != Pauses::default() {
            // The times of the file are not those of the replay.
            is_copied = true;
            capture = read(true)?;
        }
        capture.messages(&self.capture).iter().for_each(|message| frontend.remark(message));
        if self.rates.is_empty() {
            return Err(refused(capture.rate_is_missing()));
        }
        capture.check(self.mode)?;
        let resample = self.bootstrap.stretch(&capture, self.mode)?;
        if let (Some(length), Bootstrap::WhereItSuits) = (resample, self.bootstrap) {
            frontend.remark(&format!(
                "each run draws stretches of {length} of the capture, so that intervals include how much its traffic varies; \
                 --bootstrap=off replays all of it in each run"
            ));
        }
        let parts = self.parts(&capture);
        for part in &parts {
            frontend.remark(&format!(
                "the {} are compared on their own; --whole compares all together",
                part.hours.as_ref().map_or("hours", |hours| &hours.words)
            ));
        }
        // Every link with each part: without parts, with the whole capture.
        let hours: Vec<Option<Hours>> = match parts.as_slice() {
            [] => vec![None],
            parts => parts.iter().map(|part| part.hours.clone()).collect(),
        };
        let of_link = |link: &Link| {
            let part = |hours: &Option<Hours>| Link { resample, hours: hours.clone(), ..link.clone() };
            hours.iter().map(part).collect::<Vec<_>>()
        };
        let links: Vec<Link> = links.iter().flat_map(of_link).collect();
        let copy = is_copied.then_some(copy);
        Ok(Comparison { request: self, links, capture, parts, place, copy })
    }

    /// The busy and the idle hours of a long capture, if they are compared apart.
    fn parts(&self, capture: &Capture) -> Vec<Part> {
        let hours = if self.whole || self.mode == Mode::Replay { None } else { capture.hours() };
        // The busy hours come last, because the commands at the end are theirs.
        let ordered = hours.map(|[busy, idle]| [idle, busy]);
        let part = |hours: Hours| Part { capture: capture.part(&hours), hours: Some(hours) };
        ordered.into_iter().flatten().map(part).collect()
    }
}

impl Comparison {
    /// The number of links.
    pub fn links(&self) -> usize {
        self.links.len()
    }

    /// The capture.
    pub fn capture(&self) -> &Capture {
        &self.capture
    }

    /// The part of the capture that crosses a link.
    fn part(&self, link: &Link) -> &Capture {
        let mine = |part: &&Part| part.hours == link.hours;
        self.parts.iter().find(mine).map_or(&self.capture, |part| &part.capture)
    }

    fn situation(&self, link: &Link) -> Situation {
        let capture = self.part(link);
        let resample = link.resample;
        let (missing, measured) = (capture.missing(), link.measured(capture));
        Situation { missing, measured, resample, overhead: capture.overhead() }
    }

    /// Runs every link and calls `each` with its results. The session gets the outputs of this request.
    ///
    /// # Errors
    /// When a run cannot start or the results cannot be shown. Results of earlier runs are kept.
    pub fn run(
        &self,
        mut session: Session<'_>,
        each: &mut dyn FnMut(&Link, &Capture, &Results, &Reported) -> io::Result<()>,
    ) -> Result<Compared, RunnerError> {
        let Request { mode, congestion, pairs, out, export, force, .. } = &self.request;
        let senders = link::Senders { mode: *mode, congestion: congestion.as_ref(), think: None };
        let frontend = session.frontend();
        let name = scenario_name(self.request.capture.first());
        let files = self.place.files();
        session = session.replacing(*force);
        if *mode == Mode::Flows {
            let workload = link::keep(&self.capture.workload, files)?;
            session = session.keeping(link::WORKLOAD, workload);
        }
        let replayed = match &self.copy {
            Some(copy) => {
                session = session.keeping(reading::PACKETS, copy.clone());
                Path::new(reading::PACKETS)
            }
            None => self.request.capture.first(),
        };
        let is_drawn = self.links.iter().any(|link| link.resample.is_some());
        let usual = match (mode, self.request.bootstrap) {
            (Mode::Replay, _) => 1,
            (Mode::Flows, Bootstrap::WhereItSuits) if is_drawn => 10,
            (Mode::Flows, _) if is_drawn => 20,
            (Mode::Flows, _) => 5,
        };
        let seeds = self.request.seeds.unwrap_or(usual);
        let mut outcome = Outcome::Done;
        let mut kept_in = Vec::new();
        for link in &self.links {
            let folder = self.place.folder(link, self.links.len());
            let capture = self.part(link);
            if link.hours.is_some() {
                session = session.keeping(link::WORKLOAD, link::keep(&capture.workload, files)?);
            }
            let text = link.scenario(&name, replayed, &senders, pairs, seeds, capture);
            let scenario = Scenario::parse(&text, files).map_err(|error| at_its_flag(pairs, link, error))?;
            let own_file = |file: &PathBuf| if self.links.len() > 1 { link.file(file) } else { file.clone() };
            session = session.exporting(export.as_ref().map(own_file));
            let situation = self.situation(link);
            let running = &session;
            let measure = |text: &str, title: &str| {
                let scenario = Scenario::parse(text, files);
                let scenario = scenario.map_err(|error| frontend.message(&chain(&error))).ok()?;
                running.measure(&scenario, &format!("{name}, {title}"))
            };
            let deploy_with = |shaped: &deployed::Shaped<'_>, senders: &link::Senders<'_>, title: &str| {
                let text = shaped.scenario(link, &name, replayed, (senders, seeds), capture);
                shaped.row(&measure(&text, title)?, link::NODES)
            };
            let deploy = |shaped: &deployed::Shaped<'_>| deploy_with(shaped, &senders, "as recommended");
            let rethink = |shaped: &deployed::Shaped<'_>, think: &'static str| {
                let senders = link::Senders { think: Some(think), ..senders };
                let first = std::slice::from_ref(shaped.line);
                let now = link.scenario(&name, replayed, &senders, first, seeds, capture);
                let now = measure(&now, &format!("now, {think} think times"))?.rows.into_iter().next()?;
                Some([now, deploy_with(shaped, &senders, &format!("as recommended, {think} think times"))?])
            };
            let report = |table: &Table| Reported {
                findings: findings::of(table, *mode, &situation)
                    .into_iter()
                    .chain(
                        pairs.first().filter(|_| pairs.len() > 1).and_then(|pair| link::buffers(pair, link)),
                    )
                    .collect(),
                advice: advice::of(&advice::Question {
                    table,
                    pairs,
                    planned: pairs.len() * seeds as usize,
                    link,
                    situation: &situation,
                    options: &self.request.advice,
                    deploy: &deploy,
                    rethink: capture.has_open_thinks().then_some(&rethink),
                }),
                situation,
            };
            let reported = OnceCell::new();
            let find = |table: &Table| {
                let Reported { findings, advice, .. } = reported.get_or_init(|| report(table));
                let titles = [Direction::Up, Direction::Down];
                Some(Conclusion {
                    findings: findings.clone(),
                    recommendation: advice.as_ref().map(Advice::recommendation),
                    port_titles: titles.map(|way| (Link::port(way), mode::word(way).to_owned())).into(),
                })
            };
            let results = session
                .run(&scenario, &name, folder.as_deref(), &find)
                .map_err(|worst| RunnerError::Reported(outcome.max(worst)))?;
            each(link, capture, &results, reported.get_or_init(|| report(&results.table)))
                .map_err(RunnerError::Output)?;
            outcome = outcome.max(results.outcome);
            kept_in.extend(folder.filter(|_| results.finished > 0));
            if frontend.stopped() {
                break;
            }
        }
        let mut side_by_side = None;
        if let (Some(out), 2..) = (out, kept_in.len()) {
            let place = out.join(giveway_record::REPORT);
            let dirs: Vec<&Path> = kept_in.iter().map(PathBuf::as_path).collect();
            match write_report(&dirs, &place, *force, frontend) {
                Ok(_) => side_by_side = Some(place),
                Err(error) => {
                    frontend.message(&chain(&error));
                    outcome = outcome.max(Outcome::Failed);
                }
            }
        }
        Ok(Compared { outcome, side_by_side })
    }
}

impl Bootstrap {
    /// The length of the stretches of a capture; `None` if each run replays all of it.
    fn stretch(self, capture: &Capture, mode: Mode) -> Result<Option<Span>, RunnerError> {
        const FEWEST: u64 = 5;
        let span = capture.span();
        // A whole number of seconds is easier to read.
        let tenth = Span::s(((span / 10).as_s().round() as u64).max(1));
        let length = match self {
            Bootstrap::Off => return Ok(None),
            Bootstrap::WhereItSuits if mode == Mode::Replay || !capture.can_be_drawn() => return Ok(None),
            Bootstrap::WhereItSuits | Bootstrap::Tenth => tenth,
            Bootstrap::Of(length) => length,
        };
        if length.is_zero() || length * FEWEST > span {
            let example = (span / (2 * FEWEST)).as_s();
            let example =
                if example >= 1.0 { Span::s(example as u64) } else { Span::ms((example * 1e3) as u64) };
            return Err(RunnerError::Usage(format!(
                "--bootstrap: the capture of {:.1} s has fewer than {FEWEST} stretches of {length}; write for example \
                 --bootstrap={}, or capture for longer",
                span.as_s(),
                example.max(Span::ms(1))
            )));
        }
        Ok(Some(length))
    }
}
/// The mistake in a scenario that was written from flags. A discipline that does not fit the link is named as
/// the user wrote it.
fn at_its_flag(pairs: &[Pair], link: &Link, error: ScenarioError) -> RunnerError {
    for pair in pairs {
        for direction in [Direction::Up, Direction::Down] {
            let context = LinkContext::new(link.rate(direction), Streams::new(0));
            let spec = pair.at(direction);
            if let Err(invalid) = spec.build_numbered(&context) {
                let flag = if pair.up == pair.down { "--qdisc" } else { flag(direction) };
                return RunnerError::Usage(format!("{flag} \"{spec}\": {invalid}"));
            }
        }
    }
    Box::new(error).into()
}

/// The flag of the discipline of a direction.
fn flag(direction: Direction) -> &'static str {
    match direction {
        Direction::Up => "--qdisc-up",
        Direction::Down => "--qdisc-down",
    }
}
