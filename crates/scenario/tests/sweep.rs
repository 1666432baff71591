//! The table `[sweep]`.

use giveway_scenario::Scenario;

const REST: &str = r#"
    duration = "1 s"
    [[link]]
    from = "a"
    to = "b"
    rate = "1mbit"
    delay = "1ms"
    qdisc = "fifo"
    [[traffic]]
    kind = "bulk"
    from = "a"
    to = "b"
"#;

fn read(sweep: &str) -> Result<Scenario, String> {
    // The table comes last, so that the keys of the file are not part of it.
    Scenario::parse(&format!("{REST}\n[sweep]\n{sweep}"), "").map_err(|error| error.to_string())
}

#[test]
fn keys_and_values_become_those_of_the_flags() {
    let sweep = read(
        r#"
        design = "lhs:20"
        until = "fct_p99 within 5 %"
        over."link.0.rate" = ["1mbit", "10mbit"]
        over.traffic.0.flows = "1..8"
        over."tcp.ecn" = [true, false]
        "#,
    )
    .unwrap()
    .sweep;
    assert_eq!(sweep.over, ["link.0.rate=1mbit,10mbit", "traffic.0.flows=1..8", "tcp.ecn=true,false"]);
    assert_eq!(sweep.design.as_deref(), Some("lhs:20"));
    assert_eq!(sweep.until.as_deref(), Some("fct_p99 within 5 %"));
}

#[test]
fn mistakes_have_their_place() {
    for (text, part) in [
        ("desing = \"grid\"", "did you mean \"design\""),
        ("over = 3", "over: expected a table"),
        ("over.a = []", "a: expected a list of numbers and strings"),
        ("over.a = [[1]]", "a: expected a list of numbers and strings"),
        ("design = 3", "design"),
    ] {
        let error = read(text).unwrap_err();
        assert!(error.contains(part), "{text}: {error}");
    }
}
