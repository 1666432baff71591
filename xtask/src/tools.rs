//! Installs the programs that other steps need. Programs that exist are not changed.

use crate::repository::{Done, Repository, cargo};

/// Installs rustfmt, clippy and a C compiler (for zstd), and then the optional programs: Python, a browser,
/// `ip`, `ethtool` and `tcpdump`. Tests that need a missing optional program are skipped, except for the test
/// of the report, which needs the browser if `CI` is set.
pub fn set_up(repository: &Repository) -> Done {
    component(repository, "rustfmt", ("rustfmt", &["--version"]), "rustfmt")?;
    component(repository, "clippy", (&cargo(), &["clippy", "--version"]), "rust-clippy")?;
    if !repository.has("cc", &["--version"]) {
        install(repository, &["gcc", "libc6-dev"])?;
    }
    if let Err(why) = python(repository) {
        println!("python3 is missing, so its tests are skipped: {why}");
    }
    if !repository.has("chromium", &["--version"])
        && let Err(why) = install(repository, &["chromium"])
    {
        println!("chromium is missing, so no report is opened in a browser: {why}");
    }
    for (program, package, version) in
        [("ip", "iproute2", "-V"), ("ethtool", "ethtool", "--version"), ("tcpdump", "tcpdump", "--version")]
    {
        if !repository.has(program, &[version])
            && let Err(why) = install(repository, &[package])
        {
            println!("{program} is missing, so tests with interfaces are skipped: {why}");
        }
    }
    for (program, arguments) in [("rustc", ["--version"]), ("rustfmt", ["--version"]), ("cc", ["--version"])]
    {
        let version = repository.output(program, &arguments)?;
        println!("{}", version.lines().next().unwrap_or_default());
    }
    Ok(())
}

/// Installs Python.
///
/// # Errors
/// If it is missing and cannot be installed.
pub fn python(repository: &Repository) -> Done {
    need(repository, &[("python3", "--version", "python3")])
}

/// The compiler's target for programs in a browser.
pub const WASM: &str = "wasm32-unknown-unknown";

/// Installs the standard library for a target of the compiler.
///
/// # Errors
/// If there is no rustup, or it cannot install it.
pub fn standard_library(repository: &Repository, target: &str) -> Done {
    let installed = repository.output("rustup", &["target", "list", "--installed"]);
    let installed = installed.map_err(|error| {
        format!("{error}\nonly rustup installs the standard library for {target}: https://rustup.rs")
    })?;
    if installed.lines().any(|line| line == target) {
        return Ok(());
    }
    repository.run("rustup", &["target", "add", target])
}

/// The path of the compiler's `llvm-profdata`, which is installed if it is missing.
///
/// # Errors
/// If there is no rustup, or it cannot install it.
pub fn profdata(repository: &Repository) -> Result<String, String> {
    let compiler = repository.output("rustc", &["--print", "target-libdir"])?;
    let path = format!("{}/../bin/llvm-profdata", compiler.trim());
    if !repository.has(&path, &["--version"]) {
        repository.run("rustup", &["component", "add", "llvm-tools"])?;
    }
    Ok(path)
}

/// Installs a component of the toolchain: with rustup if it is available, otherwise as a Debian package.
fn component(repository: &Repository, name: &str, probe: (&str, &[&str]), package: &str) -> Done {
    if repository.has(probe.0, probe.1) {
        return Ok(());
    }
    println!("{name} is missing: installing it");
    if repository.has("rustup", &["--version"]) {
        return repository.run("rustup", &["component", "add", name]);
    }
    install(repository, &[package])
}

/// Installs Debian packages, as root or with a sudo that needs no password.
///
/// # Errors
/// The packages to install, if this process cannot install them.
pub fn install(repository: &Repository, packages: &[&str]) -> Done {
    if !repository.has("apt-get", &["--version"]) {
        return Err(format!("install {}: this system has no apt-get", packages.join(" ")));
    }
    let root = repository.output("id", &["-u"]).is_ok_and(|id| id.trim() == "0");
    let prefix: &[&str] = match root {
        true => &["env"],
        false if repository.has("sudo", &["-n", "true"]) => &["sudo", "-n", "env"],
        false => {
            let packages = packages.join(" ");
            return Err(format!("install {packages}: this needs root, and sudo asks for a password"));
        }
    };
    let apt = |arguments: &[&str]| {
        let quiet = ["DEBIAN_FRONTEND=noninteractive", "apt-get", "-q", "-y"];
        let words = [prefix, &quiet, arguments].concat();
        repository.run(words[0], &words[1..])
    };
    apt(&["update"])?;
    apt(&[&["install", "--no-install-recommends"], packages].concat())
}

/// Installs the packages of programs that are missing: name, words that make it end at once, package.
///
/// # Errors
/// The packages to install, if this process cannot install them.
pub fn need(repository: &Repository, programs: &[(&str, &str, &str)]) -> Done {
    let packages = missing(repository, programs);
    if packages.is_empty() { Ok(()) } else { install(repository, &packages) }
}

/// The packages of programs that are missing, in the form of [`need`].
pub fn missing<'a>(repository: &Repository, programs: &[(&str, &str, &'a str)]) -> Vec<&'a str> {
    let is_missing =
        |program: &str, words: &str| !repository.has(program, &words.split(' ').collect::<Vec<_>>());
    let missing = programs.iter().filter(|(program, words, _)| is_missing(program, words));
    missing.map(|(_, _, package)| *package).collect()
}

/// The version of mdBook that builds the book.
const MDBOOK: &str = "0.5.4";

/// Returns the path of mdBook. If this version is not installed, builds it with its search and without its
/// web server.
///
/// # Errors
/// If it cannot be built.
pub fn mdbook(repository: &Repository) -> Result<String, String> {
    let installed = repository.output("mdbook", &["--version"]);
    if installed.is_ok_and(|version| version.trim() == format!("mdbook v{MDBOOK}")) {
        return Ok("mdbook".to_owned());
    }
    build(repository, "mdbook", MDBOOK, &["--no-default-features", "--features", "search"])
}

/// Builds a program from its crate, once for each version, list of features and target folder. Returns its
/// path.
///
/// # Errors
/// If it cannot be built.
pub fn build(
    repository: &Repository,
    name: &str,
    version: &str,
    features: &[&str],
) -> Result<String, String> {
    let with: String =
        features.iter().filter(|word| !word.starts_with("--")).map(|word| format!("-{word}")).collect();
    let folder = repository.target()?.join(format!("tools/{name}-{version}{with}"));
    let program = folder.join("bin").join(name);
    if !program.exists() {
        println!("{name} {version} is missing: building it");
        let root = folder.to_string_lossy();
        let arguments = ["install", name, "--version", version, "--locked", "--debug", "--quiet"];
        let mut install = repository.command(&cargo());
        // Nobody debugs it here, and its build would take longer.
        install.args(arguments).args(features).args(["--root", &root]).env("CARGO_PROFILE_DEV_DEBUG", "0");
        let status = install.status().map_err(|error| format!("cargo: {error}"))?;
        if !status.success() {
            return Err(format!("{name} {version} cannot be installed: {status}"));
        }
    }
    Ok(program.to_string_lossy().into_owned())
}
