//! Runs the commands of the page `docs/book/kernel.md` in a machine that has only the kernel and a compiler.
//!
//! The commands of each `sh` block run in the virtual machine, unchanged, as a user without privileges;
//! `sudo` works. A command that ends in `# refused: WORDS` must fail with these words in its message; every
//! other command must succeed. Commands for developers of Giveway (`cargo`) are left out.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use super::fetch::Kernel;
use super::machine::{PARALLEL, boot_for, libraries, pack};
use super::users::hosts;
use crate::repository::{Done, Repository};

const PAGE: &str = "docs/book/kernel.md";
/// Time limit of the machine, in seconds: the compiler takes half a minute in it.
const SECONDS: &str = "900";

/// Runs all commands of the page.
///
/// # Errors
/// If a command has another result than the page states.
pub fn follow(repository: &Repository, folder: &Path, kernel: &Kernel) -> Done {
    let page = fs::read_to_string(repository.root.join(PAGE)).map_err(|error| format!("{PAGE}: {error}"))?;
    let commands = commands(&page);
    let script = include_str!("../../../kernel/test/book.sh").replace("# THE COMMANDS\n", &steps(&commands));
    hosts(repository, folder, kernel, &script)?;
    compiler(repository, folder)?;
    let mut options = PARALLEL.to_vec();
    options.extend(["-m", "3072"]);
    let output = boot_for(folder, kernel, 0, &options, SECONDS)?;
    let followed = output.lines().filter(|line| line.starts_with("FOLLOWED ")).count();
    output.lines().filter(|line| line.starts_with("FOLLOWED ")).for_each(|line| println!("{line}"));
    match followed == commands.len() {
        true => Ok(()),
        false => Err(format!("{followed} of {} commands of {PAGE} had the stated result", commands.len())),
    }
}

/// A command of the page, with the words of its error message if it must fail.
#[derive(Debug, PartialEq, Eq)]
struct Command {
    line: String,
    refused: Option<String>,
}

/// The commands in the `sh` blocks of a page. A command is a line, or several lines joined by backslashes.
fn commands(page: &str) -> Vec<Command> {
    let blocks = page.split("```").skip(1).step_by(2).filter_map(|block| block.strip_prefix("sh\n"));
    let mut commands = Vec::new();
    for block in blocks {
        let block = block.replace("\\\n", " ");
        for line in block.lines().filter(|line| !line.trim().is_empty() && !line.starts_with("cargo ")) {
            let refused = line.split_once("# refused: ").map(|(_, words)| words.trim().to_owned());
            commands.push(Command { line: line.to_owned(), refused });
        }
    }
    commands
}

/// The script of the machine: each command is a here-document.
fn steps(commands: &[Command]) -> String {
    let mut text = String::new();
    for Command { line, refused } in commands {
        let refused = refused.as_deref().unwrap_or_default().replace('\'', "'\\''");
        let _ = write!(text, "step '{refused}' <<'END OF STEP'\n{line}\nEND OF STEP\n");
    }
    text
}

/// Adds clang with its libraries, and the headers of libbpf, to the initramfs.
fn compiler(repository: &Repository, folder: &Path) -> Done {
    let root = folder.join("root");
    let explain = |error: std::io::Error| format!("clang-19: {error}");
    let from = repository.output("sh", &["-c", "command -v clang-19"])?;
    let from = fs::canonicalize(from.trim()).map_err(explain)?;
    let to = root.join(from.strip_prefix("/").expect("it is absolute"));
    fs::create_dir_all(to.parent().expect("it is a file")).map_err(explain)?;
    fs::copy(&from, &to).map_err(explain)?;
    libraries(repository, &root, &[from.to_string_lossy().into_owned()])?;
    fs::create_dir_all(root.join("usr/bin")).map_err(explain)?;
    std::os::unix::fs::symlink(&from, root.join("usr/bin/clang-19")).map_err(explain)?;
    fs::create_dir_all(root.join("usr/include")).map_err(explain)?;
    repository.run("cp", &["-r", "/usr/include/bpf", &root.join("usr/include").to_string_lossy()])?;
    // Not compressed: the emulated machine uncompresses more slowly than it reads.
    pack(repository, folder, "cat")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_read_from_the_page() {
        let page = "Text.\n\n```sh\nsudo one --dev eth0\n\ntwo \\\n  more   # refused: no two\n```\n\n```text\nthree\n```\n```sh\ncargo xtask x\n```\n";
        let one = Command { line: "sudo one --dev eth0".to_owned(), refused: None };
        let two = Command {
            line: "two    more   # refused: no two".to_owned(),
            refused: Some("no two".to_owned()),
        };
        assert_eq!(commands(page), [one, two]);
        assert!(
            steps(&commands(page))
                .starts_with("step '' <<'END OF STEP'\nsudo one --dev eth0\nEND OF STEP\nstep 'no two' <<")
        );
    }
}
