//! Incast: many senders answer a request of one receiver at the same time.
//!
//! # Principles
//! - A round is one request: each sender starts a transfer to the receiver at the same time. Each receiver of
//!   the scenario has its own rounds, with the senders that are paired with it.
//! - With `fan_in`, each round has that many senders, drawn from all of the receiver.
//! - With `every`, rounds start at fixed intervals, whether earlier ones are complete or not. Without it, a
//!   round starts when the last answer of the one before has arrived.
//! - A round is complete when both ends of its last connection have closed. A remark after the run states the
//!   completion times of the rounds.
//!
//! # Deviations
//! - The request itself is not sent, so senders start at exactly the same time. Real requests arrive some
//!   microseconds apart.
//!
//! # Cost
//! - One connection for each answer.
//!
//! # References
//! - Chen, Griffith, Liu, Katz and Joseph, "Understanding TCP incast throughput collapse in datacenter
//!   networks", WREN 2009, section 2.
//! - Alizadeh et al., "Data Center TCP (DCTCP)", SIGCOMM 2010, section 4.2.1: 1 MB in total from up to 40
//!   senders.

use std::collections::BTreeMap;

use giveway_qdisc::{Bytes, Invalid, Rng, Span, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Source, SourceContext, Traffic};
use crate::net::{ConnId, Event, Net};

/// Parameters of `incast`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Bytes of all answers of a round together, in equal parts. Give this or `each`.
    pub total: Option<Bytes>,
    /// Bytes of each answer. Give this or `total`.
    pub each: Option<Bytes>,
    /// Number of senders of a round; without it all of the receiver.
    pub fan_in: Option<u32>,
    /// Time from the start of a round to the start of the next; without it a round follows when the one
    /// before is complete.
    pub every: Option<Span>,
    /// Number of rounds of each receiver; without it rounds go on.
    pub rounds: Option<u64>,
}

impl Traffic for Config {
    const SUMMARY: &'static str =
        "rounds in which many senders answer one receiver at the same time, over TCP";

    fn build(&self, context: &SourceContext) -> Result<Box<dyn Source>, Invalid> {
        if self.every == Some(Span::ZERO) {
            let message = "rounds every 0 s never end: write for example \"10 ms\", or leave every out";
            return Err(Invalid::new("every", message));
        }
        let mut senders: BTreeMap<u16, Vec<u16>> = BTreeMap::new();
        for (from, to) in &context.pairs {
            senders.entry(*to).or_default().push(*from);
        }
        let receivers = senders.into_iter().map(|(node, senders)| {
            let count = self.count(senders.len())?;
            Ok(Receiver {
                node,
                each: self.bytes(count)?,
                count,
                drawn: context.streams.within(&context_name(node)).rng(),
                senders,
                begun: 0,
                next: context.start,
                open: 0,
                since: context.start,
            })
        });
        Ok(Box::new(Incast {
            receivers: receivers.collect::<Result<_, Invalid>>()?,
            every: self.every,
            most: self.rounds.unwrap_or(u64::MAX),
            stop: context.stop,
            answers: BTreeMap::new(),
            complete: 0,
            total_s: 0.0,
            longest: Span::ZERO,
        }))
    }
}

/// The name of the random stream of a receiver.
fn context_name(node: u16) -> String {
    format!("receiver {node}")
}

impl Config {
    /// The number of senders of a round, of `of` senders.
    fn count(&self, of: usize) -> Result<usize, Invalid> {
        match self.fan_in {
            None => Ok(of),
            Some(count) if (1..=of).contains(&(count as usize)) => Ok(count as usize),
            Some(count) => {
                let message =
                    format!("{count} senders of {of}: write 1 to {of}, or name more senders in from");
                Err(Invalid::new("fan_in", message))
            }
        }
    }

    /// The bytes of each of `count` answers.
    fn bytes(&self, count: usize) -> Result<u64, Invalid> {
        let (parameter, bytes) = match (self.total, self.each) {
            (Some(_), Some(_)) => {
                return Err(Invalid::new("each", "total and each both set the size: leave one out"));
            }
            (None, None) => {
                let message = "the size is missing: write total = \"1mb\" or each = \"20kb\"";
                return Err(Invalid::new("each", message));
            }
            (Some(total), None) => ("total", total.0 / count as u64),
            (None, Some(each)) => ("each", each.0),
        };
        if bytes == 0 {
            let message = format!("an answer of 0 bytes sends nothing: write at least {count}b in total");
            return Err(Invalid::new(parameter, message));
        }
        Ok(bytes)
    }
}

struct Incast {
    receivers: Vec<Receiver>,
    every: Option<Span>,
    /// Maximum number of rounds of a receiver.
    most: u64,
    stop: Time,
    /// The receiver of each open connection, and the beginning of its round.
    answers: BTreeMap<ConnId, (usize, Time)>,
    /// Number of complete rounds.
    complete: u64,
    /// Sum of the completion times of all rounds, in seconds.
    total_s: f64,
    longest: Span,
}

struct Receiver {
    node: u16,
    /// Bytes of an answer.
    each: u64,
    /// Number of senders of a round.
    count: usize,
    /// Draws the senders of a round.
    drawn: Rng,
    senders: Vec<u16>,
    /// Number of rounds so far.
    begun: u64,
    /// Beginning of the next round; never while it depends on the answers of the last one.
    next: Time,
    /// Open connections of the last round.
    open: usize,
    /// Beginning of the last round.
    since: Time,
}

impl Source for Incast {
    fn wake(&mut self, net: &mut Net<'_>) {
        for number in 0..self.receivers.len() {
            if self.receivers[number].next <= net.now() {
                self.begin(number, net);
            }
        }
        self.schedule(net);
    }

    fn on(&mut self, event: Event, net: &mut Net<'_>) {
        let (Event::Closed(conn) | Event::Aborted(conn)) = event else { return };
        let Some((number, since)) = self.answers.remove(&conn) else { return };
        let receiver = &mut self.receivers[number];
        if receiver.since != since {
            // A later round has begun; this one is complete when no other answer of it is open.
            if !self.answers.values().any(|other| *other == (number, since)) {
                self.count_round(since, net.now());
            }
            return;
        }
        receiver.open -= 1;
        if receiver.open > 0 {
            return;
        }
        if self.every.is_none() {
            receiver.next = net.now();
        }
        self.count_round(since, net.now());
        self.schedule(net);
    }

    fn remark(&self) -> Option<String> {
        let begun: u64 = self.receivers.iter().map(|receiver| receiver.begun).sum();
        if self.complete == 0 {
            return Some(format!("none of {begun} rounds is complete"));
        }
        let mean = Span::from_s_f64(self.total_s / self.complete as f64);
        Some(format!(
            "{} of {begun} rounds are complete, after {mean} on average and {} at most",
            self.complete, self.longest
        ))
    }
}

impl Incast {
    /// Starts a round.
    fn begin(&mut self, number: usize, net: &mut Net<'_>) {
        let receiver = &mut self.receivers[number];
        // The senders of the round come first, as in an incomplete shuffle.
        if receiver.count < receiver.senders.len() {
            for place in 0..receiver.count {
                let other = place as u64 + receiver.drawn.below((receiver.senders.len() - place) as u64);
                receiver.senders.swap(place, other as usize);
            }
        }
        for sender in &receiver.senders[..receiver.count] {
            let conn = net.transfer(*sender, receiver.node, Some(receiver.each));
            self.answers.insert(conn, (number, net.now()));
        }
        receiver.since = net.now();
        receiver.open = receiver.count;
        receiver.begun += 1;
        receiver.next = match self.every {
            Some(every) if receiver.begun < self.most => net.now() + every,
            _ => Time::NEVER,
        };
    }

    /// Sets the wake-up to the next round of any receiver.
    fn schedule(&mut self, net: &mut Net<'_>) {
        for receiver in &mut self.receivers {
            if receiver.begun >= self.most || receiver.next >= self.stop {
                receiver.next = Time::NEVER;
            }
        }
        if let Some(next) = self.receivers.iter().map(|receiver| receiver.next).min() {
            net.wake_at(next);
        }
    }

    /// Counts a complete round.
    fn count_round(&mut self, since: Time, now: Time) {
        let took = now.since(since);
        self.complete += 1;
        self.total_s += took.as_s();
        self.longest = self.longest.max(took);
    }
}
