//! JSON, metrics, terminal view and summary are functions of one snapshot: a counter has one value in all of
//! them.

use crate::support::two;
use giveway_watch::{Backend, Reservations, Style, json, openmetrics, summary, tui};

#[test]
fn summary_of_two_directions() {
    insta::assert_snapshot!(summary::render(&two()));
}

#[test]
fn json_of_two_directions() {
    let mut two = two();
    two[1].reservations = Some(Reservations { messages: vec![("granted", 1)], ..Reservations::default() });
    insta::assert_snapshot!(format!("{:#}", json::render(&two)));
}

/// A counter has one name in all outputs: the JSON keys are words of the summary and of the terminal view.
#[test]
fn counters_have_the_same_names_and_values_in_all_outputs() {
    let mut two = two();
    let status = &mut two[0].status;
    (status.losses.ring, status.losses.no_buffer, status.losses.too_long, status.losses.unsent) =
        (11, 12, 13, 14);
    let json = json::render(&two);
    let direction = &json["directions"][0];
    let summary = summary::render(&two);
    let screen = tui::screen(&two, 200, 50, Style::default()).join("\n");
    let metrics = openmetrics::render(&two);
    for name in ["arrived", "sent", "dropped", "backlog"] {
        let (packets, bytes) = (&direction[name]["packets"], &direction[name]["bytes"]);
        assert!(summary.contains(&format!("{name:<10} {packets} packets, {bytes} bytes")), "{name}");
        let family = metrics.lines().filter(|line| line.starts_with(&format!("giveway_{name}_packets")));
        let forward = family.filter(|line| line.contains("forward"));
        let sum: u64 = forward.map(|line| line.rsplit(' ').next().unwrap().parse::<u64>().unwrap()).sum();
        assert_eq!(sum, packets.as_u64().unwrap(), "{name}");
    }
    for name in ["ring", "no_buffer", "too_long", "unsent", "link_emulation"] {
        let lost = &direction["lost"][name];
        assert!(summary.contains(&format!("{:<10} {lost} {name}", "lost")), "{name}");
        assert!(screen.contains(&format!("{name} {lost}")), "{name}");
    }
    for name in ["backlog", "sojourn", "lateness", "stalls", "marked"] {
        assert!(screen.contains(name) && summary.contains(name), "{name}");
        assert!(metrics.contains(&format!("giveway_{name}")), "{name}");
    }
}

/// Counters that the kernel does not have are left out, since zero would be misleading.
#[test]
fn counters_that_the_kernel_does_not_have_are_left_out() {
    let mut two = two();
    two[0].backend = Backend::Kernel;
    let json = json::render(&two);
    let keys: Vec<&str> = json["directions"][0].as_object().unwrap().keys().map(String::as_str).collect();
    let expected = [
        "direction",
        "from",
        "to",
        "rate_bps",
        "qdisc",
        "uptime_s",
        "arrived",
        "sent",
        "dropped",
        "backlog",
        "drops",
        "gauges",
        "classes",
        "scheduling",
    ];
    assert_eq!(keys, expected);
}
