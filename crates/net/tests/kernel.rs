//! `giveway kernel`, without a kernel that supports BPF qdiscs. `cargo xtask test-kernel` has the other
//! tests.

use std::process::Command;

fn giveway(words: &[&str]) -> (i32, String, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_giveway-net")).args(words).output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code().unwrap(), text(&output.stdout), text(&output.stderr))
}

#[test]
fn disciplines_for_the_kernel_are_listed() {
    let (code, out, _) = giveway(&["kernel", "list"]);
    assert_eq!(code, 0);
    for name in ["fifo", "drr", "efd", "trr", "bsq"] {
        assert!(out.contains(&format!("\n  {name:<5} ")), "{out}");
    }
}

#[test]
fn disciplines_for_the_kernel_are_listed_for_programs() {
    let (code, out, _) = giveway(&["kernel", "list", "--json"]);
    assert_eq!((code, out.lines().count()), (0, 1));
    let listed: serde_json::Value = serde_json::from_str(&out).expect("it is JSON");
    let disciplines = listed["disciplines"].as_array().expect("they are in an array");
    let names: Vec<&str> = disciplines.iter().filter_map(|one| one["name"].as_str()).collect();
    assert_eq!(names, ["fifo", "drr", "efd", "trr", "bsq"]);
    assert!(
        disciplines.iter().all(|one| one["summary"].as_str().is_some_and(|text| !text.is_empty())),
        "{out}"
    );
    assert!(listed["loaded"].is_array(), "{out}");
}

#[test]
fn what_cannot_be_loaded_is_refused_with_a_correction() {
    for (words, expected) in [
        (&["efd", "--dev", "no-such"][..], "there is no interface \"no-such\": there are "),
        (
            &["codel", "--dev", "lo"],
            "the kernel has no discipline \"codel\" of Giveway: choose one of fifo, drr, efd, trr",
        ),
        (&["trr", "--dev", "lo"], "write --rate, for example --rate 10mbit"),
        (
            &["drr buckets 10", "--dev", "lo"],
            "buckets: in the kernel each flow has a separate queue; leave it out",
        ),
        (&["fifo", "--limit", "200000p", "--dev", "lo"], "the kernel's disciplines store at most 131070"),
        (&["efd", "--dev", "lo", "--reserve", "1=2mbit"], "only trr has reservations"),
        (
            &["trr", "--dev", "lo", "--rate", "1mbit", "--reserve", "0=1mbit"],
            "write a mark and a rate, as in 1=2mbit",
        ),
        (&["efd", "--dev", "lo", "--hops", "1=4"], "only bsq uses routes"),
        (&["bsq", "--dev", "lo", "--hops", "1=4.x"], "write the numbers of one to four nodes"),
        (
            &["bsq branches 3", "--dev", "lo", "--hops", "1=4", "--hops", "2=5"],
            "these routes have 2 nodes: write branches 4",
        ),
    ] {
        let (code, out, err) = giveway(&[&["kernel", "load"], words].concat());
        assert_eq!((code, out.as_str()), (2, ""), "{err}");
        assert!(err.contains(expected), "{err}");
    }
}

#[test]
fn only_a_loaded_discipline_can_be_unloaded() {
    let (code, _, err) = giveway(&["kernel", "unload", "--dev", "no-such"]);
    assert_eq!(code, 2);
    assert!(err.contains("no-such has no discipline of Giveway: giveway kernel list"), "{err}");
    let (code, _, err) = giveway(&["kernel", "unload"]);
    assert!(code == 2 && err.contains("--dev"), "{err}");
    let (code, _, err) = giveway(&["kernel", "unload", "--gone", "--dev", "lo"]);
    assert!(code == 2 && err.contains("--gone"), "{err}");
}
