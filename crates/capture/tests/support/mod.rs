//! Writes captures byte by byte.

#![allow(dead_code, missing_docs)]

pub mod tshark;

use std::io::Cursor;

use giveway_capture::{CaptureError, Packet, Reader};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    Little,
    Big,
}

impl Order {
    pub fn u16(self, value: u16) -> [u8; 2] {
        if self == Order::Little { value.to_le_bytes() } else { value.to_be_bytes() }
    }
    pub fn u32(self, value: u32) -> [u8; 4] {
        if self == Order::Little { value.to_le_bytes() } else { value.to_be_bytes() }
    }
    pub fn u64(self, value: u64) -> [u8; 8] {
        if self == Order::Little { value.to_le_bytes() } else { value.to_be_bytes() }
    }
}

/// A pcap file. Packets are (time in ns, bytes on the wire, captured bytes).
pub fn pcap(order: Order, nanos: bool, link: u32, packets: &[(u64, u32, Vec<u8>)]) -> Vec<u8> {
    let magic = if nanos { 0xa1b2_3c4d } else { 0xa1b2_c3d4 };
    let mut file = order.u32(magic).to_vec();
    file.extend(order.u16(2));
    file.extend(order.u16(4));
    for word in [0, 0, 65_535, link] {
        file.extend(order.u32(word));
    }
    for (time, wire, kept) in packets {
        let fraction = time % 1_000_000_000;
        let fraction = if nanos { fraction } else { fraction / 1000 };
        for word in [(time / 1_000_000_000) as u32, fraction as u32, kept.len() as u32, *wire] {
            file.extend(order.u32(word));
        }
        file.extend(kept);
    }
    file
}

/// A block of pcapng.
pub fn block(order: Order, kind: u32, body: &[u8]) -> Vec<u8> {
    let padded = body.len().next_multiple_of(4);
    let length = order.u32(padded as u32 + 12);
    let mut block = order.u32(kind).to_vec();
    block.extend(length);
    block.extend(body);
    block.resize(8 + padded, 0);
    block.extend(length);
    block
}

pub fn section(order: Order) -> Vec<u8> {
    let mut body = order.u32(0x1a2b_3c4d).to_vec();
    body.extend(order.u16(1));
    body.extend(order.u16(0));
    body.extend([0xff; 8]);
    block(order, 0x0a0d_0d0a, &body)
}

/// An interface with if_tsresol and if_tsoffset.
pub fn interface(order: Order, link: u16, resolution: u8, shift_s: i64) -> Vec<u8> {
    let mut body = order.u16(link).to_vec();
    body.extend([0, 0]);
    body.extend(order.u32(0));
    let options: [(u16, Vec<u8>); 3] =
        [(2, b"eth0".to_vec()), (9, vec![resolution]), (14, order.u64(shift_s as u64).to_vec())];
    for (code, value) in options {
        body.extend(order.u16(code));
        body.extend(order.u16(value.len() as u16));
        let padded = value.len().next_multiple_of(4);
        body.extend(&value);
        body.resize(body.len() + padded - value.len(), 0);
    }
    body.extend([0; 4]);
    block(order, 1, &body)
}

pub fn enhanced(order: Order, interface: u32, ticks: u64, wire: u32, kept: &[u8]) -> Vec<u8> {
    let mut body = Vec::new();
    for word in [interface, (ticks >> 32) as u32, ticks as u32, kept.len() as u32, wire] {
        body.extend(order.u32(word));
    }
    body.extend(kept);
    block(order, 6, &body)
}

/// All packets of the reader, and the error that ended it.
pub fn read(file: &[u8]) -> (Vec<Packet>, Option<CaptureError>) {
    let reader = match Reader::new(Cursor::new(file.to_vec())) {
        Ok(reader) => reader,
        Err(error) => return (Vec::new(), Some(error)),
    };
    let mut packets = Vec::new();
    for packet in reader {
        match packet {
            Ok(packet) => packets.push(packet),
            Err(error) => return (packets, Some(error)),
        }
    }
    (packets, None)
}

/// The packets of a file without damage.
pub fn read_whole(file: &[u8]) -> Vec<Packet> {
    let (packets, error) = read(file);
    assert!(error.is_none(), "{}", error.unwrap());
    packets
}
