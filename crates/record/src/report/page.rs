//! Puts the page together: a template, and what must not break it.

use minijinja::Environment;
use minijinja::syntax::SyntaxConfig;
use minijinja::value::Serde;
use serde::Serialize;
use serde_json::{Map, Value, json};

use super::charts::{Chart, Disciplines, Drawn, glance, of_folder, ports_left_out};
use super::read::Folder;
use super::series::number;
use super::{ReportError, table};
use crate::findings::findings;

const TEMPLATE: &str = include_str!("../../assets/report.html");
const STYLE: &str = include_str!("../../assets/report.css");
const WATCH: &str = include_str!("../../assets/watch.js");
const DRAW: &str = include_str!("../../assets/draw.js");
const VEGA: &str = include_str!("../../assets/vega/vega.min.js");
const VEGA_LITE: &str = include_str!("../../assets/vega/vega-lite.min.js");
const INTERPRETER: &str = include_str!("../../assets/vega/vega-interpreter.js");
/// What their licences ask to go with them.
const LICENCES: [&str; 4] = [
    include_str!("../../assets/vega/LICENSE"),
    include_str!("../../assets/vega/LICENSE-vega-lite"),
    include_str!("../../assets/vega/LICENSE-d3"),
    include_str!("../../assets/vega/LICENSE-others"),
];

/// What the template is given.
#[derive(Serialize)]
struct Page {
    title: String,
    subtitle: String,
    style: &'static str,
    findings: Vec<Findings>,
    disciplines: Vec<DisciplineView>,
    key_figures: ChartView,
    tables: Vec<table::View>,
    sections: Vec<Section>,
    several: bool,
    watch: &'static str,
    scripts: Vec<String>,
    licences: String,
    /// Specifications and data of all charts, as JSON that may stand in a script element.
    charts: String,
    version: &'static str,
}

#[derive(Serialize)]
struct Findings {
    folder: String,
    sentences: Vec<String>,
}

#[derive(Serialize)]
struct DisciplineView {
    name: String,
    spec: String,
    colour: String,
    dash: String,
}

/// A chart in its place.
#[derive(Serialize)]
struct ChartView {
    id: String,
    title: String,
    caption: String,
    /// Why there is none; empty when there is one.
    words: String,
    key: bool,
}

/// A folder with all that is its own.
#[derive(Serialize)]
struct Section {
    name: String,
    title: String,
    description: Vec<String>,
    /// What is missing of it.
    warnings: Vec<String>,
    charts: Vec<ChartView>,
    scenario: String,
    provenance: Vec<(&'static str, String)>,
}

/// The page of these folders.
pub(super) fn html(folders: &[Folder]) -> Result<String, ReportError> {
    let disciplines = Disciplines::of(folders);
    let mut plots = Plots::default();
    let key_figures = plots.view("figures".to_owned(), glance(folders, &disciplines));
    let mut sections = Vec::new();
    for (number, folder) in folders.iter().enumerate() {
        let charts = of_folder(folder, &disciplines)?.into_iter().enumerate();
        let charts = charts
            .map(|(at, chart)| plots.view(format!("run{}-chart{}", number + 1, at + 1), chart))
            .collect();
        sections.push(section(folder, charts));
    }
    let (title, subtitle) = headline(folders);
    let page = Page {
        title,
        subtitle,
        style: STYLE,
        findings: folders.iter().map(found).collect(),
        disciplines: disciplines
            .iter()
            .map(|(spec, name, look)| DisciplineView {
                name: name.to_owned(),
                spec: spec.to_owned(),
                colour: look.colour.clone(),
                dash: look.dash.iter().map(u32::to_string).collect::<Vec<_>>().join(" "),
            })
            .collect(),
        key_figures,
        tables: table::views(folders, &disciplines),
        sections,
        several: folders.len() > 1,
        watch: WATCH,
        scripts: vec![VEGA.to_owned(), without_map(VEGA_LITE), interpreter(), DRAW.to_owned()],
        licences: LICENCES.join("\n\n"),
        charts: for_script(&Value::Object(plots.0)),
        version: env!("CARGO_PKG_VERSION"),
    };
    let mut templates = Environment::new();
    let tight = SyntaxConfig::builder().trim_blocks(true).lstrip_blocks(true).build();
    templates.set_syntax(tight.expect("the usual syntax"));
    // The name decides that everything is escaped which does not say otherwise.
    templates.add_template("report.html", TEMPLATE).expect("the template is tested");
    let template = templates.get_template("report.html").expect("it was just added");
    Ok(template.render(Serde(page)).expect("the template is tested"))
}

/// Charts that are drawn by a script, under the name of their place.
#[derive(Default)]
struct Plots(Map<String, Value>);

impl Plots {
    fn view(&mut self, id: String, chart: Chart) -> ChartView {
        let Chart { title, caption, key, drawn } = chart;
        let words = match drawn {
            Drawn::Words(words) => words,
            Drawn::Plot { mut spec, data } => {
                spec["description"] = json!(title);
                self.0.insert(id.clone(), json!({ "spec": spec, "data": data }));
                String::new()
            }
        };
        ChartView { id, title, caption, words, key }
    }
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
                measured.ports.join(", "),
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
    let said = folder.manifest.findings.clone().unwrap_or_else(|| findings(&folder.table));
    Findings { folder: folder.name.clone(), sentences: said }
}

/// A text in paragraphs: a line break of the scenario file means nothing, an empty line does.
fn paragraphs(text: &str) -> Vec<String> {
    let flowing = |paragraph: &str| paragraph.split_whitespace().collect::<Vec<_>>().join(" ");
    text.trim().split("\n\n").map(flowing).filter(|paragraph| !paragraph.is_empty()).collect()
}

fn section(folder: &Folder, charts: Vec<ChartView>) -> Section {
    let manifest = &folder.manifest;
    let (finished, planned) = folder.runs();
    let mut warnings = Vec::new();
    if !manifest.complete {
        warnings.push(format!(
            "This is unfinished: {finished} of {planned} runs are there. The same command goes on where it stopped."
        ));
    }
    let more = ports_left_out(folder);
    if !more.is_empty() {
        warnings.push(format!("Also measured, and in the table, but not drawn: {}.", more.join(", ")));
    }
    let seeds: Vec<String> = manifest.seeds.iter().map(u64::to_string).collect();
    let mut provenance = vec![
        ("Made by", manifest.created_by.clone()),
        ("Giveway", manifest.giveway.clone()),
        ("Machine", manifest.machine.clone()),
        ("Seeds", seeds.join(", ")),
        ("Runs", format!("{finished} of {planned}")),
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

/// JSON that cannot end the script element that it stands in: no `<`.
fn for_script(value: &Value) -> String {
    value.to_string().replace('<', "\\u003c")
}

/// Without the last line, which names a file that would be asked for when somebody looks at the page's sources.
fn without_map(script: &str) -> String {
    let lines = script.lines().filter(|line| !line.starts_with("//# sourceMappingURL="));
    lines.collect::<Vec<_>>().join("\n")
}

/// The interpreter is a module; here it becomes a function of Vega. It evaluates expressions without making code of them,
/// so that the page needs no `unsafe-eval`.
fn interpreter() -> String {
    let body = without_map(INTERPRETER)
        .replace("import {", "const {")
        .replace("} from 'vega-util';", "} = vega;")
        .replace("export { expression as expressionInterpreter };", "return expression;");
    format!("const expressionInterpreter = (() => {{\n{body}\n}})();")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A script ends at the first `</script`, wherever it stands, and `<!--` starts something odd.
    #[test]
    fn nothing_inlined_ends_its_element() {
        let interpreter = interpreter();
        let scripts = [WATCH, DRAW, VEGA, VEGA_LITE, &interpreter];
        for script in scripts {
            let lower = script.to_ascii_lowercase();
            assert!(!lower.contains("</script") && !lower.contains("<!--") && !lower.contains("<script"));
        }
        assert!(!STYLE.contains("</style"));
        assert!(LICENCES.iter().all(|licence| !licence.contains("--")), "they stand in a comment");
        let hostile = json!({ "title": "</script><script>alert(1)</script><!--" });
        let text = for_script(&hostile);
        assert!(!text.contains('<'));
        assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), hostile);
    }

    /// The module has the shape that the rewriting relies on.
    #[test]
    fn the_interpreter_becomes_a_function() {
        let script = interpreter();
        assert!(!script.contains("import ") && !script.contains("\nexport ") && script.contains("} = vega;"));
        assert!(script.contains("return expression;"));
        assert!(!script.contains("sourceMappingURL") && !without_map(VEGA_LITE).contains("sourceMappingURL"));
    }
}
