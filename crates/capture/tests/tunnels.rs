//! Encapsulations: the inner packet is found, and the length of the outer one counts.

use giveway_capture::{Packet, Tunnel};

use crate::support::{Order, pcap, read_whole};

/// An IPv4 packet from 10.0.0.`host` with the protocol.
fn ipv4(host: u8, protocol: u8, above: &[u8]) -> Vec<u8> {
    let length = (20 + above.len() as u16).to_be_bytes();
    let head =
        [0x45, 0, length[0], length[1], 0, 1, 0, 0, 64, protocol, 0, 0, 10, 0, 0, host, 10, 0, 1, host];
    [&head[..], above].concat()
}

fn ipv6(next: u8, above: &[u8]) -> Vec<u8> {
    let length = (above.len() as u16).to_be_bytes();
    [&[0x60, 0, 0, 0, length[0], length[1], next, 64][..], &[0xfd; 16], &[0xfe; 16], above].concat()
}

fn udp(from: u16, to: u16, payload: &[u8]) -> Vec<u8> {
    let length = 8 + payload.len() as u16;
    [&[from, to, length, 0].map(u16::to_be_bytes).concat()[..], payload].concat()
}

/// The inner packet of every case: 28 bytes and a TCP header from port 1234 to 443.
fn inner() -> Vec<u8> {
    let mut tcp = [1234_u16, 443].map(u16::to_be_bytes).concat();
    tcp.extend([0, 0, 0, 1, 0, 0, 0, 2, 0x50, 0x10, 1, 1, 0, 0, 0, 0]);
    tcp.extend([7; 100]);
    ipv4(9, 6, &tcp)
}

fn framed(kind: u16, above: &[u8]) -> Vec<u8> {
    [&[2, 0, 0, 0, 0, 8, 2, 0, 0, 0, 0, 9][..], &kind.to_be_bytes(), above].concat()
}

fn read(frame: &[u8]) -> Packet {
    read_whole(&pcap(Order::Little, false, 1, &[(0, frame.len() as u32, frame.to_vec())]))[0]
}

/// Checks that the inner packet is found in this Ethernet frame.
fn unpacked(frame: Vec<u8>, tunnel: Tunnel, bytes: usize) {
    let packet = read(&frame);
    let ip = packet.ip.expect("it is IP");
    assert_eq!((ip.tuple.from_port, ip.tuple.to_port, ip.tuple.from[15]), (1234, 443, 9), "{tunnel:?}");
    assert_eq!((ip.data, ip.tcp.unwrap().ack), (Some(100), 2), "{tunnel:?}");
    assert_eq!(packet.bytes as usize, bytes, "{tunnel:?}: the length on the wire");
    assert!(packet.tunnels.contains(tunnel), "{tunnel:?}: {:?}", packet.tunnels);
    // Truncated at any length, it is read as far as possible.
    for kept in 0..frame.len() {
        let file = pcap(Order::Little, false, 1, &[(0, frame.len() as u32, frame[..kept].to_vec())]);
        let packet = read_whole(&file)[0];
        assert!(packet.ip.is_none_or(|ip| ip.data.is_none_or(|data| data < packet.bytes)), "{kept} bytes");
    }
}

#[test]
fn the_inner_packet_is_found_and_the_link_carries_the_outer_length() {
    let inner = inner();
    let outer = |protocol, above: &[u8]| framed(0x0800, &ipv4(1, protocol, above));
    let gre = |kind: u16, flags: u8, rest: &[u8]| [&[flags, 0][..], &kind.to_be_bytes(), rest].concat();
    let n = inner.len();
    unpacked(outer(4, &inner), Tunnel::IpInIp, 20 + n);
    unpacked(framed(0x86dd, &ipv6(4, &inner)), Tunnel::IpInIp, 40 + n);
    unpacked(outer(47, &gre(0x0800, 0, &inner)), Tunnel::Gre, 24 + n);
    let keyed = [&[0, 0, 0, 5, 0, 0, 0, 6][..], &inner].concat();
    unpacked(outer(47, &gre(0x0800, 0x30, &keyed)), Tunnel::Gre, 32 + n);
    unpacked(outer(47, &gre(0x6558, 0, &framed(0x0800, &inner))), Tunnel::Gre, 38 + n);
    // PPTP: version 1 with a key, a sequence number and PPP.
    let pptp = [&[0x30, 1, 0x88, 0x0b, 0, 0, 0, 1, 0, 0, 0, 1, 0xff, 3, 0, 0x21][..], &inner].concat();
    unpacked(outer(47, &pptp), Tunnel::Gre, 36 + n);
    let vxlan = [&[8, 0, 0, 0, 0, 0, 1, 0][..], &framed(0x0800, &inner)].concat();
    unpacked(outer(17, &udp(50_000, 4789, &vxlan)), Tunnel::Vxlan, 50 + n);
    let gtp = [&[0x30, 255, 0, 0, 0, 0, 0, 1][..], &inner].concat();
    unpacked(outer(17, &udp(2152, 2152, &gtp)), Tunnel::GtpU, 36 + n);
    // With a sequence number and an extension header of the 5G user plane.
    let extended = [&[0x34, 255, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0x85, 1, 0x10, 9, 0][..], &inner].concat();
    unpacked(outer(17, &udp(2152, 2152, &extended)), Tunnel::GtpU, 44 + n);
    // Labels belong to the link header, as VLAN tags do.
    let labels = [&[0, 1, 0, 64, 0, 2, 1, 64][..], &inner].concat();
    unpacked(framed(0x8847, &labels), Tunnel::Mpls, n);
    // GTP-U on an MPLS network.
    let both = [&[0, 1, 1, 64][..], &ipv4(1, 17, &udp(2152, 2152, &gtp))].concat();
    unpacked(framed(0x8847, &both), Tunnel::GtpU, 36 + n);
}

/// The outer headers of a mirror were not on the link, so the length of the mirrored packet counts.
#[test]
fn mirrored_packets_have_their_own_length() {
    let inner = framed(0x0800, &inner());
    let n = inner.len() - 14;
    let mirrored = |head: &[u8]| framed(0x0800, &ipv4(1, 47, &[head, &inner].concat()));
    unpacked(mirrored(&[0, 0, 0x88, 0xbe]), Tunnel::Erspan, n);
    unpacked(mirrored(&[0x10, 0, 0x88, 0xbe, 0, 0, 0, 1, 0x10, 1, 0, 1, 0, 0, 0, 0]), Tunnel::Erspan, n);
    let third = [0x10, 0, 0x22, 0xeb, 0, 0, 0, 1, 0x20, 1, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0];
    unpacked(mirrored(&third), Tunnel::Erspan, n);
    let packet = read(&mirrored(&third));
    assert_eq!(packet.mac.unwrap().to, [2, 0, 0, 0, 0, 8], "the addresses are those of the mirrored frame");
}

/// An encrypted packet stays a packet of the tunnel, and is named.
#[test]
fn encrypted_tunnels_are_named() {
    let of = |above: &[u8], protocol| read(&framed(0x0800, &ipv4(1, protocol, above)));
    let data = [&[4, 0, 0, 0][..], &[9; 60]].concat();
    for (packet, tunnel) in [
        (of(&udp(40_000, 51820, &[1; 20]), 17), Tunnel::WireGuard),
        (of(&udp(40_000, 40_001, &data), 17), Tunnel::WireGuard),
        (of(&[5; 40], 50), Tunnel::Ipsec),
        (of(&udp(4500, 4500, &[5; 40]), 17), Tunnel::Ipsec),
        (of(&udp(40_000, 1194, &[5; 40]), 17), Tunnel::OpenVpn),
    ] {
        assert!(packet.tunnels.contains(tunnel) && tunnel.is_encrypted(), "{tunnel:?}");
        assert_eq!(packet.ip.unwrap().tuple.from[15], 1, "{tunnel:?}: the outer packet");
    }
    for plain in [
        of(&udp(4500, 4500, &[0, 0, 0, 0, 5, 5, 5, 5, 5, 5]), 17), // IKE
        of(&udp(4500, 4500, &[0xff]), 17),
        of(&udp(40_000, 40_001, &[4, 0, 0, 0, 1]), 17),
        of(&udp(40_000, 443, &[0x45; 40]), 17),
        read(&framed(0x0800, &inner())),
    ] {
        assert!(plain.tunnels.is_empty(), "{plain:?}");
    }
}

/// A tunnel that carries no IP, such as ARP on a bridged network, stays a packet of the tunnel.
#[test]
fn other_contents_leave_the_outer_packet() {
    let arp = [&[8, 0, 0, 0, 0, 0, 1, 0][..], &framed(0x0806, &[0; 28])].concat();
    let packet = read(&framed(0x0800, &ipv4(1, 17, &udp(50_000, 4789, &arp))));
    assert_eq!(packet.ip.unwrap().tuple.to_port, 4789);
    // Packets in packets in packets end at the fourth.
    let mut deep = inner();
    for _ in 0..10 {
        deep = ipv4(1, 4, &deep);
    }
    assert_eq!(read(&framed(0x0800, &deep)).ip.unwrap().tuple.protocol, 4);
}
