//! From the bytes of a frame to what a discipline may know of it.
//!
//! | of [`Meta`] | from |
//! |---|---|
//! | `bytes` | length of the frame behind its link header (at most two VLAN tags belong to that), plus [`Counting::overhead`], at least [`Counting::mpu`] |
//! | `flow` | keyed hash of addresses, protocol and ports, or where that is asked for another ([`Looker::telling_apart_by`]); what is not IP is one flow for each pair of link addresses and type |
//! | `class` | the code point of RFC 2474: voice and network control (EF, VA, CS5 to CS7) 0, what yields (LE, CS1) 2, the rest 1 |
//! | `ecn` | the IP header |
//! | `short` | the headers, and at most 64 bytes behind the link header |
//! | `from`, `to` | 16 bits of a hash of each address |
//! | `offset` | bytes that the flow brought before, counted in a table of 4,096 flows; a flow that another one has pushed out begins at 0 |
//! | `label` | the option of [`wire::label`], where there is one |
//!
//! `remaining` and `ahead` are not in any header: they stay empty. `reserved` is filled in by who keeps reservations
//! ([`reservations`](crate::reservations)).
//!
//! No length that a sender writes into a packet is believed. The lengths in IP headers may say 20 in a frame
//! of 1,514 bytes, or 65,535 in one of 60; a shaper that charged by them would let the first pass a link of
//! any rate, and the second would use up the time of a link, or the turns of a flow, with next to nothing.
//! What a frame costs the link is the length that it has. That of a packet of less than 46 bytes on Ethernet
//! includes its padding, as it does for `tc`.

use std::num::NonZeroU32;

use capture::LinkType;
use qdisc::hash::SipHasher;
use qdisc::{FiveTuple, FlowHash, FlowKey, Meta, Streams, Time};

use crate::device::link_type;

/// What the live host carries through a discipline in place of a payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame {
    /// Its room in the pool.
    pub room: u32,
    /// Its length there, in bytes.
    pub length: u32,
    /// Which arrival of its direction it was, from 0.
    pub number: u64,
    /// Where its IP header begins, or that of a fragment; 0 for what is neither.
    pub ip_at: u16,
    /// Of which frame it is a fragment, cut here; 0 for a whole one. Numbers are used again.
    pub group: u32,
}

/// How lengths are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Counting {
    /// Added to what stands behind the link header of each frame, in bytes: 14 counts the Ethernet header as
    /// `tc` does.
    pub overhead: u32,
    /// What a packet counts at least, in bytes.
    pub mpu: u32,
}

impl Default for Counting {
    fn default() -> Counting {
        Counting { overhead: 14, mpu: 0 }
    }
}

/// Reads frames, and remembers how much flows have brought.
pub struct Looker {
    link: LinkType,
    counting: Counting,
    hasher: SipHasher,
    /// How flows are told apart.
    flows: FlowHash,
    offsets: Box<[Sent; FLOWS]>,
}

/// Power of two.
const FLOWS: usize = 4096;

/// What a flow has brought.
#[derive(Clone, Copy)]
struct Sent {
    flow: FlowKey,
    bytes: u32,
    last_s: u32,
}

/// A flow that is silent for so long begins anew, in seconds.
const FORGOTTEN_S: u32 = 60;

/// The longest short packet ([`Meta::short`]), in bytes behind the link header: Ethernet pads only shorter
/// ones.
const SHORT: u32 = 64;

/// What a frame is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Seen {
    /// For the discipline.
    pub meta: Meta,
    /// Where its IP header begins; 0 for what is not IP.
    pub ip_at: u16,
    /// Addresses and ports; `None` for what is not IP.
    pub tuple: Option<FiveTuple>,
}

impl Looker {
    /// One for frames that begin with an Ethernet header, or with an IP header. The keys of its hash come from `streams`.
    pub fn new(ethernet: bool, counting: Counting, streams: &Streams) -> Looker {
        let mut keys = streams.within("flows").rng();
        let hasher = SipHasher::new(keys.word(), keys.word());
        Looker {
            link: link_type(ethernet),
            counting,
            hasher,
            flows: FlowHash::Keyed(hasher),
            offsets: Box::new([Sent { flow: FlowKey(0), bytes: 0, last_s: 0 }; FLOWS]),
        }
    }

    /// The same, with flows told apart by the TRR paper's hash modulo a prime: those of one bucket are one flow to disciplines.
    pub fn telling_apart_by(self, prime: Option<NonZeroU32>) -> Looker {
        let flows = prime.map_or(self.flows, |prime| FlowHash::XorMod(prime.get()));
        Looker { flows, ..self }
    }

    /// The keyed hash of a flow whose key for disciplines is `flow`.
    #[inline]
    pub fn keyed(&self, tuple: &FiveTuple, flow: FlowKey) -> FlowKey {
        match self.flows {
            FlowHash::Keyed(_) => flow,
            FlowHash::XorMod(_) => self.keyed_hash(tuple),
        }
    }

    /// The keyed hash of a flow.
    pub fn keyed_hash(&self, tuple: &FiveTuple) -> FlowKey {
        tuple.key(&self.hasher)
    }

    /// Reads a frame. Whatever its bytes are, it answers.
    #[inline]
    pub fn look(&mut self, frame: &[u8], now: Time) -> Seen {
        let look = capture::look(self.link, frame, frame.len() as u32);
        let counted = self.counted(look.behind_link);
        let mut meta = Meta { bytes: counted, class: 1, ..Meta::default() };
        match look.ip {
            Some(ip) => {
                meta.flow = self.flows.key(&ip.tuple);
                meta.ecn = ip.ecn;
                meta.short = ip.short && look.behind_link <= SHORT;
                meta.from = self.host(&ip.tuple.from);
                meta.to = self.host(&ip.tuple.to);
                let packet = &frame[look.at..];
                meta.class = class(packet);
                if has_options(packet)
                    && let Ok(label) = wire::label::read(packet)
                {
                    meta.label = label;
                }
            }
            // Addresses and type: what talks to whom over what.
            None => meta.flow = FlowKey(self.hasher.hash(&frame[..frame.len().min(14)])),
        }
        meta.offset = self.offset(meta.flow, look.behind_link, now);
        Seen { meta, ip_at: look.at as u16, tuple: look.ip.map(|ip| ip.tuple) }
    }

    /// What a frame with so many bytes behind its link header counts.
    #[inline]
    pub fn counted(&self, bytes: u32) -> u32 {
        bytes.saturating_add(self.counting.overhead).max(self.counting.mpu)
    }

    fn host(&self, address: &[u8; 16]) -> u16 {
        self.hasher.hash(address) as u16
    }

    /// What the flow brought before these bytes.
    fn offset(&mut self, flow: FlowKey, bytes: u32, now: Time) -> u32 {
        let now_s = (now.as_ps() / Time::s(1).as_ps()) as u32;
        let entry = &mut self.offsets[flow.0 as usize & (FLOWS - 1)];
        if entry.flow != flow || now_s.wrapping_sub(entry.last_s) > FORGOTTEN_S {
            *entry = Sent { flow, bytes: 0, last_s: now_s };
        }
        let before = entry.bytes;
        entry.bytes = before.saturating_add(bytes);
        entry.last_s = now_s;
        before
    }
}

/// Whether there can be a label: IPv4 options, or hop-by-hop options of IPv6.
fn has_options(packet: &[u8]) -> bool {
    match packet {
        [first, ..] if first >> 4 == 4 => first & 15 > 5,
        [_, _, _, _, _, _, next, ..] => *next == 0,
        _ => false,
    }
}

/// Which class its code point asks for.
fn class(packet: &[u8]) -> u16 {
    let service = match packet {
        [first, second, ..] if first >> 4 == 6 => (first << 4) | (second >> 4),
        [_, second, ..] => *second,
        _ => 0,
    };
    match service >> 2 {
        // CS5, voice-admit, EF; CS6 and CS7 and what lies between.
        40 | 44 | 46 | 48..=63 => 0,
        // Lower effort (RFC 8622), and CS1, which it replaces.
        1 | 8 => 2,
        _ => 1,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use qdisc::Ecn;

    use super::*;

    fn looker() -> Looker {
        Looker::new(true, Counting { overhead: 0, mpu: 0 }, &Streams::new(1))
    }

    /// Ethernet, IPv4 and UDP, `data` bytes of it.
    fn udp(tos: u8, port: u16, data: u16) -> Vec<u8> {
        let mut frame = vec![2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 8, 0, 0x45, tos];
        frame.extend((28 + data).to_be_bytes());
        frame.extend([0, 0, 0x40, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
        frame.extend(port.to_be_bytes());
        frame.extend([0, 53]);
        frame.extend((8 + data).to_be_bytes());
        frame.extend([0, 0]);
        frame.resize(14 + 28 + usize::from(data), 0);
        frame
    }

    #[test]
    fn a_datagram_is_seen_as_what_it_is() {
        let mut looker = looker();
        let first = looker.look(&udp(0xb9, 1000, 20), Time::s(1));
        assert_eq!((first.meta.bytes, first.ip_at, first.meta.short), (48, 14, true));
        assert_eq!((first.meta.class, first.meta.ecn), (0, Ecn::Ect1), "EF");
        let second = looker.look(&udp(0x04, 1000, 20), Time::s(2));
        assert_eq!((second.meta.flow, second.meta.offset), (first.meta.flow, 48));
        assert_eq!(second.meta.class, 2, "lower effort");
        assert_ne!(looker.look(&udp(0, 1001, 20), Time::s(2)).meta.flow, first.meta.flow);
        assert_eq!(looker.look(&udp(0, 1000, 20), Time::s(90)).meta.offset, 0, "it was silent for long");
    }

    #[test]
    fn overhead_and_the_least_count() {
        let mut looker = Looker::new(true, Counting { overhead: 18, mpu: 84 }, &Streams::new(1));
        assert_eq!(looker.look(&udp(0, 1, 20), Time::ZERO).meta.bytes, 84);
        assert_eq!(looker.look(&udp(0, 1, 100), Time::ZERO).meta.bytes, 146);
    }

    /// An Ethernet frame of `length` bytes: IPv6 and UDP.
    fn udp6(length: usize) -> Vec<u8> {
        let mut frame = vec![2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 0x86, 0xdd, 0x60, 0, 0, 0];
        frame.extend(((length - 54) as u16).to_be_bytes());
        frame.extend([17, 64]);
        frame.extend([0xfd; 32]);
        frame.extend([0x13, 0x88, 0, 53]);
        frame.extend(((length - 54) as u16).to_be_bytes());
        frame.resize(length, 0);
        frame
    }

    #[test]
    fn the_length_in_the_header_does_not_change_what_a_frame_counts() {
        let long = 1514 - 14;
        for (mut frame, at) in [(udp(0, 1, 1472), 16), (udp6(1514), 18)] {
            for lie in [0u16, 1, 8, 20, 28, 64, 1499, 1501, 65_535] {
                frame[at..at + 2].copy_from_slice(&lie.to_be_bytes());
                let mut looker = looker();
                let seen = looker.look(&frame, Time::ZERO);
                assert_eq!((seen.meta.bytes, seen.meta.short), (long, false), "it says {lie}");
                assert!(seen.tuple.is_some(), "it is a packet of its flow all the same");
                assert_eq!(looker.look(&frame, Time::ZERO).meta.offset, long, "it says {lie}");
            }
        }
        let mut small = udp(0, 1, 18);
        small[16..18].copy_from_slice(&65_535u16.to_be_bytes());
        let mut looker = looker();
        assert_eq!(looker.look(&small, Time::ZERO).meta.bytes, 46);
        assert_eq!(looker.look(&small, Time::ZERO).meta.offset, 46);
    }

    /// TCP that says that it has no data, in a frame that is full of them.
    #[test]
    fn a_long_frame_is_no_short_packet_whatever_its_headers_say() {
        let mut frame = udp(0, 1, 1472);
        frame[23] = 6;
        frame[16..18].copy_from_slice(&40u16.to_be_bytes());
        frame[46] = 0x50;
        assert!(!looker().look(&frame, Time::ZERO).meta.short);
        frame.truncate(60);
        assert!(looker().look(&frame, Time::ZERO).meta.short, "an acknowledgement with six bytes of padding");
    }

    /// A frame that is full of tags carries their bytes, too: two belong to the link header, and the rest is
    /// charged.
    #[test]
    fn tags_beyond_two_count() {
        let tagged = |tags: usize| {
            let mut frame = udp(0, 1, 100);
            for _ in 0..tags {
                frame.splice(12..12, [0x81, 0, 0, 5]);
            }
            looker().look(&frame, Time::ZERO).meta.bytes
        };
        assert_eq!([0, 1, 2].map(tagged), [128; 3]);
        assert_eq!([3, 4, 300].map(tagged), [128 + 4, 128 + 8, 128 + 4 * 298]);
    }

    #[test]
    fn padding_counts_as_it_does_for_tc() {
        let count = |data: u16| {
            let mut frame = udp(0, 1, data);
            frame.resize(frame.len().max(60), 0);
            Looker::new(true, Counting::default(), &Streams::new(1)).look(&frame, Time::ZERO).meta.bytes
        };
        assert_eq!([0, 12, 18, 19, 1472].map(count), [60, 60, 60, 61, 1514]);
    }

    #[test]
    fn what_is_not_ip_is_a_flow_by_its_addresses_and_type() {
        let mut looker = looker();
        let mut arp = vec![0xff; 6];
        arp.extend([2, 0, 0, 0, 0, 1, 8, 6]);
        arp.resize(60, 0);
        let seen = looker.look(&arp, Time::ZERO);
        assert_eq!((seen.meta.bytes, seen.ip_at, seen.tuple), (46, 0, None));
        arp[11] = 9;
        assert_ne!(looker.look(&arp, Time::ZERO).meta.flow, seen.meta.flow);
    }

    proptest! {
        #[test]
        fn nothing_makes_it_fail(bytes in proptest::collection::vec(any::<u8>(), 0..200), kind in 0..4u8) {
            let mut frame = bytes;
            if kind > 0 && frame.len() > 15 {
                let head: [u8; 3] = [[8, 0, 0x45], [0x86, 0xdd, 0x60], [0x81, 0, 0]][usize::from(kind) - 1];
                frame[12..15].copy_from_slice(&head);
            }
            let seen = looker().look(&frame, Time::ZERO);
            prop_assert!(usize::from(seen.ip_at) <= frame.len());
        }

        /// Whatever the bytes of a frame are, it counts as much as it has behind its link header.
        #[test]
        fn a_frame_counts_what_it_has_behind_its_link_header(
            rest in proptest::collection::vec(any::<u8>(), 0..1500),
            head in proptest::sample::select(vec![
                &[8, 0, 0x45][..], &[8, 0, 0x4f], &[8, 0, 0x62], &[0x86, 0xdd, 0x60], &[0x86, 0xdd, 0x60, 0, 0, 0, 0, 1],
                &[8, 0, 0x45, 0, 0, 20], &[8, 0, 0x45, 0, 0xff, 0xff], &[8, 6], &[0x88, 0x64, 0x11, 0, 0, 1, 0, 40, 0, 0x21, 0x45],
            ]),
            tags in 0..9usize,
            overhead in 0..60u32,
            mpu in 0..200u32,
        ) {
            let mut frame = vec![2; 12];
            (0..tags).for_each(|_| frame.extend([0x81, 0, 0, 7]));
            frame.extend(head);
            frame.extend(rest);
            let pppoe = if tags <= 2 && head[..2] == [0x88, 0x64] { 8 } else { 0 };
            let link = 14 + 4 * tags.min(2) + pppoe;
            let seen = Looker::new(true, Counting { overhead, mpu }, &Streams::new(1)).look(&frame, Time::ZERO);
            prop_assert_eq!(seen.meta.bytes, ((frame.len() - link) as u32 + overhead).max(mpu));
            // Without a link header all of it counts.
            let bare = &frame[link..];
            let seen = Looker::new(false, Counting { overhead, mpu }, &Streams::new(1)).look(bare, Time::ZERO);
            prop_assert_eq!(seen.meta.bytes, (bare.len() as u32 + overhead).max(mpu));
        }
    }
}
