//! Compiles the crates of `kernel/rust` to bitcode for BPF.

use std::fs;
use std::path::{Path, PathBuf};

use super::folders::Folders;
use crate::repository::{Done, Repository, cargo};

/// Rust from Debian. It has the source of its library, and its LLVM has the version of the other programs.
const RUSTC: &str = "/usr/bin/rustc";
const TARGET: &str = "bpfel-giveway-none";

/// A call in the source of `core`, and its replacement. With the feature `optimize_for_size`, sorts need no
/// function that calls itself, except for this one.
const SELECT: [&str; 2] = [
    "median_of_medians(v, &mut is_less, index);",
    "crate::slice::sort::unstable::heapsort::heapsort(v, &mut is_less);",
];

/// Folder of the source of Rust's library, below `/usr/src`.
///
/// # Errors
/// If there is no such compiler.
pub(super) fn library(repository: &Repository) -> Result<String, String> {
    let about = repository.output(RUSTC, &["--version"])?;
    let version = about.split(' ').nth(1).ok_or("rustc has no version")?;
    Ok(format!("rustc-{version}/library"))
}

/// Builds one file of bitcode with all disciplines, `all.bc`.
///
/// # Errors
/// The error of the compiler.
pub(super) fn build(repository: &Repository, folders: &Folders) -> Done {
    let nightly = repository.with([("RUSTC_BOOTSTRAP".to_owned(), "1".to_owned())]);
    let target = folders.sources.join(TARGET).with_extension("json");
    let sysroot = sysroot(&nightly, folders, &target)?;
    // Warnings are left on, since cargo learns from one which kinds of crates the target has.
    let flags = format!(
        "--sysroot {} -C linker-plugin-lto -Z force-unstable-if-unmarked -Z unstable-options \
         --cap-lints warn",
        sysroot.display()
    );
    let crates = nightly.with([
        ("RUSTC".to_owned(), RUSTC.to_owned()),
        ("CARGO_TARGET_DIR".to_owned(), folders.built("crates").display().to_string()),
        ("CARGO_TARGET_BPFEL_GIVEWAY_NONE_RUSTFLAGS".to_owned(), flags),
    ]);
    let manifest = folders.sources.join("Cargo.toml");
    let arguments = ["-Z", "json-target-spec", "build", "--quiet", "--locked", "--release"];
    let mut command = crates.command(&cargo());
    command.args(arguments).args(["--package", "giveway-entry", "--manifest-path"]).arg(&manifest);
    command.arg("--target").arg(&target);
    succeed(command.status(), "cargo")?;
    let archive = folders.built("crates").join(TARGET).join("release/libgiveway_entry.a");
    let parts = folders.built("parts");
    let _ = fs::remove_dir_all(&parts);
    fs::create_dir_all(&parts).map_err(|error| format!("{}: {error}", parts.display()))?;
    succeed(
        repository.command("llvm-ar-22").arg("x").arg(archive).current_dir(&parts).status(),
        "llvm-ar-22",
    )?;
    let mut link = repository.command("llvm-link-22");
    link.arg("-o").arg(folders.built("all.bc"));
    for part in fs::read_dir(&parts).map_err(|error| error.to_string())?.flatten() {
        link.arg(part.path());
    }
    succeed(link.status(), "llvm-link-22")
}

/// Compiles `core`, the functions of the compiler, `alloc`, and our `std`. Returns the folder.
fn sysroot(repository: &Repository, folders: &Folders, target: &Path) -> Result<PathBuf, String> {
    let sysroot = folders.built("sysroot");
    let own = folders.sources.join("std/src");
    let mut stamp = repository.output(RUSTC, &["--version"])?;
    for file in [own.join("lib.rs"), own.join("sync.rs"), own.join("float.rs"), target.to_owned()] {
        stamp += &read(&file)?;
    }
    stamp += SELECT[1];
    let stamp_file = sysroot.join("stamp");
    if fs::read_to_string(&stamp_file).is_ok_and(|old| old == stamp) {
        return Ok(sysroot);
    }
    // What was compiled against the old one does not fit.
    let _ = fs::remove_dir_all(&sysroot);
    let _ = fs::remove_dir_all(folders.built("crates"));
    let library = folders.built("library");
    let _ = fs::remove_dir_all(&library);
    fs::create_dir_all(&library).map_err(|error| format!("{}: {error}", library.display()))?;
    let source = Path::new("/usr/src").join(self::library(repository)?);
    for part in ["core", "stdarch", "portable-simd", "alloc", "compiler-builtins"] {
        succeed(repository.command("cp").arg("-r").arg(source.join(part)).arg(&library).status(), "cp")?;
    }
    let select = library.join("core/src/slice/sort/select.rs");
    let text = read(&select)?;
    let changed = text.replacen(SELECT[0], SELECT[1], 1);
    if changed == text {
        return Err(format!("{} has no line \"{}\"", select.display(), SELECT[0]));
    }
    fs::write(&select, changed).map_err(|error| format!("{}: {error}", select.display()))?;
    let out = sysroot.join("lib/rustlib").join(TARGET).join("lib");
    fs::create_dir_all(&out).map_err(|error| format!("{}: {error}", out.display()))?;
    let size = r#"feature="optimize_for_size""#;
    let steps: [(&str, PathBuf, &[&str]); 4] = [
        ("core", library.join("core/src/lib.rs"), &[size]),
        (
            "compiler_builtins",
            library.join("compiler-builtins/compiler-builtins/src/lib.rs"),
            &[r#"feature="compiler-builtins""#, r#"feature="mem""#, r#"feature="no-asm""#],
        ),
        ("alloc", library.join("alloc/src/lib.rs"), &[size]),
        ("std", own.join("lib.rs"), &[]),
    ];
    for (at, (name, source, features)) in steps.iter().enumerate() {
        let mut command = repository.command(RUSTC);
        command.args(["--crate-name", name, "--edition", "2024", "--crate-type", "rlib"]);
        command.args([
            "-C",
            "panic=abort",
            "-C",
            "opt-level=3",
            "-C",
            "codegen-units=1",
            "-C",
            "debuginfo=1",
        ]);
        command.args(["-C", "linker-plugin-lto", "-C", "extra-filename=-gw", "--cap-lints", "allow"]);
        command.args(["-Z", "force-unstable-if-unmarked", "-Z", "unstable-options", "--target"]).arg(target);
        command.arg("--sysroot").arg(&sysroot).arg("--out-dir").arg(&out);
        for feature in *features {
            command.args(["--cfg", feature]);
        }
        for (before, ..) in &steps[..at] {
            command
                .arg("--extern")
                .arg(format!("{before}={}", out.join(format!("lib{before}-gw.rlib")).display()));
        }
        succeed(command.arg(source).status(), name)?;
    }
    fs::write(&stamp_file, stamp).map_err(|error| format!("{}: {error}", stamp_file.display()))?;
    Ok(sysroot)
}

/// The text of a file.
pub(super) fn read(file: &Path) -> Result<String, String> {
    fs::read_to_string(file).map_err(|error| format!("{}: {error}", file.display()))
}

/// The result of a program without output.
pub(super) fn succeed(status: std::io::Result<std::process::ExitStatus>, name: &str) -> Done {
    match status {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(format!("{name}: {status}")),
        Err(error) => Err(format!("{name} cannot be run: {error}")),
    }
}
