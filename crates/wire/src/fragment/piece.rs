//! Parsing of fragments.

use super::{HEADER, MARK, MAX, ip_type};

/// A parsed fragment.
pub(super) struct Fragment<'a> {
    /// Addresses and tags.
    pub(super) head: &'a [u8],
    /// Number of the packet.
    pub(super) id: u32,
    /// True if it has a congestion mark.
    pub(super) marked: bool,
    /// Index of the fragment.
    pub(super) index: u8,
    /// Number of fragments of the packet.
    pub(super) count: u8,
    /// Length of the whole payload, in bytes.
    pub(super) length: u16,
    /// The piece of the payload, and padding.
    pub(super) bytes: &'a [u8],
}

/// Smallest payload of an Ethernet frame; shorter ones are padded.
const PADDED: usize = 46;

impl<'a> Fragment<'a> {
    /// Parses the fragment whose header starts at `at`; `None` if it is invalid.
    pub(super) fn parse(frame: &'a [u8], at: usize) -> Option<Fragment<'a>> {
        let (header, bytes) = frame[at..].split_first_chunk::<HEADER>()?;
        let [a, b, c, d, index, count, e, f] = *header;
        let fragment = Fragment {
            head: &frame[..at - 2],
            id: u32::from_be_bytes([a, b, c, d]),
            marked: index & MARK != 0,
            index: index & !MARK,
            count,
            length: u16::from_be_bytes([e, f]),
            bytes,
        };
        fragment.is_valid().then_some(fragment)
    }

    /// True for the last fragment of a packet.
    pub(super) fn is_last(&self) -> bool {
        self.index + 1 == self.count
    }

    fn is_valid(&self) -> bool {
        let (count, length, here) = (usize::from(self.count), usize::from(self.length), self.bytes.len());
        if !(2..=MAX).contains(&count) || self.index >= self.count || length < count || here == 0 {
            return false;
        }
        if self.index == 0 && ip_type(self.bytes[0]).is_none() {
            return false;
        }
        if self.is_last() {
            // The last piece is at most as long as the others, unless it was padded.
            here <= (length / count).max(PADDED - HEADER)
        } else {
            here * (count - 1) < length && length <= here * count
        }
    }

    /// Length of the last piece if the others have `piece` bytes; `None` if that contradicts the `here` bytes
    /// that arrived.
    pub(super) fn rest(length: u16, count: u8, piece: usize, here: usize) -> Option<usize> {
        let rest = usize::from(length).checked_sub(piece * (usize::from(count) - 1))?;
        let fits = rest == here || (rest < here && here <= PADDED - HEADER);
        (1..=piece).contains(&rest).then_some(rest).filter(|_| fits)
    }
}
