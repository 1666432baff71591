//! Runs one simulation on several threads, with the same results as on one.
//!
//! The network is [divided](crate::partition) into parts. Each part is a separate [`Sim`], with the sources
//! and the ports of its nodes. A packet that leaves a part needs the delay of a link to reach the next one,
//! and the shortest such delay is the *window*: parts that have handled all events before a time can handle
//! the events of the window from the next event on without news of each other (conservative windows:
//! Lubachevsky, Communications of the ACM 32(1), 1989; Nicol, Journal of the ACM 40(2), 1993). Then they
//! exchange the packets that leave, and the time of the next event of all parts gives the next window.
//!
//! # Equality with one thread
//! Within a part events come in the order of one thread: it is drawn from their time and their origin, and
//! does not depend on other parts ([`crate::event_queue`]). Parts exchange packets at fixed times of the
//! simulation, not of the machine. So results do not depend on the number of threads or on their speed. Each
//! part has its own probe, and gets the reports of one port from one part ([`Divisible`]). The number of
//! events may differ from a run with one thread, because a plain queue decides about packets that leave a
//! part earlier.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use giveway_qdisc::{Divisible, Span, Time};

use crate::engine::{Crossing, Sim, Totals, Unarrived};
use crate::partition::Partition;
use crate::plan::Plan;
use crate::segment::Segment;

/// The end of a run on several threads.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ParallelEnd {
    /// The cost of the run, of all parts together.
    pub totals: Totals,
    /// Remarks of the sources, each with the number of its source.
    pub remarks: Vec<(u16, String)>,
}

/// Runs a plan to its end on at most `threads` threads, of which the calling thread is one; each simulates
/// one or more parts of `partition`. Every thread builds the plan and takes its parts out of it, so that
/// sources and disciplines never move between threads. `keep_running` gets the simulated time now and then;
/// if it returns false, the run stops without a result.
///
/// # Panics
/// If a source or a discipline panics, or threads cannot be started.
pub fn run<R: Divisible<Segment> + Send>(
    plan: &(dyn Fn() -> Plan + Sync),
    partition: &Partition,
    threads: usize,
    probe: &mut R,
    keep_running: &mut dyn FnMut(Time) -> bool,
) -> Option<ParallelEnd> {
    let workers = threads.clamp(1, partition.parts());
    let mut shares: Vec<Vec<(u16, R)>> = (0..workers).map(|_| Vec::new()).collect();
    for number in 0..partition.parts() {
        shares[number % workers].push((number as u16, probe.fresh()));
    }
    let own = shares.swap_remove(0);
    let exchange = &Exchange::new(partition, workers);
    let finished = std::thread::scope(|scope| {
        let start = |share| scope.spawn(move || exchange.work(plan, partition, share, &mut |_| true));
        let running: Vec<_> = shares.into_iter().map(start).collect();
        let mut finished = exchange.work(plan, partition, own, keep_running);
        for thread in running {
            let others = thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            finished = finished.zip(others).map(|(mut all, others)| {
                all.extend(others);
                all
            });
        }
        finished
    });
    let mut finished = finished?;
    finished.sort_by_key(|part| part.number);
    let mut ended = ParallelEnd::default();
    for part in finished {
        ended.totals.events += part.totals.events;
        ended.remarks.extend(part.remarks);
        probe.join(part.probe, &|port| partition.part_of_port(port) == part.number);
    }
    ended.remarks.sort_by_key(|(source, _)| *source);
    Some(ended)
}

/// A part of the network in a run, with its probe.
struct PartRun<R> {
    number: u16,
    sim: Sim,
    probe: R,
}

/// The results of a part after a run.
struct PartResult<R> {
    number: u16,
    probe: R,
    totals: Totals,
    remarks: Vec<(u16, String)>,
}

/// Exchanges packets and the times of the next events between parts. There are two rounds, used in turn, so
/// that a fast thread can write the next one while a slow one reads this one.
struct Exchange {
    rounds: [Round; 2],
    gate: Gate,
    parts: usize,
    /// The datagrams that are on links when the run ends.
    unarrived: Mutex<Vec<Unarrived>>,
}

struct Round {
    /// For each part the time of its next event or of the first packet that left it, in picoseconds.
    next: Vec<AtomicU64>,
    /// The packets from each part to each: from the part `s` to the part `r` have the index
    /// `s * parts + r`.
    mail: Vec<Mutex<Vec<Crossing>>>,
    /// For each part the parts with mail for it, one bit each.
    senders: Vec<AtomicU64>,
    /// True if the run must stop.
    stopped: AtomicBool,
}

/// The reason for which no lock of an [`Exchange`] is ever poisoned.
const UNPOISONED: &str = "nothing panics with this lock";

impl Exchange {
    fn new(partition: &Partition, workers: usize) -> Exchange {
        let parts = partition.parts();
        let round = || Round {
            next: (0..parts).map(|_| AtomicU64::new(0)).collect(),
            mail: (0..parts * parts).map(|_| Mutex::default()).collect(),
            senders: (0..parts).map(|_| AtomicU64::new(0)).collect(),
            stopped: AtomicBool::new(false),
        };
        Exchange { rounds: [round(), round()], gate: Gate::new(workers), parts, unarrived: Mutex::default() }
    }

    /// Simulates the parts with these numbers and probes to the end of the run, in parallel with the other
    /// threads. `keep_running` gets the simulated time after each round, and stops the run if it returns
    /// false. Then the result is `None`.
    fn work<R: Divisible<Segment>>(
        &self,
        plan: &dyn Fn() -> Plan,
        partition: &Partition,
        share: Vec<(u16, R)>,
        keep_running: &mut dyn FnMut(Time) -> bool,
    ) -> Option<Vec<PartResult<R>>> {
        let _breaks_if_this_panics = Breaker(&self.gate);
        let mut plan = plan();
        let until = plan.until;
        let take = |(number, probe)| PartRun { number, sim: Sim::part(&mut plan, partition, number), probe };
        let mut parts: Vec<PartRun<R>> = share.into_iter().map(take).collect();
        // The rest of the plan belongs to other threads.
        drop(plan);
        let mut number = 0;
        loop {
            let round = &self.rounds[number % 2];
            parts.iter_mut().for_each(|part| self.send(part, round));
            self.gate.wait()?;
            parts.iter_mut().for_each(|part| self.receive(part, round));
            if round.stopped.load(Ordering::Relaxed) {
                return None;
            }
            let first = round.next.iter().map(|next| next.load(Ordering::Relaxed)).min();
            let first = Time::from_ps(first.expect("there are parts"));
            if first > until {
                break;
            }
            // A packet may arrive at the end of the window, so the end is not part of it.
            let last = (first + partition.window() - Span::from_ps(1)).min(until);
            parts.iter_mut().for_each(|part| part.sim.step_to(last, &mut part.probe));
            number += 1;
            if !keep_running(last) {
                // The other threads read this after the next gate.
                self.rounds[number % 2].stopped.store(true, Ordering::Relaxed);
            }
        }
        // The clock stands at the end of the run, as it does on one thread.
        parts.iter_mut().for_each(|part| part.sim.step_to(until, &mut part.probe));
        self.finish(parts)
    }

    /// Ends the run in some parts.
    fn finish<R: Divisible<Segment>>(&self, mut parts: Vec<PartRun<R>>) -> Option<Vec<PartResult<R>>> {
        let remarks: Vec<_> = parts.iter().map(|part| part.sim.remarks().collect()).collect();
        for part in &mut parts {
            let unarrived = part.sim.close(&mut part.probe);
            self.unarrived.lock().expect(UNPOISONED).extend(unarrived);
        }
        self.gate.wait()?;
        let unarrived = self.unarrived.lock().expect(UNPOISONED);
        let finish = |(PartRun { number, sim, mut probe }, own)| {
            let totals = sim.report_flows(&unarrived, &mut probe);
            PartResult { number, probe, totals, remarks: own }
        };
        Some(parts.into_iter().zip(remarks).map(finish).collect())
    }

    /// Puts the packets that leave a part into the letter boxes, and writes the time of its next event.
    fn send<R>(&self, part: &mut PartRun<R>, round: &Round) {
        let mut next = part.sim.next_event();
        let own = usize::from(part.number);
        for (to, packets) in part.sim.leaving().iter_mut().enumerate() {
            let Some(first) = packets.iter().map(|packet| packet.at).min() else { continue };
            next = next.min(first);
            // The letter box is empty, and gives its memory to the packets of the next round.
            std::mem::swap(&mut *round.mail[own * self.parts + to].lock().expect(UNPOISONED), packets);
            round.senders[to].fetch_or(1 << own, Ordering::Relaxed);
        }
        round.next[own].store(next.as_ps(), Ordering::Relaxed);
    }

    /// Takes the packets for a part out of its letter boxes.
    fn receive<R>(&self, part: &mut PartRun<R>, round: &Round) {
        let own = usize::from(part.number);
        let mut senders = round.senders[own].swap(0, Ordering::Relaxed);
        while senders > 0 {
            let sender = senders.trailing_zeros() as usize;
            senders &= senders - 1;
            let mut mail = round.mail[sender * self.parts + own].lock().expect(UNPOISONED);
            mail.drain(..).for_each(|packet| part.sim.receive(packet));
        }
    }
}

/// A barrier that threads wait at for a short time, and that breaks if one of them panics.
struct Gate {
    /// Number of threads.
    threads: usize,
    /// Number of threads that wait.
    waiting: AtomicUsize,
    /// Number of times that all threads have arrived.
    opened: AtomicUsize,
    broken: AtomicBool,
}

impl Gate {
    /// Number of looks at the gate before a thread lets others run. A window takes some microseconds, and so
    /// do as many looks.
    const LOOKS: u32 = 5_000;

    fn new(threads: usize) -> Gate {
        let [waiting, opened] = [0, 0].map(AtomicUsize::new);
        Gate { threads, waiting, opened, broken: AtomicBool::new(false) }
    }

    /// Waits until all threads have arrived. What they wrote before is visible to all afterwards. `None` if a
    /// thread has panicked.
    fn wait(&self) -> Option<()> {
        let before = self.opened.load(Ordering::Acquire);
        if self.waiting.fetch_add(1, Ordering::AcqRel) + 1 == self.threads {
            self.waiting.store(0, Ordering::Relaxed);
            self.opened.store(before.wrapping_add(1), Ordering::Release);
        }
        let mut looks = 0;
        while self.opened.load(Ordering::Acquire) == before {
            if self.broken.load(Ordering::Relaxed) {
                return None;
            }
            if looks < Gate::LOOKS {
                looks += 1;
                std::hint::spin_loop();
            } else {
                std::thread::yield_now();
            }
        }
        Some(())
    }
}

/// Breaks the gate if its thread panics, so that the others do not wait for it.
struct Breaker<'a>(&'a Gate);

impl Drop for Breaker<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.broken.store(true, Ordering::Relaxed);
        }
    }
}
