//! Attacks of a local user on a program that root starts in a folder of that user: links in place of the
//! files and folders that the program creates, exchanged as fast as possible. Nothing outside of the user's
//! folder may change its owner, its rights or its content.
//!
//! A few seconds by default; `GIVEWAY_ATTACK_SECONDS=60` for longer.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, symlink};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use giveway_files::exchange;

use crate::bed::{Bed, nap};
use crate::programs::{self, GIVEWAY};

/// The attacker's user.
const USER: u32 = 12_345;
/// The variable with the folder of the attacker.
const FOLDER: &str = "GIVEWAY_ATTACKED_FOLDER";
/// The variable with the unit of the attacker's pauses, in milliseconds.
const PAUSE: &str = "GIVEWAY_ATTACK_PAUSE";
/// The names that the program has to create in the attacker's folder.
const NAMES: [&str; 7] = ["record", "a.pcapng", "a.trace", "ready", "run", "x.pcapng", ".x.pcapng.tmp"];
/// The places to which the attacker's links lead. The last one does not exist.
const PLACES: [&str; 7] = ["empty", "etc", "etc/ssl", "etc/passwd", "capture.pcapng", "flows.parquet", "new"];

const SCENARIO: &str = r#"
duration = "100 ms"
seeds = 2
disciplines = ["fifo limit 20p"]

[[link]]
from = "home"
to = "isp"
rate = "1 Mbit/s"
delay = "5 ms"
qdisc = "compare"

[[traffic]]
kind = "bulk"
from = "home"
to = "isp"
"#;

/// Unit of pauses for commands that take a tenth of a second.
const SHORT: Duration = Duration::from_millis(100);

/// Owner, group, rights and content of each file and folder below a folder, except below `but`.
fn state(dir: &Path, but: &Path) -> BTreeMap<PathBuf, (u32, u32, u32, Vec<u8>)> {
    let mut found = BTreeMap::new();
    let mut open = vec![dir.to_owned()];
    while let Some(path) = open.pop() {
        let about = fs::symlink_metadata(&path).expect("it is there");
        let content = if about.is_file() { fs::read(&path).expect("root may read it") } else { Vec::new() };
        found.insert(path.clone(), (about.uid(), about.gid(), about.mode(), content));
        if about.is_dir() && path != but {
            open.extend(fs::read_dir(&path).expect("root may list it").map(|entry| entry.unwrap().path()));
        }
    }
    found
}

/// The folder of a machine: `home` belongs to the attacker, `theirs` to root.
fn machine() -> tempfile::TempDir {
    let machine = tempfile::tempdir().expect("there is room");
    let make = |path: &str, rights: u32| {
        let path = machine.path().join(path);
        fs::create_dir_all(&path).unwrap();
        fs::set_permissions(path, fs::Permissions::from_mode(rights)).unwrap();
    };
    for folder in [
        "",
        "theirs",
        "theirs/empty",
        "theirs/etc",
        "theirs/etc/cron.d",
        "theirs/etc/ssl",
        "home",
        "home/lures",
    ] {
        make(folder, 0o755);
    }
    let write = |path: &str, content: &[u8]| fs::write(machine.path().join(path), content).unwrap();
    write("theirs/etc/passwd", b"root:x:0:0\n");
    write("theirs/etc/ssl/flows.parquet", b"PAR1");
    write("theirs/flows.parquet", b"PAR1");
    write("theirs/etc/cron.d/daily", b"@daily root true\n");
    // Files that the program may replace without --force, because they have the kind of its output.
    write("theirs/capture.pcapng", &[0x0a, 0x0d, 0x0d, 0x0a]);
    write("scenario.toml", SCENARIO.as_bytes());
    for folder in ["home", "home/lures"] {
        chown(machine.path().join(folder), Some(USER), Some(USER)).unwrap();
    }
    machine
}

/// Starts the attacker: this program, as its user, with pauses of up to five units.
fn attacker(machine: &Path, pause: Duration) -> Option<Child> {
    let program = machine.join("attacker");
    // The user may not be able to search the folders of the build.
    fs::copy(std::env::current_exe().expect("this program has a file"), &program).unwrap();
    let mut command = Command::new("setpriv");
    command.args(["--reuid=12345", "--regid=12345", "--clear-groups"]).arg(program);
    command.args(["--exact", "attacks::as_the_attacker", "--ignored"]).env(FOLDER, machine.join("home"));
    command.env(PAUSE, pause.as_millis().to_string());
    command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().ok()
}

/// The attacker's side. It runs until it is killed.
#[test]
#[ignore = "the other tests of this file start it as another user"]
fn as_the_attacker() {
    let Some(home) = std::env::var_os(FOLDER).map(PathBuf::from) else { return };
    let (out, away, lures) = (home.join("out"), home.join("away"), home.join("lures"));
    let theirs = home.parent().expect("it is in a machine").join("theirs");
    let pause = std::env::var(PAUSE).ok().and_then(|text| text.parse().ok()).unwrap_or(100);
    // Longer pauses are for slower programs, which also need longer attacks.
    let turns = (pause * pause) as usize / 5;
    let _ = symlink(&theirs, &away);
    for turn in 0usize.. {
        // In some pauses the program succeeds, and is attacked later.
        if turn % turns == 0 {
            let _ = fs::remove_file(&out);
            let _ = fs::remove_dir_all(&out);
            let _ = fs::remove_file(&away);
            let _ = (fs::create_dir(&out), symlink(&theirs, &away));
            nap(Duration::from_millis(pause * (turn / turns % 6) as u64));
        }
        // Each place is tried with each name, since both numbers have no common divisor with the other.
        let name = NAMES[turn % NAMES.len()];
        let place = theirs.join(PLACES[turn / NAMES.len() % PLACES.len()]);
        let _ = fs::create_dir(&out);
        let lure = lures.join(name);
        let _ = fs::remove_file(&lure);
        let _ = symlink(&place, &lure);
        match turn / 100 % 4 {
            // The link is there first.
            0 => {
                let _ = fs::rename(&lure, out.join(name));
            }
            // The link takes the place of what the program has created, and the other way around.
            1 | 2 => {
                let _ = exchange(&out.join(name), &lure);
                let _ = exchange(&out.join(name), &lure);
            }
            // The folder above is a link, too.
            _ => {
                let _ = exchange(&out, &away);
                let _ = exchange(&out, &away);
            }
        }
        if turn % 7 == 0 {
            let _ = fs::remove_dir_all(out.join(name));
            let _ = fs::remove_file(out.join(name));
        }
    }
}

/// Lets root run these commands in turn in the folder `home/out` while the attacker is busy. Each takes a few
/// of these pauses.
fn attack(machine: &Path, pause: Duration, commands: &[&dyn Fn(&Path) -> Command]) {
    let home = machine.join("home");
    let Some(mut attacker) = attacker(machine, pause) else {
        println!("skipped: setpriv is not installed");
        return;
    };
    let before = state(machine, &home);
    let seconds = std::env::var("GIVEWAY_ATTACK_SECONDS").ok().and_then(|text| text.parse().ok());
    let seconds = seconds.map(Duration::from_secs);
    #[expect(clippy::disallowed_methods, reason = "the attack lasts some seconds")]
    let (began, most) = (Instant::now(), seconds.unwrap_or(Duration::from_secs(4)));
    let mut codes = BTreeMap::new();
    while began.elapsed() < most || codes.values().sum::<u32>() < 2 * commands.len() as u32 {
        for command in commands {
            let mut command = command(&home.join("out"));
            let status = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status();
            *codes.entry(status.expect("the program runs").code()).or_default() += 1;
        }
    }
    assert!(attacker.try_wait().is_ok_and(|ended| ended.is_none()), "the attacker was busy all the time");
    attacker.kill().and_then(|()| attacker.wait()).expect("root may kill it");
    println!("exit codes: {codes:?}");
    let after = state(machine, &home);
    let changed: Vec<_> = before
        .keys()
        .chain(after.keys())
        .filter(|path| before.get(*path) != after.get(*path))
        .map(|path| (path, before.get(path).map(|of| of.0), after.get(path).map(|of| of.0)))
        .collect();
    assert!(changed.is_empty(), "changed, with the owner before and after: {changed:?}");
    assert!(codes.keys().all(|code| code.is_some()), "the program ends by itself: {codes:?}");
    if seconds.is_some_and(|seconds| seconds >= Duration::from_secs(60)) {
        assert!(codes.contains_key(&Some(0)), "some commands succeed before they are attacked: {codes:?}");
    }
}

#[test]
fn a_bridge_of_root_creates_and_changes_nothing_elsewhere() {
    let Some(bed) = Bed::build("x").filter(|_| programs::has_net()) else { return };
    let machine = machine();
    let live = |out: &Path| {
        let mut live = Command::new(GIVEWAY);
        live.args([
            "live",
            "--in",
            &bed.name("a1"),
            "--out",
            &bed.name("b0"),
            "--duration",
            "20ms",
            "--force",
        ]);
        for (flag, name) in
            [("--record", "record"), ("--pcap", "a.pcapng"), ("--trace", "a.trace"), ("--ready", "ready")]
        {
            live.arg(flag).arg(out.join(name));
        }
        live.args(["--no-realtime", "--quiet"]);
        live
    };
    let own = |out: &Path| {
        let mut own = live(out);
        own.env("SUDO_UID", USER.to_string()).env("SUDO_GID", USER.to_string());
        own
    };
    attack(machine.path(), SHORT, &[&live, &own]);
}

#[test]
fn a_run_of_root_creates_and_changes_nothing_elsewhere() {
    if !nix::unistd::geteuid().is_root() {
        println!("skipped: only root can do harm");
        return;
    }
    let machine = machine();
    let scenario = machine.path().join("scenario.toml");
    let run = |out: &Path| {
        let mut run = Command::new(GIVEWAY);
        run.arg("run").arg(&scenario).arg("--out").arg(out.join("run"));
        run.arg("--export").arg(out.join("x.pcapng")).args(["--force", "--quiet"]);
        run
    };
    let sweep = |out: &Path| {
        let mut sweep = Command::new(GIVEWAY);
        sweep.arg("sweep").arg(&scenario).args(["--over", "link.0.rate=1mbit,2mbit", "--quiet"]);
        sweep.arg("--out").arg(out.join("run"));
        sweep
    };
    attack(machine.path(), SHORT, &[&run, &sweep]);
}

#[test]
fn a_test_bed_of_root_creates_and_changes_nothing_elsewhere() {
    if let Err(error) = giveway_testbed::ready() {
        println!("skipped: {error}");
        return;
    }
    if !programs::has_net() {
        return;
    }
    let machine = machine();
    let scenario = machine.path().join("testbed.toml");
    let shipped = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios/testbed/quickstart.toml");
    fs::copy(shipped, &scenario).unwrap();
    let testbed = || {
        let mut testbed = Command::new(GIVEWAY);
        testbed.arg("testbed").arg(&scenario).args(["--seeds", "1", "--attempts", "1", "--force", "--quiet"]);
        for setting in ["duration=500ms", "warmup=0s", "disciplines=[\"codel\"]"] {
            testbed.args(["--set", setting]);
        }
        testbed
    };
    let folder = |out: &Path| {
        let mut testbed = testbed();
        testbed.arg("--out").arg(out.join("run"));
        testbed
    };
    // The router refuses a place of another user than its own.
    let trace = |out: &Path| {
        let mut testbed = testbed();
        testbed.arg("--trace").arg(out.join("a.trace"));
        testbed
    };
    attack(machine.path(), Duration::from_millis(400), &[&folder, &trace]);
}

#[test]
fn an_object_of_root_is_created_nowhere_else() {
    if !programs::has_net() {
        return;
    }
    if !nix::unistd::geteuid().is_root() {
        println!("skipped: only root can do harm");
        return;
    }
    let machine = machine();
    let compiled = machine.path().join("efd.o");
    let build = |to: &Path| {
        let mut build = Command::new(GIVEWAY);
        build.args(["kernel", "build", "efd", "--force", "--out"]).arg(to);
        build
    };
    let tried = build(&compiled).output().expect("the program runs");
    if !tried.status.success() {
        println!("skipped: {}", String::from_utf8_lossy(&tried.stderr));
        return;
    }
    attack(machine.path(), Duration::from_secs(1), &[&|out: &Path| build(&out.join("x.pcapng"))]);
}
