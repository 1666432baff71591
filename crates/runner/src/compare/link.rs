//! The link as a scenario, and the folder for its files.

use std::fs;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use giveway_disciplines::Spec;
use giveway_qdisc::{Rate, Span};
use giveway_record::RunFolder;
use giveway_workload::{Direction, Workload};

use super::capture::Capture;
use super::{Mode, shown};
use crate::outputs::{Kind, existing, may_write, removing};
use crate::{Frontend, RunnerError};

/// The link that the traffic of the capture crosses in the simulation.
#[derive(Clone, Copy, Debug)]
pub struct Link {
    /// The rate upstream, away from the local side.
    pub up: Rate,
    /// The rate downstream.
    pub down: Rate,
    /// The round-trip time of every connection; `None` takes those of the capture.
    pub rtt: Option<Span>,
}

/// The names of its nodes: the local side and the far side.
const LOCAL: &str = "local";
const FAR: &str = "far";

/// The file of the workload, beside the scenario that names it.
pub const WORKLOAD: &str = "workload.jsonl";

/// The folder for results, if they are kept, and a temporary folder for other files.
pub struct Place {
    out: Option<PathBuf>,
    /// True if the folder is new.
    made: bool,
    scratch: tempfile::TempDir,
}

impl Place {
    /// Creates the folder, and checks that it may be used for the results of these links.
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
        fs::create_dir_all(out).map_err(RunnerError::io(format!("--out {}", shown(out))))?;
        Ok(place)
    }

    /// The folder for the results of one link, if they are kept. Links of a sweep have a folder each.
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
    /// Removes a new folder that has remained empty.
    fn drop(&mut self) {
        if let (Some(out), true) = (&self.out, self.made) {
            let _ = fs::remove_dir(out);
        }
    }
}

/// Writes the workload, and returns its path.
pub fn keep(workload: &Workload, folder: &Path) -> Result<PathBuf, RunnerError> {
    let path = folder.join(WORKLOAD);
    let write = || {
        let mut out = BufWriter::new(fs::File::create(&path)?);
        workload.write(&mut out)?;
        out.flush()
    };
    write().map_err(RunnerError::io(format!("cannot write the workload to {}", shown(folder))))?;
    Ok(path)
}

impl Link {
    /// The name of the port of this direction.
    pub fn port(way: Direction) -> String {
        match way {
            Direction::Up => format!("{LOCAL}->{FAR}"),
            Direction::Down => format!("{FAR}->{LOCAL}"),
        }
    }

    /// The name of the link in file names.
    fn name(&self) -> String {
        if self.up == self.down { self.up.to_string() } else { format!("{}-{}", self.up, self.down) }
    }

    /// The file of this link beside those of other links: the name of the link is in front of the extension.
    pub fn file(&self, file: &Path) -> PathBuf {
        let part = |part: Option<&std::ffi::OsStr>| part.unwrap_or_default().to_string_lossy().into_owned();
        let (stem, ending) = (part(file.file_stem()), part(file.extension()));
        let dot = if ending.is_empty() { "" } else { "." };
        file.with_file_name(format!("{stem}-{}{dot}{ending}", self.name()))
    }

    /// The rate of this direction.
    pub fn rate(&self, way: Direction) -> Rate {
        if way == Direction::Up { self.up } else { self.down }
    }

    /// The rates of the link in titles.
    pub fn title(&self) -> String {
        if self.up == self.down {
            self.up.to_string()
        } else {
            format!("{} upstream, {} downstream", self.up, self.down)
        }
    }

    /// The comparison as a scenario.
    pub fn scenario(
        &self,
        name: &str,
        file: &Path,
        mode: Mode,
        specs: &[Spec],
        seeds: u32,
        capture: &Capture,
    ) -> String {
        let specs: Vec<String> = specs.iter().map(|spec| quoted(&spec.to_string())).collect();
        let (measured, duration) = self.times(capture);
        let head = format!(
            "title = {title}\n\
             description = {description}\n\
             duration = \"{duration}\"\n\
             warmup = \"0s\"\n\
             cooldown = \"{cooldown}\"\n\
             seeds = {seeds}\n\
             disciplines = [{specs}]\n\n\
             [[link]]\nfrom = \"{LOCAL}\"\nto = \"{FAR}\"\nrate = \"{up}\"\ndelay = \"0s\"\nqdisc = \"compare\"\n\
             back = {{ rate = \"{down}\", qdisc = \"compare\" }}\n\n\
             [record]\nport = [{ports}]\n",
            title = quoted(&format!("{name} at {}", self.title())),
            description = quoted(&capture.description(mode)),
            duration = duration,
            cooldown = duration - measured,
            specs = specs.join(", "),
            up = self.up,
            down = self.down,
            ports = self.ports(capture).map(|way| quoted(&Link::port(way))).join(", "),
        );
        let traffic = match mode {
            Mode::Flows => self.applications(capture),
            Mode::Replay => replays(file, capture),
        };
        head + &traffic
    }

    /// The busier direction first: it is the bottleneck in tables of one port.
    fn ports(&self, capture: &Capture) -> [Direction; 2] {
        let load = |way: Direction| capture.bytes(way) as f64 / self.rate(way).bytes_per_s();
        if load(Direction::Up) >= load(Direction::Down) {
            [Direction::Up, Direction::Down]
        } else {
            [Direction::Down, Direction::Up]
        }
    }

    /// The length of the measurement interval, and that of the run. The interval is as long as the capture, or as long as all
    /// of its bytes need to cross the link twice, but at most ten times the capture, or a minute. The run is 10 s longer, so
    /// that transfers that are waiting can retransmit. No new transfer begins in these 10 s, so rates leave them out.
    fn times(&self, capture: &Capture) -> (Span, Span) {
        let span = capture.span();
        let crossing = |way: Direction| self.rate(way).time_for(capture.bytes(way).saturating_mul(2));
        let most = (span * 10).max(Span::s(60));
        // A capture of one packet spans nothing, and an interval must not be empty.
        let measured =
            span.max(crossing(Direction::Up)).max(crossing(Direction::Down)).min(most).max(Span::ms(1));
        let duration = (measured + Span::s(10)).as_ps().div_ceil(Span::s(1).as_ps());
        (measured, Span::s(duration))
    }

    fn applications(&self, capture: &Capture) -> String {
        // These are the values of Linux. The RFC's minimum of one second would exaggerate the loss of a last packet, and a slow
        // start that ends only with a full buffer would exaggerate the delay of every upload.
        let mut text = "\n[tcp]\nrto_min = \"200ms\"\nhystart = true\n".to_owned();
        let rtt = self.rtt.map(|rtt| format!("rtt = \"{rtt}\"\n")).unwrap_or_default();
        let spread = self.rtt.unwrap_or_else(|| capture.rtt());
        for group in capture.groups() {
            text.push_str(&format!(
                "\n[[traffic]]\nkind = \"applications\"\nname = {group}\ngroup = {group}\nfrom = \"{LOCAL}\"\n\
                 to = \"{FAR}\"\nfile = \"{WORKLOAD}\"\nspread = \"{spread}\"\n{rtt}",
                group = quoted(&group),
            ));
        }
        text
    }
}

fn replays(path: &Path, capture: &Capture) -> String {
    let file = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let ways = [Direction::Up, Direction::Down].into_iter().filter(|way| capture.bytes(*way) > 0);
    let one = |way: Direction| {
        let (from, to) = if way == Direction::Up { (LOCAL, FAR) } else { (FAR, LOCAL) };
        format!(
            "\n[[traffic]]\nkind = \"capture\"\nname = \"{way}\"\nfrom = \"{from}\"\nto = \"{to}\"\nfile = {file}\n\
             way = \"{way}\"\nlocal = {local}\n",
            way = way.name(),
            file = quoted(&file.to_string_lossy()),
            local = quoted(&capture.local.to_string()),
        )
    };
    ways.map(one).collect()
}

fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}
