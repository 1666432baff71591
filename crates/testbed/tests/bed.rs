//! Tests of the test bed. They need root on Linux, `ip` and `ethtool`, and are skipped with the reason
//! otherwise. The router is the kernel, so no other program is needed. The tests create their own network
//! namespaces and change nothing outside of them.

#![expect(clippy::disallowed_methods, reason = "a skipped test says so past the capture of its output")]

use std::fs;
use std::io::Write as _;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Mutex, MutexGuard};

use giveway_measure::Layout;
use giveway_qdisc::{Ending, FlowKind, FlowReport, Probe, Time};
use giveway_scenario::{Live, Scenario, Trial};
use giveway_testbed::topology::{Namespace, RouterKind, Topology, remove_leftovers};
use giveway_testbed::{Bed, TestbedError};

/// Takes a lock, so that one test bed exists at a time: they measure, and share the processors.
fn alone() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    TURN.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

/// True if the test can run on this machine. Prints the reason otherwise.
fn possible(kind: &str) -> bool {
    let missing = match giveway_testbed::ready() {
        Ok(()) => kernel_lacks(kind),
        Err(error) => Some(error.to_string()),
    };
    if let Some(why) = &missing {
        // Written directly: the harness captures the output of a passing test.
        let _ = writeln!(std::io::stderr(), "skipped: {why}");
    }
    missing.is_none()
}

fn kernel_lacks(kind: &str) -> Option<String> {
    let live = live(&scenario(kind, "10 Mbit/s", TRANSFERS));
    match bed().run(&live, &trial(&live), &layout(&live), &|_| false) {
        Err(error @ TestbedError::Missing { .. }) => Some(error.to_string()),
        Ok(_) | Err(_) => None,
    }
}

fn bed() -> Bed {
    let program = PathBuf::from("/nonexistent");
    Bed { program, attempts: 1, keep: None, objects: None, pcap: None, trace: None }
}

/// The capture has every packet of the near hosts' interface, of both directions.
#[test]
fn a_run_is_captured() {
    if !possible("pfifo") {
        return;
    }
    if let Err(error) = giveway_testbed::pcap::ready() {
        let _ = writeln!(std::io::stderr(), "skipped: {error}");
        return;
    }
    let _turn = alone();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("run.pcapng");
    let live = live(&scenario("pfifo limit 1000", "10 Mbit/s", TRANSFERS));
    let bed = Bed { pcap: Some(file.clone()), ..bed() };
    let ran = bed.run(&live, &trial(&live), &layout(&live), &|_| true);
    let flows = ran.unwrap_or_else(|error| panic!("{error}")).expect("the run was not stopped").record.flows;
    let completed = flows.iter().filter(|flow| flow.ending == Ending::Completed);
    let sent: u64 = completed.map(|flow| flow.bytes).sum();
    assert!(sent > 0);
    let packets: Vec<_> = giveway_capture::Reader::open(&file).unwrap().map(Result::unwrap).collect();
    let near = std::net::Ipv4Addr::new(192, 168, 1, 0).to_ipv6_mapped().octets();
    let of = |from_near: bool| -> u64 {
        let ips = packets
            .iter()
            .filter(|packet| packet.ip.is_some_and(|ip| (ip.tuple.from[..15] == near[..15]) == from_near));
        ips.map(|packet| u64::from(packet.bytes)).sum()
    };
    assert!(of(true) > sent, "{} bytes left, and {sent} bytes of data arrived", of(true));
    assert!(of(false) > 0, "acknowledgements are captured, too");
}

fn scenario(kind: &str, rate: &str, traffic: &str) -> String {
    format!(
        r#"
backend = "live"
duration = "1500 ms"
warmup = "200 ms"
disciplines = ["kernel:{kind}"]
[[link]]
from = "a[1-2]"
to = "left"
rate = "1 Gbit/s"
delay = "0 ms"
[[link]]
from = "left"
to = "right"
rate = "{rate}"
delay = "0 ms"
qdisc = "compare"
[[link]]
from = "right"
to = "b[1-2]"
rate = "1 Gbit/s"
delay = "0 ms"
{traffic}
"#
    )
}

/// Sizes that fill their last segment, so that the receiver closes first.
const TRANSFERS: &str = r#"
[[traffic]]
kind = "transfers"
from = "a[1-2]"
to = "b[1-2]"
per_second = 40.0
size = { fixed = "14600b" }
"#;

fn live(text: &str) -> Live {
    let scenario = Scenario::parse(text, ".").unwrap_or_else(|error| panic!("{error}"));
    scenario.live().expect("the scenario is one of a test bed").clone()
}

fn trial(live: &Live) -> Trial {
    Trial { discipline: 0, name: live.names()[0].clone(), seed: 1 }
}

fn layout(live: &Live) -> Layout {
    let measured = live.network.measured();
    let (from, until, sources) = (measured.from, measured.until, measured.sources);
    Layout { from, until, source_names: sources, ..Layout::default() }
}

/// The flows of a run, sorted by number.
fn flows(text: &str) -> Vec<FlowReport> {
    let live = live(text);
    let ran = bed().run(&live, &trial(&live), &layout(&live), &|_| true);
    ran.unwrap_or_else(|error| panic!("{error}")).expect("the run was not stopped").record.flows
}

/// The flows of a simulation of the same scenario, sorted by number.
fn simulated(text: &str) -> Vec<FlowReport> {
    #[derive(Default)]
    struct Flows(Vec<FlowReport>);
    impl Probe<giveway_sim::Segment> for Flows {
        fn on_flow(&mut self, report: &FlowReport) {
            self.0.push(report.clone());
        }
    }
    let scenario =
        Scenario::parse(text, ".").unwrap().simulated().expect("the scenario is one of a test bed");
    let mut flows = Flows::default();
    let network = scenario.network().expect("the scenario has a network");
    network.run(&scenario.trials()[0], &mut flows, &|_| true).expect("the run is not stopped");
    flows.0.sort_by_key(|flow| flow.id);
    flows.0
}

/// Names of the namespaces that this process created.
fn mine() -> Vec<String> {
    let names = fs::read_dir("/run/netns").into_iter().flatten().flatten();
    let names = names.filter_map(|entry| entry.file_name().into_string().ok());
    names.filter(|name| name.starts_with(&format!("gw{}s", std::process::id()))).collect()
}

#[test]
fn transfers_arrive_as_in_a_simulation_and_are_complete() {
    let _turn = alone();
    if !possible("tbf limit 100000") {
        return;
    }
    let text = scenario("tbf limit 100000", "10 Mbit/s", TRANSFERS);
    let (real, simulated) = (flows(&text), simulated(&text));
    assert!(real.len() > 30, "{} transfers", real.len());
    // Equal transfers: number, hosts, size, and start to the picosecond, since a source gets the time for
    // which it requested the wake-up.
    let requested = |flows: &[FlowReport]| -> Vec<(u64, u16, u16, Time, u64)> {
        flows.iter().map(|flow| (flow.id, flow.from, flow.to, flow.start, flow.bytes)).collect()
    };
    assert_eq!(requested(&real), requested(&simulated));
    for flow in real.iter().filter(|flow| flow.ending == Ending::Completed) {
        assert_eq!((flow.kind, flow.delivered), (FlowKind::Transfer, flow.bytes));
        // Ten segments at 10 Mbit/s are 12 ms on the wire; the shaper lets the first two through at once.
        assert!(flow.end.since(flow.start).as_s() > 0.009, "{flow:?}");
    }
    let completed = real.iter().filter(|flow| flow.ending == Ending::Completed).count();
    assert!(completed * 10 >= real.len() * 9, "{completed} of {}", real.len());
    assert_eq!(mine(), Vec::<String>::new(), "all namespaces are gone");
}

#[test]
fn a_long_transfer_gets_the_rate_and_no_more() {
    let _turn = alone();
    if !possible("tbf limit 100000") {
        return;
    }
    let bulk = "[[traffic]]\nkind = \"bulk\"\nfrom = \"a1\"\nto = \"b1\"\n";
    for (kind, rate, bytes_per_s) in
        [("tbf limit 100000", "20 Mbit/s", 2.5e6), ("htb+bfifo limit 100000", "20 Mbit/s", 2.5e6)]
    {
        let flows = flows(&scenario(kind, rate, bulk));
        assert_eq!((flows.len(), flows[0].kind, flows[0].ending), (1, FlowKind::Endless, Ending::Unfinished));
        let got = flows[0].goodput_bytes as f64 / 1.3;
        let most = bytes_per_s * 1460.0 / 1500.0;
        // The shaper's backlog at the start of the measurement interval, up to 100 kB, counts as well.
        assert!(got <= most * 1.02 && got > 0.8 * most, "{kind}: {got} of {most} bytes/s");
    }
}

#[test]
fn pages_calls_and_both_directions() {
    let _turn = alone();
    if !possible("bfifo limit 100000") {
        return;
    }
    let traffic = r#"
[[traffic]]
kind = "web"
name = "down"
from = "a1"
to = "b1"
users = 2
think = "100 ms"
object = { fixed = "5 kB" }
[[traffic]]
kind = "web"
name = "up"
from = "b2"
to = "a2"
users = 2
think = "100 ms"
connections = "per_object"
object = { fixed = "5 kB" }
[[traffic]]
kind = "audio"
name = "call"
from = "a1"
to = "b2"
"#;
    let flows = flows(&scenario("bfifo limit 100000", "20 Mbit/s", traffic));
    for source in [0, 1] {
        let pages: Vec<&FlowReport> = flows.iter().filter(|flow| flow.source == source).collect();
        let completed = pages.iter().filter(|page| page.ending == Ending::Completed);
        assert!(completed.clone().count() >= 3, "source {source}: {pages:?}");
        assert!(completed.into_iter().all(|page| page.delivered == page.bytes));
        assert!(pages.iter().all(|page| page.ending != Ending::Aborted), "{pages:?}");
    }
    let calls: Vec<&FlowReport> = flows.iter().filter(|flow| flow.kind == FlowKind::Datagrams).collect();
    assert!(
        !calls.is_empty() && calls.iter().all(|call| call.packets > 20 && call.lost == Some(0)),
        "{calls:?}"
    );
    assert!(calls.iter().all(|call| !call.delay_mean.is_zero() && call.delay_p99 >= call.delay_mean / 2));
}

#[test]
fn a_small_queue_drops_and_tcp_recovers() {
    let _turn = alone();
    if !possible("bfifo limit 6000") {
        return;
    }
    let traffic = "[[traffic]]\nkind = \"transfers\"\nfrom = \"a[1-2]\"\nto = \"b[1-2]\"\nper_second = 10.0\ncount = 8\nsize = { fixed = \"100 kB\" }\n";
    let text = scenario("bfifo limit 6000", "50 Mbit/s", traffic).replace("1500 ms", "3 s");
    let live = live(&text);
    let ran = bed().run(&live, &trial(&live), &layout(&live), &|_| true).unwrap().unwrap();
    let dropped =
        ran.remarks.iter().find(|remark| remark.contains("packets, forward")).expect("tc counts drops");
    assert!(!dropped.contains("dropped 0 packets"), "{dropped}");
    let completed = ran.record.flows.iter().filter(|flow| flow.ending == Ending::Completed).count();
    assert_eq!(completed, 8, "{:?}", ran.record.flows);
}

#[test]
fn an_unknown_kernel_discipline_is_refused_with_a_list_of_known_ones() {
    let _turn = alone();
    if !possible("tbf limit 100000") {
        return;
    }
    let live = live(&scenario("nonsense", "10 Mbit/s", TRANSFERS));
    let error = bed()
        .run(&live, &trial(&live), &layout(&live), &|_| true)
        .expect_err("the discipline does not exist");
    let message = error.to_string();
    assert!(
        message.contains("this kernel has no discipline nonsense") && message.contains(" tbf"),
        "{message}"
    );
    // The kernel has each discipline of the list.
    let offered = message.rsplit(": ").next().unwrap().split(", ");
    for kind in offered.filter(|kind| !["tbf", "red", "choke"].contains(kind)) {
        assert_eq!(kernel_lacks(kind), None, "{kind} of {message}");
    }
    assert_eq!(mine(), Vec::<String>::new(), "the failed attempt removes its namespaces");
}

#[test]
fn a_stopped_run_removes_its_namespaces() {
    let _turn = alone();
    if !possible("tbf limit 100000") {
        return;
    }
    let live = live(&scenario("tbf limit 100000", "10 Mbit/s", TRANSFERS));
    let ran = bed().run(&live, &trial(&live), &layout(&live), &|share| share < 0.1).unwrap();
    assert!(ran.is_none());
    assert_eq!(mine(), Vec::<String>::new());
}

#[test]
fn interfaces_have_no_offloads_and_neighbours_are_static() {
    let _turn = alone();
    if !possible("tbf limit 100000") {
        return;
    }
    let live = live(&scenario("tbf limit 100000", "10 Mbit/s", TRANSFERS));
    let outside = |folder: &str| fs::read_dir(folder).map_or(0, |entries| entries.count());
    let before = outside("/sys/class/net");
    let topology = Topology::build(&live, RouterKind::Routed, Path::new("true")).unwrap();
    assert_eq!(mine().len(), 3);
    assert_eq!(outside("/sys/class/net"), before, "no interface is created outside of the namespaces");
    let near = topology.name(Namespace::Near);
    let output = Command::new("ip").args(["netns", "exec", &near, "ethtool", "-k", "cli"]).output().unwrap();
    let features = String::from_utf8_lossy(&output.stdout).into_owned();
    for feature in [
        "tcp-segmentation-offload",
        "generic-segmentation-offload",
        "generic-receive-offload",
        "tx-checksumming",
    ] {
        assert!(features.contains(&format!("{feature}: off")), "{features}");
    }
    let listing = |arguments: &[&str]| {
        let output = Command::new("ip").args(["-n", &near]).args(arguments).output().unwrap();
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    assert!(
        listing(&["neigh"]).contains("PERMANENT") && listing(&["addr", "show", "cli"]).contains("mtu 1500")
    );
    assert!(!listing(&["addr"]).contains("inet6"), "{}", listing(&["addr"]));
    drop(topology);
    assert_eq!(mine(), Vec::<String>::new());
}

/// Builds a test bed and waits. The next test starts it in another process and kills that process.
#[test]
#[ignore = "only in a process that is killed"]
fn waits_to_be_killed() {
    let live = live(&scenario("tbf limit 100000", "10 Mbit/s", TRANSFERS));
    let _topology = Topology::build(&live, RouterKind::Routed, Path::new("true")).unwrap();
    println!("ready {}", std::process::id());
    let mut line = String::new();
    std::io::stdin().read_line(&mut line).unwrap();
}

#[test]
fn the_namespaces_of_a_killed_process_are_removed() {
    let _turn = alone();
    if !possible("tbf limit 100000") {
        return;
    }
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--ignored", "--exact", "--nocapture", "waits_to_be_killed"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let output = std::io::BufReader::new(child.stdout.as_mut().unwrap());
    let ready = std::io::BufRead::lines(output).map_while(Result::ok).any(|line| line.contains("ready "));
    assert!(ready, "the process built its test bed");
    let prefix = format!("gw{}s", child.id());
    child.kill().unwrap();
    assert_eq!(child.wait().unwrap().signal(), Some(9));
    let left = || {
        let names = fs::read_dir("/run/netns").into_iter().flatten().flatten();
        names.filter(|entry| entry.file_name().to_string_lossy().starts_with(&prefix)).count()
    };
    // The shell that removes the namespaces needs a moment.
    let gone = (0..200).any(|_| {
        let gone = left() == 0;
        if !gone {
            let _ = Command::new("sh").args(["-c", "sleep 0.02"]).status();
        }
        gone
    });
    assert!(gone, "{} namespaces are left", left());
}

#[test]
fn leftovers_of_the_dead_are_removed_and_those_of_others_are_not() {
    let _turn = alone();
    if !possible("tbf limit 100000") {
        return;
    }
    // A process that has ended. Its number is unused, or belongs to a process with another start time.
    let mut child = Command::new("true").spawn().unwrap();
    let number = child.id();
    child.wait().unwrap();
    let dead = format!("gw{number}s1n0-near");
    let other = format!("gwbedtest{}", std::process::id());
    for name in [&dead, &other] {
        assert!(Command::new("ip").args(["netns", "add", name]).status().unwrap().success());
    }
    let removed = remove_leftovers();
    let there = |name: &str| fs::exists(format!("/run/netns/{name}")).unwrap();
    let (dead_there, other_there) = (there(&dead), there(&other));
    assert!(Command::new("ip").args(["netns", "delete", &other]).status().unwrap().success());
    assert_eq!(removed.unwrap(), 1);
    assert!(!dead_there && other_there);
}
