//! Counters of the classes of a discipline, for tables and metrics.

use crate::backlog::Backlog;
use crate::units::{Rate, Span};

/// State of a class of a discipline: a leaf with its own queue, or an inner class with the sum of its leaves.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClassState {
    /// Names of the class and those above it, the uppermost first, separated by "/".
    pub path: String,
    /// 1 for the classes directly at the link, 2 for those below them, and so on.
    pub level: u16,
    /// True if it has its own queue.
    pub leaf: bool,
    /// Its guaranteed rate, if it has one.
    pub rate: Option<Rate>,
    /// The rate that it cannot exceed, if it has one.
    pub ceil: Option<Rate>,
    /// Packets that arrived.
    pub arrived: Backlog,
    /// Packets that left.
    pub sent: Backlog,
    /// Packets that it dropped.
    pub dropped: Backlog,
    /// Packets in its queues.
    pub backlog: Backlog,
    /// Bytes of sent packets that were charged to a class above, because its own rate was used up.
    pub borrowed: u64,
    /// Sum of the waits of sent packets.
    pub waited: Span,
    /// The longest wait of a sent packet.
    pub longest: Span,
}

impl ClassState {
    /// The counters of the time after an earlier state of the same class. `longest` still covers all time.
    pub fn since(&self, earlier: &ClassState) -> ClassState {
        let less = |now: Backlog, then: Backlog| Backlog {
            packets: now.packets - then.packets,
            bytes: now.bytes - then.bytes,
        };
        ClassState {
            arrived: less(self.arrived, earlier.arrived),
            sent: less(self.sent, earlier.sent),
            dropped: less(self.dropped, earlier.dropped),
            borrowed: self.borrowed - earlier.borrowed,
            waited: self.waited - earlier.waited,
            ..self.clone()
        }
    }

    /// Adds the counters of a class below.
    pub fn include(&mut self, below: &ClassState) {
        self.arrived = self.arrived.plus(below.arrived);
        self.sent = self.sent.plus(below.sent);
        self.dropped = self.dropped.plus(below.dropped);
        self.backlog = self.backlog.plus(below.backlog);
        self.waited += below.waited;
        self.longest = self.longest.max(below.longest);
    }
}
