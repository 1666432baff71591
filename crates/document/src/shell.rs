//! The frame of every page: head, style, scripts, licences. The template of a page extends
//! `assets/shell.html`.

use minijinja::Environment;
use minijinja::syntax::SyntaxConfig;
use minijinja::value::Serde;
use serde::Serialize;
use serde_json::{Map, Value, json};

/// The templates that every page uses, by name. Minijinja escapes everything in a template whose name ends in
/// `.html`.
static TEMPLATES: [(&str, &str); 2] = [
    ("shell.html", include_str!("../assets/shell.html")),
    ("figure.html", include_str!("../assets/figure.html")),
];

static STYLE: &str = include_str!("../assets/report.css");
static WATCH: &str = include_str!("../assets/watch.js");
static COPY: &str = include_str!("../assets/copy.js");
static DRAW: &str = include_str!("../assets/draw.js");
static VEGA: &str = include_str!("../assets/vega/vega.min.js");
static VEGA_LITE: &str = include_str!("../assets/vega/vega-lite.min.js");
static INTERPRETER: &str = include_str!("../assets/vega/vega-interpreter.js");
/// The licences of these libraries, which must accompany them.
static LICENCES: [&str; 4] = [
    include_str!("../assets/vega/LICENSE"),
    include_str!("../assets/vega/LICENSE-vega-lite"),
    include_str!("../assets/vega/LICENSE-d3"),
    include_str!("../assets/vega/LICENSE-others"),
];

/// The values of a page, for its template and for the shell.
#[derive(Serialize)]
struct Page<T> {
    style: &'static str,
    watch: &'static str,
    scripts: Vec<String>,
    /// The licences of the libraries that draw charts; empty without charts.
    licences: String,
    /// Specifications and data of all charts, as JSON that is safe in a script element.
    charts: String,
    version: &'static str,
    #[serde(flatten)]
    own: T,
}

/// A page as HTML. `template` is the name and the text of a template that extends `shell.html`; the name ends
/// in `.html`, so that values are escaped. `own` contains a `title` and the values that the template uses.
///
/// # Panics
/// If the template contains an error, or uses a value that `own` does not have.
pub fn render(template: (&str, &str), own: impl Serialize, plots: Plots) -> String {
    let draws = !plots.charts.is_empty();
    let libraries = || vec![VEGA.to_owned(), without_map(VEGA_LITE), interpreter()];
    let mut scripts = if draws { libraries() } else { Vec::new() };
    scripts.extend([DRAW, COPY].map(str::to_owned));
    let page = Page {
        style: STYLE,
        watch: WATCH,
        scripts,
        licences: if draws { LICENCES.join("\n\n") } else { String::new() },
        charts: for_script(&json!({ "charts": plots.charts, "data": plots.data })),
        version: env!("CARGO_PKG_VERSION"),
        own,
    };
    let mut templates = Environment::new();
    let tight = SyntaxConfig::builder().trim_blocks(true).lstrip_blocks(true).build();
    templates.set_syntax(tight.expect("the syntax is valid"));
    for (name, text) in TEMPLATES.into_iter().chain([template]) {
        templates.add_template(name, text).expect("the templates are tested");
    }
    let template = templates.get_template(template.0).expect("the template was just added");
    template.render(Serde(page)).expect("the templates are tested")
}

/// The plots of a page, which a script draws, and their data.
#[derive(Default)]
pub struct Plots {
    /// By the name of its place: the specification, and the name of its tables.
    charts: Map<String, Value>,
    /// By name.
    data: Map<String, Value>,
}

impl Plots {
    /// Adds a plot at a place, with a description and the name of its tables.
    pub(crate) fn add(&mut self, place: &str, tables: &str, label: &str, mut spec: Value) {
        spec["description"] = json!(label);
        self.charts.insert(place.to_owned(), json!({ "spec": spec, "data": tables }));
    }

    /// Adds tables, as columns.
    pub(crate) fn tables(&mut self, name: &str, tables: Map<String, Value>) {
        if !tables.is_empty() {
            self.data.insert(name.to_owned(), Value::Object(tables));
        }
    }
}

/// Splits a text into paragraphs at empty lines. Other line breaks have no meaning.
pub fn paragraphs(text: &str) -> Vec<String> {
    let flowing = |paragraph: &str| paragraph.split_whitespace().collect::<Vec<_>>().join(" ");
    text.trim().split("\n\n").map(flowing).filter(|paragraph| !paragraph.is_empty()).collect()
}

/// JSON without `<`, so that it cannot end the script element around it.
fn for_script(value: &Value) -> String {
    value.to_string().replace('<', "\\u003c")
}

/// Removes the line with the name of the source map, which browsers would load.
fn without_map(script: &str) -> String {
    let lines = script.lines().filter(|line| !line.starts_with("//# sourceMappingURL="));
    lines.collect::<Vec<_>>().join("\n")
}

/// Converts the interpreter from a module to a function of Vega. It evaluates expressions without compiling
/// them, so that the page needs no `unsafe-eval`.
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

    /// A script element ends at the first `</script`, even inside a string, and `<!--` changes how it is
    /// parsed.
    #[test]
    fn nothing_inlined_ends_its_element() {
        let interpreter = interpreter();
        let scripts = [WATCH, COPY, DRAW, VEGA, VEGA_LITE, &interpreter];
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

    /// The module has the form that the conversion needs.
    #[test]
    fn the_interpreter_becomes_a_function() {
        let script = interpreter();
        assert!(!script.contains("import ") && !script.contains("\nexport ") && script.contains("} = vega;"));
        assert!(script.contains("return expression;"));
        assert!(!script.contains("sourceMappingURL") && !without_map(VEGA_LITE).contains("sourceMappingURL"));
    }
}
