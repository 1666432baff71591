//! Any text is parsed as a list of links, or rejected with a message about the file; an accepted network
//! runs.

use giveway_scenario::Draft;

use crate::{moment, scratch};

/// Input: the CSV file. Its first and its last name are the ends of the traffic, so that many inputs make a
/// whole network.
pub fn run(input: &[u8]) {
    scratch::file("links.csv", input);
    let text = String::from_utf8_lossy(input);
    let rows = text.lines().filter(|line| !line.starts_with('#')).skip(1);
    let mut names = rows.flat_map(|row| row.split(',').take(2)).map(str::trim).filter(|name| is_name(name));
    let (from, to) = (names.next().unwrap_or("a"), names.last().unwrap_or("b"));
    let scenario = format!(
        "duration = \"100 ms\"\n[[topology]]\nkind = \"edges\"\nfile = \"links.csv\"\n\
         [[traffic]]\nkind = \"bulk\"\nfrom = \"{from}\"\nto = \"{to}\"\n"
    );
    let draft = Draft::parse(&scenario, scratch::folder());
    match draft.clone().finish() {
        Ok(scenario) => moment::run(&draft, &scenario),
        Err(error) => assert!(!error.diagnostics[0].message.is_empty(), "{:?}", error.diagnostics),
    }
}

/// True for a text that can be in quotation marks.
fn is_name(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric())
}
