//! Adds a discipline: a file from the template, an entry in the registry, and a scenario.

use std::path::Path;

use crate::repository::{Done, Repository};

const FILE: &str = include_str!("../templates/discipline.rs");
const SCENARIO: &str = include_str!("../templates/scenario.toml");
const REGISTRY: &str = "crates/disciplines/src/lib.rs";

/// The default family of a new discipline. The template is first in, first out, so it is in the family
/// `shape`.
pub const FAMILY: &str = "shape";

/// Keywords of Rust, which cannot be the name of a module.
const KEYWORDS: &[&str] = &[
    "as", "async", "await", "box", "break", "const", "crate", "dyn", "else", "enum", "extern", "false",
    "final", "fn", "for", "gen", "if", "impl", "in", "let", "loop", "macro", "match", "mod", "move", "mut",
    "override", "priv", "pub", "ref", "return", "self", "static", "struct", "super", "trait", "true", "try",
    "type", "unsafe", "use", "virtual", "where", "while", "yield",
];

/// Writes the files of a new discipline, and prints the next steps.
pub fn discipline(repository: &Repository, name: &str, family: &str) -> Done {
    let name = name.replace('-', "_");
    write(&repository.root, &name, family)?;
    println!(
        "\
wrote crates/disciplines/src/{family}/{name}.rs       a working queue: first in, first out
wrote scenarios/disciplines/{name}.toml
added `{name},` to the family `{family}` in {REGISTRY}

next:
  cargo test -p giveway-disciplines {name}   its own tests
  cargo test -p giveway-disciplines          all tests of the crate, with the contract suite
  cargo run --release -- run scenarios/disciplines/{name}.toml
  cargo xtask docs                           its reference page
  cargo xtask golden                         its fingerprint
  cargo xtask test                           all checks of CI"
    );
    Ok(())
}

/// Adds a discipline to a copy of the workspace and tests it there: the template must pass without changes.
pub fn try_it(repository: &Repository) -> Done {
    const NAME: &str = "tried_out";
    let copy = repository.built("xtask", "new")?;
    let _ = std::fs::remove_dir_all(&copy);
    for part in ["Cargo.toml", "Cargo.lock", "clippy.toml", "rustfmt.toml", "crates", "xtask"] {
        copy_all(&repository.root.join(part), &copy.join(part))
            .map_err(|error| format!("{part}: {error}"))?;
    }
    write(&copy, NAME, FAMILY)?;
    let elsewhere = Repository::at(&copy);
    let file = format!("crates/disciplines/src/{FAMILY}/{NAME}.rs");
    let formatted = elsewhere.run("rustfmt", &["--edition", "2024", "--check", &file]);
    // The same target folder, in which the dependencies are built. Cargo distinguishes crates by their paths,
    // so the crates of the copy do not replace those of the workspace.
    let target = repository.target()?.to_string_lossy().into_owned();
    // The suites for this discipline; all others were tested before.
    let tests = ["--lib", "--test", "all", "--", "contract::", "bytes::", "allocations::", NAME];
    let test = ["--quiet", "--package", "giveway-disciplines", "--target-dir", &target];
    // Without optimisation, because compiling these tests takes longer than running them.
    let plain = [
        "--config=profile.dev.opt-level=0",
        "--config=profile.dev.package.giveway-qdisc.opt-level=0",
        "--config=profile.dev.package.giveway-disciplines.opt-level=0",
    ];
    let only = [("GIVEWAY_DISCIPLINE", NAME)];
    let tested = elsewhere.tests(&[&test[..], &plain, &tests].concat(), &only);
    let _ = std::fs::remove_dir_all(&copy);
    formatted.and(tested)
}

fn write(root: &Path, name: &str, family: &str) -> Done {
    check_name(name)?;
    let registry = root.join(REGISTRY);
    let before = std::fs::read_to_string(&registry).map_err(|error| format!("{REGISTRY}: {error}"))?;
    let registered = with_line(&before, family, name)?;
    let file = root.join(format!("crates/disciplines/src/{family}/{name}.rs"));
    let scenario = root.join(format!("scenarios/disciplines/{name}.toml"));
    if let Some(taken) = [&file, &scenario].into_iter().find(|path| path.exists()) {
        return Err(format!("{} exists already", taken.display()));
    }
    let type_name = type_name(name);
    let fill = |template: &str| template.replace("new_discipline", name).replace("NewDiscipline", &type_name);
    for (path, text) in [(&file, fill(FILE)), (&scenario, fill(SCENARIO)), (&registry, registered)] {
        let folder = path.parent().expect("a file is in a folder");
        std::fs::create_dir_all(folder)
            .and_then(|()| std::fs::write(path, text))
            .map_err(|error| format!("{}: {error}", path.display()))?;
    }
    Ok(())
}

fn check_name(name: &str) -> Done {
    let letters = name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_');
    if !letters || !name.starts_with(|c: char| c.is_ascii_lowercase()) || name.ends_with('_') {
        return Err(format!(
            "\"{name}\": write a name in lower-case letters, digits and underscores, such as \"codel_l4s\""
        ));
    }
    if KEYWORDS.contains(&name) {
        return Err(format!("\"{name}\" is a keyword of Rust: choose another name"));
    }
    if ["registry", "spec", "common", "testing", "shape", "fair", "size", "aqm", "reserved", "lib"]
        .contains(&name)
    {
        return Err(format!("\"{name}\" is a module of the crate giveway-disciplines: choose another name"));
    }
    Ok(())
}

/// The text of the registry with an entry added at the end of a family.
fn with_line(text: &str, family: &str, name: &str) -> Result<String, String> {
    let begin = text.find("registry! {\n").ok_or(format!("{REGISTRY} has no registry"))?;
    let end = text[begin..].find("\n}").ok_or(format!("the registry in {REGISTRY} has no end"))? + begin + 1;
    let registry = &text[begin..end];
    if registry.lines().any(|line| line.trim() == format!("{name},")) {
        return Err(format!("the discipline \"{name}\" exists already"));
    }
    let heading = format!("\n    {family} {{\n");
    let Some(first) = registry.find(&heading).map(|at| begin + at + heading.len()) else {
        let families: Vec<&str> =
            registry.lines().skip(1).filter_map(|line| line.trim().strip_suffix(" {")).collect();
        return Err(format!("unknown family \"{family}\": write one of {}", families.join(", ")));
    };
    let last =
        text[first..].find("    }").ok_or(format!("the family {family} in {REGISTRY} has no end"))? + first;
    Ok(format!("{}        {name},\n{}", &text[..last], &text[last..]))
}

/// The name of the type of a discipline: `CodelL4s` for `codel_l4s`.
fn type_name(name: &str) -> String {
    let capital = |word: &str| word[..1].to_uppercase() + &word[1..];
    name.split('_').filter(|word| !word.is_empty()).map(capital).collect()
}

fn copy_all(from: &Path, to: &Path) -> std::io::Result<()> {
    if from.is_file() {
        std::fs::create_dir_all(to.parent().expect("a file is in a folder"))?;
        return std::fs::copy(from, to).map(drop);
    }
    for entry in std::fs::read_dir(from)? {
        let entry = entry?;
        if entry.file_name() != "target" {
            copy_all(&entry.path(), &to.join(entry.file_name()))?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_goes_to_the_end_of_its_family() {
        let before = "mod a;\n\nregistry! {\n    /// Order.\n    shape {\n        fifo,\n    }\n\n    /// Shares.\n    \
                      fair {\n        drr,\n    }\n}\n\nfn after() {\n}\n";
        let in_fair = before.replace("        drr,\n", "        drr,\n        codel_l4s,\n");
        let in_shape = before.replace("        fifo,\n", "        fifo,\n        codel_l4s,\n");
        assert_eq!(with_line(before, "fair", "codel_l4s").unwrap(), in_fair);
        assert_eq!(with_line(before, "shape", "codel_l4s").unwrap(), in_shape);
        assert_eq!(with_line(before, "shape", "drr").unwrap_err(), "the discipline \"drr\" exists already");
        let unknown = with_line(before, "unfair", "codel_l4s").unwrap_err();
        assert_eq!(unknown, "unknown family \"unfair\": write one of shape, fair");
    }

    #[test]
    fn names_are_checked() {
        assert_eq!(check_name("codel_l4s"), Ok(()));
        for wrong in ["", "Fifo", "4u", "a b", "a_", "match", "spec"] {
            assert!(check_name(wrong).is_err(), "{wrong:?}");
        }
        assert_eq!(type_name("codel_l4s"), "CodelL4s");
    }
}
