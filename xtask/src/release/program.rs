//! The static programs, their manual pages, and their completions for shells.

use std::fs;
use std::path::Path;

use super::making::Release;
use super::places;
use super::platform::{PACKAGE, PROFILE, Platform};
use crate::repository::{Done, Repository};

/// The largest program to publish, bytes.
const LARGEST: u64 = 25_000_000;

/// Shells, and the files with their completions.
const SHELLS: [(&str, &str); 3] = [("bash", "giveway.bash"), ("zsh", "_giveway"), ("fish", "giveway.fish")];

/// Builds the program for each platform, and writes its manual pages and completions to the folder `package`
/// beside it.
pub fn build(release: &Release) -> Done {
    release.each(|platform| build_one(release, platform))
}

fn build_one(release: &Release, platform: &Platform) -> Done {
    let build = ["rustc", "--locked", "--profile", PROFILE, "--target", platform.target];
    let link = ["--package", PACKAGE, "--bin", "giveway", "--", "-C", platform.packed];
    let variables = [release.repository.variables.clone(), auditable(&release.tools.auditable)?].concat();
    Repository { root: release.repository.root.clone(), variables }.cargo(&[&build[..], &link].concat())?;
    let program = release.built(platform).join("giveway");
    check(release, platform, &program)?;
    let program = program.to_string_lossy();
    let output = |arguments: &[&str]| {
        let words = [platform.command(&program), arguments.to_vec()].concat();
        release.repository.output(words[0], &words[1..])
    };
    let folder = release.built(platform).join("package");
    // Pages of commands that exist no more must not stay.
    let _ = fs::remove_dir_all(&folder);
    let failed = |error: std::io::Error| format!("{}: {error}", folder.display());
    fs::create_dir_all(folder.join("completions")).map_err(failed)?;
    output(&["man", &folder.join("man").to_string_lossy()])?;
    for (shell, file) in SHELLS {
        let script = output(&["completions", shell])?;
        fs::write(folder.join("completions").join(file), script).map_err(failed)?;
    }
    Ok(())
}

/// The environment in which cargo calls the compiler through cargo-auditable, given its path.
///
/// `cargo auditable` would name itself by its path. Cargo makes the names of symbols from it, so programs of
/// two folders would differ in every function. A name without a folder is the same everywhere.
fn auditable(program: &str) -> Result<Vec<(String, String)>, String> {
    let program = Path::new(program);
    let name = program.file_name().ok_or("cargo-auditable has no name")?;
    let folders = std::env::var_os("PATH").unwrap_or_default();
    let folders = program.parent().map(Path::to_owned).into_iter().chain(std::env::split_paths(&folders));
    let path = std::env::join_paths(folders).map_err(|error| format!("PATH: {error}"))?;
    let variables = [
        ("PATH", path.to_string_lossy().into_owned()),
        ("RUSTC_WORKSPACE_WRAPPER", name.to_string_lossy().into_owned()),
        // The arguments that it passes to `cargo metadata`.
        (
            "CARGO_AUDITABLE_ORIG_ARGS",
            r#"{"offline":false,"locked":true,"frozen":false,"config":[]}"#.to_owned(),
        ),
    ];
    Ok(variables.map(|(name, value)| (name.to_owned(), value)).into())
}

/// Checks the size of the program, that it is static, that it names its commit, and that it has no path of
/// this machine.
fn check(release: &Release, platform: &Platform, program: &Path) -> Done {
    let failed = |error: std::io::Error| format!("{}: {error}", program.display());
    let content = fs::read(program).map_err(failed)?;
    println!("{}: {:.1} MB", program.display(), content.len() as f64 / 1e6);
    if content.len() as u64 > LARGEST {
        return Err(format!("the program has {} bytes, and may have {LARGEST}", content.len()));
    }
    let name = program.to_string_lossy();
    let words = [platform.command(&name), vec!["--version"]].concat();
    let version = release.repository.output(words[0], &words[1..])?;
    print!("{version}");
    let commit = release.repository.output("git", &["rev-parse", "--short=12", "HEAD"])?;
    if !version.contains(&format!("(commit {},", commit.trim())) {
        return Err(format!("{version} does not name the commit {commit}"));
    }
    if is_dynamic(&content).ok_or("the program is not an ELF file of 64 bits")? {
        return Err("the program needs an interpreter for shared libraries".to_owned());
    }
    match places::within(&release.repository, &content) {
        Some(place) => Err(format!("the program contains {place}")),
        None => Ok(()),
    }
}

/// True if a program of ELF with 64 bits asks for an interpreter (elf(5), PT_INTERP). `None` if it is another
/// kind of file.
fn is_dynamic(program: &[u8]) -> Option<bool> {
    const INTERPRETER: u32 = 3;
    let number = |at: usize, bytes: usize| {
        let field = program.get(at..at.checked_add(bytes)?)?;
        Some(field.iter().rev().fold(0_u64, |number, byte| number << 8 | u64::from(*byte)))
    };
    if program.get(..5)? != b"\x7fELF\x02" {
        return None;
    }
    let (headers, size, count) = (number(32, 8)?, number(54, 2)?, number(56, 2)?);
    let kinds = (0..count).map(|index| number(usize::try_from(headers + index * size).ok()?, 4));
    let kinds: Vec<u64> = kinds.collect::<Option<_>>()?;
    Some(kinds.contains(&u64::from(INTERPRETER)))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A program with one program header of this kind.
    fn elf(kind: u8) -> Vec<u8> {
        let mut program = vec![0; 64 + 56];
        program[..5].copy_from_slice(b"\x7fELF\x02");
        (program[32], program[54], program[56], program[64]) = (64, 56, 1, kind);
        program
    }

    #[test]
    fn the_compiler_is_called_by_a_name_without_a_folder() {
        let variables = auditable("/home/a/tools/bin/cargo-auditable").unwrap();
        let value = |name: &str| &variables.iter().find(|(own, _)| own == name).unwrap().1;
        assert_eq!(value("RUSTC_WORKSPACE_WRAPPER"), "cargo-auditable");
        assert!(value("PATH").starts_with("/home/a/tools/bin:"));
    }

    #[test]
    fn a_program_with_an_interpreter_is_dynamic() {
        assert_eq!(is_dynamic(&elf(3)), Some(true));
        assert_eq!(is_dynamic(&elf(1)), Some(false));
        assert_eq!(is_dynamic(&elf(1)[..70]), Some(false));
        assert_eq!(is_dynamic(&elf(1)[..66]), None);
        assert_eq!(is_dynamic(b"#!/bin/sh"), None);
    }
}
