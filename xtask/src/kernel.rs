//! Compares the disciplines in the kernel with those in Rust, packet by packet, in a virtual machine.
//!
//! The test downloads the newest Debian kernel, which has BPF qdiscs, and starts it in qemu with software
//! emulation. In the machine `giveway kernel load` loads each discipline on an interface, and traffic is
//! sent. A journal of all calls leaves the machine on a virtual disk. The judge
//! (`crates/kernel-check/src/bin/kernel-judge.rs`) then replays it with the Rust discipline.
//!
//! On this machine only the folder `target/kernel` is changed.

mod bed;
mod book;
mod compare;
mod disk;
mod equality;
mod fetch;
mod machine;
pub mod native;
mod oracle;
pub mod rust;
mod senders;
mod users;

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use self::equality::{judge, plan, programs, runs};
use self::fetch::{Kernel, fetch};
use self::machine::{PARALLEL, boot, initramfs};

use crate::repository::{Done, Repository};
use crate::tools;

/// Packets per discipline and mix; the second number is for `--quick`.
const PACKETS: [u32; 2] = [100_000, 5_000];
/// Flags of the chore.
pub const FLAGS: [&str; 7] = ["--quick", "--oracle", "--users", "--flood", "--again", "--compare", "--book"];

/// Programs of the virtual machine, words that make them end at once, and their packages.
const NEEDED: [(&str, &str, &str); 13] = [
    ("qemu-system-x86_64", "--version", "qemu-system-x86"),
    ("bpftool", "version", "bpftool"),
    ("clang-19", "--version", "clang-19"),
    ("busybox", "--help", "busybox-static"),
    ("cpio", "--version", "cpio"),
    ("zstd", "--version", "zstd"),
    ("xz", "--version", "xz-utils"),
    ("dash", "-c true", "dash"),
    ("tc", "-V", "iproute2"),
    ("ss", "-V", "iproute2"),
    ("dpkg", "--version", "dpkg"),
    ("ethtool", "--version", "ethtool"),
    ("tcpdump", "--version", "tcpdump"),
];

/// The kernel of the test, and its folder.
pub struct Ready {
    folder: PathBuf,
    kernel: Kernel,
}

/// The programs that the test needs, in addition to a compiler.
pub fn needed() -> Vec<&'static str> {
    NEEDED.iter().map(|(program, _, _)| *program).collect()
}

/// The packages of Debian that the test needs, in addition to a compiler.
pub fn packages() -> Vec<&'static str> {
    NEEDED.iter().map(|(_, _, package)| *package).collect()
}

/// Prepares the test. Fails if this machine cannot run it.
///
/// # Errors
/// A missing program, or the reason why there is no kernel.
pub fn ready(repository: &Repository) -> Result<Ready, String> {
    set_up(repository)?;
    let folder = repository.target()?.join("kernel");
    fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let kernel =
        fetch(repository, &folder).map_err(|why| format!("no kernel with BPF qdiscs is available: {why}"))?;
    Ok(Ready { folder, kernel })
}

/// Runs the test, or prints why this machine cannot run it.
pub fn test(repository: &Repository, flags: &[&str]) -> Done {
    match ready(repository) {
        Ok(ready) => run(repository, &ready, flags),
        Err(why) => {
            println!("skipped: {why}");
            Ok(())
        }
    }
}

/// Measures the TCP senders of Linux.
///
/// # Errors
/// The reason why this machine cannot run the virtual machine, or a failed measurement.
pub fn senders(repository: &Repository, flags: &[&str]) -> Done {
    let Ready { folder, kernel } = ready(repository)?;
    senders::record(repository, &folder, &kernel, flags)
}

/// Compares Giveway's disciplines with the kernel's on test beds.
///
/// # Errors
/// The reason why this machine cannot run the virtual machine, a failed run, or a difference above a bound.
pub fn test_beds(repository: &Repository, flags: &[&str]) -> Done {
    let Ready { folder, kernel } = ready(repository)?;
    match flags {
        [] | ["--quick"] => bed::compare(repository, &folder, &kernel, flags),
        ["--commands"] => bed::commands(repository, &folder, &kernel),
        ["--record-library", names @ ..] => bed::record_library(repository, &folder, &kernel, names),
        ["--card", arguments @ ..] => bed::card(repository, &folder, &kernel, arguments),
        arguments => bed::single(repository, &folder, &kernel, arguments),
    }
}

/// Runs the test.
pub fn run(repository: &Repository, ready: &Ready, flags: &[&str]) -> Done {
    let has = |flag: &str| flags.contains(&flag);
    let quick = usize::from(has("--quick"));
    // A flag that names a test runs that test only.
    let alone = flags.iter().any(|flag| *flag != "--quick");
    let with_oracle = has("--oracle") || flags.is_empty();
    let (packets, oracle_packets) = (PACKETS[quick], oracle::PACKETS[quick]);
    let begun = Instant::now();
    let mut stages = Stages(Vec::new());
    let Ready { folder, kernel } = ready;
    let runs = if alone { Vec::new() } else { runs() };
    stages.time("programs", || programs(repository, folder, kernel))?;
    if !alone || with_oracle || has("--again") {
        let mut plan = plan(&runs, packets, flags);
        let mut journals = runs.len();
        if with_oracle {
            stages.time("programs of the oracle", || oracle::programs(repository, folder, kernel))?;
            plan.push_str(&oracle::plan(runs.len(), oracle_packets, alone));
            journals += oracle::journal_count(alone);
        }
        stages.time("initramfs", || initramfs(repository, folder, kernel, &plan))?;
        let output = stages.time("virtual machine", || boot(folder, kernel, journals, &PARALLEL))?;
        let _ = fs::remove_dir_all(folder.join("journals"));
        if !alone {
            stages.time("judgement", || judge(repository, folder, &runs, packets, &output))?;
        }
        if with_oracle {
            stages.time("judgement", || {
                oracle::judge(repository, folder, runs.len(), (oracle_packets, alone), &output)
            })?;
        }
        show(&output, &["AGAIN", "MEMORY"]);
    }
    if !alone || has("--users") {
        stages.time("users", || users::test(repository, folder, kernel))?;
    }
    if !alone {
        stages.time("recommended commands", || bed::commands(repository, folder, kernel))?;
        stages.time("test beds", || bed::compare(repository, folder, kernel, &["--quick"]))?;
    }
    if has("--flood") {
        let flood = include_str!("../../kernel/test/flood.sh");
        stages.time("initramfs", || initramfs(repository, folder, kernel, flood))?;
        let output = stages.time("flood", || boot(folder, kernel, 0, &PARALLEL))?;
        show(&output, &["FLOOD", "MEMORY"]);
    }
    if has("--compare") {
        println!("{}", stages.time("comparison", || compare::compare(repository, folder, kernel))?);
    }
    if has("--book") {
        stages.time("book", || book::follow(repository, folder, kernel))?;
    }
    let times: Vec<String> =
        stages.0.iter().map(|(name, took)| format!("{name} {:.1} s", took.as_secs_f64())).collect();
    println!("{}; total {:.1} s", times.join(", "), begun.elapsed().as_secs_f64());
    Ok(())
}

/// Prints the lines of the output of a machine that start with one of these words.
fn show(output: &str, words: &[&str]) {
    let shown = |line: &&str| words.iter().any(|word| line.starts_with(word));
    output.lines().filter(shown).for_each(|line| println!("{line}"));
}

struct Stages(Vec<(&'static str, Duration)>);

impl Stages {
    fn time<T>(&mut self, name: &'static str, work: impl FnOnce() -> T) -> T {
        let begun = Instant::now();
        let done = work();
        self.0.push((name, begun.elapsed()));
        done
    }
}

/// Installs missing programs and packages.
///
/// # Errors
/// The packages to install, if this process cannot install them.
fn set_up(repository: &Repository) -> Done {
    if std::env::consts::ARCH != "x86_64" {
        return Err("the virtual machine and its programs need an x86_64 processor".to_owned());
    }
    let mut absent = tools::missing(repository, &NEEDED);
    absent.extend((!Path::new("/usr/include/bpf/bpf_helpers.h").exists()).then_some("libbpf-dev"));
    if absent.is_empty() { Ok(()) } else { tools::install(repository, &absent) }
}
