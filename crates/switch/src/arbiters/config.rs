//! Declares `Config` for arbiters with the same parameters.
//!
//! Each arbiter keeps its own type, because [`ArbiterConfig`](crate::arbiter::ArbiterConfig) attaches its
//! summary and its defaults to the type.

/// Declares `Config`, documented by the given text: `none` without parameters, `iterations` with the number
/// of iterations per slot, `ties` with the choice among equally good matchings, `weight` with the weight of a
/// pair as well.
macro_rules! config {
    (none, $about:literal) => {
        #[doc = $about]
        #[derive(Clone, Debug, Default, PartialEq, ::serde::Serialize, ::serde::Deserialize, ::schemars::JsonSchema)]
        #[serde(default, deny_unknown_fields)]
        pub struct Config {}
    };
    (iterations, $about:literal) => {
        #[doc = $about]
        #[derive(Clone, Debug, PartialEq, ::serde::Serialize, ::serde::Deserialize, ::schemars::JsonSchema)]
        #[serde(default, deny_unknown_fields)]
        pub struct Config {
            /// Iterations per slot.
            pub iterations: u32,
        }

        impl Default for Config {
            fn default() -> Config {
                Config { iterations: 4 }
            }
        }
    };
    (ties, $about:literal) => {
        #[doc = $about]
        #[derive(Clone, Debug, Default, PartialEq, ::serde::Serialize, ::serde::Deserialize, ::schemars::JsonSchema)]
        #[serde(default, deny_unknown_fields)]
        pub struct Config {
            /// The choice among several maximum matchings.
            pub ties: $crate::matching::Ties,
        }
    };
}

pub(super) use config;
