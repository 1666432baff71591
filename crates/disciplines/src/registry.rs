//! The interface of a discipline file, and the macro that generates the registry from the list in `lib.rs`.

use giveway_qdisc::{Bytes, Invalid, LinkContext, Meta, Properties, Qdisc, Rate};
use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::ClassService;

/// A discipline's configuration, which builds it. Every file has one, named `Config`.
pub trait Discipline: Clone + Default + PartialEq + Serialize + DeserializeOwned + JsonSchema {
    /// Summary in one line, for `giveway list`.
    const SUMMARY: &'static str;

    /// Knowledge that the discipline needs and that no packet carries by itself.
    const NEEDS: Needs = Needs::Nothing;

    /// True if mainline Linux has a qdisc of this kind, whatever its parameters.
    const IN_MAINLINE: bool = false;

    /// Type of the discipline for packets with payload `P`.
    type Qdisc<P: 'static>: Qdisc<P>;

    /// Builds the discipline for a link.
    ///
    /// # Errors
    /// The parameter that is invalid for this link, and a valid value.
    fn build<P: 'static>(&self, context: &LinkContext) -> Result<Self::Qdisc<P>, Invalid>;

    /// Guarantees of the discipline beyond the contract on a link.
    fn properties(&self, context: &LinkContext) -> Properties;

    /// The rate to which the discipline shapes packets of the link's MTU, as IP bytes; `None` if it is that
    /// of the link, or above.
    fn shaped_rate(&self, _context: &LinkContext) -> Option<Rate> {
        None
    }

    /// Bytes that a flow of a class may send in a round, if [`giveway_qdisc::Guarantee::Turns`] is its
    /// guarantee.
    fn turn(&self, _class: u16, context: &LinkContext) -> Bytes {
        context.mtu
    }

    /// Number of the class of packets like this one, if [`giveway_qdisc::Guarantee::Classes`] is the
    /// guarantee; `None` without a class.
    fn class_of(&self, _like: &Meta, _context: &LinkContext) -> Option<u32> {
        None
    }

    /// Service that a class is guaranteed, if [`giveway_qdisc::Guarantee::Classes`] is the guarantee.
    ///
    /// # Errors
    /// The reason why it has no guarantee, in a sentence.
    fn class_service(&self, _class: u32, _context: &LinkContext) -> Result<ClassService, String> {
        Err("it has no classes".to_owned())
    }

    /// Number of next hops after the link that the discipline uses: the backend fills in as many of
    /// [`giveway_qdisc::Meta::next_hops`].
    fn lookahead(&self) -> usize {
        0
    }

    /// Further configurations that the contract suite, the fuzzer and the benchmarks try in addition to the
    /// default.
    fn variants() -> Vec<Self> {
        Vec::new()
    }

    /// Writes out the values of parameters that are not given: another configuration of equal behaviour.
    /// Values that follow from the rate of a link are left out, and so are parameters that are off.
    #[must_use]
    fn filled(&self, _context: &LinkContext) -> Self {
        self.clone()
    }

    /// A qdisc of Linux that does the same with the same parameters, and that `tc` sets up in one line;
    /// `None` if there is none.
    fn in_linux(&self) -> Option<InLinux> {
        None
    }

    /// Warnings about valid parameters that are usually a mistake, each in a sentence.
    fn warnings(&self, _site: &LinkContext) -> Vec<String> {
        Vec::new()
    }

    /// Advice about valid parameters that do not suit the traffic, whose largest packet has this length. A
    /// backend that knows its traffic reports it.
    fn advice(&self, _largest: Bytes, _site: &LinkContext) -> Vec<Advice> {
        Vec::new()
    }
}

/// Knowledge that a discipline needs and that no packet carries by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Needs {
    /// The packets are enough.
    Nothing,
    /// The rate that each flow has reserved.
    Reservations,
    /// The number of bytes that each flow has still to send.
    Sizes,
    /// Labels that an edge router wrote on packets.
    Labels,
    /// The hops that packets take after the next router.
    NextHops,
}

/// A qdisc of Linux.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InLinux {
    /// Its name for `tc`.
    pub qdisc: &'static str,
    /// True if it shapes to a rate by its own parameter `bandwidth`.
    pub shapes: bool,
    /// The script of OpenWrt's sqm-scripts that sets it up.
    pub sqm: Option<&'static str>,
    /// The limit in packets that `tc` needs, although it may be left out here: otherwise Linux takes the
    /// length of the queue of the device, which is 1,000 packets at most interfaces, and 32 at an `ifb`.
    pub limit: Option<u64>,
}

impl InLinux {
    /// A qdisc without a shaper.
    pub const fn named(qdisc: &'static str) -> InLinux {
        InLinux { qdisc, shapes: false, sqm: None, limit: None }
    }

    /// A discipline with its parameters as `tc` writes them: it counts packets without a unit.
    pub fn text(&self, spec: &impl std::fmt::Display) -> String {
        let text = spec.to_string();
        let count = |word: &str| {
            let digits = word.strip_suffix('p').filter(|digits| digits.parse::<u64>().is_ok());
            digits.unwrap_or(word).to_owned()
        };
        let words: Vec<String> = text.split(' ').skip(1).map(count).collect();
        let limit = self.limit.filter(|_| !words.iter().any(|word| word == "limit"));
        let limit = limit.into_iter().flat_map(|limit| ["limit".to_owned(), limit.to_string()]);
        let whole: Vec<String> = std::iter::once(self.qdisc.to_owned()).chain(words).chain(limit).collect();
        whole.join(" ")
    }
}

/// A warning about a parameter that does not suit the traffic.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Advice {
    /// The effect, in a sentence.
    pub warning: String,
    /// The value to write instead.
    pub help: String,
}

/// A function of any discipline, which is compiled for the concrete type of each discipline.
pub trait Visit {
    /// Result of the function.
    type Out;
    /// Calls the function with a configuration.
    fn visit<D: Discipline>(self, config: &D) -> Self::Out;
}

/// One discipline of the registry.
pub type Entry = giveway_spec::Entry<crate::Spec>;

/// Generates the modules, the `Spec` enum and the `ALL` list from one line per discipline, in families.
///
/// The line `fifo,` in the family `shape` becomes the module `fifo` with the source `shape/fifo.rs`, the
/// variant `Spec::fifo(fifo::Config)` and an [`Entry`]. The comment above a family is its summary in lists.
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

        giveway_spec::named_enum! {
            /// A discipline with its parameters. It is parsed from text in the syntax of `tc` ("fq_codel
            /// target 5ms"), or from a table with a `kind`.
            pub enum Spec {
                $($($name($name::Config),)*)*
            }
        }

        /// Every discipline, in the order in which they are listed.
        pub static ALL: &[Entry] = &[$($(Entry {
            family: Some($family::FAMILY),
            as_tc: <$name::Config as Discipline>::IN_MAINLINE,
            ..Entry::of::<$name::Config>(
                stringify!($name),
                <$name::Config as Discipline>::SUMMARY,
                giveway_spec::header!(include_str!(concat!(stringify!($family), "/", stringify!($name), ".rs"))),
            )
        },)*)*];

        impl Spec {
            /// Configurations of this discipline for the contract suite, the fuzzer and the benchmarks: the
            /// default, then [`Discipline::variants`].
            pub fn variants(&self) -> Vec<Spec> {
                match self {
                    $($(Spec::$name(_) => {
                        let further = <$name::Config as Discipline>::variants();
                        std::iter::once($name::Config::default()).chain(further).map(Spec::$name).collect()
                    })*)*
                }
            }

            /// Builds the discipline for packets with any payload. It is compiled once, for numbers
            /// ([`Spec::build_numbered`]), and the payloads wait next to it.
            ///
            /// # Errors
            /// The parameter that is not valid on that link.
            pub fn build<P: 'static>(
                &self,
                context: &giveway_qdisc::LinkContext,
            ) -> Result<Box<dyn giveway_qdisc::Qdisc<P>>, giveway_qdisc::Invalid> {
                Ok(Box::new(giveway_qdisc::Bodies::new(self.build_numbered(context)?)))
            }

            /// Builds the discipline for packets that carry a number. All disciplines are compiled for it in
            /// this crate.
            ///
            /// # Errors
            /// The parameter that is not valid on that link.
            pub fn build_numbered(
                &self,
                context: &giveway_qdisc::LinkContext,
            ) -> Result<Box<dyn giveway_qdisc::Qdisc<u64>>, giveway_qdisc::Invalid> {
                self.build_within(context)
            }

            /// Builds the discipline as a child of a discipline for the same payload.
            ///
            /// # Errors
            /// The parameter that is not valid on that link.
            pub(crate) fn build_within<P: 'static>(
                &self,
                context: &giveway_qdisc::LinkContext,
            ) -> Result<Box<dyn giveway_qdisc::Qdisc<P>>, giveway_qdisc::Invalid> {
                match self {
                    $($(Spec::$name(config) => Ok(Box::new(config.build::<P>(context)?)),)*)*
                }
            }

            /// Writes out the values of parameters that are not given: another specification of equal
            /// behaviour. Values that follow from the rate of a link are left out, and so are parameters that
            /// are off.
            #[must_use]
            pub fn filled(&self, context: &giveway_qdisc::LinkContext) -> Spec {
                match self {
                    $($(Spec::$name(config) => Spec::$name(config.filled(context)),)*)*
                }
            }

            /// Calls a visitor with the configuration of the discipline.
            pub fn with<V: Visit>(&self, visit: V) -> V::Out {
                match self {
                    $($(Spec::$name(config) => visit.visit(config),)*)*
                }
            }

            /// Knowledge that the discipline needs and that no packet carries by itself.
            pub fn needs(&self) -> Needs {
                match self {
                    $($(Spec::$name(_) => <$name::Config as Discipline>::NEEDS,)*)*
                }
            }

            /// True if mainline Linux has a qdisc of this kind, whatever its parameters.
            pub fn in_mainline(&self) -> bool {
                match self {
                    $($(Spec::$name(_) => <$name::Config as Discipline>::IN_MAINLINE,)*)*
                }
            }

            /// A qdisc of Linux that does the same with the same parameters, set up in one line.
            pub fn in_linux(&self) -> Option<InLinux> {
                match self {
                    $($(Spec::$name(config) => config.in_linux(),)*)*
                }
            }

            /// Guarantees of the discipline beyond the contract on a link.
            pub fn properties(&self, context: &giveway_qdisc::LinkContext) -> giveway_qdisc::Properties {
                match self {
                    $($(Spec::$name(config) => config.properties(context),)*)*
                }
            }

            /// The rate to which the discipline shapes packets of the link's MTU; `None` if the link does.
            pub fn shaped_rate(
                &self,
                context: &giveway_qdisc::LinkContext,
            ) -> Option<giveway_qdisc::Rate> {
                match self {
                    $($(Spec::$name(config) => config.shaped_rate(context),)*)*
                }
            }

            /// Bytes that a flow of a class may send in a round, if there are rounds.
            pub fn turn(&self, class: u16, context: &giveway_qdisc::LinkContext) -> giveway_qdisc::Bytes {
                match self {
                    $($(Spec::$name(config) => config.turn(class, context),)*)*
                }
            }

            /// Number of the class of packets like this one, if classes are guaranteed a service.
            pub fn class_of(
                &self,
                like: &giveway_qdisc::Meta,
                context: &giveway_qdisc::LinkContext,
            ) -> Option<u32> {
                match self {
                    $($(Spec::$name(config) => config.class_of(like, context),)*)*
                }
            }

            /// Service that a class is guaranteed.
            ///
            /// # Errors
            /// The reason why it has no guarantee, in a sentence.
            pub fn class_service(
                &self,
                class: u32,
                context: &giveway_qdisc::LinkContext,
            ) -> ::std::result::Result<$crate::ClassService, String> {
                match self {
                    $($(Spec::$name(config) => config.class_service(class, context),)*)*
                }
            }

            /// Number of next hops after the link that the discipline uses.
            pub fn lookahead(&self) -> usize {
                match self {
                    $($(Spec::$name(config) => config.lookahead(),)*)*
                }
            }

            /// Warnings about valid parameters that are usually a mistake, each in a sentence.
            pub fn warnings(&self, context: &giveway_qdisc::LinkContext) -> Vec<String> {
                match self {
                    $($(Spec::$name(config) => config.warnings(context),)*)*
                }
            }

            /// Advice about valid parameters that do not suit the traffic, whose largest packet has this
            /// length.
            pub fn advice(&self, largest: giveway_qdisc::Bytes, context: &giveway_qdisc::LinkContext) -> Vec<$crate::Advice> {
                match self {
                    $($(Spec::$name(config) => config.advice(largest, context),)*)*
                }
            }
        }
    };
}
