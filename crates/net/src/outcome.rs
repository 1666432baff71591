//! The end of a command.

/// The outcome of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It is done.
    Done,
    /// It failed.
    Failed,
    /// The command line is wrong, or a prerequisite is missing.
    Wrong,
}

impl Outcome {
    /// The exit code.
    pub fn code(self) -> u8 {
        match self {
            Outcome::Done => 0,
            Outcome::Failed => 1,
            Outcome::Wrong => 2,
        }
    }
}
