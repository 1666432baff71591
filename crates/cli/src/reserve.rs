//! `giveway reserve`: reserves a rate for a flow at the routers on its path, refreshes the reservation, and
//! ends it.
//!
//! The messages are those of the TRR paper (Chen and Chen, section 3.1), in the format of
//! [`giveway_reserve::message`]. A request without a start time starts in 1970, and a request without an end
//! never ends. So clocks need not agree.

use std::io::{self, Write};
use std::net::SocketAddrV4;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use giveway_control::reservations::address;
use giveway_live::clock::{monotonic_ns, wall_ns};
use giveway_live::privilege::{self, Role};
use giveway_live::station::{EVERYONE, Station};
use giveway_qdisc::hash::SipHasher;
use giveway_qdisc::{Rate, Span};
use giveway_reserve::{EtherTypes, Kind, Message, MessageError, Reason, Tuple};

use crate::error::CliError;
use crate::reservation_args::{ether_types, key};
use crate::{Outcome, show};

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
    via: String,
    /// Source of the flow: IPv4 address and port
    #[arg(long, value_name = "ADDR:PORT", value_parser = endpoint)]
    from: SocketAddrV4,
    /// Destination of the flow: IPv4 address and port
    #[arg(long, value_name = "ADDR:PORT", value_parser = endpoint)]
    to: SocketAddrV4,
    /// Protocol of the flow: udp, tcp, sctp, dccp, udplite, or a number from 0 to 255
    #[arg(long, value_name = "NAME", default_value = "udp", value_parser = protocol)]
    proto: u8,
    /// Rate to reserve, as in 2mbit
    #[arg(long, value_name = "RATE", required_unless_present = "end")]
    rate: Option<Rate>,
    /// Length of the reservation, as in 10min [default: until the program ends]
    #[arg(long = "for", value_name = "TIME")]
    span: Option<Span>,
    /// Start of the reservation: +5min for in five minutes, or @1790000000 for a Unix time [default: now]
    #[arg(long, value_name = "WHEN", value_parser = when)]
    start: Option<When>,
    /// File with the key of the routers (--reserve-key-file): 32 hexadecimal digits
    #[arg(long, value_name = "FILE")]
    key_file: Option<PathBuf>,
    /// EtherTypes of control frames, as at the routers (--reserve-types)
    #[arg(long, value_name = "TYPES", default_value = "0x88b5", value_parser = ether_types)]
    types: EtherTypes,
    /// MAC address of the router [default: broadcast]
    #[arg(long, value_name = "MAC", value_parser = link_address)]
    router: Option<[u8; 6]>,
    /// Interval of refreshes; at most a third of the lifetime at the routers (--reserve-lifetime)
    #[arg(long, value_name = "TIME", default_value = "10s")]
    repeat: Span,
    /// Time to wait for an answer before a retransmission
    #[arg(long, value_name = "TIME", default_value = "1s")]
    timeout: Span,
    /// Transmissions of an unanswered request
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=1000))]
    tries: u32,
    /// Exit after the answer, without refreshes; the reservation lasts for its lifetime at the routers
    #[arg(long, conflicts_with = "end")]
    once: bool,
    /// End a reservation of this machine
    #[arg(long, conflicts_with_all = ["span", "start", "rate"])]
    end: bool,
    /// Print only errors
    #[arg(long, short)]
    quiet: bool,
}

const EXAMPLES: &str = "\
Examples:
  sudo giveway reserve --via eth0 --from 10.0.0.1:5004 --to 10.0.1.7:6000 --rate 2mbit
  sudo giveway reserve --via eth0 --from 10.0.0.1:5004 --to 10.0.1.7:6000 --rate 2mbit --for 10min
  sudo giveway reserve --via eth0 --from 10.0.0.1:22 --to 10.0.1.7:50000 --proto tcp --rate 500kbit --once
  sudo giveway reserve --via eth0 --from 10.0.0.1:5004 --to 10.0.1.7:6000 --end
  openssl rand -hex 16 > key    # for `giveway live --reserve-key-file key` and `giveway reserve --key-file key`

Needs root or CAP_NET_RAW, and drops both once its socket is open.

Exit codes: 0 granted, and ended on time; 1 refused, lost later, or not answered; 2 it could not start.";

/// Start of a reservation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum When {
    /// After this time from now.
    In(Span),
    /// At this Unix time, in nanoseconds.
    At(u64),
}

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

fn endpoint(text: &str) -> Result<SocketAddrV4, String> {
    text.parse().map_err(|_| match text.parse::<std::net::Ipv4Addr>() {
        Ok(_) => format!("the port is missing: write for example {text}:5004"),
        Err(_) if text.matches(':').count() > 1 => {
            "reservations support IPv4 addresses only: write for example 10.0.0.1:5004".to_owned()
        }
        Err(_) => "write an IPv4 address and a port, as in 10.0.0.1:5004".to_owned(),
    })
}

fn protocol(text: &str) -> Result<u8, String> {
    const NAMES: [(&str, u8); 5] = [("udp", 17), ("tcp", 6), ("sctp", 132), ("dccp", 33), ("udplite", 136)];
    let named = NAMES.iter().find(|(name, _)| *name == text).map(|(_, number)| *number);
    named
        .or_else(|| text.parse().ok())
        .ok_or_else(|| "write udp, tcp, sctp, dccp, udplite, or a number from 0 to 255".to_owned())
}

fn link_address(text: &str) -> Result<[u8; 6], String> {
    let bytes: Option<Vec<u8>> =
        text.split(':').map(|part| (part.len() == 2).then(|| u8::from_str_radix(part, 16).ok())?).collect();
    let bytes = bytes.and_then(|bytes| bytes.try_into().ok());
    bytes.ok_or_else(|| "write a MAC address, as in 02:00:00:00:00:01".to_owned())
}

/// The client of one reservation.
struct Client<'a> {
    args: &'a Args,
    station: Station,
    key: Option<SipHasher>,
    start: Message,
    /// Number of the last message that was sent.
    number: u64,
    stop: Arc<AtomicBool>,
    /// True once a router with another version of the protocol was reported.
    version_reported: bool,
    /// Link addresses of the routers that have granted the reservation.
    granted: Vec<[u8; 6]>,
}

/// The answer of the routers.
enum Answer {
    Granted,
    Refused([u8; 6], Reason),
    Nothing,
}

/// Runs `giveway reserve`.
pub fn reserve(args: &Args, out: &mut dyn Write) -> Result<Outcome, CliError> {
    let key = args.key_file.as_deref().map(|file| key("--key-file", file)).transpose()?;
    for (name, span) in [("--repeat", args.repeat), ("--timeout", args.timeout)] {
        if span < Span::ms(10) {
            return Err(CliError::Usage(format!("{name}: {span} is too short: write at least 10ms")));
        }
    }
    let now = wall_ns();
    let ns = |span: Span| span.as_ps() / 1000;
    let (start, begins) = match args.start {
        None => (0, now),
        Some(When::In(span)) => (now + ns(span), now + ns(span)),
        Some(When::At(at)) => (at, at),
    };
    let finish = args.span.map_or(u64::MAX, |span| begins.saturating_add(ns(span)));
    if finish <= now {
        let message = "--start and --for: the reservation would be over already; Unix times are in seconds, see `date +%s`";
        return Err(CliError::Usage(message.to_owned()));
    }
    let station = Station::open(&args.via, &[args.types.start, args.types.end]).map_err(CliError::Via)?;
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM] {
        // Handlers run in the order of registration, so only the second signal ends the program at once.
        signal_hook::flag::register_conditional_shutdown(signal, 130, Arc::clone(&stop))?;
        signal_hook::flag::register(signal, Arc::clone(&stop))?;
    }
    if let Err(why) = privilege::settle(Role::Watch) {
        show::sentence(&format!("not all privileges could be dropped: {why}"));
    }
    let tuple = Tuple {
        from: args.from.ip().octets(),
        to: args.to.ip().octets(),
        from_port: args.from.port(),
        to_port: args.to.port(),
        protocol: args.proto,
    };
    let rate = args.rate.unwrap_or_default();
    let sender = station.address();
    let start = Message { kind: Kind::Start, tuple, rate, start, finish, sender, number: 0 };
    let mut client =
        Client { args, station, key, start, number: 0, stop, version_reported: false, granted: Vec::new() };
    let outcome = if args.end { client.end(out) } else { client.keep(out) };
    Ok(outcome?)
}

impl Client<'_> {
    /// Requests the reservation, and refreshes it until the program is stopped.
    fn keep(&mut self, out: &mut dyn Write) -> io::Result<Outcome> {
        match self.request(&self.start.to_owned(), self.args.tries, out)? {
            Answer::Granted => {}
            Answer::Refused(router, reason) => return self.refused(router, reason, out),
            Answer::Nothing if self.stopped() => return self.end(out),
            Answer::Nothing => return self.unanswered(),
        }
        if self.args.once {
            return Ok(Outcome::Done);
        }
        let mut unanswered = 0;
        // Routers farther away may answer any start since this one.
        let first = self.number;
        while !self.stopped() && wall_ns() < self.start.finish {
            // A router farther away may refuse in the meantime.
            let asked = Message { number: first, ..self.start };
            if let Answer::Refused(router, reason) = self.listen(&asked, self.args.repeat, false, out)?
                && reason != Reason::Replayed
            {
                return self.refused(router, reason, out);
            }
            if self.stopped() || wall_ns() >= self.start.finish {
                break;
            }
            match self.request(&self.start.to_owned(), 1, out)? {
                Answer::Granted => unanswered = 0,
                // The router may have restarted; the next start has a larger number.
                Answer::Nothing | Answer::Refused(_, Reason::Replayed) => unanswered += 1,
                Answer::Refused(router, reason) => return self.refused(router, reason, out),
            }
            if unanswered == self.args.tries {
                show::sentence(&format!(
                    "no answer to the last {unanswered} refreshes: the reservation may have expired; refreshes continue"
                ));
            }
        }
        if wall_ns() >= self.start.finish {
            // The reservation has expired. The end is for routers whose clocks are behind; no answer is
            // needed.
            self.send(&self.end_message())?;
            return Ok(Outcome::Done);
        }
        self.end(out)
    }

    /// Reports a refusal, and ends the reservation at routers that granted it.
    fn refused(&mut self, router: [u8; 6], reason: Reason, out: &mut dyn Write) -> io::Result<Outcome> {
        out.flush()?;
        let Message { tuple, rate, .. } = self.start;
        show::sentence(&format!("refused by {}: {tuple} at {rate}: {reason}", address(router)));
        self.granted.retain(|granted| *granted != router);
        if !self.granted.is_empty() {
            let end = self.end_message();
            self.send(&end)?;
        }
        Ok(Outcome::Failed)
    }

    fn unanswered(&self) -> io::Result<Outcome> {
        let key = match self.key {
            Some(_) => "with the same key",
            None => "without a key",
        };
        show::sentence(&format!(
            "no answer on {} after {} transmissions. Check that `giveway live --reserve` runs on the path to {}, with EtherTypes \
             {:#06x},{:#06x} (--reserve-types), {key}, and in the same version as this program",
            self.args.via, self.args.tries, self.args.to, self.args.types.start, self.args.types.end
        ));
        Ok(Outcome::Failed)
    }

    /// The message that ends the reservation.
    fn end_message(&self) -> Message {
        Message { kind: Kind::End, rate: Rate::default(), start: 0, finish: 0, ..self.start }
    }

    /// Ends the reservation.
    fn end(&mut self, out: &mut dyn Write) -> io::Result<Outcome> {
        // From now on, Ctrl-C interrupts the wait for the answer.
        self.stop.store(false, Ordering::Relaxed);
        let end = self.end_message();
        match self.request(&end, self.args.tries.min(3), out)? {
            Answer::Granted => Ok(Outcome::Done),
            // The reservation has probably expired, so there is nothing to end.
            Answer::Nothing if !self.args.end => Ok(Outcome::Done),
            Answer::Nothing => {
                show::sentence(&format!(
                    "no answer: no router on {} has a reservation for {}",
                    self.args.via, self.start.tuple
                ));
                Ok(Outcome::Failed)
            }
            Answer::Refused(router, reason) => {
                out.flush()?;
                show::sentence(&format!("{} refuses to end {}: {reason}", address(router), self.start.tuple));
                Ok(Outcome::Failed)
            }
        }
    }

    /// Sends a message until a router answers, at most `tries` times. Each transmission has a new number.
    fn request(&mut self, message: &Message, tries: u32, out: &mut dyn Write) -> io::Result<Answer> {
        let mut message = *message;
        let mut answer = Answer::Nothing;
        for number in 0..tries {
            self.send(&message)?;
            if number == 0 {
                // An answer to this transmission or to a later one counts.
                message.number = self.number;
            }
            answer = self.listen(&message, self.args.timeout, true, out)?;
            match answer {
                Answer::Nothing => {}
                // Messages of two programs on this machine were reordered, or the router has just started.
                Answer::Refused(_, Reason::Replayed) if number + 1 < tries => {
                    self.listen(&message, self.args.timeout / 10, false, out)?;
                }
                Answer::Granted | Answer::Refused(..) => return Ok(answer),
            }
            if self.stopped() {
                return Ok(answer);
            }
        }
        Ok(answer)
    }

    /// Sends a message with the next number: the time in nanoseconds, but larger than the previous number.
    fn send(&mut self, message: &Message) -> io::Result<()> {
        self.number = wall_ns().max(self.number + 1);
        let message = Message { number: self.number, ..*message };
        let types = self.args.types;
        let kind = if message.kind == Kind::End { types.end } else { types.start };
        let to = self.args.router.unwrap_or(EVERYONE);
        let body = message.encode(self.key.as_ref());
        if let Err(error) = self.station.send(to, kind, &body) {
            show::sentence(&format!("{}: {error}", self.args.via));
        }
        Ok(())
    }

    /// Receives answers to a message for this time, or until the first grant if `first` is true.
    fn listen(
        &mut self,
        asked: &Message,
        span: Span,
        first: bool,
        out: &mut dyn Write,
    ) -> io::Result<Answer> {
        let end =
            (monotonic_ns() + span.as_ps() / 1000).min(match self.start.finish.checked_sub(wall_ns()) {
                Some(left) => monotonic_ns().saturating_add(left),
                None => u64::MAX,
            });
        while !self.stopped() {
            let Some(left) = end.checked_sub(monotonic_ns()).filter(|left| *left > 0) else { break };
            let left = Duration::from_nanos(left.max(1_000_000)).min(Duration::from_millis(50));
            let Some(received) = self.station.receive(left)? else { continue };
            let answer = match Message::decode(&received.body, self.key.as_ref()) {
                Ok(answer) => answer,
                Err(MessageError::Version(version)) => {
                    self.other_version(received.from, version);
                    continue;
                }
                Err(_) => continue,
            };
            // An answer repeats its request: this message, or a retransmission of it.
            let own = (asked.number..=self.number).contains(&answer.number);
            if !own || (Message { kind: asked.kind, number: asked.number, ..answer }) != *asked {
                continue;
            }
            match answer.kind {
                Kind::Refused(reason) => return Ok(Answer::Refused(received.from, reason)),
                Kind::Granted => {
                    self.granted_by(received.from, asked.kind == Kind::End, out)?;
                    if first {
                        return Ok(Answer::Granted);
                    }
                }
                Kind::Start | Kind::End => {}
            }
        }
        Ok(Answer::Nothing)
    }

    /// Reports a router with another version of the protocol, once.
    fn other_version(&mut self, router: [u8; 6], version: u8) {
        if !std::mem::replace(&mut self.version_reported, true) {
            show::sentence(&format!(
                "{} sends control frames of version {version}, and this program those of version {}: use the same version of \
                 Giveway on both sides",
                address(router),
                giveway_reserve::message::VERSION
            ));
        }
    }

    /// Records a grant or an end, and prints it once for each router.
    fn granted_by(&mut self, router: [u8; 6], ended: bool, out: &mut dyn Write) -> io::Result<()> {
        let Message { tuple, rate, .. } = self.start;
        if ended {
            self.granted.retain(|granted| *granted != router);
        } else if self.granted.contains(&router) {
            return Ok(());
        } else {
            self.granted.push(router);
        }
        if !self.args.quiet {
            match ended {
                true => writeln!(out, "ended by {}: {tuple}", address(router))?,
                false => writeln!(out, "granted by {}: {tuple} at {rate}{}", address(router), self.period())?,
            }
            out.flush()?;
        }
        Ok(())
    }

    /// Describes the start and the end of the reservation.
    fn period(&self) -> String {
        let Message { start, finish, .. } = self.start;
        let now = wall_ns();
        let seconds = |ns: u64| format!("{} s", ns.div_ceil(1_000_000_000));
        let from = match start.checked_sub(now) {
            Some(ahead) => format!(", in {}", seconds(ahead)),
            None => String::new(),
        };
        match (finish, self.args.once) {
            (u64::MAX, true) => format!("{from}, until it expires"),
            (u64::MAX, false) => format!("{from}, until Ctrl-C"),
            (finish, _) => format!("{from}, for {}", seconds(finish - start.max(now))),
        }
    }

    fn stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }
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
