//! The kernel's disciplines, packet by packet against the Rust ones, in a virtual machine.
//!
//! A Debian kernel that has BPF qdiscs is fetched (its version is found now, the package is kept below
//! `target/`) and started in qemu, in software. In it `giveway kernel load` puts each discipline on an
//! interface, traffic is sent, and what the discipline did comes out through a disk. The judge
//! (`crates/kernel-check/src/bin/kernel-judge.rs`) then asks the Rust discipline to do the same.
//!
//! Nothing of the machine that runs this is changed but what is below `target/kernel`.

mod book;
mod compare;
mod disk;
mod equality;
mod fetch;
mod machine;
mod oracle;
mod users;

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use equality::{judge, plan, programs, runs};
use fetch::{Kernel, fetch};
use machine::{PARALLEL, boot, initramfs};

use crate::repository::{Done, Repository};
use crate::tools;

/// Packets per discipline and mix; the second number for a quick look.
const PACKETS: [u32; 2] = [100_000, 5_000];
/// Flags of the chore.
pub const FLAGS: [&str; 6] = ["--quick", "--oracle", "--flood", "--again", "--compare", "--book"];

/// A kernel, and the folder in which all of this happens.
pub struct Ready {
    folder: PathBuf,
    kernel: Kernel,
}

/// Prepares the test. Fails if this machine cannot run it.
///
/// # Errors
/// The reason, in a sentence.
pub fn ready(repository: &Repository) -> Result<Ready, String> {
    missing(repository)?;
    let folder = repository.target()?.join("kernel");
    fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let kernel =
        fetch(repository, &folder).map_err(|why| format!("no kernel with BPF qdiscs can be had: {why}"))?;
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

/// Runs the test.
pub fn run(repository: &Repository, ready: &Ready, flags: &[&str]) -> Done {
    let has = |flag: &str| flags.contains(&flag);
    let quick = usize::from(has("--quick"));
    // What is asked for by its name is done alone.
    let alone = flags.iter().any(|flag| *flag != "--quick");
    let watched = has("--oracle") || flags.is_empty();
    let (packets, seen) = (PACKETS[quick], oracle::PACKETS[quick]);
    let begun = Instant::now();
    let mut stages = Stages(Vec::new());
    let Ready { folder, kernel } = ready;
    let runs = if alone { Vec::new() } else { runs() };
    stages.time("programs", || programs(repository, folder, kernel))?;
    if !alone || watched || has("--again") {
        let mut plan = plan(&runs, packets, flags);
        let mut journals = runs.len();
        if watched {
            stages.time("programs that watch", || oracle::programs(repository, folder, kernel))?;
            plan.push_str(&oracle::plan(runs.len(), seen));
            journals += oracle::JOURNALS;
        }
        stages.time("initramfs", || initramfs(repository, folder, kernel, &plan))?;
        let said = stages.time("virtual machine", || boot(folder, kernel, journals, &PARALLEL))?;
        let _ = fs::remove_dir_all(folder.join("journals"));
        if !alone {
            stages.time("judgement", || judge(repository, folder, &runs, packets, &said))?;
        }
        if watched {
            stages.time("judgement", || oracle::judge(repository, folder, runs.len(), seen, &said))?;
        }
        show(&said, &["AGAIN", "MEMORY"]);
    }
    if !alone {
        stages.time("users", || users::test(repository, folder, kernel))?;
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
    println!("{}; in all {:.1} s", times.join(", "), begun.elapsed().as_secs_f64());
    Ok(())
}

/// Prints the lines of what a machine said that begin with one of these words.
fn show(said: &str, words: &[&str]) {
    let shown = |line: &&str| words.iter().any(|word| line.starts_with(word));
    said.lines().filter(shown).for_each(|line| println!("{line}"));
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

/// Programs and packages that are needed, installed where that is allowed.
fn missing(repository: &Repository) -> Done {
    if std::env::consts::ARCH != "x86_64" {
        return Err("the virtual machine is an x86_64, and so are the programs that go into it".to_owned());
    }
    let needed = [
        ("qemu-system-x86_64", "--version", "qemu-system-x86"),
        ("bpftool", "version", "bpftool"),
        ("clang-19", "--version", "clang-19"),
        ("busybox", "--help", "busybox-static"),
        ("cpio", "--version", "cpio"),
        ("zstd", "--version", "zstd"),
        ("xz", "--version", "xz-utils"),
        ("dash", "-c true", "dash"),
        ("tc", "-V", "iproute2"),
        ("dpkg", "--version", "dpkg"),
        ("ethtool", "--version", "ethtool"),
    ];
    let absent: Vec<&str> = needed
        .iter()
        .filter(|(program, version, _)| !repository.has(program, &version.split(' ').collect::<Vec<_>>()))
        .map(|(_, _, package)| *package)
        .chain((!Path::new("/usr/include/bpf/bpf_helpers.h").exists()).then_some("libbpf-dev"))
        .collect();
    if absent.is_empty() { Ok(()) } else { tools::install(repository, &absent) }
}
