//! Parses the headers of a frame into the metadata that a discipline gets.
//!
//! The sources of the fields of [`Meta`] are:
//!
//! - `bytes`: the length of the frame after its link header, plus [`Counting::overhead`], at least
//!   [`Counting::mpu`]. Up to two VLAN tags belong to the link header.
//! - `flow`: a keyed hash of addresses, protocol and ports, or the hash of [`HeaderParser::with_xor_mod`].
//!   Packets that are not IP form one flow for each pair of link addresses and EtherType.
//! - `class`: the DSCP (RFC 2474). Voice and network control (EF, VA, CS5 to CS7) have class 0, lower effort
//!   (LE, CS1) has class 2, all others have class 1.
//! - `ecn`: the IP header.
//! - `header`: the DSCP, and whether the packet is short; a short packet has at most 64 bytes after the link
//!   header. Whether it advances follows from its TCP header, and from the highest acknowledgement number of
//!   the flow before it, which is in the same table as `offset`.
//! - `from`, `to`: 16 bits of a hash of each address.
//! - `offset`: bytes of the flow before this packet, from a table of 4,096 flows. A flow that another one has
//!   evicted restarts at 0.
//! - `label`: the option of [`giveway_wire::label`], if the packet has one.
//!
//! No header carries `remaining` or `next_hops`, so they stay empty. The direction sets `reserved`
//! ([`reservations`](crate::reservations)).
//!
//! Length fields of packets are not trusted. An IP header may state a length of 20 in a frame of 1,514 bytes,
//! or of 65,535 in a frame of 60. If a shaper counted the stated length, frames of the first kind would pass
//! faster than the rate, and frames of the second kind would use up the time of the link, or the quantum of a
//! flow, with almost no data. The counted length is therefore the frame's. For a packet of less than 46 bytes
//! on Ethernet it includes the padding, as in `tc`.

use std::num::NonZeroU32;

use giveway_capture::{Ip, LinkType, Tcp};
use giveway_qdisc::hash::SipHasher;
use giveway_qdisc::{Dscp, FiveTuple, FlowHash, FlowKey, Header, Meta, Streams, Time};

use crate::device::link_type;

/// The payload that a packet has in the live backend: a reference to a frame in the pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame {
    /// Buffer of the pool that contains the frame.
    pub buffer: u32,
    /// Length of the frame, in bytes.
    pub length: u32,
    /// Sequence number of the arrival in its direction, from 0.
    pub number: u64,
    /// Offset of the IP header or of the fragment header; 0 if the frame has neither.
    pub ip_at: u16,
    /// Group of the fragments of one frame that was cut here; 0 for a whole frame. Groups are reused.
    pub group: u32,
}

/// Rules for the counted length of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Counting {
    /// Bytes that are added to the length after the link header. 14 counts the Ethernet header, as `tc` does.
    pub overhead: u32,
    /// Smallest counted length of a packet, in bytes.
    pub mpu: u32,
}

impl Default for Counting {
    fn default() -> Counting {
        Counting { overhead: 14, mpu: 0 }
    }
}

/// Parses frames, and counts the bytes of each flow.
pub struct HeaderParser {
    link: LinkType,
    counting: Counting,
    hasher: SipHasher,
    /// Hash that identifies flows to disciplines.
    flows: FlowHash,
    offsets: Box<[FlowBytes; FLOWS]>,
}

/// Size of the table of flows; a power of two.
const FLOWS: usize = 4096;

/// Entry of the table of flows: the number of bytes that a flow has sent so far.
#[derive(Clone, Copy)]
struct FlowBytes {
    flow: FlowKey,
    bytes: u32,
    last_s: u32,
    /// The highest acknowledgement number of the flow, if it is TCP.
    acknowledged: Option<u32>,
}

impl FlowBytes {
    /// An entry of a flow that has not sent yet.
    const fn new(flow: FlowKey, last_s: u32) -> FlowBytes {
        FlowBytes { flow, bytes: 0, last_s, acknowledged: None }
    }

    /// Records the acknowledgement number of a segment. True if it is higher than those before. The first one
    /// has none before.
    fn acknowledges(&mut self, tcp: &Tcp) -> bool {
        if tcp.flags & ACK == 0 {
            return false;
        }
        // RFC 9293, section 3.4: numbers are compared modulo 2^32.
        let higher = self.acknowledged.map(|before| tcp.ack.wrapping_sub(before).cast_signed() > 0);
        if higher != Some(false) {
            self.acknowledged = Some(tcp.ack);
        }
        higher == Some(true)
    }
}

/// The flag ACK of TCP.
const ACK: u8 = 0x10;

/// Time without a packet after which a flow restarts at offset 0, in seconds.
const FORGOTTEN_S: u32 = 60;

/// Length of the longest short packet ([`Header::is_short`]), in bytes after the link header. Ethernet pads
/// only packets that are shorter.
const SHORT: u32 = 64;

/// Length of the longest acknowledgement without data, in bytes after the link header: both headers with all
/// their options. A longer frame carries data, whatever its headers state.
const LONGEST_ACK: u32 = 120;

/// The parsed headers of a frame.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ParsedHeaders {
    /// Metadata for the discipline.
    pub meta: Meta,
    /// Offset of the IP header; 0 if the frame is not IP.
    pub ip_at: u16,
    /// Addresses and ports; `None` if the frame is not IP.
    pub tuple: Option<FiveTuple>,
}

impl HeaderParser {
    /// Creates a parser for frames that start with an Ethernet header (`ethernet`), or else with an IP
    /// header. The keys of its hash come from `streams`.
    pub fn new(ethernet: bool, counting: Counting, streams: &Streams) -> HeaderParser {
        let mut keys = streams.within("flows").rng();
        let hasher = SipHasher::new(keys.word(), keys.word());
        HeaderParser {
            link: link_type(ethernet),
            counting,
            hasher,
            flows: FlowHash::Keyed(hasher),
            offsets: Box::new([FlowBytes::new(FlowKey(0), 0); FLOWS]),
        }
    }

    /// Identifies flows by the hash of the TRR paper modulo `prime`, if there is one: disciplines see all
    /// flows of a bucket as one flow.
    pub fn with_xor_mod(self, prime: Option<NonZeroU32>) -> HeaderParser {
        let flows = prime.map_or(self.flows, |prime| FlowHash::XorMod(prime.get()));
        HeaderParser { flows, ..self }
    }

    /// The keyed hash of a flow. `flow` is the key that disciplines see, which saves the computation if it is
    /// the keyed hash already.
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

    /// Parses a frame. Any bytes are accepted.
    #[inline]
    pub fn parse(&mut self, frame: &[u8], now: Time) -> ParsedHeaders {
        let headers = giveway_capture::parse_headers(self.link, frame, frame.len() as u32);
        let is_connection = matches!(self.flows, FlowHash::Keyed(_));
        let charged = self.charge(headers.behind_link);
        let mut meta = Meta { bytes: charged, class: 1, ..Meta::default() };
        match headers.ip {
            Some(ip) => {
                meta.flow = self.flows.key(&ip.tuple);
                meta.ecn = ip.ecn;
                meta.header = Header::new(ip.dscp, ip.short && headers.behind_link <= SHORT);
                meta.from = self.address(&ip.tuple.from);
                meta.to = self.address(&ip.tuple.to);
                let packet = &frame[headers.at..];
                meta.class = class(ip.dscp);
                if has_options(packet)
                    && let Ok(label) = giveway_wire::label::read(packet)
                {
                    meta.label = label;
                }
            }
            // The first 14 bytes: both link addresses and the EtherType.
            None => meta.flow = FlowKey(self.hasher.hash(&frame[..frame.len().min(14)])),
        }
        let state = self.state(meta.flow, now);
        meta.offset = state.bytes;
        state.bytes = state.bytes.saturating_add(headers.behind_link);
        // Only a flow that is one connection has acknowledgements that can be compared.
        if let Some(Ip { data, tcp: Some(tcp), .. }) = &headers.ip
            && is_connection
        {
            let is_plain = *data == Some(0) && tcp.is_plain_ack() && headers.behind_link <= LONGEST_ACK;
            meta.header = meta.header.with_advance(state.acknowledges(tcp) && is_plain);
        }
        ParsedHeaders { meta, ip_at: headers.at as u16, tuple: headers.ip.map(|ip| ip.tuple) }
    }

    /// The counted length of a frame with `bytes` after its link header, in bytes.
    #[inline]
    pub fn charge(&self, bytes: u32) -> u32 {
        bytes.saturating_add(self.counting.overhead).max(self.counting.mpu)
    }

    fn address(&self, address: &[u8; 16]) -> u16 {
        self.hasher.hash(address) as u16
    }

    /// The state of a flow with a packet now.
    fn state(&mut self, flow: FlowKey, now: Time) -> &mut FlowBytes {
        let now_s = (now.as_ps() / Time::s(1).as_ps()) as u32;
        let entry = &mut self.offsets[flow.0 as usize & (FLOWS - 1)];
        if entry.flow != flow || now_s.wrapping_sub(entry.last_s) > FORGOTTEN_S {
            *entry = FlowBytes::new(flow, now_s);
        }
        entry.last_s = now_s;
        entry
    }
}

/// True if the packet has IPv4 options or IPv6 hop-by-hop options, where a label would be.
fn has_options(packet: &[u8]) -> bool {
    match packet {
        [first, ..] if first >> 4 == 4 => first & 15 > 5,
        [_, _, _, _, _, _, next, ..] => *next == 0,
        _ => false,
    }
}

/// The class of a packet by its DSCP.
fn class(dscp: Dscp) -> u16 {
    match dscp.number() {
        // CS5, voice-admit and EF; CS6, CS7 and the code points between them.
        40 | 44 | 46 | 48..=63 => 0,
        // Lower effort (RFC 8622), and CS1, which it replaces.
        1 | 8 => 2,
        _ => 1,
    }
}

#[cfg(test)]
mod tests {
    use giveway_qdisc::Ecn;
    use proptest::prelude::*;

    use super::*;

    fn parser() -> HeaderParser {
        HeaderParser::new(true, Counting { overhead: 0, mpu: 0 }, &Streams::new(1))
    }

    /// An Ethernet frame with a UDP datagram over IPv4 that has `data` bytes.
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
    fn a_datagram_is_classified() {
        let mut parser = parser();
        let first = parser.parse(&udp(0xb9, 1000, 20), Time::s(1));
        assert_eq!((first.meta.bytes, first.ip_at, first.meta.header.is_short()), (48, 14, true));
        assert_eq!((first.meta.class, first.meta.ecn), (0, Ecn::Ect1), "EF");
        assert_eq!(first.meta.header.dscp().to_string(), "EF");
        let second = parser.parse(&udp(0x04, 1000, 20), Time::s(2));
        assert_eq!((second.meta.flow, second.meta.offset), (first.meta.flow, 48));
        assert_eq!(second.meta.class, 2, "lower effort");
        assert_ne!(parser.parse(&udp(0, 1001, 20), Time::s(2)).meta.flow, first.meta.flow);
        assert_eq!(
            parser.parse(&udp(0, 1000, 20), Time::s(90)).meta.offset,
            0,
            "after a minute without packets"
        );
    }

    /// An Ethernet frame with a TCP segment over IPv4, of 6 bytes of padding if it has no options.
    fn tcp(ack: u32, flags: u8, options: &[u8], data: u16) -> Vec<u8> {
        let mut frame = vec![2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 8, 0, 0x45, 0];
        let header = 20 + options.len() as u16;
        frame.extend((20 + header + data).to_be_bytes());
        frame.extend([0, 0, 0x40, 0, 64, 6, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2, 0x13, 0x88, 0, 80, 0, 0, 0, 1]);
        frame.extend(ack.to_be_bytes());
        frame.extend([(header / 4) as u8 * 16, flags, 1, 0, 0, 0, 0, 0]);
        frame.extend(options);
        frame.resize((frame.len() + usize::from(data)).max(60), 0);
        frame
    }

    /// A download: each line is a packet on the way back, and whether it advances.
    #[test]
    fn a_higher_acknowledgement_without_other_news_advances() {
        const TIMESTAMPS: [u8; 12] = [1, 1, 8, 10, 0, 0, 0, 1, 0, 0, 0, 2];
        const SACK: [u8; 12] = [1, 1, 5, 10, 0, 0, 0, 1, 0, 0, 0, 2];
        let mut parser = parser();
        let mut advances = |ack: u32, flags: u8, options: &[u8], data: u16| {
            parser.parse(&tcp(ack, flags, options, data), Time::ZERO).meta.header.advances()
        };
        let first = u32::MAX - 2000;
        assert!(!advances(0, 0x02, &[], 0), "SYN");
        assert!(!advances(first, 0x10, &[], 0), "the first number is not known to be higher");
        assert!(advances(first + 1000, 0x10, &[], 0));
        assert!(!advances(first + 1000, 0x10, &[], 0), "a duplicate");
        assert!(!advances(first, 0x10, &[], 0), "a late one");
        assert!(advances(first + 2000, 0x10, &TIMESTAMPS, 0));
        assert!(!advances(first + 2000, 0x10, &SACK, 0), "SACK blocks");
        assert!(!advances(first.wrapping_add(3000), 0x10, &SACK, 0));
        assert!(!advances(first.wrapping_add(4000), 0x50, &[], 0), "ECE");
        assert!(!advances(first.wrapping_add(5000), 0x18, &[], 0), "PSH");
        assert!(!advances(first.wrapping_add(6000), 0x10, &[], 100), "data");
        assert!(!advances(first.wrapping_add(6000), 0x10, &[], 0), "the data had the same number");
        assert!(advances(first.wrapping_add(7000), 0x10, &[], 0), "modulo 2^32");
    }

    #[test]
    fn overhead_and_mpu_are_applied() {
        let mut parser = HeaderParser::new(true, Counting { overhead: 18, mpu: 84 }, &Streams::new(1));
        assert_eq!(parser.parse(&udp(0, 1, 20), Time::ZERO).meta.bytes, 84);
        assert_eq!(parser.parse(&udp(0, 1, 100), Time::ZERO).meta.bytes, 146);
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
    fn the_length_in_the_header_does_not_change_the_counted_length() {
        let long = 1514 - 14;
        for (mut frame, at) in [(udp(0, 1, 1472), 16), (udp6(1514), 18)] {
            for stated in [0u16, 1, 8, 20, 28, 64, 1499, 1501, 65_535] {
                frame[at..at + 2].copy_from_slice(&stated.to_be_bytes());
                let mut parser = parser();
                let parsed = parser.parse(&frame, Time::ZERO);
                assert_eq!(
                    (parsed.meta.bytes, parsed.meta.header.is_short()),
                    (long, false),
                    "the header states {stated}"
                );
                assert!(parsed.tuple.is_some(), "it still belongs to its flow");
                assert_eq!(parser.parse(&frame, Time::ZERO).meta.offset, long, "the header states {stated}");
            }
        }
        let mut small = udp(0, 1, 18);
        small[16..18].copy_from_slice(&65_535u16.to_be_bytes());
        let mut parser = parser();
        assert_eq!(parser.parse(&small, Time::ZERO).meta.bytes, 46);
        assert_eq!(parser.parse(&small, Time::ZERO).meta.offset, 46);
    }

    /// The headers state a TCP segment without data, but the frame is full of data.
    #[test]
    fn a_long_frame_is_never_a_short_packet() {
        let mut frame = udp(0, 1, 1472);
        frame[23] = 6;
        frame[16..18].copy_from_slice(&40u16.to_be_bytes());
        frame[46] = 0x50;
        assert!(!parser().parse(&frame, Time::ZERO).meta.header.is_short());
        frame.truncate(60);
        assert!(
            parser().parse(&frame, Time::ZERO).meta.header.is_short(),
            "an acknowledgement with six bytes of padding"
        );
    }

    /// Two VLAN tags are part of the link header; all others are counted.
    #[test]
    fn tags_after_the_second_are_counted() {
        let tagged = |tags: usize| {
            let mut frame = udp(0, 1, 100);
            for _ in 0..tags {
                frame.splice(12..12, [0x81, 0, 0, 5]);
            }
            parser().parse(&frame, Time::ZERO).meta.bytes
        };
        assert_eq!([0, 1, 2].map(tagged), [128; 3]);
        assert_eq!([3, 4, 300].map(tagged), [128 + 4, 128 + 8, 128 + 4 * 298]);
    }

    #[test]
    fn padding_is_counted_as_by_tc() {
        let count = |data: u16| {
            let mut frame = udp(0, 1, data);
            frame.resize(frame.len().max(60), 0);
            HeaderParser::new(true, Counting::default(), &Streams::new(1))
                .parse(&frame, Time::ZERO)
                .meta
                .bytes
        };
        assert_eq!([0, 12, 18, 19, 1472].map(count), [60, 60, 60, 61, 1514]);
    }

    #[test]
    fn a_frame_that_is_not_ip_has_a_flow_by_addresses_and_type() {
        let mut parser = parser();
        let mut arp = vec![0xff; 6];
        arp.extend([2, 0, 0, 0, 0, 1, 8, 6]);
        arp.resize(60, 0);
        let parsed = parser.parse(&arp, Time::ZERO);
        assert_eq!((parsed.meta.bytes, parsed.ip_at, parsed.tuple), (46, 0, None));
        arp[11] = 9;
        assert_ne!(parser.parse(&arp, Time::ZERO).meta.flow, parsed.meta.flow);
    }

    proptest! {
        #[test]
        fn any_bytes_are_parsed(bytes in proptest::collection::vec(any::<u8>(), 0..200), kind in 0..4u8) {
            let mut frame = bytes;
            if kind > 0 && frame.len() > 15 {
                let head: [u8; 3] = [[8, 0, 0x45], [0x86, 0xdd, 0x60], [0x81, 0, 0]][usize::from(kind) - 1];
                frame[12..15].copy_from_slice(&head);
            }
            let parsed = parser().parse(&frame, Time::ZERO);
            prop_assert!(usize::from(parsed.ip_at) <= frame.len());
        }

        /// The counted length of any frame is that after the link header.
        #[test]
        fn the_counted_length_is_that_after_the_link_header(
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
            let parsed = HeaderParser::new(true, Counting { overhead, mpu }, &Streams::new(1)).parse(&frame, Time::ZERO);
            prop_assert_eq!(parsed.meta.bytes, ((frame.len() - link) as u32 + overhead).max(mpu));
            // Without a link header the whole frame is counted.
            let bare = &frame[link..];
            let parsed = HeaderParser::new(false, Counting { overhead, mpu }, &Streams::new(1)).parse(bare, Time::ZERO);
            prop_assert_eq!(parsed.meta.bytes, (bare.len() as u32 + overhead).max(mpu));
        }
    }
}
