use serde::Deserialize;

use super::kind::{Kind, Needs};
use crate::fact::{self, Measured};

/// A number that follows from the definitions of a paper. It needs no experiment.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Fact {
    /// Its name in the module [`fact`](crate::fact).
    pub name: String,
    /// The argument, if the fact is a function.
    #[serde(default)]
    pub at: Option<f64>,
}

impl Kind for Fact {
    fn of_paper(&self, _measured: &[Measured]) -> Option<f64> {
        fact::compute(&self.name, self.at)
    }

    fn label(&self) -> String {
        let words = fact::words(&self.name).unwrap_or(&self.name);
        self.at.map_or_else(|| words.to_owned(), |at| words.replace("{at}", &at.to_string()))
    }

    fn needs(&self) -> Needs {
        Needs { no_run: true, ..Needs::default() }
    }
}
