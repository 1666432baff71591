//! The parts of a direction for a link that varies: its rate, and a wire that copies frames.

use giveway_links::{Profile, Transmitter};
use giveway_qdisc::{Rate, Time};

use super::Core;
use crate::emulation::InFlight;

impl Core {
    /// Goes through the profiles until `floor`, before which no packet arrives any more. Otherwise the first
    /// packet after an idle night would wait for the work of the whole night.
    pub(super) fn pass_idle(&mut self, floor: Time) {
        if let Some(transmitter) = &mut self.transmitter {
            transmitter.inform(&mut self.port, floor);
            transmitter.ready(floor);
        }
        self.emulator.pass(floor);
    }

    /// Informs the port of the changes of a rate that varies by `then`. True if a transmission may start
    /// then. Otherwise the next call is when it may.
    pub(super) fn is_ready(&mut self, then: Time) -> bool {
        let Some(transmitter) = &mut self.transmitter else { return true };
        transmitter.inform(&mut self.port, then);
        self.ready = transmitter.ready(then);
        if self.ready <= then {
            return true;
        }
        // The link denies the packets, not the discipline.
        self.denied = None;
        let waits = self.port.counters().backlog().packets > 0;
        self.next_pull = if waits { self.ready } else { Time::NEVER };
        false
    }

    /// Puts a frame and its copy on the wire; without the copy if no buffer is free, which is counted.
    pub(super) fn send_twice(&mut self, frame: InFlight) {
        self.emulator.push(frame);
        let Some(buffer) = self.pool.allocate() else {
            self.statistics.losses.no_buffer += 1;
            return;
        };
        let (from, to) = self.pool.two(frame.buffer, buffer);
        to[..frame.length as usize].copy_from_slice(&from[..frame.length as usize]);
        self.emulator.push(InFlight { buffer, ..frame });
    }

    /// Lets the rate follow a profile from now on, or be constant. `rate` is the constant, or the mean.
    pub(super) fn vary(&mut self, rate: Rate, profile: Option<&Profile>) {
        let now = self.clock.now().max(self.at);
        if self.transmitter.is_none() && profile.is_none() {
            return;
        }
        self.transmitter = profile.map(|profile| Transmitter::starting(profile, rate, now));
        self.ready = Time::ZERO;
        // The last packet of a rate that is zero for ever would stay in the transmitter.
        if self.port.free_at() == Time::NEVER {
            self.port.occupy_until(now);
            self.emulator.release(now);
        }
        if self.port.counters().backlog().packets > 0 {
            self.next_pull = self.next_pull.min(self.port.free_at().max(now));
        }
    }
}
