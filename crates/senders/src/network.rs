//! The network of a measurement: namespaces, interfaces, the bottleneck and the delay.

use std::fs::File;
use std::process::{Command, Stdio};
use std::thread;

use nix::sched::{CloneFlags, setns};

use crate::error::SendersError;

/// Address of the client.
pub(crate) const CLIENT: [u8; 4] = [10, 0, 1, 1];
/// Address of the server.
pub(crate) const SERVER: [u8; 4] = [10, 0, 2, 1];
/// Bytes of a full segment on a link: 1448 of data, 32 of TCP, 20 of IP, 14 of Ethernet.
pub(crate) const FULL: u64 = 1514;

/// The queue of the bottleneck.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Queue {
    /// `pfifo` with a limit in packets.
    Fifo(u32),
    /// `fq_codel` with its defaults.
    FqCodel,
    /// One queue that marks each packet that waited longer than a threshold in microseconds (`codel
    /// ce_threshold`); its law of control is off. The limit is in packets.
    Step(u32, u32),
}

/// Properties of a network.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    /// Rate of the bottleneck in Mbit/s.
    pub rate_mbit: u32,
    /// Delay of acknowledgements in milliseconds.
    pub rtt_ms: u32,
    /// Queue of the bottleneck.
    pub queue: Queue,
    /// True if TCP asks for ECN.
    pub ecn: bool,
    /// Largest number of segments that the client hands to its interface in a bundle; 0 for the default.
    pub segments: u32,
    /// True if the namespace `far` is between router and server.
    pub far: bool,
}

/// Creates the network. Interfaces are named after the namespace at the other end.
///
/// # Errors
/// The first command that fails.
pub(crate) fn build(plan: &Plan) -> Result<(), SendersError> {
    let hop = if plan.far { "far" } else { "server" };
    let mut namespaces = vec!["client", "router", "server"];
    namespaces.extend(plan.far.then_some("far"));
    for name in &namespaces {
        run("ip", &["netns", "add", name], "")?;
        run("ip", &["-n", name, "link", "set", "lo", "up"], "")?;
    }
    join("client", "router")?;
    join("router", hop)?;
    if plan.far {
        join("far", "server")?;
    }
    for name in namespaces {
        settings(name, plan)?;
    }
    let last = if plan.far { "far" } else { "router" };
    batch("client", "addr add 10.0.1.1/24 dev router\nroute add default via 10.0.1.254\n")?;
    batch("router", "addr add 10.0.1.254/24 dev client\n")?;
    batch("server", &format!("addr add 10.0.2.1/24 dev {last}\nroute add default via 10.0.2.254\n"))?;
    batch(last, "addr add 10.0.2.254/24 dev server\n")?;
    if plan.far {
        batch("router", "addr add 10.0.3.1/24 dev far\nroute add 10.0.2.0/24 via 10.0.3.2\n")?;
        batch("far", "addr add 10.0.3.2/24 dev router\nroute add 10.0.1.0/24 via 10.0.3.1\n")?;
    }
    if plan.segments > 0 {
        batch("client", &format!("link set router gso_max_segs {}\n", plan.segments))?;
    }
    bottleneck(plan, hop)
}

/// Removes the network. Sockets in it must be closed.
pub(crate) fn remove(plan: &Plan) -> Result<(), SendersError> {
    let mut namespaces = vec!["client", "router", "server"];
    namespaces.extend(plan.far.then_some("far"));
    namespaces.iter().try_for_each(|name| run("ip", &["netns", "del", name], "").map(drop))
}

/// Joins two namespaces by a pair of interfaces without offloads.
fn join(one: &str, other: &str) -> Result<(), SendersError> {
    let queues = "numtxqueues 1 numrxqueues 1";
    let command = format!(
        "link add {other} netns {one} mtu 1500 {queues} type veth peer {one} netns {other} mtu 1500 {queues}\n"
    );
    run("ip", &["-batch", "-"], &command)?;
    for (namespace, device) in [(one, other), (other, one)] {
        let off = ["tso", "off", "gso", "off", "gro", "off", "tx", "off", "rx", "off"];
        let command = ["netns", "exec", namespace, "ethtool", "-K", device];
        run("ip", &[&command[..], &off[..]].concat(), "")?;
        batch(namespace, &format!("link set {device} up\n"))?;
    }
    Ok(())
}

/// Settings of the kernel in a namespace.
fn settings(namespace: &str, plan: &Plan) -> Result<(), SendersError> {
    let ecn = plan.ecn;
    within(namespace, move || {
        let mut values = vec![("ipv4/ip_forward", "1"), ("ipv4/tcp_no_metrics_save", "1")];
        values.extend([("ipv4/tcp_rmem", "4096 131072 67108864"), ("ipv4/tcp_wmem", "4096 16384 67108864")]);
        values.extend(ecn.then_some(("ipv4/tcp_ecn", "1")));
        values.iter().try_for_each(|(name, value)| {
            let path = format!("/proc/sys/net/{name}");
            std::fs::write(&path, value).map_err(SendersError::system(&format!("write {path}")))
        })
    })?
}

/// Sets the queues of the router.
fn bottleneck(plan: &Plan, hop: &str) -> Result<(), SendersError> {
    let rate = u64::from(plan.rate_mbit);
    // 60 microseconds more than a packet make up for a timer that is late because the processor was busy.
    let burst = FULL + (rate * 60).div_ceil(8);
    let tbf = format!("qdisc add dev {hop} root handle 1: tbf rate {rate}mbit burst {burst} limit 100mb");
    let leaf = match plan.queue {
        Queue::Fifo(packets) => format!("pfifo limit {packets}"),
        Queue::FqCodel => "fq_codel".to_owned(),
        Queue::Step(packets, us) => {
            format!("codel limit {packets} target 100s interval 100s noecn ce_threshold {us}us")
        }
    };
    let delay = format!("qdisc add dev client root netem delay {}ms limit 1000000", plan.rtt_ms);
    let commands = format!("{tbf}\nqdisc add dev {hop} parent 1:1 handle 10: {leaf}\n{delay}\n");
    run("ip", &["netns", "exec", "router", "tc", "-batch", "-"], &commands).map(drop)
}

/// Runs commands of `ip` in a namespace.
pub(crate) fn batch(namespace: &str, commands: &str) -> Result<(), SendersError> {
    run("ip", &["-n", namespace, "-batch", "-"], commands).map(drop)
}

/// Runs a function on a thread in a namespace.
///
/// # Errors
/// If the namespace cannot be entered.
pub(crate) fn within<T: Send + 'static>(
    namespace: &str,
    what: impl FnOnce() -> T + Send + 'static,
) -> Result<T, SendersError> {
    let path = format!("/run/netns/{namespace}");
    let inside = thread::spawn(move || {
        let doing = format!("enter {path}");
        let file = File::open(&path).map_err(SendersError::system(&doing))?;
        setns(file, CloneFlags::CLONE_NEWNET).map_err(SendersError::system(&doing))?;
        Ok(what())
    });
    inside.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

/// Runs a command and returns its standard output.
///
/// # Errors
/// If it fails.
pub(crate) fn run(program: &str, words: &[&str], input: &str) -> Result<String, SendersError> {
    let command = format!("{program} {}", words.join(" "));
    let doing = format!("run {command}");
    let mut child = Command::new(program)
        .args(words)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(SendersError::system(&doing))?;
    let written =
        std::io::Write::write_all(&mut child.stdin.take().expect("stdin is piped"), input.as_bytes());
    let output = child.wait_with_output().map_err(SendersError::system(&doing))?;
    if !output.status.success() {
        let output = String::from_utf8_lossy(&output.stderr).trim().to_owned();
        return Err(SendersError::Command { command: format!("{command} {input}"), output });
    }
    written.map_err(SendersError::system(&doing))?;
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}
