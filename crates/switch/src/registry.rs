//! The registry of arbiters: one line for each. From that line come the syntax in scenarios, the JSON Schema,
//! `giveway list` and `explain`, and the contract tests.

use giveway_qdisc::{Invalid, Streams};
pub use giveway_spec::Entry;
use giveway_spec::{About, Catalogue};
use schemars::JsonSchema;
use serde_json::{Map, Value};

pub use crate::arbiter::ArbiterConfig;
use crate::arbiter::{Arbiter, ArbiterContext};
use crate::modes::{Fabric, fabric, fabric_of_kind};
use crate::options::{Mode, Options, Phases, Queueing};
use crate::outside::Brought;
use crate::packet::Class;
use crate::speed::Speedup;

/// An arbiter as users specify it: the algorithm with its parameters, and the options that every arbiter has.
#[derive(Clone, Debug, PartialEq)]
pub struct Spec {
    /// Options that every arbiter has.
    pub options: Options,
    /// The algorithm with its own parameters.
    pub algorithm: Algorithm,
}

impl From<Algorithm> for Spec {
    /// The algorithm with all options at their defaults.
    fn from(algorithm: Algorithm) -> Spec {
        Spec { options: Options::default(), algorithm }
    }
}

impl Spec {
    /// The name of the algorithm.
    pub fn name(&self) -> &'static str {
        self.algorithm.name()
    }

    /// Refuses a specification that cannot be built for a switch of `ports` ports.
    ///
    /// # Errors
    /// The parameter without meaning there, and what to write instead.
    pub fn check(&self, ports: usize) -> Result<(), Invalid> {
        let context = ArbiterContext { ports: ports.min(64), streams: Streams::new(0) };
        self.fabric::<1>(&context).map(|_| ())
    }

    /// Builds the queues of a switch, with arbiters that a caller brings.
    pub(crate) fn fabric_with<const W: usize>(
        &self,
        context: &ArbiterContext,
        brought: &Brought<'_>,
    ) -> Result<Box<dyn Fabric<W>>, Invalid> {
        let kind = (self.queueing(), self.mode(), self.phases());
        self.options.check(kind.1, kind.0)?;
        if matches!(kind.0, Queueing::Output | Queueing::Combined) {
            let message = format!(
                "a switch with \"{self}\" has no place for another arbiter: write for example \"islip mode cell\""
            );
            return Err(Invalid::new("arbiter", message));
        }
        fabric_of_kind(kind, &self.options, context.ports, &|class| {
            let name = if class == Class::Long { "long" } else { "short" };
            Ok(brought.arbiter(&context.within(name), class))
        })
    }

    /// Options and parameters by name, as one JSON object.
    pub fn parameters(&self) -> Value {
        let options = serde_json::to_value(&self.options).expect("options are plain data");
        let mut all = options.as_object().cloned().unwrap_or_default();
        all.extend(self.algorithm.parameters().as_object().cloned().unwrap_or_default());
        Value::Object(all)
    }
}

static CATALOGUE: Catalogue<Spec> = Catalogue::new(
    About {
        noun: "arbiter",
        definition: "Arbiter",
        description: "An arbiter of a crossbar with its parameters: \"islip iterations 4 mode preemptive\"",
        example: "islip iterations 4",
        inside: None,
    },
    ALL,
);
giveway_spec::spec_type!(Spec, CATALOGUE);

/// The schema of an arbiter's own parameters together with the options.
#[derive(JsonSchema)]
#[allow(dead_code)]
struct WithOptions<C> {
    #[serde(flatten)]
    own: C,
    #[serde(flatten)]
    options: Options,
}

/// Separates a JSON object of parameters into the options and the arbiter's own parameters.
fn split(parameters: Value) -> Result<(Options, Value), serde_json::Error> {
    let Value::Object(parameters) = parameters else { return Ok((Options::default(), parameters)) };
    let known = |name: &String| Options::NAMES.contains(&name.as_str());
    let (options, own): (Map<String, Value>, Map<String, Value>) =
        parameters.into_iter().partition(|(name, _)| known(name));
    Ok((serde_json::from_value(Value::Object(options))?, Value::Object(own)))
}

macro_rules! registry {
    ($($name:ident),* $(,)?) => {
        giveway_spec::named_enum! {
            /// An arbitration algorithm with its own parameters.
            pub enum Algorithm {
                $($name(crate::arbiters::$name::Config)),*
            }
        }

        /// All arbiters, in the order in which they are listed.
        pub static ALL: &[Entry<Spec>] = &[$(Entry {
            name: stringify!($name),
            family: None,
            summary: <crate::arbiters::$name::Config as ArbiterConfig>::SUMMARY,
            header: giveway_spec::header!(include_str!(concat!("arbiters/", stringify!($name), ".rs"))),
            keys: || {
                let own = giveway_spec::keys::<crate::arbiters::$name::Config>();
                [own, Options::NAMES.as_slice()].concat()
            },
            schema: || schemars::schema_for!(WithOptions<crate::arbiters::$name::Config>),
            schema_within: <WithOptions<crate::arbiters::$name::Config> as JsonSchema>::json_schema,
            from_json: |value| {
                let (options, own) = split(value)?;
                let algorithm = Algorithm::$name(serde_json::from_value(own)?);
                Ok(Spec { options, algorithm })
            },
            as_tc: false,
        }),*];

        impl Spec {
            /// The queues that the arbiter needs.
            pub fn queueing(&self) -> Queueing {
                match &self.algorithm {
                    $(Algorithm::$name(_) => <crate::arbiters::$name::Config as ArbiterConfig>::QUEUEING),*
                }
            }

            /// Slots of the fabric per slot of a link: the option, otherwise the default of the arbiter.
            pub fn speedup(&self) -> Speedup {
                self.options.speedup.unwrap_or(match &self.algorithm {
                    $(Algorithm::$name(_) => <crate::arbiters::$name::Config as ArbiterConfig>::SPEEDUP),*
                })
            }

            /// The mode of the switch: the option, otherwise the default of the arbiter.
            pub fn mode(&self) -> Mode {
                self.options.mode.unwrap_or(match &self.algorithm {
                    $(Algorithm::$name(_) => <crate::arbiters::$name::Config as ArbiterConfig>::MODE),*
                })
            }

            /// The phases of a slot in preemptive mode: the option, otherwise the default of the arbiter.
            fn phases(&self) -> Phases {
                self.options.phases.unwrap_or(match &self.algorithm {
                    $(Algorithm::$name(_) => <crate::arbiters::$name::Config as ArbiterConfig>::PHASES),*
                })
            }

            /// Builds the arbiter without a switch around it, for tests and benchmarks.
            ///
            /// # Errors
            /// The parameter without meaning for such a switch.
            pub fn arbiter<const W: usize>(&self, context: &ArbiterContext) -> Result<Box<dyn Arbiter<W>>, Invalid> {
                match &self.algorithm {
                    $(Algorithm::$name(config) => config.arbiter(context)),*
                }
            }

            /// Builds the queues and arbiters of a switch.
            pub(crate) fn fabric<const W: usize>(&self, context: &ArbiterContext) -> Result<Box<dyn Fabric<W>>, Invalid> {
                match &self.algorithm {
                    $(Algorithm::$name(config) => {
                        self.options.check(self.mode(), self.queueing())?;
                        fabric(config, &self.options, context)
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

    fn refused(text: &str) -> String {
        text.parse::<Spec>().unwrap_err().to_string()
    }

    #[test]
    fn arbiters_are_written_in_the_syntax_of_tc() {
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
    fn mistakes_are_reported_with_a_correction() {
        assert_eq!(refused("islop"), "unknown arbiter \"islop\"; did you mean \"islip\"?");
        assert!(refused("islip iteration 3").contains("did you mean \"iterations\"?"));
        assert!(refused("islip mode packets").contains("did you mean \"packet\"?"));
        assert!(refused("p_spf speedup 0.5").contains("below 1"), "{}", refused("p_spf speedup 0.5"));
    }

    #[test]
    fn options_without_a_meaning_are_refused() {
        let built = |text: &str| {
            let spec: Spec = text.parse().unwrap();
            let context = ArbiterContext { ports: 4, streams: giveway_qdisc::Streams::new(1) };
            spec.fabric::<1>(&context).map(|_| ()).map_err(|invalid| invalid.to_string())
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
