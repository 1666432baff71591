//! Schedulers: an arbiter with its parameters, and what every scheduler can be told beside them. The registry has a line
//! for each; from it come the spelling in scenarios, the schema, `giveway list` and `explain`, and the suite of tests.

use qdisc::Invalid;
use schemars::{JsonSchema, Schema};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::arbiter::{Arbiter, Site};
use crate::modes::{Fabric, fabric};
use crate::speed::Speedup;

/// What a match means.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    /// One cell.
    Cell,
    /// A packet, which holds both ports until its last cell.
    Packet,
    /// The same, with short packets before long ones where both wait.
    Spf,
    /// The same, and short packets interrupt long ones.
    Preemptive,
}

/// Whether long packets are matched at ports that send a short one in the same slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Phases {
    /// Both classes at the same time: neither knows of the other.
    Parallel,
    /// Short ones first, then long ones at the ports that are left.
    Sequential,
}

/// When a packet may begin to cross.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Input {
    /// As soon as it could not run out of cells: at a speedup of 1, with its first cell.
    #[default]
    CutThrough,
    /// When all of it is there. Its time of arrival is that of its last cell.
    StoreAndForward,
}

/// Where packets wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Queueing {
    /// At the inputs, a queue for each output.
    Virtual,
    /// At the inputs, one queue for all.
    Fifo,
    /// At the outputs.
    Output,
}

/// What every scheduler can be told.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Options {
    /// What a match means; by default what the scheduler was made for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mode: Option<Mode>,
    /// Slots of the fabric per slot of a link.
    pub speedup: Speedup,
    /// When a packet may begin to cross.
    pub input: Input,
    /// Preemptive mode: whether both classes are matched at the same time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub phases: Option<Phases>,
    /// Preemptive mode: interrupted packets keep their connection.
    pub hold: bool,
    /// Preemptive mode: slots that a short packet waits for the end of a packet at its input before it interrupts.
    pub lazy: u32,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            mode: None,
            speedup: Speedup::ONE,
            input: Input::CutThrough,
            phases: None,
            hold: true,
            lazy: 0,
        }
    }
}

impl Options {
    /// Refuses what has no meaning in the mode.
    fn check<S: Scheduler>(&self) -> Result<(), Invalid> {
        let mode = self.mode.unwrap_or(S::MODE);
        if S::QUEUEING != Queueing::Virtual && !matches!(mode, Mode::Cell | Mode::Packet) {
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
}

/// A scheduler's configuration. Every file has one, named `Config`.
pub trait Scheduler: Clone + Default + PartialEq + Serialize + DeserializeOwned + JsonSchema {
    /// One line for `giveway list`.
    const SUMMARY: &'static str;
    /// The mode that it was made for.
    const MODE: Mode = Mode::Packet;
    /// In preemptive mode.
    const PHASES: Phases = Phases::Sequential;
    /// Where packets wait.
    const QUEUEING: Queueing = Queueing::Virtual;

    /// Builds its arbiter.
    ///
    /// # Errors
    /// The parameter that makes no sense there, and what to write instead.
    fn arbiter<const W: usize>(&self, site: &Site) -> Result<Box<dyn Arbiter<W>>, Invalid>;

    /// The arbiter for short packets, in modes that have two classes.
    ///
    /// # Errors
    /// As [`arbiter`](Scheduler::arbiter).
    fn short_arbiter<const W: usize>(&self, site: &Site) -> Result<Box<dyn Arbiter<W>>, Invalid> {
        self.arbiter(site)
    }
}

/// One scheduler of the registry.
#[derive(Clone, Copy)]
pub struct Entry {
    /// How it is written.
    pub name: &'static str,
    /// One line about it.
    pub summary: &'static str,
    /// Its source file, whose header explains it.
    pub source: &'static str,
    /// Its own parameters: JSON Schema of its `Config`.
    pub schema: fn() -> Schema,
    /// It, with every parameter at its default.
    pub default: fn() -> Algorithm,
    /// It, from its own named parameters.
    pub from_json: fn(serde_json::Value) -> Result<Algorithm, serde_json::Error>,
    /// Where packets wait.
    pub queueing: Queueing,
    /// The mode that it was made for.
    pub mode: Mode,
}

/// A scheduler with all that it was told.
#[derive(Clone, Debug, PartialEq)]
pub struct Spec {
    /// What every scheduler can be told.
    pub options: Options,
    /// Which one, with its own parameters.
    pub algorithm: Algorithm,
}

macro_rules! registry {
    ($($name:ident),* $(,)?) => {
        /// Which scheduler, with its own parameters.
        #[allow(non_camel_case_types, missing_docs)]
        #[derive(Clone, Debug, PartialEq)]
        pub enum Algorithm {
            $($name(crate::arbiters::$name::Config)),*
        }

        /// Every scheduler, in the order in which they are listed.
        pub const ALL: &[Entry] = &[$(Entry {
            name: stringify!($name),
            summary: <crate::arbiters::$name::Config as Scheduler>::SUMMARY,
            source: include_str!(concat!("arbiters/", stringify!($name), ".rs")),
            schema: || schemars::schema_for!(crate::arbiters::$name::Config),
            default: || Algorithm::$name(Default::default()),
            from_json: |value| serde_json::from_value(value).map(Algorithm::$name),
            queueing: <crate::arbiters::$name::Config as Scheduler>::QUEUEING,
            mode: <crate::arbiters::$name::Config as Scheduler>::MODE,
        }),*];

        impl Algorithm {
            /// Its name.
            pub fn name(&self) -> &'static str {
                match self {
                    $(Algorithm::$name(_) => stringify!($name)),*
                }
            }

            /// Its own parameters, by name.
            pub fn parameters(&self) -> serde_json::Value {
                let value = match self {
                    $(Algorithm::$name(config) => serde_json::to_value(config)),*
                };
                value.expect("a configuration is plain data")
            }
        }

        impl Spec {
            /// Where packets wait.
            pub fn queueing(&self) -> Queueing {
                match &self.algorithm {
                    $(Algorithm::$name(_) => <crate::arbiters::$name::Config as Scheduler>::QUEUEING),*
                }
            }

            /// What a match means.
            pub fn mode(&self) -> Mode {
                self.options.mode.unwrap_or(match &self.algorithm {
                    $(Algorithm::$name(_) => <crate::arbiters::$name::Config as Scheduler>::MODE),*
                })
            }

            /// Builds the queues and arbiters of a switch.
            pub(crate) fn fabric<const W: usize>(&self, site: &Site) -> Result<Box<dyn Fabric<W>>, Invalid> {
                match &self.algorithm {
                    $(Algorithm::$name(config) => {
                        self.options.check::<crate::arbiters::$name::Config>()?;
                        fabric(config, &self.options, site)
                    })*
                }
            }
        }

        impl crate::arbiters::Together {
            /// Builds the arbiter of a scheduler alone, for tests and benchmarks.
            ///
            /// # Errors
            /// The parameter that makes no sense there.
            pub fn arbiter<const W: usize>(
                algorithm: &Algorithm,
                site: &Site,
            ) -> Result<Box<dyn Arbiter<W>>, Invalid> {
                match algorithm {
                    $(Algorithm::$name(config) => config.arbiter(site)),*
                }
            }
        }
    };
}

registry! {
    islip,
    p_spf,
    msm,
    mwm,
    greedy,
    p_msm,
    p_mwm_ql,
    p_mwm_ca,
    fifo,
    oq,
}
