//! First in, first out, with a limit in packets: `fifo` in the words of tc.
//!
//! # Principles
//! - It is `fifo limit Np`: `pfifo limit 100` holds 100 packets.
//!
//! # Deviations
//! - The default limit is 1,000 packets, the usual transmit queue length of an interface; Linux takes the
//!   length of the interface.
//!
//! # Cost
//! - The same as `fifo`.
//!
//! # References
//! - Linux: tc-pfifo(8).

use giveway_qdisc::{Invalid, Limit, LinkContext, Packets, Properties};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Discipline, InLinux, fifo};

/// Parameters of `pfifo`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Capacity in packets.
    pub limit: Packets,
}

impl Default for Config {
    fn default() -> Config {
        Config { limit: Packets(1000) }
    }
}

impl Config {
    /// Its queue as a `fifo`.
    fn fifo(&self) -> fifo::Config {
        fifo::Config { limit: Limit::Packets(self.limit.0), ..fifo::Config::default() }
    }
}

impl Discipline for Config {
    const SUMMARY: &'static str = "first in, first out, with a limit in packets, as tc writes it";
    const IN_MAINLINE: bool = true;
    type Qdisc<P: 'static> = fifo::Fifo<P>;

    fn build<P: 'static>(&self, context: &LinkContext) -> Result<fifo::Fifo<P>, Invalid> {
        self.fifo().build(context)
    }

    fn in_linux(&self) -> Option<InLinux> {
        self.fifo().in_linux()
    }

    fn properties(&self, context: &LinkContext) -> Properties {
        self.fifo().properties(context)
    }

    fn variants() -> Vec<Config> {
        vec![Config { limit: Packets(5) }]
    }
}

#[cfg(test)]
mod tests {
    use crate::Spec;
    use crate::testing::events::build_error;
    use crate::testing::trace::{T1, trace};

    #[test]
    fn a_limit_is_written_as_in_tc() {
        for text in ["pfifo limit 4", "pfifo limit 4p"] {
            assert_eq!(trace(text, 1000, T1), trace("fifo limit 4p", 1000, T1));
        }
        assert_eq!("pfifo limit 4".parse::<Spec>().unwrap().to_string(), "pfifo limit 4p");
        let error = "pfifo limit 3000b".parse::<Spec>().unwrap_err().to_string();
        assert!(error.starts_with("limit: "), "{error}");
        assert_eq!(
            build_error("pfifo limit 0").to_string(),
            "limit: 0 packets are too few: write at least \"1p\""
        );
    }
}
