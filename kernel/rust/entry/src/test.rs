// SPDX-License-Identifier: MIT OR Apache-2.0

//! Operations of a test, many in one call, with a record of all results.

use crate::call::{Arrival, CALL, Outcome};

/// An operation.
#[repr(C)]
#[derive(Clone, Copy, Default)]
pub struct Op {
    /// Picoseconds since the operation before.
    pub after: u64,
    /// Rate of the link, for [`Op::RATE`].
    pub rate: u64,
    /// The packet, for [`Op::ARRIVE`].
    pub arrival: Arrival,
    /// The kind of the operation.
    pub kind: u32,
    /// Nothing.
    pub padding: u32,
}

impl Op {
    /// A packet arrives.
    pub const ARRIVE: u32 = 0;
    /// The link dequeues a packet.
    pub const LEAVE: u32 = 1;
    /// The clock is set to the time that the last dequeue returned.
    pub const WAIT: u32 = 2;
    /// The rate of the link changes.
    pub const RATE: u32 = 3;
    /// The discipline is reset.
    pub const RESET: u32 = 4;
}

/// Largest number of operations of a call.
pub const OPS: usize = 1 << 13;
/// Largest number of words of a record.
pub const WORDS: usize = 1 << 16;

/// The operations of the next call.
#[unsafe(export_name = "gw_ops")]
pub static mut OPERATIONS: [Op; OPS] = [Op {
    after: 0,
    rate: 0,
    arrival: Arrival {
        flow: 0,
        label: 0,
        reserved: 0,
        bytes: 0,
        slot: 0,
        offset: 0,
        remaining: 0,
        class: 0,
        from: 0,
        to: 0,
        hops: [0; 6],
        ecn: 0,
        header: 0,
    },
    kind: 0,
    padding: 0,
}; OPS];

/// The results of the last call.
#[unsafe(export_name = "gw_record")]
pub static mut RECORD: [u64; WORDS] = [0; WORDS];

/// The clock of the test.
static mut NOW: u64 = 1_000_000_000;
/// The time that the last dequeue returned; 0 if none.
static mut WAKE: u64 = 0;

/// Entries of a discipline.
pub struct Entries {
    /// Enqueues the packet of [`CALL`].
    pub arrive: extern "C" fn(u64),
    /// Dequeues a packet.
    pub leave: extern "C" fn(u64) -> u64,
    /// Takes a dropped packet.
    pub doomed: extern "C" fn() -> u64,
    /// Drops the backlog.
    pub reset: extern "C" fn(u64),
    /// Changes the rate of the link.
    pub rate: extern "C" fn(u64, u64),
    /// Number of marks by the last call.
    pub marks: extern "C" fn() -> u64,
    /// Packets in the queue.
    pub packets: extern "C" fn() -> u64,
    /// Bytes in the queue.
    pub bytes: extern "C" fn() -> u64,
}

/// Carries out operations and returns the number of words of the record.
#[inline(always)]
pub fn run(held: &Entries, ops: u64) -> u64 {
    let mut words = 0;
    let mut record = |word: u64| {
        if words < WORDS {
            // SAFETY: there is one call at a time.
            unsafe { (*(&raw mut RECORD))[words] = word };
            words += 1;
        }
    };
    // SAFETY: there is one call at a time.
    let (all, mut now, mut wake) = unsafe { (&*(&raw const OPERATIONS), NOW, WAKE) };
    for op in all.iter().take(ops as usize) {
        now += op.after;
        match op.kind {
            Op::ARRIVE => {
                // SAFETY: there is one call at a time.
                unsafe { CALL.arrival = op.arrival };
                (held.arrive)(now);
            }
            Op::LEAVE => {
                let outcome = (held.leave)(now);
                // SAFETY: there is one call at a time.
                let (at, label, header) = unsafe { (CALL.at, CALL.label, CALL.header) };
                wake = if outcome == Outcome::LATER { at } else { 0 };
                record(outcome);
                if outcome == Outcome::LATER {
                    record(at);
                } else if outcome != Outcome::EMPTY {
                    record(label);
                    record(header);
                }
            }
            Op::WAIT => {
                now = now.max(wake);
                wake = 0;
            }
            Op::RATE => {
                (held.rate)(op.rate, now);
                wake = 0;
            }
            _ => (held.reset)(now),
        }
        record((held.marks)() | 1 << 48);
        loop {
            let doomed = (held.doomed)();
            if doomed == u64::MAX {
                break;
            }
            record(doomed | 1 << 62);
        }
        record((held.packets)());
        record((held.bytes)());
    }
    // SAFETY: there is one call at a time.
    unsafe {
        NOW = now;
        WAKE = wake;
    }
    words as u64
}
