//! A cell: bulk connections through one bottleneck.

use std::thread;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::connections::{CLIENT_PORT, Receiver, Sender};
use crate::counters::{Counters, counters};
use crate::error::SendersError;
use crate::flow::{FlowResult, result};
use crate::network::{self, Plan, Queue};
use crate::sniffer::Sniffer;

/// A cell. As text: `NAME CONTROL[,CONTROL] RATE_MBIT RTT_MS QUEUE SECONDS WARMUP_S ECN SEGMENTS`. The queue
/// is `fifo:PACKETS`, `fq_codel` or `step:PACKETS:MICROSECONDS`; `ECN` is 0 or 1.
#[derive(Clone, Debug)]
pub struct Cell {
    name: String,
    /// The congestion control of each connection.
    controls: Vec<String>,
    plan: Plan,
    /// Time from the start of the first connection to the end.
    length: Duration,
    /// The part of it that is not measured.
    warm_up: Duration,
}

/// Distance between the starts of two connections.
const STAGGER: Duration = Duration::from_millis(100);
/// Longer than any packet waits in a queue.
const LONGEST_QUEUE: Duration = Duration::from_millis(600);

impl Cell {
    /// Reads a cell.
    ///
    /// # Errors
    /// If the text does not have the form above.
    pub fn parse(text: &str) -> Result<Cell, SendersError> {
        let words: Vec<&str> = text.split_whitespace().collect();
        let [name, controls, rate, rtt, queue, length, warm_up, ecn, segments] = words[..] else {
            let form = "NAME CONTROLS RATE_MBIT RTT_MS QUEUE SECONDS WARMUP_S ECN SEGMENTS";
            return Err(SendersError::Line { what: format!("{text} does not have the form {form}") });
        };
        let seconds = |word| number(word).map(|of| Duration::from_secs(of.into()));
        Ok(Cell {
            name: name.to_owned(),
            controls: controls.split(',').map(str::to_owned).collect(),
            plan: Plan {
                rate_mbit: number(rate)?,
                rtt_ms: number(rtt)?,
                queue: Queue::parse(queue)?,
                ecn: ecn == "1",
                segments: number(segments)?,
                far: false,
            },
            length: seconds(length)?,
            warm_up: seconds(warm_up)?,
        })
    }

    /// Measures the cell. Returns a row for each connection.
    ///
    /// # Errors
    /// If a command or a system call fails, or the result contradicts itself.
    pub fn measure(&self) -> Result<Vec<String>, SendersError> {
        network::build(&self.plan)?;
        let sniffer = Sniffer::start("router", &["client", "server"], true)?;
        let numbered = || (0u16..).zip(&self.controls);
        let receivers: Result<Vec<Receiver>, _> =
            numbered().map(|(number, control)| Receiver::listen(number, control)).collect();
        let receivers = receivers?;
        let begun = now();
        let mut senders = Vec::new();
        for (number, control) in numbered() {
            pause_until(begun + STAGGER * u32::from(number));
            senders.push(Sender::start(number, control, None)?);
        }
        pause_until(begun + self.length);
        let counters = counters(self.controls.len())?;
        // A packet that has not left by now was dropped.
        pause_until(begun + self.length + LONGEST_QUEUE);
        senders.into_iter().try_for_each(Sender::stop)?;
        receivers.into_iter().for_each(Receiver::finish);
        let sightings = sniffer.stop()?;
        network::remove(&self.plan)?;
        let (from, until) = (begun + self.warm_up, begun + self.length);
        numbered()
            .zip(&counters)
            .map(|((number, control), counters)| {
                let port = CLIENT_PORT + number;
                let result = result(&sightings, port, from.as_nanos() as u64, until.as_nanos() as u64)?;
                Ok(self.row(number + 1, control, &result, counters))
            })
            .collect()
    }

    fn row(&self, number: u16, control: &str, result: &FlowResult, counters: &Counters) -> String {
        let measured = (self.length - self.warm_up).as_secs_f64();
        let mbit = |bits: u64| bits as f64 / 1e6;
        format!(
            "ROW {},{number},{control},{:.4},{},{},{},{},{:.3},{:.3},{},{:.3},{:.3},{},{},{:.4}",
            self.name,
            mbit(result.delivered * 8) / measured,
            result.arrived,
            result.retransmitted,
            result.dropped,
            result.marked,
            result.mean_wait() / 1e6,
            result.wait(95) as f64 / 1e6,
            counters.retransmitted,
            counters.srtt_ms,
            counters.min_rtt_ms,
            counters.window,
            counters.threshold.map_or(String::new(), |threshold| threshold.to_string()),
            mbit(counters.delivery_bps),
        )
    }
}

impl Queue {
    fn parse(text: &str) -> Result<Queue, SendersError> {
        let words: Vec<&str> = text.split(':').collect();
        match words[..] {
            ["fifo", packets] => Ok(Queue::Fifo(number(packets)?)),
            ["fq_codel"] => Ok(Queue::FqCodel),
            ["step", packets, us] => Ok(Queue::Step(number(packets)?, number(us)?)),
            _ => Err(SendersError::Line {
                what: format!("{text} is not a queue; write fifo:100, fq_codel or step:100:1000"),
            }),
        }
    }
}

/// Reads a whole number.
pub(crate) fn number(word: &str) -> Result<u32, SendersError> {
    word.parse().map_err(|_| SendersError::Line { what: format!("{word} is not a whole number") })
}

/// Time since 1970, by the clock of the timestamps of packets.
#[allow(clippy::disallowed_methods, reason = "a measurement reads a clock")]
pub(crate) fn now() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).expect("the clock is set to a time after 1970")
}

/// Waits until a time since 1970.
#[allow(clippy::disallowed_methods, reason = "a measurement waits")]
pub(crate) fn pause_until(at: Duration) {
    thread::sleep(at.saturating_sub(now()));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cell_is_read() {
        let cell = Cell::parse("name reno,cubic 10 40 step:132:5714 20 5 1 0").unwrap();
        assert_eq!(cell.controls, ["reno", "cubic"]);
        assert_eq!(cell.plan.queue, Queue::Step(132, 5714));
        assert!(cell.plan.ecn);
        assert_eq!((cell.length.as_secs(), cell.warm_up.as_secs()), (20, 5));
    }

    #[test]
    fn a_word_that_is_not_understood_is_named() {
        let message = |text: &str| Cell::parse(text).unwrap_err().to_string();
        assert_eq!(
            message("name reno 10 40 red 20 5 0 0"),
            "red is not a queue; write fifo:100, fq_codel or step:100:1000"
        );
        assert_eq!(message("name reno ten 40 fifo:33 20 5 0 0"), "ten is not a whole number");
        assert!(message("name reno").starts_with("name reno does not have the form NAME CONTROLS"));
    }
}
