//! Scenarios on a test bed: their hosts and disciplines, and the errors of those that cannot be emulated.

use giveway_qdisc::{Rate, Span};
use giveway_scenario::{Backend, Contender, Live, Scenario};

/// Two clients and two servers, with a delay of 10 ms between them.
const VALID: &str = r#"
backend = "live"
duration = "4 s"
disciplines = ["fifo limit 100p", "kernel:fq_codel limit 1000", "drr limit 100p", "kernel:tbf limit 30000"]

[[link]]
from = "client[1-2]"
to = "left"
rate = "1 Gbit/s"
delay = "1 ms"

[[link]]
from = "left"
to = "right"
rate = "10 Mbit/s"
delay = "8 ms"
qdisc = "compare"
[link.back]
rate = "20 Mbit/s"
delay = "3 ms"

[[link]]
from = "right"
to = "server[1-2]"
rate = "1 Gbit/s"
delay = "1 ms"

[[traffic]]
kind = "bulk"
name = "upload"
from = "client[1-2]"
to = "server[1-2]"

[[traffic]]
kind = "web"
from = "server1"
to = "client2"
"#;

fn live(text: &str) -> Live {
    let scenario = Scenario::parse(text, ".").unwrap_or_else(|error| panic!("{error}"));
    let Backend::Live(live) = scenario.backend else { panic!("the backend is not a test bed") };
    *live
}

/// The errors if `old` is replaced by `new`.
fn errors(old: &str, new: &str) -> String {
    assert!(VALID.contains(old), "{old:?} is not in the scenario");
    Scenario::parse(&VALID.replacen(old, new, 1), ".").expect_err("it is invalid").to_string()
}

#[test]
fn the_bottleneck_has_two_sides() {
    let live = live(VALID);
    let names = |nodes: &[u16]| -> Vec<&str> {
        nodes.iter().map(|node| live.network.nodes[usize::from(*node)].as_str()).collect()
    };
    // Nodes without traffic are not hosts.
    assert_eq!(names(&live.near), ["client1", "client2"]);
    assert_eq!(names(&live.far), ["server1", "server2"]);
    assert_eq!((live.forward.rate, live.reverse.rate), (Rate::mbit(10), Rate::mbit(20)));
    assert_eq!((live.forward.delay, live.reverse.delay), (Span::ms(10), Span::ms(5)));
    assert!(live.reverse.queue.is_usual());
}

/// The preset is what Linux does by itself.
#[test]
fn the_tcp_of_linux_is_accepted() {
    let text = VALID.replacen("[[traffic]]", "[tcp]\npreset = \"linux\"\n[[traffic]]", 1);
    assert_eq!(live(&text).tcp.rto_min, Span::ms(200));
}

/// Next to a qdisc of the kernel the reverse direction has one, too: the one of Linux that does the same.
#[test]
fn the_reverse_direction_has_a_qdisc_of_linux() {
    let with =
        |qdisc: &str| VALID.replacen("delay = \"3 ms\"", &format!("delay = \"3 ms\"\nqdisc = {qdisc:?}"), 1);
    let reverse = |text: &str| live(text).reverse_in_kernel().map(|queue| queue.to_string());
    let of = |queue: &str| Some(format!("kernel:htb+{queue}"));
    assert_eq!(reverse(VALID), of("pfifo limit 1000"));
    assert_eq!(reverse(&with("fifo limit 100p")), of("pfifo limit 100"));
    assert_eq!(reverse(&with("fq_codel target 2ms")), of("fq_codel target 2ms"));
    let message = Scenario::parse(&with("drr"), ".").expect_err("the kernel's drr has no queues").to_string();
    assert!(message.contains("the reverse direction has a discipline that Linux does not have"), "{message}");
}

/// Linux's `bbr` paces by itself, so `pacing`, which it implies, is not refused; next to CUBIC, neither.
#[test]
fn a_congestion_control_may_imply_pacing() {
    let with = |name: &str, control: &str| {
        let named = format!("{name}\ntcp = {{ congestion = \"{control}\" }}");
        live(&VALID.replacen(name, &named, 1))
    };
    assert!(with("name = \"upload\"", "bbr").tcp.pacing);
    assert!(!with("name = \"web\"", "bbr").tcp.pacing);
}

/// Nodes that only a file names are hosts, and have the same limits.
#[test]
fn hosts_can_be_named_in_a_file() {
    let folder = tempfile::tempdir().unwrap();
    let read = |kind: &str, rows: &str| {
        std::fs::write(folder.path().join("rows.csv"), rows).unwrap();
        let (links, _) = VALID.split_once("[[traffic]]").unwrap();
        let text = format!("{links}[[traffic]]\nkind = \"{kind}\"\nfile = \"rows.csv\"\n");
        Scenario::parse(&text, folder.path()).map_err(|error| error.to_string())
    };
    let rows = "0,client2,server1,1000\n1,server2,client2,50\n";
    for kind in ["flow_list", "datagram_list"] {
        let scenario = read(kind, rows).unwrap_or_else(|error| panic!("{error}"));
        let live = scenario.live().unwrap();
        let names = |nodes: &[u16]| -> Vec<&str> {
            nodes.iter().map(|node| live.network.nodes[usize::from(*node)].as_str()).collect()
        };
        assert_eq!(
            (names(&live.near), names(&live.far)),
            (vec!["client2"], vec!["server1", "server2"]),
            "{kind}"
        );
    }
    insta::assert_snapshot!(read("flow_list", "0,client1,client2,1000\n").unwrap_err(), @r#"
    error: traffic "flow_list": "client1" and "client2" are on the same side of the bottleneck
      --> scenario:30:8
    30 | file = "rows.csv"
       |        ^^^^^^^^^^ not possible on a test bed
       = help: choose hosts on opposite sides of the bottleneck
    "#);
    insta::assert_snapshot!(read("flow_list", "").unwrap_err(), @r"
    error: the files of the traffic name no nodes
      --> scenario:28:1
    28 | [[traffic]]
       | ^^^^^^^^^^^ not possible on a test bed
       = help: choose hosts on opposite sides of the bottleneck
    ");
}

#[test]
fn disciplines_of_both_kinds_keep_their_order() {
    let scenario = Scenario::parse(VALID, ".").unwrap();
    let names: Vec<String> = scenario.trials().into_iter().map(|trial| trial.name).collect();
    let written =
        ["fifo limit 100p", "kernel:htb+fq_codel limit 1000", "drr limit 100p", "kernel:tbf limit 30000"];
    assert_eq!(names, written);
    let live = scenario.live().unwrap();
    assert!(matches!(live.compared[2], Contender::Ours(1)));
    // A simulation has no disciplines of the kernel.
    let simulated = scenario.simulated().unwrap();
    let names: Vec<String> = simulated.trials().into_iter().map(|trial| trial.name).collect();
    assert_eq!(names, ["fifo limit 100p", "drr limit 100p"]);
    assert!(simulated.network().is_some());
}

#[test]
fn bpf_disciplines_are_planned_for_the_bottleneck() {
    let text = VALID.replace("kernel:fq_codel limit 1000", "bpf:trr limit 200p");
    let scenario = Scenario::parse(&text, ".").unwrap();
    let live = scenario.live().unwrap();
    assert_eq!(live.names()[1], "bpf:trr limit 200p");
    let Contender::Bpf(queue) = &live.compared[1] else { panic!("the spec begins with bpf:") };
    // A slot of its calendar is the time of a full packet without its frame: 1,500 bytes at 10 Mbit/s.
    assert_eq!((queue.plan.params.rate, queue.plan.params.width_ps), (10_000_000, 1_200_000_000));
    assert_eq!(&text[queue.place.clone()], "\"bpf:trr limit 200p\"");
    assert_eq!(
        scenario.simulated().unwrap().trials().len(),
        2,
        "a simulation has no disciplines of the kernel"
    );
}

#[test]
fn unsupported_bpf_disciplines_are_refused() {
    for (spec, expected) in [
        ("bpf:drr buckets 16", "buckets: in the kernel each flow has a separate queue; leave it out"),
        (
            "bpf:fq_codel",
            "the kernel has no discipline \"fq_codel\" of Giveway: choose one of fifo, drr, efd, trr",
        ),
    ] {
        let message = errors("kernel:fq_codel limit 1000", spec);
        assert!(message.contains(expected) && message.contains("--> scenario:4:35"), "{message}");
    }
}

#[test]
fn all_disciplines_can_be_those_of_the_kernel() {
    let scenario =
        Scenario::parse(&VALID.replace("\"fifo limit 100p\", ", "").replace("\"drr limit 100p\", ", ""), ".");
    let scenario = scenario.unwrap();
    assert_eq!(scenario.trials().len(), 2);
    assert_eq!(scenario.warnings, [], "no warnings about the placeholder");
}

#[test]
fn arrivals_are_those_of_a_simulation() {
    let on_the_bed = Scenario::parse(VALID, ".").unwrap();
    let simulated = Scenario::parse(
        &VALID
            .replace("\"live\"", "\"network\"")
            .replace("\"kernel:fq_codel limit 1000\", ", "")
            .replace(", \"kernel:tbf limit 30000\"", ""),
        ".",
    );
    let (here, there) = (on_the_bed.live().unwrap().network.clone(), simulated.unwrap());
    let there = there.network().unwrap();
    // The arrivals of a source depend on its name, its pairs and the seed.
    let sources = |network: &giveway_scenario::Network| -> Vec<(String, Vec<(u16, u16)>)> {
        network.traffic.iter().map(|stream| (stream.name.clone(), stream.pairs.clone())).collect()
    };
    assert_eq!(sources(&here), sources(there));
}

#[test]
fn invalid_tc_arguments_are_refused() {
    insta::assert_snapshot!(errors("kernel:fq_codel limit 1000", "kernel:fq_codel; reboot"), @r#"
    error: invalid character ';' in a tc qdisc specification
     --> scenario:4:35
    4 | disciplines = ["fifo limit 100p", "kernel:fq_codel; reboot", "drr limit 100p", "kernel:tbf limit 30000"]
      |                                   ^^^^^^^^^^^^^^^^^^^^^^^^^
      = help: write for example "kernel:fq_codel", as in tc's manual
    "#);
    insta::assert_snapshot!(errors("kernel:fq_codel limit 1000", "kernel:htb"), @r#"
    error: htb needs a discipline inside, as in htb+bfifo
     --> scenario:4:35
    4 | disciplines = ["fifo limit 100p", "kernel:htb", "drr limit 100p", "kernel:tbf limit 30000"]
      |                                   ^^^^^^^^^^^^
      = help: write for example "kernel:fq_codel", as in tc's manual
    "#);
}

/// The router gets tables, losses and jitter in the words of the scenario.
#[test]
fn the_bottleneck_may_vary() {
    let rate = "rate = { trace = \"x.mahi\" }\nloss = 0.01\njitter = \"1 ms\"";
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("x.mahi"), "2\n4\n").unwrap();
    let text = VALID.replacen("rate = \"10 Mbit/s\"", rate, 1);
    let text =
        text.replace("\"kernel:fq_codel limit 1000\", ", "").replace(", \"kernel:tbf limit 30000\"", "");
    let scenario = Scenario::parse(&text, folder.path()).unwrap_or_else(|error| panic!("{error}"));
    let live = scenario.live().expect("it is one of a test bed");
    let file = folder.path().join("x.mahi");
    let settings = [
        ("rate", format!("{{ trace = \"{}\" }}", file.display())),
        ("loss", "0.01".to_owned()),
        ("jitter", "1 ms".to_owned()),
    ];
    assert_eq!((&live.forward.settings[..], live.forward.varies), (&settings[..], true));
    assert_eq!((live.reverse.settings.len(), live.reverse.varies), (0, false), "it has its own rate");
    // A direction with its own delay varies as the other one, and has none of its impairments.
    let own = text.replacen("rate = \"20 Mbit/s\"\n", "", 1);
    let own = Scenario::parse(&own, folder.path()).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(own.live().expect("it is one of a test bed").reverse.settings[..], settings[..1]);
    // The opportunity at the end of the run does not count.
    assert_eq!((live.forward.rate, live.forward.wire().count()), (Rate::kbit(5997), 2));
    assert!(scenario.simulated().is_some());
}

#[test]
fn parts_that_cannot_be_emulated_are_refused() {
    insta::assert_snapshot!(errors("delay = \"1 ms\"", "delay = \"1 ms\"\nloss = 0.01"), @r#"
    error: loss: on a test bed only the bottleneck varies and impairs packets
      --> scenario:11:8
    11 | loss = 0.01
       |        ^^^^ not possible on a test bed
       = help: write it in the [[link]] with qdisc = "compare", or simulate it: backend = "network"
    "#);
    let in_kernel =
        errors("rate = \"10 Mbit/s\"", "rate = { steps = [[\"0s\", \"10mbit\"], [\"1s\", \"9mbit\"]] }");
    assert_eq!(in_kernel.matches("error: the rate of a discipline in the kernel is constant").count(), 2);
    assert!(
        in_kernel.contains("help: write a constant rate, or a discipline of giveway list"),
        "{in_kernel}"
    );
    insta::assert_snapshot!(errors("delay = \"8 ms\"", "delay = { steps = [[\"0s\", \"9ms\"]] }"), @r#"
    error: the delay of left->right varies, and other links have a delay, too
      --> scenario:12:1
    12 | [[link]]
       | ^^^^^^^^ not possible on a test bed
       = help: write delay = "0s" for the other links, and the whole delay here
    "#);
    insta::assert_snapshot!(errors("qdisc = \"compare\"", "qdisc = \"compare\"\noutages = [{ at = \"1 s\", lasts = \"1 s\" }]"), @r#"
    error: outages: a test bed has no outages
      --> scenario:18:11
    18 | outages = [{ at = "1 s", lasts = "1 s" }]
       |           ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ not possible on a test bed
       = help: leave it out, or simulate it: backend = "network"
    "#);
    insta::assert_snapshot!(errors("rate = \"1 Gbit/s\"\ndelay = \"1 ms\"\n", "rate = \"50 Mbit/s\"\ndelay = \"1 ms\"\n"), @r"
    error: client1->left has 50mbit, less than 4 times the 20mbit of the bottleneck: it would be a second bottleneck
     --> scenario:6:1
    6 | [[link]]
      | ^^^^^^^^ not possible on a test bed
      = help: give it a higher rate
    ");
    insta::assert_snapshot!(errors("rate = \"1 Gbit/s\"\ndelay = \"1 ms\"\n", "rate = \"1 Gbit/s\"\ndelay = \"1 ms\"\nqdisc = \"compare\"\n"), @r#"
    warning: 100p is 14 times less than the bandwidth-delay product
     --> scenario:4:22
    4 | disciplines = ["fifo limit 100p", "kernel:fq_codel limit 1000", "drr limit 100p", "kernel:tbf limit 30000"]
      |                      ^^^^^^^^^^ client1->left at 1gbit with a round-trip time of 16.2 ms: 1352 packets
      = help: a single TCP flow cannot fill the link

    warning: 100p is 14 times less than the bandwidth-delay product
     --> scenario:4:70
    4 | disciplines = ["fifo limit 100p", "kernel:fq_codel limit 1000", "drr limit 100p", "kernel:tbf limit 30000"]
      |                                                                      ^^^^^^^^^^ client1->left at 1gbit with a round-trip time of 16.2 ms: 1352 packets
      = help: a single TCP flow cannot fill the link

    error: client1->left and client2->left are two bottlenecks, and a test bed has one
     --> scenario:6:1
    6 | [[link]]
      | ^^^^^^^^ not possible on a test bed
      = help: write qdisc = "compare" in one [[link]], or simulate it: backend = "network"
    "#);
    insta::assert_snapshot!(errors("[[traffic]]\nkind = \"bulk\"", "[[link]]\nfrom = \"client1\"\nto = \"server1\"\nrate = \"1 Gbit/s\"\ndelay = \"1 ms\"\n[[traffic]]\nkind = \"bulk\""), @r"
    error: a second path leads around the bottleneck left->right
      --> scenario:12:1
    12 | [[link]]
       | ^^^^^^^^ not possible on a test bed
       = help: a test bed has one link between its two sides
    ");
    insta::assert_snapshot!(errors("to = \"client2\"\n", "to = \"server2\"\n"), @r#"
    error: traffic "web": "server1" and "server2" are on the same side of the bottleneck
      --> scenario:37:6
    37 | to = "server2"
       |      ^^^^^^^^^ not possible on a test bed
       = help: choose hosts on opposite sides of the bottleneck
    "#);
    insta::assert_snapshot!(errors("[[traffic]]\nkind = \"bulk\"", "[[link]]\nfrom = \"right\"\nto = \"server3\"\nrate = \"1 Gbit/s\"\ndelay = \"2 ms\"\n[[traffic]]\nkind = \"bulk\"\nfrom=\"client1\"\nto=\"server3\"\n[[traffic]]\nkind = \"bulk\""), @r#"
    error: traffic "upload": the round-trip time is 15ms between "client1" and "server1", and 17ms between others: it must be the same for all hosts of a test bed
      --> scenario:41:6
    41 | to = "server[1-2]"
       |      ^^^^^^^^^^^^^ not possible on a test bed
       = help: give all of them links of the same delay
    "#);
    insta::assert_snapshot!(errors("name = \"upload\"", "name = \"upload\"\nclass = 1"), @r#"
    error: traffic "upload": real frames have no class
      --> scenario:31:9
    31 | class = 1
       |         ^ not possible on a test bed
       = help: leave class out
    "#);
    insta::assert_snapshot!(errors("name = \"upload\"", "name = \"upload\"\ntcp = { sack = false }"), @r#"
    error: traffic "web": all traffic of a test bed has the same TCP; only congestion may differ
      --> scenario:35:1
    35 | [[traffic]]
       | ^^^^^^^^^^^ not possible on a test bed
       = help: write the other keys in the file's [tcp]
    "#);
    let quic = errors("kind = \"bulk\"", "kind = \"quic\"\nquic = { datagram = \"1400b\", pacing = false }");
    assert!(quic.contains("traffic \"upload\": the QUIC of a test bed has fixed behaviour"), "{quic}");
    insta::assert_snapshot!(errors("[[traffic]]\nkind = \"bulk\"", "[tcp]\nmss = \"1000b\"\npacing = true\n[[traffic]]\nkind = \"bulk\""), @r#"
    error: mss: Linux TCP does not support this value
      --> scenario:29:7
    29 | mss = "1000b"
       |       ^^^^^^^ not possible on a test bed
       = help: write "1460b", or "1448b" with timestamps, or leave it out

    error: pacing: Linux TCP does not support this value
      --> scenario:30:10
    30 | pacing = true
       |          ^^^^ not possible on a test bed
       = help: write false, or leave it out
    "#);
    insta::assert_snapshot!(errors("[[traffic]]\nkind = \"bulk\"", "[record]\nbursts = true\n[[traffic]]\nkind = \"bulk\""), @r"
    error: bursts: the measurements of a test bed are fixed
      --> scenario:29:10
    29 | bursts = true
       |          ^^^^ not possible on a test bed
       = help: leave it out: the packets of the bottleneck and all flows are measured
    ");
}

#[test]
fn a_test_bed_needs_a_bottleneck() {
    let text = VALID
        .replace("qdisc = \"compare\"\n", "")
        .lines()
        .filter(|line| !line.starts_with("disciplines"))
        .collect::<Vec<_>>()
        .join("\n");
    insta::assert_snapshot!(Scenario::parse(&text, ".").expect_err("it is invalid").to_string(), @r#"
    error: no link is the bottleneck
     --> scenario:5:1
    5 | [[link]]
      | ^^^^^^^^ not possible on a test bed
      = help: write qdisc = "compare" in it
    "#);
}
