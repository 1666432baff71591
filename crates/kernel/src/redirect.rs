//! What comes in at one interface leaves at another, in the kernel: a wire between two interfaces, with the discipline at the root of each
//! in front of it.
//!
//! - It is a filter of tc at the ingress of each, which takes every frame (`matchall`) and hands it to the other (`mirred`). So
//!   frames pass unchanged, and the machine itself does not see them: no bridge with addresses, tables and spanning trees is needed.
//! - Filters of others at the same place would come before or after ours: where there are any, it is refused.

use crate::KernelError;
use crate::printed;
use crate::tools::{IP, TC};

/// What our filters are known by: "giveway" in hexadecimal digits.
const COOKIE: &str = "67697665776179";

/// Two interfaces that are joined.
#[derive(Debug)]
pub struct Joined {
    devices: [String; 2],
    /// Which of them listened to their own address only, before.
    quiet: [bool; 2],
}

/// Joins two interfaces.
///
/// # Errors
/// When one has filters of others, or the kernel has no such filter; then nothing is changed.
pub fn join(devices: [&str; 2]) -> Result<Joined, KernelError> {
    for device in devices {
        clear(device)?;
    }
    let mut joined = Joined { devices: devices.map(str::to_owned), quiet: [false; 2] };
    let made = connect(&mut joined);
    if made.is_err() {
        let _ = part(&joined);
    }
    made.map(|()| joined)
}

fn connect(joined: &mut Joined) -> Result<(), KernelError> {
    let ways = [(0, 1), (1, 0)];
    for (at, to) in ways {
        let (from, to) = (joined.devices[at].as_str(), joined.devices[to].as_str());
        let place = ["filter", "add", "dev", from, "ingress", "protocol", "all", "pref", "1", "matchall"];
        let action = ["action", "mirred", "egress", "redirect", "dev", to, "cookie", COOKIE];
        let filter = [&place[..], &action].concat();
        let made = TC.run(&["qdisc", "add", "dev", from, "clsact"]).and_then(|_| TC.run(&filter));
        made.map_err(|error| match error {
            KernelError::Failed { command, said } => KernelError::Precondition(format!(
                "{from} cannot be joined to {to} by tc, which needs the modules sch_ingress, cls_matchall and act_mirred: {command}: {said}"
            )),
            other => other,
        })?;
        // Frames for the machines behind the other interface are not addressed to this one.
        if !promiscuous(from)? {
            IP.run(&["link", "set", "dev", from, "promisc", "on"])?;
            joined.quiet[at] = true;
        }
    }
    Ok(())
}

/// Parts them again: as they were before.
///
/// # Errors
/// The last step that failed; the others were done.
pub fn part(joined: &Joined) -> Result<(), KernelError> {
    let mut done = Ok(());
    for (device, quiet) in joined.devices.iter().zip(joined.quiet) {
        let mut steps = Vec::new();
        if filters(device).is_ok_and(|there| there.is_some()) {
            steps.push(TC.run(&["qdisc", "del", "dev", device, "clsact"]));
        }
        if quiet {
            steps.push(IP.run(&["link", "set", "dev", device, "promisc", "off"]));
        }
        for step in steps {
            done = done.and(step.map(drop));
        }
    }
    done
}

/// Takes away what a process of ours left that was killed.
fn clear(device: &str) -> Result<(), KernelError> {
    match filters(device)? {
        None => Ok(()),
        Some(text) if text.contains(COOKIE) => TC.run(&["qdisc", "del", "dev", device, "clsact"]).map(drop),
        Some(_) => Err(KernelError::Precondition(format!(
            "{device} has filters of somebody else where frames come in: look at them with tc filter show dev {device} ingress, and \
             remove them with tc qdisc del dev {device} clsact (or ingress)"
        ))),
    }
}

/// The filters at the ingress of an interface, as tc shows them; none where there is no place for any.
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
