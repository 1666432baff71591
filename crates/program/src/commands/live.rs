//! The flags of `giveway live`.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{ArgAction, value_parser};
use giveway_qdisc::{Bytes, Span};
use giveway_wire::fragment;

use super::reserving;
use crate::headings::HARNESS;

/// Headings of groups of flags in `--help`.
const EMULATION: &str = "Link emulation";
const FRAGMENTATION: &str = "Fragmentation";
const OBSERVATION: &str = "Observation";
const SYSTEM: &str = "System";

/// Bridges two interfaces, with a shaper and a discipline in each direction.
///
/// The bridge is transparent: frames that enter at --in leave at --out, and the reverse, unchanged except for
/// ECN marks. Each direction has its own rate and discipline. Ctrl-C or SIGTERM sends the backlog and exits;
/// SIGHUP reads --settings again.
///
/// Needs root, or four capabilities, which an error names if they are missing. Once its sockets are open, the
/// program drops all privileges and becomes another user. After an internal failure it forwards frames
/// without shaper and discipline.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES, args_override_self = true)]
pub struct Args {
    /// Interface on one side, as in `ip link`; tun:NAME creates a TUN interface with this name
    #[arg(long = "in", value_name = "IF", required_unless_present = "wan")]
    pub inside: Option<String>,
    /// Interface on the other side
    #[arg(long = "out", value_name = "IF", required_unless_present = "wan")]
    pub outside: Option<String>,
    /// The one interface of a router with the slow link, in place of --in and --out: --in is then the
    /// router's own network stack, so --rate is the upload and --rate-reverse the download. Needs Linux 6.6
    #[arg(long, value_name = "IF", conflicts_with_all = ["inside", "outside"])]
    pub wan: Option<String>,
    /// Rate from --in to --out, as in 20mbit or "20 Mbit/s"; a table in braces if it varies, as in a
    /// scenario: '{ trace = "x.mahi" }' [default: unlimited]
    #[arg(long, value_name = "RATE")]
    pub rate: Option<String>,
    /// Rate from --out to --in [default: unlimited]
    #[arg(long, alias = "rate-back", value_name = "RATE")]
    pub rate_reverse: Option<String>,
    /// Discipline from --in to --out, as in "fq_codel limit 1000p"; `giveway list` shows all. The prefix
    /// bpf:, as in "bpf:efd limit 300p", runs it in the kernel; `giveway kernel list` shows these [default:
    /// fq_codel]
    #[arg(long, value_name = "SPEC")]
    pub qdisc: Option<String>,
    /// Discipline from --out to --in [default: same as --qdisc]
    #[arg(long, alias = "qdisc-back", value_name = "SPEC")]
    pub qdisc_reverse: Option<String>,
    /// Propagation delay from --in to --out, as in 20ms, after the last bit of a frame; a table if it varies,
    /// as in '{ steps = [["0s", "20ms"], ["15s", "60ms"]] }' [default: 0s]
    #[arg(long, help_heading = EMULATION, value_name = "TIME")]
    pub delay: Option<String>,
    /// Propagation delay from --out to --in [default: 0s]
    #[arg(long, help_heading = EMULATION, alias = "delay-back", value_name = "TIME")]
    pub delay_reverse: Option<String>,
    /// Largest additional delay from --in to --out, uniformly distributed; frames are not reordered [default:
    /// 0s]
    #[arg(long, help_heading = EMULATION, value_name = "TIME")]
    pub jitter: Option<String>,
    /// Largest additional delay from --out to --in [default: 0s]
    #[arg(long, help_heading = EMULATION, alias = "jitter-back", value_name = "TIME")]
    pub jitter_reverse: Option<String>,
    /// Probability that a frame from --in to --out is lost after the link, as in 0.1%, or a model, as in
    /// '{ model = "gemodel", p = "1%", r = "20%" }' [default: 0%]
    #[arg(long, help_heading = EMULATION, value_name = "SHARE")]
    pub loss: Option<String>,
    /// Probability that a frame from --out to --in is lost after the link [default: 0%]
    #[arg(long, help_heading = EMULATION, alias = "loss-back", value_name = "SHARE")]
    pub loss_reverse: Option<String>,
    /// Frames from --in to --out that are late, so that as many others as the distance overtake each of them:
    /// '{ percent = "1%", distance = 3 }' [default: none]
    #[arg(long, help_heading = EMULATION, value_name = "TABLE")]
    pub reorder: Option<String>,
    /// Frames from --out to --in that are late [default: none]
    #[arg(long, help_heading = EMULATION, value_name = "TABLE")]
    pub reorder_reverse: Option<String>,
    /// Probability that a frame from --in to --out arrives twice [default: 0%]
    #[arg(long, help_heading = EMULATION, value_name = "SHARE")]
    pub duplicate: Option<String>,
    /// Probability that a frame from --out to --in arrives twice [default: 0%]
    #[arg(long, help_heading = EMULATION, value_name = "SHARE")]
    pub duplicate_reverse: Option<String>,
    /// Probability that a frame from --in to --out is damaged, and discarded at the end of the link [default:
    /// 0%]
    #[arg(long, help_heading = EMULATION, value_name = "SHARE")]
    pub corrupt: Option<String>,
    /// Probability that a frame from --out to --in is damaged [default: 0%]
    #[arg(long, help_heading = EMULATION, value_name = "SHARE")]
    pub corrupt_reverse: Option<String>,
    /// Frames from --in to --out overtake each other by their jitter, or when the delay falls [default: no]
    #[arg(long, help_heading = EMULATION, num_args = 0..=1, default_missing_value = "yes", require_equals = true, value_name = "YES/NO")]
    pub unordered: Option<String>,
    /// Frames from --out to --in overtake each other by their jitter, or when the delay falls [default: no]
    #[arg(long, help_heading = EMULATION, num_args = 0..=1, default_missing_value = "yes", require_equals = true, value_name = "YES/NO")]
    pub unordered_reverse: Option<String>,
    /// Fragment size from --in to --out, without the Ethernet header: 68 to 9000 bytes. Another `giveway
    /// live` with --reassemble must be connected to --out. The TRR paper uses 500 and 800 [default: none]
    #[arg(long, help_heading = FRAGMENTATION, value_name = "BYTES")]
    pub fragment: Option<String>,
    /// Fragment size from --out to --in. A `giveway live` with --reassemble-reverse must be connected to --in
    /// [default: none]
    #[arg(long, help_heading = FRAGMENTATION, alias = "fragment-back", value_name = "BYTES")]
    pub fragment_reverse: Option<String>,
    /// Reassemble the fragments of another `giveway live` that enter at --in [default: no]
    #[arg(long, help_heading = FRAGMENTATION, num_args = 0..=1, default_missing_value = "yes", require_equals = true, value_name = "YES/NO")]
    pub reassemble: Option<String>,
    /// Reassemble fragments that enter at --out [default: no]
    #[arg(long, help_heading = FRAGMENTATION, alias = "reassemble-back", num_args = 0..=1, default_missing_value = "yes", require_equals = true, value_name = "YES/NO")]
    pub reassemble_reverse: Option<String>,
    /// TOML file with any of these flags, as in in = "eth0", rate = "20mbit", fix-offloads = true. Flags of
    /// the command line take precedence. SIGHUP reads rates, disciplines, link emulation and fragmentation
    /// again
    #[arg(long, value_name = "FILE")]
    pub settings: Option<PathBuf>,
    /// Bytes on the link for each frame in addition to its IP packet (tc's overhead); an Ethernet header has
    /// 14
    #[arg(long, value_name = "BYTES", default_value_t = 14, value_parser = value_parser!(u32).range(0..=1024))]
    pub overhead: u32,
    /// Minimum packet size (tc's mpu): a shorter packet takes this many bytes on the link
    #[arg(long, value_name = "BYTES", default_value_t = 0, value_parser = value_parser!(u32).range(0..=1600))]
    pub mpu: u32,
    /// EtherType of fragments, the same at both ends
    #[arg(long, help_heading = FRAGMENTATION, value_name = "TYPE", default_value = "0x88b6", value_parser = fragment_type)]
    pub fragment_type: u16,
    /// Receive ring size, in frames
    #[arg(long, help_heading = SYSTEM, value_name = "FRAMES", default_value_t = 4096, value_parser = value_parser!(u32).range(64..=262_144))]
    pub ring: u32,
    /// Folder with compiled objects for bpf: disciplines, as `giveway kernel build` writes them
    /// (giveway_efd.o) [default: compile them]
    #[arg(long, help_heading = SYSTEM, value_name = "DIR")]
    pub objects: Option<PathBuf>,
    /// Random seed of loss, jitter, flow hash keys and disciplines
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
    /// Turn off offloads that merge packets (TSO, GSO, GRO, LRO) on both interfaces. They are turned on again
    /// when the program ends, even if it is killed
    #[arg(long, help_heading = SYSTEM)]
    pub fix_offloads: bool,
    /// User to become once all sockets are open, by name or number [default: the user who called sudo, or
    /// nobody]
    #[arg(long, help_heading = SYSTEM, value_name = "USER")]
    pub user: Option<String>,
    /// Run without real-time priority; other programs may then delay frames
    #[arg(long, help_heading = SYSTEM)]
    pub no_realtime: bool,
    /// Exit after this time, as in 10min [default: run until a signal]
    #[arg(long, value_name = "TIME")]
    pub duration: Option<Span>,
    /// Listen on this Unix socket for `giveway live control`
    #[arg(long, value_name = "SOCKET")]
    pub control: Option<PathBuf>,
    /// Return once frames pass and the control socket is open, and leave the bridge running
    #[arg(long, help_heading = SYSTEM)]
    pub background: bool,
    /// Take the interfaces over from the running `giveway live` with this control socket, which forwards
    /// until this one does: for another version, or for other flags. No frame is sent twice, and none is lost
    /// unless one of both is stopped or killed meanwhile
    #[arg(long, value_name = "SOCKET")]
    pub take_over: Option<PathBuf>,
    /// Record the tables of a simulation, one folder for each direction: DIR/forward (--in to --out) and
    /// DIR/reverse
    #[arg(long, help_heading = OBSERVATION, value_name = "DIR")]
    pub record: Option<PathBuf>,
    /// Interval at which --record writes
    #[arg(long, help_heading = OBSERVATION, value_name = "TIME", default_value = "10s", value_parser = record_every, requires = "record")]
    pub record_every: Span,
    /// Show backlog, sojourn times, drops, marks, the largest flows and the link utilisation on the terminal,
    /// updated twice a second
    #[arg(long, help_heading = OBSERVATION)]
    pub tui: bool,
    /// Serve OpenMetrics over HTTP at this address, as in 127.0.0.1:9100, for Prometheus and similar programs
    #[arg(long, help_heading = OBSERVATION, value_name = "ADDR:PORT")]
    pub metrics: Option<SocketAddr>,
    /// Write sent and dropped frames to a pcapng file. A dropped frame carries a comment with the reason
    #[arg(long, help_heading = OBSERVATION, value_name = "FILE")]
    pub pcap: Option<PathBuf>,
    /// Largest size of the file of --pcap
    #[arg(long, help_heading = OBSERVATION, value_name = "SIZE", default_value = "100mb")]
    pub pcap_limit: Bytes,
    /// Bytes of each frame in the file of --pcap; 0 for all
    #[arg(long, help_heading = OBSERVATION, value_name = "BYTES", default_value_t = 128, value_parser = value_parser!(u32).range(0..=65_535))]
    pub pcap_snap: u32,
    /// Write every operation of the disciplines to this file, for `giveway replay-check`
    #[arg(long, help_heading = OBSERVATION, value_name = "FILE")]
    pub trace: Option<PathBuf>,
    /// Start the measurement interval at SIGUSR1; the time before is warm-up
    #[arg(long, help_heading = HARNESS, hide = true, requires = "record")]
    pub record_later: bool,
    /// Largest length of a packet that counts as small in the tables of --record
    #[arg(long, help_heading = OBSERVATION, value_name = "BYTES", default_value_t = 256, value_parser = value_parser!(u32).range(1..=65_535))]
    pub small_packet: u32,
    /// Start rates and delays that vary at this time of the monotonic clock, in nanoseconds
    #[arg(long, help_heading = HARNESS, hide = true, value_name = "NS")]
    pub starts_at: Option<u64>,
    /// Build disciplines for the mean rate over this time
    #[arg(long, help_heading = HARNESS, hide = true, value_name = "TIME")]
    pub mean_over: Option<Span>,
    /// Write a line to this file (or named pipe) once frames pass
    #[arg(long, help_heading = HARNESS, hide = true, value_name = "FILE")]
    pub ready: Option<PathBuf>,
    /// Replace the files of --pcap and --trace, whatever they contain
    #[arg(long)]
    pub force: bool,
    /// Print the final statistics as one JSON object
    #[arg(long)]
    pub json: bool,
    /// Print only errors
    #[arg(long, short, action = ArgAction::SetTrue)]
    pub quiet: bool,
    /// The flags of reservations
    #[command(flatten)]
    pub reserving: reserving::Reserving,
}

const EXAMPLES: &str = "\
Examples:
  sudo giveway live --in eth0 --out eth1 --rate 20mbit
  sudo giveway live --wan eth1 --rate 18mbit --rate-reverse 90mbit --fix-offloads
  sudo giveway live --in eth0 --out eth1 --rate 2mbit --qdisc \"efd limit 300p\" --rate-reverse 16mbit
  sudo giveway live --in eth0 --out eth1 --rate 10mbit --delay 20ms --loss 0.1% --jitter 2ms
  sudo giveway live --in eth0 --out eth1 --rate '{ steps = [[\"0s\", \"50mbit\"], [\"10s\", \"1mbit\"]] }'
  sudo giveway live --in eth0 --out eth1 --rate 1mbit --fragment 500 --reassemble-reverse
  sudo giveway live --in eth0 --out eth1 --rate 20mbit --qdisc \"bpf:efd limit 300p\"
  sudo giveway live --settings /etc/giveway/home.toml
  sudo giveway live --settings /etc/giveway/home.toml --take-over /run/giveway.sock --background
  sudo giveway live --in tun:gw0 --out tun:gw1 --rate 5mbit --control /run/giveway.sock
  sudo giveway live control /run/giveway.sock set rate 8mbit
  sudo giveway live --in eth0 --out eth1 --rate 10mbit --qdisc trr_sound --reserve    # see giveway live reserve --help

Exit codes: 0 success, 1 a direction failed (and forwarded plainly) or an interface was removed, 2 it could not start.";

fn record_every(text: &str) -> Result<Span, String> {
    let span: Span = text.parse().map_err(|error: giveway_qdisc::units::UnitError| error.to_string())?;
    if span < Span::s(1) {
        Err("write at least 1s, since all tables are written each time".to_owned())
    } else {
        Ok(span)
    }
}

/// Parses the EtherType of fragments, as in 0x88b6.
fn fragment_type(text: &str) -> Result<u16, String> {
    let digits = text.strip_prefix("0x").unwrap_or(text);
    let number = u16::from_str_radix(digits, 16);
    let number = number.map_err(|_| {
        format!("\"{text}\" is not an EtherType: write four hexadecimal digits, as in 0x88b6")
    })?;
    fragment::ether_type(number).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ether_types_of_fragments_are_parsed() {
        assert_eq!(fragment_type("0x88B5").unwrap(), 0x88b5);
        assert!(fragment_type("0x0800").unwrap_err().contains("IPv4"));
        assert!(fragment_type("ether").unwrap_err().contains("as in 0x88b6"));
    }
}
