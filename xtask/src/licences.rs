//! Checks the licences of all dependencies against the allow-list in `deny.toml`.
//!
//! The licences come from `cargo metadata`, which takes an instant. cargo-deny checks more of `deny.toml`,
//! but building it takes minutes, so it runs only if it is installed.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::repository::{Done, Repository, cargo};

/// Checks that no package has a licence that is not allowed, is banned, or is from an unknown source.
pub fn check(repository: &Repository) -> Done {
    let policy = Policy::read(repository)?;
    let metadata = repository.metadata()?;
    let packages = metadata["packages"].as_array().ok_or("cargo metadata lists no packages")?;
    let wrong: Vec<String> = packages.iter().filter_map(|package| policy.violation(package)).collect();
    if !wrong.is_empty() {
        return Err(format!("{} packages are not allowed\n{}", wrong.len(), wrong.join("\n")));
    }
    println!("{} packages, all under {}", packages.len(), names(&policy.allowed));
    if !repository.has(&cargo(), &["deny", "--version"]) {
        println!("cargo-deny is not installed: this program checked licences, bans and sources");
        return Ok(());
    }
    repository.cargo(&["deny", "--all-features", "check", "licenses", "bans", "sources"])
}

/// Contents of `deny.toml`.
struct Policy {
    allowed: BTreeSet<String>,
    banned: BTreeSet<String>,
    /// Further licences of single crates.
    exceptions: BTreeMap<String, BTreeSet<String>>,
}

impl Policy {
    fn read(repository: &Repository) -> Result<Policy, String> {
        let file = std::fs::read_to_string(repository.root.join("deny.toml"));
        let file = file.map_err(|error| format!("deny.toml: {error}"))?;
        let table: toml::Table = file.parse().map_err(|error| format!("deny.toml: {error}"))?;
        let list = |section: &str, key: &str| {
            let list =
                table.get(section).and_then(|section| section.get(key)).and_then(|list| list.as_array());
            list.ok_or(format!("deny.toml has no {section}.{key}"))
        };
        let text = |value: &toml::Value| value.as_str().map(str::to_owned);
        let name = |value: &toml::Value| text(value.get("crate").unwrap_or(value));
        let exception = |value: &toml::Value| {
            let more = value.get("allow")?.as_array()?.iter().filter_map(text).collect();
            Some((name(value)?, more))
        };
        Ok(Policy {
            allowed: list("licenses", "allow")?.iter().filter_map(text).collect(),
            banned: list("bans", "deny")?.iter().filter_map(name).collect(),
            exceptions: list("licenses", "exceptions")?.iter().filter_map(exception).collect(),
        })
    }

    fn violation(&self, package: &Value) -> Option<String> {
        let text = |key: &str| package[key].as_str().unwrap_or_default();
        let (name, version) = (text("name"), text("version"));
        if self.banned.contains(name) {
            return Some(format!("{name} {version}: banned in deny.toml"));
        }
        // Packages of the workspace have no source; others must come from the registry that cargo is
        // configured with.
        if !text("source").is_empty() && !text("source").starts_with("registry+") {
            return Some(format!("{name} {version}: from {}, not from the registry", text("source")));
        }
        match text("license") {
            "" => Some(format!("{name} {version}: no licence")),
            licence if !allows(licence, &self.allowed_for(name)) => {
                Some(format!("{name} {version}: {licence}"))
            }
            _ => None,
        }
    }

    fn allowed_for(&self, name: &str) -> BTreeSet<String> {
        let more = self.exceptions.get(name).into_iter().flatten();
        self.allowed.iter().chain(more).cloned().collect()
    }
}

/// True if the allowed licences satisfy an SPDX expression.
fn allows(expression: &str, allowed: &BTreeSet<String>) -> bool {
    // Old manifests write "MIT/Apache-2.0" for a choice.
    let spaced = expression.replace('/', " OR ").replace('(', " ( ").replace(')', " ) ");
    let words: Vec<&str> = spaced.split_whitespace().collect();
    let mut rest = words.as_slice();
    let holds = any(&mut rest, allowed);
    holds && rest.is_empty()
}

/// Alternatives: at least one must hold.
fn any(rest: &mut &[&str], allowed: &BTreeSet<String>) -> bool {
    let mut holds = all(rest, allowed);
    while let ["OR", tail @ ..] = *rest {
        *rest = tail;
        holds |= all(rest, allowed);
    }
    holds
}

/// Conjunctions: each must hold.
fn all(rest: &mut &[&str], allowed: &BTreeSet<String>) -> bool {
    let mut holds = one(rest, allowed);
    while let ["AND", tail @ ..] = *rest {
        *rest = tail;
        holds &= one(rest, allowed);
    }
    holds
}

/// A licence, with or without an exception, or an expression in parentheses. An SPDX exception only adds
/// permissions, so it is ignored.
fn one(rest: &mut &[&str], allowed: &BTreeSet<String>) -> bool {
    let (holds, tail) = match *rest {
        ["(", inner @ ..] => {
            *rest = inner;
            let holds = any(rest, allowed);
            match *rest {
                [")", after @ ..] => (holds, after),
                _ => return false,
            }
        }
        [licence, "WITH", _, tail @ ..] => (allowed.contains(*licence), tail),
        [licence, tail @ ..] => (allowed.contains(*licence), tail),
        [] => return false,
    };
    *rest = tail;
    holds
}

fn names(list: &BTreeSet<String>) -> String {
    list.iter().map(String::as_str).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expressions_hold_where_a_choice_does() {
        let allowed = ["MIT", "Apache-2.0", "Unicode-3.0"].map(str::to_owned).into();
        for (expression, holds) in [
            ("MIT", true),
            ("GPL-3.0", false),
            ("MIT/Apache-2.0", true),
            ("MIT OR GPL-3.0", true),
            ("MIT AND GPL-3.0", false),
            ("(MIT OR Apache-2.0) AND Unicode-3.0", true),
            ("(GPL-2.0 OR LGPL-2.1) AND MIT", false),
            ("GPL-2.0 OR MIT AND Unicode-3.0", true),
            ("Apache-2.0 WITH LLVM-exception OR GPL-2.0", true),
            ("(MIT", false),
            ("MIT Apache-2.0", false),
        ] {
            assert_eq!(allows(expression, &allowed), holds, "{expression}");
        }
    }
}
