//! A packet trace: one connection through a wire that loses or delays scripted packets.
//!
//! The wire is behind the bottleneck: a lost packet has used the time of the link, and a late packet is
//! overtaken by those that follow it. The client hands single segments to its interface, so each packet has
//! its own time.

use std::time::Duration;

use crate::cell::{now, number, pause_until};
use crate::connections::{CLIENT_PORT, Receiver, Sender};
use crate::error::SendersError;
use crate::network::{self, CLIENT, Plan, Queue, run};
use crate::sniffer::{Sighting, Sniffer, Way};
use crate::tcp::Segment;

/// A packet trace. As text: `NAME CONTROL SEGMENTS LOST LATE LATE_MS`. `LOST` and `LATE` are compiled into
/// the wire (`kernel/test/wire.bpf.c`), whose object is `/objects/NAME.o`.
#[derive(Clone, Debug)]
pub struct Trace {
    name: String,
    control: String,
    /// Segments of data that the client sends before it closes the connection.
    segments: u32,
    /// Delay of late packets in milliseconds.
    late_ms: u32,
}

/// The network of packet traces: 10 Mbit/s, 40 ms, a fifo of 100 packets, single segments.
const PLAN: Plan =
    Plan { rate_mbit: 10, rtt_ms: 40, queue: Queue::Fifo(100), ecn: false, segments: 1, far: true };
/// Bytes of a segment.
const SEGMENT: usize = 1448;
/// Time from the first packet to the end of the capture.
const LENGTH: Duration = Duration::from_secs(4);

impl Trace {
    /// Reads a packet trace.
    ///
    /// # Errors
    /// If the text does not have the form above.
    pub fn parse(text: &str) -> Result<Trace, SendersError> {
        let words: Vec<&str> = text.split_whitespace().collect();
        let [name, control, segments, _, _, late_ms] = words[..] else {
            let form = "NAME CONTROL SEGMENTS LOST LATE LATE_MS";
            return Err(SendersError::Line { what: format!("{text} does not have the form {form}") });
        };
        let (segments, late_ms) = (number(segments)?, number(late_ms)?);
        Ok(Trace { name: name.to_owned(), control: control.to_owned(), segments, late_ms })
    }

    /// Records the trace. Returns a row for each packet, in the order of the times at the client.
    ///
    /// # Errors
    /// If a command or a system call fails, or the connection does not open.
    pub fn measure(&self) -> Result<Vec<String>, SendersError> {
        network::build(&PLAN)?;
        self.wire()?;
        let near = Sniffer::start("client", &["router"], false)?;
        let far = Sniffer::start("server", &["far"], false)?;
        let receiver = Receiver::listen(0, &self.control)?;
        let begun = now();
        let sender = Sender::start(0, &self.control, Some(SEGMENT * self.segments as usize))?;
        pause_until(begun + LENGTH);
        sender.stop()?;
        receiver.finish();
        let (near, far) = (near.stop()?, far.stop()?);
        network::remove(&PLAN)?;
        self.rows(&near, &far, (begun + LENGTH).as_nanos() as u64)
    }

    /// Puts the wire behind the router: class 1:1 delays packets, 1:2 does not.
    fn wire(&self) -> Result<(), SendersError> {
        let commands = format!(
            "qdisc add dev server root handle 1: prio bands 2 priomap 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1\n\
             qdisc add dev server parent 1:1 netem delay {}ms limit 1000\n\
             qdisc add dev server parent 1:2 pfifo limit 1000\n\
             filter add dev server parent 1: bpf direct-action object-file /objects/{}.o section tc\n",
            self.late_ms, self.name
        );
        run("ip", &["netns", "exec", "far", "tc", "-batch", "-"], &commands).map(drop)
    }

    fn rows(&self, near: &[Sighting], far: &[Sighting], until: u64) -> Result<Vec<String>, SendersError> {
        let opening = |of: &&Sighting| of.segment.flags.syn();
        let missing = || SendersError::Inconsistent { what: "the connection was not opened".to_owned() };
        let syn = near.iter().find(opening).ok_or_else(missing)?;
        let answer = near.iter().filter(opening).find(|of| of.way == Way::In).ok_or_else(missing)?;
        let origin = Origin { at: syn.at, client: syn.segment.seq, server: answer.segment.seq };
        let mut others: Vec<Option<&Sighting>> = far.iter().map(Some).collect();
        let near = near.iter().filter(|of| of.segment.port == CLIENT_PORT && of.at < until);
        Ok(near
            .map(|here| {
                let same = |there: &&mut Option<&Sighting>| {
                    there.is_some_and(|there| there.way != here.way && there.segment == here.segment)
                };
                let there = others.iter_mut().find(same).and_then(Option::take);
                format!("PACKET {},{},{}", self.name, self.control, origin.row(here, there))
            })
            .collect())
    }
}

/// The zero of times and of sequence numbers.
struct Origin {
    at: u64,
    client: u32,
    server: u32,
}

impl Origin {
    /// The columns of a packet. `there` is the packet at the server, if it was there.
    fn row(&self, here: &Sighting, there: Option<&Sighting>) -> String {
        let Segment { from, seq, ack, bytes, flags, sack, .. } = &here.segment;
        let (direction, own, other) = if *from == CLIENT {
            ("data", self.client, self.server)
        } else {
            ("ack", self.server, self.client)
        };
        let blocks: Vec<String> = sack
            .iter()
            .map(|(begin, end)| format!("{}-{}", begin.wrapping_sub(other), end.wrapping_sub(other)))
            .collect();
        let time = |at: u64| at.saturating_sub(self.at) / 1000;
        let acknowledged =
            if flags.acknowledges() { ack.wrapping_sub(other).to_string() } else { String::new() };
        format!(
            "{},{},{direction},{},{bytes},{acknowledged},{},{flags}",
            time(here.at),
            there.map_or(String::new(), |there| time(there.at).to_string()),
            seq.wrapping_sub(own),
            blocks.join(" "),
        )
    }
}
