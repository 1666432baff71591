//! The kernel's disciplines, packet by packet against the Rust ones, in a virtual machine.
//!
//! A Debian kernel that has BPF qdiscs is fetched (its version is found now, the package is kept below `target/`) and started in qemu,
//! in software. In it `giveway kernel load` puts each discipline on an interface, traffic is sent, and what the discipline did
//! comes out through a disk. The judge (`crates/kernel/examples/judge.rs`) then asks the Rust discipline to do the same.
//!
//! Nothing of the machine that runs this is changed but what is below `target/kernel`.

use std::fs;
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::repository::{Done, Repository};
use crate::tools;

/// What it prints when it got to its end.
const END: &str = "END OF THE KERNEL TEST";
/// Where in the disk the next journal begins.
const SLOT: u64 = 1 << 24;
/// Entries that a journal has room for: a slot.
const ENTRIES: u64 = SLOT / 40;
/// Packets per discipline and mix; the second number for a quick look.
const PACKETS: [u32; 2] = [100_000, 5_000];

/// One discipline under one mix of traffic.
struct Run {
    name: String,
    discipline: &'static str,
    rate: &'static str,
    flows: u32,
    sizes: &'static str,
    marks: u32,
    lane: &'static str,
}

/// Disciplines: the lane in which each runs, and how it is set for few, some and many flows.
const DISCIPLINES: &[(&str, &str, [&str; 3])] = &[
    ("lane0", "fifo", ["fifo limit 300p", "fifo limit 200kb drop head", "fifo limit 1000p"]),
    ("lane1", "efd", ["efd limit 300p", "efd limit 200kb threshold 10kb", "efd limit 1000p threshold 3p"]),
    ("lane1", "drr", ["drr limit 300p", "drr limit 200kb quantum 500b", "drr limit 1000p"]),
    (
        "lane0",
        "trr",
        [
            "trr limit 300p flows 1000 width 240us slots 64",
            "trr limit 200kb flows 6 width 300us slots 7",
            "trr limit 1000p flows 1000",
        ],
    ),
];

fn runs() -> Vec<Run> {
    let mut runs = Vec::new();
    for (lane, kind, settings) in DISCIPLINES {
        for (sizes, rate) in [("equal", "100mbit"), ("mixed", "50mbit")] {
            for (flows, discipline) in [2, 50, 500].into_iter().zip(settings) {
                let name = format!("{kind}-{sizes}-{flows}");
                let marks = if *kind == "trr" { 4 } else { 0 };
                runs.push(Run { name, discipline, rate, flows, sizes, marks, lane });
            }
        }
    }
    runs
}

/// What else is done, or how much.
pub const FLAGS: [&str; 3] = ["--quick", "--again", "--compare"];

/// Does it.
pub fn test(repository: &Repository, flags: &[&str]) -> Done {
    let packets = PACKETS[usize::from(flags.contains(&"--quick"))];
    let begun = Instant::now();
    let mut stages = Stages(Vec::new());
    if let Err(why) = missing(repository) {
        println!("skipped: {why}");
        return Ok(());
    }
    let folder = repository.target()?.join("kernel");
    fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let kernel = match stages.time("kernel", || fetch(repository, &folder)) {
        Ok(kernel) => kernel,
        Err(why) => {
            println!("skipped: no kernel with BPF qdiscs can be had: {why}");
            return Ok(());
        }
    };
    let runs = runs();
    stages.time("programs", || programs(repository, &folder, &kernel))?;
    stages.time("initramfs", || initramfs(repository, &folder, &kernel, &plan(&runs, packets, flags)))?;
    let said = stages.time("virtual machine", || boot(&folder, &kernel, runs.len(), &PARALLEL))?;
    stages.time("judgement", || judge(repository, &folder, &runs, packets, &said))?;
    if flags.contains(&"--compare") {
        let compare = include_str!("../../kernel/test/compare.sh");
        stages.time("initramfs", || initramfs(repository, &folder, &kernel, compare))?;
        let costs = stages.time("comparison", || boot(&folder, &kernel, 0, &COUNTED))?;
        println!("{}", table(&costs)?);
    }
    for line in said.lines().filter(|line| ["AGAIN", "MEMORY"].iter().any(|word| line.starts_with(word))) {
        println!("{line}");
    }
    let times: Vec<String> =
        stages.0.iter().map(|(name, took)| format!("{name} {:.1} s", took.as_secs_f64())).collect();
    println!("{}; in all {:.1} s", times.join(", "), begun.elapsed().as_secs_f64());
    Ok(())
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
    ];
    let absent: Vec<&str> = needed
        .iter()
        .filter(|(program, version, _)| !repository.has(program, &version.split(' ').collect::<Vec<_>>()))
        .map(|(_, _, package)| *package)
        .chain((!Path::new("/usr/include/bpf/bpf_helpers.h").exists()).then_some("libbpf-dev"))
        .collect();
    if absent.is_empty() { Ok(()) } else { tools::install(repository, &absent) }
}

/// A kernel, unpacked.
struct Kernel {
    /// Its modules, beside them its image.
    modules: PathBuf,
    image: PathBuf,
    /// Not compressed: it has the types.
    types: PathBuf,
}

impl Kernel {
    fn at(folder: &Path, version: &str) -> Kernel {
        let modules = folder.join(version).join(format!("usr/lib/modules/{version}"));
        Kernel { image: modules.join("vmlinuz"), types: folder.join(version).join("vmlinux"), modules }
    }
}

/// The newest kernel of Debian, from the servers that this machine's own apt asks. What was fetched before is used again, and where
/// nobody answers the one that is there.
fn fetch(repository: &Repository, folder: &Path) -> Result<Kernel, String> {
    match fetch_newest(repository, folder) {
        Ok(kernel) => Ok(kernel),
        Err(why) => {
            let entries = fs::read_dir(folder).into_iter().flatten().flatten();
            let kept = entries.map(|entry| Kernel::at(folder, &entry.file_name().to_string_lossy()));
            kept.filter(|kernel| kernel.types.exists()).last().ok_or(why)
        }
    }
}

fn fetch_newest(repository: &Repository, folder: &Path) -> Result<Kernel, String> {
    let apt = folder.join("apt");
    for part in ["lists/partial", "cache/archives/partial", "packages"] {
        fs::create_dir_all(apt.join(part)).map_err(|error| error.to_string())?;
    }
    let source =
        format!("deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] {} sid main\n", mirror()?);
    fs::write(apt.join("source.list"), source).map_err(|error| error.to_string())?;
    let option = |name: &str, value: &str| format!("{name}={value}");
    let at = |part: &str| apt.join(part).to_string_lossy().into_owned();
    let options = [
        option("Dir::Etc::sourcelist", &at("source.list")),
        option("Dir::Etc::sourceparts", "/dev/null"),
        option("Dir::State::lists", &at("lists")),
        option("Dir::Cache", &at("cache")),
        option("APT::Sandbox::User", "root"),
        option("Acquire::Retries", "1"),
        option("Acquire::http::Timeout", "20"),
    ];
    let ask = |program: &str, words: &[&str], seconds: &str| {
        let mut arguments = vec![seconds, program, "-q"];
        options.iter().for_each(|option| arguments.extend(["-o", option]));
        arguments.extend(words);
        let output = Command::new("timeout").args(&arguments).current_dir(apt.join("packages")).output();
        let output = output.map_err(|error| error.to_string())?;
        match output.status.success() {
            true => Ok(String::from_utf8_lossy(&output.stdout).into_owned()),
            false => Err(format!(
                "{program} {}: {}",
                words.join(" "),
                String::from_utf8_lossy(&output.stderr).trim_end()
            )),
        }
    };
    ask("apt-get", &["update"], "60")?;
    let depends = ask("apt-cache", &["depends", "linux-image-cloud-amd64"], "20")?;
    let version = depends.lines().find_map(|line| {
        let name = line.trim().strip_prefix("Depends: linux-image-")?;
        name.starts_with(|first: char| first.is_ascii_digit()).then(|| name.to_owned())
    });
    let version = version.ok_or("linux-image-cloud-amd64 depends on no version")?;
    let kernel = Kernel::at(folder, &version);
    if kernel.types.exists() {
        return Ok(kernel);
    }
    let packages = ["base", "binary", "modules"].map(|part| format!("linux-{part}-{version}"));
    let words: Vec<&str> = std::iter::once("download").chain(packages.iter().map(String::as_str)).collect();
    ask("apt-get", &words, "120")?;
    let root = folder.join(&version);
    for entry in fs::read_dir(apt.join("packages")).into_iter().flatten().flatten() {
        repository.run("dpkg", &["-x", &entry.path().to_string_lossy(), &root.to_string_lossy()])?;
        let _ = fs::remove_file(entry.path());
    }
    uncompress(&kernel)?;
    Ok(kernel)
}

/// Where this machine's packages come from.
fn mirror() -> Result<String, String> {
    let folder =
        fs::read_dir("/etc/apt/sources.list.d").into_iter().flatten().flatten().map(|entry| entry.path());
    let files = folder.chain([PathBuf::from("/etc/apt/sources.list")]);
    let texts: Vec<String> = files.filter_map(|file| fs::read_to_string(file).ok()).collect();
    let words = texts.iter().flat_map(|text| text.lines()).filter(|line| !line.starts_with('#'));
    let words = words.flat_map(str::split_whitespace);
    let mut archives =
        words.filter(|word| word.starts_with("http") && word.trim_end_matches('/').ends_with("/debian"));
    archives.next().map(str::to_owned).ok_or_else(|| "apt knows no Debian archive here".to_owned())
}

/// Cuts the kernel out of its image, where it lies compressed.
fn uncompress(kernel: &Kernel) -> Done {
    let image = fs::read(&kernel.image).map_err(|error| format!("{}: {error}", kernel.image.display()))?;
    const ZSTD: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];
    let start =
        image.windows(4).position(|window| window == ZSTD).ok_or("the kernel is not compressed with zstd")?;
    let partial = kernel.types.with_extension("partial");
    let out = fs::File::create(&partial).map_err(|error| error.to_string())?;
    let mut zstd =
        Command::new("zstd").arg("-dc").stdin(Stdio::piped()).stdout(out).stderr(Stdio::null()).spawn();
    let zstd = zstd.as_mut().map_err(|error| error.to_string())?;
    // It stops where the kernel ends, and complains of what follows.
    let _ = zstd.stdin.take().expect("it was asked for").write_all(&image[start..]);
    zstd.wait().map_err(|error| error.to_string())?;
    if fs::metadata(&partial).map_or(0, |of| of.len()) < 1 << 20 {
        return Err("the kernel's image cannot be uncompressed".to_owned());
    }
    fs::rename(&partial, &kernel.types).map_err(|error| error.to_string())
}

/// Our programs, and the disciplines compiled for that kernel with a journal.
fn programs(repository: &Repository, folder: &Path, kernel: &Kernel) -> Done {
    repository.cargo(&["build", "--locked", "-p", "giveway-cli"])?;
    repository.cargo(&["build", "--locked", "-p", "giveway-kernel", "--example", "judge"])?;
    let giveway = repository.built("debug", "giveway")?.to_string_lossy().into_owned();
    let objects = folder.join("objects");
    let _ = fs::remove_dir_all(&objects);
    fs::create_dir_all(objects.join("plain")).map_err(|error| error.to_string())?;
    let types = kernel.types.to_string_lossy();
    for (_, kind, _) in DISCIPLINES {
        for (file, journal) in [(format!("{kind}.o"), true), (format!("plain/{kind}.o"), false)] {
            let out = objects.join(file).to_string_lossy().into_owned();
            let entries = ENTRIES.to_string();
            let mut words = vec!["kernel", "build", kind, "--btf", &types, "--limit", "8000p", "--out", &out];
            if journal {
                words.extend(["--journal", &entries]);
            }
            repository.run(&giveway, &words)?;
        }
    }
    let drive = folder.join("drive").to_string_lossy().into_owned();
    repository.run("cc", &["-O2", "-static", "-Wall", "-Werror", "-o", &drive, "kernel/test/drive.c"])
}

/// What the machine does: the runs in two lanes beside each other.
fn plan(runs: &[Run], packets: u32, flags: &[&str]) -> String {
    let mut plan = "ip link add lane0 type dummy; ip link set lane0 up\nip link add lane1 type dummy; ip link set lane1 up\n\
                    memory before\n"
        .to_owned();
    for lane in ["lane0", "lane1"] {
        plan.push_str("{\n");
        for (slot, run) in runs.iter().enumerate().filter(|(_, run)| run.lane == lane) {
            let Run { name, discipline, rate, flows, sizes, marks, lane } = run;
            let line = format!(
                "journal {lane} {name} {slot} '{discipline}' {rate} {packets} {flows} {sizes} {marks}\n"
            );
            plan.push_str(&line);
        }
        plan.push_str("} &\n");
    }
    plan.push_str("wait\nmemory after\n");
    if flags.contains(&"--again") {
        plan.push_str(include_str!("../../kernel/test/again.sh"));
    }
    plan
}

/// Everything that is in the machine.
fn initramfs(repository: &Repository, folder: &Path, kernel: &Kernel, plan: &str) -> Done {
    let root = folder.join("root");
    let _ = fs::remove_dir_all(&root);
    let told = |error: std::io::Error| error.to_string();
    for part in ["bin", "usr/sbin", "lib/modules", "objects", "proc", "sys", "dev", "run", "tmp"] {
        fs::create_dir_all(root.join(part)).map_err(told)?;
    }
    let giveway = root.join("bin/giveway").to_string_lossy().into_owned();
    let built = repository.built("debug", "giveway")?.to_string_lossy().into_owned();
    repository.run("strip", &["-o", &giveway, &built])?;
    let mut libraries = vec![giveway];
    for (program, to) in
        [("busybox", "bin"), ("dash", "bin"), ("tc", "usr/sbin"), ("ip", "usr/sbin"), ("bpftool", "usr/sbin")]
    {
        let from =
            repository.output("sh", &["-c", &format!("PATH=$PATH:/usr/sbin:/sbin command -v {program}")])?;
        let from = fs::canonicalize(from.trim()).map_err(told)?;
        fs::copy(&from, root.join(to).join(program)).map_err(told)?;
        libraries.push(from.to_string_lossy().into_owned());
    }
    for program in libraries {
        let listed = repository.output("ldd", &[&program]).unwrap_or_default();
        for library in listed.split_whitespace().filter(|word| word.starts_with('/')) {
            let to = root.join(library.trim_start_matches('/'));
            fs::create_dir_all(to.parent().expect("it is a file")).map_err(told)?;
            fs::copy(library, to).map_err(told)?;
        }
    }
    for module in [
        "drivers/block/virtio_blk",
        "drivers/net/dummy",
        "net/sched/sch_sfq",
        "net/sched/sch_fq",
        "net/sched/sch_cake",
    ] {
        let packed = kernel.modules.join("kernel").join(format!("{module}.ko.xz"));
        let name = packed.file_stem().expect("it is a file").to_string_lossy().into_owned();
        let text = Command::new("xz").arg("-dc").arg(&packed).output().map_err(told)?;
        fs::write(root.join("lib/modules").join(name), text.stdout).map_err(told)?;
    }
    fs::copy(folder.join("drive"), root.join("bin/drive")).map_err(told)?;
    let from = folder.join("objects").to_string_lossy().into_owned();
    repository.run("cp", &["-r", &format!("{from}/."), &root.join("objects").to_string_lossy()])?;
    fs::write(root.join("plan.sh"), plan).map_err(told)?;
    fs::copy(repository.root.join("kernel/test/init.sh"), root.join("init")).map_err(told)?;
    let packed = folder.join("initramfs.gz").to_string_lossy().into_owned();
    let words = "chmod +x \"$1/init\" && cd \"$1\" && find . | cpio --quiet -o -H newc | gzip -1 > \"$2\"";
    repository.run("sh", &["-c", words, "sh", &root.to_string_lossy(), &packed])
}

/// Two processors, as fast as they go.
const PARALLEL: [&str; 4] = ["-accel", "tcg,thread=multi", "-smp", "2"];
/// One whose clock counts its instructions, a nanosecond each: what something costs does not depend on who else is at work.
const COUNTED: [&str; 6] = ["-accel", "tcg,thread=single", "-smp", "1", "-icount", "shift=0,sleep=off"];

/// What a packet costs with each qdisc: instructions from the sender's call to the interface.
fn table(said: &str) -> Result<String, String> {
    let mut rows = Vec::new();
    for line in said.lines() {
        if let ["COST", kind, packets, seconds] = line.split_whitespace().collect::<Vec<_>>()[..] {
            let number = |word: &str| word.parse::<f64>().map_err(|error| format!("{line}: {error}"));
            rows.push((kind.to_owned(), number(seconds)? * 1e9 / number(packets)?));
        }
    }
    let of = |kind: &str| rows.iter().find(|(other, _)| other == kind).map(|(_, cost)| *cost);
    let (Some(none), Some(pfifo), Some(fq_codel)) = (of("noqueue"), of("pfifo"), of("fq_codel")) else {
        return Err("the comparison has no pfifo and no fq_codel".to_owned());
    };
    let mut table = "| qdisc | instructions per packet | of them the qdisc | to pfifo | to fq_codel |\n|---|---:|---:|---:|---:|\n".to_owned();
    for (kind, cost) in &rows {
        let (own, to_pfifo, to_fq_codel) = (cost - none, cost / pfifo, cost / fq_codel);
        table.push_str(&format!("| {kind} | {cost:.0} | {own:.0} | {to_pfifo:.2} | {to_fq_codel:.2} |\n"));
    }
    Ok(table)
}

/// Starts it and hears it out. The answer is what it said, and it said that it got to its end.
fn boot(folder: &Path, kernel: &Kernel, journals: usize, how: &[&str]) -> Result<String, String> {
    let disk = folder.join("disk");
    let file = fs::File::create(&disk).map_err(|error| error.to_string())?;
    file.set_len(SLOT * journals.max(1) as u64).map_err(|error| error.to_string())?;
    let mut qemu = Command::new("timeout");
    qemu.args(["--kill-after=5", "235", "qemu-system-x86_64", "-cpu", "Nehalem", "-m", "1024"]).args(how);
    qemu.args(["-display", "none", "-nodefaults", "-no-reboot", "-serial", "stdio"]);
    qemu.arg("-drive").arg(format!("file={},if=virtio,format=raw,cache=unsafe", disk.display()));
    qemu.arg("-kernel").arg(&kernel.image).arg("-initrd").arg(folder.join("initramfs.gz"));
    qemu.args(["-append", "console=ttyS0 quiet panic=-1 mitigations=off"]);
    let output =
        qemu.stdin(Stdio::null()).output().map_err(|error| format!("qemu cannot be run: {error}"))?;
    let said = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).replace('\r', "");
    let log = folder.join("serial.log");
    fs::write(&log, &said).map_err(|error| error.to_string())?;
    let wrong: Vec<&str> = said.lines().filter(|line| line.contains("FAILED")).take(10).collect();
    if !said.contains(END) {
        let last: Vec<&str> = said.lines().rev().take(10).collect();
        let last: Vec<&str> = last.into_iter().rev().collect();
        return Err(format!(
            "the virtual machine did not get to its end; {}:\n{}",
            log.display(),
            last.join("\n")
        ));
    }
    if wrong.is_empty() { Ok(said) } else { Err(format!("{}\nmore in {}", wrong.join("\n"), log.display())) }
}

/// Takes the journals from the disk and has them judged.
fn judge(repository: &Repository, folder: &Path, runs: &[Run], packets: u32, said: &str) -> Done {
    let told = |error: std::io::Error| format!("the disk of the virtual machine: {error}");
    let journals = folder.join("journals");
    let _ = fs::remove_dir_all(&journals);
    fs::create_dir_all(&journals).map_err(told)?;
    let mut disk = fs::File::open(folder.join("disk")).map_err(told)?;
    let mut words = Vec::new();
    for (slot, run) in runs.iter().enumerate() {
        if !said.lines().any(|line| line == format!("JOURNAL {}", run.name)) {
            return Err(format!("{} has no journal", run.name));
        }
        let mut count = [0; 8];
        disk.seek(SeekFrom::Start(slot as u64 * SLOT)).map_err(told)?;
        disk.read_exact(&mut count).map_err(told)?;
        let entries = u64::from_le_bytes(count);
        if entries + 1 >= ENTRIES {
            return Err(format!("the journal of {} is full: it ends before the traffic does", run.name));
        }
        let mut journal = vec![0; (entries as usize + 1) * 40];
        disk.seek(SeekFrom::Start(slot as u64 * SLOT)).map_err(told)?;
        disk.read_exact(&mut journal).map_err(told)?;
        let path = journals.join(format!("{}.journal", run.name));
        fs::write(&path, journal).map_err(told)?;
        let discipline = run.discipline.replacen("trr ", "trr_sound ", 1);
        words.extend([
            path.to_string_lossy().into_owned(),
            run.rate.to_owned(),
            discipline,
            packets.to_string(),
        ]);
    }
    let judge = repository.target()?.join("debug/examples/judge");
    match repository.command(&judge.to_string_lossy()).args(&words).status() {
        Ok(status) if status.success() => Ok(()),
        Ok(_) => Err("a discipline in the kernel is not the one in Rust".to_owned()),
        Err(error) => Err(format!("the judge cannot be run: {error}")),
    }
}
