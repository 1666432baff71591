//! The client of one reservation.

use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use giveway_control::reservations::address;
use giveway_live::clock::{monotonic_ns, wall_ns};
use giveway_live::station::{EVERYONE, Received, Station};
use giveway_program::commands::reserve::Args;
use giveway_program::show;
use giveway_qdisc::hash::SipHasher;
use giveway_qdisc::{Rate, Span};
use giveway_reserve::{Kind, Message, MessageError, Reason};

use super::error::ReserveError;
use crate::error::NetError;
use crate::outcome::Outcome;

/// The client of one reservation.
pub struct Client<'a> {
    args: &'a Args,
    station: Station,
    key: Option<SipHasher>,
    /// The request. Its number is set for each transmission.
    start: Message,
    /// Number of the last message that was sent.
    number: u64,
    /// True once Ctrl-C was pressed.
    stop: Arc<AtomicBool>,
    /// True once a router with another version of the protocol was reported.
    version_reported: bool,
    /// Link addresses of the routers that have granted the reservation.
    granted: Vec<[u8; 6]>,
}

/// The answer of the routers.
enum Answer {
    Granted,
    Refused([u8; 6], Reason),
    Nothing,
}

impl<'a> Client<'a> {
    /// A client that requests `start`. Setting `stop` makes it end the reservation.
    pub fn new(
        args: &'a Args,
        station: Station,
        key: Option<SipHasher>,
        start: Message,
        stop: Arc<AtomicBool>,
    ) -> Client<'a> {
        Client { args, station, key, start, number: 0, stop, version_reported: false, granted: Vec::new() }
    }

    /// Requests the reservation, and refreshes it until the program is stopped.
    ///
    /// # Errors
    /// The error of the socket, or of the output.
    pub fn keep(&mut self, out: &mut dyn Write) -> Result<Outcome, NetError> {
        match self.request(&self.start.to_owned(), self.args.tries, out)? {
            Answer::Granted => {}
            Answer::Refused(router, reason) => return self.refused(router, reason, out),
            Answer::Nothing if self.stopped() => return self.end(out),
            Answer::Nothing => return Ok(self.unanswered()),
        }
        if self.args.once {
            return Ok(Outcome::Done);
        }
        let mut unanswered = 0;
        // Routers farther away may answer any start since this one.
        let first = self.number;
        while !self.stopped() && wall_ns() < self.start.finish {
            // A router farther away may refuse in the meantime.
            let asked = Message { number: first, ..self.start };
            if let Answer::Refused(router, reason) = self.listen(&asked, self.args.repeat, false, out)?
                && reason != Reason::Replayed
            {
                return self.refused(router, reason, out);
            }
            if self.stopped() || wall_ns() >= self.start.finish {
                break;
            }
            match self.request(&self.start.to_owned(), 1, out)? {
                Answer::Granted => unanswered = 0,
                // The router may have restarted; the next start has a larger number.
                Answer::Nothing | Answer::Refused(_, Reason::Replayed) => unanswered += 1,
                Answer::Refused(router, reason) => return self.refused(router, reason, out),
            }
            if unanswered == self.args.tries {
                show::message(&format!(
                    "no answer to the last {unanswered} refreshes: the reservation may have expired; refreshes continue"
                ));
            }
        }
        if wall_ns() >= self.start.finish {
            // The reservation has expired. The end is for routers whose clocks are behind; no answer is
            // needed.
            self.send(&self.end_message());
            return Ok(Outcome::Done);
        }
        self.end(out)
    }

    /// Reports a refusal, and ends the reservation at routers that granted it.
    fn refused(&mut self, router: [u8; 6], reason: Reason, out: &mut dyn Write) -> Result<Outcome, NetError> {
        out.flush()?;
        let Message { tuple, rate, .. } = self.start;
        show::message(&format!("refused by {}: {tuple} at {rate}: {reason}", address(router)));
        self.granted.retain(|granted| *granted != router);
        if !self.granted.is_empty() {
            let end = self.end_message();
            self.send(&end);
        }
        Ok(Outcome::Failed)
    }

    fn unanswered(&self) -> Outcome {
        let key = match self.key {
            Some(_) => "with the same key",
            None => "without a key",
        };
        show::message(&format!(
            "no answer on {} after {} transmissions. Check that `giveway live --reserve` runs on the path to {}, with EtherTypes \
             {:#06x},{:#06x} (--reserve-types), {key}, and in the same version as this program",
            self.args.via, self.args.tries, self.args.to, self.args.types.start, self.args.types.end
        ));
        Outcome::Failed
    }

    /// The message that ends the reservation.
    fn end_message(&self) -> Message {
        Message { kind: Kind::End, rate: Rate::default(), start: 0, finish: 0, ..self.start }
    }

    /// Ends the reservation.
    ///
    /// # Errors
    /// The error of the socket, or of the output.
    pub fn end(&mut self, out: &mut dyn Write) -> Result<Outcome, NetError> {
        // From now on, Ctrl-C interrupts the wait for the answer.
        self.stop.store(false, Ordering::Relaxed);
        let end = self.end_message();
        match self.request(&end, self.args.tries.min(3), out)? {
            Answer::Granted => Ok(Outcome::Done),
            // The reservation has probably expired, so there is nothing to end.
            Answer::Nothing if !self.args.end => Ok(Outcome::Done),
            Answer::Nothing => {
                show::message(&format!(
                    "no answer: no router on {} has a reservation for {}",
                    self.args.via, self.start.tuple
                ));
                Ok(Outcome::Failed)
            }
            Answer::Refused(router, reason) => {
                out.flush()?;
                show::message(&format!("{} refuses to end {}: {reason}", address(router), self.start.tuple));
                Ok(Outcome::Failed)
            }
        }
    }

    /// Sends a message until a router answers, at most `tries` times. Each transmission has a new number.
    fn request(&mut self, message: &Message, tries: u32, out: &mut dyn Write) -> Result<Answer, NetError> {
        let mut message = *message;
        let mut answer = Answer::Nothing;
        for number in 0..tries {
            self.send(&message);
            if number == 0 {
                // An answer to this transmission or to a later one counts.
                message.number = self.number;
            }
            answer = self.listen(&message, self.args.timeout, true, out)?;
            match answer {
                Answer::Nothing => {}
                // Messages of two programs on this machine were reordered, or the router has just started.
                Answer::Refused(_, Reason::Replayed) if number + 1 < tries => {
                    self.listen(&message, self.args.timeout / 10, false, out)?;
                }
                Answer::Granted | Answer::Refused(..) => return Ok(answer),
            }
            if self.stopped() {
                return Ok(answer);
            }
        }
        Ok(answer)
    }

    /// Sends a message with the next number: the time in nanoseconds, but larger than the previous number.
    /// A failure is printed: the interface may be down for a moment, and the message is repeated.
    fn send(&mut self, message: &Message) {
        self.number = wall_ns().max(self.number + 1);
        let message = Message { number: self.number, ..*message };
        let types = self.args.types;
        let kind = if message.kind == Kind::End { types.end } else { types.start };
        let to = self.args.router.unwrap_or(EVERYONE);
        let body = message.encode(self.key.as_ref());
        if let Err(error) = self.station.send(to, kind, &body) {
            show::message(&format!("{}: {error}", self.args.via));
        }
    }

    /// Receives answers to a message for this time, or until the first grant if `first` is true.
    fn listen(
        &mut self,
        asked: &Message,
        span: Span,
        first: bool,
        out: &mut dyn Write,
    ) -> Result<Answer, NetError> {
        let end =
            (monotonic_ns() + span.as_ps() / 1000).min(match self.start.finish.checked_sub(wall_ns()) {
                Some(left) => monotonic_ns().saturating_add(left),
                None => u64::MAX,
            });
        while !self.stopped() {
            let Some(left) = end.checked_sub(monotonic_ns()).filter(|left| *left > 0) else { break };
            let left = Duration::from_nanos(left.max(1_000_000)).min(Duration::from_millis(50));
            let Some(received) = self.receive(left)? else { continue };
            let answer = match Message::decode(&received.body, self.key.as_ref()) {
                Ok(answer) => answer,
                Err(MessageError::Version(version)) => {
                    self.other_version(received.from, version);
                    continue;
                }
                Err(_) => continue,
            };
            // An answer repeats its request: this message, or a retransmission of it.
            let own = (asked.number..=self.number).contains(&answer.number);
            if !own || (Message { kind: asked.kind, number: asked.number, ..answer }) != *asked {
                continue;
            }
            match answer.kind {
                Kind::Refused(reason) => return Ok(Answer::Refused(received.from, reason)),
                Kind::Granted => {
                    self.granted_by(received.from, asked.kind == Kind::End, out)?;
                    if first {
                        return Ok(Answer::Granted);
                    }
                }
                Kind::Start | Kind::End => {}
            }
        }
        Ok(Answer::Nothing)
    }

    /// Receives a control frame; `None` if there is none within this time.
    fn receive(&self, within: Duration) -> Result<Option<Received>, ReserveError> {
        let received = self.station.receive(within);
        received.map_err(|source| ReserveError::Receive { interface: self.args.via.clone(), source })
    }

    /// Reports a router with another version of the protocol, once.
    fn other_version(&mut self, router: [u8; 6], version: u8) {
        if !std::mem::replace(&mut self.version_reported, true) {
            show::message(&format!(
                "{} sends control frames of version {version}, and this program frames of version {}: use the same version of \
                 Giveway on both sides",
                address(router),
                giveway_reserve::message::VERSION
            ));
        }
    }

    /// Records a grant or an end, and prints it once for each router.
    fn granted_by(&mut self, router: [u8; 6], ended: bool, out: &mut dyn Write) -> io::Result<()> {
        let Message { tuple, rate, .. } = self.start;
        if ended {
            self.granted.retain(|granted| *granted != router);
        } else if self.granted.contains(&router) {
            return Ok(());
        } else {
            self.granted.push(router);
        }
        if !self.args.quiet {
            match ended {
                true => writeln!(out, "ended by {}: {tuple}", address(router))?,
                false => writeln!(out, "granted by {}: {tuple} at {rate}{}", address(router), self.period())?,
            }
            out.flush()?;
        }
        Ok(())
    }

    /// Describes the start and the end of the reservation.
    fn period(&self) -> String {
        let Message { start, finish, .. } = self.start;
        let now = wall_ns();
        let seconds = |ns: u64| format!("{} s", ns.div_ceil(1_000_000_000));
        let from = match start.checked_sub(now) {
            Some(ahead) => format!(", in {}", seconds(ahead)),
            None => String::new(),
        };
        match (finish, self.args.once) {
            (u64::MAX, true) => format!("{from}, until it expires"),
            (u64::MAX, false) => format!("{from}, until Ctrl-C"),
            (finish, _) => format!("{from}, for {}", seconds(finish - start.max(now))),
        }
    }

    fn stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }
}
