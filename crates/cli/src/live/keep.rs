//! `--record`: what goes by is kept as the tables that a simulation keeps, a folder for each direction.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use live::Frame;
use qdisc::{Backlog, DropReason, Meta, Packet, PortId, Probe, Span, Time};
use record::{Cell, Layout, Manifest, Recorder, RunFolder};

use super::operator::Operator;
use super::settings::Wish;

/// After that recording ends, and says so: series grow with time, and a bridge runs for weeks.
pub const LONGEST: Span = Span::s(6 * 3600);

/// Samples are taken ten times a second by the host; one of so many is kept.
const ONE_OF: u32 = 2;
const SAMPLE: Span = Span::ms(200);

/// Where the folders will be.
pub struct Recording {
    dir: PathBuf,
    /// Packets up to this length are small.
    small: u32,
    /// Somebody has said that measuring begins, or nobody needs to.
    begun: Arc<AtomicBool>,
    recorders: Mutex<Vec<(&'static str, Kept)>>,
}

type Kept = Arc<Mutex<State>>;

struct State {
    recorder: Option<Recorder<Frame>>,
    last: Time,
    over: bool,
    samples: u32,
    /// Measuring waits for a word.
    waits: bool,
}

/// The probe of one direction. Nobody else holds the lock while it runs.
struct Keeper {
    kept: Kept,
    begun: Arc<AtomicBool>,
}

fn lock(kept: &Kept) -> MutexGuard<'_, State> {
    kept.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

impl Keeper {
    fn tell(&self, now: Time, tell: impl FnOnce(&mut Recorder<Frame>)) {
        let mut state = lock(&self.kept);
        if state.waits && self.begun.load(Ordering::Relaxed) {
            state.waits = false;
            if let Some(recorder) = &mut state.recorder {
                recorder.begin(now);
            }
        }
        // The clock began anew: what comes now is another recording.
        state.over |= now.since(Time::ZERO) > LONGEST || now < state.last;
        if !state.over {
            state.last = now;
            state.recorder.as_mut().map(tell);
        }
    }
}

impl Probe<Frame> for Keeper {
    fn arrived(&mut self, at: PortId, meta: &Meta, now: Time) {
        self.tell(now, |recorder| recorder.arrived(at, meta, now));
    }
    fn sent(&mut self, at: PortId, meta: &Meta, frame: &Frame, now: Time) {
        self.tell(now, |recorder| recorder.sent(at, meta, frame, now));
    }
    fn dropped(&mut self, at: PortId, pkt: Packet<Frame>, why: DropReason, now: Time) {
        self.tell(now, |recorder| recorder.dropped(at, pkt, why, now));
    }
    fn marked(&mut self, at: PortId, meta: &Meta, now: Time) {
        self.tell(now, |recorder| recorder.marked(at, meta, now));
    }
    fn sample(&mut self, at: PortId, held: Backlog, gauges: &[(&'static str, f64)], now: Time) {
        let mut state = lock(&self.kept);
        state.samples += 1;
        let skip = !state.samples.is_multiple_of(ONE_OF);
        drop(state);
        if !skip {
            self.tell(now, |recorder| recorder.sample(at, held, gauges, now));
        }
    }
}

impl Recording {
    /// Makes the folder now, so that what cannot be written is refused before anything runs.
    ///
    /// # Errors
    /// A sentence.
    pub fn begin(dir: &Path, small: u32, later: bool) -> Result<Recording, String> {
        let told = |error: std::io::Error| format!("--record {}: {error}", dir.display());
        std::fs::create_dir_all(dir).map_err(told)?;
        let dir = dir.canonicalize().map_err(told)?;
        let begun = Arc::new(AtomicBool::new(!later));
        Ok(Recording { dir, small, begun, recorders: Mutex::default() })
    }

    /// What says that measuring begins.
    pub fn begun(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.begun)
    }

    /// Hears one direction.
    pub fn probe(&self, wish: &Wish, name: &'static str) -> Box<dyn Probe<Frame> + Send> {
        let waits = !self.begun.load(Ordering::Relaxed);
        let layout = Layout {
            from: if waits { Time::ZERO + LONGEST } else { Time::ZERO },
            small_packet_bytes: self.small,
            measured: vec![PortId(0)],
            port_names: vec![(PortId(0), name.to_owned())],
            source_names: vec!["all".to_owned()],
            until: Time::ZERO + LONGEST,
            rates: vec![(PortId(0), wish.rate)],
            keep_series: true,
            sample: SAMPLE,
            ..Layout::default()
        };
        let recorder = Some(Recorder::new(layout));
        let kept = Arc::new(Mutex::new(State { recorder, last: Time::ZERO, over: false, samples: 0, waits }));
        let mut recorders = self.recorders.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        recorders.push((name, Arc::clone(&kept)));
        Box::new(Keeper { kept, begun: Arc::clone(&self.begun) })
    }

    /// Writes the folders. Directions that failed are kept as far as they came.
    ///
    /// # Errors
    /// A sentence on what cannot be written.
    pub fn finish(
        self,
        probes: Vec<Option<Box<dyn Probe<Frame> + Send>>>,
        operator: &Operator,
    ) -> Result<String, String> {
        drop(probes);
        let recorders = self.recorders.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
        let mut cut = false;
        for (name, kept) in recorders {
            let mut state = lock(&kept);
            let Some(recorder) = state.recorder.take() else { continue };
            cut |= state.over;
            let last = state.last;
            drop(state);
            let record = recorder.ended(last).finish();
            let layout = record.layout.clone();
            let (wish, title) = {
                let wishes = operator.wishes();
                let side = if name == "forward" { super::Side::Forward } else { super::Side::Back };
                let place = if name == "forward" { 0 } else { 1 };
                let (from, to) = &operator.names()[place];
                (wishes.of(side).clone(), format!("{from} to {to}"))
            };
            let spec = wish.qdisc.to_string();
            let manifest = Manifest {
                scenario: format!("live-{name}"),
                version: env!("CARGO_PKG_VERSION").to_owned(),
                disciplines: vec![spec.clone()],
                seeds: vec![1],
                machine: format!("{} {}", std::env::consts::OS, std::env::consts::ARCH),
                created_by: "giveway live".to_owned(),
                created: None,
                title: format!("Live, {title}"),
                description: String::new(),
                layout,
            };
            let text = format!(
                "# Recorded by giveway live from {title}; not a scenario that can be run.\n# rate {}, qdisc {spec}\n",
                super::settings::rate(wish.rate)
            );
            let cell = Cell { qdisc: spec, seed: 1 };
            let write = || {
                let folder = RunFolder::create(&self.dir.join(name), &text, manifest)?;
                folder.write(&cell, &record)?;
                folder.finish(&[(cell.clone(), record.summary.clone())])
            };
            write().map_err(|error: record::FolderError| error.to_string())?;
        }
        let hours = LONGEST.as_ps() / Span::s(3600).as_ps();
        let cut = if cut { format!("; recording ended after {hours} hours") } else { String::new() };
        Ok(format!("recorded in {}{cut}", self.dir.display()))
    }
}
