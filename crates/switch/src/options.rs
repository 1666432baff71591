//! Options that every arbiter has in addition to its own parameters: the mode, the speedup, and when a packet
//! may start to cross.

use giveway_qdisc::Invalid;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::speed::Speedup;

/// The unit that a match of an input with an output carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    /// One cell.
    Cell,
    /// A packet, which holds both ports until its last cell.
    Packet,
    /// A packet, as in packet mode; short packets are matched before long ones.
    Spf,
    /// A packet, as in mode spf; short packets also interrupt long ones.
    Preemptive,
}

/// Order in which preemptive mode matches short and long packets within a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Phases {
    /// Both classes at the same time; neither depends on the other.
    Parallel,
    /// Short packets first, then long packets at the ports that are left.
    Sequential,
}

/// The time at which a packet may start to cross.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Input {
    /// As soon as it can no longer run out of cells, to the exact time: at a speedup of 1, with its first
    /// cell.
    #[default]
    CutThrough,
    /// After its complete arrival. Its arrival time is the time of its last cell.
    StoreAndForward,
}

/// The place of the queues in the switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Queueing {
    /// At the inputs, one queue for each output (virtual output queues).
    Virtual,
    /// At the inputs, one queue for all outputs.
    Fifo,
    /// At the outputs.
    Output,
    /// At the inputs, one list for all outputs, and at the outputs.
    Combined,
}

/// Options that every arbiter has.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Options {
    /// Unit that a match carries: a cell or a packet. Default: the mode that the arbiter was designed for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mode: Option<Mode>,
    /// Slots of the fabric per slot of a link. Default: as in the switch, otherwise 1 (cioq: 2).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub speedup: Option<Speedup>,
    /// Start of the crossing of a packet. Default: as in the switch, otherwise cut_through.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub input: Option<Input>,
    /// Preemptive mode: match short and long packets at the same time, or short ones first.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub phases: Option<Phases>,
    /// Preemptive mode: interrupted packets keep their connection.
    pub hold: bool,
    /// Preemptive mode: slots that a short packet waits for the end of a packet at its input before it
    /// interrupts.
    pub lazy: u32,
}

impl Default for Options {
    fn default() -> Options {
        Options { mode: None, speedup: None, input: None, phases: None, hold: true, lazy: 0 }
    }
}

impl Options {
    /// The names of the fields. The registry separates options from an arbiter's own parameters by them.
    pub(crate) const NAMES: [&str; 6] = ["mode", "speedup", "input", "phases", "hold", "lazy"];

    /// Refuses options without meaning in `mode` or with this queueing.
    ///
    /// # Errors
    /// The option, and what to write instead.
    pub(crate) fn check(&self, mode: Mode, queueing: Queueing) -> Result<(), Invalid> {
        if queueing == Queueing::Combined {
            self.check_combined(mode)?;
        }
        if queueing != Queueing::Virtual && !matches!(mode, Mode::Cell | Mode::Packet) {
            let message = "only virtual output queues have classes: write \"cell\" or \"packet\"";
            return Err(Invalid::new("mode", message));
        }
        if mode == Mode::Preemptive {
            return Ok(());
        }
        let given = [("phases", self.phases.is_some()), ("hold", !self.hold), ("lazy", self.lazy > 0)];
        match given.into_iter().find(|(_, given)| *given) {
            Some((name, _)) => Err(Invalid::new(
                name,
                "nothing is interrupted in this mode: write \"mode preemptive\" or leave it out",
            )),
            None => Ok(()),
        }
    }

    /// Refuses options without meaning with queues at inputs and outputs.
    fn check_combined(&self, mode: Mode) -> Result<(), Invalid> {
        if mode != Mode::Cell {
            let message =
                "with queues at inputs and outputs only cells are matched: write \"cell\" or leave it out";
            return Err(Invalid::new("mode", message));
        }
        match self.speedup {
            Some(speedup) if speedup.as_f64() > Speedup::TWO.as_f64() => {
                let message = format!(
                    "{speedup}: at 2 every cell already leaves as with output queueing, and a faster fabric gains nothing; \
                     write 1 to 2"
                );
                Err(Invalid::new("speedup", message))
            }
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_options_are_named() {
        let all = Options {
            mode: Some(Mode::Cell),
            speedup: Some(Speedup::ONE),
            input: Some(Input::CutThrough),
            phases: Some(Phases::Parallel),
            ..Options::default()
        };
        let value = serde_json::to_value(&all).unwrap();
        let mut names: Vec<&str> = value.as_object().unwrap().keys().map(String::as_str).collect();
        let mut known = Options::NAMES.to_vec();
        names.sort_unstable();
        known.sort_unstable();
        assert_eq!(names, known);
    }
}
