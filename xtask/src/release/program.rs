//! The static programs, their manual pages, and their completions for shells.

use std::fs;
use std::path::Path;

use super::auditable;
use super::making::Release;
use super::places;
use super::platform::{LINK, PROFILE, PROGRAMS, Platform};
use super::training;
use crate::repository::{Done, Repository};

/// The largest programs to publish, bytes. What runs as root is small.
const LARGEST: [u64; PROGRAMS.len()] = [25_000_000, 10_000_000];

/// Shells, and the files with their completions.
const SHELLS: [(&str, &str); 3] = [("bash", "giveway.bash"), ("zsh", "_giveway"), ("fish", "giveway.fish")];

/// Builds the programs for each platform, and writes their manual pages and completions to the folder
/// `package` next to them.
pub fn build(release: &Release) -> Done {
    release.each(|platform| build_one(release, platform))
}

fn build_one(release: &Release, platform: &Platform) -> Done {
    let build = ["rustc", "--locked", "--profile", PROFILE, "--target", platform.target];
    let compile = |repository: &Repository, (package, program): (&str, &str)| {
        let what = ["--package", package, "--bin", program, "--"];
        repository.cargo(&[&build[..], &what, &LINK].concat())
    };
    let repository = auditable::repository(release)?;
    let trained = |repository: &Repository| compile(repository, PROGRAMS[0]);
    let repository = match training::profile(release, platform, trained, &repository)? {
        Some(profile) => training::with_profile(&repository, &profile),
        None => repository,
    };
    for (program, largest) in PROGRAMS.into_iter().zip(LARGEST) {
        compile(&repository, program)?;
        check(release, platform, &release.built(platform).join(program.1), largest)?;
    }
    let program = release.built(platform).join("giveway");
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

/// Checks the size of the program, that it is static, that it names its commit, and that it has no path of
/// this machine.
fn check(release: &Release, platform: &Platform, program: &Path, largest: u64) -> Done {
    let failed = |error: std::io::Error| format!("{}: {error}", program.display());
    let content = fs::read(program).map_err(failed)?;
    println!("{}: {:.1} MB", program.display(), content.len() as f64 / 1e6);
    if content.len() as u64 > largest {
        return Err(format!("the program has {} bytes, and may have {largest}", content.len()));
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
    fn a_program_with_an_interpreter_is_dynamic() {
        assert_eq!(is_dynamic(&elf(3)), Some(true));
        assert_eq!(is_dynamic(&elf(1)), Some(false));
        assert_eq!(is_dynamic(&elf(1)[..70]), Some(false));
        assert_eq!(is_dynamic(&elf(1)[..66]), None);
        assert_eq!(is_dynamic(b"#!/bin/sh"), None);
    }
}
