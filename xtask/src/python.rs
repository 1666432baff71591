//! The Python package: its wheel, its tests, types and notebooks.
//!
//! Everything happens in virtual environments below the build folder. `clean` contains the wheel only, as a
//! user without a Rust compiler has it. `tests` contains the libraries of `python/requirements-test.txt`, and
//! either the package with the module that cargo builds (the short form of the gate), or the wheel and also
//! the libraries of `python/requirements-all.txt` (the long form).

use std::fs;
use std::path::{Path, PathBuf};

use crate::repository::{Done, Repository, copy_into, files_below};
use crate::tools;

/// The program that builds wheels. Each wheel names its version.
const MATURIN: &str = "maturin==1.16.0";

/// The oldest Python that the wheel supports, as a program of Debian checks it.
const MIN: &str = "import sys; sys.exit(sys.version_info < (3, 11))";

/// The tag of the wheel: one for all versions from 3.11 on. maturin falls back to one version's tag if it
/// meets an interpreter that it does not know, and says so in a message only.
const TAG: &str = "cp311-abi3-";

/// The free-threaded interpreter with its own wheel, and the tag of that wheel. PyO3 supports free-threaded
/// builds from 3.14 on. The interpreter need not be installed: maturin knows its settings.
const FREE_THREADED: (&str, &str) = ("3.14t", "cp314-cp314t-");

/// The largest wheel to publish, bytes.
const LARGEST: u64 = 20_000_000;

/// The program for real interfaces, which a wheel has next to the script `giveway`.
const NET: &str = "giveway-net";

/// Prints the time of `import giveway`, and fails if it is far from the usual 0.1 s.
const IMPORT: &str = "import sys, time; begun = time.perf_counter(); import giveway; \
    took = time.perf_counter() - begun; print(f'import giveway: {took:.3f} s'); sys.exit(took > 3.0)";

/// Prepares the environment for [`check`].
///
/// # Errors
/// What is missing, and cannot be installed.
pub fn set_up(repository: &Repository) -> Done {
    interpreter(repository)?;
    let tests = environment(repository, "tests")?;
    pip(repository, &tests, &["--requirement", "python/requirements-test.txt"])
}

/// Prepares the environment for [`check_whole`].
///
/// # Errors
/// What is missing, and cannot be installed.
pub fn set_up_whole(repository: &Repository) -> Done {
    set_up(repository)?;
    let tests = environment(repository, "tests")?;
    pip(repository, &tests, &["--requirement", "python/requirements-all.txt", MATURIN])
}

/// Checks the interpreter, and installs the module for environments.
fn interpreter(repository: &Repository) -> Done {
    if !repository.has("python3", &["-c", MIN]) {
        return Err("Python 3.11 or newer is not installed".to_owned());
    }
    if !repository.has("python3", &["-c", "import venv, ensurepip"]) {
        tools::install(repository, &["python3-venv"])?;
    }
    Ok(())
}

/// The tests of the package, with the times of the slowest.
const PYTEST: [&str; 6] = ["-P", "-m", "pytest", "--quiet", "--durations=8", "tests"];

/// Runs the tests of the package in parallel, with the module that the tests of the workspace have built.
/// Tests on clusters and long ones are left out.
///
/// # Errors
/// The check that failed.
pub fn check(repository: &Repository) -> Done {
    let tests = environment(repository, "tests")?;
    let python = program(&tests, "python");
    assemble(repository, &python)?;
    style(repository, &python)?;
    let short = ["--numprocesses=auto", "--ignore=tests/test_cluster.py", "-m", "not long"];
    in_package(repository, &python, &[&PYTEST[..], &short].concat())
}

/// Builds the wheel of the profile `dev` with the program that the tests have built, installs it, and runs
/// types, all tests and the notebooks with it.
///
/// # Errors
/// The check that failed.
pub fn check_whole(repository: &Repository) -> Done {
    let tests = environment(repository, "tests")?;
    let python = program(&tests, "python");
    let net = repository.built("debug", NET)?;
    let wheel = wheel(repository, &tests, "dev", &net, TAG, &[])?;
    let _ = fs::remove_file(link(repository, &python)?);
    pip(repository, &tests, &["--force-reinstall", "--no-deps", &wheel.to_string_lossy()])?;
    clean(repository, &wheel)?;
    style(repository, &python)?;
    // In a folder without the sources, which mypy would take instead of the installed package.
    repository.run(&python, &["-P", "-m", "mypy.stubtest", "giveway._giveway"])?;
    in_package(repository, &program(&tests, "pyright"), &["--pythonpath", &python, "giveway"])?;
    in_package(repository, &python, &PYTEST)?;
    notebooks(repository, &python)
}

/// Checks formats and style.
fn style(repository: &Repository, python: &str) -> Done {
    let files = ["giveway", "tests", "notebooks", "examples", "export_notebooks.py"];
    let run =
        |words: &[&str]| in_package(repository, python, &[&["-P", "-m", "ruff"], words, &files].concat());
    run(&["format", "--check"])?;
    run(&["check"])
}

/// Puts the sources of the package and the built module into a folder that the environment imports, in place
/// of an installed wheel.
fn assemble(repository: &Repository, python: &str) -> Done {
    // Its features are those of the tests, so it is built from the same crates: see the manifest of `python`.
    repository.cargo(&["build", "--quiet", "--locked", "--package", "giveway-python", "--lib"])?;
    let package = folder(repository)?.join("package");
    let module = package.join("giveway");
    let failed = |error: std::io::Error| format!("{}: {error}", module.display());
    let _ = fs::remove_dir_all(&package);
    fs::create_dir_all(&module).map_err(failed)?;
    for file in files_below(&repository.root.join("python/giveway"))? {
        if file.extension() != Some("pyc".as_ref()) {
            copy_into(&file, &module)?;
        }
    }
    let library = repository.target()?.join("debug/lib_giveway.so");
    fs::copy(&library, module.join("_giveway.abi3.so"))
        .map_err(|error| format!("{}: {error}", library.display()))?;
    repository.run(python, &["-m", "pip", "uninstall", "--quiet", "--yes", "giveway"])?;
    let net = Path::new(python).with_file_name(NET);
    let _ = fs::remove_file(&net);
    std::os::unix::fs::symlink(repository.built("debug", NET)?, &net)
        .map_err(|error| format!("{}: {error}", net.display()))?;
    let link = link(repository, python)?;
    fs::write(&link, format!("{}\n", package.display()))
        .map_err(|error| format!("{}: {error}", link.display()))
}

/// The file by which an environment finds the assembled package.
fn link(repository: &Repository, python: &str) -> Result<PathBuf, String> {
    let place =
        repository.output(python, &["-c", "import sysconfig; print(sysconfig.get_path('purelib'))"])?;
    Ok(Path::new(place.trim()).join("giveway-assembled.pth"))
}

/// Builds the program for the wheels of this machine. It is static, as in a release, so that it runs
/// wherever the wheel does. Returns its path.
///
/// # Errors
/// If it cannot be built.
pub fn static_net(repository: &Repository) -> Result<PathBuf, String> {
    let target = format!("{}-unknown-linux-musl", std::env::consts::ARCH);
    tools::standard_library(repository, &target)?;
    let profile = ["build", "--locked", "--profile", "dist", "--target", &target];
    repository.cargo(&[&profile[..], &["--package", NET]].concat())?;
    repository.built(&format!("{target}/dist"), NET)
}

/// Builds the wheels to publish, with all optimisations: one for every Python from 3.11 on, and one for the
/// free-threaded interpreter. The second is not installed, because few machines have
/// that interpreter. Both have the program `net`. Returns their paths.
///
/// # Errors
/// If a wheel cannot be built, has another tag than expected, or is too large.
pub fn wheels(repository: &Repository, net: &Path) -> Result<Vec<PathBuf>, String> {
    interpreter(repository)?;
    let builder = environment(repository, "builder")?;
    pip(repository, &builder, &[MATURIN])?;
    // Both are built for the same target, so that they share the compiled crates.
    let target = format!("{}-unknown-linux-gnu", std::env::consts::ARCH);
    let stable = wheel(repository, &builder, "dist", net, TAG, &["--target", &target])?;
    let (free_threaded, tag) = FREE_THREADED;
    let more = ["--interpreter", free_threaded, "--target", &target];
    let free = wheel(repository, &builder, "dist", net, tag, &more)?;
    for wheel in [&stable, &free] {
        let size = fs::metadata(wheel).map_err(|error| format!("{}: {error}", wheel.display()))?.len();
        println!("{}: {:.1} MB", wheel.display(), size as f64 / 1e6);
        if size > LARGEST {
            return Err(format!("the wheel has {size} bytes, and may have {LARGEST}"));
        }
    }
    clean(repository, &stable)?;
    Ok(vec![stable, free])
}

/// Installs the wheel alone, as a user does, and runs the command and a first simulation.
fn clean(repository: &Repository, wheel: &Path) -> Done {
    let folder = folder(repository)?.join("clean");
    let _ = fs::remove_dir_all(&folder);
    let clean = environment(repository, "clean")?;
    pip(repository, &clean, &["--no-index", &wheel.to_string_lossy()])?;
    for name in ["giveway", NET] {
        repository.run(&program(&clean, name), &["--version"])?;
    }
    let python = program(&clean, "python");
    // The first import compiles the modules.
    repository.run(&python, &["-c", "import giveway"])?;
    repository.run(&python, &["-c", IMPORT])?;
    repository.run(&python, &["python/examples/first.py"])
}

/// Runs every notebook as a program, and in Jupyter.
fn notebooks(repository: &Repository, python: &str) -> Done {
    for notebook in repository.files("python/notebooks", "py") {
        let name = repository.name_of(&notebook);
        println!("{name}");
        repository.run(python, &[&name])?;
    }
    let exported = folder(repository)?.join("notebooks");
    in_package(repository, python, &["-P", "export_notebooks.py", "jupyter", &exported.to_string_lossy()])
}

/// Builds a wheel with the maturin of an environment, and checks its tag.
fn wheel(
    repository: &Repository,
    environment: &Path,
    profile: &str,
    net: &Path,
    tag: &str,
    more: &[&str],
) -> Result<PathBuf, String> {
    // maturin adds the programs of the folder with the name of the module. pip puts them beside the script.
    let scripts = repository.root.join("python/giveway._giveway.data/scripts");
    fs::create_dir_all(&scripts)
        .and_then(|()| fs::copy(net, scripts.join(NET)))
        .map_err(|error| format!("{}: {error}", net.display()))?;
    let out = folder(repository)?.join("wheels").join(profile).join(tag.trim_end_matches('-'));
    let _ = fs::remove_dir_all(&out);
    let place = out.to_string_lossy().into_owned();
    let mut arguments = vec!["build", "--locked", "--profile", profile, "--out", &place, "--quiet"];
    arguments.extend(more);
    in_package(repository, &program(environment, "maturin"), &arguments)?;
    let built = fs::read_dir(&out).map_err(|error| format!("{place}: {error}"))?;
    let built: Vec<PathBuf> = built.flatten().map(|entry| entry.path()).collect();
    match built.as_slice() {
        [wheel] if name_of(wheel).contains(tag) => Ok(wheel.clone()),
        _ => Err(format!("expected one wheel with the tag {tag}, and maturin made {built:?}")),
    }
}

fn name_of(wheel: &Path) -> String {
    wheel.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

/// The virtual environment of a name, which is created if it is missing.
fn environment(repository: &Repository, name: &str) -> Result<PathBuf, String> {
    let place = folder(repository)?.join(name);
    if !Path::new(&program(&place, "python")).exists() {
        repository.run("python3", &["-m", "venv", "--clear", &place.to_string_lossy()])?;
    }
    Ok(place)
}

fn folder(repository: &Repository) -> Result<PathBuf, String> {
    Ok(repository.target()?.join("python"))
}

/// A program of a virtual environment.
fn program(environment: &Path, name: &str) -> String {
    environment.join("bin").join(name).to_string_lossy().into_owned()
}

fn pip(repository: &Repository, environment: &Path, arguments: &[&str]) -> Done {
    // Python compiles modules when they are imported, which are few of the installed ones.
    let words = ["-m", "pip", "install", "--quiet", "--no-compile", "--disable-pip-version-check"];
    repository.run(&program(environment, "python"), &[&words[..], arguments].concat())
}

/// Runs a program in the folder of the package.
fn in_package(repository: &Repository, program: &str, arguments: &[&str]) -> Done {
    let mut command = repository.command(program);
    // The processes of pytest do not get `-P`: they would import the sources, which have no compiled part.
    command.args(arguments).current_dir(repository.root.join("python")).env("PYTHONSAFEPATH", "1");
    let status = command.status().map_err(|error| format!("{program}: {error}"))?;
    if status.success() { Ok(()) } else { Err(format!("{program} {}: {status}", arguments.join(" "))) }
}
