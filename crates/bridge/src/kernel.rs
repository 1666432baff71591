//! A bridge whose disciplines run in the kernel: its counters and its rates.

pub mod requests;

use std::sync::{Mutex, PoisonError};

use giveway_control::ControlError;
use giveway_control::config::{self, UNLIMITED};
use giveway_kernel::KernelError;
use giveway_kernel::attach::{self, Attached};
use giveway_kernel_plan::plan::{Kind, Plan};
use giveway_live::clock::monotonic_ns;
use giveway_qdisc::{Backlog, DropReason, PortCounters, Rate, Span, units};
use giveway_watch::{Backend, Direction, Drops, Snapshot, Status};

/// A direction with its attached qdisc.
pub struct AttachedDirection {
    /// Direction of the bridge.
    pub direction: Direction,
    /// Incoming interface.
    pub from: String,
    /// Outgoing interface, which has the qdisc.
    pub to: String,
    /// Spec of the discipline, with its prefix.
    pub text: String,
    /// Parameters of the qdisc.
    pub plan: Plan,
    /// The attached qdisc.
    pub attached: Attached,
}

/// Both directions, forward first: reads their counters and changes their rates.
pub struct KernelBridge {
    /// The forward and the reverse direction, in this order.
    pub directions: [AttachedDirection; 2],
    /// Rate of each direction in bit/s; 0 without a limit.
    pub rates: Mutex<[u64; 2]>,
    /// Start of the bridge by the monotonic clock, in nanoseconds.
    pub began: u64,
}

impl KernelBridge {
    /// Snapshots of both directions. The kernel has no sojourn times, and no counters of a link emulation.
    ///
    /// # Errors
    /// If the counters of the kernel cannot be read.
    pub fn snapshots(&self) -> Result<Vec<Snapshot>, KernelError> {
        let one = |(at, direction): (usize, &AttachedDirection)| {
            let mut status = status(&attach::counters(&direction.attached)?);
            status.rate = self.rate(at);
            status.uptime = self.uptime();
            status.scheduling = format!("in the kernel, as {}", direction.attached.name);
            Ok(Snapshot {
                from: direction.from.clone(),
                to: direction.to.clone(),
                direction: direction.direction,
                spec: direction.text.clone(),
                kind: direction.plan.kind.name().to_owned(),
                handle: "1:".to_owned(),
                backend: Backend::Kernel,
                status,
                ..Snapshot::default()
            })
        };
        self.directions.iter().enumerate().map(one).collect()
    }

    fn rate(&self, at: usize) -> Rate {
        match self.rates.lock().unwrap_or_else(PoisonError::into_inner)[at] {
            0 => UNLIMITED,
            rate => Rate::bit(rate),
        }
    }

    fn uptime(&self) -> Span {
        Span::ns(monotonic_ns() - self.began)
    }

    /// The configuration of each direction, in one line each.
    pub fn describe(&self) -> Vec<String> {
        let line = |(at, direction): (usize, &AttachedDirection)| {
            let AttachedDirection { from, to, text, attached, .. } = direction;
            format!(
                "{from} to {to}: {}, {text}; in the kernel, as {}",
                config::rate(self.rate(at)),
                attached.name
            )
        };
        self.directions.iter().enumerate().map(line).collect()
    }

    fn set_rate(&self, at: usize, value: &str) -> Result<String, ControlError> {
        let rate: Option<Rate> = match value {
            "unlimited" => None,
            text => Some(text.parse().map_err(|error: units::UnitError| ControlError::unavailable(error))?),
        };
        let direction = &self.directions[at];
        if direction.plan.kind == Kind::Trr {
            return Err(ControlError::unavailable(
                "the calendar of trr is built for one rate: stop the bridge, and start it with another rate",
            ));
        }
        let mut plan = direction.plan.clone();
        plan.params.rate = rate.map_or(0, Rate::as_bit);
        attach::set_params(&direction.attached, &plan).map_err(ControlError::unavailable)?;
        self.rates.lock().unwrap_or_else(PoisonError::into_inner)[at] = plan.params.rate;
        Ok(format!("the rate from {} to {} is {}", direction.from, direction.to, config::rate(self.rate(at))))
    }

    /// Changes a setting. Returns a message with the change.
    ///
    /// # Errors
    /// If the setting cannot change while the bridge runs, or its value is invalid.
    pub fn set(&self, name: &str, value: &str) -> Result<String, ControlError> {
        match name {
            "rate" => self.set_rate(0, value),
            "rate-reverse" => self.set_rate(1, value),
            _ => Err(ControlError::unavailable(format!(
                "{name}: with disciplines in the kernel, only rate and rate-reverse can change while the bridge runs"
            ))),
        }
    }
}

/// Converts the counters of the kernel, by name, to a [`Status`]. Counters that not every discipline has
/// become gauges.
fn status(counters: &[(String, u64)]) -> Status {
    let number =
        |name: &str| counters.iter().find(|(other, _)| other == name).map_or(0, |(_, number)| *number);
    let amount = |name: &str| Backlog {
        packets: number(&format!("{name}_packets")),
        bytes: number(&format!("{name}_bytes")),
    };
    let is_gauge = |name: &str| {
        let amounts = ["arrived", "sent", "dropped", "held"];
        let is_amount = |amount: &&str| name.strip_prefix(*amount).is_some_and(|rest| rest.starts_with('_'));
        !amounts.iter().any(is_amount) && !DropReason::ALL.iter().any(|reason| reason.name() == name)
    };
    let all = amount("dropped");
    let mut dropped = Drops::default();
    for why in DropReason::ALL {
        let packets = number(why.name());
        // The kernel counts the bytes of all drops together: each reason gets a share in proportion to its
        // packets.
        let bytes = u128::from(all.bytes) * u128::from(packets) / u128::from(all.packets.max(1));
        dropped.set(why, Backlog { packets, bytes: bytes as u64 });
    }
    let gauges = counters.iter().filter(|(name, _)| is_gauge(name));
    Status {
        counters: PortCounters { arrived: amount("arrived"), sent: amount("sent"), dropped: all, marked: 0 },
        dropped,
        backlog: amount("held"),
        gauges: gauges.map(|(name, number)| (name.clone().into(), *number as f64)).collect(),
        ..Status::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_of_the_kernel_are_a_status() {
        let all = [
            ("arrived_packets", 9),
            ("arrived_bytes", 900),
            ("held_packets", 2),
            ("pushout", 3),
            ("overlimit", 0),
            ("flow_table", 4),
        ];
        let counters: Vec<(String, u64)> =
            all.iter().map(|(name, number)| ((*name).to_owned(), *number)).collect();
        let status = status(&counters);
        let arrived = status.counters.arrived;
        assert_eq!((arrived.packets, arrived.bytes, status.backlog.packets), (9, 900, 2));
        let drops: Vec<_> = status.dropped.iter().filter(|(_, lost)| lost.packets > 0).collect();
        assert_eq!(drops, [(DropReason::Pushout, Backlog { packets: 3, bytes: 0 })]);
        assert_eq!(status.gauges, [("flow_table".into(), 4.0)]);
    }
}
