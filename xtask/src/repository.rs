//! The repository on disk, and commands that run in it.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

/// Arguments of cargo that build all tests, and the programs that they use. Benchmarks are not built: clippy
/// checks them. A flag such as `--lib` would also build the tests of targets that have none (`test = false`).
pub const BUILD_TESTS: [&str; 4] = ["test", "--workspace", "--locked", "--no-run"];

/// Result of a chore: nothing, or the reason for its failure.
pub type Done = Result<(), String>;

/// The repository, by the root folder of its workspace.
pub struct Repository {
    pub root: PathBuf,
    /// Variables of the environment for all commands, in addition to this process's own.
    pub variables: Vec<(String, String)>,
}

impl Repository {
    /// The repository from which this program was built.
    pub fn find() -> Repository {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("xtask is in the repository");
        Repository::at(root)
    }

    /// The repository in this folder.
    pub fn at(root: &Path) -> Repository {
        Repository { root: root.to_owned(), variables: Vec::new() }
    }

    /// This repository with more variables. The last one of a name counts.
    pub fn with(&self, more: impl IntoIterator<Item = (String, String)>) -> Repository {
        let variables = self.variables.iter().cloned().chain(more).collect();
        Repository { root: self.root.clone(), variables }
    }

    /// A command that runs in the root folder, without a standard input.
    pub fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        command.current_dir(&self.root).stdin(Stdio::null());
        command.envs(self.variables.iter().map(|(name, value)| (name, value)));
        command
    }

    /// Runs a program. Its output goes to the terminal.
    pub fn run<S: AsRef<OsStr>>(&self, program: &str, arguments: &[S]) -> Done {
        let mut command = self.command(program);
        command.args(arguments);
        let shown = arguments.iter().map(|argument| argument.as_ref().to_string_lossy().into_owned());
        // A list of hundreds of files would hide the error.
        let shown = shown.take(12).collect::<Vec<_>>().join(" ");
        match command.status() {
            Ok(status) if status.success() => Ok(()),
            Ok(status) => Err(format!("{program} {shown}: {status}")),
            Err(error) => Err(format!("{program} cannot be run: {error}")),
        }
    }

    /// Runs a program, and returns its standard output.
    pub fn output<S: AsRef<OsStr>>(&self, program: &str, arguments: &[S]) -> Result<String, String> {
        let mut command = self.command(program);
        let output = command.args(arguments).stderr(Stdio::piped()).output();
        let output = output.map_err(|error| format!("{program} cannot be run: {error}"))?;
        if output.status.success() {
            return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
        }
        Err(format!("{program}: {}\n{}", output.status, String::from_utf8_lossy(&output.stderr).trim_end()))
    }

    /// True if a program runs with these arguments and succeeds.
    pub fn has(&self, program: &str, arguments: &[&str]) -> bool {
        self.output(program, arguments).is_ok()
    }

    /// Runs cargo.
    pub fn cargo(&self, arguments: &[&str]) -> Done {
        self.run(&cargo(), arguments)
    }

    /// Runs tests with cargo, with further variables of the environment. The seed of property tests is fixed,
    /// so the result depends on the code only; `cargo xtask properties` tries new cases.
    pub fn tests(&self, arguments: &[&str], variables: &[(&str, &str)]) -> Done {
        let mut command = self.command(&cargo());
        command.arg("test").args(arguments).env("PROPTEST_RNG_SEED", "1").envs(variables.iter().copied());
        match command.status() {
            Ok(status) if status.success() => Ok(()),
            Ok(status) => {
                Err(format!("cargo test {} (with PROPTEST_RNG_SEED=1): {status}", arguments.join(" ")))
            }
            Err(error) => Err(format!("cargo cannot be run: {error}")),
        }
    }

    /// Builds all tests, and the programs that they use.
    pub fn build_tests(&self) -> Done {
        self.cargo(&[&BUILD_TESTS[..], &["--quiet"]].concat())
    }

    /// Writes the files that are generated from the registries, or checks them with `--check`.
    pub fn docs(&self, arguments: &[&str]) -> Done {
        // The whole workspace: built as a single package the program would get dependencies with fewer
        // features, so all of them would be compiled again.
        self.cargo(&["build", "--quiet", "--locked", "--workspace", "--bin", "giveway-docs"])?;
        self.run(&self.built("debug", "giveway-docs")?.to_string_lossy(), arguments)
    }

    /// Checks the generated files with the program that the tests have built.
    pub fn docs_are_up_to_date(&self) -> Done {
        self.build_tests()?;
        self.run(&self.built("debug", "giveway-docs")?.to_string_lossy(), &["--check"])
    }

    /// Output of `cargo metadata` for the workspace and all its dependencies.
    pub fn metadata(&self) -> Result<Value, String> {
        self.metadata_with(&[])
    }

    /// Output of `cargo metadata` with further arguments.
    pub fn metadata_with(&self, more: &[&str]) -> Result<Value, String> {
        let fixed = ["metadata", "--format-version", "1", "--locked"];
        let text = self.output(&cargo(), &[&fixed, more].concat())?;
        serde_json::from_str(&text).map_err(|error| format!("cargo metadata: {error}"))
    }

    /// Path of a built program of the workspace; `folder` is the folder of the build profile.
    pub fn built(&self, folder: &str, name: &str) -> Result<PathBuf, String> {
        Ok(self.target()?.join(folder).join(name).with_extension(std::env::consts::EXE_EXTENSION))
    }

    /// The target folder of cargo.
    pub fn target(&self) -> Result<PathBuf, String> {
        let metadata = self.metadata_with(&["--no-deps"])?;
        let target =
            metadata["target_directory"].as_str().ok_or("cargo metadata names no target directory")?;
        Ok(PathBuf::from(target))
    }

    /// The default target of the compiler, such as `x86_64-unknown-linux-gnu`.
    pub fn host(&self) -> Option<String> {
        let about = self.output("rustc", &["-vV"]).ok()?;
        about.lines().find_map(|line| Some(line.strip_prefix("host: ")?.to_owned()))
    }

    /// All files with an extension in a folder below the root, sorted. Hidden folders, build folders and
    /// results are left out.
    pub fn files(&self, below: &str, extension: &str) -> Vec<PathBuf> {
        let mut found = Vec::new();
        collect(&self.root.join(below), extension, &mut found);
        found.sort();
        found
    }

    /// A path relative to the root, with slashes on every system.
    pub fn name_of(&self, path: &Path) -> String {
        let relative = path.strip_prefix(&self.root).unwrap_or(path);
        relative.iter().map(OsStr::to_string_lossy).collect::<Vec<_>>().join("/")
    }
}

/// The `cargo` that runs this program.
pub fn cargo() -> String {
    std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned())
}

/// Copies a file into a folder, under its name.
///
/// # Errors
/// The error of the system, with the file.
pub fn copy_into(file: &Path, folder: &Path) -> Done {
    let name = file.file_name().ok_or(format!("{}: this is not a file", file.display()))?;
    let copied = std::fs::copy(file, folder.join(name));
    copied.map(drop).map_err(|error| format!("{}: {error}", file.display()))
}

/// All files below a folder, sorted. Links are left out.
///
/// # Errors
/// The folder that cannot be read.
pub fn files_below(folder: &Path) -> Result<Vec<PathBuf>, String> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        let failed = |error: std::io::Error| format!("{}: {error}", folder.display());
        for entry in std::fs::read_dir(&folder).map_err(failed)?.flatten() {
            match entry.file_type().map_err(failed)? {
                kind if kind.is_dir() => folders.push(entry.path()),
                kind if kind.is_file() => found.push(entry.path()),
                _ => {}
            }
        }
    }
    found.sort();
    Ok(found)
}

fn collect(folder: &Path, extension: &str, found: &mut Vec<PathBuf>) {
    let Ok(entries) = std::fs::read_dir(folder) else { return };
    for path in entries.flatten().map(|entry| entry.path()) {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if path.is_dir() {
            if !name.starts_with('.') && !["target", "out", "runs"].contains(&name.as_str()) {
                collect(&path, extension, found);
            }
        } else if path.extension() == Some(OsStr::new(extension)) {
            found.push(path);
        }
    }
}
