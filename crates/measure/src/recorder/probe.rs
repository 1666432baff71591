//! The events of a run, as a recorder observes them, and the parts of a divided run.

use giveway_qdisc::{
    Backlog, ClassState, Divisible, DropReason, FlowReport, FlowTable, Interest, Meta, PortId, Probe,
    SenderSample, Time,
};

use super::Recorder;
use crate::counts::{index, was_queued};
use crate::rows::{ProgressRow, QueueRow};

impl<P> Probe<P> for Recorder<P> {
    fn interest(&self, at: PortId) -> Interest {
        if self.meter(at).is_some() { Interest::Port } else { Interest::Nothing }
    }

    #[inline]
    fn on_arrival(&mut self, at: PortId, meta: &Meta, now: Time) {
        if let Some(Some(meter)) = self.meters.get_mut(index(at)) {
            meter.on_arrival(meta, now);
        }
    }

    #[inline]
    fn on_transmission(&mut self, at: PortId, meta: &Meta, payload: &P, now: Time) {
        if let Some(Some(meter)) = self.meters.get_mut(index(at)) {
            meter.on_departure(meta, now);
            if let Some(series) = &mut meter.series {
                series.count((self.source_of)(payload), meta.bytes, now.since(meta.arrived), now);
            }
        }
    }

    fn on_drop(&mut self, at: PortId, meta: &Meta, payload: &P, why: DropReason, now: Time) {
        if let Some(losses) = self.losses.get_mut(index(at)) {
            losses.by_reason[why as usize] += 1;
            if was_queued(why) {
                losses.dropped.add(meta.bytes);
            }
        }
        if let Some(Some(meter)) = self.meters.get_mut(index(at)) {
            meter.on_drop(meta, (self.source_of)(payload), why, now);
        }
    }

    fn on_mark(&mut self, at: PortId, _meta: &Meta, now: Time) {
        if let Some(losses) = self.losses.get_mut(index(at)) {
            losses.marked += 1;
        }
        if let Some(Some(meter)) = self.meters.get_mut(index(at)) {
            meter.on_mark(now);
        }
    }

    #[inline]
    fn on_delivery(&mut self, _node: u16, meta: &Meta, payload: &P, now: Time) {
        if let Some(arrivals) = &mut self.arrivals
            && let Some(delay) = (self.delay_of)(payload, now)
        {
            let source = (self.source_of)(payload);
            arrivals.count((meta.from, meta.to), source, meta.bytes, delay, now);
        }
    }

    #[inline]
    fn on_emission(&mut self, _node: u16, _meta: &Meta, payload: &P, now: Time) {
        if let Some(emissions) = &mut self.emissions {
            emissions.on_emission((self.source_of)(payload), now);
        }
    }

    fn on_flow(&mut self, report: &FlowReport) {
        self.flows.push(report.clone());
    }

    fn on_sample(
        &mut self,
        at: PortId,
        backlog: Backlog,
        table: &FlowTable,
        gauges: &[(&'static str, f64)],
        now: Time,
    ) {
        if self.layout.measures(now)
            && let Some(tables) = self.flow_tables.get_mut(index(at))
        {
            tables.add(table);
        }
        // A network samples all of its ports, and a large one has thousands that nobody asked for.
        if self.layout.keep_series && self.meter(at).is_some() {
            self.queue.push(QueueRow { time: now, port: at, backlog: Some(backlog), gauge: None });
            let gauge_row = |gauge: &_| QueueRow { time: now, port: at, backlog: None, gauge: Some(*gauge) };
            self.queue.extend(table.named().iter().chain(gauges).map(gauge_row));
        }
    }

    fn on_class(&mut self, at: PortId, state: &ClassState, now: Time) {
        if self.meter(at).is_some() {
            self.classes.report(at, state, now <= self.layout.from);
        }
    }

    fn on_sender(&mut self, sample: &SenderSample) {
        if self.layout.senders {
            let SenderSample {
                source, id, now, acked, window, flight, rtt, pacing_rate, delivery_rate, ..
            } = *sample;
            let row =
                ProgressRow { time: now, source, id, acked, window, flight, rtt, pacing_rate, delivery_rate };
            self.progress.push(row);
        }
    }
}

impl<P> Divisible<P> for Recorder<P> {
    fn fresh(&self) -> Recorder<P> {
        Recorder::new(self.layout.clone()).with_sources(self.source_of).with_delays(self.delay_of)
    }

    fn join(&mut self, part: Recorder<P>, has: &dyn Fn(PortId) -> bool) {
        /// Takes the elements of the ports that the part has.
        fn take<T>(own: &mut [T], of_part: Vec<T>, has: &dyn Fn(PortId) -> bool) {
            for ((own, theirs), port) in own.iter_mut().zip(of_part).zip(0..) {
                if has(PortId(port)) {
                    *own = theirs;
                }
            }
        }
        take(&mut self.meters, part.meters, has);
        take(&mut self.losses, part.losses, has);
        take(&mut self.flow_tables, part.flow_tables, has);
        self.flows.extend(part.flows);
        // Each part took its samples in the order of time and of ports. Sorting keeps the order of the rows
        // of one port.
        self.queue.extend(part.queue);
        self.queue.sort_by_key(|row| (row.time, row.port));
        self.classes.join(part.classes, has);
        self.progress.extend(part.progress);
        if let (Some(own), Some(theirs)) = (&mut self.emissions, part.emissions) {
            own.join(theirs);
        }
        // The sender, the port and the receiver of a packet may be in three parts.
        if let (Some(own), Some(theirs)) = (&mut self.arrivals, part.arrivals) {
            own.join(theirs);
        }
    }
}
