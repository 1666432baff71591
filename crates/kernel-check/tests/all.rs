//! Tests of the two programs of the kernel test, without a kernel. A comparison without a journal must fail.

use std::process::{Command, Output};

const PROGRAMS: [&str; 2] = [env!("CARGO_BIN_EXE_kernel-judge"), env!("CARGO_BIN_EXE_kernel-oracle")];

fn run(program: &str, words: &[&str]) -> Output {
    Command::new(program).args(words).output().unwrap_or_else(|error| panic!("{program}: {error}"))
}

#[test]
fn no_journal_is_a_failure() {
    for program in PROGRAMS {
        assert_eq!(run(program, &[]).status.code(), Some(1), "{program}");
    }
}

#[test]
fn an_incomplete_group_of_arguments_is_an_error() {
    for program in PROGRAMS {
        let output = run(program, &["journal", "10mbit", "efd"]);
        assert_eq!(output.status.code(), Some(2), "{program}");
        assert_eq!(
            String::from_utf8_lossy(&output.stdout),
            "four arguments for each journal: FILE RATE DISCIPLINE PACKETS\n"
        );
    }
}

#[test]
fn a_missing_journal_is_a_difference() {
    for program in PROGRAMS {
        let output = run(program, &["/nonexistent/efd-equal-2", "10mbit", "efd", "5000"]);
        assert_eq!(output.status.code(), Some(1), "{program}");
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(text.starts_with("DIFFERENT ") && text.contains("No such file"), "{program}: {text}");
    }
}

/// A packet that arrives and leaves. As a journal of a link with gaps it shows too little.
#[test]
fn gaps_without_drops_are_a_difference() {
    let entry = |words: [u64; 3], halves: [u32; 4]| {
        let halves = halves.into_iter().flat_map(u32::to_le_bytes);
        words.into_iter().flat_map(u64::to_le_bytes).chain(halves).collect::<Vec<u8>>()
    };
    let (arrives, leaves) =
        (entry([1_024_000, 0, 0], [0, 1000, 1, 0]), entry([2_048_000, 0, 0], [0, 1000, 3, 0]));
    let journal = [entry([2, 0, 0], [0; 4]), arrives, leaves].concat();
    let file = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("gaps.journal");
    std::fs::write(&file, journal).unwrap();
    let judged = |least: &str| {
        let output = run(PROGRAMS[1], &[file.to_str().unwrap(), "10mbit", "codel", least]);
        (output.status.success(), String::from_utf8_lossy(&output.stdout).into_owned())
    };
    assert!(judged("1").0, "{}", judged("1").1);
    let (success, text) = judged("1/50");
    assert!(!success && text.contains("show too little: 0 gaps"), "{text}");
}

#[test]
fn the_judge_prints_parameters_and_marks_as_they_are_loaded() {
    let words = |words: &[&str]| {
        let output = run(PROGRAMS[0], words);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        text.split_whitespace().map(str::to_owned).collect::<Vec<_>>()
    };
    let trr = words(&["params", "50mbit", "trr limit 300p flows 6 width 300us slots 7", "2000=400kbit"]);
    assert_eq!([&trr[0], &trr[1]], ["rate=50000000", "limit_packets=300"]);
    assert!(trr.contains(&"width_ps=300000000".to_owned()));
    assert_eq!(trr.last().unwrap(), "mark.2000=400000");
    // Hops 5 and 7, each plus one, in 16 bits each.
    let bsq = words(&["params", "50mbit", "bsq limit 300p level 2", "6=5.7"]);
    assert_eq!(bsq.last().unwrap(), "mark.6=524294");
    assert_eq!(run(PROGRAMS[0], &["params", "50mbit", "codel"]).status.code(), Some(1));
}
