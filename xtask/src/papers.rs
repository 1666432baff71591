//! Reproduces the papers: a quick run for the gate, and a full run for the book.

use serde_json::Value;

use crate::program::{Profile, build, program};
use crate::repository::{Done, Repository};

/// Checks that every paper runs, and that each of its claims gets a verdict. The runs are too short for the
/// verdicts themselves to mean anything.
pub fn quick(repository: &Repository) -> Done {
    for id in ids(repository, Profile::Debug)? {
        let out = repository.root.join("target/xtask").join(format!("{id}-quick"));
        let report = reproduce(
            repository,
            Profile::Debug,
            &[&id, "--quick", "--quiet", "--json", "--out", &out.to_string_lossy()],
        )?;
        let report: Value =
            serde_json::from_str(&report).map_err(|error| format!("{id}: not JSON: {error}"))?;
        let claims = report["claims"].as_array().ok_or_else(|| format!("{id}: the report has no claims"))?;
        let count = |verdict: &str| claims.iter().filter(|claim| claim["verdict"] == verdict).count();
        let (reproduce, differ, open) = (count("reproduces"), count("differs"), count("not testable"));
        // A first look leaves out the experiments that take long.
        let not_run = count("not run");
        println!(
            "{id}: {} claims: {reproduce} reproduce, {differ} differ, {open} not testable, {not_run} not run",
            claims.len()
        );
        if not_run == claims.len() || reproduce + differ + open + not_run != claims.len() {
            return Err(format!("{id}: a claim has no verdict"));
        }
        if report["runs"]["finished"] != report["runs"]["planned"] {
            return Err(format!("{id}: runs are missing"));
        }
    }
    Ok(())
}

/// Reproduces every paper in full, and writes its page and figures in the book.
pub fn full(repository: &Repository) -> Done {
    build(repository, Profile::Release)?;
    for id in ids(repository, Profile::Release)? {
        let page = repository.root.join("docs/book/papers").join(format!("{id}.md"));
        let text = reproduce(repository, Profile::Release, &[&id, "--markdown"])?;
        std::fs::write(&page, &text).map_err(|error| format!("{}: {error}", page.display()))?;
        println!("{}", repository.name_of(&page));
        figures(repository, &id, &text)?;
    }
    Ok(())
}

/// Writes the figures that a page names, from the report of the same run.
fn figures(repository: &Repository, id: &str, page: &str) -> Done {
    let named = page.lines().filter_map(|line| line.strip_prefix("![")?.strip_suffix(".svg)"));
    let named = named.filter_map(|line| line.split_once(&format!("]({id}-")));
    let wanted: Vec<String> = named.map(|(_, figure)| format!("Figure {figure}")).collect();
    if wanted.is_empty() {
        return Ok(());
    }
    let report = repository.root.join("runs").join(id).join("report.html");
    let stem = repository.root.join("docs/book/papers").join(id);
    let script = repository.root.join("xtask/figures.py");
    let mut arguments: Vec<&str> =
        [&script, &report, &stem].map(|path| path.to_str().unwrap_or_default()).to_vec();
    arguments.extend(wanted.iter().map(String::as_str));
    print!("{}", repository.output("python3", &arguments)?);
    Ok(())
}

/// Names of the papers.
fn ids(repository: &Repository, profile: Profile) -> Result<Vec<String>, String> {
    let listed = reproduce(repository, profile, &["--json"])?;
    let listed: Value = serde_json::from_str(&listed).map_err(|error| format!("not JSON: {error}"))?;
    let papers = listed["papers"].as_array().into_iter().flatten();
    let ids: Vec<String> = papers.filter_map(|paper| paper["id"].as_str()).map(str::to_owned).collect();
    if ids.is_empty() { Err("there are no papers".to_owned()) } else { Ok(ids) }
}

fn reproduce(repository: &Repository, profile: Profile, arguments: &[&str]) -> Result<String, String> {
    let program = program(repository, profile)?;
    repository.output(&program.to_string_lossy(), &[&["reproduce"], arguments].concat())
}
