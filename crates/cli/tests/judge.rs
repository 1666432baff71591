//! `giveway evaluate judge`: a module, a specification, and what is said about wrong ones.

use std::path::Path;
use std::process::Command;

/// A module in WebAssembly, and a secret.
const TURNS: &[u8] = include_bytes!("../../../fuzz/seeds/wasm/turns.wasm");

/// Runs the program in a folder. Returns its exit code, standard output and standard error.
fn ran(folder: &Path, args: &[&str]) -> (i32, String, String) {
    let mut command = Command::new(assert_cmd::cargo::cargo_bin!("giveway"));
    let output = command.arg("judge").args(args).current_dir(folder).output().expect("it starts");
    let text = |bytes| String::from_utf8(bytes).expect("it writes text");
    (output.status.code().expect("no signal ends it"), text(output.stdout), text(output.stderr))
}

#[test]
#[ignore = "it takes long: cargo xtask test --all runs it"]
fn long_a_module_has_a_score_and_no_number_of_a_held_out_cell() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("turns.wasm"), TURNS).unwrap();
    std::fs::write(folder.path().join("secret"), "only the judge knows\n").unwrap();
    let args = ["turns.wasm", "--seeds", "1", "--secret", "secret", "--json", "--quiet"];
    let (code, out, err) = ran(folder.path(), &args);
    assert_eq!((code, err.as_str()), (0, ""), "{out}");
    let judged: serde_json::Value = serde_json::from_str(&out).unwrap();
    assert_eq!(judged["accepted"], true);
    assert!(judged["score"].is_f64() && judged["public"]["score"].is_f64(), "{judged}");
    assert_eq!(judged["cells"].as_object().unwrap().len(), 33);
    assert!(judged["fuel_per_packet"].as_f64().unwrap() > 100.0, "{judged}");
    assert!(!out.contains("only the judge knows"), "the secret is not printed");
    // The same secret gives the same bytes.
    assert_eq!(ran(folder.path(), &[&args[..], &["--jobs", "1"]].concat()).1, out);
}

#[test]
fn a_rejected_candidate_ends_with_1_and_its_reason() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("none.wasm"), "def enqueue").unwrap();
    let (code, out, _) = ran(folder.path(), &["none.wasm"]);
    assert_eq!(code, 1);
    assert!(out.starts_with("none.wasm is rejected: it is not a WebAssembly module: magic header"), "{out}");
    std::fs::write(folder.path().join("turns.wasm"), TURNS).unwrap();
    let (code, out, _) = ran(folder.path(), &["turns.wasm", "--fuel", "1", "--json", "--quiet"]);
    let judged: serde_json::Value = serde_json::from_str(&out).unwrap();
    assert_eq!((code, &judged["rejected"]["code"]), (1, &serde_json::json!("fuel")), "{out}");
    let (code, out, _) =
        ran(folder.path(), &["tbf rate 50kbit burst 3kb latency 1s", "--seeds", "1", "--quiet"]);
    assert!(code == 1 && out.contains("it blocks traffic"), "{out}");
}

#[test]
fn wrong_usage_says_what_to_type() {
    let folder = tempfile::tempdir().unwrap();
    let said = |args: &[&str], part: &str| {
        let (code, out, err) = ran(folder.path(), args);
        assert!(code == 2 && out.is_empty() && err.contains(part), "{args:?}: {code} {out}{err}");
    };
    said(&["mine.py"], "mine.py is written in Python: judge it there, with giveway.judge");
    said(&["mine.wasm"], "mine.wasm cannot be read: No such file");
    said(&["fq_codell"], "did you mean \"fq_codel\"?");
    said(&["fifo", "--against", "codell"], "did you mean \"codel\"?");
    said(&["fifo", "--secret", "none"], "none cannot be read: No such file");
    std::fs::write(folder.path().join("empty"), "\n").unwrap();
    said(&["fifo", "--secret", "empty"], "empty is empty: write a text into it");
    let (code, out, _) = ran(folder.path(), &["--list-cells"]);
    assert!(code == 0 && out.lines().count() == 33, "{out}");
}
