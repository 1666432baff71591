//! Where a test bed stands: three or four network namespaces, joined by pairs of virtual interfaces.
//!
//! ```text
//! near: cli ==== left :line: right ==== srv :far
//! near: cli ==== left :line: right ==== wire0 :wire: wire1 ==== srv :far      where the kernel routes and there is a delay
//! ```
//!
//! # Principles
//! - The hosts of a side share a namespace and an interface; each is an address there. The router has the middle.
//! - What the machine would do behind our back is off: offloads (a frame is what TCP calls a segment, with its checksum in
//!   it), IPv6 (which announces itself), ARP (neighbours are written down), TCP's memory of earlier connections.
//! - Interfaces are made inside namespaces of ours and nowhere else, so no interface of the machine is ever touched.
//! - A namespace is named after the process that made it, with the moment at which that began. A shell watches over it: it
//!   reads from a pipe that only we can write to, and when that ends, because we are done or because somebody killed us, it
//!   removes the namespaces. Whoever kills the shell, too, leaves them to the next start, which removes those of processes
//!   that are no more.
//!
//! # Cost
//! - About twenty short-lived processes, half a second.

use std::fs::{self, File};
use std::io;
use std::net::Ipv4Addr;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;

use nix::sched::{CloneFlags, setns};
use qdisc::Bytes;
use scenario::Live;
use sim::TcpConfig;

use crate::command::{run, run_with};
use crate::trouble::Trouble;

/// One of the namespaces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Corner {
    /// The hosts in front of the bottleneck.
    Near,
    /// The router.
    Line,
    /// A wire that takes time, between a router that has none and the far side.
    Wire,
    /// The hosts beyond it.
    Far,
}

impl Corner {
    const ALL: [Corner; 4] = [Corner::Near, Corner::Line, Corner::Wire, Corner::Far];

    fn name(self) -> &'static str {
        match self {
            Corner::Near => "near",
            Corner::Line => "line",
            Corner::Wire => "wire",
            Corner::Far => "far",
        }
    }
}

/// What is in the middle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Middle {
    /// The kernel forwards packets from one interface to the other.
    Routed,
    /// The same, and somebody else passes frames on between it and the far side, some time later.
    RoutedLate,
    /// Somebody else passes frames on, as they are.
    Bridged,
}

/// The router's interface towards the near side.
pub const LEFT: &str = "left";
/// The router's interface towards the far side.
pub const RIGHT: &str = "right";

const CLI: End = End { corner: Corner::Near, name: "cli", mac: "02:00:00:00:01:01" };
const SRV: End = End { corner: Corner::Far, name: "srv", mac: "02:00:00:00:02:01" };
const INNER_LEFT: End = End { corner: Corner::Line, name: LEFT, mac: "02:00:00:00:01:02" };
const INNER_RIGHT: End = End { corner: Corner::Line, name: RIGHT, mac: "02:00:00:00:02:02" };

/// The wire's interface towards the router.
pub const WIRE_LEFT: &str = "wire0";
/// The wire's interface towards the far side.
pub const WIRE_RIGHT: &str = "wire1";

const WIRE_A: End = End { corner: Corner::Wire, name: WIRE_LEFT, mac: "02:00:00:00:03:01" };
const WIRE_B: End = End { corner: Corner::Wire, name: WIRE_RIGHT, mac: "02:00:00:00:03:02" };

struct End {
    corner: Corner,
    name: &'static str,
    mac: &'static str,
}

/// A test bed that stands. Dropping it removes it.
pub struct Space {
    names: Names,
    watcher: Child,
    /// Address and namespace of each node that is a host, by the scenario's number.
    hosts: Vec<Option<(Corner, Ipv4Addr)>>,
}

impl Space {
    /// Builds it for a scenario. `program` is `giveway`, which removes from the kernel what belonged to it.
    ///
    /// # Errors
    /// What the machine refuses.
    pub fn build(live: &Live, middle: Middle, program: &Path) -> Result<Space, Trouble> {
        remove_leftovers()?;
        let names = Names::new();
        let watcher = watch(&names, program)?;
        let mut hosts = vec![None; live.network.nodes.len()];
        for (corner, nodes) in [(Corner::Near, &live.near), (Corner::Far, &live.far)] {
            for (node, number) in nodes.iter().zip(1..) {
                hosts[usize::from(*node)] = Some((corner, Ipv4Addr::new(10, net(corner), 0, number)));
            }
        }
        // From here on dropping it takes away what there is.
        let space = Space { names, watcher, hosts };
        let late = middle == Middle::RoutedLate;
        for corner in Corner::ALL.into_iter().filter(|corner| late || *corner != Corner::Wire) {
            run(&["ip", "netns", "add", &space.name(corner)])?;
            space.within(corner, || settings(corner, &live.tcp))??;
        }
        space.pair(&CLI, &INNER_LEFT)?;
        if late {
            space.pair(&WIRE_A, &INNER_RIGHT)?;
            space.pair(&SRV, &WIRE_B)?;
        } else {
            space.pair(&SRV, &INNER_RIGHT)?;
        }
        space.side(&CLI, &INNER_LEFT, &SRV, middle, &live.tcp)?;
        space.side(&SRV, &INNER_RIGHT, &CLI, middle, &live.tcp)?;
        if middle != Middle::Bridged {
            space.within(Corner::Line, || write("ipv4/ip_forward", "1"))??;
        }
        Ok(space)
    }

    /// What a namespace is called, for `ip netns exec`.
    pub fn name(&self, corner: Corner) -> String {
        self.names.of(corner)
    }

    /// Namespace and address of each node that is a host, by the scenario's number.
    pub fn hosts(&self) -> &[Option<(Corner, Ipv4Addr)>] {
        &self.hosts
    }

    /// The way into a namespace.
    ///
    /// # Errors
    /// When it is not there any more.
    pub fn door(&self, corner: Corner) -> Result<Door, Trouble> {
        let path = PathBuf::from(NETNS).join(self.name(corner));
        let opened = File::open(&path).map(Door);
        opened.map_err(Trouble::system(format!("open {}", path.display())))
    }

    /// Does something on a thread of its own inside a namespace.
    ///
    /// # Errors
    /// When the namespace cannot be entered.
    pub fn within<T: Send>(&self, corner: Corner, what: impl FnOnce() -> T + Send) -> Result<T, Trouble> {
        let door = self.door(corner)?;
        thread::scope(|scope| {
            let inside = scope.spawn(move || {
                door.enter()?;
                Ok(what())
            });
            inside.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        })
    }

    /// Two joined interfaces that cut, merge and checksum nothing behind the scenes.
    fn pair(&self, outer: &End, inner: &End) -> Result<(), Trouble> {
        let end = |end: &End| {
            let space = self.name(end.corner);
            format!("netns {space} address {} mtu 1500 numtxqueues 1 numrxqueues 1", end.mac)
        };
        let (outer_name, inner_name) = (outer.name, inner.name);
        let command =
            format!("link add {outer_name} {} type veth peer {inner_name} {}\n", end(outer), end(inner));
        batch(None, &command)?;
        for end in [outer, inner] {
            let space = self.name(end.corner);
            let off = ["tso", "off", "gso", "off", "gro", "off", "tx", "off", "rx", "off"];
            let command = ["ip", "netns", "exec", &space, "ethtool", "-K", end.name];
            run(&[&command[..], &off[..]].concat())?;
            batch(Some(&space), &format!("link set lo up\nlink set {} up\n", end.name))?;
        }
        Ok(())
    }

    /// Addresses, routes and neighbours of one side.
    fn side(
        &self,
        outer: &End,
        inner: &End,
        other: &End,
        middle: Middle,
        tcp: &TcpConfig,
    ) -> Result<(), Trouble> {
        let (mine, theirs) = (net(outer.corner), net(other.corner));
        let gateway = format!("10.{mine}.255.254");
        let next = if middle == Middle::Bridged { other.mac } else { inner.mac };
        let name = outer.name;
        let mut here = String::new();
        let mut there = format!("addr add {gateway}/32 dev {}\n", inner.name);
        there += &format!("route add 10.{mine}.0.0/24 dev {} scope link\n", inner.name);
        for (corner, address) in self.hosts.iter().flatten().filter(|(corner, _)| *corner == outer.corner) {
            debug_assert_eq!(*corner, outer.corner);
            here += &format!("addr add {address}/32 dev {name}\n");
            let mac = outer.mac;
            there += &format!("neigh replace {address} lladdr {mac} dev {} nud permanent\n", inner.name);
        }
        here += &format!("route add {gateway} dev {name} scope link\n");
        here += &format!("neigh replace {gateway} lladdr {next} dev {name} nud permanent\n");
        here += &format!("route add 10.{theirs}.0.0/24 via {gateway} dev {name} {}\n", route(tcp));
        batch(Some(&self.name(outer.corner)), &here)?;
        if middle != Middle::Bridged {
            batch(Some(&self.name(Corner::Line)), &there)?;
        }
        Ok(())
    }
}

impl Drop for Space {
    /// Lets the watcher do its work, and waits for it.
    fn drop(&mut self) {
        drop(self.watcher.stdin.take());
        // It cannot be told any more if this fails, and the next start tries again.
        let _ = self.watcher.wait();
    }
}

/// The way into a namespace.
pub struct Door(File);

impl Door {
    /// The calling thread is in the namespace from now on: sockets that it makes are there, and stay there.
    ///
    /// # Errors
    /// Without the privilege.
    pub fn enter(&self) -> Result<(), Trouble> {
        setns(&self.0, CloneFlags::CLONE_NEWNET).map_err(Trouble::system("enter a network namespace"))
    }
}

const NETNS: &str = "/run/netns";

/// The second byte of the addresses of a side.
fn net(corner: Corner) -> u8 {
    match corner {
        Corner::Near => 1,
        Corner::Far => 2,
        Corner::Line | Corner::Wire => 0,
    }
}

/// What TCP takes from the route of a connection.
fn route(tcp: &TcpConfig) -> String {
    let ms = tcp.rto_min.as_ps().div_ceil(1_000_000_000);
    let quick = if tcp.delayed_ack { "" } else { " quickack 1" };
    let (first, window) = (tcp.initial_window.0, tcp.receive_window.0);
    format!("initcwnd {first} window {window} rto_min {ms}ms{quick}")
}

/// What TCP takes from its namespace.
fn settings(corner: Corner, tcp: &TcpConfig) -> Result<(), Trouble> {
    for which in ["all", "default"] {
        // A kernel without IPv6 has nothing to switch off.
        let _ = write(&format!("ipv6/conf/{which}/disable_ipv6"), "1");
        // Packets of the router come from hosts that are behind another interface in the eyes of this check.
        write(&format!("ipv4/conf/{which}/rp_filter"), "0")?;
    }
    if [Corner::Line, Corner::Wire].contains(&corner) {
        return Ok(());
    }
    let switch = |on: bool| if on { "1" } else { "0" };
    let never = |times: u32, most: u32| if times == 0 { most.to_string() } else { times.to_string() };
    write("ipv4/tcp_timestamps", switch(tcp.mss < Bytes(1460)))?;
    write("ipv4/tcp_sack", switch(tcp.sack))?;
    write("ipv4/tcp_dsack", switch(tcp.sack))?;
    write("ipv4/tcp_ecn", switch(tcp.ecn))?;
    write("ipv4/tcp_retries2", &never(tcp.give_up, 255))?;
    write("ipv4/tcp_syn_retries", &never(tcp.give_up_handshake, 127))?;
    write("ipv4/tcp_no_metrics_save", "1")?;
    // Twice the window, since the kernel counts what it takes to keep a packet; and never less than its own defaults.
    let most = (2 * tcp.receive_window.0).max(6_291_456);
    write("ipv4/tcp_rmem", &format!("4096 131072 {most}"))?;
    write("ipv4/tcp_wmem", "4096 16384 4194304")?;
    write("ipv4/ip_local_port_range", "1024 65535")?;
    write("core/somaxconn", "4096")
}

/// Writes a setting of the namespace that the thread is in.
fn write(setting: &str, value: &str) -> Result<(), Trouble> {
    let path = format!("/proc/sys/net/{setting}");
    fs::write(&path, value).map_err(Trouble::system(format!("write {value} to {path}")))
}

/// Several commands of `ip`, in a namespace or in that of the caller.
fn batch(space: Option<&str>, commands: &str) -> Result<(), Trouble> {
    let within: &[&str] = match &space {
        Some(space) => &["-n", space],
        None => &[],
    };
    run_with(&[&["ip"], within, &["-batch", "-"]].concat(), commands).map(drop)
}

/// What the namespaces of one test bed are called: `gw1234s5678n0-near` was made by process 1234, which began 5678
/// ticks after the machine, and is its first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Names {
    process: u32,
    began: u64,
    number: u32,
}

impl Names {
    fn new() -> Names {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let process = std::process::id();
        let began = began(process).unwrap_or(0);
        Names { process, began, number: NEXT.fetch_add(1, Ordering::Relaxed) }
    }

    fn of(&self, corner: Corner) -> String {
        format!("gw{}s{}n{}-{}", self.process, self.began, self.number, corner.name())
    }

    /// Whose namespace this is; `None` for those of others.
    fn read(name: &str) -> Option<Names> {
        let (numbers, corner) = name.strip_prefix("gw")?.split_once('-')?;
        let (process, rest) = numbers.split_once('s')?;
        let (began, number) = rest.split_once('n')?;
        let names = Names {
            process: process.parse().ok()?,
            began: began.parse().ok()?,
            number: number.parse().ok()?,
        };
        // The other way round it must be the same text: no sign, no leading zero.
        let same = Corner::ALL.into_iter().any(|each| each.name() == corner && names.of(each) == name);
        same.then_some(names)
    }

    /// Whether the process that made it is still there.
    fn lives(&self) -> bool {
        began(self.process) == Some(self.began)
    }
}

/// When a process began, in ticks since the machine did; `None` when there is no such process.
fn began(process: u32) -> Option<u64> {
    let text = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    // The name of the program, in brackets, may hold anything; this is the 22nd field, the 20th after it.
    text.rsplit_once(')')?.1.split_whitespace().nth(19)?.parse().ok()
}

/// Ends what is still in the namespaces that are its arguments, and removes them.
const REMOVE: &str = r#"
for name; do
    [ -e "/run/netns/$name" ] || continue
    for process in $(ip netns pids "$name"); do kill -9 "$process"; done
    ip netns delete "$name"
done
"#;

/// Starts the shell that removes these namespaces when its input ends, and what a discipline of ours left in the kernel.
fn watch(names: &Names, program: &Path) -> Result<Child, Trouble> {
    let mut command = Command::new("sh");
    command.arg("-c").arg(format!("read -r _\nprogram=$1\nshift{REMOVE}\"$program\" kernel unload --gone"));
    command.arg("giveway-testbed").arg(program);
    command.args(Corner::ALL.map(|corner| names.of(corner)));
    // A group of its own: Ctrl-C is for the one who is tidied up after.
    command.process_group(0).stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
    command.spawn().map_err(Trouble::system("start sh, which is to clean up"))
}

/// Removes the namespaces of test beds whose processes are no more, and what these had in the kernel.
///
/// # Errors
/// When that cannot be done.
pub fn remove_leftovers() -> Result<usize, Trouble> {
    let there = match fs::read_dir(NETNS) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(0),
        Err(error) => return Err(Trouble::system::<io::Error>(format!("look into {NETNS}"))(error)),
    };
    let names = there.flatten().filter_map(|entry| entry.file_name().into_string().ok());
    let dead: Vec<String> =
        names.filter(|name| Names::read(name).is_some_and(|names| !names.lives())).collect();
    if !dead.is_empty() {
        let mut command = vec!["sh", "-c", REMOVE, "giveway-testbed"];
        command.extend(dead.iter().map(String::as_str));
        run(&command)?;
    }
    kernel::attach::gone()?;
    Ok(dead.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_says_whose_it_is() {
        let names = Names { process: 1234, began: 5678, number: 0 };
        assert_eq!(names.of(Corner::Near), "gw1234s5678n0-near");
        for corner in Corner::ALL {
            assert_eq!(Names::read(&names.of(corner)), Some(names));
        }
        // Names of others, some of them close.
        for other in [
            "near",
            "gw-home",
            "gw-line",
            "gw12s3n4",
            "gw12s3n4-home",
            "gw012s3n4-far",
            "gw+1s3n4-far",
            "gwxsyn0-far",
        ] {
            assert_eq!(Names::read(other), None, "{other}");
        }
    }

    #[test]
    fn this_process_lives_and_another_with_its_number_does_not() {
        let mine = Names::new();
        assert!(mine.lives());
        assert!(!Names { began: mine.began + 1, ..mine }.lives());
        assert_ne!(Names::new(), mine);
    }

    #[test]
    fn what_tcp_takes_from_its_route() {
        assert_eq!(route(&TcpConfig::default()), "initcwnd 10 window 4194304 rto_min 1000ms");
        let old = TcpConfig { delayed_ack: false, receive_window: Bytes(65_536), ..TcpConfig::default() };
        assert_eq!(route(&old), "initcwnd 10 window 65536 rto_min 1000ms quickack 1");
    }
}
