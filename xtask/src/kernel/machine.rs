//! The virtual machine: its files, its start and its output.

use std::fs;
use std::io::{Read, Seek, SeekFrom};
use std::path::Path;
use std::process::{Command, Stdio};

use super::disk::{ENTRIES, ENTRY, SLOT};
use super::fetch::Kernel;
use crate::repository::{Done, Repository};

/// Last line of a complete run.
const END: &str = "END OF THE KERNEL TEST";

/// Modules of the qdiscs of Linux that the oracle compares.
const QDISC_MODULES: [&str; 11] = [
    "sch_htb",
    "sch_hfsc",
    "sch_drr",
    "sch_ets",
    "sch_codel",
    "sch_red",
    "sch_gred",
    "sch_pie",
    "sch_fq_pie",
    "sch_ingress",
    "cls_flow",
];

/// Options of qemu: two emulated processors, which take turns on one thread. On two threads, one of them can
/// run code that the other is replacing.
pub const PARALLEL: [&str; 4] = ["-accel", "tcg,thread=single", "-smp", "2"];
/// Options of qemu: one processor whose clock advances a nanosecond per instruction, so that the measured
/// cost does not depend on the load of this computer.
pub const COUNTED: [&str; 6] = ["-accel", "tcg,thread=single", "-smp", "1", "-icount", "shift=0,sleep=off"];

/// Creates the initramfs of the machine. `plan` is the script that it runs.
pub fn initramfs(repository: &Repository, folder: &Path, kernel: &Kernel, plan: &str) -> Done {
    let root = folder.join("root");
    let _ = fs::remove_dir_all(&root);
    let explain = |error: std::io::Error| error.to_string();
    for part in ["bin", "usr/sbin", "lib/modules", "objects", "proc", "sys", "dev", "run", "tmp"] {
        fs::create_dir_all(root.join(part)).map_err(explain)?;
    }
    let mut programs = Vec::new();
    for name in ["giveway", "giveway-net"] {
        let stripped = root.join("bin").join(name).to_string_lossy().into_owned();
        let built = repository.built("debug", name)?.to_string_lossy().into_owned();
        repository.run("strip", &["-o", &stripped, &built])?;
        programs.push(stripped);
    }
    for (program, to) in
        [("busybox", "bin"), ("dash", "bin"), ("tc", "usr/sbin"), ("ip", "usr/sbin"), ("bpftool", "usr/sbin")]
    {
        let from =
            repository.output("sh", &["-c", &format!("PATH=$PATH:/usr/sbin:/sbin command -v {program}")])?;
        let from = fs::canonicalize(from.trim()).map_err(explain)?;
        fs::copy(&from, root.join(to).join(program)).map_err(explain)?;
        programs.push(from.to_string_lossy().into_owned());
    }
    libraries(repository, &root, &programs)?;
    let usual = [
        "drivers/block/virtio_blk",
        "drivers/net/dummy",
        "net/sched/sch_sfq",
        "net/sched/sch_fq",
        "net/sched/sch_cake",
    ];
    let watched = QDISC_MODULES.map(|module| format!("net/sched/{module}"));
    for module in usual.into_iter().chain(watched.iter().map(String::as_str)) {
        self::module(kernel, &root, module)?;
    }
    fs::copy(folder.join("drive"), root.join("bin/drive")).map_err(explain)?;
    let from = folder.join("objects").to_string_lossy().into_owned();
    repository.run("cp", &["-r", &format!("{from}/."), &root.join("objects").to_string_lossy()])?;
    fs::write(root.join("plan.sh"), plan).map_err(explain)?;
    fs::copy(repository.root.join("kernel/test/init.sh"), root.join("init")).map_err(explain)?;
    pack(repository, folder, "gzip -1")
}

/// Packs the folder `root` as the initramfs. `through` is the command that compresses it.
pub fn pack(repository: &Repository, folder: &Path, through: &str) -> Done {
    let (root, packed) = (folder.join("root"), folder.join("initramfs.gz"));
    let words = "chmod +x \"$1/init\" && cd \"$1\" && find . | cpio --quiet -o -H newc | $3 > \"$2\"";
    repository.run("sh", &["-c", words, "sh", &root.to_string_lossy(), &packed.to_string_lossy(), through])
}

/// Copies the shared libraries of programs to the same paths below `root`.
pub fn libraries(repository: &Repository, root: &Path, programs: &[String]) -> Done {
    let explain = |error: std::io::Error| error.to_string();
    for program in programs {
        let listed = repository.output("ldd", &[program]).unwrap_or_default();
        for library in listed.split_whitespace().filter(|word| word.starts_with('/')) {
            let to = root.join(library.trim_start_matches('/'));
            fs::create_dir_all(to.parent().expect("it is a file")).map_err(explain)?;
            fs::copy(library, to).map_err(explain)?;
        }
    }
    Ok(())
}

/// Copies a program of this computer, with its libraries, to a folder of the initramfs. `name` is a path or a
/// name that is searched for.
pub fn program(repository: &Repository, root: &Path, name: &str, to: &str) -> Done {
    let from = repository.output("sh", &["-c", &format!("PATH=$PATH:/usr/sbin:/sbin command -v {name}")])?;
    let explain = |error: std::io::Error| format!("{name}: {error}");
    let from = fs::canonicalize(from.trim()).map_err(explain)?;
    let file = Path::new(name).file_name().unwrap_or(name.as_ref());
    fs::copy(&from, root.join(to).join(file)).map_err(explain)?;
    libraries(repository, root, &[from.to_string_lossy().into_owned()])
}

/// Copies a kernel module, such as `net/sched/sch_fq`, to the initramfs.
pub fn module(kernel: &Kernel, root: &Path, module: &str) -> Done {
    let explain = |error: std::io::Error| format!("the module {module}: {error}");
    let packed = kernel.modules.join("kernel").join(format!("{module}.ko.xz"));
    let name = packed.file_stem().expect("it is a file").to_string_lossy().into_owned();
    let text = Command::new("xz").arg("-dc").arg(&packed).output().map_err(explain)?;
    if text.stdout.is_empty() {
        return Err(format!("the kernel has no module {module}"));
    }
    fs::write(root.join("lib/modules").join(name), text.stdout).map_err(explain)
}

/// Starts the machine and returns its output, which ends with the line of a complete run.
pub fn boot(folder: &Path, kernel: &Kernel, journals: usize, options: &[&str]) -> Result<String, String> {
    // Three minutes on two idle processors. Other steps of the gate run beside it.
    boot_for(folder, kernel, journals, options, "900")
}

/// Number of times that the machine is started, if its kernel crashes. An emulated machine with several
/// processors can meet an instruction that another processor of it is replacing at that moment, as a kernel
/// does when it boots, or when a program is attached to one of its functions. That is rare, so a second crash
/// is a fault of what is tested.
const BOOTS: usize = 2;

/// Lines of a crash that are shown.
const SHOWN: usize = 40;

/// The report of the kernel about its crash, from its first line on. `None` if it did not crash.
fn crash(output: &str) -> Option<String> {
    // Only lines of the kernel begin with "[".
    let kernel = || output.lines().filter(|line| line.starts_with('['));
    kernel().find(|line| line.contains("Kernel panic"))?;
    let begins = ["BUG:", "Oops", "general protection", "kernel BUG at", "Kernel panic"];
    let first = |line: &&str| !begins.iter().any(|word| line.contains(word));
    Some(kernel().skip_while(first).take(SHOWN).collect::<Vec<_>>().join("\n"))
}

/// Starts the machine and returns its output. Stops it after `seconds`.
pub fn boot_for(
    folder: &Path,
    kernel: &Kernel,
    journals: usize,
    options: &[&str],
    seconds: &str,
) -> Result<String, String> {
    let disk = folder.join("disk");
    let file = fs::File::create(&disk).map_err(|error| error.to_string())?;
    file.set_len(SLOT * journals.max(1) as u64).map_err(|error| error.to_string())?;
    let mut qemu = Command::new("timeout");
    qemu.args(["--kill-after=5", seconds, "qemu-system-x86_64", "-cpu", "Nehalem", "-m", "1024"])
        .args(options);
    qemu.args(["-display", "none", "-nodefaults", "-no-reboot", "-serial", "stdio"]);
    qemu.arg("-drive").arg(format!("file={},if=virtio,format=raw,cache=unsafe", disk.display()));
    qemu.arg("-kernel").arg(&kernel.image).arg("-initrd").arg(folder.join("initramfs.gz"));
    qemu.args(["-append", "console=ttyS0 quiet panic=-1 mitigations=off"]);
    let mut run = || -> Result<String, String> {
        let output = qemu.stdin(Stdio::null()).output();
        let output = output.map_err(|error| format!("qemu cannot be run: {error}"))?;
        Ok(String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).replace('\r', ""))
    };
    let mut output = run()?;
    for _ in 1..BOOTS {
        let Some(report) = crash(&output) else { break };
        println!("the kernel of the virtual machine crashed, and the machine is started again:\n{report}");
        output = run()?;
    }
    let log = folder.join("serial.log");
    fs::write(&log, &output).map_err(|error| error.to_string())?;
    let wrong: Vec<&str> = output.lines().filter(|line| line.contains("FAILED")).take(10).collect();
    if !output.contains(END) {
        let lines: Vec<&str> = output.lines().collect();
        let last = || lines[lines.len().saturating_sub(10)..].join("\n");
        return Err(format!(
            "the virtual machine stopped before its last step; {}:\n{}",
            log.display(),
            crash(&output).unwrap_or_else(last)
        ));
    }
    if wrong.is_empty() {
        Ok(output)
    } else {
        Err(format!("{}\nmore in {}", wrong.join("\n"), log.display()))
    }
}

/// Copies journals from the virtual disk to files, starting at the slot `first`. Returns the paths of the
/// files.
pub fn journals(folder: &Path, first: usize, names: &[String], output: &str) -> Result<Vec<String>, String> {
    let explain = |error: std::io::Error| format!("the disk of the virtual machine: {error}");
    let to = folder.join("journals");
    fs::create_dir_all(&to).map_err(explain)?;
    let mut disk = fs::File::open(folder.join("disk")).map_err(explain)?;
    let mut files = Vec::new();
    for (slot, name) in (first as u64..).zip(names) {
        if !output.lines().any(|line| line == format!("JOURNAL {name}")) {
            return Err(format!("{name} has no journal"));
        }
        let mut count = [0; 8];
        disk.seek(SeekFrom::Start(slot * SLOT)).map_err(explain)?;
        disk.read_exact(&mut count).map_err(explain)?;
        let entries = u64::from_le_bytes(count);
        if entries + 1 >= ENTRIES {
            return Err(format!("the journal of {name} is full, so it does not have all calls"));
        }
        let mut journal = vec![0; (entries as usize + 1) * ENTRY as usize];
        disk.seek(SeekFrom::Start(slot * SLOT)).map_err(explain)?;
        disk.read_exact(&mut journal).map_err(explain)?;
        let path = to.join(format!("{name}.journal"));
        fs::write(&path, journal).map_err(explain)?;
        files.push(path.to_string_lossy().into_owned());
    }
    Ok(files)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_crash_is_shown_from_its_first_line_on() {
        let output = "efd loaded\n[    9.1] virtio: a disk\n[    9.6] Oops: int3: 0000\n\
                      [    9.6] RIP: 0010:get_random_u16+0x5/0x170\nefd unloaded\n[    9.7] Kernel panic - not syncing\n";
        let report = crash(output).expect("it crashed");
        assert_eq!(report.lines().count(), 3);
        assert!(report.starts_with("[    9.6] Oops: int3"), "{report}");
        assert!(report.ends_with("Kernel panic - not syncing"), "{report}");
        assert_eq!(crash("[    1.3] virtio: device is missing\n"), None);
        assert_eq!(crash("the text Kernel panic of a program\n"), None);
    }
}
