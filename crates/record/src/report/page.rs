//! The page of one or several run folders.

use giveway_document::columns::number;
use giveway_document::shell::{self, Plots, Swatch, paragraphs};
use giveway_measure::findings;
use serde::Serialize;

use super::charts::{Chart, Disciplines, Drawn, glance, of_folder, ports_left_out};
use super::error::ReportError;
use super::read::Folder;
use super::table;

/// The template of the page.
const REPORT: (&str, &str) = ("report.html", include_str!("../../assets/report.html"));

/// The values of the template.
#[derive(Serialize)]
struct Page {
    title: String,
    subtitle: String,
    findings: Vec<Findings>,
    disciplines: Vec<Swatch>,
    key_figures: Option<ChartView>,
    tables: Vec<table::View>,
    sections: Vec<Section>,
    several: bool,
}

#[derive(Serialize)]
struct Findings {
    folder: String,
    sentences: Vec<String>,
}

/// A chart with its caption, as the template uses it.
#[derive(Serialize)]
struct ChartView {
    id: String,
    title: String,
    caption: String,
    /// The reason for an empty chart; empty if there is a chart.
    words: String,
    key: bool,
}

/// The part of the page about one folder.
#[derive(Serialize)]
struct Section {
    name: String,
    title: String,
    description: Vec<String>,
    /// Sentences about missing parts.
    warnings: Vec<String>,
    charts: Vec<ChartView>,
    scenario: String,
    provenance: Vec<(&'static str, String)>,
}

/// The page of these folders.
pub(super) fn html(folders: &[Folder]) -> Result<String, ReportError> {
    let disciplines = Disciplines::of(folders);
    let mut plots = Plots::default();
    // A figure of all pairs of a contest together says nothing about any.
    let all_contests = folders.iter().all(|folder| folder.manifest.measured.contest.is_some());
    let key_figures = match all_contests {
        true => None,
        false => Some(view(&mut plots, "figures".to_owned(), glance(folders, &disciplines))),
    };
    let mut sections = Vec::new();
    for (number, folder) in folders.iter().enumerate() {
        let charts = of_folder(folder, &disciplines)?.into_iter().enumerate();
        let charts = charts
            .map(|(at, chart)| view(&mut plots, format!("run{}-chart{}", number + 1, at + 1), chart))
            .collect();
        sections.push(section(folder, charts));
    }
    let (title, subtitle) = headline(folders);
    let page = Page {
        title,
        subtitle,
        findings: folders.iter().map(found).collect(),
        disciplines: disciplines.iter().map(|(spec, name, look)| Swatch::new(name, spec, look)).collect(),
        key_figures,
        tables: table::views(folders, &disciplines),
        sections,
        several: folders.len() > 1,
    };
    Ok(shell::render(REPORT, page, plots))
}

/// A chart as the template uses it. Its specification and data go to `plots`.
fn view(plots: &mut Plots, id: String, chart: Chart) -> ChartView {
    let Chart { title, caption, key, drawn } = chart;
    let words = match drawn {
        Drawn::Words(words) => words,
        Drawn::Plot { spec, data } => {
            plots.add(&id, &title, spec, data);
            String::new()
        }
    };
    ChartView { id, title, caption, words, key }
}

/// The names of ports, or their number if there are many.
fn places(ports: &[String]) -> String {
    const MOST: usize = 6;
    if ports.len() > MOST { counted(ports.len(), "port") } else { ports.join(", ") }
}

fn headline(folders: &[Folder]) -> (String, String) {
    match folders {
        [folder] => {
            let manifest = &folder.manifest;
            let title = if manifest.title.is_empty() { &manifest.scenario } else { &manifest.title };
            let measured = &manifest.measured;
            let subtitle = format!(
                "{}: {}, {}, measured from {} s to {} s at {}",
                manifest.scenario,
                counted(folder.table.rows.len(), "discipline"),
                counted(manifest.seeds.len(), "seed"),
                number(measured.from_s),
                number(measured.until_s),
                places(&measured.ports),
            );
            (title.clone(), subtitle)
        }
        several => {
            let names: Vec<&str> = several.iter().map(|folder| folder.name.as_str()).collect();
            (format!("{} runs side by side", several.len()), names.join(", "))
        }
    }
}

fn counted(count: usize, what: &str) -> String {
    if count == 1 { format!("1 {what}") } else { format!("{count} {what}s") }
}

fn found(folder: &Folder) -> Findings {
    let derived = || match &folder.manifest.measured.contest {
        Some(contest) => contest.findings(&folder.table),
        None => findings(&folder.table),
    };
    let sentences = folder.manifest.findings.clone().unwrap_or_else(derived);
    Findings { folder: folder.name.clone(), sentences }
}

fn section(folder: &Folder, charts: Vec<ChartView>) -> Section {
    let manifest = &folder.manifest;
    let (finished, planned) = folder.runs();
    let mut warnings = Vec::new();
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
        name: folder.name.clone(),
        title: if manifest.title.is_empty() { manifest.scenario.clone() } else { manifest.title.clone() },
        description: paragraphs(&manifest.description),
        warnings,
        charts,
        scenario: folder.scenario.clone(),
        provenance,
    }
}
