//! The part of a recording that runs in the thread of a direction.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use giveway_live::Frame;
use giveway_measure::{Layout, Recorder};
use giveway_qdisc::{Backlog, DropReason, FlowTable, Meta, PortId, Probe, Rate, Span, Time};

/// Largest length of a recording. A bridge may run for weeks; after this time, recording ends.
pub const LONGEST: Span = Span::s(6 * 3600);

/// The bridge samples ten times per second. One sample of this number is recorded.
const ONE_OF: u32 = 2;

/// The state that the thread of a direction and the writer share.
#[derive(Clone)]
pub struct Channel {
    /// Name of the direction.
    pub name: &'static str,
    /// True if the writer wants a part.
    pub wanted: Arc<AtomicBool>,
    /// The new rate, once the discipline or the rate has changed: the next sample starts a new stretch.
    pub changed: Arc<Mutex<Option<Rate>>>,
    /// Parts that the writer has not taken yet.
    pub parts: Arc<Mutex<Vec<Part>>>,
    /// Locked by the thread of the direction only, until that thread ends.
    state: Arc<Mutex<State>>,
}

/// A copy of the recorder's counters up to a time.
pub struct Part {
    /// The copied counters, and the samples since the previous part.
    pub recorder: Recorder<Frame>,
    /// Time of the last event.
    pub last: Time,
    /// True for the last part of a stretch.
    pub ends_stretch: bool,
}

struct State {
    /// The plan of the current stretch.
    layout: Layout,
    /// `None` once the recording was finished.
    recorder: Option<Recorder<Frame>>,
    last: Time,
    /// True once the recording has reached its largest length.
    over: bool,
    /// Number of samples of the bridge.
    samples: u32,
    /// True during the warm-up, which ends with a signal.
    warms_up: bool,
}

impl Channel {
    /// A direction that records according to `layout`. If `warms_up`, its measurement interval starts at the
    /// first event after `begun` was set.
    pub fn new(name: &'static str, layout: Layout, warms_up: bool) -> Channel {
        let state = State {
            recorder: Some(Recorder::new(layout.clone())),
            layout,
            last: Time::ZERO,
            over: false,
            samples: 0,
            warms_up,
        };
        let state = Arc::new(Mutex::new(state));
        Channel { name, wanted: Arc::default(), changed: Arc::default(), parts: Arc::default(), state }
    }

    /// Adds the last part, after the thread of the direction has ended. Returns true if the recording was cut
    /// off at its largest length.
    pub fn close(&self) -> bool {
        let mut state = lock(&self.state);
        let last = state.last;
        lock(&self.parts).extend(state.recorder.take().map(|recorder| Part {
            recorder,
            last,
            ends_stretch: false,
        }));
        state.over
    }
}

/// Locks a mutex, also after a thread panicked with it: the counters of a failed direction are kept.
pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The probe of one direction. It never waits for the writer.
pub struct RecordingProbe {
    /// The direction.
    pub channel: Channel,
    /// True once the measurement interval starts.
    pub begun: Arc<AtomicBool>,
}

impl RecordingProbe {
    /// Passes an event to the recorder, unless the recording is over.
    fn record(&self, now: Time, event: impl FnOnce(&mut Recorder<Frame>)) {
        let mut state = lock(&self.channel.state);
        if state.warms_up && self.begun.load(Ordering::Relaxed) {
            state.warms_up = false;
            if let Some(recorder) = &mut state.recorder {
                recorder.begin(now);
            }
        }
        // The clock of a direction restarts after months, when the recording is over. Until then it does not
        // go back.
        state.over |= now.since(Time::ZERO) > LONGEST;
        if !state.over {
            debug_assert!(now >= state.last, "{now} after {}", state.last);
            state.last = state.last.max(now);
            state.recorder.as_mut().map(event);
        }
    }

    /// Begins a new stretch if the discipline or the rate has changed, and hands the last part of the stretch
    /// before over. If the writer has locked anything, the next sample tries again.
    fn divide(&self, now: Time) {
        let Channel { state, changed, parts, .. } = &self.channel;
        let (Ok(mut changed), Ok(mut parts)) = (changed.try_lock(), parts.try_lock()) else { return };
        let Some(rate) = changed.take() else { return };
        let mut state = lock(state);
        let State { recorder, layout, last, over, warms_up, .. } = &mut *state;
        layout.rates.iter_mut().for_each(|(_, known)| *known = rate);
        let Some(current) = recorder.as_mut().filter(|_| !*over && !*warms_up) else { return };
        let next = current.continued(layout.clone(), now);
        let recorder = std::mem::replace(current, next);
        parts.push(Part { recorder, last: *last, ends_stretch: true });
    }

    /// Hands a part over if the writer wants one. If the writer has locked the list of parts, the next sample
    /// tries again.
    fn hand_over(&self) {
        let Channel { state, wanted, parts, .. } = &self.channel;
        if wanted.load(Ordering::Relaxed)
            && let Ok(mut parts) = parts.try_lock()
        {
            wanted.store(false, Ordering::Relaxed);
            let mut state = lock(state);
            let last = state.last;
            parts.extend(state.recorder.as_mut().map(|recorder| Part {
                recorder: recorder.part(),
                last,
                ends_stretch: false,
            }));
        }
    }
}

impl Probe<Frame> for RecordingProbe {
    fn on_arrival(&mut self, at: PortId, meta: &Meta, now: Time) {
        self.record(now, |recorder| recorder.on_arrival(at, meta, now));
    }
    fn on_transmission(&mut self, at: PortId, meta: &Meta, frame: &Frame, now: Time) {
        self.record(now, |recorder| recorder.on_transmission(at, meta, frame, now));
    }
    fn on_drop(&mut self, at: PortId, meta: &Meta, frame: &Frame, why: DropReason, now: Time) {
        self.record(now, |recorder| recorder.on_drop(at, meta, frame, why, now));
    }
    fn on_mark(&mut self, at: PortId, meta: &Meta, now: Time) {
        self.record(now, |recorder| recorder.on_mark(at, meta, now));
    }
    fn on_sample(
        &mut self,
        at: PortId,
        backlog: Backlog,
        table: &FlowTable,
        gauges: &[(&'static str, f64)],
        now: Time,
    ) {
        let mut state = lock(&self.channel.state);
        state.samples += 1;
        let skip = !state.samples.is_multiple_of(ONE_OF);
        drop(state);
        if !skip {
            self.record(now, |recorder| recorder.on_sample(at, backlog, table, gauges, now));
        }
        self.divide(now);
        self.hand_over();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_recording_ends_at_its_largest_length() {
        let layout = Layout { measured: vec![PortId(0)], until: Time::ZERO + LONGEST, ..Layout::default() };
        let channel = Channel::new("forward", layout, false);
        let probe = RecordingProbe { channel: channel.clone(), begun: Arc::new(AtomicBool::new(true)) };
        let recorded = |at: Time| {
            let mut recorded = false;
            probe.record(at, |_| recorded = true);
            recorded
        };
        assert!(recorded(Time::s(1)) && recorded(Time::s(1)) && recorded(Time::ZERO + LONGEST));
        assert!(!recorded(Time::ZERO + LONGEST + Span::us(1)) && lock(&channel.state).over);
        assert!(!recorded(Time::s(1)), "the clock has restarted");
    }

    /// The packets before a change and those after it are in stretches of their own.
    #[test]
    fn a_change_begins_a_new_stretch() {
        let port = PortId(0);
        let rates = vec![(port, Rate::mbit(1))];
        let layout = Layout { measured: vec![port], rates, until: Time::ZERO + LONGEST, ..Layout::default() };
        let channel = Channel::new("forward", layout, false);
        let mut probe = RecordingProbe { channel: channel.clone(), begun: Arc::new(AtomicBool::new(true)) };
        let mut send = |second: u64| {
            let now = Time::s(second);
            let meta = Meta { bytes: 1000, arrived: now, ..Meta::default() };
            probe.on_arrival(port, &meta, now);
            probe.on_sample(port, Backlog::ZERO, &FlowTable::NONE, &[], now);
        };
        send(1);
        send(2);
        *lock(&channel.changed) = Some(Rate::mbit(8));
        (3..=6).for_each(&mut send);
        channel.close();
        let parts = std::mem::take(&mut *lock(&channel.parts));
        let parts: Vec<_> = parts
            .into_iter()
            .map(|part| {
                let record = part.recorder.ended(part.last).finish();
                let link = &record.links[0];
                let packets = link.arrived.expect("arrivals are counted").packets;
                (part.ends_stretch, packets, link.rate, record.layout.from, record.layout.until)
            })
            .collect();
        let mbit = |mbit| Some(Rate::mbit(mbit));
        assert_eq!(parts[0], (true, 3, mbit(1), Time::ZERO, Time::s(3)));
        // The three packets that are queued count as arrivals of the next stretch.
        assert_eq!(parts[1], (false, 6, mbit(8), Time::s(3), Time::s(6)));
        assert_eq!(parts.len(), 2);
    }
}
