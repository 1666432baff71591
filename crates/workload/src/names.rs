//! Names of groups: the service of the server port.

/// The service of a TCP port. Web ports are one, because pages mix them.
pub(crate) fn tcp(port: u16) -> String {
    let known = match port {
        80 | 443 | 8080 | 8443 => "web",
        20 | 21 => "ftp",
        22 => "ssh",
        25 | 465 | 587 => "mail out",
        110 | 143 | 993 | 995 => "mail in",
        53 | 853 => "dns",
        445 | 139 => "file sharing",
        873 => "rsync",
        1935 => "rtmp",
        3389 => "remote desktop",
        5201 => "iperf",
        _ => return format!("tcp {port}"),
    };
    known.to_owned()
}

/// The service of a UDP port, or the name of another protocol.
pub(crate) fn other(protocol: u8, port: u16) -> String {
    let known = match (protocol, port) {
        (17, 53 | 853 | 5353) => "dns",
        (17, 443) => "quic",
        (17, 123) => "ntp",
        (17, 5060 | 5061) => "sip",
        (17, 51820) => "wireguard",
        (17, _) => return format!("udp {port}"),
        (1 | 58, _) => "icmp",
        (47, _) => "gre",
        (50, _) => "ipsec",
        (132, _) => "sctp",
        _ => return format!("protocol {protocol}"),
    };
    known.to_owned()
}

/// True if flows of this group can be parts of pages.
pub(crate) fn is_web(group: &str) -> bool {
    group == "web"
}

/// The server's port among two: the well-known one, otherwise the smaller.
pub(crate) fn server_port(a: u16, b: u16) -> u16 {
    a.min(b)
}
