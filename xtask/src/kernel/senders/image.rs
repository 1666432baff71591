//! The initramfs of the machine that measures senders.

use std::fs;
use std::path::Path;

use super::plan::Line;
use crate::kernel::fetch::Kernel;
use crate::kernel::machine::{module, pack, program};
use crate::repository::{Done, Repository};

/// Kernel modules, loaded in this order.
const MODULES: [&str; 11] = [
    "drivers/net/veth",
    "net/sched/sch_netem",
    "net/sched/sch_tbf",
    "net/sched/sch_codel",
    "net/sched/sch_prio",
    "net/sched/cls_bpf",
    "net/ipv4/tcp_bbr",
    "net/ipv4/tcp_dctcp",
    "net/ipv4/tcp_vegas",
    "net/ipv4/inet_diag",
    "net/ipv4/tcp_diag",
];

/// Writes the initramfs for these measurements.
pub fn write(repository: &Repository, folder: &Path, kernel: &Kernel, lines: &[Line]) -> Done {
    let explain = |error: std::io::Error| error.to_string();
    let root = folder.join("root");
    let _ = fs::remove_dir_all(&root);
    for part in ["bin", "usr/sbin", "lib/modules", "objects", "proc", "sys", "dev", "run"] {
        fs::create_dir_all(root.join(part)).map_err(explain)?;
    }
    program(repository, &root, "busybox", "bin")?;
    for name in ["dash", "ip", "tc", "ss", "ethtool"] {
        program(repository, &root, name, "usr/sbin")?;
    }
    let senders = repository.built("debug", "senders")?;
    program(repository, &root, &senders.to_string_lossy(), "usr/sbin")?;
    MODULES.iter().try_for_each(|name| module(kernel, &root, name))?;
    let names: Vec<&str> = MODULES.iter().filter_map(|path| path.rsplit('/').next()).collect();
    let texts: Vec<String> = lines.iter().map(Line::text).collect();
    fs::write(root.join("modules"), names.join("\n") + "\n").map_err(explain)?;
    fs::write(root.join("measurements"), texts.join("\n") + "\n").map_err(explain)?;
    for line in lines {
        wire(repository, &root, line)?;
    }
    fs::copy(repository.root.join("kernel/test/senders.sh"), root.join("init")).map_err(explain)?;
    pack(repository, folder, "gzip -1")
}

/// Compiles the wire of a packet trace.
fn wire(repository: &Repository, root: &Path, line: &Line) -> Done {
    let Line::Trace(trace) = line else { return Ok(()) };
    let [lost, late] = trace.definitions();
    let to = root.join("objects").join(trace.object()).to_string_lossy().into_owned();
    let words = ["-O2", "-g", "-target", "bpf", "-I/usr/include/x86_64-linux-gnu", &lost, &late];
    repository.run("clang-19", &[&words[..], &["-c", "kernel/test/wire.bpf.c", "-o", &to]].concat())
}
