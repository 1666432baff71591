//! A packet as C sees it.

use giveway_qdisc::{Dscp, Ecn, FlowKey, Header, Label, Meta, NextHops, Packet as Numbered, Rate};

/// The metadata of a packet. Fields that a program does not know are 0.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Packet {
    /// The number by which the caller finds the packet. The queue does not read it.
    pub id: u64,
    /// Key of the flow: a hash of the addresses and ports, with a secret key if strangers send packets.
    pub flow: u64,
    /// Reserved rate of the flow, bit/s; 0 for best effort.
    pub reserved: u64,
    /// Rate of the flow as an edge router measured it: 0 for none, 1 for a short flow, or the rate in bit/s
    /// plus one.
    pub label: u64,
    /// IP length in bytes, at least 1.
    pub bytes: u32,
    /// Bytes that the flow sent before this packet.
    pub offset: u32,
    /// Bytes that the flow has still to send, this packet included; 0 if unknown.
    pub remaining: u32,
    /// Traffic class, for disciplines with classes; 0 is the most urgent.
    pub traffic_class: u16,
    /// Number of the source host, or 16 bits of a hash of its address.
    pub from: u16,
    /// Number of the destination host, or 16 bits of a hash of its address.
    pub to: u16,
    /// Next hops after the link, nearest first: the number of a node plus one; 0 ends the list.
    pub next_hops: [u16; 6],
    /// The ECN field of the IP header: 0 Not-ECT, 1 ECT(1), 2 ECT(0), 3 CE.
    pub ecn: u8,
    /// The DSCP, 0 to 63.
    pub dscp: u8,
    /// 1 for UDP, or TCP without data, of at most 64 bytes; otherwise 0.
    pub is_short: u8,
    /// 1 for a TCP acknowledgement whose only news is its number, as `giveway_qdisc::Header` defines it;
    /// otherwise 0.
    pub advances: u8,
}

/// The values of the ECN field, by their number in the header (RFC 3168, section 5).
const ECN: [Ecn; 4] = [Ecn::NotCapable, Ecn::Ect1, Ecn::Ect0, Ecn::Marked];

impl Packet {
    /// The packet for a discipline; `None` if a field is out of its range.
    pub(crate) fn numbered(&self) -> Option<Numbered<u64>> {
        let ecn = *ECN.get(usize::from(self.ecn))?;
        if self.bytes == 0 || self.dscp > 63 || self.is_short > 1 || self.advances > 1 {
            return None;
        }
        let hops = self.next_hops.iter().take_while(|hop| **hop != 0).map(|hop| hop - 1);
        let header = Header::new(Dscp::of_service(self.dscp << 2), self.is_short == 1);
        let meta = Meta {
            bytes: self.bytes,
            class: self.traffic_class,
            ecn,
            header: header.with_advance(self.advances == 1),
            flow: FlowKey(self.flow),
            from: self.from,
            to: self.to,
            label: Label::from_bits(self.label),
            offset: self.offset,
            remaining: self.remaining,
            reserved: Rate::bit(self.reserved),
            next_hops: NextHops::new(hops),
            ..Meta::default()
        };
        Some(Numbered { meta, payload: self.id })
    }

    /// The packet that a discipline returned.
    pub(crate) fn of(packet: &Numbered<u64>) -> Packet {
        let Numbered { meta, payload } = packet;
        let mut next_hops = [0; NextHops::MAX];
        next_hops.iter_mut().zip(meta.next_hops.iter()).for_each(|(place, hop)| *place = hop + 1);
        Packet {
            id: *payload,
            flow: meta.flow.0,
            reserved: meta.reserved.as_bit(),
            label: meta.label.bits(),
            bytes: meta.bytes,
            offset: meta.offset,
            remaining: meta.remaining,
            traffic_class: meta.class,
            from: meta.from,
            to: meta.to,
            next_hops,
            ecn: ECN.iter().position(|ecn| *ecn == meta.ecn).unwrap_or_default() as u8,
            dscp: meta.header.dscp().number(),
            is_short: u8::from(meta.header.is_short()),
            advances: u8::from(meta.header.advances()),
        }
    }
}
