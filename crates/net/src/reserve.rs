//! `giveway live reserve`: reserves a rate for a flow at the routers on its path, refreshes the
//! reservation, and ends it.
//!
//! The messages follow the TRR paper (Chen and Chen, section 3.1), in the format of
//! [`giveway_reserve::message`]. A request without a start time starts in 1970, and a request without an end
//! never ends. So clocks need not agree.

mod client;
mod error;

use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use giveway_live::clock::wall_ns;
use giveway_live::privilege::{self, Role};
use giveway_live::station::Station;
use giveway_program::commands::reserve::{Args, When};
use giveway_program::show;
use giveway_qdisc::Span;
use giveway_reserve::{Kind, Message, Tuple};
use giveway_text::chain;
use signal_hook::consts::{SIGINT, SIGTERM};

use crate::error::NetError;
use crate::key::key;
use crate::outcome::Outcome;

use client::Client;
pub use error::ReserveError;

/// Runs `giveway live reserve`.
pub fn reserve(args: &Args, out: &mut dyn Write) -> Result<Outcome, NetError> {
    let key = args.key_file.as_deref().map(|file| key("--key-file", file)).transpose()?;
    for (name, span) in [("--repeat", args.repeat), ("--timeout", args.timeout)] {
        if span < Span::ms(10) {
            return Err(NetError::Usage(format!("{name}: {span} is too short: write at least 10ms")));
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
        let message = "--start and --for: the reservation would end in the past; Unix times are in seconds, as `date +%s` prints them";
        return Err(NetError::Usage(message.to_owned()));
    }
    let station = Station::open(&args.via, &[args.types.start, args.types.end]).map_err(NetError::Via)?;
    let stop = Arc::new(AtomicBool::new(false));
    for (number, signal) in [(SIGINT, "SIGINT"), (SIGTERM, "SIGTERM")] {
        // Handlers run in the order of registration, so only the second signal ends the program at once.
        signal_hook::flag::register_conditional_shutdown(number, 130, Arc::clone(&stop))
            .and_then(|_| signal_hook::flag::register(number, Arc::clone(&stop)))
            .map_err(|source| ReserveError::Signals { signal, source })?;
    }
    if let Err(error) = privilege::settle(Role::Watch) {
        show::message(&format!("not all privileges could be dropped: {}", chain(&error)));
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
    let mut client = Client::new(args, station, key, start, stop);
    if args.end { client.end(out) } else { client.keep(out) }
}
