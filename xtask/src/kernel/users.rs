//! Tests `giveway testbed` and `giveway live` with disciplines in the kernel, in the virtual machine.

use std::fs;
use std::path::{Path, PathBuf};

use super::fetch::Kernel;
use super::machine::{PARALLEL, boot, initramfs, module, pack, program};
use crate::repository::{Done, Repository};

/// Kernel modules for networks of virtual hosts. A module comes after those that it needs.
pub const MODULES: [&str; 12] = [
    "drivers/net/veth",
    "net/sched/sch_htb",
    "net/sched/sch_tbf",
    "net/sched/sch_drr",
    "net/sched/cls_flow",
    "net/sched/sch_ingress",
    "net/sched/cls_matchall",
    "net/sched/act_mirred",
    "net/sched/cls_flower",
    "net/sched/act_skbedit",
    "net/sched/sch_netem",
    "drivers/net/ifb",
];

/// Runs a test bed and a bridge with disciplines in the kernel, and checks that both remove everything that
/// they created, also after a kill.
pub fn test(repository: &Repository, folder: &Path, kernel: &Kernel) -> Done {
    hosts(repository, folder, kernel, include_str!("../../../kernel/test/users.sh"))?;
    boot(folder, kernel, 0, &PARALLEL).map(drop)
}

/// Copies the compiled disciplines to a folder in which they have the names that tc uses for them.
pub fn named_objects(folder: &Path) -> Result<PathBuf, String> {
    let explain = |error: std::io::Error| error.to_string();
    let named = folder.join("objects/named");
    fs::create_dir_all(&named).map_err(explain)?;
    for entry in fs::read_dir(folder.join("objects/plain")).map_err(explain)?.flatten() {
        let name = format!("giveway_{}", entry.file_name().to_string_lossy());
        fs::copy(entry.path(), named.join(name)).map_err(explain)?;
    }
    Ok(named)
}

/// Creates the initramfs of a machine for test beds, with objects under the names that tc uses for them.
pub fn hosts(repository: &Repository, folder: &Path, kernel: &Kernel, plan: &str) -> Done {
    let explain = |error: std::io::Error| error.to_string();
    let named = named_objects(folder)?;
    let giveway = repository.built("debug", "giveway")?.to_string_lossy().into_owned();
    let (second, types) = (named.join("giveway_efd_2.o"), kernel.types.to_string_lossy());
    let words =
        ["kernel", "build", "efd", "--btf", &types, "--limit", "8000p", "--name", "giveway_efd_2", "--out"];
    repository.run(&giveway, &[&words[..], &[&second.to_string_lossy()]].concat())?;
    initramfs(repository, folder, kernel, plan)?;
    let root = folder.join("root");
    MODULES.iter().try_for_each(|name| module(kernel, &root, name))?;
    program(repository, &root, "ethtool", "usr/sbin")?;
    // unshare of busybox would run the tc of busybox.
    program(repository, &root, "unshare", "usr/sbin")?;
    let scenarios = root.join("scenarios/testbed");
    fs::create_dir_all(&scenarios).map_err(explain)?;
    for entry in fs::read_dir(repository.root.join("scenarios/testbed")).map_err(explain)?.flatten() {
        fs::copy(entry.path(), scenarios.join(entry.file_name())).map_err(explain)?;
    }
    pack(repository, folder, "gzip -1")
}
