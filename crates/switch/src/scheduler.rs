//! Schedulers: an arbiter with its parameters, and what every scheduler can be told beside them. The registry has a line
//! for each; from it come the spelling in scenarios, the schema, `giveway list` and `explain`, and the suite of tests.

use qdisc::{Invalid, Streams};
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
pub use spelling::Entry;
use spelling::{About, Catalogue};

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
    /// As soon as it could not run out of cells, to the exact time: at a speedup of 1, with its first cell.
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
    /// At the inputs, one list for all, and at the outputs.
    Combined,
}

/// What every scheduler can be told.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Options {
    /// What a match means; by default what the scheduler was made for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mode: Option<Mode>,
    /// Slots of the fabric per slot of a link; by default the switch's, otherwise 1 (cioq: 2).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub speedup: Option<Speedup>,
    /// When a packet may begin to cross; by default as the switch has it, which is cut_through unless it says otherwise.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub input: Option<Input>,
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
        Options { mode: None, speedup: None, input: None, phases: None, hold: true, lazy: 0 }
    }
}

impl Options {
    /// Refuses what has no meaning in the mode.
    fn check<S: Scheduler>(&self) -> Result<(), Invalid> {
        let mode = self.mode.unwrap_or(S::MODE);
        if S::QUEUEING == Queueing::Combined {
            self.check_combined(mode)?;
        }
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

    /// What has no meaning with queues on both sides.
    fn check_combined(&self, mode: Mode) -> Result<(), Invalid> {
        if mode != Mode::Cell {
            let message =
                "with queues at inputs and outputs only cells are matched: write \"cell\" or leave it out";
            return Err(Invalid::new("mode", message));
        }
        match self.speedup {
            Some(speedup) if speedup.as_f64() > Speedup::TWO.as_f64() => {
                let message = format!(
                    "{speedup}: with 2 every cell leaves when output queueing would send it, and no more is to be had; \
                     write 1 to 2"
                );
                Err(Invalid::new("speedup", message))
            }
            _ => Ok(()),
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
    /// Slots of the fabric per slot of a link, where neither options nor switch say it.
    const SPEEDUP: Speedup = Speedup::ONE;

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

/// A scheduler with all that it was told.
#[derive(Clone, Debug, PartialEq)]
pub struct Spec {
    /// What every scheduler can be told.
    pub options: Options,
    /// Which one, with its own parameters.
    pub algorithm: Algorithm,
}

impl From<Algorithm> for Spec {
    /// With all options at their defaults.
    fn from(algorithm: Algorithm) -> Spec {
        Spec { options: Options::default(), algorithm }
    }
}

impl Spec {
    /// Its scheduler's name.
    pub fn name(&self) -> &'static str {
        self.algorithm.name()
    }

    /// Refuses what cannot be built for a switch of so many ports.
    ///
    /// # Errors
    /// The parameter that makes no sense there, and what to write instead.
    pub fn check(&self, ports: usize) -> Result<(), Invalid> {
        let site = Site { ports: ports.min(64), streams: Streams::new(0) };
        self.fabric::<1>(&site).map(|_| ())
    }

    /// What it was told, by name: options first.
    pub fn parameters(&self) -> Value {
        let options = serde_json::to_value(&self.options).expect("options are plain data");
        let mut all = options.as_object().cloned().unwrap_or_default();
        all.extend(self.algorithm.parameters().as_object().cloned().unwrap_or_default());
        Value::Object(all)
    }
}

static CATALOGUE: Catalogue<Spec> = Catalogue::new(
    About {
        noun: "scheduler",
        definition: "Scheduler",
        description: "A scheduler of a crossbar with its parameters: \"islip iterations 4 mode preemptive\"",
        example: "islip iterations 4",
        inside: None,
    },
    ALL,
);
spelling::spelled!(Spec, CATALOGUE);

/// The schema of all that a scheduler can be told.
#[derive(JsonSchema)]
#[allow(dead_code)]
struct Told<C> {
    #[serde(flatten)]
    own: C,
    #[serde(flatten)]
    options: Options,
}

/// Options, and what belongs to the scheduler itself.
fn split(told: Value) -> Result<(Options, Value), serde_json::Error> {
    let Value::Object(told) = told else { return Ok((Options::default(), told)) };
    let known = |name: &String| OPTIONS.contains(&name.as_str());
    let (options, own): (Map<String, Value>, Map<String, Value>) =
        told.into_iter().partition(|(name, _)| known(name));
    Ok((serde_json::from_value(Value::Object(options))?, Value::Object(own)))
}

/// The names of [`Options`].
const OPTIONS: [&str; 6] = ["mode", "speedup", "input", "phases", "hold", "lazy"];

macro_rules! registry {
    ($($name:ident),* $(,)?) => {
        /// Which scheduler, with its own parameters.
        #[allow(non_camel_case_types, missing_docs)]
        #[derive(Clone, Debug, PartialEq)]
        pub enum Algorithm {
            $($name(crate::arbiters::$name::Config)),*
        }

        /// Every scheduler, in the order in which they are listed.
        pub const ALL: &[Entry<Spec>] = &[$(Entry {
            name: stringify!($name),
            summary: <crate::arbiters::$name::Config as Scheduler>::SUMMARY,
            source: include_str!(concat!("arbiters/", stringify!($name), ".rs")),
            schema: || schemars::schema_for!(Told<crate::arbiters::$name::Config>),
            schema_within: <Told<crate::arbiters::$name::Config> as JsonSchema>::json_schema,
            default: || Algorithm::$name(Default::default()).into(),
            from_json: |value| {
                let (options, own) = split(value)?;
                let algorithm = Algorithm::$name(serde_json::from_value(own)?);
                Ok(Spec { options, algorithm })
            },
            variants: || vec![Algorithm::$name(Default::default()).into()],
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

            /// Slots of the fabric per slot of a link.
            pub fn speedup(&self) -> Speedup {
                self.options.speedup.unwrap_or(match &self.algorithm {
                    $(Algorithm::$name(_) => <crate::arbiters::$name::Config as Scheduler>::SPEEDUP),*
                })
            }

            /// What a match means.
            pub fn mode(&self) -> Mode {
                self.options.mode.unwrap_or(match &self.algorithm {
                    $(Algorithm::$name(_) => <crate::arbiters::$name::Config as Scheduler>::MODE),*
                })
            }

            /// Builds its arbiter alone, for tests and benchmarks.
            ///
            /// # Errors
            /// The parameter that makes no sense there.
            pub fn arbiter<const W: usize>(&self, site: &Site) -> Result<Box<dyn Arbiter<W>>, Invalid> {
                match &self.algorithm {
                    $(Algorithm::$name(config) => config.arbiter(site)),*
                }
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
    };
}

registry! {
    islip,
    p_spf,
    pim,
    rrm,
    drrm,
    firm,
    ilqf,
    iocf,
    serena,
    qps,
    tdm,
    msm,
    mwm,
    greedy,
    p_msm,
    p_mwm_ql,
    p_mwm_ca,
    fifo,
    cioq,
    oq,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(text: &str) -> String {
        text.parse::<Spec>().unwrap_err().to_string()
    }

    #[test]
    fn schedulers_are_written_as_tc_would() {
        for text in [
            "islip",
            "p_spf",
            "islip mode preemptive lazy 24 iterations 1",
            "p_spf speedup 1.176 nohold",
            "tdm pattern unbalanced share 0.5",
            "tdm pattern matrix rates [0.5 0.5 0.5 0.5]",
            "cioq speedup 1.5",
        ] {
            assert_eq!(text.parse::<Spec>().unwrap().to_string(), text);
        }
        assert_eq!("islip iterations 4 hold".parse::<Spec>().unwrap().to_string(), "islip");
        assert_eq!("p_spf".parse::<Spec>().unwrap().mode(), Mode::Preemptive);
        let names: Vec<&str> = ALL.iter().map(|entry| entry.name).collect();
        assert!(names.contains(&"islip") && names.contains(&"oq"));
    }

    #[test]
    fn mistakes_are_pointed_at() {
        assert_eq!(said("islop"), "unknown scheduler \"islop\"; did you mean \"islip\"?");
        assert!(said("islip iteration 3").contains("did you mean \"iterations\"?"));
        assert!(said("islip mode packets").contains("did you mean \"packet\"?"));
        assert!(said("p_spf speedup 0.5").contains("below 1"), "{}", said("p_spf speedup 0.5"));
    }

    #[test]
    fn options_are_all_known() {
        let all = Options {
            mode: Some(Mode::Cell),
            speedup: Some(Speedup::ONE),
            input: Some(Input::CutThrough),
            phases: Some(Phases::Parallel),
            ..Options::default()
        };
        let value = serde_json::to_value(&all).unwrap();
        let mut names: Vec<&str> = value.as_object().unwrap().keys().map(String::as_str).collect();
        let mut known = OPTIONS.to_vec();
        names.sort_unstable();
        known.sort_unstable();
        assert_eq!(names, known);
    }

    #[test]
    fn what_has_no_meaning_is_refused() {
        let built = |text: &str| {
            let spec: Spec = text.parse().unwrap();
            let site = Site { ports: 4, streams: qdisc::Streams::new(1) };
            spec.fabric::<1>(&site).map(|_| ()).map_err(|invalid| invalid.to_string())
        };
        assert_eq!(built("islip mode preemptive lazy 3"), Ok(()));
        assert!(built("islip lazy 3").unwrap_err().contains("nothing is interrupted in this mode"));
        assert!(built("fifo mode preemptive").unwrap_err().contains("only virtual output queues"));
        assert_eq!(built("cioq speedup 1.5 mode cell"), Ok(()));
        assert!(built("cioq speedup 2.1").unwrap_err().contains("write 1 to 2"));
        assert!(built("cioq mode packet").unwrap_err().contains("only cells are matched"));
        assert!(built("islip iterations 0").unwrap_err().contains("write 1 to 1024"));
    }
}
