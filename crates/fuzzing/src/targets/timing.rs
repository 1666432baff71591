//! Any text is parsed as a measured timing of machines, or rejected with a message about the file; a network
//! of machines with an accepted timing runs.

use giveway_scenario::Draft;

use crate::{moment, scratch};

/// Input: the file.
pub fn run(input: &[u8]) {
    scratch::file("timing.csv", input);
    let scenario = "duration = \"100 ms\"\ntiming = \"timing.csv\"\ndisciplines = [\"fifo\"]\n\
         [[link]]\nfrom = \"a\"\nto = \"b\"\nrate = \"10mbit\"\ndelay = \"1 ms\"\nqdisc = \"compare\"\n\
         [[traffic]]\nkind = \"bulk\"\nfrom = \"a\"\nto = \"b\"\n\
         [[traffic]]\nkind = \"cbr\"\nfrom = \"a\"\nto = \"b\"\nrate = \"1mbit\"\n";
    let draft = Draft::parse(scenario, scratch::folder());
    match draft.clone().finish() {
        Ok(scenario) => moment::run(&draft, &scenario),
        Err(error) => assert!(!error.diagnostics[0].message.is_empty(), "{:?}", error.diagnostics),
    }
}
