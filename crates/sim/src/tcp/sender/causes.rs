//! The causes of retransmissions.

/// The causes of retransmissions. A retransmission that none of them counts is one of fast recovery.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Causes {
    /// Probes of a tail that may be lost, whether they repeat data or not.
    pub probes: u64,
    /// Segments retransmitted during the recovery from a timeout.
    pub timeouts: u64,
    /// Retransmissions that the receiver reports as needless (D-SACK).
    pub spurious: u64,
}
