//! The load generator: the traffic sources of the simulator, over sockets.
//!
//! # Principles
//! - The sources are the simulator's, built from the same random streams. They use a [`Net`], whose carrier
//!   has sockets here. A run and a simulation with the same seed therefore have the same traffic.
//! - One thread does everything. A socket stays in the namespace in which it was created, so the thread
//!   enters a namespace before it creates a socket, and waits for all sockets together. Both ends of a
//!   connection have one clock, and sources need no lock.
//! - A source gets the time for which it requested a wake-up, even if the wake-up is late. Its next events,
//!   and the start of a transfer, are then the same as in a simulation, and lateness is part of the flow
//!   completion time. A load generator that falls behind measures itself, not the network, so its wake-up
//!   latency is recorded ([`Lateness`]). The thread requests a real-time scheduling class.
//! - A transfer is complete when the receiving application has read the last byte.
//! - A FIN is sent with the last data, which wait for it (`MSG_MORE`). If the data fill their last segment,
//!   TCP does not wait, and the FIN would be a separate small packet, which no simulation has. In this case
//!   the receiver closes first.
//!
//! # Deviations
//! - The counters of TCP (segments, retransmissions, timeouts) are not read, so these metrics are missing.
//! - Datagrams carry their number and the time of sending, so that the smallest is an IP packet of 40 bytes.
//!   Those that arrive within [`GRACE`] after the end of the run are neither received nor lost, as in a
//!   simulation; later ones are lost.
//!
//! # Cost
//! - One or two system calls per wake-up of a source, and one per 256 kB that are read or written. The kernel
//!   discards received data (`MSG_TRUNC`).

mod clock;
mod open;
mod plain;
mod quic;
mod sockets;
mod token;
mod transfer;

use std::rc::Rc;

use giveway_qdisc::{FlowReport, Span, Time};
use giveway_sim::engine::SourcePlan;
use giveway_sim::net::{Caller, Event, Net, Settings};
use nix::sys::epoll::EpollEvent;

pub(crate) use self::clock::Clock;
use self::sockets::Sockets;
use crate::command::run;
use crate::error::TestbedError;
use crate::lateness::Lateness;
use crate::topology::Topology;

pub use self::clock::GRACE;

/// The load of a run.
pub struct Load {
    /// Sources, as in a simulation.
    pub sources: Vec<SourcePlan>,
    /// End of the run.
    pub until: Time,
    /// Start of the measurement interval.
    pub measured_from: Time,
    /// Start of the run, by the monotonic clock in nanoseconds; `None` for at once.
    pub starts_at: Option<u64>,
}

/// The result of a run, in addition to the reports of flows.
#[derive(Debug, Default)]
pub struct LoadResult {
    /// Wake-up latencies of the sources.
    pub lateness: Lateness,
    /// Remarks of sources, each with the number of the source.
    pub remarks: Vec<(u16, String)>,
    /// Number of events that sources got.
    pub events: u64,
    /// Time by which the run started after [`Load::starts_at`].
    pub late_start: Span,
}

impl Load {
    /// Sends the load through a test bed, in real time. `report` gets every flow. `keep_running` gets the
    /// progress, 0 to 1, ten times a second; if it returns false, the run stops without a result.
    ///
    /// Call it on a separate thread: the thread stays in a namespace of the test bed.
    ///
    /// # Errors
    /// If a socket cannot be created.
    pub fn drive(
        self,
        topology: &Topology,
        report: &mut dyn FnMut(&FlowReport),
        keep_running: &dyn Fn(f64) -> bool,
    ) -> Result<Option<LoadResult>, TestbedError> {
        request_realtime();
        let (until, starts_at) = (self.until, self.starts_at);
        let places = giveway_sim::origin::places(&self.sources);
        let sources = self.sources.into_iter().map(|plan| Running {
            settings: Settings {
                tcp: Rc::new(plan.tcp),
                quic: Rc::new(plan.quic),
                class: plan.class,
                dscp: plan.dscp,
                reserved: plan.reserved,
            },
            source: plan.source,
            wake: plan.start,
            latest: Time::ZERO,
        });
        let mut running = Drive {
            sources: sources.collect(),
            sockets: Sockets::open(topology, self.measured_from, places)?,
            result: LoadResult::default(),
        };
        (running.sockets.clock, running.result.late_start) =
            starts_at.map_or_else(|| (Clock::start(), Span::ZERO), Clock::start_at);
        if !running.run(until, report, keep_running)? {
            return Ok(None);
        }
        running.finish(until, report)?;
        Ok(Some(running.result))
    }
}

struct Running {
    source: Box<dyn giveway_sim::Source>,
    settings: Settings,
    /// Time of the next wake-up.
    wake: Time,
    /// Latest time that the source got.
    latest: Time,
}

struct Drive {
    sources: Vec<Running>,
    sockets: Sockets,
    result: LoadResult,
}

impl Drive {
    fn run(
        &mut self,
        until: Time,
        report: &mut dyn FnMut(&FlowReport),
        keep_running: &dyn Fn(f64) -> bool,
    ) -> Result<bool, TestbedError> {
        /// Short enough for a progress bar and for Ctrl-C.
        const PROGRESS_INTERVAL: Span = Span::ms(100);
        let mut next_progress = Time::ZERO;
        let mut epoll_events = [EpollEvent::empty(); 64];
        loop {
            let now = self.sockets.clock.now();
            if now >= until {
                return Ok(keep_running(1.0));
            }
            if now >= next_progress {
                if !keep_running(now.as_s() / until.as_s()) {
                    return Ok(false);
                }
                next_progress = now + PROGRESS_INTERVAL;
            }
            self.wake(now, report)?;
            let next = self.sources.iter().map(|source| source.wake).min().unwrap_or(Time::NEVER);
            self.sockets.sleep(next.min(until).min(next_progress))?;
            let count = self.sockets.wait(&mut epoll_events)?;
            for event in &epoll_events[..count] {
                self.sockets.handle(event)?;
                self.process_events(report)?;
            }
        }
    }

    /// Wakes each source that is due, in the order of wake-up times.
    fn wake(&mut self, now: Time, report: &mut dyn FnMut(&FlowReport)) -> Result<(), TestbedError> {
        while self.wake_next(now) {
            self.process_events(report)?;
        }
        Ok(())
    }

    /// Wakes the source with the earliest wake-up time, if that is not after `now`.
    fn wake_next(&mut self, now: Time) -> bool {
        let due = self.sources.iter().map(|source| source.wake).zip(0u16..).min();
        let Some((at, number)) = due.filter(|(at, _)| *at <= now) else { return false };
        self.result.lateness.record(self.sockets.clock.now().since(at));
        self.sources[usize::from(number)].wake = Time::NEVER;
        self.act(number, at, |source, net| source.wake(net));
        true
    }

    /// Calls a source with the time `now`, or with the latest time that it got, if that is later.
    fn act(&mut self, number: u16, now: Time, act: impl FnOnce(&mut dyn giveway_sim::Source, &mut Net<'_>)) {
        let running = &mut self.sources[usize::from(number)];
        running.latest = running.latest.max(now);
        let caller = Caller { source: number, settings: &running.settings, now: running.latest };
        act(&mut *running.source, &mut Net::new(caller, &mut self.sockets, &mut running.wake));
        self.result.events += 1;
    }

    /// Writes pending data, reports flows, and passes events to their sources, until there are none.
    ///
    /// Wake-ups that were due before an event come before the event: otherwise a transfer would start later
    /// because the machine was busy.
    fn process_events(&mut self, report: &mut dyn FnMut(&FlowReport)) -> Result<(), TestbedError> {
        loop {
            self.sockets.flush();
            if let Some(error) = self.sockets.error.take() {
                return Err(error);
            }
            self.sockets.reports.drain(..).for_each(|flow| report(&flow));
            let Some(at) = self.sockets.events.front().map(|(_, _, at)| *at) else { return Ok(()) };
            if self.wake_next(at) {
                continue;
            }
            let (source, event, at) = self.sockets.events.pop_front().expect("there is one");
            self.act(source, at, |source, net| source.on(event, net));
            if let Event::Closed(conn) | Event::Aborted(conn) = event {
                self.sockets.release(conn);
            }
        }
    }

    /// Ends the run: reports open flows.
    fn finish(&mut self, until: Time, report: &mut dyn FnMut(&FlowReport)) -> Result<(), TestbedError> {
        self.sockets.late_datagrams(until)?;
        for number in 0..self.sources.len() as u16 {
            self.act(number, until, |source, net| source.finish(net));
            if let Some(remark) = self.sources[usize::from(number)].source.remark() {
                self.result.remarks.push((number, remark));
            }
        }
        self.sockets.finish(until);
        self.sockets.reports.drain(..).for_each(|flow| report(&flow));
        Ok(())
    }
}

/// Requests a real-time scheduling class for the calling thread (SCHED_FIFO, with a lower priority than the
/// router). Without the permission, or without `chrt`, wake-ups are later, which is measured and reported.
fn request_realtime() {
    let thread = nix::unistd::gettid().to_string();
    let _ = run(&["chrt", "-f", "-p", "10", &thread]);
}
