//! The messages of commands about a scenario with mistakes, for people and for programs.

use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};
use tempfile::TempDir;

const LINK: &str =
    "[[link]]\nfrom = \"a\"\nto = \"b\"\nrate = \"5mbit\"\ndelay = \"10ms\"\nqdisc = \"compare\"\n";
const TRAFFIC: &str = "[[traffic]]\nkind = \"bulk\"\nfrom = \"a\"\nto = \"b\"\n";

/// A folder with two scenarios: one with an unknown key in each of 98 tables, and one without mistakes.
fn folder() -> TempDir {
    let folder = tempfile::tempdir().expect("there is room for a folder");
    let head = "duration = \"1 s\"\ndisciplines = [\"fifo limit 50p\"]\n";
    let wrong: String = (0..98).map(|number| format!("{TRAFFIC}oops{number} = 1\n")).collect();
    for (name, traffic) in [("wrong.toml", wrong.as_str()), ("right.toml", TRAFFIC)] {
        let file = folder.path().join(name);
        std::fs::write(file, format!("{head}{LINK}{traffic}")).expect("there is room for a file");
    }
    folder
}

/// Runs the program. Returns its exit code, standard output and standard error.
fn ran(folder: &Path, args: &[&str]) -> (i32, String, String) {
    let mut command = Command::new(assert_cmd::cargo::cargo_bin!("giveway"));
    let output = command.args(args).current_dir(folder).env("COLUMNS", "100").env("NO_COLOR", "1").output();
    let output = output.expect("the program starts");
    let text = |bytes| String::from_utf8(bytes).expect("it writes text");
    (output.status.code().expect("no signal ends it"), text(output.stdout), text(output.stderr))
}

/// Every command that reads a scenario shows the first three mistakes whole, and names the flag for the rest.
#[test]
fn three_of_many_mistakes_are_shown() {
    let folder = folder();
    let commands: [&[&str]; 5] = [&["check"], &["run"], &["bound"], &["testbed"], &["search", "--capacity"]];
    for command in commands {
        let (code, out, err) = ran(folder.path(), &[command, &["wrong.toml"]].concat());
        assert_eq!((code, out.as_str(), err.matches("error: ").count()), (2, "", 3), "{command:?}: {err}");
        for number in 0..3 {
            assert!(err.contains(&format!("unknown key \"oops{number}\"")), "{err}");
        }
        assert!(err.ends_with("\nand 95 more errors; --all-errors shows them\n"), "{err}");

        let (code, _, err) = ran(folder.path(), &[command, &["wrong.toml", "--all-errors"]].concat());
        assert_eq!((code, err.matches("error: ").count()), (2, 98), "{command:?}");
        assert!(!err.contains("more"), "{err}");
    }
}

/// A metric that does not exist is refused before a trial runs, and so is a source without traffic.
#[test]
fn a_wrong_metric_is_refused_before_a_sweep_runs() {
    let folder = folder();
    for (metric, part) in [
        ("fct_p95", "there is no metric fct_p95; did you mean fct_p95_s?"),
        ("src.bulk.goodput", "there is no metric src.bulk.goodput; did you mean src.bulk.goodput_bps?"),
        ("src.bukl.goodput_bps", "the scenario has no source bukl for src.bukl.goodput_bps; it has bulk"),
    ] {
        let sweep = ["sweep", "right.toml", "--over", "link.0.rate=1mbit,2mbit", "--metric", metric];
        let (code, out, err) = ran(folder.path(), &sweep);
        assert_eq!((code, out.as_str()), (2, ""), "{err}");
        assert!(err.contains(part), "{err}");
        assert!(!folder.path().join("sweeps").exists(), "nothing has run");
    }
}

#[test]
fn a_number_of_seeds_in_words_is_answered_with_a_number() {
    let folder = folder();
    let evaluate: &[&str] = &["evaluate", "efd"];
    for command in [&["run", "right.toml"], &["sweep", "right.toml"], evaluate] {
        let (code, _, err) = ran(folder.path(), &[command, &["--seeds", "ten"]].concat());
        assert!(
            code == 2 && err.contains("write a whole number from 1 to 100000, as in --seeds 10"),
            "{err}"
        );
    }
}

#[test]
fn a_checked_scenario_is_an_object_for_programs() {
    let folder = folder();
    let (code, out, err) = ran(folder.path(), &["check", "--json", "right.toml", "wrong.toml", "none.toml"]);
    assert_eq!((code, err.as_str(), out.lines().count()), (2, "", 1));
    let files: Value = serde_json::from_str(&out).expect("it is JSON");
    assert_eq!(
        files[0],
        json!({
            "file": "right.toml", "ok": true, "runs": 1, "errors": [], "warnings": [],
            "summary": "2 nodes, 2 ports, 1 discipline, 1 run of 1s",
        })
    );
    assert_eq!((&files[1]["ok"], &files[1]["summary"]), (&json!(false), &Value::Null));
    let errors = files[1]["errors"].as_array().expect("they are in an array");
    assert_eq!(errors.len(), 98, "all of them");
    assert_eq!((&errors[0]["file"], &errors[0]["flag"]), (&json!("wrong.toml"), &Value::Null));
    assert_eq!((&errors[0]["line"], &errors[0]["column"]), (&json!(13), &json!(1)));
    assert_eq!((&errors[97]["line"], &errors[97]["column"]), (&json!(498), &json!(1)));
    assert_eq!(errors[0]["message"], "unknown key \"oops0\" of bulk traffic");
    let unreadable = &files[2]["errors"][0];
    assert_eq!((&unreadable["file"], &unreadable["line"]), (&json!("none.toml"), &Value::Null));
    assert!(unreadable["message"].as_str().unwrap().starts_with("cannot read none.toml"), "{unreadable}");
}

#[test]
fn warnings_are_in_the_object_and_leave_the_exit_code() {
    let folder = folder();
    let set = ["check", "--json", "right.toml", "--set", "disciplines=fifo limit 3000p"];
    let (code, out, err) = ran(folder.path(), &set);
    assert_eq!((code, err.as_str()), (0, ""));
    let files: Value = serde_json::from_str(&out).expect("it is JSON");
    let warning = &files[0]["warnings"][0];
    assert_eq!((&files[0]["ok"], &files[0]["errors"]), (&json!(true), &json!([])));
    // A flag has no lines.
    assert_eq!((&warning["file"], &warning["line"]), (&Value::Null, &Value::Null));
    assert_eq!(warning["flag"], "--set disciplines=fifo limit 3000p");
    assert_eq!(warning["column"], 18, "of \"limit 3000p\"");
    assert!(warning["message"].as_str().unwrap().starts_with("3000p is "), "{warning}");
    assert!(warning["label"].as_str().unwrap().contains("a->b at 5mbit"), "{warning}");
    assert!(warning["help"].as_str().unwrap().starts_with("a full queue delays"), "{warning}");
}
