//! Measures how late threads wake up on this machine: after the time of a timer, and after the arrival of a
//! packet. A simulator whose hosts wake up as late can be compared with a test bed.
//!
//! Two kinds of thread sleep until a time: one as in the live path (`clock_nanosleep` until a time of the
//! monotonic clock, with real-time priority), and one as in an ordinary sender (`ppoll` with a timeout, with
//! ordinary priority, for which the kernel adds up to 50 µs of slack). A third thread waits for datagrams:
//! its delay is the time from the kernel's receive time stamp (`SO_TIMESTAMPNS`) to the return of the system
//! call.
//!
//! Each is measured on an idle machine, and while another thread keeps one processor busy.

mod machine;
mod waits;

use std::fmt::Write as _;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use giveway_qdisc::Span;

use self::machine::Machine;
use self::waits::Priority;
use crate::error::TestbedError;

/// The cumulative shares of a written distribution.
const SHARES: [f64; 20] = [
    0.0, 0.01, 0.02, 0.05, 0.1, 0.2, 0.25, 0.3, 0.4, 0.5, 0.6, 0.7, 0.75, 0.8, 0.9, 0.95, 0.98, 0.99, 0.999,
    1.0,
];

/// The shares in the table.
const SHOWN: [(f64, &str); 5] =
    [(0.5, "median"), (0.9, "90 %"), (0.99, "99 %"), (0.999, "99.9 %"), (1.0, "largest")];

/// A thread that waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Waiter {
    /// It sleeps until a time, as the live path does.
    LiveTimer,
    /// It sleeps until a time, as an ordinary sender does.
    SenderTimer,
    /// It waits for a datagram.
    Receiver,
}

impl Waiter {
    const ALL: [Waiter; 3] = [Waiter::LiveTimer, Waiter::SenderTimer, Waiter::Receiver];

    fn describe(self) -> &'static str {
        match self {
            Waiter::LiveTimer => "timer of the live path",
            Waiter::SenderTimer => "timer of a sender",
            Waiter::Receiver => "receive",
        }
    }
}

/// The delays of one thread, in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Delays(Vec<Span>);

impl Delays {
    fn new(mut delays: Vec<Span>) -> Delays {
        delays.sort_unstable();
        Delays(delays)
    }

    /// The delay that a share of the wake-ups does not exceed; the shortest for zero.
    fn at(&self, share: f64) -> Span {
        let place = (share * self.0.len() as f64).ceil() as usize;
        self.0.get(place.saturating_sub(1)).copied().unwrap_or_default()
    }
}

/// The load of the machine during a measurement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MachineLoad {
    /// No other thread of this program runs.
    Idle,
    /// A thread of this program keeps one processor busy.
    OneBusyCore,
}

impl MachineLoad {
    const ALL: [MachineLoad; 2] = [MachineLoad::Idle, MachineLoad::OneBusyCore];

    fn describe(self) -> &'static str {
        match self {
            MachineLoad::Idle => "idle",
            MachineLoad::OneBusyCore => "one busy core",
        }
    }
}

/// The measured wake-ups of a machine.
#[derive(Clone, Debug)]
pub struct Timing {
    machine: Machine,
    wake_ups: u32,
    /// By load, then by waiter.
    delays: [[Delays; 3]; 2],
    /// The first error of real-time priority, without which the live path wakes up later.
    pub unprivileged: Option<String>,
}

impl Timing {
    /// Measures `wake_ups` wake-ups of each thread under each load; a thousand take one second.
    /// `keep_running` gets the progress, 0 to 1; if it returns false, the measurement stops without a result.
    ///
    /// # Errors
    /// If a socket cannot be created or a clock cannot be read.
    pub fn measure(
        wake_ups: u32,
        keep_running: &mut dyn FnMut(f64) -> bool,
    ) -> Result<Option<Timing>, TestbedError> {
        let mut timing =
            Timing { machine: Machine::this(), wake_ups, delays: Default::default(), unprivileged: None };
        let steps = (MachineLoad::ALL.len() * Waiter::ALL.len()) as f64;
        for (load, delays) in MachineLoad::ALL.into_iter().zip(&mut timing.delays) {
            for (waiter, delays) in Waiter::ALL.into_iter().zip(delays) {
                let measured = under(load, || one(waiter, wake_ups))?;
                let (all, problem) = measured;
                *delays = Delays::new(all);
                timing.unprivileged = timing.unprivileged.take().or(problem);
                let done = load as usize * Waiter::ALL.len() + waiter as usize + 1;
                if !keep_running(done as f64 / steps) {
                    return Ok(None);
                }
            }
        }
        Ok(Some(timing))
    }

    /// The table for a terminal.
    pub fn table(&self) -> String {
        let mut out = format!("{:38}", "delay of a wake-up");
        SHOWN.iter().for_each(|(_, name)| write!(out, "{name:>11}").expect("a text takes everything"));
        out.push('\n');
        for (load, delays) in MachineLoad::ALL.into_iter().zip(&self.delays) {
            for (waiter, delays) in Waiter::ALL.into_iter().zip(delays) {
                let name = format!("{}, {}", waiter.describe(), load.describe());
                write!(out, "{name:38}").expect("a text takes everything");
                for (share, _) in SHOWN {
                    write!(out, "{:>11}", shown(delays.at(share))).expect("a text takes everything");
                }
                out.push('\n');
            }
        }
        out
    }

    /// The distributions of the timer of a sender and of receiving, as CSV with the columns `what` (`timer`
    /// or `receive`), `share` (cumulative, 0 to 1) and `delay` (with its unit). Comments in front describe
    /// the machine and the measurement, with `date`.
    pub fn csv(&self, load: MachineLoad, date: &str) -> String {
        let [live, sender, receive] = &self.delays[load as usize];
        let mut out = String::from(COMMENT);
        let comments = [
            ("machine", self.machine.kind.clone()),
            ("kernel", self.machine.kernel.clone()),
            ("processors", self.machine.processors.to_string()),
            ("load", format!("{}; load average {}", load.describe(), self.machine.load_average)),
            ("date", date.to_owned()),
            ("wake-ups", format!("{} of each kind", self.wake_ups)),
            ("timer of the live path", quantiles(live)),
        ];
        comments.iter().for_each(|(name, value)| {
            writeln!(out, "# {name}: {value}").expect("a text takes everything");
        });
        out.push_str("what,share,delay\n");
        for (what, delays) in [("timer", sender), ("receive", receive)] {
            for share in SHARES {
                writeln!(out, "{what},{share},{}", shown(delays.at(share))).expect("a text takes everything");
            }
        }
        out
    }
}

/// The first lines of a file of distributions. The first one marks it.
const COMMENT: &str = "\
# How late threads wake up, measured by giveway testbed --measure-timing.
# timer: from the requested time to the wake-up of an ordinary thread (ppoll with a timeout).
# receive: from the kernel's time stamp of a datagram to the return of the receiving system call.
";

/// A few quantiles in one line.
fn quantiles(delays: &Delays) -> String {
    SHOWN.map(|(share, name)| format!("{name} {}", shown(delays.at(share)))).join(", ")
}

/// A delay in microseconds, with one digit.
fn shown(delay: Span) -> String {
    format!("{:.1}us", delay.as_s() * 1e6)
}

/// Runs a function while the machine has a load.
fn under<T>(load: MachineLoad, what: impl FnOnce() -> T) -> T {
    if load == MachineLoad::Idle {
        return what();
    }
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            while !stop.load(Ordering::Relaxed) {
                std::hint::spin_loop();
            }
        });
        let result = what();
        stop.store(true, Ordering::Relaxed);
        result
    })
}

/// A function that waits so many times, and returns the delays.
type Wait = fn(u32) -> Result<Vec<Span>, TestbedError>;

/// The delays of one thread, and the error of its priority.
fn one(waiter: Waiter, wake_ups: u32) -> Result<(Vec<Span>, Option<String>), TestbedError> {
    let (priority, wait): (Priority, Wait) = match waiter {
        Waiter::LiveTimer => (Priority::RealTime, waits::sleep),
        Waiter::SenderTimer => (Priority::Ordinary, waits::poll),
        Waiter::Receiver => (Priority::Ordinary, waits::receive),
    };
    thread::scope(|scope| {
        let waiting = scope.spawn(move || {
            let problem = priority.set();
            wait(wake_ups).map(|delays| (delays, problem))
        });
        waiting.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn timing() -> Timing {
        let delays = |step: u64| Delays::new((1..=1000).rev().map(|n| Span::ns(100 * step * n)).collect());
        let machine = Machine {
            kind: "virtual".to_owned(),
            kernel: "6.1".to_owned(),
            processors: 2,
            load_average: "0.10".to_owned(),
        };
        let delays = [[delays(1), delays(2), delays(3)], [delays(4), delays(5), delays(6)]];
        Timing { machine, wake_ups: 1000, delays, unprivileged: None }
    }

    #[test]
    fn the_file_has_both_distributions_and_says_where_they_are_from() {
        let csv = timing().csv(MachineLoad::Idle, "2026-01-01");
        let (comments, rows): (Vec<&str>, Vec<&str>) = csv.lines().partition(|line| line.starts_with('#'));
        assert!(
            comments.contains(&"# machine: virtual") && comments.contains(&"# load: idle; load average 0.10")
        );
        assert_eq!((rows.len(), rows[0]), (41, "what,share,delay"));
        // The 500th of a thousand delays of 0.2 µs each.
        assert!(rows.contains(&"timer,0.5,100.0us") && rows.contains(&"receive,0.999,299.7us"), "{csv}");
        assert!(rows.contains(&"timer,0,0.2us") && rows.contains(&"timer,1,200.0us"), "{csv}");
        assert!(timing().csv(MachineLoad::OneBusyCore, "").contains("\ntimer,1,500.0us\n"));
        assert!(!csv.contains('/') || !csv.contains("home"), "no path of the machine");
    }

    #[test]
    fn the_table_has_a_line_for_each_thread_and_load() {
        let table = timing().table();
        let lines: Vec<&str> = table.lines().collect();
        assert_eq!(lines.len(), 7);
        let words: Vec<&str> = lines[6].split_whitespace().collect();
        assert_eq!(
            words,
            ["receive,", "one", "busy", "core", "300.0us", "540.0us", "594.0us", "599.4us", "600.0us"]
        );
    }

    /// Ten real wake-ups of each kind: none is early, and each thread ends.
    #[test]
    fn threads_wake_up() {
        let mut shares = Vec::new();
        let timing = Timing::measure(10, &mut |share| {
            shares.push(share);
            true
        });
        let timing = timing.unwrap().expect("it was not stopped");
        assert_eq!((shares.len(), shares.last()), (6, Some(&1.0)));
        for delays in timing.delays.iter().flatten() {
            assert_eq!(delays.0.len(), 10);
            assert!(delays.at(1.0) > Span::ZERO, "{delays:?}");
        }
        assert!(Timing::measure(10, &mut |_| false).unwrap().is_none());
    }
}
