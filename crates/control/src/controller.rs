//! Monitors and changes a bridge in this process.

use std::fmt::Write as _;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use giveway_live::reservations::{LinkReservations, ReservationClient};
use giveway_live::{Command, Handle, Status};
use giveway_qdisc::Streams;
use giveway_replay::Tracer;
use giveway_watch::Snapshot;
use serde_json::Value;

use crate::building::builder;
use crate::config::{BridgeConfig, Direction, LinkLimits, UNLIMITED};
use crate::error::ControlError;
use crate::handover::{Client, HandOver, HandOverAnswer, HandOverRequest};
use crate::protocol::ControlApi;
use crate::reservations;
use crate::snapshots::snapshot;

/// The settings of the wire behind the link.
const WIRE: [&str; 7] = ["delay", "jitter", "loss", "reorder", "duplicate", "corrupt", "unordered"];

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
    hand_over: HandOver,
    /// Problems that were reported, for each direction: long frames, a full ring, unfragmented frames.
    reported_problems: Mutex<[[bool; 3]; 2]>,
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
            hand_over: HandOver::default(),
            reported_problems: Mutex::default(),
        }
    }

    /// The current configuration.
    pub fn config(&self) -> MutexGuard<'_, BridgeConfig> {
        self.config.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Incoming and outgoing interface of each direction.
    pub fn names(&self) -> &[(String, String); 2] {
        &self.names
    }

    /// Snapshots with these counters of each direction, forward first. Names and settings are the current
    /// ones.
    pub fn snapshots_of(&self, statuses: impl IntoIterator<Item = Status>) -> Vec<Snapshot> {
        let config = self.config();
        let directions = Direction::ALL.into_iter().zip(&self.names).zip(self.link_reservations());
        directions
            .zip(statuses)
            .map(|(((direction, names), reserved), status)| {
                snapshot(direction, names, config.of(direction), status, reserved.as_ref())
            })
            .collect()
    }

    /// The reservations of each direction that keeps them.
    fn link_reservations(&self) -> [Option<LinkReservations>; 2] {
        self.reservation_client.as_ref().map(ReservationClient::status).unwrap_or_default()
    }

    /// All reservations, as JSON; `None` if the bridge keeps none.
    fn list(&self) -> Option<Value> {
        self.reservation_client.as_ref()?;
        let kept = Direction::ALL.iter().zip(self.link_reservations());
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

    /// The process that has taken the bridge over, once there is one. Must be called several times a second.
    pub fn successor(&self) -> Option<u32> {
        self.hand_over.tick(&self.handles)
    }

    /// Applies the settings that differ, and returns a message with them.
    ///
    /// # Errors
    /// If the interfaces do not support a setting. No change is made then.
    pub fn apply(&self, new: BridgeConfig) -> Result<String, ControlError> {
        self.change(|_| Ok(new))
    }

    /// Replaces the configuration by a new one that `make` derives from it, and sends the differences to the
    /// directions.
    fn change(
        &self,
        make: impl FnOnce(&BridgeConfig) -> Result<BridgeConfig, ControlError>,
    ) -> Result<String, ControlError> {
        // Locked until the new configuration is stored, so that concurrent changes are not lost.
        let mut old = self.config();
        let new = make(&old)?;
        new.within(&self.limits)?;
        let changes = new.differs(&old);
        self.keeps_constant(&new)?;
        let mut remarks = Vec::new();
        let kept =
            self.reservation_client.as_ref().filter(|_| !changes.is_empty()).map(ReservationClient::status);
        for (direction, handle) in Direction::ALL.into_iter().zip(&self.handles) {
            let (name, was, is) = (direction.name(), old.of(direction), new.of(direction));
            let suffix = if direction == Direction::Reverse { "-reverse" } else { "" };
            let changed = |settings: &[&str]| {
                let is_one = |name: &str| settings.iter().any(|one| name.strip_suffix(suffix) == Some(one));
                changes.iter().any(|(name, _)| is_one(name))
            };
            if was.qdisc != is.qdisc {
                // Each discipline gets other random streams, named by the number of changes.
                let changes = handle.status().changes.to_string();
                let streams = self.streams.within(name).within(&changes);
                handle.send(Command::Qdisc(builder(is.qdisc.clone(), streams, self.tracer.clone(), name)));
                let keeps = kept.as_ref().map(|kept| kept[direction as usize].is_some());
                remarks.extend(keeps.and_then(|keeps| reservations::about_change(keeps, is)));
            }
            if changed(&["rate"]) {
                handle.send(match is.emulation.impairments.rate.clone() {
                    Some(profile) => Command::VaryingRate(is.rate, profile),
                    None => Command::Rate(is.rate),
                });
                if let Some(reservation_client) = &self.reservation_client {
                    reservation_client.set_rate(direction as usize, is.rate);
                }
            }
            if changed(&WIRE) {
                handle.set_emulation(is.emulation.clone());
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

    /// Refuses a rate that varies if there are reservations, which are shares of a constant rate.
    fn keeps_constant(&self, config: &BridgeConfig) -> Result<(), ControlError> {
        let varies =
            Direction::ALL.iter().any(|direction| config.of(*direction).emulation.impairments.rate.is_some());
        if varies && self.reservation_client.is_some() {
            let message = "with --reserve the rate is constant, since reservations are shares of it";
            return Err(ControlError::setting("rate", message));
        }
        Ok(())
    }

    /// Problems outside the bridge. Each is reported once.
    pub fn problems(&self) -> Vec<String> {
        let mut reported_problems = self.reported_problems.lock().unwrap_or_else(PoisonError::into_inner);
        let mut messages = Vec::new();
        for ((handle, (from, _)), reported) in
            self.handles.iter().zip(&self.names).zip(reported_problems.iter_mut())
        {
            let status = handle.status();
            let losses = status.losses;
            if status.fragments.whole > 0 && !std::mem::replace(&mut reported[2], true) {
                messages.push(format!(
                    "frames longer than a fragment arrive at {from} and pass whole: they are not IP, or IP does not follow their \
                     Ethernet header directly"
                ));
            }
            if losses.too_long > 0 && !std::mem::replace(&mut reported[0], true) {
                messages.push(format!(
                    "frames longer than the MTU arrive at {from} and are dropped: the machine on that side leaves \
                     segmentation to its network card; there, type: ethtool -K INTERFACE tso off gso off"
                ));
            }
            if losses.ring > 0 && !std::mem::replace(&mut reported[1], true) {
                messages.push(format!(
                    "the kernel dropped {} frames that arrived at {from}, because the receive ring was full: try a larger \
                     --ring, or fewer programs on this machine",
                    losses.ring
                ));
            }
        }
        messages
    }

    /// The configuration of each direction, in one line each.
    pub fn describe(&self) -> Vec<String> {
        let (config, usual) = (self.config(), BridgeConfig::default());
        let directions = Direction::ALL.into_iter().zip(&self.names).zip(&self.handles);
        directions
            .map(|((direction, (from, to)), handle)| {
                let suffix = if direction == Direction::Reverse { "-reverse" } else { "" };
                let rate = config.get(&format!("rate{suffix}"));
                let mut line = format!("{from} to {to}: {rate}, {}", config.of(direction).qdisc);
                for setting in WIRE {
                    let name = format!("{setting}{suffix}");
                    let value = config.get(&name);
                    if value != usual.get(&name) {
                        let _ = write!(line, ", {setting} {value}");
                    }
                }
                let config = config.of(direction);
                if let Some(size) = config.fragment {
                    let _ = write!(line, ", fragments of {} bytes", size.bytes());
                }
                if config.reassemble {
                    line.push_str(", fragments joined");
                }
                let _ = write!(line, "; {}", handle.status().scheduling);
                line
            })
            .chain(self.link_reservations().iter().zip(&self.names).zip(Direction::ALL).filter_map(
                |((link, (_, to)), direction)| {
                    let (link, limited) = (link.as_ref()?, config.of(direction).rate != UNLIMITED);
                    limited.then(|| format!("reservations out of {to}: up to {}", link.capacity))
                },
            ))
            .collect()
    }
}

impl ControlApi for Controller {
    fn reservations(&self) -> Result<String, ControlError> {
        let list = self.list().map(|list| list.to_string());
        list.ok_or_else(|| {
            ControlError::unavailable("this bridge keeps no reservations: start it with --reserve")
        })
    }

    fn set(&self, name: &str, value: &str) -> Result<String, ControlError> {
        self.change(|old| {
            let mut new = old.clone();
            // The rights to open files were dropped, and the client may not have them.
            new.set(name, value, None)?;
            Ok(new)
        })
    }

    fn hand_over(&self, client: Client, request: HandOverRequest) -> Result<HandOverAnswer, ControlError> {
        self.hand_over.request(client, request, &self.handles)
    }

    fn keeps(&self, client: Client) -> bool {
        self.hand_over.is_with(client)
    }

    fn left(&self, client: Client) {
        self.hand_over.left(client, &self.handles);
    }

    fn stop(&self) {
        self.stopped.store(true, Ordering::Relaxed);
    }

    fn snapshots(&self) -> Result<Vec<Snapshot>, ControlError> {
        Ok(self.snapshots_of(self.handles.iter().map(Handle::status)))
    }
}
