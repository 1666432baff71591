//! The topology of a test bed: three or four network namespaces, joined by pairs of virtual interfaces.
//!
//! ```text
//! near: cli ==== left :router: right ==== srv :far
//!
//! If the kernel routes, and the scenario has a delay:
//! near: cli ==== left :router: right ==== delay0 :delay: delay1 ==== srv :far
//! ```
//!
//! # Principles
//! - The hosts of a side share a namespace and an interface; each host is an address there. The router is in
//!   the namespace between the sides.
//! - Everything that would distort measurements is off: offloads (a frame must be one TCP segment, with its
//!   checksum), IPv6 (which sends announcements), ARP (neighbours are static), and the metrics that TCP
//!   caches of earlier connections.
//! - Interfaces are created only inside namespaces of the test bed, so no interface of the machine is ever
//!   touched.
//! - A namespace is named after the process that created it and the start time of that process. A shell
//!   removes the namespaces: it reads from a pipe that only this process can write to, and acts when the pipe
//!   closes, because the test bed is done or because the process was killed. If the shell is killed, too, the
//!   next start removes the namespaces, since their process no longer exists.
//!
//! # Cost
//! - About twenty short-lived processes, which take half a second.

use std::fs::{self, File};
use std::io;
use std::net::Ipv4Addr;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;

use giveway_qdisc::Bytes;
use giveway_scenario::Live;
use giveway_sim::TcpConfig;
use nix::sched::{CloneFlags, setns};

use crate::command::{run, run_with};
use crate::error::TestbedError;

/// A network namespace of the test bed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Namespace {
    /// Hosts on the near side of the bottleneck.
    Near,
    /// The router.
    Router,
    /// A bridge that adds delay, between the kernel as router and the far side.
    Delay,
    /// Hosts on the far side of the bottleneck.
    Far,
}

impl Namespace {
    const ALL: [Namespace; 4] = [Namespace::Near, Namespace::Router, Namespace::Delay, Namespace::Far];

    fn name(self) -> &'static str {
        match self {
            Namespace::Near => "near",
            Namespace::Router => "router",
            Namespace::Delay => "delay",
            Namespace::Far => "far",
        }
    }
}

/// Kind of the router between the sides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RouterKind {
    /// The kernel forwards packets from one interface to the other.
    Routed,
    /// Like `Routed`, with a bridge that delays frames between the router and the far side.
    RoutedWithDelay,
    /// A bridge forwards frames unchanged.
    Bridged,
}

/// Interface of the router towards the near side.
pub const LEFT: &str = "left";
/// Interface of the router towards the far side.
pub const RIGHT: &str = "right";

/// Interface of the near hosts.
pub const NEAR: &str = "cli";

const CLI: Interface = Interface { namespace: Namespace::Near, name: NEAR, mac: "02:00:00:00:01:01" };
const SRV: Interface = Interface { namespace: Namespace::Far, name: "srv", mac: "02:00:00:00:02:01" };
const INNER_LEFT: Interface =
    Interface { namespace: Namespace::Router, name: LEFT, mac: "02:00:00:00:01:02" };
const INNER_RIGHT: Interface =
    Interface { namespace: Namespace::Router, name: RIGHT, mac: "02:00:00:00:02:02" };

/// Interface of the delay bridge towards the router.
pub const DELAY_LEFT: &str = "delay0";
/// Interface of the delay bridge towards the far side.
pub const DELAY_RIGHT: &str = "delay1";

const DELAY_A: Interface =
    Interface { namespace: Namespace::Delay, name: DELAY_LEFT, mac: "02:00:00:00:03:01" };
const DELAY_B: Interface =
    Interface { namespace: Namespace::Delay, name: DELAY_RIGHT, mac: "02:00:00:00:03:02" };

struct Interface {
    namespace: Namespace,
    name: &'static str,
    mac: &'static str,
}

/// The namespaces and interfaces of a test bed. Dropping it removes them.
pub struct Topology {
    names: Names,
    watcher: Child,
    /// Namespace and address of each node that is a host, by node number of the scenario.
    hosts: Vec<Option<(Namespace, Ipv4Addr)>>,
}

impl Topology {
    /// Creates the topology of a scenario. `program` is the path of `giveway-net`, which unloads kernel
    /// disciplines at the end.
    ///
    /// # Errors
    /// The first command or system call that failed.
    pub fn build(live: &Live, kind: RouterKind, program: &Path) -> Result<Topology, TestbedError> {
        remove_leftovers()?;
        let names = Names::new();
        let watcher = watch(&names, program)?;
        let mut hosts = vec![None; live.network.nodes.len()];
        for (namespace, nodes) in [(Namespace::Near, &live.near), (Namespace::Far, &live.far)] {
            for (node, number) in nodes.iter().zip(1..) {
                hosts[usize::from(*node)] = Some((namespace, address(namespace, number)));
            }
        }
        // From here on an early return drops the topology, which removes what was created.
        let topology = Topology { names, watcher, hosts };
        let late = kind == RouterKind::RoutedWithDelay;
        for namespace in Namespace::ALL.into_iter().filter(|namespace| late || *namespace != Namespace::Delay)
        {
            run(&["ip", "netns", "add", &topology.name(namespace)])?;
            topology.within(namespace, || settings(namespace, &live.tcp))??;
        }
        topology.pair(&CLI, &INNER_LEFT)?;
        if late {
            topology.pair(&DELAY_A, &INNER_RIGHT)?;
            topology.pair(&SRV, &DELAY_B)?;
        } else {
            topology.pair(&SRV, &INNER_RIGHT)?;
        }
        topology.side(&CLI, &INNER_LEFT, &SRV, kind, &live.tcp)?;
        topology.side(&SRV, &INNER_RIGHT, &CLI, kind, &live.tcp)?;
        if kind != RouterKind::Bridged {
            topology.within(Namespace::Router, || write("ipv4/ip_forward", "1"))??;
        }
        Ok(topology)
    }

    /// Name of a namespace, for `ip netns exec`.
    pub fn name(&self, namespace: Namespace) -> String {
        self.names.of(namespace)
    }

    /// Namespace and address of each node that is a host, by node number of the scenario.
    pub fn hosts(&self) -> &[Option<(Namespace, Ipv4Addr)>] {
        &self.hosts
    }

    /// Opens a namespace.
    ///
    /// # Errors
    /// If the namespace no longer exists.
    pub fn handle(&self, namespace: Namespace) -> Result<NamespaceHandle, TestbedError> {
        let path = PathBuf::from(NETNS).join(self.name(namespace));
        let opened = File::open(&path).map(NamespaceHandle);
        opened.map_err(TestbedError::system(format!("open {}", path.display())))
    }

    /// Runs a function inside a namespace, on a separate thread.
    ///
    /// # Errors
    /// If the namespace cannot be entered.
    pub fn within<T: Send>(
        &self,
        namespace: Namespace,
        what: impl FnOnce() -> T + Send,
    ) -> Result<T, TestbedError> {
        let handle = self.handle(namespace)?;
        thread::scope(|scope| {
            let inside = scope.spawn(move || {
                handle.enter()?;
                Ok(what())
            });
            inside.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        })
    }

    /// Creates a pair of joined interfaces without offloads.
    fn pair(&self, outer: &Interface, inner: &Interface) -> Result<(), TestbedError> {
        let end = |end: &Interface| {
            let namespace = self.name(end.namespace);
            format!("netns {namespace} address {} mtu 1500 numtxqueues 1 numrxqueues 1", end.mac)
        };
        let (outer_name, inner_name) = (outer.name, inner.name);
        let command =
            format!("link add {outer_name} {} type veth peer {inner_name} {}\n", end(outer), end(inner));
        batch(None, &command)?;
        for end in [outer, inner] {
            let namespace = self.name(end.namespace);
            let off = ["tso", "off", "gso", "off", "gro", "off", "tx", "off", "rx", "off"];
            let command = ["ip", "netns", "exec", &namespace, "ethtool", "-K", end.name];
            run(&[&command[..], &off[..]].concat())?;
            batch(Some(&namespace), &format!("link set lo up\nlink set {} up\n", end.name))?;
        }
        Ok(())
    }

    /// Sets addresses, routes and neighbours of one side.
    fn side(
        &self,
        outer: &Interface,
        inner: &Interface,
        other: &Interface,
        kind: RouterKind,
        tcp: &TcpConfig,
    ) -> Result<(), TestbedError> {
        let (mine, theirs) = (address(outer.namespace, 0), address(other.namespace, 0));
        let gateway = address(outer.namespace, 254);
        let next = if kind == RouterKind::Bridged { other.mac } else { inner.mac };
        let name = outer.name;
        let mut here = String::new();
        let mut there = format!("addr add {gateway}/32 dev {}\n", inner.name);
        there += &format!("route add {mine}/24 dev {} scope link\n", inner.name);
        for (namespace, address) in
            self.hosts.iter().flatten().filter(|(namespace, _)| *namespace == outer.namespace)
        {
            debug_assert_eq!(*namespace, outer.namespace);
            here += &format!("addr add {address}/32 dev {name}\n");
            let mac = outer.mac;
            there += &format!("neigh replace {address} lladdr {mac} dev {} nud permanent\n", inner.name);
        }
        here += &format!("route add {gateway} dev {name} scope link\n");
        here += &format!("neigh replace {gateway} lladdr {next} dev {name} nud permanent\n");
        here += &format!("route add {theirs}/24 via {gateway} dev {name} {}\n", route(tcp));
        batch(Some(&self.name(outer.namespace)), &here)?;
        if kind != RouterKind::Bridged {
            batch(Some(&self.name(Namespace::Router)), &there)?;
        }
        Ok(())
    }
}

impl Drop for Topology {
    /// Closes the pipe of the shell that removes the namespaces, and waits for it.
    fn drop(&mut self) {
        drop(self.watcher.stdin.take());
        // A destructor cannot return an error, and the next start tries again.
        let _ = self.watcher.wait();
    }
}

/// An open network namespace.
pub struct NamespaceHandle(File);

impl NamespaceHandle {
    /// Moves the calling thread into the namespace. Sockets that it creates from now on belong to the
    /// namespace, and stay there.
    ///
    /// # Errors
    /// If the privilege is missing.
    pub fn enter(&self) -> Result<(), TestbedError> {
        setns(&self.0, CloneFlags::CLONE_NEWNET).map_err(TestbedError::system("enter a network namespace"))
    }
}

const NETNS: &str = "/run/netns";

/// The address of a host. Near hosts have private addresses (RFC 1918), far hosts have those for benchmarks
/// of networks (RFC 2544), so that a capture shows which side is the local one.
fn address(namespace: Namespace, number: u8) -> Ipv4Addr {
    match namespace {
        Namespace::Near => Ipv4Addr::new(192, 168, 1, number),
        Namespace::Far => Ipv4Addr::new(198, 18, 0, number),
        Namespace::Router | Namespace::Delay => unreachable!("no host is there"),
    }
}

/// Parameters of TCP that are set by the route of a connection.
fn route(tcp: &TcpConfig) -> String {
    let ms = tcp.rto_min.as_ps().div_ceil(1_000_000_000);
    let quick = if tcp.delayed_ack { "" } else { " quickack 1" };
    let (first, window) = (tcp.initial_window.0, tcp.receive_window.0);
    format!("initcwnd {first} window {window} rto_min {ms}ms{quick}")
}

/// Sets the parameters of TCP that belong to a namespace.
fn settings(namespace: Namespace, tcp: &TcpConfig) -> Result<(), TestbedError> {
    for which in ["all", "default"] {
        // A kernel without IPv6 does not have this file.
        let _ = write(&format!("ipv6/conf/{which}/disable_ipv6"), "1");
        // This check would drop packets of the router, whose sources are behind another interface.
        write(&format!("ipv4/conf/{which}/rp_filter"), "0")?;
    }
    if [Namespace::Router, Namespace::Delay].contains(&namespace) {
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
    // Twice the window, since the kernel counts the memory of a packet and not its length; and at least the
    // kernel default.
    let most = (2 * tcp.receive_window.0).max(6_291_456);
    write("ipv4/tcp_rmem", &format!("4096 131072 {most}"))?;
    write("ipv4/tcp_wmem", "4096 16384 4194304")?;
    write("ipv4/ip_local_port_range", "1024 65535")?;
    write("core/somaxconn", "4096")
}

/// Writes a setting of the namespace of the calling thread.
fn write(setting: &str, value: &str) -> Result<(), TestbedError> {
    let path = format!("/proc/sys/net/{setting}");
    fs::write(&path, value).map_err(TestbedError::system(format!("write {value} to {path}")))
}

/// Runs several commands of `ip`, in a namespace or in the caller's.
fn batch(namespace: Option<&str>, commands: &str) -> Result<(), TestbedError> {
    let within: &[&str] = match &namespace {
        Some(namespace) => &["-n", namespace],
        None => &[],
    };
    run_with(&[&["ip"], within, &["-batch", "-"]].concat(), commands).map(drop)
}

/// Names of the namespaces of one test bed. `gw1234s5678n0-near` was created by process 1234, which started
/// 5678 ticks after the machine; it belongs to the first test bed of that process (0).
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

    fn of(&self, namespace: Namespace) -> String {
        format!("gw{}s{}n{}-{}", self.process, self.began, self.number, namespace.name())
    }

    /// Parses the name of a namespace; `None` if a test bed did not create it.
    fn read(name: &str) -> Option<Names> {
        let (numbers, namespace) = name.strip_prefix("gw")?.split_once('-')?;
        let (process, rest) = numbers.split_once('s')?;
        let (began, number) = rest.split_once('n')?;
        let names = Names {
            process: process.parse().ok()?,
            began: began.parse().ok()?,
            number: number.parse().ok()?,
        };
        // The numbers must be written as `of` writes them: without sign or leading zero.
        let same = Namespace::ALL.into_iter().any(|each| each.name() == namespace && names.of(each) == name);
        same.then_some(names)
    }

    /// True if the process that created it still exists.
    fn lives(&self) -> bool {
        began(self.process) == Some(self.began)
    }
}

/// Start time of a process, in ticks since the machine started; `None` if there is no such process.
fn began(process: u32) -> Option<u64> {
    let text = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    // The name of the program, in brackets, may contain any character. The start time is the 22nd field, the
    // 20th after it.
    text.rsplit_once(')')?.1.split_whitespace().nth(19)?.parse().ok()
}

/// Ends the processes in the namespaces that are its arguments, and removes the namespaces.
const REMOVE: &str = r#"
for name; do
    [ -e "/run/netns/$name" ] || continue
    for process in $(ip netns pids "$name"); do kill -9 "$process"; done
    ip netns delete "$name"
done
"#;

/// Starts the shell that removes these namespaces, and the kernel disciplines in them, when its input ends.
fn watch(names: &Names, program: &Path) -> Result<Child, TestbedError> {
    let mut command = Command::new("sh");
    command.arg("-c").arg(format!("read -r _\nprogram=$1\nshift{REMOVE}\"$program\" kernel unload --gone"));
    command.arg("giveway-testbed").arg(program);
    command.args(Namespace::ALL.map(|namespace| names.of(namespace)));
    // A separate process group: Ctrl-C must not end the shell before it has cleaned up.
    command.process_group(0).stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
    command.spawn().map_err(TestbedError::system("start sh, which cleans up at the end"))
}

/// Removes the namespaces of test beds whose processes no longer exist, and their kernel disciplines. Returns
/// the number of namespaces.
///
/// # Errors
/// If one cannot be removed.
pub fn remove_leftovers() -> Result<usize, TestbedError> {
    let there = match fs::read_dir(NETNS) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(0),
        Err(error) => {
            return Err(TestbedError::system::<io::Error>(format!("read the folder {NETNS}"))(error));
        }
    };
    let names = there.flatten().filter_map(|entry| entry.file_name().into_string().ok());
    let dead: Vec<String> =
        names.filter(|name| Names::read(name).is_some_and(|names| !names.lives())).collect();
    if !dead.is_empty() {
        let mut command = vec!["sh", "-c", REMOVE, "giveway-testbed"];
        command.extend(dead.iter().map(String::as_str));
        run(&command)?;
    }
    giveway_kernel::attach::unload_gone()?;
    Ok(dead.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_identifies_its_process() {
        let names = Names { process: 1234, began: 5678, number: 0 };
        assert_eq!(names.of(Namespace::Near), "gw1234s5678n0-near");
        for namespace in Namespace::ALL {
            assert_eq!(Names::read(&names.of(namespace)), Some(names));
        }
        // Names of other programs, some of them similar.
        for other in [
            "near",
            "gw-home",
            "gw-router",
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
    fn a_reused_process_number_is_detected() {
        let mine = Names::new();
        assert!(mine.lives());
        assert!(!Names { began: mine.began + 1, ..mine }.lives());
        assert_ne!(Names::new(), mine);
    }

    #[test]
    fn parameters_of_tcp_in_the_route() {
        assert_eq!(route(&TcpConfig::rfc()), "initcwnd 10 window 4194304 rto_min 1000ms");
        let old = TcpConfig { delayed_ack: false, receive_window: Bytes(65_536), ..TcpConfig::rfc() };
        assert_eq!(route(&old), "initcwnd 10 window 65536 rto_min 1000ms quickack 1");
    }
}
