//! Names of groups: the service of the server port.

/// The number of UDP among protocols.
pub(crate) const UDP: u8 = 17;
/// The port of web servers with encryption.
pub(crate) const HTTPS: u16 = 443;

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

/// The name of a TCP connection, by the port of its server and the data bytes of its client and its server. A
/// connection to a web server that mostly sends is an upload, and part of no page.
pub(crate) fn connection(port: u16, sent: u64, received: u64) -> String {
    /// A request, with the largest cookies and forms, is smaller.
    const LEAST: u64 = 100_000;
    let service = tcp(port);
    if is_web(&service) && sent >= LEAST && sent > received { UPLOAD.to_owned() } else { service }
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

/// The group of uploads.
const UPLOAD: &str = "upload";

/// True if flows of this group are uploads.
pub(crate) fn is_upload(group: &str) -> bool {
    group == UPLOAD
}

/// True if flows of this group can be parts of pages.
pub(crate) fn is_web(group: &str) -> bool {
    group == "web"
}

/// The server's port among two: the well-known one, otherwise the smaller.
pub(crate) fn server_port(a: u16, b: u16) -> u16 {
    a.min(b)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_upload_to_a_web_server_has_its_own_name() {
        assert_eq!(connection(443, 4_400_000, 300), "upload");
        assert_eq!(connection(443, 800, 4_400_000), "web");
        assert_eq!(connection(443, 3_000, 200), "web", "a form");
        assert_eq!(connection(22, 4_400_000, 300), "ssh");
    }
}
