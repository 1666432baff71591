//! Spec syntax: a name with parameters, written as for `tc`: `fq_codel limit 10240p target 5ms`, `islip
//! iterations 4`.
//!
//! A registry (queue disciplines, arbiters of a crossbar) is a [`Catalogue`] of [`Entry`]s over one type, an
//! enum with a variant for each entry. The catalogue reads and writes specs as text, reads them from a table
//! with a `kind`, and provides the JSON Schema. The parameters and their types come from the schema of each
//! configuration. [`named_enum!`] declares the enum, and [`spec_type!`] implements the traits for the type.
//!
//! Sources of traffic are registries without this syntax, since their parameters are keys of a table: they
//! have an enum and a list of entries, but no catalogue.
//!
//! The grammar: the name, then parameter names, each followed by a value. A switch is written alone (`ecn`),
//! negated (`noecn`), or with `on` or `off`. Some choices are written alone, too (`besteffort`). A list is in
//! brackets: `[1 2 3]`. A spec inside another is in
//! parentheses, `tbf rate 1mbit child (fq_codel limit 100p)`, and a list of specs in brackets: `[(fifo) (fifo
//! limit 10p)]`. A record, such as a class of `htb`, is its parameters in parentheses: `classes [(name voice
//! rate 1mbit)]`. A number without a unit is accepted where `tc` accepts it (`quantum 1514`, or `limit 10240`
//! of a discipline that only counts packets). If a number could have two units, the unit is required.
//!
//! An entry that tc has ([`Entry::as_tc`]) is also read as people copy it from commands, from manual pages
//! and from `tc qdisc show`:
//! - A number without a unit is read as tc(8) reads it: in microseconds, in bit/s, or in the unit of the
//!   parameter (`x-bare` in its schema), as seconds in `sfq perturb 10`.
//! - Values follow another one without their names (`x-then`): `netem delay 100ms 10ms 25%`. A word before
//!   a value may select the parameter (`x-forms`): `loss gemodel 1% 10%`. A list of numbers needs no
//!   brackets, and may have labels (`x-labels`): `gemodel p 1% r 10%`.
//! - Phrases that change nothing are left out (`x-idle`): `split_gso` of `dualpi2`.
//! - So is what says where the discipline is: `tc qdisc add dev eth0 root handle 1: fq_codel`, or `qdisc
//!   fq_codel 8001: dev eth0 root refcnt 2`.
//!
//! A written spec has none of these forms, so it is read without the rules of tc.
//!
//! ```
//! use giveway_spec::{About, Catalogue, Entry};
//!
//! /// Rounds of request and grant.
//! #[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
//! #[serde(default)]
//! struct Islip {
//!     iterations: u32,
//! }
//! impl Default for Islip {
//!     fn default() -> Self {
//!         Islip { iterations: 1 }
//!     }
//! }
//!
//! giveway_spec::named_enum! {
//!     enum Spec { islip(Islip) }
//! }
//!
//! const ALL: &[Entry<Spec>] = &[Entry::of::<Islip>(
//!     "islip",
//!     "round robin at inputs and outputs",
//!     "//! Rounds of request and grant.",
//! )];
//! static CATALOGUE: Catalogue<Spec> = Catalogue::new(
//!     About {
//!         noun: "arbiter",
//!         definition: "Arbiter",
//!         description: "An arbiter with its parameters: \"islip iterations 4\"",
//!         example: "islip iterations 4",
//!         inside: None,
//!     },
//!     ALL,
//! );
//! giveway_spec::spec_type!(Spec, CATALOGUE);
//!
//! let spec: Spec = "islip iterations 4".parse().unwrap();
//! assert_eq!(spec.to_string(), "islip iterations 4");
//! let wrong = "islop".parse::<Spec>().unwrap_err();
//! assert_eq!(wrong.to_string(), "unknown arbiter \"islop\"; did you mean \"islip\"?");
//! ```

#![forbid(unsafe_code)]

mod catalogue;
mod error;
mod keys;
mod kind;
mod number;
pub mod parameters;
mod quantity;
mod read;
mod schema;
mod scope;
mod table;
mod word;
mod write;

pub use catalogue::{About, Catalogue, Entry, Family, SpecType, beginning, header_length, page};
pub use error::SpecError;
pub use keys::keys;
pub use number::Number;

/// Declares the enum of a registry: a variant for each entry, with its configuration.
///
/// Implements `name(&self)`, which is the name of the variant, `parameters(&self)`, which is all parameters
/// as a table, and `From` each configuration. No two variants may have the same configuration.
#[macro_export]
macro_rules! named_enum {
    ($(#[$about:meta])* $visible:vis enum $Named:ident { $($name:ident($Config:ty)),* $(,)? }) => {
        $(#[$about])*
        #[allow(non_camel_case_types, missing_docs)]
        #[derive(Clone, Debug, PartialEq)]
        $visible enum $Named {
            $($name($Config)),*
        }

        impl $Named {
            /// Name in the registry.
            $visible fn name(&self) -> &'static str {
                match self {
                    $($Named::$name(_) => stringify!($name)),*
                }
            }

            /// Parameters by name, as a table.
            $visible fn parameters(&self) -> $crate::outside::Value {
                let value = match self {
                    $($Named::$name(config) => $crate::outside::to_value(config)),*
                };
                value.expect("a configuration is plain data")
            }
        }

        $(
            impl ::std::convert::From<$Config> for $Named {
                fn from(config: $Config) -> Self {
                    $Named::$name(config)
                }
            }
        )*
    };
}

/// Implements the traits of a spec type with its catalogue: `FromStr` (with [`SpecError`]), `Display`,
/// `Serialize`, `Deserialize`, `JsonSchema` and [`SpecType`].
///
/// The type must have two functions, which [`named_enum!`] implements: `name(&self) -> &'static str`,
/// as in its entry, and `parameters(&self) -> serde_json::Value`, a table of all of them. The catalogue is a
/// `static`.
#[macro_export]
macro_rules! spec_type {
    ($spec:ty, $catalogue:path) => {
        impl $crate::SpecType for $spec {
            fn catalogue() -> &'static $crate::Catalogue<Self> {
                &$catalogue
            }
            fn name(&self) -> &'static str {
                <$spec>::name(self)
            }
            fn parameters(&self) -> $crate::outside::Value {
                <$spec>::parameters(self)
            }
        }

        impl ::std::str::FromStr for $spec {
            type Err = $crate::SpecError;

            fn from_str(text: &str) -> ::std::result::Result<Self, $crate::SpecError> {
                $catalogue.read(text)
            }
        }

        impl ::std::fmt::Display for $spec {
            /// Writes the name and the parameters that differ from their defaults.
            fn fmt(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                $catalogue.write(self, f)
            }
        }

        impl $crate::outside::Serialize for $spec {
            fn serialize<S: $crate::outside::Serializer>(
                &self,
                serializer: S,
            ) -> ::std::result::Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        impl<'de> $crate::outside::Deserialize<'de> for $spec {
            /// Parses text, or a table with a `kind`.
            fn deserialize<D: $crate::outside::Deserializer<'de>>(
                deserializer: D,
            ) -> ::std::result::Result<Self, D::Error> {
                $catalogue.deserialize(deserializer)
            }
        }

        impl $crate::outside::JsonSchema for $spec {
            fn schema_name() -> ::std::borrow::Cow<'static, str> {
                $catalogue.about.definition.into()
            }
            fn json_schema(generator: &mut $crate::outside::SchemaGenerator) -> $crate::outside::Schema {
                $catalogue.json_schema(generator)
            }
        }
    };
}

/// Names that [`spec_type!`] and [`named_enum!`] use, so that their callers need not depend on the crates.
#[doc(hidden)]
pub mod outside {
    pub use schemars::{JsonSchema, Schema, SchemaGenerator};
    pub use serde::{Deserialize, Deserializer, Serialize, Serializer};
    pub use serde_json::{Value, to_value};
}
