//! Forwards all frames between two interfaces in the kernel, through the qdisc at the root of each, without a
//! bridge.
//!
//! - A `tc` filter at the ingress of each interface matches every frame (`matchall`) and redirects it to the
//!   other (`mirred`). Frames pass unchanged, and the machine's own network stack does not receive them.
//! - Other filters at an ingress would run before or after this one, so an interface that has any is refused.

use crate::KernelError;
use crate::printed;
use crate::tools::{IP, TC};

/// Mark of Giveway's filters: "giveway" in hexadecimal digits.
const COOKIE: &str = "67697665776179";

/// Two joined interfaces.
#[derive(Debug)]
pub struct Joined {
    devices: [String; 2],
    /// True for an interface that was set promiscuous here.
    set_promiscuous: [bool; 2],
}

/// Joins two interfaces.
///
/// # Errors
/// If an interface has other filters, or the kernel lacks such filters. Then no change is made.
pub fn join(devices: [&str; 2]) -> Result<Joined, KernelError> {
    for device in devices {
        clear(device)?;
    }
    let mut joined = Joined { devices: devices.map(str::to_owned), set_promiscuous: [false; 2] };
    let connected = connect(&mut joined);
    if connected.is_err() {
        let _ = part(&joined);
    }
    connected.map(|()| joined)
}

fn connect(joined: &mut Joined) -> Result<(), KernelError> {
    for (at, to) in [(0, 1), (1, 0)] {
        let (from, to) = (joined.devices[at].as_str(), joined.devices[to].as_str());
        lead(from, to)?;
        // The frames are addressed to hosts behind the other interface.
        if !promiscuous(from)? {
            IP.run(&["link", "set", "dev", from, "promisc", "on"])?;
            joined.set_promiscuous[at] = true;
        }
    }
    Ok(())
}

/// Leads all frames that one interface receives to another, which sends them.
///
/// # Errors
/// If the kernel lacks such filters.
pub(crate) fn lead(from: &str, to: &str) -> Result<(), KernelError> {
    let filter = ["filter", "add", "dev", from, "ingress", "protocol", "all", "pref", "1", "matchall"];
    let action = ["action", "mirred", "egress", "redirect", "dev", to, "cookie", COOKIE];
    let filter = [&filter[..], &action].concat();
    let added = TC.run(&["qdisc", "add", "dev", from, "clsact"]).and_then(|_| TC.run(&filter));
    added.map(drop).map_err(|error| match error {
        KernelError::Failed { command, output } => KernelError::Precondition(format!(
            "{from} cannot be joined to {to} by tc, which needs the modules sch_ingress, cls_matchall and act_mirred: {command}: {output}"
        )),
        other => other,
    })
}

/// Ends [`lead`].
///
/// # Errors
/// If `tc` fails.
pub(crate) fn end(from: &str) -> Result<(), KernelError> {
    match filters(from) {
        Ok(Some(_)) => TC.run(&["qdisc", "del", "dev", from, "clsact"]).map(drop),
        _ => Ok(()),
    }
}

/// Removes the filters, and restores the flags of the interfaces.
///
/// # Errors
/// The first step that failed. The other steps were tried as well.
pub fn part(joined: &Joined) -> Result<(), KernelError> {
    let mut done = Ok(());
    for (device, set_promiscuous) in joined.devices.iter().zip(joined.set_promiscuous) {
        done = done.and(end(device));
        if set_promiscuous {
            done = done.and(IP.run(&["link", "set", "dev", device, "promisc", "off"]).map(drop));
        }
    }
    done
}

/// Removes the filters of a process of Giveway that was killed.
pub(crate) fn clear(device: &str) -> Result<(), KernelError> {
    match filters(device)? {
        None => Ok(()),
        Some(text) if text.contains(COOKIE) => TC.run(&["qdisc", "del", "dev", device, "clsact"]).map(drop),
        Some(_) => Err(KernelError::Precondition(format!(
            "{device} already has filters at its ingress: show them with tc filter show dev {device} ingress, and \
             remove them with tc qdisc del dev {device} clsact (or ingress)"
        ))),
    }
}

/// The output of `tc` for the filters at the ingress of an interface; none if it has no qdisc for them.
fn filters(device: &str) -> Result<Option<String>, KernelError> {
    let all = TC.json(&["-j", "qdisc", "show", "dev", device])?;
    if !printed::has_ingress(&all) {
        return Ok(None);
    }
    TC.run(&["filter", "show", "dev", device, "ingress"]).map(Some)
}

fn promiscuous(device: &str) -> Result<bool, KernelError> {
    let shown = IP.json(&["-j", "link", "show", "dev", device])?;
    Ok(printed::is_promiscuous(&shown))
}
