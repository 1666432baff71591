//! Measurements at one port, packet by packet.

use giveway_qdisc::{Backlog, DropReason, Meta, PortCounters, PortId, Rate, Span, Time};

use crate::bursts::Bursts;
use crate::counts::{Drops, carries_data, was_queued};
use crate::episodes::Episodes;
use crate::fingerprint::Fingerprint;
use crate::layout::Layout;
use crate::quantile::Delays;
use crate::series::Series;

/// The meter of a measured port.
#[derive(Clone)]
pub(crate) struct Meter {
    from: Time,
    until: Time,
    small_packet_bytes: u32,
    /// Counters of the whole run.
    pub counters: PortCounters,
    /// Data packets sent, in the whole run.
    pub data_packets: u64,
    /// Fingerprint of the packets sent and dropped in the whole run.
    pub fingerprint: Fingerprint,
    /// The rate of the link, if the layout has it.
    rate: Option<Rate>,
    /// True if that is the mean of a rate that varies.
    varies: bool,
    /// Start of the latest transmission, and the length of its packet.
    latest: (Time, u32),
    /// Busy time within the interval of a transmission that started before it.
    busy_before: Span,
    /// Busy time after the interval of a transmission that started within it.
    busy_after: Span,
    /// Bytes whose transmission started within the measurement interval.
    pub bytes_sent: u64,
    /// Marks within the measurement interval.
    pub marks: u64,
    /// Drops by reason within the measurement interval.
    pub drops: Drops,
    /// Drops of the queue within the measurement interval, by the number of their source.
    pub drops_by_source: Vec<u64>,
    pub sojourn_times: Delays,
    pub small_sojourn_times: Delays,
    pub backlog: BacklogAverage,
    /// Packets sent for each source over time, with their sojourn times; `None` if series are not kept.
    pub series: Option<Series>,
    /// Episodes of the whole run; `None` if they are not counted.
    pub episodes: Option<Box<Episodes>>,
    /// Burstiness within the measurement interval; `None` if it is not measured.
    pub bursts: Option<Box<Bursts>>,
}

/// The time average of the backlog, exactly: each backlog is weighted with its duration.
#[derive(Clone, Default)]
pub(crate) struct BacklogAverage {
    now: Backlog,
    since: Time,
    /// Packets times picoseconds.
    packet_time: u128,
    /// Bytes times picoseconds.
    byte_time: u128,
    /// The largest backlog of any duration, packets.
    pub most_packets: u64,
}

impl Meter {
    pub(crate) fn new(layout: &Layout, port: PortId) -> Meter {
        Meter {
            from: layout.from,
            until: layout.until,
            small_packet_bytes: layout.small_packet_bytes,
            counters: PortCounters::default(),
            data_packets: 0,
            fingerprint: Fingerprint::EMPTY,
            rate: layout.rate(port),
            varies: layout.varying.contains(&port),
            latest: (Time::ZERO, 0),
            busy_before: Span::ZERO,
            busy_after: Span::ZERO,
            bytes_sent: 0,
            marks: 0,
            drops: Drops::default(),
            drops_by_source: vec![0; layout.source_names.len()],
            sojourn_times: Delays::new(),
            small_sojourn_times: Delays::new(),
            backlog: BacklogAverage::default(),
            series: layout.keep_series.then(|| Series::new(layout)),
            episodes: layout.episodes.then(Box::default),
            bursts: layout.bursts.then(|| Box::new(Bursts::new(layout))),
        }
    }

    #[inline]
    pub(crate) fn on_arrival(&mut self, meta: &Meta, now: Time) {
        self.counters.arrived.add(meta.bytes);
        self.backlog.advance(now, self.from, self.until);
        self.backlog.now.add(meta.bytes);
        if let Some(episodes) = &mut self.episodes {
            episodes.on_arrival(meta);
        }
        if let Some(bursts) = &mut self.bursts {
            bursts.on_arrival(now);
        }
    }

    #[inline]
    pub(crate) fn on_departure(&mut self, meta: &Meta, now: Time) {
        self.counters.sent.add(meta.bytes);
        self.data_packets += u64::from(carries_data(meta));
        self.fingerprint.on_departure(meta, now);
        let is_passed = |edge: Time| (self.latest.0 < edge) != (now < edge);
        if is_passed(self.from) || is_passed(self.until) {
            self.edges(now);
        }
        self.latest = (now, meta.bytes);
        self.backlog.advance(now, self.from, self.until);
        self.backlog.remove(meta.bytes);
        self.on_leave(meta);
        if let Some(bursts) = &mut self.bursts {
            bursts.on_departure(meta, now);
        }
        if !self.measures(now) {
            return;
        }
        let sojourn = now.since(meta.arrived);
        self.bytes_sent += u64::from(meta.bytes);
        self.sojourn_times.add(sojourn);
        if meta.bytes <= self.small_packet_bytes {
            self.small_sojourn_times.add(sojourn);
        }
    }

    pub(crate) fn on_drop(&mut self, meta: &Meta, source: u16, why: DropReason, now: Time) {
        let measured = u64::from(self.measures(now));
        if was_queued(why) {
            if let Some(drops) = self.drops_by_source.get_mut(usize::from(source)) {
                *drops += measured;
            }
            self.counters.dropped.add(meta.bytes);
            self.backlog.advance(now, self.from, self.until);
            self.backlog.remove(meta.bytes);
            self.on_leave(meta);
        }
        self.drops[why as usize] += measured;
        self.fingerprint.on_drop(meta, why, now);
    }

    /// Counts the busy time at the edges of the interval. A transmission starts at `now`; if an edge lies
    /// between the latest transmission and this one, the latest packet may have been on the link at the edge.
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

    /// Share of the interval for which the link was busy, 0 to 1; `None` if its rate is unknown or the
    /// interval is empty. Call it after [`close`](Meter::close).
    pub(crate) fn utilization(&self) -> Option<f64> {
        let rate = self.rate.filter(|rate| rate.as_bit() > 0)?;
        let began_in_it = self.bytes_sent as f64 / rate.bytes_per_s();
        let busy = began_in_it + self.busy_before.as_s() - self.busy_after.as_s();
        let interval = self.until.since(self.from).as_s();
        let share = busy / interval;
        // Times are rounded to whole picoseconds, so a link that is always busy exceeds 1 by a little. A
        // larger excess is not rounding and stays visible: the rate of a live link can be raised while it
        // runs.
        let rounded = share > 1.0 && share < 1.0 + 1e-5;
        // A rate that varies is offered as a whole: the interval has all of its bytes. Only the packets that
        // are on the link at the edges of the interval are divided by its mean, so there the share is not
        // exact, by the time of a packet.
        let is_all = rounded || (self.varies && share > 1.0);
        (interval > 0.0).then_some(if is_all { 1.0 } else { share })
    }

    #[inline]
    fn on_leave(&mut self, meta: &Meta) {
        if let Some(episodes) = &mut self.episodes {
            episodes.on_leave(meta);
        }
    }

    pub(crate) fn on_mark(&mut self, now: Time) {
        self.counters.marked += 1;
        self.marks += u64::from(self.measures(now));
    }

    /// Sets the start of the measurement interval to the plan's.
    pub(crate) fn begins(&mut self, layout: &Layout) {
        self.from = layout.from;
        self.series = layout.keep_series.then(|| Series::new(layout));
    }

    /// Begins with the packets that another meter of the port has queued at `at`, as if they had arrived
    /// then.
    pub(crate) fn continues(&mut self, before: &Meter, at: Time) {
        self.counters.arrived = before.backlog.now;
        self.backlog.now = before.backlog.now;
        self.backlog.since = at;
        self.latest = before.latest;
    }

    /// Sets the end of the measurement interval.
    pub(crate) fn ends(&mut self, until: Time) {
        self.until = until;
        if let Some(series) = &mut self.series {
            series.ends(until);
        }
    }

    /// Ends the measurement interval: the last backlog lasts until then.
    pub(crate) fn close(&mut self) {
        self.backlog.advance(self.until, self.from, self.until);
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

impl BacklogAverage {
    /// Adds the present backlog for the time until `now`, as far as it is within the measurement interval.
    #[inline]
    fn advance(&mut self, now: Time, from: Time, until: Time) {
        if now <= self.since {
            return;
        }
        let duration = now.min(until).since(self.since.max(from)).as_ps();
        self.since = now;
        if duration > 0 {
            self.packet_time += u128::from(self.now.packets) * u128::from(duration);
            self.byte_time += u128::from(self.now.bytes) * u128::from(duration);
            self.most_packets = self.most_packets.max(self.now.packets);
        }
    }

    #[inline]
    fn remove(&mut self, bytes: u32) {
        assert!(
            self.now.packets > 0 && self.now.bytes >= u64::from(bytes),
            "a port sends and drops no more than what arrived"
        );
        self.now.sub(bytes);
    }

    /// Time averages over the measurement interval: packets and bytes.
    pub(crate) fn means(&self, measured: Span) -> Option<(f64, f64)> {
        let over = measured.as_ps() as f64;
        (over > 0.0).then(|| (self.packet_time as f64 / over, self.byte_time as f64 / over))
    }
}
