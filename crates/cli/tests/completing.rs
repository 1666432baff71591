//! Completion of the command line: the scripts in real shells, if they are installed, and the candidates.

use std::ffi::OsString;
use std::path::Path;
use std::process::{Command, Stdio};

use tempfile::TempDir;

const GIVEWAY: &str = env!("CARGO_BIN_EXE_giveway");

/// The candidates for the last of some words, as the script of fish asks for them, without their
/// descriptions.
fn candidates(words: &[&str]) -> Vec<String> {
    let asked =
        Command::new(GIVEWAY).env("GIVEWAY_COMPLETE", "fish").args(["--", "giveway"]).args(words).output();
    let asked = asked.expect("the program starts");
    assert!(asked.status.success(), "{}", String::from_utf8_lossy(&asked.stderr));
    let text = String::from_utf8(asked.stdout).expect("it writes text");
    text.lines().map(|line| line.split('\t').next().unwrap().to_owned()).collect()
}

/// The search path with the folder of the program first.
fn path() -> OsString {
    let own = Path::new(GIVEWAY).parent().unwrap().to_owned();
    let all = std::env::var_os("PATH").unwrap_or_default();
    std::env::join_paths([own].into_iter().chain(std::env::split_paths(&all))).unwrap()
}

/// Runs a program of a shell. Returns its output, or `None` if the shell is not installed.
fn shell(name: &str, args: &[&str], program: &str) -> Option<String> {
    let mut command = Command::new(name);
    command.args(args).arg("-c").arg(program).env("PATH", path()).env("TERM", "dumb").stdin(Stdio::null());
    let output = match command.output() {
        Ok(output) => output,
        Err(_) => {
            eprintln!("{name} is not installed, so this part is not tested");
            return None;
        }
    };
    assert_eq!(String::from_utf8_lossy(&output.stderr), "", "{name} complains");
    Some(String::from_utf8(output.stdout).expect("it writes text"))
}

#[test]
fn disciplines_papers_and_arbiters_are_candidates() {
    assert_eq!(candidates(&["compare", "a.pcap", "--qdisc", "fq_"]), ["fq_codel", "fq_pie"]);
    assert_eq!(candidates(&["live", "--qdisc-reverse", "dualp"]), ["dualpi2"]);
    assert!(candidates(&["compare", "--qdisc", ""]).contains(&"all".to_owned()));
    assert_eq!(candidates(&["kernel", "load", "e"]), ["efd"]);
    assert!(candidates(&["reproduce", ""]).contains(&"efd".to_owned()));
    assert_eq!(candidates(&["search", "--crossover", "isl"]), ["islip"]);
    assert_eq!(candidates(&["search", "--crossover", "islip", "p_sp"]), ["p_spf"]);
    assert_eq!(candidates(&["explain", "cub"]), ["cubic"]);
    assert_eq!(candidates(&["ini"]), ["init"]);
    assert!(candidates(&["run", "--sho"]).contains(&"--short".to_owned()));
}

#[test]
fn keys_of_scenarios_are_candidates() {
    assert_eq!(candidates(&["run", "--set", "dur"]), ["duration="]);
    assert!(candidates(&["check", "--set", "link.0.ra"]).contains(&"link.0.rate=".to_owned()));
    // A name or a number of an entry is kept.
    assert_eq!(candidates(&["run", "--set", "traffic.upload.flow"]), ["traffic.upload.flows="]);
    assert!(candidates(&["run", "--set", "link.3.back.r"]).contains(&"link.3.back.rate=".to_owned()));
    assert!(candidates(&["run", "--set", "tcp.cong"]).contains(&"tcp.congestion=".to_owned()));
    assert!(candidates(&["run", "--set", "short.dura"]).contains(&"short.duration=".to_owned()));
    assert_eq!(candidates(&["search", "--set", "switch.por"]), ["switch.ports="]);
}

/// Each offered key of a link is one that a scenario has: a number as its value may be wrong, but the key is
/// known.
#[test]
fn offered_keys_are_known() {
    let keys = candidates(&["run", "--set", ""]);
    assert!((200..1000).contains(&keys.len()), "{} keys", keys.len());
    let mut sorted = keys.clone();
    sorted.sort();
    sorted.dedup();
    assert_eq!(sorted.len(), keys.len(), "no key twice");
    let folder = TempDir::new().unwrap();
    let giveway = |args: &[&str]| {
        let output = Command::new(GIVEWAY).args(args).current_dir(folder.path()).output().expect("it starts");
        String::from_utf8(output.stderr).expect("it writes text")
    };
    giveway(&["init", "home.toml"]);
    let of_links: Vec<&String> = keys.iter().filter(|key| key.starts_with("link.0.")).collect();
    assert!(of_links.len() > 20, "{of_links:?}");
    for key in of_links {
        let err = giveway(&["check", "home.toml", "--all-errors", "--set", &format!("{key}1")]);
        assert!(!err.contains("unknown key"), "{key}: {err}");
    }
    assert!(giveway(&["check", "home.toml", "--set", "link.0.no_such=1"]).contains("unknown key"));
}

#[test]
fn interfaces_are_candidates() {
    for words in [
        &["live", "--in", "l"][..],
        &["live", "--out", "l"],
        &["kernel", "load", "efd", "--dev", "l"],
        &["kernel", "show", "--dev", "l"],
        &["compare", "--live", "l"],
        &["reserve", "--via", "l"],
    ] {
        assert!(candidates(words).contains(&"lo".to_owned()), "{words:?}");
    }
}

/// Bash asks a function with the words and the number of the current one in variables.
#[test]
fn bash_completes() {
    let folder = TempDir::new().unwrap();
    let complete = |words: &str, last: usize| {
        let program = format!(
            "cd {}; source <(giveway completions bash); COMP_WORDS=({words}); COMP_CWORD={last}; COMP_TYPE=9; \
             _clap_complete_giveway giveway \"${{COMP_WORDS[last={last}]}}\" x 2>/dev/null; printf '%s\\n' \"${{COMPREPLY[@]}}\"",
            folder.path().display()
        );
        shell("bash", &["--norc"], &program).map(|out| out.lines().map(str::to_owned).collect::<Vec<_>>())
    };
    let Some(found) = complete("giveway compare a.pcap --qdisc fq_", 4) else { return };
    assert_eq!(found, ["fq_codel", "fq_pie"]);
    assert_eq!(complete("giveway run --set dur", 3).unwrap(), ["duration="]);
    assert_eq!(complete("giveway kernel load efd --dev lo", 5).unwrap(), ["lo"]);
    assert!(complete("giveway reproduce ''", 2).unwrap().contains(&"efd".to_owned()));
    // Files are still completed.
    std::fs::write(folder.path().join("home.toml"), "").unwrap();
    assert_eq!(complete("giveway run ho", 2).unwrap(), ["home.toml"]);
}

#[test]
fn fish_completes() {
    let program = "giveway completions fish | source; complete -C 'giveway compare a.pcap --qdisc fq_'; \
                   complete -C 'giveway kernel load efd --dev l'";
    let home = TempDir::new().unwrap();
    let Some(out) =
        shell("fish", &["--no-config"], &format!("set -x HOME {}; {program}", home.path().display()))
    else {
        return;
    };
    let names: Vec<&str> = out.lines().map(|line| line.split('\t').next().unwrap()).collect();
    assert!(names.starts_with(&["fq_codel", "fq_pie"]) && names.contains(&"lo"), "{out}");
    assert!(out.lines().next().unwrap().contains("CoDel"), "candidates are described: {out}");
}

/// The script is loaded by zsh, and its function is registered. It asks like the function of fish.
#[test]
fn zsh_loads_the_script() {
    let program = "autoload -Uz compinit; compinit -D -u; source <(giveway completions zsh); print -r -- ${_comps[giveway]}";
    let Some(out) = shell("zsh", &["-f"], program) else { return };
    assert_eq!(out, "_clap_dynamic_completer_giveway\n");
}
