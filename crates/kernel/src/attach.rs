//! Loads a discipline, sets it on an interface, reads its counters and removes it.
//!
//! - A load succeeds completely or changes nothing: a step that fails reverts the steps before it.
//! - Each interface has a separate object with a separate name (`giveway_efd`, `giveway_efd_2`), because all
//!   qdiscs of one name share the variables of its object. The BPF program refuses to be attached a second
//!   time.
//! - The record of an interface is in [`state`]; the maps are pinned below [`PINS`], so that other programs
//!   can read them.
//! - [`unload_gone`] finds objects whose interface or network namespace was removed.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use giveway_kernel_plan::plan::Plan;

use crate::KernelError;
use crate::bpf::{self, Object};
use crate::object::{self, Recipe};
use crate::state::{self, Process};
use crate::tc;

pub use crate::bpf::PINS;
pub use crate::state::{Attached, STATE, all, find};
pub use crate::tc::largest_packet;

/// The longest name of a qdisc (`IFNAMSIZ` without the final zero).
const LONGEST_NAME: usize = 15;

/// Origin of the object file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source<'a> {
    /// Compile the object file from the embedded source.
    Compiled,
    /// An object file that was compiled elsewhere.
    Object(&'a Path),
    /// A folder of object files, each named as its qdisc: `giveway_efd.o`.
    Folder(&'a Path),
}

/// A discipline, its interface and options.
#[derive(Clone, Debug)]
pub struct LoadRequest<'a> {
    /// The interface.
    pub device: &'a str,
    /// The discipline.
    pub plan: &'a Plan,
    /// Packet marks with their values: the reserved rate of the flow in bit/s, or a route ([`Plan::routes`]).
    pub reservations: &'a [(u32, u64)],
    /// Origin of the object file.
    pub source: Source<'a>,
    /// Bytes to add to the kernel's length of a packet, which includes the Ethernet header.
    pub overhead: i32,
    /// True if this process removes the discipline at its end. If the process is killed, the next load
    /// removes it.
    pub keep: bool,
    /// True if a qdisc that the user set may be replaced.
    pub replace: bool,
}

/// Checks that this machine can have a discipline in its kernel.
///
/// # Errors
/// The first precondition that does not hold, with the remedy.
pub fn ready() -> Result<(), KernelError> {
    let root = fs::metadata("/proc/self").is_ok_and(|process| process.uid() == 0);
    if !root {
        return Err(KernelError::precondition("loading a qdisc needs root: run the command with sudo"));
    }
    let release = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let release = release.trim();
    let types = match fs::read(object::RUNNING) {
        Ok(types) => types,
        Err(_) => {
            let what = format!(
                "this kernel ({release}) does not publish its types ({} is missing): it needs CONFIG_DEBUG_INFO_BTF, which the \
                 kernels of distributions have",
                object::RUNNING
            );
            return Err(KernelError::precondition(what));
        }
    };
    if !object::has_qdiscs(&types) {
        let what = format!(
            "this kernel ({release}) does not support qdiscs in BPF: it needs Linux 6.16 or later, built with CONFIG_NET_SCH_BPF; giveway \
             live runs the same disciplines without it"
        );
        return Err(KernelError::precondition(what));
    }
    let mounts = fs::read_to_string("/proc/mounts").unwrap_or_default();
    if !mounts.lines().any(|line| line.split(' ').nth(1) == Some("/sys/fs/bpf")) {
        return Err(KernelError::precondition("no BPF file system is mounted: mount -t bpf bpf /sys/fs/bpf"));
    }
    Ok(())
}

/// Loads a discipline and sets it on an interface.
///
/// # Errors
/// If a precondition does not hold, the interface already has a discipline, or a step fails. Then no change
/// is made.
pub fn load(request: &LoadRequest<'_>) -> Result<Attached, KernelError> {
    let LoadRequest { device, plan, .. } = *request;
    ready()?;
    if find(device)?.is_some_and(|attached| attached.is_orphaned()) {
        unload(device)?;
    }
    if let Some(attached) = find(device)? {
        let what = format!("{device} already has {}: giveway kernel unload --dev {device}", attached.name);
        return Err(KernelError::precondition(what));
    }
    let previous = tc::previous(device, request.replace)?;
    fs::create_dir_all(STATE).map_err(KernelError::file(STATE))?;
    let object = register(request, &free_name(plan)?)?;
    let attached = put(request, previous, &object);
    if attached.is_err() {
        bpf::unpin(&state::file_stem(device, state::namespace()));
        // The caller gets the first error.
        let _ = bpf::unregister(object.id);
    }
    attached
}

/// Registers the object. A compiled object gets the name `name`.
fn register(request: &LoadRequest<'_>, name: &str) -> Result<Object, KernelError> {
    let plan = request.plan;
    match request.source {
        Source::Object(path) => Object::register(path),
        Source::Folder(folder) => {
            let path = folder.join(format!("{name}.o"));
            if !path.exists() {
                let what = format!(
                    "{} does not exist: giveway kernel build \"{}\" --name {name} --out {}",
                    path.display(),
                    plan.text(),
                    path.display()
                );
                return Err(KernelError::precondition(what));
            }
            Object::register(&path)
        }
        Source::Compiled => {
            let path = Path::new(STATE).join(format!("{name}.bpf.o"));
            let types = Path::new(object::RUNNING);
            let recipe = Recipe { kind: plan.kind, name, room: plan.room, journal: None, btf: types };
            object::build(&recipe, &path)?;
            let registered = Object::register(&path);
            let _ = fs::remove_file(&path);
            registered
        }
    }
}

fn put(
    request: &LoadRequest<'_>,
    previous: Option<String>,
    object: &Object,
) -> Result<Attached, KernelError> {
    let LoadRequest { device, plan, .. } = *request;
    let name = object.name()?;
    if !name.starts_with(&format!("giveway_{}", plan.kind.name())) {
        let what = format!("the object is {name}, not {}", plan.kind.name());
        return Err(KernelError::precondition(what));
    }
    if object.capacity < u64::from(plan.room) {
        let what = format!(
            "the object was built for {} packets and flows, but {} needs {}: build it with the same parameters",
            object.capacity, plan.spec, plan.room
        );
        return Err(KernelError::precondition(what));
    }
    object.write_params(&plan.params)?;
    request.reservations.iter().try_for_each(|(mark, value)| object.write_mark(*mark, *value))?;
    let attached = Attached {
        device: device.to_owned(),
        namespace: state::namespace(),
        name,
        discipline: plan.spec.to_string(),
        rate: plan.params.rate,
        object: object.id,
        counters: object.map(".data.counters")?,
        params: object.map(".data.params")?,
        previous,
        owner: Process::own().filter(|_| request.keep),
    };
    object.pin(&attached.file_stem())?;
    attached.write()?;
    tc::replace(device, &attached.name, request.overhead).inspect_err(|_| {
        let _ = fs::remove_file(attached.path());
    })?;
    Ok(attached)
}

/// Removes the discipline of an interface and restores the qdisc that was there before. Returns a sentence if
/// that qdisc could not be restored.
///
/// # Errors
/// If the interface has no discipline, or it cannot be removed.
pub fn unload(device: &str) -> Result<Option<String>, KernelError> {
    let Some(attached) = find(device)? else {
        return Err(KernelError::precondition(format!(
            "{device} has no discipline of Giveway: giveway kernel list"
        )));
    };
    let mut missing = None;
    // If the interface was removed, or has another qdisc by now, its root is left alone.
    if is_attached(&attached) {
        tc::delete(device)?;
        if let Some(previous) = &attached.previous
            && let Err(error) = tc::restore(device, previous)
        {
            missing =
                Some(format!("the former qdisc of {device}, \"{previous}\", was not restored: {error}"));
        }
    }
    forget(&attached)?;
    Ok(missing)
}

/// Removes the record of a discipline, its pins and its object.
fn forget(attached: &Attached) -> Result<(), KernelError> {
    bpf::unpin(&attached.file_stem());
    let path = attached.path();
    fs::remove_file(&path).map_err(KernelError::file(&path))?;
    bpf::unregister(attached.object)
}

/// Removes the objects and records of interfaces that no longer exist, in this network namespace or in one
/// that no longer exists. Returns these records.
///
/// # Errors
/// If a record cannot be read, or an object cannot be removed.
pub fn unload_gone() -> Result<Vec<Attached>, KernelError> {
    let here = state::namespace();
    let is_gone = |attached: &Attached| {
        if attached.namespace == here {
            !state::has_interface(&attached.device)
        } else {
            attached.namespace.is_some_and(|number| !state::has_namespace(number))
        }
    };
    let gone: Vec<Attached> = all()?.into_iter().filter(is_gone).collect();
    gone.iter().try_for_each(forget)?;
    // Folders of compilers that were killed.
    for entry in fs::read_dir(STATE).into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let process =
            name.strip_suffix(".build").and_then(|name| name.rsplit_once('.')?.1.parse::<u32>().ok());
        if process.is_some_and(|process| !Path::new("/proc").join(process.to_string()).exists()) {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
    Ok(gone)
}

/// True if a discipline is still at the root of its interface, in the caller's network namespace.
pub fn is_attached(attached: &Attached) -> bool {
    tc::root_name(&attached.device).is_ok_and(|name| name.as_ref() == Some(&attached.name))
}

/// Writes all parameters of a loaded discipline, for example to change its rate.
///
/// # Errors
/// If the kernel no longer has the discipline.
pub fn set_params(attached: &Attached, plan: &Plan) -> Result<(), KernelError> {
    bpf::write_params(attached.params, &plan.params)
}

/// The counters of a discipline by name, in the order of the C struct.
///
/// # Errors
/// If the kernel no longer has the discipline.
pub fn counters(attached: &Attached) -> Result<Vec<(String, u64)>, KernelError> {
    bpf::counters(attached.counters)
}

/// A name for the qdisc that no other interface has.
fn free_name(plan: &Plan) -> Result<String, KernelError> {
    let taken: Vec<String> = all()?.into_iter().map(|attached| attached.name).collect();
    let first = format!("giveway_{}", plan.kind.name());
    let names = std::iter::once(first.clone()).chain((2..).map(|nth| format!("{first}_{nth}")));
    let free = names.take_while(|name| name.len() <= LONGEST_NAME).find(|name| !taken.contains(name));
    free.ok_or_else(|| KernelError::precondition(format!("all names from {first} on are in use: unload one")))
}
