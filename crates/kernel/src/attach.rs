//! A discipline is put on an interface, shown, and taken away again.
//!
//! - What the kernel does not remember is in a file per interface below [`STATE`]: which object is whose, and which qdisc was
//!   there before. The counters are pinned below [`PINS`], so that others can read them, too.
//! - A network namespace has interfaces of its own: `eth0` here is not `eth0` there, and what is remembered of them is not the same file.
//!   Objects are the whole machine's. What belonged to an interface that is no more is found by [`gone`].
//! - Each interface has an object of its own, under a name of its own (`giveway_efd`, `giveway_efd_2`): the variables of an object are
//!   shared by all qdiscs of its name. The discipline refuses a second one itself.
//! - Either all of it is done or nothing is left: a step that fails takes back those before it.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::KernelError;
use crate::object::{self, Recipe};
use crate::printed;
use crate::tools::{BPFTOOL, TC, UNSHARE};
use giveway_kernel_plan::plan::{Params, Plan};

/// Where it is remembered what was loaded.
pub const STATE: &str = "/run/giveway/kernel";
/// Where maps are pinned, in a folder per interface.
pub const PINS: &str = "/sys/fs/bpf/giveway";

/// Marks below have a map without a hash: `kernel/port.h`.
const LOW_MARKS: u32 = 1024;
/// The longest name that a qdisc has.
const LONGEST_NAME: usize = 15;
/// Qdiscs whose classes would be lost.
const CLASSFUL: [&str; 9] = ["htb", "hfsc", "drr", "qfq", "ets", "prio", "cbq", "mqprio", "taprio"];

/// A discipline that was loaded.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attached {
    /// The interface.
    pub device: String,
    /// The network namespace that it is in, by the kernel's number; none: that in which this machine began.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<u64>,
    /// What tc calls it.
    pub name: String,
    /// The discipline, as it is spelled.
    pub discipline: String,
    /// The rate at which it sends, bit/s; 0: it does not limit it.
    pub rate: u64,
    /// The kernel's number of the object.
    object: u64,
    /// The kernel's number of the map with the counters.
    counters: u64,
    /// The kernel's number of the map with the parameters.
    params: u64,
    /// The qdisc that was there before, as tc would be told; none where it was the default.
    before: Option<String>,
    /// Who takes it away again, where that is a process that lives on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    keeper: Option<Process>,
}

/// A process, and when it began, in ticks since the machine did: its number may be that of another one later.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Process {
    number: u32,
    began: u64,
}

impl Process {
    fn own() -> Option<Process> {
        let number = std::process::id();
        Some(Process { number, began: began(number)? })
    }

    fn lives(self) -> bool {
        began(self.number) == Some(self.began)
    }
}

fn began(process: u32) -> Option<u64> {
    let text = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    // The name of the program, in brackets, may hold anything; this is the 22nd field, the 20th after it.
    text.rsplit_once(')')?.1.split_whitespace().nth(19)?.parse().ok()
}

/// Where the program comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source<'a> {
    /// It is compiled here.
    Compiled,
    /// An object that was built elsewhere.
    Object(&'a Path),
    /// A folder of such, each called after what tc will call it: `giveway_efd.o`.
    Folder(&'a Path),
}

/// What is to be put where.
#[derive(Clone, Debug)]
pub struct LoadRequest<'a> {
    /// The interface.
    pub device: &'a str,
    /// The discipline.
    pub plan: &'a Plan,
    /// What marks of packets say: the rates of flows in bit/s, or ways (see [`Plan::ways`]).
    pub reservations: &'a [(u32, u64)],
    /// Where the program comes from.
    pub source: Source<'a>,
    /// Bytes that a packet has on the link beyond what the kernel counts, which is with its Ethernet header.
    pub overhead: i32,
    /// Whether this process takes it away again: what it left when it was killed is in nobody's way.
    pub keep: bool,
    /// Take the place of a qdisc that somebody put there.
    pub replace: bool,
}

/// The largest packet of an interface, as the kernel's qdiscs count it.
///
/// # Errors
/// When there is no such interface.
pub fn largest_packet(device: &str) -> Result<u64, KernelError> {
    let folder = Path::new("/sys/class/net").join(device);
    let number = |name: &str| fs::read_to_string(folder.join(name)).ok()?.trim().parse::<u64>().ok();
    let valid = !device.is_empty() && !device.contains('/');
    let (true, Some(mtu), Some(kind)) = (valid, number("mtu"), number("type")) else {
        let entries = fs::read_dir("/sys/class/net").into_iter().flatten().flatten();
        let mut there: Vec<String> =
            entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
        there.sort();
        return Err(KernelError::precondition(format!(
            "there is no interface {device:?}: there are {}",
            there.join(", ")
        )));
    };
    // ARPHRD_ETHER.
    Ok(mtu + if kind == 1 { 14 } else { 0 })
}

/// Whether this machine can have a discipline in its kernel.
///
/// # Errors
/// What is missing, and what to do about it.
pub fn ready() -> Result<(), KernelError> {
    let root = fs::metadata("/proc/self").is_ok_and(|of| of.uid() == 0);
    if !root {
        return Err(KernelError::precondition("a qdisc is loaded by root: say it again with sudo"));
    }
    let release = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let release = release.trim();
    let types = match fs::read(object::RUNNING) {
        Ok(types) => types,
        Err(_) => {
            let what = format!(
                "this kernel ({release}) does not show its types ({} is missing): it needs CONFIG_DEBUG_INFO_BTF, as the kernels of \
                 distributions have it",
                object::RUNNING
            );
            return Err(KernelError::precondition(what));
        }
    };
    let needed: &[u8] = b"\0bpf_qdisc_skb_drop\0";
    if !types.windows(needed.len()).any(|window| window == needed) {
        let what = format!(
            "this kernel ({release}) takes no qdiscs in BPF: it needs Linux 6.16 or later, built with CONFIG_NET_SCH_BPF; giveway live \
             does the same without"
        );
        return Err(KernelError::precondition(what));
    }
    let mounts = fs::read_to_string("/proc/mounts").unwrap_or_default();
    if !mounts.lines().any(|line| line.split(' ').nth(1) == Some("/sys/fs/bpf")) {
        return Err(KernelError::precondition("no BPF file system is mounted: mount -t bpf bpf /sys/fs/bpf"));
    }
    Ok(())
}

/// Puts a discipline on an interface.
///
/// # Errors
/// When something is missing, the interface has one already, or a step fails; then nothing is left of it.
pub fn load(request: &LoadRequest<'_>) -> Result<Attached, KernelError> {
    let LoadRequest { device, plan, .. } = *request;
    ready()?;
    if let Some(there) = find(device)?
        && there.keeper.is_some_and(|keeper| !keeper.lives())
    {
        unload(device)?;
    }
    if let Some(there) = find(device)? {
        let what = format!("{device} already has {}: giveway kernel unload --dev {device}", there.name);
        return Err(KernelError::precondition(what));
    }
    let before = before(device, request.replace)?;
    fs::create_dir_all(STATE).map_err(KernelError::file(STATE))?;
    let name = free_name(plan)?;
    let loaded = match request.source {
        Source::Object(path) => Loaded::register(path)?,
        Source::Folder(folder) => {
            let path = folder.join(format!("{name}.o"));
            if !path.exists() {
                let what = format!(
                    "{} is not there: giveway kernel build \"{}\" --name {name} --out {}",
                    path.display(),
                    plan.spelling(),
                    path.display()
                );
                return Err(KernelError::precondition(what));
            }
            Loaded::register(&path)?
        }
        Source::Compiled => {
            let path = Path::new(STATE).join(format!("{name}.bpf.o"));
            let recipe = Recipe {
                kind: plan.kind,
                name: &name,
                room: plan.room,
                journal: None,
                btf: Path::new(object::RUNNING),
            };
            object::build(&recipe, &path)?;
            let loaded = Loaded::register(&path);
            let _ = fs::remove_file(&path);
            loaded?
        }
    };
    let attached = put(request, before, &loaded);
    if attached.is_err() {
        remove_pins(&place(device, namespace()));
        loaded.unregister();
    }
    attached
}

fn put(request: &LoadRequest<'_>, before: Option<String>, loaded: &Loaded) -> Result<Attached, KernelError> {
    let LoadRequest { device, plan, .. } = *request;
    let name = loaded.name()?;
    if !name.starts_with(&format!("giveway_{}", plan.kind.name())) {
        return Err(KernelError::precondition(format!(
            "the object is {name}, which is no {}",
            plan.kind.name()
        )));
    }
    if loaded.room < u64::from(plan.room) {
        let what = format!(
            "the object has room for {} packets and flows, and {} needs {}: build it with the same parameters",
            loaded.room, plan.spec, plan.room
        );
        return Err(KernelError::precondition(what));
    }
    loaded.write(".data.params", &[0; 4], &bytes(&plan.params))?;
    for (mark, rate) in request.reservations {
        let map = if *mark < LOW_MARKS { "low_marks" } else { "reservations" };
        loaded.write(map, &mark.to_ne_bytes(), &rate.to_ne_bytes())?;
    }
    let namespace = namespace();
    let place = place(device, namespace);
    let attached = Attached {
        device: device.to_owned(),
        namespace,
        name: name.clone(),
        discipline: plan.spec.to_string(),
        rate: plan.params.rate,
        object: loaded.object,
        counters: loaded.map(".data.counters")?,
        params: loaded.map(".data.params")?,
        before,
        keeper: Process::own().filter(|_| request.keep),
    };
    let pins = Path::new(PINS).join(&place);
    fs::create_dir_all(&pins).map_err(KernelError::file(&pins))?;
    for (map, id) in &loaded.maps {
        let pin = match map.as_str() {
            ".data.counters" => "counters",
            ".data.params" => "params",
            "reservations" | "low_marks" | "journal" => map,
            _ => continue,
        };
        BPFTOOL.run(&["map", "pin", "id", &id.to_string(), &pins.join(pin).to_string_lossy()])?;
    }
    let path = state(&place);
    let text = serde_json::to_string_pretty(&attached).expect("it is plain data");
    // Whoever looks meanwhile sees all of it or nothing.
    let partial = path.with_extension("partial");
    fs::write(&partial, text).map_err(KernelError::file(&partial))?;
    fs::rename(&partial, &path).map_err(KernelError::file(&path))?;
    let more = request.overhead.to_string();
    let counted = ["stab", "overhead", &more, "linklayer", "ethernet"];
    let counted: &[&str] = if request.overhead == 0 { &[] } else { &counted };
    let words = [&["qdisc", "replace", "dev", device, "root"], counted, &[name.as_str()]].concat();
    TC.run(&words).inspect_err(|_| {
        let _ = fs::remove_file(&path);
    })?;
    Ok(attached)
}

/// Takes the discipline of an interface away, and puts back what was there. The answer is what could not be put back, in a sentence.
///
/// # Errors
/// When there is none, or it cannot be removed.
pub fn unload(device: &str) -> Result<Option<String>, KernelError> {
    let Some(there) = find(device)? else {
        return Err(KernelError::precondition(format!(
            "{device} has no discipline of giveway: giveway kernel list"
        )));
    };
    // Somebody may have removed the interface, or put another qdisc there meanwhile: that one stays.
    let mut missing = None;
    if is_attached(&there) {
        TC.run(&["qdisc", "del", "dev", device, "root"])?;
        if let Some(before) = &there.before {
            let words = ["qdisc", "add", "dev", device, "root"].into_iter().chain(before.split(' '));
            if let Err(error) = TC.run(&words.collect::<Vec<_>>()) {
                missing = Some(format!("{device} had \"{before}\", which tc does not take back: {error}"));
            }
        }
    }
    forget(&there)?;
    Ok(missing)
}

/// What is remembered of a discipline, and its object.
fn forget(of: &Attached) -> Result<(), KernelError> {
    let place = place(&of.device, of.namespace);
    remove_pins(&place);
    let path = state(&place);
    fs::remove_file(&path).map_err(KernelError::file(&path))?;
    BPFTOOL.run(&["struct_ops", "unregister", "id", &of.object.to_string()]).map(drop)
}

/// Takes away what belonged to interfaces that are no more, in this network namespace or in one that is no more; whose that was.
///
/// # Errors
/// When what is remembered cannot be read, or an object cannot be removed.
pub fn unload_gone() -> Result<Vec<Attached>, KernelError> {
    let here = namespace();
    let gone = |of: &Attached| {
        if of.namespace == here {
            !has_interface(&of.device)
        } else {
            of.namespace.is_some_and(|number| !has_namespace(number))
        }
    };
    let gone: Vec<Attached> = all()?.into_iter().filter(gone).collect();
    gone.iter().try_for_each(forget)?;
    // What a compiler left that was killed with us.
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

/// Whether a discipline is still at the root of its interface, in the network namespace of the caller.
pub fn is_attached(of: &Attached) -> bool {
    root(&of.device).is_ok_and(|root| root.is_some_and(|root| root["kind"] == of.name.as_str()))
}

/// Tells a discipline another rate. What else it was told must be in `plan`, which is for that rate.
///
/// # Errors
/// When the kernel does not have it any more.
pub fn set_params(of: &Attached, plan: &Plan) -> Result<(), KernelError> {
    update(of.params, &[0; 4], &bytes(&plan.params))
}

/// What was loaded on this machine, in all network namespaces, by interface.
///
/// # Errors
/// When what is remembered cannot be read.
pub fn all() -> Result<Vec<Attached>, KernelError> {
    let mut all = Vec::new();
    let entries = match fs::read_dir(STATE) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(all),
        Err(error) => return Err(KernelError::file(STATE)(error)),
    };
    for path in entries
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|end| end == "json"))
    {
        let text = match fs::read_to_string(&path) {
            Ok(text) => text,
            // Unloaded meanwhile, by somebody else.
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => continue,
            Err(error) => return Err(KernelError::file(&path)(error)),
        };
        all.push(
            serde_json::from_str(&text).map_err(|error| {
                KernelError::precondition(format!("{}: {error}; remove it", path.display()))
            })?,
        );
    }
    all.sort_by(|one: &Attached, other: &Attached| {
        (&one.device, one.namespace).cmp(&(&other.device, other.namespace))
    });
    Ok(all)
}

/// What an interface has that is in the network namespace of the caller.
///
/// # Errors
/// When what is remembered cannot be read.
pub fn find(device: &str) -> Result<Option<Attached>, KernelError> {
    let here = namespace();
    Ok(all()?.into_iter().find(|attached| attached.device == device && attached.namespace == here))
}

/// The counters of a discipline, by name, in the order in which it has them.
///
/// # Errors
/// When the kernel does not have it any more.
pub fn counters(of: &Attached) -> Result<Vec<(String, u64)>, KernelError> {
    let dump = BPFTOOL.json(&["-j", "map", "dump", "id", &of.counters.to_string()])?;
    printed::counters(&dump).ok_or_else(|| {
        let command = format!("bpftool map dump id {}", of.counters);
        KernelError::Failed { command, said: "it shows no counters".to_owned() }
    })
}

/// An object in the kernel.
struct Loaded {
    object: u64,
    maps: Vec<(String, u64)>,
    room: u64,
}

impl Loaded {
    fn register(path: &Path) -> Result<Loaded, KernelError> {
        // Which number it got is told as a remark.
        let (out, err) = match BPFTOOL.all(&["struct_ops", "register", &path.to_string_lossy()]) {
            // That is all that bpftool says of a name that is taken.
            Err(KernelError::Failed { said, .. }) if said.contains("can't register") => {
                let what = format!(
                    "{}: the kernel has a qdisc of that name already: build it under another one, as giveway kernel build efd --name \
                     giveway_efd_2",
                    path.display()
                );
                return Err(KernelError::precondition(what));
            }
            other => other?,
        };
        let said = format!("{out}{err}");
        let Some(object) = printed::registered(&said) else {
            let command = format!("bpftool struct_ops register {}", path.display());
            return Err(KernelError::Failed { command, said });
        };
        let mut loaded = Loaded { object, maps: Vec::new(), room: 0 };
        let all = BPFTOOL.json(&["-j", "map", "show"]).inspect_err(|_| loaded.unregister())?;
        (loaded.maps, loaded.room) = printed::maps(&all, object);
        Ok(loaded)
    }

    fn unregister(&self) {
        // There is another error already, which is the one to tell.
        let _ = BPFTOOL.run(&["struct_ops", "unregister", "id", &self.object.to_string()]);
    }

    fn map(&self, name: &str) -> Result<u64, KernelError> {
        let found = self.maps.iter().find(|(other, _)| other == name);
        found.map(|(_, id)| *id).ok_or_else(|| {
            KernelError::precondition(format!("the object has no map {name}: it is not one of giveway's"))
        })
    }

    /// What tc calls it.
    fn name(&self) -> Result<String, KernelError> {
        let dump = BPFTOOL.run(&["-j", "struct_ops", "dump", "id", &self.object.to_string()])?;
        printed::object_name(&dump)
            .ok_or_else(|| KernelError::precondition("the object has no name: it is not one of giveway's"))
    }

    fn write(&self, map: &str, key: &[u8], value: &[u8]) -> Result<(), KernelError> {
        update(self.map(map)?, key, value)
    }
}

fn update(map: u64, key: &[u8], value: &[u8]) -> Result<(), KernelError> {
    let id = map.to_string();
    let (key, value) = (hex(key), hex(value));
    let mut words = vec!["map", "update", "id", &id, "key", "hex"];
    words.extend(key.iter().map(String::as_str));
    words.extend(["value", "hex"]);
    words.extend(value.iter().map(String::as_str));
    BPFTOOL.run(&words).map(drop)
}

fn hex(bytes: &[u8]) -> Vec<String> {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn bytes(params: &Params) -> Vec<u8> {
    params.words().into_iter().flat_map(|(_, word)| word.to_ne_bytes()).collect()
}

/// A name that nobody has yet.
fn free_name(plan: &Plan) -> Result<String, KernelError> {
    let taken: Vec<String> = all()?.into_iter().map(|attached| attached.name).collect();
    let first = format!("giveway_{}", plan.kind.name());
    let names = std::iter::once(first.clone()).chain((2..).map(|nth| format!("{first}_{nth}")));
    let free = names.take_while(|name| name.len() <= LONGEST_NAME).find(|name| !taken.contains(name));
    free.ok_or_else(|| KernelError::precondition(format!("there are too many of {first} on this machine")))
}

/// The qdisc at the root of an interface.
fn root(device: &str) -> Result<Option<Value>, KernelError> {
    let all = TC.json(&["-j", "qdisc", "show", "dev", device])?;
    Ok(printed::root_qdisc(&all).cloned())
}

/// What has to be put back afterwards: nothing where it is the default.
fn before(device: &str, replace: bool) -> Result<Option<String>, KernelError> {
    let Some(root) = root(device)? else { return Ok(None) };
    let kind = root["kind"].as_str().unwrap_or_default();
    // Whoever puts a qdisc somewhere gives it a handle; the default has none.
    if root["handle"] == "0:" {
        return Ok(None);
    }
    if kind.starts_with("giveway_") {
        let what = format!(
            "{device} already has {kind}, which was put there by hand: tc qdisc del dev {device} root"
        );
        return Err(KernelError::precondition(what));
    }
    if CLASSFUL.contains(&kind) {
        let what = format!(
            "{device} has {kind} with its classes, which could not be put back: remove it (tc qdisc del dev {device} root), or take another \
             interface"
        );
        return Err(KernelError::precondition(what));
    }
    if !replace {
        let what = format!(
            "{device} has {kind}, which somebody put there: say --replace to take its place until unload"
        );
        return Err(KernelError::precondition(what));
    }
    let text = TC.run(&["qdisc", "show", "dev", device, "root"])?;
    let Some(typed) = text.lines().next().map(printed::as_typed) else { return Ok(None) };
    if let Err(KernelError::Failed { said, .. }) = try_elsewhere(&typed) {
        let what = format!(
            "{device} has \"{typed}\", which could not be put back ({said}): remove it (tc qdisc del dev {device} root), or take another \
             interface"
        );
        return Err(KernelError::precondition(what));
    }
    Ok(Some(typed))
}

/// Whether tc takes these words, asked in a network namespace that is gone at once.
fn try_elsewhere(typed: &str) -> Result<String, KernelError> {
    let words = ["--net", TC.name, "qdisc", "add", "dev", "lo", "root"].into_iter().chain(typed.split(' '));
    UNSHARE.run(&words.collect::<Vec<_>>())
}

/// The network namespace of the calling thread, by the kernel's number; none: that in which this machine began.
fn namespace() -> Option<u64> {
    let number = |whose: &str| {
        let link = fs::read_link(format!("/proc/{whose}/ns/net")).ok()?;
        link.to_str()?.strip_prefix("net:[")?.strip_suffix(']')?.parse::<u64>().ok()
    };
    // Who may not see that of the first process is no root, and loads nothing.
    number("thread-self").filter(|here| number("1").is_some_and(|first| first != *here))
}

/// Whether a namespace is still there: it has a process, or somebody keeps it by a mount, as ip netns does.
fn has_namespace(number: u64) -> bool {
    let text = format!("net:[{number}]");
    let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    mounts.contains(&text)
        || processes.into_iter().any(|process| {
            fs::read_link(process.path().join("ns/net")).is_ok_and(|link| link.as_os_str() == text.as_str())
        })
}

/// Whether the caller's namespace has an interface: unlike `/sys`, this file is that of the thread.
fn has_interface(device: &str) -> bool {
    let text = fs::read_to_string("/proc/thread-self/net/dev").unwrap_or_default();
    text.lines().any(|line| line.split_once(':').is_some_and(|(name, _)| name.trim() == device))
}

/// What files about an interface are called.
fn place(device: &str, namespace: Option<u64>) -> String {
    namespace.map_or_else(|| device.to_owned(), |number| format!("{device}@{number}"))
}

fn state(place: &str) -> PathBuf {
    Path::new(STATE).join(format!("{place}.json"))
}

fn remove_pins(place: &str) {
    // Where nothing is pinned nothing has to go.
    let pins = Path::new(PINS).join(place);
    for pin in fs::read_dir(&pins).into_iter().flatten().flatten() {
        let _ = fs::remove_file(pin.path());
    }
    let _ = fs::remove_dir(&pins);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_written_as_the_kernel_reads_them() {
        let params = Params { rate: 0x0102, ..Params::default() };
        assert_eq!(hex(&bytes(&params)[..8]), 0x0102u64.to_ne_bytes().map(|byte| format!("{byte:02x}")));
        assert_eq!(bytes(&params).len(), 104);
    }

    #[test]
    fn this_process_lives_and_another_of_its_number_does_not() {
        let own = Process::own().unwrap();
        assert!(own.lives() && !Process { began: own.began + 1, ..own }.lives());
    }

    #[test]
    fn interfaces_of_two_namespaces_are_two() {
        assert_eq!([place("eth0", None), place("eth0", Some(4026))], ["eth0", "eth0@4026"]);
        let own = fs::read_link("/proc/self/ns/net").unwrap().to_string_lossy().into_owned();
        let own = own.trim_start_matches("net:[").trim_end_matches(']').parse().unwrap();
        assert!(has_namespace(own) && !has_namespace(1));
        assert!(has_interface("lo") && !has_interface("no-such"));
    }

    #[test]
    fn an_interface_that_is_not_there_is_named() {
        let error = largest_packet("no such thing").unwrap_err().to_string();
        assert!(error.contains("there are ") && error.contains("lo"), "{error}");
        assert_eq!(largest_packet("lo").unwrap(), 65_536);
    }
}
