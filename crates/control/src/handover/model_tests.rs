//! Every interleaving of both sides of a hand-over, with processes that are stopped, continued, killed or
//! delayed, answers that are lost, a queue that is sent sooner or later, and a third process that starts.
//!
//! Both state machines come from the program. The rest is a model: a connection, which the kernel closes with
//! its process; the lock of the interface, which the kernel frees with its process; and the drivers of the
//! machines. Any of their actions may come before or after any other one. Time passes in seconds, at whose
//! ends the processes that run do what they can.

use super::earlier::{Earlier, Moment, SILENT, Share};
use super::messages::{HandOverAnswer, HandOverRequest};
use super::successor::{PATIENCE, Received, Step, Successor};

const SECOND: u64 = 1_000_000_000;
/// Length of a second in which all processes were late, which a schedule has once at most.
const LONG: u64 = 31 * SECOND;
/// Longest time in which no process takes frames, although the one with the link is not stopped: the limit of
/// silence, and a second of the model. After a lost answer the successor also waits for it.
const LONGEST_GAP: u64 = SILENT + SECOND;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Life {
    Runs,
    Stopped,
    Dead,
}

/// A process that starts without `--take-over`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Third {
    Absent,
    /// It has the lock, and has not looked for a successor yet.
    Locked,
    Forwards,
    Refused,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct World {
    now: u64,
    /// Seconds and faults (stops, kills and lost answers) that are left.
    seconds: u32,
    faults: u32,
    gap: u64,
    earlier: (Life, Earlier),
    /// True if the frames before the instant have left.
    drained: bool,
    successor: (Life, Successor),
    /// The step that the successor has started, and when.
    begun: Option<(Step, u64)>,
    request: Option<HandOverRequest>,
    answer: Option<Result<HandOverAnswer, ()>>,
    /// The successor has closed its connection, and whether the earlier process knows.
    closed: bool,
    noticed: bool,
    /// An answer was lost.
    lost: bool,
    locks: bool,
    forwards: bool,
    third: Third,
}

#[derive(Clone, Copy, Debug)]
enum Event {
    Serve,
    Tick,
    Act,
    Drain,
    Start,
    StopEarlier,
    StopSuccessor,
    ContinueEarlier,
    ContinueSuccessor,
    KillEarlier,
    KillSuccessor,
    LoseAnswer,
    Second,
    Long,
}

const EVENTS: [Event; 14] = [
    Event::Serve,
    Event::Tick,
    Event::Act,
    Event::Drain,
    Event::Start,
    Event::StopEarlier,
    Event::StopSuccessor,
    Event::ContinueEarlier,
    Event::ContinueSuccessor,
    Event::KillEarlier,
    Event::KillSuccessor,
    Event::LoseAnswer,
    Event::Second,
    Event::Long,
];

impl World {
    fn new(faults: u32, seconds: u32) -> World {
        World {
            now: 0,
            seconds,
            faults,
            gap: 0,
            earlier: (Life::Runs, Earlier::default()),
            drained: false,
            successor: (Life::Runs, Successor::default()),
            begun: None,
            request: None,
            answer: None,
            closed: false,
            noticed: false,
            lost: false,
            locks: false,
            forwards: false,
            third: Third::Absent,
        }
    }

    /// The world after an event; `None` if the event is not possible.
    fn after(&self, event: Event) -> Option<World> {
        let mut next = self.clone();
        let happened = match event {
            Event::Serve => next.serve(),
            Event::Tick => next.tick(),
            Event::Act => next.act(),
            Event::Drain => {
                let sends =
                    next.earlier.0 == Life::Runs && matches!(next.earlier.1.share(), Share::Before(_));
                sends && !std::mem::replace(&mut next.drained, true)
            }
            Event::Start => next.start(),
            Event::StopEarlier => next.fault(|next| change(&mut next.earlier.0, Life::Runs, Life::Stopped)),
            Event::StopSuccessor => {
                next.fault(|next| change(&mut next.successor.0, Life::Runs, Life::Stopped))
            }
            Event::ContinueEarlier => change(&mut next.earlier.0, Life::Stopped, Life::Runs),
            Event::ContinueSuccessor => change(&mut next.successor.0, Life::Stopped, Life::Runs),
            Event::KillEarlier => next.fault(|next| kill(&mut next.earlier.0)),
            Event::KillSuccessor => next.fault(|next| {
                let killed = kill(&mut next.successor.0);
                (next.forwards, next.closed, next.locks) = (false, true, false);
                killed
            }),
            Event::LoseAnswer => next.fault(|next| {
                next.lost = true;
                next.answer.take().is_some()
            }),
            Event::Second => next.pass(SECOND),
            Event::Long => next.pass(LONG),
        };
        happened.then_some(next)
    }

    fn moment(&self) -> Moment {
        Moment { wall: self.now, now: self.now, drained: self.drained }
    }

    fn fault(&mut self, happens: impl FnOnce(&mut World) -> bool) -> bool {
        let left = self.faults > 0;
        self.faults = self.faults.saturating_sub(1);
        left && happens(self)
    }

    /// The earlier process reads from the connection.
    fn serve(&mut self) -> bool {
        if self.earlier.0 != Life::Runs {
            return false;
        }
        if let Some(request) = self.request.take() {
            let at = matches!(request, HandOverRequest::At(_));
            let answer = self.earlier.1.request(1, request, self.moment()).map_err(drop);
            self.drained &= !(at && answer.is_ok());
            self.answer = Some(answer);
            return true;
        }
        if self.closed && !self.noticed {
            self.noticed = true;
            self.earlier.1.left(1, self.now);
            return true;
        }
        false
    }

    /// The earlier process looks at its clock.
    fn tick(&mut self) -> bool {
        let before = self.earlier.clone();
        if self.earlier.0 == Life::Runs {
            self.earlier.1.advance(self.moment());
            if self.earlier.1.successor().is_some() {
                self.earlier.0 = Life::Dead;
            }
        }
        self.earlier != before
    }

    /// The successor starts its next step, or ends the one that it has started.
    fn act(&mut self) -> bool {
        if self.successor.0 != Life::Runs {
            return false;
        }
        let Some((step, since)) = self.begun.take() else {
            let step = self.successor.1.next(self.now, 7);
            if self.forwards && step == Step::Done {
                // Its connection stays open until the earlier process knows that it shall end.
                return !std::mem::replace(&mut self.closed, true);
            }
            if step == Step::Pause {
                return false;
            }
            if let Step::Ask(request) = step {
                (self.request, self.answer) = (Some(request), None);
            }
            self.begun = Some((step, self.now));
            return true;
        };
        let received = match &step {
            Step::Ask(_) => match self.answer.take() {
                Some(Ok(answer)) => Received::Answer(answer),
                Some(Err(())) => Received::Refused("refused".to_owned()),
                None if self.earlier.0 == Life::Dead => Received::Silence("it has ended".to_owned()),
                None if self.now >= since + PATIENCE => Received::Silence("it is silent".to_owned()),
                None => {
                    self.begun = Some((step, since));
                    return false;
                }
            },
            // The program tries for some seconds, so a process that has the lock for a moment does not count.
            Step::TakeLocks if self.third == Third::Locked => {
                self.begun = Some((step, since));
                return false;
            }
            Step::TakeLocks => {
                self.locks = self.earlier.0 == Life::Dead && self.third != Third::Forwards;
                Received::Locks(self.locks)
            }
            Step::Release => {
                self.forwards = true;
                Received::Released
            }
            Step::GiveUp(_) => {
                (self.successor.0, self.closed) = (Life::Dead, true);
                return true;
            }
            Step::Done | Step::Pause => return false,
        };
        // The connection stays open until the earlier process has answered that it ends.
        let open = matches!((&step, &received), (Step::Ask(HandOverRequest::End(_)), Received::Silence(_)))
            && self.earlier.0 != Life::Dead;
        self.successor.1.received(&step, received);
        if open {
            self.begun = Some((Step::Done, self.now));
        }
        true
    }

    /// A third process takes the lock of the interface, looks for a successor, and forwards if there is none.
    fn start(&mut self) -> bool {
        self.third = match self.third {
            Third::Absent if self.earlier.0 == Life::Dead && !self.locks => Third::Locked,
            Third::Locked if self.successor.0 == Life::Dead => Third::Forwards,
            Third::Locked => Third::Refused,
            _ => return false,
        };
        true
    }

    /// Time passes, and the processes that run do what they can.
    fn pass(&mut self, time: u64) -> bool {
        if self.seconds == 0 || time == LONG && self.now >= LONG {
            return false;
        }
        self.now += time;
        self.seconds -= 1;
        let uncovered = !self.is_covered();
        // A hand-over has fewer steps, and a successor repeats its question until the queue is empty.
        for _ in 0..40 {
            if !(self.tick() | self.serve() | self.act()) {
                break;
            }
        }
        if self.third == Third::Locked {
            self.start();
            while self.act() {}
        }
        // In a long second every process may have waited for its turn.
        let counts = uncovered && !self.is_covered() && time == SECOND && self.owner_runs();
        self.gap = if counts { self.gap + time } else { 0 };
        true
    }

    /// True if a process takes frames, or sends those that it has.
    fn is_covered(&self) -> bool {
        let (life, earlier) = &self.earlier;
        let takes = match earlier.share() {
            Share::All | Share::Since(_) => true,
            Share::Before(_) => !self.drained,
            Share::Nothing => false,
        };
        *life != Life::Dead && takes || self.forwards || self.third == Third::Forwards
    }

    /// True if the process with the link runs. After the death of all, a service manager starts one.
    fn owner_runs(&self) -> bool {
        let (successor, earlier) = (self.successor.0, self.earlier.0);
        match (earlier, successor) {
            (Life::Dead, _) => successor == Life::Runs,
            (_, Life::Dead) => earlier == Life::Runs,
            _ if self.earlier.1.has_given() => successor == Life::Runs,
            _ => earlier == Life::Runs,
        }
    }

    /// A promise that does not hold.
    fn problem(&self) -> Option<String> {
        let earlier = self.earlier.0 != Life::Dead && !self.earlier.1.has_given();
        let senders = [earlier, self.forwards, self.third == Third::Forwards];
        let senders = senders.into_iter().filter(|sends| *sends).count();
        if senders > 1 {
            return Some(format!("{senders} processes forward"));
        }
        let longest = LONGEST_GAP + if self.lost { PATIENCE } else { 0 };
        (self.gap > longest).then(|| format!("none forwards for {} ns", self.gap))
    }
}

fn change(life: &mut Life, from: Life, to: Life) -> bool {
    let was = *life == from;
    if was {
        *life = to;
    }
    was
}

fn kill(life: &mut Life) -> bool {
    std::mem::replace(life, Life::Dead) != Life::Dead
}

#[test]
#[expect(clippy::disallowed_types, reason = "the set is asked for members only, and its order is not read")]
fn two_never_forward_and_none_only_for_a_limited_time() {
    // A million states with three faults, and many more with four.
    let long = std::env::var_os("GIVEWAY_LONG").is_some();
    let first = if long { World::new(3, 8) } else { World::new(2, 7) };
    // Each state with the event that led to it, and the state before.
    let mut seen = std::collections::HashSet::from([first.clone()]);
    let mut states = vec![(first, None)];
    let mut taken_over = 0;
    let mut at = 0;
    while at < states.len() {
        for event in EVENTS {
            let Some(next) = states[at].0.after(event) else { continue };
            if seen.insert(next.clone()) {
                if let Some(problem) = next.problem() {
                    let mut events = vec![event];
                    let mut from = at;
                    while let Some((event, before)) = states[from].1 {
                        events.push(event);
                        from = before;
                    }
                    events.reverse();
                    panic!("{problem} after {events:?}: {next:#?}");
                }
                taken_over += u32::from(next.forwards && next.earlier.0 == Life::Dead);
                states.push((next, Some((event, at))));
            }
        }
        at += 1;
    }
    println!("{} states", seen.len());
    assert!(seen.len() > 10_000 && taken_over > 100, "{} states, {taken_over} ends", seen.len());
}
