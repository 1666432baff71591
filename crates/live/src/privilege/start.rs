//! Another program that this process starts, without its privileges.

use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use giveway_files::Dir;
use landlock::{ABI, AccessFs, PathBeneath, Ruleset, RulesetAttr, RulesetCreatedAttr};

use super::Identity;
use super::outputs::in_thread_of;

/// Starts the program `path` in `folder`, with these arguments and an environment of these variables. Its
/// standard input and output are both `input`.
///
/// It has the ids of `user` (`None`: of this process), and neither the supplementary groups of root nor
/// capabilities. It gains none, and changes files in `folder` only.
///
/// Only this process need be able to search the folders above `folder`, and above the program unless that is
/// a script.
///
/// # Errors
/// The error of the system, if the user cannot run the program, or this process may not become the user.
pub fn program(
    path: &Path,
    arguments: &[&OsStr],
    variables: &[&str],
    user: Option<Identity>,
    folder: &Dir,
    input: &OwnedFd,
) -> io::Result<Child> {
    let opened = File::open(path)?;
    // Its interpreter opens it again, and finds no descriptor.
    let mut mark = [0; 2];
    let is_script = opened.read_at(&mut mark, 0)? == 2 && &mark == b"#!";
    let by_descriptor = |descriptor: i32| PathBuf::from(format!("/proc/self/fd/{descriptor}"));
    let spawn = |by: &Path| {
        let known = variables.iter().filter_map(|name| Some((*name, std::env::var_os(name)?)));
        Command::new(by)
            .arg0(path)
            .args(arguments)
            .env_clear()
            .envs(known)
            .current_dir(by_descriptor(folder.as_fd().as_raw_fd()))
            // Ctrl-C is for the bridge.
            .process_group(0)
            .stdin(Stdio::from(input.try_clone()?))
            .stdout(Stdio::from(input.try_clone()?))
            .spawn()
    };
    in_thread_of(user, || {
        // The watching thread reports a kernel without Landlock.
        drop(restrict(folder));
        match spawn(path) {
            // The user may not search the folders above it.
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied && !is_script => {
                spawn(&by_descriptor(opened.as_raw_fd()))
            }
            started => started,
        }
    })
}

/// Restricts this thread, and the programs that it starts, to changes of files below a folder. They gain no
/// privileges.
fn restrict(folder: &Dir) -> Result<(), landlock::RulesetError> {
    let changes = AccessFs::from_write(ABI::V5);
    let rules = Ruleset::default().handle_access(changes)?.create()?;
    rules.add_rule(PathBeneath::new(folder, changes))?.restrict_self().map(drop)
}
