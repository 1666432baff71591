//! The initramfs of the machine that runs test beds.

use std::fs;
use std::path::Path;

use crate::kernel::fetch::Kernel;
use crate::kernel::machine::{module, pack, program};
use crate::repository::{Done, Repository};

/// Kernel modules, loaded in this order.
const MODULES: [&str; 11] = [
    "drivers/block/virtio_blk",
    "drivers/net/veth",
    "net/sched/sch_htb",
    "net/sched/sch_tbf",
    "net/sched/sch_cake",
    "net/ipv4/tcp_bbr",
    "drivers/net/ifb",
    "net/sched/sch_ingress",
    "net/sched/cls_matchall",
    "net/sched/act_mirred",
    "net/sched/sch_pie",
];

/// Writes the initramfs of a machine that runs this script: lines for the functions of
/// `kernel/test/testbed.sh`. With `objects`, the machine can load the BPF qdiscs of this folder.
pub fn write(
    repository: &Repository,
    folder: &Path,
    kernel: &Kernel,
    script: &str,
    objects: Option<&Path>,
) -> Done {
    let explain = |error: std::io::Error| error.to_string();
    let root = folder.join("root");
    let _ = fs::remove_dir_all(&root);
    for part in ["bin", "usr/sbin", "lib/modules", "proc", "sys", "dev", "run", "tmp", "scenarios/testbed"] {
        fs::create_dir_all(root.join(part)).map_err(explain)?;
    }
    program(repository, &root, "busybox", "bin")?;
    // unshare of busybox would run the tc of busybox.
    for name in ["dash", "ip", "tc", "ethtool", "unshare", "tcpdump"] {
        program(repository, &root, name, "usr/sbin")?;
    }
    for name in ["giveway", "giveway-net"] {
        let built = repository.built("debug", name)?.to_string_lossy().into_owned();
        program(repository, &root, &built, "usr/sbin")?;
        repository.run("strip", &[root.join("usr/sbin").join(name)])?;
    }
    if let Some(objects) = objects {
        program(repository, &root, "bpftool", "usr/sbin")?;
        repository.run("cp", &["-r", &objects.to_string_lossy(), &root.join("objects").to_string_lossy()])?;
    }
    MODULES.iter().try_for_each(|name| module(kernel, &root, name))?;
    let names: Vec<&str> = MODULES.iter().filter_map(|path| path.rsplit('/').next()).collect();
    fs::write(root.join("modules"), names.join("\n") + "\n").map_err(explain)?;
    fs::write(root.join("runs.sh"), script).map_err(explain)?;
    for entry in fs::read_dir(repository.root.join("scenarios/testbed")).map_err(explain)?.flatten() {
        fs::copy(entry.path(), root.join("scenarios/testbed").join(entry.file_name())).map_err(explain)?;
    }
    fs::copy(repository.root.join("kernel/test/testbed.sh"), root.join("init")).map_err(explain)?;
    pack(repository, folder, "gzip -1")
}
