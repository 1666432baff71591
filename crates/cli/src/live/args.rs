//! The flags of `giveway live`.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{ArgAction, value_parser};
use giveway_control::config::{NAMES, fragment_type};
use giveway_control::settings::Setting;
use giveway_qdisc::{Bytes, Span};

use super::reserving;

/// Forwards real frames between two interfaces, with a discipline and a shaper in each direction.
///
/// A transparent bridge: frames that come in at --in leave at --out, and the reverse, unchanged except for ECN
/// marks. Each direction has its own rate and discipline. Machines on both sides notice only the queue.
///
/// It needs root, or four capabilities, which it names when they are missing. Once its sockets are open it
/// drops all of them and becomes another user. After an internal failure it forwards frames plainly. Ctrl-C or
/// SIGTERM sends the backlog and exits; SIGHUP reads --settings again.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// The interface on one side, as in `ip link`; tun:NAME makes a TUN interface of that name
    #[arg(long = "in", value_name = "IF")]
    pub(super) inside: String,
    /// The interface on the other side
    #[arg(long = "out", value_name = "IF")]
    pub(super) outside: String,
    /// The rate from --in to --out, as in 20mbit or "20 Mbit/s"; or unlimited [default: unlimited]
    #[arg(long, value_name = "RATE")]
    pub(super) rate: Option<String>,
    /// The rate from --out to --in [default: unlimited]
    #[arg(long, alias = "rate-back", value_name = "RATE")]
    pub(super) rate_reverse: Option<String>,
    /// The discipline from --in to --out, as in "fq_codel limit 1000p"; see `giveway list` [default:
    /// fq_codel]. With bpf:, as in "bpf:efd limit 300p", it stands in the kernel; see `giveway kernel list`
    #[arg(long, value_name = "SPEC")]
    pub(super) qdisc: Option<String>,
    /// The discipline from --out to --in [default: that of --qdisc]
    #[arg(long, alias = "qdisc-back", value_name = "SPEC")]
    pub(super) qdisc_reverse: Option<String>,
    /// Delay behind the link, as in 20ms, counted from the last bit of a frame
    #[arg(long, value_name = "TIME")]
    pub(super) delay: Option<String>,
    /// Delay of the other direction [default: none]
    #[arg(long, alias = "delay-back", value_name = "TIME")]
    pub(super) delay_reverse: Option<String>,
    /// Largest additional delay, uniformly distributed; frames do not overtake each other
    #[arg(long, value_name = "TIME")]
    pub(super) jitter: Option<String>,
    /// Jitter of the other direction
    #[arg(long, alias = "jitter-back", value_name = "TIME")]
    pub(super) jitter_reverse: Option<String>,
    /// Probability that a frame is lost behind the link, as in 0.1%
    #[arg(long, value_name = "SHARE")]
    pub(super) loss: Option<String>,
    /// Loss of the other direction
    #[arg(long, alias = "loss-back", value_name = "SHARE")]
    pub(super) loss_reverse: Option<String>,
    /// Cut IP frames from --in to --out into fragments of this size behind the Ethernet header, 68 to 9000
    /// bytes, or none; the TRR paper uses 500 and 800. Another giveway with --reassemble must be connected
    /// to --out
    #[arg(long, value_name = "BYTES")]
    pub(super) fragment: Option<String>,
    /// Fragment size of the other direction; a giveway with --reassemble-reverse must be connected to --in
    #[arg(long, alias = "fragment-back", value_name = "BYTES")]
    pub(super) fragment_reverse: Option<String>,
    /// Join fragments of another giveway that come in at --in
    #[arg(long, num_args = 0..=1, default_missing_value = "yes", require_equals = true, value_name = "YES/NO")]
    pub(super) reassemble: Option<String>,
    /// Join fragments that come in at --out
    #[arg(long, alias = "reassemble-back", num_args = 0..=1, default_missing_value = "yes", require_equals = true, value_name = "YES/NO")]
    pub(super) reassemble_reverse: Option<String>,
    /// Read any of the above from a TOML file (rate = "20mbit", qdisc-reverse = "fifo"); flags win. SIGHUP reads
    /// it again
    #[arg(long, value_name = "FILE")]
    pub(super) settings: Option<PathBuf>,
    /// Bytes charged for each frame in addition to the bytes behind its link header (tc's overhead): 14 for
    /// an Ethernet header
    #[arg(long, value_name = "BYTES", default_value_t = 14, value_parser = value_parser!(u32).range(0..=1024))]
    pub(super) overhead: u32,
    /// Minimum packet size: a shorter packet takes this many bytes on the link (tc's mpu)
    #[arg(long, value_name = "BYTES", default_value_t = 0, value_parser = value_parser!(u32).range(0..=1600))]
    pub(super) mpu: u32,
    /// EtherType of fragments; it must be the same at both ends
    #[arg(long, value_name = "TYPE", default_value = "0x88b6", value_parser = fragment_type)]
    pub(super) fragment_type: u16,
    /// Receive ring size, in frames
    #[arg(long, value_name = "FRAMES", default_value_t = 4096, value_parser = value_parser!(u32).range(64..=262_144))]
    pub(super) ring: u32,
    /// Folder with compiled objects for bpf: disciplines, as `giveway kernel build` writes them (giveway_efd.o);
    /// without it they are compiled
    #[arg(long, value_name = "DIR")]
    pub(super) objects: Option<PathBuf>,
    /// Random seed for loss, jitter, flow hash keys and disciplines
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(super) seed: u64,
    /// Turn off offloads that put several packets into one (TSO, GSO, GRO, LRO in all their kinds), on both
    /// interfaces. They are turned on again when the program ends, even if it is killed
    #[arg(long)]
    pub(super) fix_offloads: bool,
    /// The user to become once everything is open, by name or number [default: who called sudo, or else
    /// nobody]
    #[arg(long, value_name = "USER")]
    pub(super) user: Option<String>,
    /// Use ordinary scheduling; other programs may then delay frames
    #[arg(long)]
    pub(super) no_realtime: bool,
    /// Exit after this time
    #[arg(long, value_name = "TIME")]
    pub(super) duration: Option<Span>,
    /// Listen on this socket for `giveway control`
    #[arg(long, value_name = "SOCKET")]
    pub(super) control: Option<PathBuf>,
    /// Record the tables that a simulation records, each direction in a folder of its own: DIR/forward and
    /// DIR/reverse
    #[arg(long, value_name = "DIR")]
    pub(super) record: Option<PathBuf>,
    /// Interval at which --record writes
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = record_every, requires = "record")]
    pub(super) record_every: Span,
    /// Show queues, sojourn times, drops and marks, the largest flows and the link utilisation on the
    /// terminal, updated twice a second
    #[arg(long)]
    pub(super) tui: bool,
    /// Serve OpenMetrics over HTTP at this address, for Prometheus and similar, as in 127.0.0.1:9100
    #[arg(long, value_name = "ADDR:PORT")]
    pub(super) metrics: Option<SocketAddr>,
    /// Write sent and dropped frames to a pcapng file; a dropped frame has a comment with the reason
    #[arg(long, value_name = "FILE")]
    pub(super) pcap: Option<PathBuf>,
    /// Largest size of the capture
    #[arg(long, value_name = "SIZE", default_value = "100mb")]
    pub(super) pcap_limit: Bytes,
    /// Bytes kept of each frame; 0 for all
    #[arg(long, value_name = "BYTES", default_value_t = 128, value_parser = value_parser!(u32).range(0..=65_535))]
    pub(super) pcap_snap: u32,
    /// Write every operation of the disciplines to this file, for `giveway replay-check`
    #[arg(long, value_name = "FILE")]
    pub(super) trace: Option<PathBuf>,
    /// Start the measurement interval at SIGUSR1; the time before is warm-up
    #[arg(long, requires = "record")]
    pub(super) record_later: bool,
    /// Packets up to this length count as small in the tables of --record
    #[arg(long, value_name = "BYTES", default_value_t = 256, value_parser = value_parser!(u32).range(1..=65_535))]
    pub(super) small_packet: u32,
    /// Write a line to this file (or named pipe) once frames pass
    #[arg(long, value_name = "FILE")]
    pub(super) ready: Option<PathBuf>,
    /// Overwrite the files of --pcap, --trace and --ready, whatever they contain
    #[arg(long)]
    pub(super) force: bool,
    /// Print one JSON object at the end instead of a table
    #[arg(long)]
    pub(super) json: bool,
    /// Print only errors
    #[arg(long, short, action = ArgAction::SetTrue)]
    pub(super) quiet: bool,
    #[command(flatten)]
    pub(super) reserving: reserving::Reserving,
}

const EXAMPLES: &str = "\
Examples:
  sudo giveway live --in eth0 --out eth1 --rate 20mbit
  sudo giveway live --in eth0 --out eth1 --rate 2mbit --qdisc \"efd limit 300p\" --rate-reverse 16mbit
  sudo giveway live --in eth0 --out eth1 --rate 10mbit --delay 20ms --loss 0.1% --jitter 2ms
  sudo giveway live --in eth0 --out eth1 --rate 1mbit --fragment 500 --reassemble-reverse
  sudo giveway live --in eth0 --out eth1 --rate 20mbit --qdisc \"bpf:efd limit 300p\"
  sudo giveway live --in tun:gw0 --out tun:gw1 --rate 5mbit --control /run/giveway.sock
  sudo giveway control /run/giveway.sock set rate 8mbit
  sudo giveway live --in eth0 --out eth1 --rate 10mbit --qdisc trr_sound --reserve    # see giveway reserve --help

Exit codes: 0 success, 1 a direction failed (and forwarded plainly) or an interface was removed, 2 it could not start.";

fn record_every(text: &str) -> Result<Span, String> {
    let span: Span = text.parse().map_err(|error: giveway_qdisc::units::UnitError| error.to_string())?;
    if span < Span::s(1) {
        Err("write at least 1s: each time all tables are written again".to_owned())
    } else {
        Ok(span)
    }
}

impl Args {
    /// The settings that were given as flags, by name.
    pub fn settings(&self) -> Vec<Setting> {
        let values = [
            &self.rate,
            &self.rate_reverse,
            &self.qdisc,
            &self.qdisc_reverse,
            &self.delay,
            &self.delay_reverse,
            &self.jitter,
            &self.jitter_reverse,
            &self.loss,
            &self.loss_reverse,
            &self.fragment,
            &self.fragment_reverse,
            &self.reassemble,
            &self.reassemble_reverse,
        ];
        let given =
            NAMES.iter().zip(values).filter_map(|(name, value)| Some(((*name).to_owned(), value.clone()?)));
        given.collect()
    }
}
