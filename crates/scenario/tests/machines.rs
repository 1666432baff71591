//! Media that links share, and the timing of machines: what their keys mean, and the messages about those
//! that are wrong.

use giveway_links::{Airtime, Lateness, MediumSpec, Wake};
use giveway_qdisc::{Bytes, Span};
use giveway_scenario::{Backend, Network, Scenario};

/// A scenario with these keys above the links, and these keys of its link.
fn text(top: &str, link: &str) -> String {
    format!(
        "duration = \"10 s\"\ndisciplines = [\"fifo\"]\n{top}\n[[link]]\nfrom = \"a\"\nto = \"b\"\n\
         rate = \"10mbit\"\ndelay = \"10ms\"\nqdisc = \"compare\"\n{link}\n\
         [[traffic]]\nkind = \"bulk\"\nfrom = \"a\"\nto = \"b\"\n"
    )
}

fn network(top: &str, link: &str) -> Network {
    let scenario = Scenario::parse(&text(top, link), ".").unwrap_or_else(|error| panic!("{error}"));
    match scenario.backend {
        Backend::Network(network) => network,
        _ => panic!("it is a network"),
    }
}

fn error(top: &str, link: &str) -> String {
    Scenario::parse(&text(top, link), ".").expect_err("it is invalid").to_string()
}

const MEDIUM: &str = "[[medium]]\nname = \"air\"";
const ON_AIR: &str = "medium = \"air\"";

#[test]
fn both_directions_of_a_link_share_its_medium() {
    let keys = "airtime = \"fair\"\naccess = \"10us\"\nburst_bytes = \"10kb\"\nburst_packets = 4";
    let network = network(&format!("{MEDIUM}\n{keys}"), ON_AIR);
    assert!(network.ports.iter().all(|port| port.medium == Some(0)));
    let usual = MediumSpec::default();
    let spec = network.media[0].spec;
    assert_eq!((spec.airtime, spec.access), (Airtime::Fair, Span::us(10)));
    assert_eq!((spec.limit.bytes, spec.limit.packets), (10 * 1024, 4));
    assert_eq!(
        (spec.backoff, spec.overhead, spec.limit.time),
        (usual.backoff, usual.overhead, usual.limit.time)
    );
}

#[test]
fn a_measured_timing_makes_hosts_late() {
    let exact = network("phase = \"exact\"", "");
    assert!(exact.timing == giveway_sim::Timing::default());
    assert!(exact.traffic[0].tcp.gso == Bytes(0));
    let late = network("timing = \"measured\"", "");
    let machine = |what| Lateness::named("virtual-machine", what);
    assert_eq!(late.timing.senders, machine(Wake::Timer));
    assert_eq!(late.timing.receivers, machine(Wake::Receive));
    assert!(late.timing.gro);
    assert!(late.ports.iter().all(|port| port.impairments.dispatch_jitter.is_none()));
    assert_eq!(late.traffic[0].tcp.gso, Bytes(65_536));
    let others = network("timing = \"measured\"\n[tcp]\nsack = false", "");
    assert_eq!((others.traffic[0].tcp.gso, others.traffic[0].tcp.sack), (Bytes(65_536), false));
    let own = network("timing = \"measured\"\n[tcp]\ngso = \"10kb\"", "");
    assert_eq!(own.traffic[0].tcp.gso, Bytes(10 * 1024));
}

#[test]
fn a_table_of_the_timing_has_each_part() {
    let timing = "timing = { receivers = \"80us\", links = \"1ms\", coalesce = \"30us\", gro = true }";
    let network = network(timing, "dispatch_jitter = \"2ms\"");
    assert_eq!(network.timing.senders, None);
    assert_eq!(network.timing.receivers, Some(Lateness::uniform(Span::us(80))));
    assert_eq!((network.timing.coalesce, network.timing.gro), (Span::us(30), true));
    let own = network.ports[0].impairments.dispatch_jitter.clone();
    assert_eq!(own, Some(Lateness::uniform(Span::ms(2))), "a link's own is kept");
    assert_eq!(network.ports[1].impairments.dispatch_jitter, None, "the way back compares nothing");
}

#[test]
fn a_measured_file_is_relative_to_the_scenario() {
    let folder = tempfile::tempdir().unwrap();
    let rows = "what,share,delay\ntimer,0,1us\ntimer,1,3us\nreceive,0,5us\nreceive,1,7us\n";
    std::fs::write(folder.path().join("lab.csv"), rows).unwrap();
    let path = folder.path().to_str().unwrap();
    let scenario = Scenario::parse(&text("timing = \"lab.csv\"", ""), path).unwrap();
    let Backend::Network(network) = scenario.backend else { panic!("it is a network") };
    assert_eq!(network.timing.receivers.unwrap().quantile(0.5), Span::us(6));
    std::fs::write(folder.path().join("lab.csv"), format!("{rows}timer,2,9us\n")).unwrap();
    let wrong = Scenario::parse(&text("timing = \"lab.csv\"", ""), path).unwrap_err().to_string();
    assert!(wrong.contains("timing: lab.csv, line 6: the share 2 is not between 0 and 1"), "{wrong}");
}

#[test]
fn mistakes_are_named_with_what_to_write() {
    let cases = [
        (MEDIUM, "medium = \"aire\"", "there is no medium \"aire\"", "did you mean \"air\"?"),
        ("", ON_AIR, "there is no medium \"air\"", "write [[medium]] with name = \"air\""),
        (MEDIUM, "", "no link uses the medium \"air\"", "write medium = \"air\" in the links"),
        ("[[medium]]\naccess = \"1us\"", "", "a medium needs \"name\"", ""),
        ("[[medium]]\nname = \"air\"\n[[medium]]\nname = \"air\"", ON_AIR, "there are two media \"air\"", ""),
        (
            "[[medium]]\nname = \"air\"\nburst_packets = 0",
            ON_AIR,
            "a burst has at least one packet",
            "write 1",
        ),
        (
            "[[medium]]\nname = \"air\"\naccess = \"0s\"\nbackoff = \"0s\"\noverhead = \"0s\"",
            ON_AIR,
            "costs nothing to share",
            "access = \"1us\"",
        ),
        (
            MEDIUM,
            "medium = \"air\"\ndispatch_jitter = \"1ms\"",
            "a link on a medium is served when it gets the medium",
            "leave it out",
        ),
        (
            "timing = \"mesured\"",
            "",
            "timing: \"mesured\" is neither a time nor a file nor a known machine",
            "",
        ),
        ("timing = \"50us\"", "", "a time alone does not say what is late", "senders = \"50us\""),
        ("timing = 5", "", "timing: expected \"measured\", a file, or a table", ""),
        ("timing = { gro = true }", "", "hosts that handle each packet at once", "coalesce = \"50us\""),
        ("", "dispatch_jitter = \"20s\"", "dispatch_jitter: 20s is longer than 10s", "50us"),
        ("timing = \"none.csv\"", "", "timing: none.csv cannot be read", "--measure-timing"),
    ];
    for (top, link, message, help) in cases {
        let error = error(top, link);
        assert!(error.contains(message), "{top} {link}\n{error}");
        assert!(error.contains(help), "{top} {link}\n{error}");
    }
}
