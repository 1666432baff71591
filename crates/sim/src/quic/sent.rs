//! The packets that an end has sent and whose fate is open, with their frames.
//!
//! Only packets that the other end must acknowledge are kept. The data of a simulation do not exist, so the
//! receiver reads the frames of an arriving packet here, by its number. A packet is forgotten once it is
//! acknowledged and so are all before it. One that counts as lost is kept for a while, since it may arrive
//! late; after that its late arrival is ignored.
//!
//! # Cost
//! - 48 bytes for each packet and 24 for each of its frames, in two rings that are never allocated again
//!   once they are large enough.

use std::collections::VecDeque;
use std::ops::Range;

use giveway_qdisc::{Span, Time};

/// A frame that refers to a part of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Frame {
    /// First byte; of a limit its value.
    pub offset: u64,
    /// Number of the stream.
    pub stream: u32,
    /// Number of bytes.
    pub len: u32,
    pub kind: FrameKind,
}

/// The kinds of frames that refer to a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FrameKind {
    /// Bytes of the handshake.
    Crypto,
    /// Bytes of a stream.
    Data,
    /// Bytes of a stream, and its end.
    Last,
    /// Flow control: the limit of a stream.
    StreamLimit,
    /// Flow control: the limit of the connection.
    Limit,
}

/// A packet that must be acknowledged.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SentPacket {
    pub number: u64,
    pub at: Time,
    /// Bytes sent on the connection before it.
    pub position: u64,
    /// Number of its first frame.
    frames: u64,
    /// UDP payload.
    pub bytes: u16,
    count: u8,
    /// Control frames: the constants of [`super::control`].
    pub control: u8,
    /// It carries ECT(0) or ECT(1).
    pub capable: bool,
    pub state: Fate,
}

/// The fate of a packet, as far as the sender knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    InFlight,
    Acked,
    Lost,
}

impl SentPacket {
    /// The numbers of its frames.
    pub fn frames(&self) -> Range<u64> {
        self.frames..self.frames + u64::from(self.count)
    }
}

/// The packets of one end.
#[derive(Clone, Debug, Default)]
pub(crate) struct Sent {
    packets: VecDeque<SentPacket>,
    /// Number of packets that are forgotten.
    forgotten: u64,
    frames: VecDeque<Frame>,
    frames_forgotten: u64,
    /// All packets before this one, counted from the first of the connection, are acknowledged or lost.
    oldest: u64,
    /// Number of frames of the packet that is being written.
    writing: u8,
    /// Number of kept packets that count as lost.
    lost: usize,
}

impl Sent {
    /// Adds a frame to the packet that is being written.
    #[inline]
    pub fn add(&mut self, frame: Frame) {
        self.frames.push_back(frame);
        self.writing += 1;
    }

    /// True if the packet that is being written takes another frame.
    pub fn takes_another(&self) -> bool {
        self.writing < u8::MAX
    }

    /// The packet is complete, and leaves.
    #[inline]
    pub fn push(&mut self, number: u64, at: Time, position: u64, bytes: u16, control: u8, capable: bool) {
        let count = std::mem::take(&mut self.writing);
        let frames = self.frames_forgotten + self.frames.len() as u64 - u64::from(count);
        let state = Fate::InFlight;
        self.packets.push_back(SentPacket {
            number,
            at,
            position,
            frames,
            bytes,
            count,
            control,
            capable,
            state,
        });
    }

    /// The frame with this number.
    #[inline]
    pub fn frame(&self, number: u64) -> Frame {
        self.frames[(number - self.frames_forgotten) as usize]
    }

    /// The packet at a place.
    #[inline]
    pub fn at(&self, place: usize) -> &SentPacket {
        &self.packets[place]
    }

    /// The packet with this number; `None` if it is forgotten.
    #[inline]
    pub fn find(&self, number: u64) -> Option<&SentPacket> {
        let first = self.packets.front()?.number;
        // Without packets that need no acknowledgement numbers are contiguous.
        let guess = (number.checked_sub(first)? as usize).min(self.packets.len() - 1);
        if self.packets[guess].number == number {
            return Some(&self.packets[guess]);
        }
        let place = self.packets.partition_point(|packet| packet.number < number);
        self.packets.get(place).filter(|packet| packet.number == number)
    }

    /// The places of packets that are not known to be acknowledged or lost, or are after one of these, up to
    /// the number `last`, which is included.
    #[inline]
    pub fn open(&self, first: u64, last: u64) -> Range<usize> {
        let oldest = (self.oldest - self.forgotten) as usize;
        let place = |bound: u64| {
            // Most bounds are near the oldest packet, or near the newest.
            self.packets.partition_point(|packet| packet.number < bound)
        };
        if self.packets.get(oldest).is_none_or(|packet| packet.number > last) {
            return oldest..oldest;
        }
        let begin = if self.packets[oldest].number >= first { oldest } else { place(first).max(oldest) };
        begin..place(last + 1).max(begin)
    }

    /// Sets the fate of a packet in flight. False if its fate was known.
    #[inline]
    pub fn settle(&mut self, place: usize, fate: Fate) -> bool {
        let packet = &mut self.packets[place];
        if packet.state != Fate::InFlight {
            return false;
        }
        packet.state = fate;
        self.lost += usize::from(fate == Fate::Lost);
        let mut oldest = (self.oldest - self.forgotten) as usize;
        while self.packets.get(oldest).is_some_and(|next| next.state != Fate::InFlight) {
            oldest += 1;
        }
        self.oldest = self.forgotten + oldest as u64;
        true
    }

    /// Takes a packet of these numbers that counts as lost, and has arrived all the same. It then counts as
    /// acknowledged.
    pub fn take_late(&mut self, first: u64, last: u64) -> Option<SentPacket> {
        if self.lost == 0 {
            return None;
        }
        let begin = self.packets.partition_point(|packet| packet.number < first);
        let of_these = self.packets.range_mut(begin..).take_while(|packet| packet.number <= last);
        let late = of_these.into_iter().find(|packet| packet.state == Fate::Lost)?;
        late.state = Fate::Acked;
        self.lost -= 1;
        Some(*late)
    }

    /// The oldest packets in flight.
    pub fn in_flight(&self) -> impl Iterator<Item = &SentPacket> {
        let oldest = (self.oldest - self.forgotten) as usize;
        self.packets.range(oldest..).filter(|packet| packet.state == Fate::InFlight)
    }

    /// Forgets the first packets if they are acknowledged, or lost and sent before `late`. Calls `each` for
    /// every one.
    #[inline]
    pub fn forget(&mut self, late: Time, mut each: impl FnMut()) {
        while let Some(first) = self.packets.front()
            && (first.state == Fate::Acked || (first.state == Fate::Lost && first.at < late))
        {
            self.lost -= usize::from(first.state == Fate::Lost);
            self.frames.drain(..usize::from(first.count));
            self.frames_forgotten += u64::from(first.count);
            self.packets.pop_front();
            self.forgotten += 1;
            each();
        }
    }

    /// Frees the memory if no packet is kept.
    pub fn rest(&mut self) {
        if self.packets.is_empty() {
            (self.packets, self.frames) = (VecDeque::new(), VecDeque::new());
        }
    }

    /// Heap memory, bytes.
    pub fn heap_bytes(&self) -> usize {
        self.packets.capacity() * size_of::<SentPacket>() + self.frames.capacity() * size_of::<Frame>()
    }

    /// The time before which a lost packet is forgotten.
    pub fn late(now: Time, patience: Span) -> Time {
        Time::ZERO + now.since(Time::ZERO).saturating_sub(patience)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Packets 0 to 4 leave, of which 2 needs no acknowledgement and is not kept.
    fn sent() -> Sent {
        let mut sent = Sent::default();
        for number in [0, 1, 3, 4] {
            sent.add(Frame { offset: number * 100, stream: 0, len: 100, kind: FrameKind::Data });
            sent.push(number, Time::ms(number), number * 150, 150, 0, false);
        }
        sent
    }

    #[test]
    fn packets_are_found_by_number() {
        let mut sent = sent();
        assert_eq!(sent.find(3).map(|packet| sent.frame(packet.frames().start).offset), Some(300));
        assert!(sent.find(2).is_none() && sent.find(9).is_none());
        assert_eq!(sent.open(0, 3), 0..3);
        assert!(sent.settle(0, Fate::Acked) && sent.settle(1, Fate::Acked) && !sent.settle(1, Fate::Lost));
        assert_eq!(sent.open(0, 3), 2..3, "the first two are settled");
        let mut forgotten = 0;
        sent.forget(Time::ZERO, || forgotten += 1);
        assert_eq!((forgotten, sent.open(0, 3), sent.open(0, 1)), (2, 0..1, 0..0));
        assert_eq!(sent.find(4).map(|packet| sent.frame(packet.frames().start).offset), Some(400));
    }

    #[test]
    fn a_lost_packet_is_kept_for_a_while() {
        let mut sent = sent();
        for place in 0..4 {
            sent.settle(place, if place == 0 { Fate::Lost } else { Fate::Acked });
        }
        let mut forgotten = 0;
        sent.forget(Sent::late(Time::ms(10), Span::ms(20)), || forgotten += 1);
        assert_eq!(forgotten, 0);
        assert_eq!(sent.take_late(1, 4).map(|packet| packet.number), None);
        assert_eq!(sent.clone().take_late(0, 4).map(|packet| packet.number), Some(0));
        sent.forget(Sent::late(Time::ms(30), Span::ms(20)), || forgotten += 1);
        assert_eq!((forgotten, sent.heap_bytes() > 0), (4, true));
        sent.rest();
        assert_eq!(sent.heap_bytes(), 0);
    }
}
