//! The link as a scenario, and the folder for its files.

use std::fs;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use giveway_files::Dir;
use giveway_measure::figures::TIME;
use giveway_qdisc::{Limit, LinkContext, Rate, Span, Streams};
use giveway_record::RunFolder;
use giveway_sim::tcp::Congestion;
use giveway_workload::{Direction, Workload};

use super::capture::Capture;
use super::hours::Hours;
use super::mode::{Mode, shown, word};
use super::pair::Pair;
use giveway_runner::RunnerError;
use giveway_runner::outputs::{Kind, existing, may_write, removing};
use giveway_trials::Frontend;

/// The link that the traffic of the capture crosses in the simulation.
#[derive(Clone, Debug)]
pub struct Link {
    /// The rate upstream, away from the local side.
    pub up: Rate,
    /// The rate downstream.
    pub down: Rate,
    /// The round-trip time of every connection; `None` takes the times of the capture.
    pub rtt: Option<Span>,
    /// The length of stretches of the capture that each seed draws; `None` replays the whole capture.
    pub resample: Option<Span>,
    /// The hours of the capture that cross the link; `None` stands for all of it.
    pub hours: Option<Hours>,
}

/// The behaviour of the senders.
pub struct Senders<'a> {
    /// The mode: applications or packets.
    pub mode: Mode,
    /// The congestion control of every TCP connection; `None` takes the preset's.
    pub congestion: Option<&'a Congestion>,
    /// The think times that are played where the capture leaves them open, as scenarios name them; `None`
    /// plays the likeliest ones.
    pub think: Option<&'static str>,
}

/// The IP length of a full packet, bytes.
const FULL: u64 = 1500;
/// The node of the local side.
const LOCAL: &str = "local";
/// The node of the far side.
const FAR: &str = "far";

/// Both ends of the line.
pub(super) const NODES: (&str, &str) = (LOCAL, FAR);

/// The file of the workload, next to the scenario that names it.
pub const WORKLOAD: &str = "workload.jsonl";

/// The folder for results, if they are kept, and a temporary folder for other files.
pub struct Place {
    out: Option<PathBuf>,
    /// True if the folder is new.
    made: bool,
    scratch: tempfile::TempDir,
}

impl Place {
    /// Creates the folder, after a check that it may be used for the results of these links.
    ///
    /// # Errors
    /// When a folder cannot be created or has other content, or another file is at the place of the report.
    pub fn new(
        out: Option<&Path>,
        links: &[Link],
        force: bool,
        frontend: &dyn Frontend,
    ) -> Result<Place, RunnerError> {
        let scratch = tempfile::Builder::new()
            .prefix("giveway-")
            .tempdir()
            .map_err(RunnerError::io("cannot create a folder for temporary files"))?;
        let Some(out) = out else { return Ok(Place { out: None, made: false, scratch }) };
        let place = Place { out: Some(out.to_owned()), made: !out.exists(), scratch };
        for folder in links.iter().filter_map(|link| place.folder(link, links.len())) {
            let removing = removing(frontend);
            RunFolder::inspect(&folder, None, existing(force, &removing))?;
        }
        if links.len() > 1 {
            may_write(&out.join(giveway_record::REPORT), Kind::Page, force, frontend)?;
        }
        Dir::create(out).map_err(RunnerError::io(format!("--out {}", shown(out))))?;
        Ok(place)
    }

    /// The folder for the results of one of `links` links; `None` if they are not kept. Several links get a
    /// folder each.
    pub fn folder(&self, link: &Link, links: usize) -> Option<PathBuf> {
        let out = self.out.as_ref()?;
        Some(if links == 1 { out.clone() } else { out.join(link.name()) })
    }

    /// The folder for files that the scenarios of all links name while they run.
    pub fn files(&self) -> &Path {
        self.scratch.path()
    }
}

impl Drop for Place {
    /// Removes a new folder if it is still empty.
    fn drop(&mut self) {
        if let (Some(out), true) = (&self.out, self.made) {
            let _ = fs::remove_dir(out);
        }
    }
}

/// Writes the workload into a folder, and returns the path of the file.
pub fn keep(workload: &Workload, folder: &Path) -> Result<PathBuf, RunnerError> {
    let path = folder.join(WORKLOAD);
    let write = || {
        let mut out = BufWriter::new(Dir::open(folder)?.new_file(WORKLOAD, 0o666)?);
        workload.write(&mut out)?;
        out.flush()
    };
    write().map_err(RunnerError::io(format!("cannot write the workload to {}", shown(folder))))?;
    Ok(path)
}

impl Link {
    /// The name of the port of this direction.
    pub fn port(direction: Direction) -> String {
        match direction {
            Direction::Up => format!("{LOCAL}->{FAR}"),
            Direction::Down => format!("{FAR}->{LOCAL}"),
        }
    }

    /// The name of the link in file names.
    fn name(&self) -> String {
        let hours = self.hours.as_ref().map_or(String::new(), |hours| format!("-{}", hours.name));
        let Link { up, down, .. } = self;
        if up == down { format!("{up}{hours}") } else { format!("{up}-{down}{hours}") }
    }

    /// The file of this link next to the files of other links: the name of the link is in front of
    /// the extension.
    pub fn file(&self, file: &Path) -> PathBuf {
        let part = |part: Option<&std::ffi::OsStr>| part.unwrap_or_default().to_string_lossy().into_owned();
        let (stem, ending) = (part(file.file_stem()), part(file.extension()));
        let dot = if ending.is_empty() { "" } else { "." };
        file.with_file_name(format!("{stem}-{}{dot}{ending}", self.name()))
    }

    /// The rate of this direction.
    pub fn rate(&self, direction: Direction) -> Rate {
        if direction == Direction::Up { self.up } else { self.down }
    }

    /// The rates of the link in titles.
    pub fn title(&self) -> String {
        let rates = if self.up == self.down {
            self.up.to_string()
        } else {
            format!("{} upstream, {} downstream", self.up, self.down)
        };
        self.hours.as_ref().map_or(rates.clone(), |hours| format!("{rates}, {}", hours.words))
    }

    /// The comparison as a scenario.
    pub fn scenario(
        &self,
        name: &str,
        file: &Path,
        senders: &Senders<'_>,
        pairs: &[Pair],
        seeds: u32,
        capture: &Capture,
    ) -> String {
        let line = line(self, pairs, NODES);
        let ports = self.ports(capture).map(Link::port);
        self.with_network(name, file, (senders, pairs, seeds), capture, (&line, &ports))
    }

    /// The scenario of these links, written in TOML, and of the ports that are recorded.
    pub(super) fn with_network(
        &self,
        name: &str,
        file: &Path,
        (senders, pairs, seeds): (&Senders<'_>, &[Pair], u32),
        capture: &Capture,
        (links, ports): (&str, &[String]),
    ) -> String {
        let specs: Vec<String> = pairs.iter().map(|pair| quoted(&pair.name())).collect();
        let ports: Vec<String> = ports.iter().map(|port| quoted(port)).collect();
        let (measured, duration) = self.times(capture);
        let head = format!(
            "title = {title}\n\
             description = {description}\n\
             duration = \"{duration}\"\n\
             warmup = \"0s\"\n\
             cooldown = \"{cooldown}\"\n\
             seeds = {seeds}\n\
             disciplines = [{specs}]\n\n\
             {links}\
             [record]\nport = [{ports}]\n",
            title = quoted(&format!("{name} at {}", self.title())),
            description = quoted(&capture.description(senders.mode)),
            duration = duration,
            cooldown = duration - measured,
            specs = specs.join(", "),
            ports = ports.join(", "),
        );
        let traffic = match senders.mode {
            Mode::Flows => self.applications(capture, senders),
            Mode::Replay => replays(file, capture),
        };
        head + &traffic
    }

    /// Both directions, the busier one first: it is the bottleneck in tables of one port.
    pub(super) fn ports(&self, capture: &Capture) -> [Direction; 2] {
        let load =
            |direction: Direction| capture.bytes(direction) as f64 / self.rate(direction).bytes_per_s();
        if load(Direction::Up) >= load(Direction::Down) {
            [Direction::Up, Direction::Down]
        } else {
            [Direction::Down, Direction::Up]
        }
    }

    /// The lengths of the measurement interval and of the run. The interval is the span of the capture, or
    /// the time that twice its bytes need on the link if that is longer, but at most ten times the span or a
    /// minute. The run is 10 s longer, so that transfers can still retransmit. No new transfer starts in
    /// these 10 s, so rates do not include them.
    fn times(&self, capture: &Capture) -> (Span, Span) {
        let span = capture.span();
        let crossing =
            |direction: Direction| self.rate(direction).time_for(capture.bytes(direction).saturating_mul(2));
        let most = (span * 10).max(Span::s(60));
        // The span of a single packet is 0, and an interval must not be empty.
        let measured =
            span.max(crossing(Direction::Up)).max(crossing(Direction::Down)).min(most).max(Span::ms(1));
        let duration = (measured + Span::s(10)).as_ps().div_ceil(Span::s(1).as_ps());
        (measured, Span::s(duration))
    }

    /// The length of the measurement interval.
    pub fn measured(&self, capture: &Capture) -> Span {
        self.times(capture).0
    }

    /// The traffic of [`Mode::Flows`] as TOML.
    fn applications(&self, capture: &Capture, senders: &Senders<'_>) -> String {
        // Most senders are like Linux's. The RFC's minimum of one second would exaggerate the loss of a last
        // packet, and a slow start that ends only with a full buffer the delay of every upload.
        let mut text = "\n[tcp]\npreset = \"linux\"\n".to_owned();
        if let Some(congestion) = senders.congestion {
            text.push_str(&format!("congestion = {}\n", quoted(&congestion.to_string())));
        }
        let rtt = self.rtt.map(|rtt| format!("rtt = \"{rtt}\"\n")).unwrap_or_default();
        let resample = self.resample.map(|length| format!("resample = \"{length}\"\n")).unwrap_or_default();
        let think = senders.think.map(|think| format!("think = \"{think}\"\n")).unwrap_or_default();
        let spread = self.rtt.unwrap_or_else(|| capture.rtt());
        for group in capture.groups() {
            text.push_str(&format!(
                "\n[[traffic]]\nkind = \"applications\"\nname = {group}\ngroup = {group}\nfrom = \"{LOCAL}\"\n\
                 to = \"{FAR}\"\nfile = \"{WORKLOAD}\"\nspread = \"{spread}\"\n{rtt}{resample}{think}",
                group = quoted(&group),
            ));
        }
        text
    }
}

/// A sentence on the buffers of the baseline: their size in each direction, and the time in which a full one
/// drains at the rate of the link; `None` if they have no limit.
pub fn buffers(pair: &Pair, link: &Link) -> Option<String> {
    let buffer = |way: Direction| {
        let rate = link.rate(way);
        let limit = pair.at(way).properties(&LinkContext::new(rate, Streams::new(0))).limit?;
        let (size, bytes) = match limit {
            Limit::Packets(packets) => (format!("{packets} packets"), packets.saturating_mul(FULL)),
            Limit::Bytes(bytes) => (format!("{} kB", bytes.div_ceil(1000)), bytes),
        };
        let time = TIME.text(rate.time_for(bytes).as_s(), false);
        Some(format!("{size} {}, {time} at {rate}", word(way)))
    };
    let (up, down) = (buffer(Direction::Up)?, buffer(Direction::Down)?);
    Some(format!(
        "The baseline stands for the queue that the line has now: a full one holds {up}, and {down}. If yours is \
         larger or smaller, write it: --qdisc-up \"fifo limit 60p\" --qdisc-down \"fifo limit 400p\"."
    ))
}

/// The link between two nodes at which disciplines are compared, as TOML. A direction in which a discipline
/// differs from its name says so.
pub(super) fn line(link: &Link, pairs: &[Pair], (from, to): (&str, &str)) -> String {
    let direction = |way: Direction| {
        let rate = link.rate(way);
        let differs = |pair: &Pair| {
            let (name, here) = (pair.name(), pair.on(way, rate));
            (name != here).then(|| format!("{} = {}", quoted(&name), quoted(&here)))
        };
        let others: Vec<String> = pairs.iter().filter_map(differs).collect();
        if others.is_empty() { String::new() } else { format!("in_place_of = {{ {} }}", others.join(", ")) }
    };
    let (sends, receives) = (direction(Direction::Up), direction(Direction::Down));
    let sends = if sends.is_empty() { sends } else { format!("{sends}\n") };
    let receives = if receives.is_empty() { receives } else { format!(", {receives}") };
    format!(
        "[[link]]\nfrom = \"{from}\"\nto = \"{to}\"\nrate = \"{up}\"\ndelay = \"0s\"\nqdisc = \"compare\"\n{sends}\
         back = {{ rate = \"{down}\", qdisc = \"compare\"{receives} }}\n\n",
        up = link.up,
        down = link.down,
    )
}

/// The traffic of [`Mode::Replay`] as TOML.
fn replays(path: &Path, capture: &Capture) -> String {
    let file = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let directions =
        [Direction::Up, Direction::Down].into_iter().filter(|direction| capture.bytes(*direction) > 0);
    let one = |direction: Direction| {
        let (from, to) = if direction == Direction::Up { (LOCAL, FAR) } else { (FAR, LOCAL) };
        format!(
            "\n[[traffic]]\nkind = \"capture\"\nname = \"{way}\"\nfrom = \"{from}\"\nto = \"{to}\"\nfile = {file}\n\
             way = \"{way}\"\nlocal = {local}\n",
            way = direction.name(),
            file = quoted(&file.to_string_lossy()),
            local = quoted(&capture.local.to_string()),
        )
    };
    directions.map(one).collect()
}

/// A TOML string.
fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}
