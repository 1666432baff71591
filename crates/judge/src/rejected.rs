//! The reasons for which a candidate is rejected.

use serde::{Deserialize, Serialize};

/// The kind of a reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Code {
    /// The program cannot be read, or wants what is not offered.
    Module,
    /// A call used too many instructions.
    Fuel,
    /// It used too much memory.
    Memory,
    /// It stopped with an error.
    Crash,
    /// It broke the contract of a discipline.
    Contract,
    /// Equal runs differ.
    Random,
    /// It keeps packets while the link is free, or after the test.
    Keeps,
    /// It delays acknowledgements.
    Acks,
    /// It sends much less than the baseline.
    Blocks,
    /// It decides by the time of day.
    Clock,
    /// It counts packets.
    Count,
    /// It knows flows or hosts by their numbers.
    Names,
    /// It reads the seed.
    Seed,
    /// It notices a hidden change, and no part of the change alone.
    Hidden,
    /// It is better in the public cells than in the same ones with other rates, delays, lengths and seeds.
    Memorises,
}

/// A reason for which a candidate is rejected.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Rejected {
    /// The kind of the reason.
    pub code: Code,
    /// The reason in a sentence.
    pub sentence: String,
    /// The cell in which it showed; `None` if it takes several cells.
    pub cell: Option<String>,
    /// The seed of that run.
    pub seed: Option<u64>,
}

impl Rejected {
    /// A reason, not yet with a cell.
    pub fn new(code: Code, sentence: String) -> Rejected {
        Rejected { code, sentence, cell: None, seed: None }
    }

    /// The reason without anything of the run: a fixed sentence for each kind. It is for runs that a secret has
    /// drawn.
    pub fn veiled(code: Code) -> Rejected {
        let what = match code {
            Code::Module => "its program cannot be set up",
            Code::Fuel => "a call used too many instructions",
            Code::Memory => "it used too much memory",
            Code::Crash => "it stopped with an error",
            Code::Contract => "it broke the contract of a discipline",
            Code::Random => "equal runs differ",
            Code::Keeps => "it keeps packets",
            Code::Acks => "it delays acknowledgements",
            Code::Blocks => "it blocks traffic",
            Code::Clock => "it decides by the time of day",
            Code::Count => "it counts",
            Code::Names => "it knows flows or hosts by their numbers",
            Code::Seed => "it reads the seed",
            Code::Hidden => "it notices a hidden change",
            Code::Memorises => "it knows the public cells",
        };
        Rejected::new(code, format!("{what}, in a run that the secret has drawn"))
    }

    /// This reason, in a run.
    pub fn at(self, cell: &str, seed: u64) -> Rejected {
        Rejected { cell: Some(cell.to_owned()), seed: Some(seed), ..self }
    }
}
