//! The link as a scenario that anybody can run again, and the place where its files are.

use std::fs;
use std::io::BufWriter;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use disciplines::Spec;
use qdisc::{Rate, Span};
use workload::{Way, Workload};

use super::reading::Read;
use super::{Mode, shown};

/// The link that the capture is brought to.
#[derive(Clone, Copy, Debug)]
pub struct Link {
    pub up: Rate,
    pub down: Rate,
    /// Of every connection, where the capture's own are not wanted.
    pub rtt: Option<Span>,
}

/// The names of its nodes.
const LOCAL: &str = "local";
const FAR: &str = "far";

/// Where the workload is kept, beside the scenario that names it.
const WORKLOAD: &str = "workload.jsonl";

/// The folder for results, or one that goes away.
pub struct Place {
    out: Option<PathBuf>,
    /// Whether the folder was not there before.
    made: bool,
    _gone_after: Option<tempfile::TempDir>,
    files: PathBuf,
}

impl Place {
    /// Makes sure that there is a folder.
    pub fn new(out: Option<&Path>) -> Result<Place, String> {
        let Some(out) = out else {
            let folder = tempfile::Builder::new().prefix("giveway-").tempdir();
            let folder = folder.map_err(|error| format!("there is no place for temporary files: {error}"))?;
            let files = folder.path().to_owned();
            return Ok(Place { out: None, made: false, _gone_after: Some(folder), files });
        };
        let made = !out.exists();
        fs::create_dir_all(out).map_err(|error| format!("--out {}: {error}", shown(out)))?;
        let files = out.canonicalize().map_err(|error| format!("--out {}: {error}", shown(out)))?;
        Ok(Place { out: Some(out.to_owned()), made, _gone_after: None, files })
    }

    /// The folder for the results of one link, if they are kept, and the one for its files. Links of a sweep have a
    /// folder each.
    pub fn folders(&self, link: &Link, links: usize) -> Result<(Option<PathBuf>, PathBuf), String> {
        let Some(out) = &self.out else { return Ok((None, self.files.clone())) };
        if links == 1 {
            return Ok((Some(out.clone()), self.files.clone()));
        }
        let (folder, files) = (out.join(link.name()), self.files.join(link.name()));
        fs::create_dir_all(&files).map_err(|error| format!("{}: {error}", shown(&folder)))?;
        Ok((Some(folder), files))
    }
}

impl Drop for Place {
    /// An empty folder is no result: what came to nothing leaves nothing.
    fn drop(&mut self) {
        if let (Some(out), true) = (&self.out, self.made) {
            let _ = fs::remove_dir(out);
        }
    }
}

/// Writes the workload: beside its place and then there, so that it is never half of one.
pub fn keep(workload: &Workload, folder: &Path) -> Result<(), String> {
    let wrong = |error: std::io::Error| format!("the workload cannot be kept in {}: {error}", shown(folder));
    // Readable like all that is kept beside it.
    let all = fs::Permissions::from_mode(0o644);
    let mut beside = tempfile::Builder::new().permissions(all).tempfile_in(folder).map_err(wrong)?;
    workload.write(BufWriter::new(beside.as_file_mut())).map_err(wrong)?;
    beside.as_file().sync_all().map_err(wrong)?;
    beside.persist(folder.join(WORKLOAD)).map_err(|error| wrong(error.error))?;
    Ok(())
}

impl Link {
    /// The name of the port this way.
    pub fn port(way: Way) -> String {
        match way {
            Way::Up => format!("{LOCAL}->{FAR}"),
            Way::Down => format!("{FAR}->{LOCAL}"),
        }
    }

    /// What its files are called beside those of others.
    fn name(&self) -> String {
        if self.up == self.down { self.up.to_string() } else { format!("{}-{}", self.up, self.down) }
    }

    /// A file of its own beside those of others: the name of the link before the ending.
    pub fn file(&self, file: &Path) -> PathBuf {
        let part = |part: Option<&std::ffi::OsStr>| part.unwrap_or_default().to_string_lossy().into_owned();
        let (stem, ending) = (part(file.file_stem()), part(file.extension()));
        let dot = if ending.is_empty() { "" } else { "." };
        file.with_file_name(format!("{stem}-{}{dot}{ending}", self.name()))
    }

    /// Its rate this way.
    pub fn rate(&self, way: Way) -> Rate {
        if way == Way::Up { self.up } else { self.down }
    }

    /// How it is told.
    pub fn title(&self) -> String {
        if self.up == self.down { self.up.to_string() } else { format!("{} up, {} down", self.up, self.down) }
    }

    /// The comparison as a scenario.
    pub fn scenario(
        &self,
        name: &str,
        capture: &Path,
        mode: Mode,
        specs: &[Spec],
        seeds: u32,
        read: &Read,
    ) -> String {
        let specs: Vec<String> = specs.iter().map(|spec| quoted(&spec.to_string())).collect();
        let head = format!(
            "title = {title}\n\
             description = {description}\n\
             duration = \"{duration}\"\n\
             warmup = \"0s\"\n\
             seeds = {seeds}\n\
             disciplines = [{specs}]\n\n\
             [[link]]\nfrom = \"{LOCAL}\"\nto = \"{FAR}\"\nrate = \"{up}\"\ndelay = \"0s\"\nqdisc = \"compare\"\n\
             back = {{ rate = \"{down}\", qdisc = \"compare\" }}\n\n\
             [record]\nport = [{ports}]\n",
            title = quoted(&format!("{name} at {}", self.title())),
            description = quoted(&read.description(mode)),
            duration = self.duration(read),
            specs = specs.join(", "),
            up = self.up,
            down = self.down,
            ports = self.ports(read).map(|way| quoted(&Link::port(way))).join(", "),
        );
        let traffic = match mode {
            Mode::Flows => self.applications(read),
            Mode::Replay => replays(capture, read),
        };
        head + &traffic
    }

    /// The busier way first: it is the bottleneck of tables that show one.
    fn ports(&self, read: &Read) -> [Way; 2] {
        let load = |way: Way| read.bytes(way) as f64 / self.rate(way).bytes_per_s();
        if load(Way::Up) >= load(Way::Down) { [Way::Up, Way::Down] } else { [Way::Down, Way::Up] }
    }

    /// Long enough for everything to cross the link twice at its rate, and for whoever waits to try again. At most ten
    /// times the capture, or a minute.
    fn duration(&self, read: &Read) -> Span {
        let span = read.span();
        let crossing = |way: Way| self.rate(way).time_for(read.bytes(way).saturating_mul(2));
        let most = (span * 10).max(Span::s(60));
        let enough = span.max(crossing(Way::Up)).max(crossing(Way::Down)).min(most) + Span::s(10);
        Span::s(enough.as_ps().div_ceil(Span::s(1).as_ps()))
    }

    fn applications(&self, read: &Read) -> String {
        // As Linux has it: the RFC's second would make a lost last packet look worse than it is, and a first slow start
        // that only a full buffer ends would make every upload look worse.
        let mut text = "\n[tcp]\nrto_min = \"200ms\"\nhystart = true\n".to_owned();
        let rtt = self.rtt.map(|rtt| format!("rtt = \"{rtt}\"\n")).unwrap_or_default();
        let spread = self.rtt.unwrap_or_else(|| read.rtt());
        for group in read.groups() {
            text.push_str(&format!(
                "\n[[traffic]]\nkind = \"applications\"\nname = {group}\ngroup = {group}\nfrom = \"{LOCAL}\"\n\
                 to = \"{FAR}\"\nfile = \"{WORKLOAD}\"\nspread = \"{spread}\"\n{rtt}",
                group = quoted(&group),
            ));
        }
        text
    }
}

fn replays(capture: &Path, read: &Read) -> String {
    let file = capture.canonicalize().unwrap_or_else(|_| capture.to_owned());
    let ways = [Way::Up, Way::Down].into_iter().filter(|way| read.bytes(*way) > 0);
    let one = |way: Way| {
        let (from, to) = if way == Way::Up { (LOCAL, FAR) } else { (FAR, LOCAL) };
        format!(
            "\n[[traffic]]\nkind = \"capture\"\nname = \"{way}\"\nfrom = \"{from}\"\nto = \"{to}\"\nfile = {file}\n\
             way = \"{way}\"\nlocal = {local}\n",
            way = way.name(),
            file = quoted(&file.to_string_lossy()),
            local = quoted(&read.local.to_string()),
        )
    };
    ways.map(one).collect()
}

fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}
