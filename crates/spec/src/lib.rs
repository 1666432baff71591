//! Spec syntax: a name with parameters, written as for `tc`: `fq_codel limit 10240p target 5ms`, `islip
//! iterations 4`.
//!
//! A registry (queue disciplines, arbiters of a crossbar) is a [`Catalogue`] of [`Entry`]s over one type, an
//! enum with a variant for each entry. The catalogue reads and writes specs as text, reads them from a table
//! with a `kind`, and provides the JSON Schema. The parameters and their types come from the schema of each
//! configuration. [`spec_type!`] implements the traits for the type.
//!
//! The grammar: the name, then parameter names, each followed by a value. A switch is written alone (`ecn`),
//! negated (`noecn`), or with `on` or `off`. A list is in brackets: `[1 2 3]`. A spec inside another is in
//! parentheses, `tbf rate 1mbit child (fq_codel limit 100p)`, and a list of specs in brackets: `[(fifo) (fifo
//! limit 10p)]`. A number without a unit is accepted where `tc` accepts it (`quantum 1514`, or `limit 10240`
//! of a discipline that only counts packets). If a number could have two units, the unit is required.
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
//! #[derive(Clone, Debug, PartialEq)]
//! enum Spec {
//!     Islip(Islip),
//! }
//! impl Spec {
//!     fn name(&self) -> &'static str {
//!         match self {
//!             Spec::Islip(_) => "islip",
//!         }
//!     }
//!     fn parameters(&self) -> serde_json::Value {
//!         match self {
//!             Spec::Islip(config) => serde_json::to_value(config).expect("a configuration is plain data"),
//!         }
//!     }
//! }
//!
//! const ALL: &[Entry<Spec>] = &[Entry {
//!     name: "islip",
//!     family: None,
//!     summary: "round robin at inputs and outputs",
//!     source: "//! Rounds of request and grant.",
//!     schema: || schemars::schema_for!(Islip),
//!     schema_within: <Islip as schemars::JsonSchema>::json_schema,
//!     default: || Spec::Islip(Islip::default()),
//!     from_json: |value| serde_json::from_value(value).map(Spec::Islip),
//!     variants: || vec![Spec::Islip(Islip::default())],
//! }];
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
mod kind;
pub mod parameters;
mod quantity;
mod read;
mod schema;
mod table;
mod word;
mod write;

pub use catalogue::{About, Catalogue, Entry, Family, SpecType};
pub use error::SpecError;

/// Implements the traits of a spec type with its catalogue: `FromStr` (with [`SpecError`]), `Display`,
/// `Serialize`, `Deserialize`, `JsonSchema` and [`SpecType`].
///
/// The type has two functions of its own: `name(&self) -> &'static str`, as in its entry, and
/// `parameters(&self) -> serde_json::Value`, a table of all of them. The catalogue is a `static`.
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

/// Names that [`spec_type!`] uses, so that its callers need not depend on their crates.
#[doc(hidden)]
pub mod outside {
    pub use schemars::{JsonSchema, Schema, SchemaGenerator};
    pub use serde::{Deserialize, Deserializer, Serialize, Serializer};
    pub use serde_json::Value;
}
