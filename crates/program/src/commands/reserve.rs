//! The flags of `giveway live reserve`.

use std::net::SocketAddrV4;
use std::path::PathBuf;

use giveway_qdisc::{Rate, Span};
use giveway_reserve::EtherTypes;

use super::ether_types::ether_types;

/// Reserves bandwidth for a flow at the routers on its path (`giveway live --reserve`).
///
/// The program sends a control frame on the interface towards the destination. Each router on the path grants
/// or refuses the request. The program refreshes a granted reservation until Ctrl-C, and then ends it.
/// Without a reservation, the flow is best effort like every other.
///
/// The rate includes headers: each packet counts with its IP length and the --overhead of the router (14
/// bytes for Ethernet).
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Interface towards the destination, as in `ip link`
    #[arg(long, value_name = "IF")]
    pub via: String,
    /// Source of the flow: IPv4 address and port
    #[arg(long, value_name = "ADDR:PORT", value_parser = endpoint)]
    pub from: SocketAddrV4,
    /// Destination of the flow: IPv4 address and port
    #[arg(long, value_name = "ADDR:PORT", value_parser = endpoint)]
    pub to: SocketAddrV4,
    /// Protocol of the flow: udp, tcp, sctp, dccp, udplite, or a number from 0 to 255
    #[arg(long, value_name = "NAME", default_value = "udp", value_parser = protocol)]
    pub proto: u8,
    /// Rate to reserve, as in 2mbit
    #[arg(long, value_name = "RATE", required_unless_present = "end")]
    pub rate: Option<Rate>,
    /// Length of the reservation, as in 10min [default: until the program ends]
    #[arg(long = "for", value_name = "TIME")]
    pub span: Option<Span>,
    /// Start of the reservation: +5min for in five minutes, or @1790000000 for a Unix time [default: now]
    #[arg(long, value_name = "WHEN", value_parser = when)]
    pub start: Option<When>,
    /// File with the key of the routers (--reserve-key-file): 32 hexadecimal digits
    #[arg(long, value_name = "FILE")]
    pub key_file: Option<PathBuf>,
    /// EtherTypes of control frames, as at the routers (--reserve-types)
    #[arg(long, value_name = "TYPES", default_value = "0x88b5", value_parser = ether_types)]
    pub types: EtherTypes,
    /// MAC address of the router [default: broadcast]
    #[arg(long, value_name = "MAC", value_parser = link_address)]
    pub router: Option<[u8; 6]>,
    /// Interval of refreshes; at most a third of the lifetime at the routers (--reserve-lifetime)
    #[arg(long, value_name = "TIME", default_value = "10s")]
    pub repeat: Span,
    /// Time to wait for an answer before a retransmission
    #[arg(long, value_name = "TIME", default_value = "1s")]
    pub timeout: Span,
    /// Transmissions of an unanswered request
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub tries: u32,
    /// Exit after the answer, without refreshes; the reservation lasts for its lifetime at the routers
    #[arg(long, conflicts_with = "end")]
    pub once: bool,
    /// End a reservation of this machine
    #[arg(long, conflicts_with_all = ["span", "start", "rate"])]
    pub end: bool,
    /// Print only errors
    #[arg(long, short)]
    pub quiet: bool,
}

const EXAMPLES: &str = "\
Examples:
  sudo giveway live reserve --via eth0 --from 10.0.0.1:5004 --to 10.0.1.7:6000 --rate 2mbit
  sudo giveway live reserve --via eth0 --from 10.0.0.1:5004 --to 10.0.1.7:6000 --rate 2mbit --for 10min
  sudo giveway live reserve --via eth0 --from 10.0.0.1:22 --to 10.0.1.7:50000 --proto tcp --rate 500kbit --once
  sudo giveway live reserve --via eth0 --from 10.0.0.1:5004 --to 10.0.1.7:6000 --end
  openssl rand -hex 16 > key    # for `giveway live --reserve-key-file key` and `giveway live reserve --key-file key`

Needs root or CAP_NET_RAW, and drops both once its socket is open.

Exit codes: 0 granted, and ended on time; 1 refused, lost later, or not answered; 2 it could not start.";

/// Start of a reservation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    /// After this time from now.
    In(Span),
    /// At this Unix time, in nanoseconds.
    At(u64),
}

/// Parses a start: `+` and a time, or `@` and a Unix time in seconds.
fn when(text: &str) -> Result<When, String> {
    if let Some(span) = text.strip_prefix('+') {
        return span
            .parse()
            .map(When::In)
            .map_err(|error: giveway_qdisc::units::UnitError| error.to_string());
    }
    let seconds = text.strip_prefix('@').and_then(|seconds| seconds.parse::<u64>().ok());
    let ns = seconds.and_then(|seconds| seconds.checked_mul(1_000_000_000));
    ns.map(When::At)
        .ok_or_else(|| "write +5min for in five minutes, or @1790000000 for a Unix time".to_owned())
}

/// Parses an IPv4 address and a port.
fn endpoint(text: &str) -> Result<SocketAddrV4, String> {
    text.parse().map_err(|_| match text.parse::<std::net::Ipv4Addr>() {
        Ok(_) => format!("the port is missing: write for example {text}:5004"),
        Err(_) if text.matches(':').count() > 1 => {
            "reservations support IPv4 addresses only: write for example 10.0.0.1:5004".to_owned()
        }
        Err(_) => "write an IPv4 address and a port, as in 10.0.0.1:5004".to_owned(),
    })
}

/// Parses a protocol: a name, or the number in the IP header.
fn protocol(text: &str) -> Result<u8, String> {
    const NAMES: [(&str, u8); 5] = [("udp", 17), ("tcp", 6), ("sctp", 132), ("dccp", 33), ("udplite", 136)];
    let named = NAMES.iter().find(|(name, _)| *name == text).map(|(_, number)| *number);
    named
        .or_else(|| text.parse().ok())
        .ok_or_else(|| "write udp, tcp, sctp, dccp, udplite, or a number from 0 to 255".to_owned())
}

/// Parses a MAC address.
fn link_address(text: &str) -> Result<[u8; 6], String> {
    let bytes: Option<Vec<u8>> =
        text.split(':').map(|part| (part.len() == 2).then(|| u8::from_str_radix(part, 16).ok())?).collect();
    let bytes = bytes.and_then(|bytes| bytes.try_into().ok());
    bytes.ok_or_else(|| "write a MAC address, as in 02:00:00:00:00:01".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invalid_arguments_are_refused_with_a_correction() {
        assert_eq!(endpoint("10.0.0.1").unwrap_err(), "the port is missing: write for example 10.0.0.1:5004");
        assert!(endpoint("[fe80::1]:53").unwrap_err().contains("IPv4 addresses only"));
        assert!(endpoint("host:53").unwrap_err().contains("as in 10.0.0.1:5004"));
        assert!(protocol("icmp").unwrap_err().contains("or a number"));
        assert_eq!((protocol("tcp"), protocol("47")), (Ok(6), Ok(47)));
        assert_eq!(link_address("02:00:00:00:00:0a"), Ok([2, 0, 0, 0, 0, 10]));
        assert!(
            ["2:0:0:0:0:a", "02:00:00:00:00", "02:00:00:00:00:0g"]
                .iter()
                .all(|text| link_address(text).is_err())
        );
        assert_eq!(when("+5min"), Ok(When::In(Span::s(300))));
        assert_eq!(when("@17"), Ok(When::At(17_000_000_000)));
        assert!(["5min", "@now", "tomorrow"].iter().all(|text| when(text).unwrap_err().contains("+5min")));
    }
}
