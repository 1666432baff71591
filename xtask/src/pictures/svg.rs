//! A figure of a report as SVG, as the report itself draws it.
//!
//! The browser opens a copy of the report with two more scripts. The first gives texts a width that does not
//! depend on fonts, so that the drawing is the same on every machine. The second writes the figure.

use std::fs;
use std::path::Path;

use crate::browser::Browser;
use crate::html;

const MEASURE: &str = include_str!("measure.js");
const TAKE: &str = include_str!("take.js");
/// A larger drawing does not belong into the book.
const LARGEST: usize = 190_000;

/// The figure whose title starts with these words.
///
/// # Errors
/// If there is no such figure, it is too large, or the browser fails.
pub fn take(browser: &Browser, report: &Path, figure: &str) -> Result<String, String> {
    let page = fs::read_to_string(report).map_err(|error| format!("{}: {error}", report.display()))?;
    let copy = report.with_extension("taken.html");
    fs::write(&copy, scripted(&page, figure)).map_err(|error| format!("{}: {error}", copy.display()))?;
    let taken = text(&browser.page(&copy, "")?)?;
    if taken.len() > LARGEST {
        return Err(format!("{figure:?} has {} bytes: choose one with fewer points", taken.len()));
    }
    Ok(taken)
}

/// The page with the scripts.
fn scripted(page: &str, figure: &str) -> String {
    let wanted = serde_json::Value::from(figure).to_string().replace('<', "\\u003c");
    let page = page.replacen("<head>", &format!("<head>\n<script>{MEASURE}</script>"), 1);
    page.replacen("</body>", &format!("<script>const wanted = {wanted};\n{TAKE}</script>\n</body>"), 1)
}

/// The text that the script wrote.
fn text(page: &str) -> Result<String, String> {
    let written = page.split_once("<pre id=\"taken\">").and_then(|(_, rest)| rest.split_once("</pre>"));
    let text = written.map(|(text, _)| html::plain(text)).ok_or("the charts were not drawn")?;
    match text.strip_prefix("figures: ") {
        Some(titles) => Err(format!("the report has these figures: {titles}")),
        None => Ok(text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_of_the_script_is_plain() {
        let page = "<html><head></head><body><pre id=\"taken\">&lt;svg&gt;a &amp;amp; b&lt;/svg&gt;\n</pre></body></html>";
        assert_eq!(text(page).unwrap(), "<svg>a &amp; b</svg>\n");
        assert!(text("<pre id=\"taken\">figures: One; Two</pre>").unwrap_err().contains("One; Two"));
        assert!(text("<pre>Nothing</pre>").is_err());
    }

    #[test]
    fn a_title_cannot_end_its_script() {
        let page = scripted("<html><head></head><body></body></html>", "</script>\"");
        assert!(page.contains("const wanted = \"\\u003c/script>\\\"\";") && page.contains(MEASURE));
    }
}
