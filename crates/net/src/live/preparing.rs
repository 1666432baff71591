//! Preparations that need privileges, before the interfaces are opened: the user of the process, locks of the
//! interfaces, changes that an earlier bridge left, the control socket, offloads, and the cleanup process.

use std::os::unix::net::UnixListener;
use std::path::Path;

use giveway_bridge::pause;
use giveway_control::ControlError;
use giveway_control::leftovers::{self, Changed};
use giveway_control::lock::{self, InterfaceLocks};
use giveway_live::checks::{self, Merging};
use giveway_live::cleanup::Cleanup;
use giveway_live::clock::monotonic_ns;
use giveway_live::detour::Detour;
use giveway_live::privilege::Identity;
use giveway_program::show;
use nix::net::if_::if_nametoindex;
use nix::unistd::{Uid, User, geteuid};

use super::claim::{Claim, IDENTITY, Owner, Place};
use super::error::BridgeError;
use super::interfaces::{Forwarder, Interfaces};
use super::messages::remark;
use super::socket;
use super::take_over::{LATE, Predecessor, RETRY};
use giveway_program::commands::live::Args;

/// Resources that last as long as the bridge.
pub struct Prepared {
    /// The control socket.
    pub listener: Option<UnixListener>,
    /// Dropped before the locks, so that no other bridge starts before the cleanup.
    _cleanup: Option<Cleanup>,
    locks: InterfaceLocks,
    /// The bridge from which this process takes over, until it has done so.
    pub predecessor: Option<Predecessor>,
    /// The control socket.
    socket: Option<Claim>,
    /// The changes of the interfaces.
    changes: Vec<Change>,
}

impl Prepared {
    /// Closes connections to the locks of the interfaces. Must be called regularly while the bridge runs.
    pub fn tick(&self) {
        self.locks.forget_clients();
    }

    /// Ends the predecessor, takes the locks of the interfaces once it has ended, and gives the control
    /// socket its name. `meanwhile` is called several times a second, and returns false to give up.
    pub fn succeed(&mut self, args: &Args, mut meanwhile: impl FnMut() -> bool) {
        /// Writing a recording of hours takes seconds.
        const PATIENCE: u64 = 30_000_000_000;
        let Some(mut predecessor) = self.predecessor.take() else { return };
        let interfaces = Interfaces::of(args).real();
        let until = monotonic_ns() + PATIENCE;
        pause(LATE);
        let mut ends = false;
        self.locks = loop {
            if !ends && predecessor.end() {
                ends = true;
                // Before it ends, so that its cleanup leaves the interfaces to this process.
                claim(states(&self.changes));
                predecessor.leave();
            }
            match predecessor.take_locks(&interfaces) {
                Ok(locks) => break locks,
                Err(ControlError::Locked(_)) if monotonic_ns() < until && meanwhile() => pause(RETRY),
                Err(error) => {
                    show::error(&error);
                    break predecessor.into_next();
                }
            }
        };
        if !ends {
            // It was killed, and its cleanup has undone the changes.
            claim(states(&self.changes));
            for Change { changed, .. } in
                self.changes.iter().filter(|change| !change.changed.features.is_empty())
            {
                if let Err(error) = checks::switch_offloads(&changed.interface, &changed.features, false) {
                    show::error(&error);
                }
            }
        }
        claim(&self.socket);
    }
}

/// The files that list changes of the interfaces.
fn states(changes: &[Change]) -> impl Iterator<Item = &Claim> {
    changes.iter().filter_map(|change| change.state.as_ref())
}

/// The user that this process becomes, with its name; `None` if the process does not run as root.
///
/// # Errors
/// If there is no such user, or the process may not become it.
pub fn user(args: &Args) -> Result<Option<(Identity, String)>, BridgeError> {
    let of = |user: User| (Identity { user: user.uid.as_raw(), group: user.gid.as_raw() }, user.name);
    let own = geteuid();
    if let Some(wanted) = &args.user {
        let by_number =
            || wanted.parse().ok().and_then(|number| User::from_uid(Uid::from_raw(number)).ok()?);
        let found = User::from_name(wanted).ok().flatten().or_else(by_number);
        let found = found.ok_or_else(|| {
            BridgeError::Usage(format!("--user: there is no user \"{wanted}\" on this machine"))
        })?;
        if !own.is_root() && found.uid != own {
            return Err(BridgeError::Usage(format!(
                "--user: only root can become {wanted}: leave it out, or run it with sudo"
            )));
        }
        return Ok(Some(of(found)).filter(|_| own.is_root()));
    }
    if !own.is_root() {
        return Ok(None);
    }
    // sudo(8) sets the user that called it. That user then owns the files.
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u32>().ok());
    if let Some(user) = number("SUDO_UID").filter(|user| *user != 0) {
        let known = User::from_uid(Uid::from_raw(user)).ok().flatten();
        let group = number("SUDO_GID").or(known.as_ref().map(|known| known.gid.as_raw())).unwrap_or(user);
        return Ok(Some((Identity { user, group }, known.map_or(user.to_string(), |known| known.name))));
    }
    let nobody = User::from_name("nobody").ok().flatten().map(of);
    // The kernel uses this number for users that it cannot map.
    Ok(Some(nobody.unwrap_or((Identity { user: 65_534, group: 65_534 }, "nobody".to_owned()))))
}

/// Checks the interfaces, takes their locks, undoes changes of an earlier bridge, opens the control socket,
/// and turns offloads off if requested. Returns `None` if a check failed; its message was printed.
///
/// # Errors
/// If a lock, the control socket or the cleanup process is not available, or offloads cannot be read.
pub fn prepare(args: &Args, forwarder: Forwarder) -> Result<Option<Prepared>, BridgeError> {
    if report_findings(args, forwarder, true) {
        return Ok(None);
    }
    let prepared = acquire(args, forwarder)?;
    report_findings(args, forwarder, false);
    Ok(Some(prepared))
}

/// Gives files their names.
fn claim<'a>(files: impl IntoIterator<Item = &'a Claim>) {
    for file in files {
        if let Err(error) = file.claim() {
            show::message(&format!("{}: {error}", file.path().display()));
        }
    }
}

/// The changes of an interface, and the file that lists them.
#[derive(Clone)]
struct Change {
    changed: Changed,
    /// The features that this process turns off; the others were off when it took over.
    own: Vec<String>,
    /// `None` if it could not be written.
    state: Option<Claim>,
}

impl Change {
    /// Writes the file that lists the changes.
    fn remember(&mut self, args: &Args, takes_over: bool) -> Result<(), BridgeError> {
        let Some(state) = &mut self.state else { return Ok(()) };
        match self.changed.write(&state.temporary().path()) {
            Ok(()) => state.created(),
            Err(error) => self.state = not_recorded(args, &self.changed.interface, takes_over, error)?,
        }
        Ok(())
    }
}

/// Reports that the changes of an interface cannot be recorded.
fn not_recorded(
    args: &Args,
    interface: &str,
    takes_over: bool,
    error: ControlError,
) -> Result<Option<Claim>, BridgeError> {
    // Without the file, both processes would restore the interface.
    if takes_over {
        return Err(error.into());
    }
    let text = "if giveway is killed, changes of";
    remark(args, &format!("{text} {interface} may stay, because they cannot be recorded: {error}"));
    Ok(None)
}

/// Acquires the resources.
fn acquire(args: &Args, forwarder: Forwarder) -> Result<Prepared, BridgeError> {
    let interfaces = Interfaces::of(args);
    let real = interfaces.real();
    let find = |socket| Predecessor::find(socket, &real, |text| remark(args, text));
    let predecessor = args.take_over.as_deref().map(find).transpose()?;
    let locks = if predecessor.is_some() { InterfaceLocks::default() } else { lock::take(&real)? };
    for name in real.iter().filter(|_| predecessor.is_none()) {
        if let Some(message) = if_nametoindex(*name).ok().and_then(|number| leftovers::mend(name, number)) {
            show::warning(&message);
        }
    }
    let detour = interfaces.detour(forwarder)?;
    let merging = interfaces.merging(forwarder);
    let mut changes = changes(args, &real, merging, detour.is_some(), predecessor.is_some())?;
    let mut socket = plan_socket(args, predecessor.as_ref())?;
    let cleanup = if socket.is_none() && changes.is_empty() {
        None
    } else {
        let work = (socket.clone(), changes.clone());
        // The locks of a bridge stay with its cleanup, so that no other one starts before. Those of a
        // take-over must end before this process does.
        let next = predecessor.as_ref().map(Predecessor::next_descriptors).unwrap_or_default();
        Some(Cleanup::start(&next, move |reported| clean_up(work, reported)).map_err(BridgeError::Cleanup)?)
    };
    // The cleanup process has begun, and removes these files even if this process is killed here.
    let listener = socket.as_mut().map(socket::listen).transpose()?;
    for change in &mut changes {
        change.remember(args, predecessor.is_some())?;
    }
    if let Some(cleanup) = &cleanup {
        let files = socket.iter().map(Claim::identity);
        let states =
            changes.iter().map(|change| change.state.as_ref().map_or([0; IDENTITY], Claim::identity));
        let reported: Vec<u8> = files.chain(states).flatten().collect();
        cleanup.report(&reported).map_err(BridgeError::Cleanup)?;
    }
    // Before the changes, so that the cleanup process undoes them even if one fails.
    if predecessor.is_none() {
        claim(states(&changes));
    }
    if let Some(detour) = detour.filter(|_| predecessor.is_none()) {
        detour.create()?;
    }
    for Change { changed: Changed { interface, .. }, own, .. } in &changes {
        if own.is_empty() {
            continue;
        }
        match checks::switch_offloads(interface, own, false) {
            Ok(()) => {
                let names = checks::list_offloads(own);
                remark(
                    args,
                    &format!("{interface}: turned off {names}; they are turned on again at the end"),
                );
            }
            Err(error) => show::error(&error),
        }
    }
    Ok(Prepared { listener, _cleanup: cleanup, locks, predecessor, socket, changes })
}

/// The place of the control socket: in the same folder as the predecessor's if it has this name.
fn plan_socket(args: &Args, predecessor: Option<&Predecessor>) -> Result<Option<Claim>, BridgeError> {
    let Some(path) = &args.control else { return Ok(None) };
    Ok(Some(if predecessor.is_some_and(|predecessor| predecessor.listens_at(path)) {
        socket::plan_beside(path)?
    } else {
        socket::plan(path)?
    }))
}

/// The changes of each interface that are undone at the end, with the files that list them: of this process,
/// and of its predecessor if this process takes over.
fn changes(
    args: &Args,
    real: &[&str],
    merging: Merging,
    detour: bool,
    takes_over: bool,
) -> Result<Vec<Change>, BridgeError> {
    let mut changes = Vec::new();
    for name in real.iter().copied() {
        let (number, own) = match args.fix_offloads {
            true => checks::merging_offloads(name, merging)?,
            false => (if_nametoindex(name).unwrap_or_default(), Vec::new()),
        };
        let inherited = Changed::read(number).filter(|_| takes_over);
        if takes_over && detour != inherited.as_ref().is_some_and(|changed| changed.detour) {
            let [this, other] =
                if detour { ["--wan", "--in and --out"] } else { ["--in and --out", "--wan"] };
            return Err(BridgeError::Usage(format!(
                "--take-over: this process has {this}, and the running one {other}: write the same flags, or end \
                 the running one first"
            )));
        }
        let inherited = inherited.map(|changed| changed.features);
        let features: Vec<String> = inherited.into_iter().flatten().chain(own.clone()).collect();
        if features.is_empty() && !detour {
            continue;
        }
        let changed = Changed { interface: name.to_owned(), number, features, detour };
        let place = |path: &Path| Place::of(path).map_err(ControlError::unavailable);
        let names = changed.names();
        let planned = names.and_then(|(from, to)| Ok(Claim::planned(place(&from)?, place(&to)?, to)));
        let state =
            planned.map_or_else(|error| not_recorded(args, name, takes_over, error), |it| Ok(Some(it)))?;
        changes.push(Change { changed, own, state });
    }
    Ok(changes)
}

/// The work of the cleanup process, after the bridge has ended. A process that has taken over does it later.
/// `reported` has the identities of the socket and of the files with changes.
fn clean_up((socket, changes): (Option<Claim>, Vec<Change>), reported: &[u8]) {
    let mut identities = reported.as_chunks().0.iter().copied();
    if let Some(mut socket) = socket {
        socket.learn(identities.next());
        if let Err(error) = socket.remove() {
            show::message(&format!("--control {}: the socket stays: {error}", socket.path().display()));
        }
    }
    for Change { changed: Changed { interface, number, features, detour }, own, mut state } in changes {
        let identity = identities.next();
        state.iter_mut().for_each(|state| state.learn(identity));
        let owner = state.as_ref().map_or(Owner::This, Claim::owner);
        let features = match owner {
            Owner::This => features,
            Owner::Unclaimed => own,
            Owner::Other => continue,
        };
        let detour = Some(Detour { interface: interface.clone(), number }).filter(|_| detour);
        if let Some(detour) = detour.filter(|_| owner == Owner::This)
            && let Err(error) = detour.remove()
        {
            show::error(&error);
        }
        // The interface may be gone, and another one may have its name.
        if !features.is_empty()
            && if_nametoindex(interface.as_str()) == Ok(number)
            && let Err(error) = checks::switch_offloads(&interface, &features, true)
        {
            show::error(&error);
        }
        // The changes are undone, so the state file is obsolete.
        if let Some(state) = state {
            let _ = state.remove();
        }
    }
}

/// Prints the findings of the checks: only fatal ones, or only the others. Returns true if there are any.
fn report_findings(args: &Args, forwarder: Forwarder, fatal: bool) -> bool {
    let mut found = Interfaces::of(args).check(forwarder);
    found.extend(checks::check_ring(args.ring as usize));
    found.retain(|finding| finding.fatal == fatal);
    for finding in found.iter().filter(|finding| finding.fatal || !args.quiet) {
        show::warning(&finding.what);
        if !finding.remedy.is_empty() {
            show::warning(&format!("  {}", finding.remedy));
        }
    }
    !found.is_empty()
}
