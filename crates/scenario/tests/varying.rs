//! Links that vary: what their keys mean, and the messages about those that are wrong.

use giveway_links::{Gilbert, Loss, Reorder};
use giveway_qdisc::{Bytes, Rate, Share, Span};
use giveway_scenario::{Backend, Draft, Network, Scenario, ScenarioError};

/// A scenario whose first link has these keys in place of a rate.
fn text(keys: &str) -> String {
    let delay = if keys.contains("delay =") { "" } else { "delay = \"10ms\"" };
    format!(
        "duration = \"10 s\"\n[[link]]\nfrom = \"a\"\nto = \"b\"\n{keys}\n{delay}\n\
         [[traffic]]\nkind = \"bulk\"\nfrom = \"a\"\nto = \"b\"\n"
    )
}

fn network(keys: &str) -> Network {
    network_in(keys, ".")
}

fn network_in(keys: &str, folder: &str) -> Network {
    let scenario = Scenario::parse(&text(keys), folder).unwrap_or_else(|error| panic!("{keys}: {error}"));
    match scenario.backend {
        Backend::Network(network) => network,
        _ => panic!("it is a network"),
    }
}

fn error(keys: &str) -> String {
    error_in(keys, ".")
}

fn error_in(keys: &str, folder: &str) -> String {
    Scenario::parse(&text(keys), folder).expect_err("it is invalid").to_string()
}

/// A folder with a file.
fn folder(name: &str, content: &[u8]) -> (tempfile::TempDir, String) {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join(name), content).unwrap();
    let path = folder.path().to_str().unwrap().to_owned();
    (folder, path)
}

fn share(share: f64) -> Share {
    Share::new(share).unwrap()
}

#[test]
fn both_directions_vary_unless_the_reverse_has_its_own() {
    let keys = "rate = { steps = [[\"0s\", \"50mbit\"], [\"10s\", \"10mbit\"]], loop = true }";
    let both = network(keys);
    assert!(both.ports.iter().all(|port| port.rate == Rate::mbit(50) && port.impairments.rate.is_some()));
    let one = network(&format!("{keys}\nback = {{ rate = \"5mbit\" }}"));
    assert!(one.ports[0].impairments.rate.is_some());
    assert!(one.ports[1].impairments.rate.is_none() && one.ports[1].rate == Rate::mbit(5));
}

#[test]
fn impairments_are_those_of_their_direction() {
    let keys = "rate = \"10mbit\"\nloss = { model = \"gemodel\", p = \"1%\", r = \"20%\", 1-k = \"0.1%\" }\n\
                reorder = { percent = \"2%\", distance = 5 }\nduplicate = \"3%\"\ncorrupt = 0.04\n\
                unordered = true\njitter = \"2ms\"\npolice = { rate = \"5mbit\", burst = \"10kb\" }";
    let network = network(keys);
    let [port, back] = &network.ports[..] else { panic!("there are two ports") };
    let gilbert =
        Loss::Gilbert(Gilbert { p: share(0.01), r: share(0.2), bad: share(1.0), good: share(0.001) });
    assert_eq!(port.impairments.loss, Some(gilbert));
    assert_eq!(port.impairments.reorder, Some(Reorder { percent: share(0.02), distance: 5 }));
    assert_eq!(port.impairments.duplicate, share(0.03));
    assert_eq!(port.impairments.corrupt, share(0.04));
    assert!(port.impairments.unordered && port.jitter == Span::ms(2));
    let police = port.police.unwrap();
    assert_eq!((police.rate, police.burst), (Rate::mbit(5), Bytes(10 * 1024)));
    assert!(!back.impairments.any(back.loss, back.jitter) && back.police.is_none());
}

#[test]
fn gemodel_with_p_alone_loses_independently() {
    let network = network("rate = \"10mbit\"\nloss = { model = \"gemodel\", p = \"5%\" }");
    let Some(Loss::Gilbert(Gilbert { p, r, .. })) = network.ports[0].impairments.loss else {
        panic!("it has a loss")
    };
    assert!((p.get() + r.get() - 1.0).abs() < 1e-12, "the state before has no effect");
}

#[test]
fn a_trace_is_relative_to_the_folder_and_is_one_of_the_files() {
    let (_kept, path) = folder("x.mahi", b"1\n2\n3\n");
    let keys = "rate = { trace = \"x.mahi\" }";
    // One opportunity per millisecond: 9,999 within the 10 s of the run, whose end is not part of it.
    assert_eq!(network_in(keys, &path).ports[0].rate, Rate::bit(9_999 * 12_000 / 10));
    let scenario = Scenario::parse(&text(keys), &path).unwrap();
    assert_eq!(scenario.files(), [std::path::Path::new(&path).join("x.mahi")]);
}

/// Each mistake with a part of its message, and a part of its help.
#[test]
fn a_mistake_has_its_place_and_a_remedy() {
    let cases = [
        ("rate = {}", "rate: nothing says how it varies", "write one of trace, csv, steps, ramp, model"),
        (
            "rate = { steps = [] }",
            "steps: there are no points",
            "[[\"0s\", \"50mbit\"], [\"10s\", \"1mbit\"]]",
        ),
        (
            "rate = { steps = [[\"0s\", \"1mbit\"], [\"5s\", \"2mbit\"], [\"3s\", \"1mbit\"]] }",
            "steps: the time goes back, from 5s to 3s",
            "write points in order of time",
        ),
        (
            "rate = { steps = [[\"1s\", \"1mbit\"]] }",
            "the first point is at 1s",
            "begin with a point at \"0s\"",
        ),
        ("rate = { steps = [[\"0s\", \"0mbit\"]] }", "the rate is 0 everywhere", "write a rate above 0"),
        ("rate = { steps = [[\"0s\", \"11tbit\"]] }", "exceeds 10 Tbit/s", "write at most 10tbit"),
        (
            "rate = { steps = [[\"0s\", \"1mbit\"]], loop = true }",
            "the loop has no length: its last time is 0",
            "write one above 0, or loop = false",
        ),
        ("rate = { steps = [[\"0s\", 5]] }", "steps: expected a rate", ""),
        (
            "rate = { stesp = [[\"0s\", \"1mbit\"]] }",
            "unknown key \"stesp\" of rate",
            "did you mean \"steps\"?",
        ),
        (
            "rate = { steps = [[\"0s\", \"1mbit\"]], csv = \"x.csv\" }",
            "rate: \"csv\" and \"steps\" exclude each other",
            "leave one of them out",
        ),
        ("rate = { steps = [[\"0s\", \"1mbit\"]], seed = 3 }", "this rate has no \"seed\"", "there are loop"),
        (
            "rate = { model = \"lta\", mean = \"1mbit\" }",
            "rate: unknown model \"lta\"",
            "did you mean \"lte\"?",
        ),
        ("rate = { model = \"lte\" }", "model \"lte\" needs \"mean\"", ""),
        (
            "rate = { model = \"lte\", mean = \"1mbit\", every = \"1s\" }",
            "model \"lte\" has no \"every\"",
            "there are mean, spread, hold",
        ),
        (
            "rate = { model = \"satellite\", low = \"9mbit\", high = \"1mbit\" }",
            "model: low: it is above high",
            "write the lower value as low",
        ),
        (
            "rate = { model = \"cable\", mean = \"1kbit\" }",
            "less than a byte in each interval",
            "a longer every",
        ),
        (
            "rate = { model = \"lte\", mean = \"1mbit\", hold = \"1us\" }",
            "hold: the rate would change more often",
            "write a longer time",
        ),
        ("rate = \"1mbit\"\ndelay = { trace = \"x\" }", "unknown key \"trace\" of delay", ""),
        (
            "rate = \"1mbit\"\ndelay = { steps = [[\"0s\", \"2h\"]] }",
            "the delay of 7200s exceeds an hour",
            "write at most 1h",
        ),
        (
            "rate = \"1mbit\"\ndelay = { model = \"lte\" }",
            "delay: unknown model \"lte\"",
            "there are satellite",
        ),
        ("rate = \"1mbit\"\nloss = { model = \"gemodel\" }", "model \"gemodel\" needs \"p\"", ""),
        ("rate = \"1mbit\"\nloss = { p = \"1%\" }", "loss: nothing says how it varies", "write one of model"),
        (
            "rate = \"1mbit\"\nloss = { model = \"handover\", every = \"50ms\" }",
            "loss: a seam of 100ms does not end before the next, 50ms later",
            "write for example every",
        ),
        (
            "rate = \"1mbit\"\nreorder = { percent = \"1%\", distance = 0 }",
            "reorder: a distance of 0 is not between 1 and 10000",
            "distance = 3",
        ),
        (
            "rate = \"1mbit\"\npolice = { rate = \"1mbit\", burst = \"100b\" }",
            "police: a burst of 100b drops every packet of full size",
            "burst = \"100kb\"",
        ),
        ("rate = \"1mbit\"\nthin_acks = 1", "thin_acks: must be at least 2", "thin_acks = 4"),
        ("rate = \"1mbit\"\nduplicate = \"300%\"", "duplicate:", ""),
    ];
    for (keys, message, help) in cases {
        let error = error(keys);
        assert!(error.contains(message), "{keys}\n{error}");
        assert!(error.contains(help), "{keys}\n{error}");
        assert!(error.contains("scenario:5") || error.contains("scenario:6"), "{keys}\n{error}");
    }
}

#[test]
fn a_mistake_in_a_file_has_the_line_of_the_file() {
    let cases: [(&[u8], &str); 6] = [
        (b"3\n9\n4\n", "trace: x.mahi, line 3: the time goes back, from 9ms to 4ms"),
        (b"", "trace: x.mahi: the file has no row"),
        (b"0\n0\n", "trace: x.mahi: the loop has no length: its last time is 0"),
        (b"\x7fELF\x02\x01\xff\xfe", "trace: x.mahi, line 1: this is not text"),
        (b"1\n2\nthree\n", "trace: x.mahi, line 3: expected a whole number of milliseconds, found \"three\""),
        (b"1 5\n", "trace: x.mahi, line 1: expected a whole number of milliseconds, found \"1 5\""),
    ];
    for (content, message) in cases {
        let (_kept, path) = folder("x.mahi", content);
        let error = error_in("rate = { trace = \"x.mahi\" }", &path);
        assert!(error.contains(message), "{error}");
        assert!(error.contains("= help: "), "{error}");
    }
    let missing = error("rate = { trace = \"nowhere.mahi\" }");
    assert!(missing.contains("trace: nowhere.mahi: cannot be opened"), "{missing}");
    assert!(missing.contains("the path is relative to the folder of the scenario"), "{missing}");
}

/// A shaper above the lowest rate suits the mean, and shapes nothing while the link is slow.
#[test]
fn a_discipline_for_another_rate_gets_a_warning() {
    let steps = "rate = { steps = [[\"0s\", \"50mbit\"], [\"9s\", \"5mbit\"], [\"10s\", \"5mbit\"]] }";
    let warnings = |qdisc: &str| {
        let scenario = Scenario::parse(&text(&format!("{steps}\nqdisc = \"{qdisc}\"")), ".").unwrap();
        ScenarioError { origin: scenario.origin().clone(), diagnostics: scenario.warnings.clone() }
            .to_string()
    };
    let warned = warnings("tbf rate 20mbit burst 10kb limit 100p");
    assert!(warned.contains("rate 20mbit is not below the rate of the link, 5mbit"), "{warned}");
    assert!(warned.contains("at a->b, while it has 5mbit; its mean is 45500kbit"), "{warned}");
    let fits = warnings("tbf rate 4mbit burst 10kb limit 30p");
    assert!(!fits.contains("while it has"), "{fits}");
}

#[test]
fn a_test_bed_refuses_what_it_does_not_emulate() {
    let scenario = |keys: &str| {
        format!(
            "backend = \"live\"\nduration = \"10 s\"\ndisciplines = [\"fifo limit 100p\"]\n[[link]]\n\
             from = \"a\"\nto = \"b\"\n{keys}\nqdisc = \"compare\"\n\
             [[traffic]]\nkind = \"bulk\"\nfrom = \"a\"\nto = \"b\"\n"
        )
    };
    for (keys, message) in [
        (
            "rate = \"9mbit\"\ndelay = \"5ms\"\nthin_acks = 4",
            "thin_acks: a test bed sends all acknowledgements",
        ),
        (
            "rate = \"9mbit\"\ndelay = \"5ms\"\npolice = { rate = \"1mbit\", burst = \"10kb\" }",
            "police: a test bed has no policers",
        ),
    ] {
        let error = Scenario::parse(&scenario(keys), ".").expect_err("it is refused").to_string();
        assert!(error.contains(message), "{error}");
    }
}

/// A scenario may come from another person, and opening a named pipe waits until somebody writes to it.
#[test]
#[cfg(unix)]
fn a_pipe_in_place_of_a_file_is_an_error_at_once() {
    let (folder, path) = folder("edges.csv", b"from,to,rate,delay\n");
    let pipe = folder.path().join("pipe");
    let made = std::process::Command::new("mkfifo").arg(&pipe).status();
    assert!(made.is_ok_and(|status| status.success()));
    for keys in [
        "rate = { trace = \"pipe\" }",
        "rate = { csv = \"pipe\" }",
        "rate = \"1mbit\"\ndelay = { csv = \"pipe\" }",
    ] {
        let error = error_in(keys, &path);
        assert!(error.contains("it is a named pipe, not a file"), "{keys}: {error}");
    }
    let fine = text("rate = \"1mbit\"");
    for (traffic, place) in [
        ("kind = \"bulk\"", "timing = \"pipe.csv\"\n"),
        ("kind = \"capture\"\nfile = \"pipe\"", ""),
        ("kind = \"applications\"\nfile = \"pipe\"", ""),
        ("kind = \"flow_list\"\nfile = \"pipe\"", ""),
    ] {
        std::fs::rename(&pipe, folder.path().join(if place.is_empty() { "pipe" } else { "pipe.csv" }))
            .unwrap();
        let text = format!("{place}{}", fine.replace("kind = \"bulk\"", traffic));
        let error = Scenario::parse(&text, &*path).expect_err("it is invalid").to_string();
        assert!(error.contains("it is a named pipe, not a file"), "{traffic}: {error}");
        let _ = std::fs::rename(folder.path().join("pipe.csv"), &pipe);
    }
    let file = folder.path().join("scenario.toml");
    std::fs::rename(&pipe, &file).unwrap();
    let error = Draft::load(&file).map(drop).unwrap_err();
    let source = std::error::Error::source(&error).map(ToString::to_string).unwrap_or_default();
    assert!(format!("{error} {source}").contains("it is a named pipe, not a file"), "{error}: {source}");
}
