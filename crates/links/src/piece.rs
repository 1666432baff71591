//! A piece of a trace.

use giveway_qdisc::Span;

/// The offer of a link for a while.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece {
    /// Length of the piece, above zero. The longest span lasts for ever.
    pub length: Span,
    /// The rate in bit/s, or the delay in picoseconds.
    pub value: u64,
    /// Bytes that may pass at the start of the piece, in addition to its rate.
    pub burst: u64,
}

impl Piece {
    /// The longest span: the piece never ends.
    pub const EVER: Span = Span::from_ps(u64::MAX);

    /// A constant value for a while.
    pub const fn constant(length: Span, value: u64) -> Piece {
        Piece { length, value, burst: 0 }
    }
}
