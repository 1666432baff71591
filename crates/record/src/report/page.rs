//! The page of one or several run folders.

use giveway_document::chart::{Chart, ChartView, Entry, Key};
use giveway_document::columns::number;
use giveway_document::shell::{self, Plots, paragraphs};
use giveway_measure::findings;
use serde::Serialize;

use super::answer::{Answer, answers};
use super::charts::{Disciplines, by_load, glance, of_folder, ports_left_out};
use super::error::ReportError;
use super::read::{Folder, Measured};
use super::table;
use crate::folder::{RECORDED_BY, Recommendation};

/// The template of the page.
const REPORT: (&str, &str) = ("report.html", include_str!("../../assets/report.html"));

/// The values of the template.
#[derive(Serialize)]
struct Page {
    title: String,
    subtitle: String,
    /// The key figures, unless there is a recommendation with its own table.
    answers: Vec<Answer>,
    findings: Vec<Findings>,
    contents: Vec<Entry>,
    /// The disciplines, with their specifications, if there are several.
    disciplines: Vec<Key>,
    key_figures: Vec<ChartView>,
    tables: Vec<table::View>,
    sections: Vec<Section>,
    several: bool,
    /// The noun of what is compared.
    compared: &'static str,
    /// True if transfers were measured.
    flows: bool,
}

#[derive(Serialize)]
struct Findings {
    folder: String,
    sentences: Vec<String>,
    recommendation: Option<Recommendation>,
}

/// The part of the page about one folder.
#[derive(Serialize)]
struct Section {
    /// The anchor of the part.
    id: String,
    name: String,
    title: String,
    description: Vec<String>,
    /// Sentences about missing parts.
    warnings: Vec<String>,
    charts: Vec<ChartView>,
    scenario: String,
    provenance: Vec<(&'static str, String)>,
}

/// The page of these folders. `difference` says what changed from the first one to the second.
pub(super) fn html(folders: &[Folder], difference: Vec<String>) -> Result<String, ReportError> {
    let disciplines = Disciplines::of(folders);
    let several = folders.len() > 1;
    let mut plots = Plots::default();
    let mut contents = Vec::new();
    let recommends = folders.iter().any(|folder| folder.manifest.recommendation.is_some());
    if recommends {
        contents.push(part("recommendation", "Recommendation"));
    }
    contents.push(part("findings", "Findings"));
    // A figure of all pairs of a contest together says nothing about any.
    let all_contests = folders.iter().all(|folder| folder.manifest.measured.contest.is_some());
    let key_figures = if all_contests { Vec::new() } else { glance(folders, &disciplines) };
    let numbered = key_figures.into_iter().chain(by_load(folders, &disciplines)).enumerate();
    let mut place = |id: String, chart: Chart, contents: &mut Vec<Entry>| {
        let chart = Chart { id, ..chart };
        contents.push(chart.entry());
        chart.view(&mut plots)
    };
    let key_figures =
        numbered.map(|(at, chart)| place(format!("figures{}", at + 1), chart, &mut contents)).collect();
    let mut sections = Vec::new();
    for (number, folder) in folders.iter().enumerate() {
        let run = format!("run{}", number + 1);
        let (charts, missing) = of_folder(folder, &disciplines)?;
        if several && !charts.is_empty() {
            contents.push(part(&run, &folder.name));
        }
        let charts = charts.into_iter().enumerate();
        let charts: Vec<ChartView> =
            charts.map(|(at, chart)| place(format!("{run}-chart{}", at + 1), chart, &mut contents)).collect();
        sections.push(Section { id: run, ..section(folder, charts, missing) });
    }
    let tables = table::views(folders, &disciplines);
    if !tables.is_empty() {
        contents.push(part("metrics", "All metrics"));
    }
    for Section { id, name, .. } in &sections {
        let of = if several { format!(" of {name}") } else { String::new() };
        contents.push(part(&format!("{id}-scenario"), &format!("Scenario{of}")));
        contents.push(part(&format!("{id}-provenance"), &format!("Provenance{of}")));
    }
    let (title, subtitle) = headline(folders);
    let changed = match folders {
        [before, after] if !difference.is_empty() => Some(Findings {
            folder: format!("{} compared with {}", after.name, before.name),
            sentences: difference,
            recommendation: None,
        }),
        _ => None,
    };
    // The table of a recommendation is the answer.
    let answers = if recommends { Vec::new() } else { answers(folders, &disciplines) };
    let switch = folders.iter().all(|folder| folder.manifest.measured.slot_s.is_some());
    let page = Page {
        title,
        subtitle,
        answers,
        findings: changed.into_iter().chain(folders.iter().map(found)).collect(),
        contents,
        disciplines: disciplines.page_key().into_iter().collect(),
        key_figures,
        tables,
        sections,
        several,
        compared: if switch { "arbiter" } else { "discipline" },
        flows: folders
            .iter()
            .any(|folder| folder.table.rows.iter().any(|row| row.mean("fct_p50_s").is_some())),
    };
    Ok(shell::render(REPORT, page, plots))
}

/// A heading in the contents.
fn part(id: &str, title: &str) -> Entry {
    Entry { id: id.to_owned(), title: title.to_owned(), level: 2 }
}

/// The measured ports: their names, or their number if there are many.
fn places(measured: &Measured) -> String {
    const MAX: usize = 6;
    let ports = &measured.ports;
    let named = || ports.iter().map(|port| measured.title(port)).collect::<Vec<_>>().join(", ");
    match ports.len() {
        count if count > MAX => format!(" at {}", counted(count, "port")),
        _ if measured.port_titles.as_ref().is_some_and(|titles| !titles.is_empty()) => {
            format!(", {}", named())
        }
        _ => format!(" at {}", named()),
    }
}

fn headline(folders: &[Folder]) -> (String, String) {
    match folders {
        [folder] => {
            let manifest = &folder.manifest;
            let title = if manifest.title.is_empty() { &manifest.scenario } else { &manifest.title };
            let measured = &manifest.measured;
            let seeds = counted(manifest.seeds.len(), "seed");
            let rows = folder.table.rows.len();
            let what = match measured.slot_s {
                Some(slot_s) => of_switch(folder, slot_s),
                None => format!(
                    "{}, {seeds}, measured from {} s to {} s{}",
                    counted(rows, "discipline"),
                    number(measured.from_s),
                    number(measured.until_s),
                    places(measured),
                ),
            };
            (title.clone(), format!("{}: {what}", manifest.scenario))
        }
        several => {
            let names: Vec<&str> = several.iter().map(|folder| folder.name.as_str()).collect();
            (format!("{} runs side by side", several.len()), names.join(", "))
        }
    }
}

/// The arbiters, the seeds, the load and the measured slots of a switch.
fn of_switch(folder: &Folder, slot_s: f64) -> String {
    let Measured { from_s, until_s, .. } = &folder.manifest.measured;
    let slots = [from_s, until_s].map(|time_s| (time_s / slot_s).round());
    let load = folder.table.rows.iter().find_map(|row| row.mean("offered"));
    let load = load.map_or_else(String::new, |load| format!(", {load:.3} cells per slot and input offered"));
    format!(
        "{}, {}{load}, measured from slot {} to slot {}",
        counted(folder.table.rows.len(), "arbiter"),
        counted(folder.manifest.seeds.len(), "seed"),
        slots[0],
        slots[1],
    )
}

fn counted(count: usize, what: &str) -> String {
    if count == 1 { format!("1 {what}") } else { format!("{count} {what}s") }
}

fn found(folder: &Folder) -> Findings {
    let divided = folder.manifest.created_by == RECORDED_BY && folder.table.rows.len() > 1;
    let derived = || match &folder.manifest.measured.contest {
        Some(contest) => contest.findings(&folder.table),
        // The stretches of a recording have their own traffic, so no sentence compares them.
        None if divided => paragraphs(&folder.manifest.description),
        None => findings(&folder.table),
    };
    let sentences = folder.manifest.findings.clone().unwrap_or_else(derived);
    let recommendation = folder.manifest.recommendation.clone();
    Findings { folder: folder.name.clone(), sentences, recommendation }
}

/// The part about a folder. `missing` has sentences about charts that its run is too short for.
fn section(folder: &Folder, charts: Vec<ChartView>, missing: Vec<String>) -> Section {
    let manifest = &folder.manifest;
    let (finished, planned) = folder.runs();
    let mut warnings = missing;
    if !manifest.complete {
        warnings.push(format!(
            "This run is unfinished: {finished} of {planned} trials are finished. The same command resumes it."
        ));
    }
    let more = ports_left_out(folder);
    if !more.is_empty() {
        warnings.push(format!("Not drawn, but in the table: {}.", more.join(", ")));
    }
    let seeds: Vec<String> = manifest.seeds.iter().map(u64::to_string).collect();
    let giveway = match &manifest.commit {
        Some(commit) => format!("{}, commit {commit}", manifest.giveway),
        None => manifest.giveway.clone(),
    };
    let mut provenance = vec![
        ("Made by", manifest.created_by.clone()),
        ("Giveway", giveway),
        ("Machine", manifest.machine.clone()),
        ("Seeds", seeds.join(", ")),
        ("Trials", format!("{finished} of {planned}")),
    ];
    provenance.extend(manifest.created.clone().map(|created| ("Made", created)));
    provenance.extend(manifest.fingerprint.clone().map(|print| ("Fingerprint", print)));
    Section {
        id: String::new(),
        name: folder.name.clone(),
        title: if manifest.title.is_empty() { manifest.scenario.clone() } else { manifest.title.clone() },
        description: if manifest.created_by == RECORDED_BY {
            // It is the finding.
            Vec::new()
        } else {
            paragraphs(&manifest.description)
        },
        warnings,
        charts,
        scenario: folder.scenario.clone(),
        provenance,
    }
}
