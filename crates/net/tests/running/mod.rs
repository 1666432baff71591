//! `giveway live` as a child process of a test.

#![allow(dead_code, reason = "each test uses a part of this module")]

use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use super::bed::{Bed, nap};

/// The program `giveway-net`, whose `live` is `giveway live`.
pub const NET: &str = env!("CARGO_BIN_EXE_giveway-net");

/// The program `giveway` in the same folder, which writes recordings and reads what a bridge has written.
/// `None` if it was not built: then a test says what to type and ends. In the gate, which builds it, that is
/// a failure.
pub fn main_program() -> Option<PathBuf> {
    let program = Path::new(NET).with_file_name("giveway");
    if program.exists() {
        return Some(program);
    }
    let gate = std::env::var_os("GIVEWAY_ALL_PROGRAMS");
    assert!(gate.is_none(), "{} was not built", program.display());
    eprintln!("skipped: {} is missing; type cargo build -p giveway-cli", program.display());
    None
}

/// Runs a command of `giveway-net` to its end. Returns its exit code, standard output and standard error.
pub fn giveway(arguments: &[&str]) -> (Option<i32>, String, String) {
    run(Path::new(NET), arguments)
}

/// Runs a program to its end. Returns its exit code, standard output and standard error.
pub fn run(program: &Path, arguments: &[&str]) -> (Option<i32>, String, String) {
    let output = Command::new(program).args(arguments).output().expect("the program runs");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code(), text(&output.stdout), text(&output.stderr))
}

/// Waits until the file of `--ready` exists, the program has ended, or the time `most` has passed. Returns
/// true if the file exists.
pub fn is_ready(child: &mut Child, ready: &Path, most: Duration) -> bool {
    const PAUSE: Duration = Duration::from_millis(10);
    for _ in 0..most.as_millis() / PAUSE.as_millis() {
        if ready.exists() || child.try_wait().is_ok_and(|ended| ended.is_some()) {
            break;
        }
        nap(PAUSE);
    }
    ready.exists()
}

/// A running `giveway live`. It is killed when this is dropped.
pub struct Live {
    pub child: Child,
    errors: BufReader<std::process::ChildStderr>,
}

impl Live {
    /// Starts the program, and returns once frames pass.
    pub fn start(bed: &Bed, dir: &Path, arguments: &[&str]) -> Live {
        Live::start_with(Command::new(NET), bed, dir, arguments)
    }

    /// Starts `command` with the arguments of `giveway live` after its own, and returns once frames pass.
    pub fn start_with(command: Command, bed: &Bed, dir: &Path, arguments: &[&str]) -> Live {
        Live::start_at(command, dir, &["--in", &bed.name("a1"), "--out", &bed.name("b0")], arguments)
    }

    /// Starts `command` between or at these interfaces, and returns once frames pass.
    pub fn start_at(mut command: Command, dir: &Path, interfaces: &[&str], arguments: &[&str]) -> Live {
        let ready = dir.join("ready");
        // A file of an earlier start must not count for this one.
        let _ = std::fs::remove_file(&ready);
        let mut child = command
            .arg("live")
            .args(interfaces)
            .arg("--ready")
            .arg(&ready)
            .args(arguments)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the program runs");
        let began = is_ready(&mut child, &ready, Duration::from_secs(30));
        let mut errors = BufReader::new(child.stderr.take().expect("it is piped"));
        if !began {
            let _ = child.kill();
            let mut text = String::new();
            let _ = errors.read_to_string(&mut text);
            panic!("it did not begin: {text}");
        }
        Live { child, errors }
    }

    /// Number of the process.
    pub fn process(&self) -> u32 {
        self.child.id()
    }

    /// Sends a signal, for example "-TERM".
    pub fn signal(&self, name: &str) {
        let sent = Command::new("kill").args([name, &self.child.id().to_string()]).status();
        assert!(sent.is_ok_and(|status| status.success()));
    }

    /// Waits for the end of the program. Returns its exit code, standard output and standard error.
    pub fn end(&mut self) -> (Option<i32>, String, String) {
        let (mut out, mut errors) = (String::new(), String::new());
        self.child.stdout.take().expect("it is piped").read_to_string(&mut out).expect("it is text");
        self.errors.read_to_string(&mut errors).expect("it is text");
        (self.child.wait().expect("it ends").code(), out, errors)
    }

    /// Reads the next line of the standard error.
    pub fn line(&mut self) -> String {
        let mut line = String::new();
        self.errors.read_line(&mut line).expect("it is text");
        line
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Waits until the condition holds, at most a minute, because the machine may be busy.
pub fn until(what: &str, mut holds: impl FnMut() -> bool) {
    for _ in 0..600 {
        if holds() {
            return;
        }
        nap(Duration::from_millis(100));
    }
    panic!("not within a minute: {what}");
}

/// The features of an interface that are on, as ethtool lists them.
pub fn features(interface: &str) -> Vec<String> {
    let shown = Command::new("ethtool").args(["-k", interface]).output().expect("it is installed");
    let shown = String::from_utf8_lossy(&shown.stdout).into_owned();
    let on = shown.lines().filter(|line| line.contains(": on")).map(|line| line.trim().to_owned());
    on.collect()
}

/// True if `ethtool` is installed.
pub fn has_ethtool() -> bool {
    let there = Command::new("ethtool").arg("--version").stdout(Stdio::null()).status();
    there.is_ok_and(|done| done.success())
}
