//! Any text is parsed as a trace of a link, or rejected with a message about the file; a link with an
//! accepted trace runs.

use giveway_scenario::Draft;

use crate::{moment, scratch};

/// Input: a byte that selects the format, and the file.
pub fn run(input: &[u8]) {
    let Some((select, file)) = input.split_first() else { return };
    scratch::file("link.trace", file);
    let repeats = select % 2 == 1;
    let (rate, delay) = match select / 2 % 3 {
        0 => (format!("{{ trace = \"link.trace\", loop = {repeats} }}"), "\"1 ms\"".to_owned()),
        1 => (format!("{{ csv = \"link.trace\", loop = {repeats} }}"), "\"1 ms\"".to_owned()),
        _ => ("\"10mbit\"".to_owned(), format!("{{ csv = \"link.trace\", loop = {repeats} }}")),
    };
    let scenario = format!(
        "duration = \"100 ms\"\n[[link]]\nfrom = \"a\"\nto = \"b\"\nrate = {rate}\ndelay = {delay}\n\
         back = {{ rate = \"10mbit\", delay = \"1 ms\" }}\n\
         [[traffic]]\nkind = \"bulk\"\nfrom = \"a\"\nto = \"b\"\n"
    );
    let draft = Draft::parse(&scenario, scratch::folder());
    match draft.clone().finish() {
        Ok(scenario) => moment::run(&draft, &scenario),
        Err(error) => assert!(!error.diagnostics[0].message.is_empty(), "{:?}", error.diagnostics),
    }
}
