//! First in, first out, with a limit in bytes: `fifo` in the words of tc.
//!
//! # Principles
//! - It is `fifo limit Nb`: `bfifo limit 30000` holds 30,000 bytes.
//!
//! # Deviations
//! - Lengths are those that the backend counts, IP lengths in the simulator; tc counts the header of the
//!   link, too.
//! - The default limit is 1,000 packets of full size, as with the usual transmit queue length of an
//!   interface; Linux takes the length of the interface.
//!
//! # Cost
//! - The same as `fifo`.
//!
//! # References
//! - Linux: tc-bfifo(8).

use giveway_qdisc::{Bytes, Invalid, Limit, LinkContext, Properties};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Discipline, InLinux, fifo};

/// Parameters of `bfifo`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Capacity in bytes; by default 1,000 packets of the link's MTU.
    pub limit: Option<Bytes>,
}

/// The usual transmit queue length of an interface, in packets.
const QUEUE: u64 = 1000;

impl Config {
    /// Its queue as a `fifo`.
    fn fifo(&self, context: &LinkContext) -> fifo::Config {
        let bytes = self.limit.map_or(QUEUE * context.mtu.0, |limit| limit.0);
        fifo::Config { limit: Limit::Bytes(bytes), ..fifo::Config::default() }
    }
}

impl Discipline for Config {
    const SUMMARY: &'static str = "first in, first out, with a limit in bytes, as tc writes it";
    const IN_MAINLINE: bool = true;
    type Qdisc<P: 'static> = fifo::Fifo<P>;

    fn build<P: 'static>(&self, context: &LinkContext) -> Result<fifo::Fifo<P>, Invalid> {
        self.fifo(context).build(context)
    }

    fn in_linux(&self) -> Option<InLinux> {
        Some(InLinux::named("bfifo"))
    }

    fn properties(&self, context: &LinkContext) -> Properties {
        self.fifo(context).properties(context)
    }

    fn variants() -> Vec<Config> {
        vec![Config { limit: Some(Bytes(6000)) }]
    }
}

#[cfg(test)]
mod tests {
    use crate::Spec;
    use crate::testing::events::build_error;
    use crate::testing::trace::{T1, trace};

    #[test]
    fn a_limit_is_written_as_in_tc() {
        for text in ["bfifo limit 4000", "bfifo limit 4000b"] {
            assert_eq!(trace(text, 1000, T1), trace("fifo limit 4000b", 1000, T1));
        }
        assert_eq!("bfifo limit 30000".parse::<Spec>().unwrap().to_string(), "bfifo limit 30000b");
        let error = "bfifo limit 30p".parse::<Spec>().unwrap_err().to_string();
        assert!(error.starts_with("limit: "), "{error}");
        assert_eq!(
            build_error("bfifo limit 100").to_string(),
            "limit: 100b cannot hold one packet of 1500 bytes: write at least \"1500b\""
        );
    }
}
