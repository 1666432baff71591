//! A capture over links of other rates, with each of several disciplines.
//!
//! The capture becomes a workload: the requests, responses and think times of its applications ([`Mode::Flows`]), or its packets
//! at their times ([`Mode::Replay`]). For each link the workload becomes a scenario that anybody can run again, and the tables
//! of its runs become findings.

mod capture;
mod findings;
mod link;

use std::io;
use std::path::{Path, PathBuf};

use giveway_disciplines::{ALL, Spec};
use giveway_measure::Table;
use giveway_qdisc::{LinkContext, Rate, Span, Streams};
use giveway_scenario::Scenario;
use giveway_workload::{Direction, Local};

use crate::report::write_report;
use crate::session::scenario_name;
use crate::{Frontend, Outcome, Results, RunnerError, Session, chain};

pub use capture::Capture;
pub use link::Link;

/// The behaviour of the simulated senders.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Applications transfer the captured data over TCP, which reacts to the link.
    Flows,
    /// Packets arrive when they were captured, and no sender reacts.
    Replay,
}

/// The disciplines that are compared by default. The fifo is about as long as that of a home router.
pub const DEFAULT: [&str; 5] = ["fifo limit 100p", "fq_codel", "pie", "drr limit 100p", "efd limit 100p"];

/// The longest round trip that is accepted: two hops over a geostationary satellite and back take two seconds.
const LONGEST_RTT: Span = Span::s(10);

/// The request for a comparison.
pub struct Request {
    /// A pcap or pcapng file.
    pub capture: PathBuf,
    /// The behaviour of the senders.
    pub mode: Mode,
    /// The disciplines, the first of which is the baseline of the findings.
    pub specs: Vec<Spec>,
    /// The rates of each link, upstream and downstream.
    pub rates: Vec<(Rate, Rate)>,
    /// The round-trip time of every connection; `None` takes that of each connection in the capture.
    pub rtt: Option<Span>,
    /// The local side; `None` guesses it from the addresses.
    pub local: Option<Local>,
    /// Runs of each discipline; `None` is 5 for flows, 1 for replay.
    pub seeds: Option<u32>,
    /// The folder that keeps everything, if anything is kept.
    pub out: Option<PathBuf>,
    /// The file for the packets of the queues, if one is written.
    pub export: Option<PathBuf>,
    /// Outputs replace whatever is at their places.
    pub force: bool,
}

/// A comparison whose capture is read and whose places are checked.
pub struct Comparison {
    request: Request,
    links: Vec<Link>,
    capture: Capture,
    place: link::Place,
}

/// The end of a comparison.
pub struct Compared {
    /// The worst end of its runs.
    pub outcome: Outcome,
    /// The report of all links side by side, if there are several and they are kept.
    pub side_by_side: Option<PathBuf>,
}

impl Request {
    /// Checks the request, then reads the capture, which may take a while.
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
        if self.rates.iter().any(|(up, down)| up.as_bit() == 0 || down.as_bit() == 0) {
            let message = "--rate: a link of 0 sends nothing; write for example --rate 10mbit";
            return Err(refused(message.to_owned()));
        }
        let links: Vec<Link> =
            self.rates.iter().map(|(up, down)| Link { up: *up, down: *down, rtt: self.rtt }).collect();
        let place = link::Place::new(self.out.as_deref(), &links, self.force, frontend)?;
        let capture = Capture::read(&self.capture, self.local.as_ref(), frontend)?;
        capture.messages(&self.capture).iter().for_each(|message| frontend.remark(message));
        capture.check(self.mode)?;
        Ok(Comparison { request: self, links, capture, place })
    }
}

impl Comparison {
    /// The capture.
    pub fn capture(&self) -> &Capture {
        &self.capture
    }

    /// Runs every link and calls `each` with its results. The session gets the outputs of this request.
    ///
    /// # Errors
    /// When a run cannot start or the results cannot be shown. Results of earlier runs are kept.
    pub fn run(
        &self,
        mut session: Session<'_>,
        each: &mut dyn FnMut(&Link, &Results) -> io::Result<()>,
    ) -> Result<Compared, RunnerError> {
        let Request { mode, specs, out, export, force, .. } = &self.request;
        let frontend = session.frontend();
        let name = scenario_name(&self.request.capture);
        let files = self.place.files();
        session = session.replacing(*force);
        if *mode == Mode::Flows {
            let workload = link::keep(&self.capture.workload, files)?;
            session = session.keeping(link::WORKLOAD, workload);
        }
        let seeds = self.request.seeds.unwrap_or(if *mode == Mode::Flows { 5 } else { 1 });
        let mut outcome = Outcome::Done;
        let mut kept_in = Vec::new();
        for link in &self.links {
            let folder = self.place.folder(link, self.links.len());
            let text = link.scenario(&name, &self.request.capture, *mode, specs, seeds, &self.capture);
            let scenario = Scenario::parse(&text, files).map_err(Box::new)?;
            let own_file = |file: &PathBuf| if self.links.len() > 1 { link.file(file) } else { file.clone() };
            session = session.exporting(export.as_ref().map(own_file));
            let find = |table: &Table| Some(findings::of(table, *mode));
            let results = session
                .run(&scenario, &name, folder.as_deref(), &find)
                .map_err(|worst| RunnerError::Reported(outcome.max(worst)))?;
            each(link, &results).map_err(RunnerError::Output)?;
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
                Ok(()) => side_by_side = Some(place),
                Err(error) => {
                    frontend.message(&chain(&error));
                    outcome = outcome.max(Outcome::Failed);
                }
            }
        }
        Ok(Compared { outcome, side_by_side })
    }
}

/// Parses the names of disciplines; "all" stands for every discipline that can be in front of a link, and no names for
/// [`DEFAULT`]. Each discipline appears once.
///
/// # Errors
/// [`RunnerError::Usage`] for the first name that is wrong.
pub fn specs(texts: &[String]) -> Result<Vec<Spec>, RunnerError> {
    let mut specs: Vec<Spec> = Vec::new();
    let texts = match texts {
        [] => DEFAULT.map(str::to_owned).to_vec(),
        some => some.to_vec(),
    };
    for text in &texts {
        if text == "all" {
            specs.extend(all());
            continue;
        }
        let spec = text.parse();
        specs.push(spec.map_err(|error| RunnerError::Usage(format!("--qdisc \"{text}\": {error}")))?);
    }
    let mut seen: Vec<String> = Vec::new();
    specs.retain(|spec| {
        let text = spec.to_string();
        let new = !seen.contains(&text);
        seen.push(text);
        new
    });
    Ok(specs)
}

/// Every discipline that can be in front of a link without further parameters: those of [`DEFAULT`] with their parameters, and
/// no shapers, which would be a second link.
fn all() -> impl Iterator<Item = Spec> {
    let tuned = |name: &str| {
        let mut known = DEFAULT.iter().map(|text| text.parse::<Spec>().expect("a default can be parsed"));
        known.find(|spec| spec.name() == name)
    };
    let context = LinkContext::new(Rate::mbit(10), Streams::new(0));
    ALL.iter()
        .map(move |entry| tuned(entry.name).unwrap_or_else(entry.default))
        .filter(move |spec| spec.build_numbered(&context).is_ok() && spec.properties(&context).work_conserving)
}

/// The name of a direction in messages.
pub fn word(direction: Direction) -> &'static str {
    match direction {
        Direction::Up => "upstream",
        Direction::Down => "downstream",
    }
}

/// A path as messages show it.
fn shown(path: &Path) -> String {
    path.display().to_string()
}
