//! Monitors and changes a bridge in this process.

use std::fmt::Write as _;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard};

use giveway_live::fragments::Fragments;
use giveway_live::reservations::{LinkReservations, ReservationClient};
use giveway_live::{Command, Handle, Status};
use giveway_qdisc::{Span, Streams};
use giveway_replay::Tracer;
use giveway_watch::Snapshot;
use giveway_wire::fragment::Size;
use serde_json::{Value, json};

use crate::building::builder;
use crate::config::{BridgeConfig, Direction, LinkLimits, UNLIMITED, rate};
use crate::protocol::ControlApi;
use crate::reservations;
use crate::snapshots::snapshots;

impl ControlApi for Controller {
    fn show(&self) -> Result<String, String> {
        Ok(self.json(&self.statuses()).to_string())
    }

    fn reservations(&self) -> Result<String, String> {
        let list = self.list().map(|list| list.to_string());
        list.ok_or_else(|| "this bridge keeps no reservations: start it with --reserve".to_owned())
    }

    fn set(&self, name: &str, value: &str) -> Result<String, String> {
        self.change(|old| {
            let mut new = old.clone();
            new.set(name, value)?;
            Ok(new)
        })
    }

    fn stop(&self) {
        self.stopped.store(true, Ordering::Relaxed);
    }

    fn snapshots(&self) -> Vec<Snapshot> {
        snapshots(self)
    }
}

/// Monitors and changes both directions of a bridge.
pub struct Controller {
    handles: Vec<Handle>,
    /// Incoming and outgoing interface of each direction.
    names: [(String, String); 2],
    config: Mutex<BridgeConfig>,
    limits: LinkLimits,
    streams: Streams,
    tracer: Option<Tracer>,
    /// Client of the reservation service, if there is one.
    reservation_client: Option<ReservationClient>,
    stopped: AtomicBool,
    /// Complaints that were reported already, for each direction.
    complained: Mutex<[[bool; 3]; 2]>,
}

impl Controller {
    /// Creates the controller of a bridge that was started with `config`.
    pub fn new(
        handles: Vec<Handle>,
        names: [(String, String); 2],
        config: BridgeConfig,
        limits: LinkLimits,
        streams: Streams,
        tracer: Option<Tracer>,
        reservation_client: Option<ReservationClient>,
    ) -> Controller {
        Controller {
            handles,
            names,
            config: Mutex::new(config),
            limits,
            streams,
            tracer,
            reservation_client,
            stopped: AtomicBool::new(false),
            complained: Mutex::default(),
        }
    }

    /// The current configuration.
    pub fn config(&self) -> MutexGuard<'_, BridgeConfig> {
        self.config.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// Incoming and outgoing interface of each direction.
    pub fn names(&self) -> &[(String, String); 2] {
        &self.names
    }

    /// The latest snapshots, forward first.
    pub fn statuses(&self) -> Vec<Status> {
        self.handles.iter().map(Handle::status).collect()
    }

    /// The reservations of each direction that keeps them.
    pub fn kept(&self) -> [Option<LinkReservations>; 2] {
        self.reservation_client.as_ref().map(ReservationClient::status).unwrap_or_default()
    }

    /// All reservations, as JSON; `None` if the bridge keeps none.
    pub fn list(&self) -> Option<Value> {
        self.reservation_client.as_ref()?;
        let kept = Direction::ALL.iter().zip(self.kept());
        let all = kept.flat_map(|(direction, link)| {
            let list = link.map(|link| link.list).unwrap_or_default();
            list.into_iter().map(|each| reservations::listed(direction.name(), &each))
        });
        Some(all.collect())
    }

    /// True once a client has requested a stop.
    pub fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::Relaxed)
    }

    /// Applies the settings that differ, and returns a message with them.
    ///
    /// # Errors
    /// A message with the setting that the interfaces do not support. Nothing is changed then.
    pub fn become_as(&self, new: BridgeConfig) -> Result<String, String> {
        self.change(|_| Ok(new))
    }

    /// The lock is held from the old configuration to the new one, so that concurrent changes are not lost.
    fn change(
        &self,
        make: impl FnOnce(&BridgeConfig) -> Result<BridgeConfig, String>,
    ) -> Result<String, String> {
        let mut old = self.config();
        let new = make(&old)?;
        new.within(&self.limits)?;
        let changes = new.differs(&old);
        let mut remarks = Vec::new();
        let kept =
            self.reservation_client.as_ref().filter(|_| !changes.is_empty()).map(ReservationClient::status);
        for (direction, handle) in Direction::ALL.into_iter().zip(&self.handles) {
            let (name, was, is) = (direction.name(), old.of(direction), new.of(direction));
            if was.qdisc != is.qdisc {
                // Each discipline gets a random stream of its own, named by the number of changes.
                let changed = handle.status().changes.to_string();
                let place = self.streams.within(name).within(&changed);
                handle.send(Command::Qdisc(builder(is.qdisc.clone(), place, self.tracer.clone(), name)));
                let keeps = kept.as_ref().map(|kept| kept[direction as usize].is_some());
                remarks.extend(keeps.and_then(|keeps| reservations::about_change(keeps, is)));
            }
            if was.rate != is.rate {
                handle.set_rate(is.rate);
                if let Some(reservation_client) = &self.reservation_client {
                    reservation_client.set_rate(direction as usize, is.rate);
                }
            }
            if was.emulation != is.emulation {
                handle.set_emulation(is.emulation);
            }
            if was.fragment != is.fragment {
                handle.send(Command::Cut(is.fragment));
            }
            if was.reassemble != is.reassemble {
                handle.send(Command::Join(is.reassemble));
            }
        }
        *old = new;
        Ok(match changes.len() {
            0 => "nothing changed".to_owned(),
            _ => {
                let reported = changes.iter().map(|(name, value)| format!("{name} is {value}"));
                let reported = reported.collect::<Vec<_>>().join(", ");
                remarks.iter().fold(reported, |reported, remark| format!("{reported}; {remark}"))
            }
        })
    }

    /// Problems outside the bridge. Each is reported once.
    pub fn complaints(&self) -> Vec<String> {
        let mut complained = self.complained.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let mut messages = Vec::new();
        for ((handle, (from, _)), reported) in self.handles.iter().zip(&self.names).zip(complained.iter_mut())
        {
            let status = handle.status();
            let losses = status.losses;
            if status.fragments.whole > 0 && !std::mem::replace(&mut reported[2], true) {
                messages.push(format!(
                    "frames longer than a fragment come in at {from} and pass whole: they are not IP, or not directly behind their \
                     Ethernet header"
                ));
            }
            if losses.too_long > 0 && !std::mem::replace(&mut reported[0], true) {
                messages.push(format!(
                    "frames longer than the MTU come in at {from} and are dropped: the machine on that side leaves \
                     segmentation to its network card; there, type: ethtool -K INTERFACE tso off gso off"
                ));
            }
            if losses.ring > 0 && !std::mem::replace(&mut reported[1], true) {
                messages.push(format!(
                    "the kernel dropped {} frames that came in at {from}, because they were not taken in time: try a \
                     larger --ring, or fewer programs beside this one",
                    losses.ring
                ));
            }
        }
        messages
    }

    /// The configuration of each direction, in one line each.
    pub fn describe(&self) -> Vec<String> {
        let config = self.config();
        let ways = Direction::ALL.into_iter().zip(&self.names).zip(&self.handles);
        ways.map(|((direction, (from, to)), handle)| {
            let config = config.of(direction);
            let mut line = format!("{from} to {to}: {}, {}", rate(config.rate), config.qdisc);
            for (what, span) in [("delay", config.emulation.delay), ("jitter", config.emulation.jitter)] {
                if !span.is_zero() {
                    let _ = write!(line, ", {what} {span}");
                }
            }
            if config.emulation.loss.get() > 0.0 {
                let _ = write!(line, ", loss {}", config.emulation.loss);
            }
            if let Some(size) = config.fragment {
                let _ = write!(line, ", fragments of {} bytes", size.bytes());
            }
            if config.reassemble {
                line.push_str(", fragments joined");
            }
            let _ = write!(line, "; {}", handle.status().scheduling);
            line
        })
        .chain(self.kept().iter().zip(&self.names).zip(Direction::ALL).filter_map(
            |((link, (_, to)), direction)| {
                let (link, limited) = (link.as_ref()?, config.of(direction).rate != UNLIMITED);
                limited.then(|| format!("reservations out of {to}: up to {}", link.capacity))
            },
        ))
        .collect()
    }

    /// The summary at the end, as text.
    pub fn summary(&self, statuses: &[Status]) -> String {
        let mut text = String::new();
        for (((from, to), status), reserved) in self.names.iter().zip(statuses).zip(self.kept()) {
            let Status { counters, backlog, .. } = status;
            let _ = writeln!(text, "{from} to {to}, {}", seconds(status.uptime));
            let row = |text: &mut String, name: &str, value: String| {
                let _ = writeln!(text, "  {name:<10} {value}");
            };
            let amount = |amount: &giveway_qdisc::Backlog| {
                format!("{} packets, {} bytes", amount.packets, amount.bytes)
            };
            row(&mut text, "arrived", amount(&counters.arrived));
            row(&mut text, "sent", amount(&counters.sent));
            let reasons = status.dropped.iter().filter(|(_, lost)| lost.packets > 0);
            let reasons: Vec<String> =
                reasons.map(|(why, lost)| format!("{} {}", why.name(), lost.packets)).collect();
            let reasons =
                if reasons.is_empty() { String::new() } else { format!(" ({})", reasons.join(", ")) };
            row(&mut text, "dropped", format!("{}{reasons}", amount(&counters.dropped)));
            if counters.marked > 0 {
                row(&mut text, "marked", counters.marked.to_string());
            }
            if backlog.packets > 0 {
                row(&mut text, "held", amount(backlog));
            }
            for (name, quantiles) in [("waited", &status.sojourn[0]), ("late", &status.lateness[0])] {
                if quantiles.count > 0 {
                    let [p50, _, p99, p999, most] = quantiles.shares().map(|(_, span)| short(span));
                    let messages =
                        format!("half at most {p50}, 99 % {p99}, 99.9 % {p999}, the longest {most}");
                    row(&mut text, name, messages);
                }
            }
            for (name, count) in lost(status) {
                if count > 0 {
                    row(&mut text, "lost", format!("{count} {name}"));
                }
            }
            let Fragments { cut, pieces, whole, joined, .. } = &status.fragments;
            if *cut > 0 || *whole > 0 {
                let passed = if *whole > 0 { format!("; {whole} passed whole") } else { String::new() };
                row(&mut text, "cut", format!("{cut} frames into {pieces} fragments{passed}"));
            }
            if joined.fragments > 0 {
                let lost = joined.lost().filter(|(_, lost)| *lost > 0);
                let lost: String = lost.map(|(why, lost)| format!(", {lost} {}", why.name())).collect();
                let put = format!("{} fragments to {} frames{lost}", joined.joined, joined.packets);
                row(&mut text, "joined", put);
            }
            if status.stalls > 0 {
                let messages = format!("{} times, {} of the link's time", status.stalls, status.stalled);
                row(&mut text, "stalled", messages);
            }
            if let Some(messages) = reserved.as_ref().and_then(reservations::in_words) {
                row(&mut text, "reserved", messages);
            }
            if let Some(why) = &status.plain {
                row(&mut text, "plain", format!("{} frames after it failed: {why}", status.plain_frames));
            }
        }
        text
    }

    /// The state of both directions, as JSON. Times are in seconds.
    pub fn json(&self, statuses: &[Status]) -> Value {
        let config = self.config();
        let ways = Direction::ALL.into_iter().zip(&self.names).zip(statuses).zip(self.kept());
        let ways: Vec<Value> = ways
            .map(|(((direction, (from, to)), status), reserved)| {
                let config = config.of(direction);
                let backlog = |b: &giveway_qdisc::Backlog| json!({"packets": b.packets, "bytes": b.bytes});
                let reasons: serde_json::Map<String, Value> = status
                    .dropped
                    .iter()
                    .map(|(why, lost)| (why.name().to_owned(), lost.packets.into()))
                    .collect();
                let lost: serde_json::Map<String, Value> =
                    lost(status).iter().map(|(name, count)| ((*name).to_owned(), (*count).into())).collect();
                let Fragments { cut, pieces, spared, whole, joined, waiting, .. } = &status.fragments;
                let unjoined: serde_json::Map<String, Value> =
                    joined.lost().map(|(why, lost)| (why.name().to_owned(), lost.into())).collect();
                let gauges: serde_json::Map<String, Value> =
                    status.gauges.iter().map(|(name, value)| ((*name).to_owned(), (*value).into())).collect();
                json!({
                    "direction": direction.name(),
                    "from": from,
                    "to": to,
                    "rate_bps": status.rate.as_bit(),
                    "qdisc": config.qdisc.to_string(),
                    "delay_s": config.emulation.delay.as_s(),
                    "jitter_s": config.emulation.jitter.as_s(),
                    "loss": config.emulation.loss.get(),
                    "fragment": config.fragment.map(Size::bytes),
                    "reassemble": config.reassemble,
                    "uptime_s": status.uptime.as_s(),
                    "arrived": backlog(&status.counters.arrived),
                    "sent": backlog(&status.counters.sent),
                    "dropped": backlog(&status.counters.dropped),
                    "held": backlog(&status.backlog),
                    "marked": status.counters.marked,
                    "drops": reasons,
                    "lost": lost,
                    "cut": {"frames": cut, "fragments": pieces, "spared_fragments": spared, "whole": whole},
                    "joined": {
                        "fragments": joined.joined,
                        "frames": joined.packets,
                        "waiting": waiting,
                        "given_up_frames": joined.given_up,
                        "lost": unjoined,
                    },
                    "sojourn_s": quantiles(&status.sojourn[0]),
                    "lateness_s": quantiles(&status.lateness[0]),
                    "last_second": {
                        "sent": backlog(&status.last_second),
                        "sojourn_s": quantiles(&status.sojourn[1]),
                        "lateness_s": quantiles(&status.lateness[1]),
                    },
                    "stalls": status.stalls,
                    "stalled_s": status.stalled.as_s(),
                    "longest_stall_s": status.longest_stall.as_s(),
                    "checksums_finished": status.checksums,
                    "changes": status.changes,
                    "interface_downs": status.downs,
                    "receive_calls": status.receives,
                    "send_calls": status.sends,
                    "rooms": {"left": status.buffers[0], "least": status.buffers[1], "all": status.buffers[2]},
                    "on_line": status.in_flight,
                    "gauges": gauges,
                    "reservations": reserved.as_ref().map(reservations::to_json),
                    "plain": status.plain,
                    "plain_frames": status.plain_frames,
                    "how": status.scheduling,
                })
            })
            .collect();
        json!({"version": env!("CARGO_PKG_VERSION"), "directions": ways})
    }
}

/// Losses outside the discipline, by name.
fn lost(status: &Status) -> [(&'static str, u64); 5] {
    let losses = &status.losses;
    [
        ("ring", losses.ring),
        ("no_room", losses.no_buffer),
        ("too_long", losses.too_long),
        ("unsent", losses.unsent),
        ("line", losses.emulated),
    ]
}

fn quantiles(quantiles: &giveway_watch::Quantiles) -> Value {
    let [p50, p90, p99, p999, most] = quantiles.shares().map(|(_, span)| span.as_s());
    let mean =
        if quantiles.count > 0 { quantiles.sum_ps as f64 / 1e12 / quantiles.count as f64 } else { 0.0 };
    json!({
        "count": quantiles.count, "mean": mean, "p50": p50, "p90": p90, "p99": p99, "p999": p999, "max": most
    })
}

/// Formats a time with three digits.
fn short(span: Span) -> String {
    let (value, unit) = match span.as_s() {
        s if s >= 1.0 => (s, "s"),
        s if s >= 1e-3 => (s * 1e3, "ms"),
        s => (s * 1e6, "us"),
    };
    let digits = if value >= 100.0 {
        0
    } else if value >= 10.0 {
        1
    } else {
        2
    };
    format!("{value:.digits$} {unit}")
}

/// Formats a time in seconds.
fn seconds(span: Span) -> String {
    format!("{:.1} s", span.as_s())
}
