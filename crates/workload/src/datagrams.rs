//! A compact list of the packets of a train. A capture has millions of packets, each with a short gap and a
//! length.
//!
//! A gap of a millisecond and a length take 5 bytes. A list of pairs would take 16, and three times that
//! while it grows. Packets are read in order with [`Datagrams::iter`], or one at a time with a [`Cursor`].

use std::fmt;

use serde::de::{Deserialize, Deserializer, SeqAccess, Visitor};
use serde::ser::{Serialize, Serializer};

/// Packets of a train: time since the previous packet, ns, and IP length, bytes.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Datagrams {
    /// Numbers in groups of 7 bits, the lowest first; the eighth bit is set if another group follows
    /// (LEB128). In pieces, so that a growing train is not copied. No packet is in two pieces.
    pieces: Vec<Vec<u8>>,
    len: usize,
}

/// A position between two packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cursor {
    piece: usize,
    byte: usize,
}

/// Largest size of a piece, bytes.
const PIECE: usize = 1 << 16;
/// Largest encoding of a packet, bytes: ten for 64 bits and three for 16.
const MAX: usize = 13;

impl Datagrams {
    /// Adds a packet.
    pub fn push(&mut self, gap: u64, bytes: u16) {
        if self.pieces.last().is_none_or(|piece| piece.len() + MAX > PIECE) {
            self.pieces.push(Vec::new());
        }
        let piece = self.pieces.last_mut().expect("a piece was added above if the list was empty");
        for mut number in [gap, u64::from(bytes)] {
            while number >= 0x80 {
                piece.push(number as u8 | 0x80);
                number >>= 7;
            }
            piece.push(number as u8);
        }
        self.len += 1;
    }

    /// Number of packets.
    pub fn len(&self) -> usize {
        self.len
    }

    /// True if the number of packets is 0.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// All packets, in order.
    pub fn iter(&self) -> impl Iterator<Item = (u64, u16)> + '_ {
        let mut cursor = Cursor::default();
        std::iter::from_fn(move || cursor.next(self))
    }

    /// Memory use, bytes.
    pub fn memory(&self) -> usize {
        self.pieces.iter().map(Vec::capacity).sum::<usize>() + self.pieces.capacity() * size_of::<Vec<u8>>()
    }
}

impl Cursor {
    /// The packet at the cursor, if there is one. Advances the cursor.
    pub fn next(&mut self, of: &Datagrams) -> Option<(u64, u16)> {
        let mut piece = of.pieces.get(self.piece)?;
        if self.byte == piece.len() {
            (self.piece, self.byte) = (self.piece + 1, 0);
            piece = of.pieces.get(self.piece)?;
        }
        let mut number = || {
            let (mut number, mut shift) = (0u64, 0);
            loop {
                let byte = piece[self.byte];
                self.byte += 1;
                number |= u64::from(byte & 0x7f) << shift;
                shift += 7;
                if byte < 0x80 {
                    return number;
                }
            }
        };
        Some((number(), number() as u16))
    }
}

impl fmt::Debug for Datagrams {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

impl FromIterator<(u64, u16)> for Datagrams {
    fn from_iter<I: IntoIterator<Item = (u64, u16)>>(packets: I) -> Datagrams {
        let mut datagrams = Datagrams::default();
        packets.into_iter().for_each(|(gap, bytes)| datagrams.push(gap, bytes));
        datagrams
    }
}

impl Serialize for Datagrams {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.iter())
    }
}

impl<'de> Deserialize<'de> for Datagrams {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Datagrams, D::Error> {
        struct Pairs;
        impl<'de> Visitor<'de> for Pairs {
            type Value = Datagrams;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a list of packets: [gap in ns, bytes]")
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut pairs: A) -> Result<Datagrams, A::Error> {
                let mut datagrams = Datagrams::default();
                while let Some((gap, bytes)) = pairs.next_element()? {
                    datagrams.push(gap, bytes);
                }
                Ok(datagrams)
            }
        }
        deserializer.deserialize_seq(Pairs)
    }
}
