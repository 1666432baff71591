//! What is measured at one port while the packets go by.

use giveway_qdisc::{Backlog, DropReason, Meta, PortCounters, PortId, Rate, Span, Time};

use crate::bursts::Bursts;
use crate::counts::{Drops, carries_data, was_queued};
use crate::episodes::Episodes;
use crate::fingerprint::Fingerprint;
use crate::layout::Layout;
use crate::quantile::Delays;
use crate::shares::Shares;

/// The meter of a measured port.
#[derive(Clone)]
pub(crate) struct Meter {
    from: Time,
    until: Time,
    small_packet_bytes: u32,
    /// The whole run.
    pub books: PortCounters,
    /// Data packets sent, in the whole run.
    pub data_packets: u64,
    /// Of what was sent and dropped, in the whole run.
    pub fingerprint: Fingerprint,
    /// The rate of the link, if the layout has it.
    rate: Option<Rate>,
    /// When the latest packet began to be sent, and its length.
    latest: (Time, u32),
    /// How long the link was busy with packets that began before the interval, and how long after its end with those that
    /// began in it.
    busy_before: Span,
    busy_after: Span,
    /// From here on: within the measurement interval only. Packets that began to be sent in it.
    pub bytes_sent: u64,
    pub marks: u64,
    pub drops: Drops,
    /// Those of the queue, by the place of their source in the scenario.
    pub drops_by_source: Vec<u64>,
    pub waits: Delays,
    pub small_waits: Delays,
    pub level: Level,
    /// Only where series are kept.
    pub shares: Option<Shares>,
    /// Only where they are counted; of the whole run.
    pub episodes: Option<Box<Episodes>>,
    /// Only where they are measured.
    pub bursts: Option<Box<Bursts>>,
}

/// How full the queue was, exactly: the level weighed with the time for which it stood.
#[derive(Clone, Default)]
pub(crate) struct Level {
    held: Backlog,
    since: Time,
    /// Packets times picoseconds, and bytes times picoseconds.
    packet_time: u128,
    byte_time: u128,
    /// The most packets that were held for any length of time.
    pub most_packets: u64,
}

impl Meter {
    pub(crate) fn new(layout: &Layout, port: PortId) -> Meter {
        Meter {
            from: layout.from,
            until: layout.until,
            small_packet_bytes: layout.small_packet_bytes,
            books: PortCounters::default(),
            data_packets: 0,
            fingerprint: Fingerprint::EMPTY,
            rate: layout.rate(port),
            latest: (Time::ZERO, 0),
            busy_before: Span::ZERO,
            busy_after: Span::ZERO,
            bytes_sent: 0,
            marks: 0,
            drops: Drops::default(),
            drops_by_source: vec![0; layout.source_names.len()],
            waits: Delays::new(),
            small_waits: Delays::new(),
            level: Level::default(),
            shares: layout.keep_series.then(|| Shares::new(layout)),
            episodes: layout.episodes.then(Box::default),
            bursts: layout.bursts.then(|| Box::new(Bursts::new(layout))),
        }
    }

    #[inline]
    pub(crate) fn arrived(&mut self, meta: &Meta, now: Time) {
        self.books.arrived.add(meta.bytes);
        self.level.stand(now, self.from, self.until);
        self.level.held.add(meta.bytes);
        if let Some(episodes) = &mut self.episodes {
            episodes.arrived(meta);
        }
        if let Some(bursts) = &mut self.bursts {
            bursts.arrived(now);
        }
    }

    #[inline]
    pub(crate) fn sent(&mut self, meta: &Meta, now: Time) {
        self.books.sent.add(meta.bytes);
        self.data_packets += u64::from(carries_data(meta));
        self.fingerprint.sent(meta, now);
        let is_passed = |edge: Time| (self.latest.0 < edge) != (now < edge);
        if is_passed(self.from) || is_passed(self.until) {
            self.edges(now);
        }
        self.latest = (now, meta.bytes);
        self.level.stand(now, self.from, self.until);
        self.level.take(meta.bytes);
        self.left(meta);
        if let Some(bursts) = &mut self.bursts {
            bursts.sent(meta, now);
        }
        if !self.measures(now) {
            return;
        }
        let wait = now.since(meta.arrived);
        self.bytes_sent += u64::from(meta.bytes);
        self.waits.add(wait);
        if meta.bytes <= self.small_packet_bytes {
            self.small_waits.add(wait);
        }
    }

    pub(crate) fn dropped(&mut self, meta: &Meta, source: u16, why: DropReason, now: Time) {
        let measured = u64::from(self.measures(now));
        if was_queued(why) {
            if let Some(drops) = self.drops_by_source.get_mut(usize::from(source)) {
                *drops += measured;
            }
            self.books.dropped.add(meta.bytes);
            self.level.stand(now, self.from, self.until);
            self.level.take(meta.bytes);
            self.left(meta);
        }
        self.drops[why as usize] += measured;
        self.fingerprint.dropped(meta, why, now);
    }

    /// A packet begins to be sent at `now`, after the latest one: if an edge of the interval lies between the two, the
    /// latest may have been on the link at the edge.
    #[cold]
    fn edges(&mut self, now: Time) {
        let (began, bytes) = self.latest;
        let Some(rate) = self.rate.filter(|rate| rate.as_bit() > 0) else { return };
        let ended = began + rate.time_for(bytes.into());
        if began < self.from && self.from <= now {
            self.busy_before = ended.min(self.until).since(self.from);
        }
        if self.from <= began && began < self.until && self.until <= now {
            self.busy_after = ended.since(self.until);
        }
    }

    /// The part of the interval for which the link was busy, 0 to 1. `None` where its rate is not known, or the interval is
    /// empty. To be asked after [`close`](Meter::close).
    pub(crate) fn utilization(&self) -> Option<f64> {
        let rate = self.rate.filter(|rate| rate.as_bit() > 0)?;
        let began_in_it = self.bytes_sent as f64 / rate.bytes_per_s();
        let busy = began_in_it + self.busy_before.as_s() - self.busy_after.as_s();
        let interval = self.until.since(self.from).as_s();
        let share = busy / interval;
        // Times are rounded to whole picoseconds, so that a link that never rests is busy for a few too many. What is more
        // than that is not rounding, and is shown: the rate of a live link can be raised while it runs.
        let rounded = share > 1.0 && share < 1.0 + 1e-5;
        (interval > 0.0).then_some(if rounded { 1.0 } else { share })
    }

    #[inline]
    fn left(&mut self, meta: &Meta) {
        if let Some(episodes) = &mut self.episodes {
            episodes.left(meta);
        }
    }

    pub(crate) fn marked(&mut self, now: Time) {
        self.books.marked += 1;
        self.marks += u64::from(self.measures(now));
    }

    /// The measurement interval begins when the plan says now.
    pub(crate) fn begins(&mut self, layout: &Layout) {
        self.from = layout.from;
        self.shares = layout.keep_series.then(|| Shares::new(layout));
    }

    /// The measurement interval ends then.
    pub(crate) fn ends(&mut self, until: Time) {
        self.until = until;
    }

    /// Closes the books at the end of the measurement interval: the last level stands until then.
    pub(crate) fn close(&mut self) {
        self.level.stand(self.until, self.from, self.until);
        self.edges(self.until);
        if let Some(bursts) = &mut self.bursts {
            bursts.close();
        }
    }

    #[inline]
    fn measures(&self, now: Time) -> bool {
        self.from <= now && now < self.until
    }
}

impl Level {
    /// The level has stood until `now`; count the part of that time that is measured.
    #[inline]
    fn stand(&mut self, now: Time, from: Time, until: Time) {
        if now <= self.since {
            return;
        }
        let stood = now.min(until).since(self.since.max(from)).as_ps();
        self.since = now;
        if stood > 0 {
            self.packet_time += u128::from(self.held.packets) * u128::from(stood);
            self.byte_time += u128::from(self.held.bytes) * u128::from(stood);
            self.most_packets = self.most_packets.max(self.held.packets);
        }
    }

    #[inline]
    fn take(&mut self, bytes: u32) {
        assert!(
            self.held.packets > 0 && self.held.bytes >= u64::from(bytes),
            "a port sends and drops no more than what arrived"
        );
        self.held.sub(bytes);
    }

    /// Time averages over the measurement interval: packets and bytes.
    pub(crate) fn means(&self, measured: Span) -> Option<(f64, f64)> {
        let over = measured.as_ps() as f64;
        (over > 0.0).then(|| (self.packet_time as f64 / over, self.byte_time as f64 / over))
    }
}
