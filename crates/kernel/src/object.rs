//! Compiles a discipline's C program against the types of the kernel that will run it.
//!
//! The C sources are embedded in the Rust program, so that it works without its repository. They are written
//! to a temporary folder for the compiler.

use std::path::{Path, PathBuf};

use crate::KernelError;
use crate::tools::{BPFTOOL, CLANG};
use giveway_kernel_plan::plan::Kind;

/// The types of the running kernel.
pub const RUNNING: &str = "/sys/kernel/btf/vmlinux";

const SOURCES: &[(&str, &str)] = &[
    ("giveway.h", include_str!("../../../kernel/giveway.h")),
    ("port.h", include_str!("../../../kernel/port.h")),
    ("flows.h", include_str!("../../../kernel/flows.h")),
    ("heap.h", include_str!("../../../kernel/heap.h")),
    ("calendar.h", include_str!("../../../kernel/calendar.h")),
    ("stamp.h", include_str!("../../../kernel/stamp.h")),
    ("drr.h", include_str!("../../../kernel/drr.h")),
    ("fifo.bpf.c", include_str!("../../../kernel/fifo.bpf.c")),
    ("drr.bpf.c", include_str!("../../../kernel/drr.bpf.c")),
    ("efd.bpf.c", include_str!("../../../kernel/efd.bpf.c")),
    ("trr.bpf.c", include_str!("../../../kernel/trr.bpf.c")),
    ("bsq.bpf.c", include_str!("../../../kernel/bsq.bpf.c")),
];

/// A discipline and the options of its compilation.
#[derive(Clone, Debug)]
pub struct Recipe<'a> {
    /// The discipline.
    pub kind: Kind,
    /// The qdisc's name in `tc`, at most 15 letters.
    pub name: &'a str,
    /// Number of packets and flows for which it has memory, plus one: a power of two.
    pub room: u32,
    /// Number of entries of its journal; `None` if it writes no journal.
    pub journal: Option<u32>,
    /// File with the kernel's types (BTF), such as [`RUNNING`] or an uncompressed kernel.
    pub btf: &'a Path,
}

/// Compiles a discipline into an object file.
///
/// # Errors
/// If clang, bpftool or the headers of libbpf are missing, or the kernel does not publish its types.
pub fn build(recipe: &Recipe<'_>, out: &Path) -> Result<(), KernelError> {
    let folder = Folder::new(out)?;
    for (name, text) in SOURCES {
        let path = folder.0.join(name);
        std::fs::write(&path, text).map_err(KernelError::file(&path))?;
    }
    if !recipe.btf.exists() {
        let what = format!(
            "{} does not exist: the kernel was built without CONFIG_DEBUG_INFO_BTF",
            recipe.btf.display()
        );
        return Err(KernelError::precondition(what));
    }
    let types = std::fs::read(recipe.btf).map_err(KernelError::file(recipe.btf))?;
    if !has_qdiscs(&types) {
        // The compiler would complain of each function that is missing.
        let what = format!(
            "the kernel of {} does not support qdiscs in BPF: it needs Linux 6.16 or later, built with CONFIG_NET_SCH_BPF; --btf names \
             the types of another kernel",
            recipe.btf.display()
        );
        return Err(KernelError::precondition(what));
    }
    let types = BPFTOOL.run(&["btf", "dump", "file", &text(recipe.btf), "format", "c"])?;
    let path = folder.0.join("types").join("vmlinux.h");
    std::fs::create_dir(folder.0.join("types")).map_err(KernelError::file(&path))?;
    std::fs::write(&path, &types).map_err(KernelError::file(&path))?;
    let name = format!("-DGIVEWAY_NAME=\"{}\"", recipe.name);
    let room = format!("-DGIVEWAY_ROOM={}", recipe.room);
    let journal = recipe.journal.map(|entries| format!("-DGIVEWAY_JOURNAL={entries}"));
    let (types, own) = (text(&folder.0.join("types")), format!("-I{}", text(&folder.0)));
    let source = text(&folder.0.join(format!("{}.bpf.c", recipe.kind.name())));
    let out = text(out);
    let mut arguments = vec!["-O2", "-g", "-Wall", "-Werror", "-target", "bpf", "-mcpu=v3"];
    arguments.extend(["-D__TARGET_ARCH_x86", "-isystem", &types, &own, &name, &room]);
    arguments.extend(journal.as_deref());
    arguments.extend(["-c", &source, "-o", &out]);
    match CLANG.run(&arguments) {
        Err(KernelError::Failed { output, .. }) if output.contains("bpf/bpf_helpers.h") => {
            Err(KernelError::Missing {
                program: "bpf/bpf_helpers.h",
                purpose: "the disciplines are compiled with the headers of libbpf",
                package: "libbpf-dev",
            })
        }
        other => other.map(drop),
    }
}

/// True if a kernel with these types has the functions for qdiscs in BPF.
pub(crate) fn has_qdiscs(types: &[u8]) -> bool {
    let needed: &[u8] = b"\0bpf_qdisc_skb_drop\0";
    types.windows(needed.len()).any(|window| window == needed)
}

fn text(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

/// A temporary folder, removed when it is dropped.
struct Folder(PathBuf);

impl Folder {
    /// Creates the folder next to the object file, where the user has permission to write.
    fn new(out: &Path) -> Result<Folder, KernelError> {
        let path = PathBuf::from(format!("{}.{}.build", out.display(), std::process::id()));
        std::fs::create_dir(&path).map_err(KernelError::file(&path))?;
        Ok(Folder(path))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kernel_without_qdiscs_in_bpf_is_said_to_have_none() {
        let dir = tempfile::tempdir().unwrap();
        let btf = dir.path().join("vmlinux");
        let error = |types: &[u8]| {
            std::fs::write(&btf, types).unwrap();
            let recipe = Recipe { kind: Kind::Fifo, name: "giveway_fifo", room: 8, journal: None, btf: &btf };
            build(&recipe, &dir.path().join("out.o")).unwrap_err().to_string()
        };
        let says = error(b"\0sk_buff\0Qdisc_ops\0");
        assert!(
            says.contains("does not support qdiscs in BPF") && says.contains("CONFIG_NET_SCH_BPF"),
            "{says}"
        );
        assert!(!error(b"\0bpf_qdisc_skb_drop\0").contains("CONFIG_NET_SCH_BPF"));
    }
}
