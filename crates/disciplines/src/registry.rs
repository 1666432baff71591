//! What a discipline file provides, and the macro that turns the list in `lib.rs` into everything that is made from it.

use giveway_qdisc::{Bytes, Invalid, LinkContext, Properties, Qdisc};
use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;

/// A discipline's configuration, which builds it. Every file has one, named `Config`.
pub trait Discipline: Clone + Default + PartialEq + Serialize + DeserializeOwned + JsonSchema {
    /// One line for `giveway list`.
    const SUMMARY: &'static str;

    /// The discipline itself.
    type Qdisc<P: 'static>: Qdisc<P>;

    /// Builds it for a site.
    ///
    /// # Errors
    /// The parameter that makes no sense there, and what to write instead.
    fn build<P: 'static>(&self, context: &LinkContext) -> Result<Self::Qdisc<P>, Invalid>;

    /// What it promises beyond the contract, built so for that site.
    fn properties(&self, context: &LinkContext) -> Properties;

    /// How many bytes a flow of a class may send in a round, where [`giveway_qdisc::Guarantee::Turns`] is what it promises.
    fn turn(&self, _class: u16, context: &LinkContext) -> Bytes {
        context.mtu
    }

    /// How many hops beyond the link it looks: a host fills in so much of [`giveway_qdisc::Meta::next_hops`].
    fn lookahead(&self) -> usize {
        0
    }

    /// Configurations beyond the default that the contract suite, the fuzzer and the benchmarks should try too.
    fn variants() -> Vec<Self> {
        Vec::new()
    }

    /// Parameters that are legal but usually a mistake, each in a sentence.
    fn warnings(&self, _site: &LinkContext) -> Vec<String> {
        Vec::new()
    }

    /// Parameters that are legal but do not go with the packets that come there, the largest of which has this length. A host
    /// that knows its traffic asks.
    fn advice(&self, _largest: Bytes, _site: &LinkContext) -> Vec<Advice> {
        Vec::new()
    }
}

/// What is said of a parameter that does not go with the traffic.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Advice {
    /// What happens, in a sentence.
    pub warning: String,
    /// What to write.
    pub help: String,
}

/// Something to do with a discipline whose type is then known: the whole loop is compiled for it.
pub trait Visit {
    /// What comes of it.
    type Out;
    /// Does it.
    fn visit<D: Discipline>(self, config: &D) -> Self::Out;
}

/// One discipline of the registry.
pub type Entry = giveway_spec::Entry<crate::Spec>;

/// Makes the modules, the `Spec` enum and the `ALL` list from one line per discipline, in families.
///
/// The line `fifo,` in the family `shape` becomes the module `fifo` with the source `shape/fifo.rs`, the variant
/// `Spec::fifo(fifo::Config)` and an [`Entry`]. The comment above a family is its summary in lists.
macro_rules! registry {
    ($($(#[doc = $summary:literal])+ $family:ident { $($name:ident),* $(,)? })*) => {
        $(
            $(#[doc = $summary])+
            mod $family {
                $(pub mod $name;)*

                pub(crate) const FAMILY: giveway_spec::Family = giveway_spec::Family {
                    name: stringify!($family),
                    summary: concat!($($summary),+).trim_ascii(),
                };
            }
            pub use $family::{$($name),*};
        )*

        /// Which discipline, with its parameters. Read it from text as `tc` would write it ("fq_codel target 5ms"),
        /// or from a table with a `kind`.
        #[allow(non_camel_case_types, missing_docs)]
        #[derive(Clone, Debug, PartialEq)]
        pub enum Spec {
            $($($name($name::Config),)*)*
        }

        /// Every discipline, in the order in which they are listed.
        pub const ALL: &[Entry] = &[$($(Entry {
            name: stringify!($name),
            family: Some($family::FAMILY),
            summary: <$name::Config as Discipline>::SUMMARY,
            source: include_str!(concat!(stringify!($family), "/", stringify!($name), ".rs")),
            schema: || schemars::schema_for!($name::Config),
            schema_within: <$name::Config as schemars::JsonSchema>::json_schema,
            default: || Spec::$name(Default::default()),
            from_json: |value| serde_json::from_value(value).map(Spec::$name),
            variants: || {
                std::iter::once($name::Config::default())
                    .chain(<$name::Config as Discipline>::variants())
                    .map(Spec::$name)
                    .collect()
            },
        },)*)*];

        impl Spec {
            /// Its discipline's name.
            pub fn name(&self) -> &'static str {
                match self {
                    $($(Spec::$name(_) => stringify!($name),)*)*
                }
            }

            /// Builds it behind a pointer, for hosts.
            ///
            /// # Errors
            /// The parameter that makes no sense at that site.
            pub fn build<P: 'static>(
                &self,
                context: &giveway_qdisc::LinkContext,
            ) -> Result<Box<dyn giveway_qdisc::Qdisc<P>>, giveway_qdisc::Invalid> {
                match self {
                    $($(Spec::$name(config) => Ok(Box::new(config.build::<P>(context)?)),)*)*
                }
            }

            /// Builds it for packets that carry a number: for traces, checks and measurements.
            ///
            /// [`Spec::build`] is compiled once for each payload in each crate that calls it, with all
            /// disciplines; this is compiled here, once.
            ///
            /// # Errors
            /// The parameter that makes no sense at that site.
            pub fn build_numbered(
                &self,
                context: &giveway_qdisc::LinkContext,
            ) -> Result<Box<dyn giveway_qdisc::Qdisc<u64>>, giveway_qdisc::Invalid> {
                self.build(context)
            }

            /// Does something with its type known.
            pub fn with<V: Visit>(&self, visit: V) -> V::Out {
                match self {
                    $($(Spec::$name(config) => visit.visit(config),)*)*
                }
            }

            /// What it promises beyond the contract.
            pub fn properties(&self, context: &giveway_qdisc::LinkContext) -> giveway_qdisc::Properties {
                match self {
                    $($(Spec::$name(config) => config.properties(context),)*)*
                }
            }

            /// How many bytes a flow of a class may send in a round, where there are rounds.
            pub fn turn(&self, class: u16, context: &giveway_qdisc::LinkContext) -> giveway_qdisc::Bytes {
                match self {
                    $($(Spec::$name(config) => config.turn(class, context),)*)*
                }
            }

            /// How many hops beyond the link it looks.
            pub fn lookahead(&self) -> usize {
                match self {
                    $($(Spec::$name(config) => config.lookahead(),)*)*
                }
            }

            /// Parameters that are legal but usually a mistake, each in a sentence.
            pub fn warnings(&self, context: &giveway_qdisc::LinkContext) -> Vec<String> {
                match self {
                    $($(Spec::$name(config) => config.warnings(context),)*)*
                }
            }

            /// Parameters that are legal but do not go with the packets that come, the largest of which has this length.
            pub fn advice(&self, largest: giveway_qdisc::Bytes, context: &giveway_qdisc::LinkContext) -> Vec<$crate::Advice> {
                match self {
                    $($(Spec::$name(config) => config.advice(largest, context),)*)*
                }
            }

            /// Its parameters, by name.
            pub(crate) fn parameters(&self) -> serde_json::Value {
                let value = match self {
                    $($(Spec::$name(config) => serde_json::to_value(config),)*)*
                };
                value.expect("a configuration is plain data")
            }
        }
    };
}
