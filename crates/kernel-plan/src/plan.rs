//! Turns the text of a discipline into the parameters of its BPF program.
//!
//! A kernel discipline has the parameters of the Rust discipline that makes the same decisions, in the same
//! syntax. A parameter that the kernel's discipline lacks is an error with a reason; it is never ignored.

use giveway_disciplines::{Spec, bsq, drr, fifo};
use giveway_qdisc::blocks::{Inner, Measure, ServiceOrder};
use giveway_qdisc::{Bytes, Limit, LinkContext, Rate, Streams};

use crate::PlanError;
use crate::route::Route;

/// Declares [`Kind`] from one list: for each discipline its name in the kernel and the name of the Rust
/// discipline that makes the same decisions.
macro_rules! kinds {
    ($($(#[$doc:meta])* $kind:ident: $name:literal, $discipline:literal;)*) => {
        /// A discipline that exists for the kernel, in `kernel/NAME.bpf.c`.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Kind {
            $($(#[$doc])* $kind,)*
        }

        impl Kind {
            /// All kinds.
            pub const ALL: [Kind; [$($name),*].len()] = [$(Kind::$kind),*];

            /// Name in `giveway kernel load NAME`.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Kind::$kind => $name,)*
                }
            }

            /// Name of the Rust discipline that makes the same decisions.
            pub const fn discipline(self) -> &'static str {
                match self {
                    $(Kind::$kind => $discipline,)*
                }
            }
        }
    };
}

// The list of the kernel's disciplines. `tests/lists.rs` compares all places that repeat it.
kinds! {
    /// First in, first out.
    Fifo: "fifo", "fifo";
    /// Deficit round robin.
    Drr: "drr", "drr";
    /// Early flow discard.
    Efd: "efd", "efd";
    /// Timestamp round robin, corrected.
    Trr: "trr", "trr_sound";
    /// Burst shaping queueing.
    Bsq: "bsq", "bsq";
}

/// Parameters of the BPF program: `struct params` of `kernel/giveway.h`, in its order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Params {
    /// Rate of the shaper, in bit/s; 0 for no shaper.
    pub rate: u64,
    /// The limit, if it is in packets.
    pub limit_packets: u64,
    /// The limit, if it is in bytes.
    pub limit_bytes: u64,
    /// Threshold of EFD, if it is in packets: a flow with more has low priority.
    pub threshold_packets: u64,
    /// Threshold of EFD, if it is in bytes.
    pub threshold_bytes: u64,
    /// 1 if the threshold is in bytes, 0 if it is in packets.
    pub threshold_in_bytes: u64,
    /// Bytes per round and flow.
    pub quantum: u64,
    /// 1 if the oldest packet is dropped when the queue is full, 0 for the newest.
    pub drop_head: u64,
    /// Largest number of reservations.
    pub flows: u64,
    /// Slots of the calendar.
    pub slots: u64,
    /// Duration of a slot, in picoseconds.
    pub width_ps: u64,
    /// Hops after the next router that have sub-queues.
    pub level: u64,
    /// 1 if the largest sub-queue is the one with the most packets, 0 for the most bytes.
    pub measure_packets: u64,
}

impl Params {
    /// The parameters in the order of the C struct, with their names there.
    pub fn words(&self) -> [(&'static str, u64); 13] {
        [
            ("rate", self.rate),
            ("limit_packets", self.limit_packets),
            ("limit_bytes", self.limit_bytes),
            ("threshold_packets", self.threshold_packets),
            ("threshold_bytes", self.threshold_bytes),
            ("threshold_in_bytes", self.threshold_in_bytes),
            ("quantum", self.quantum),
            ("drop_head", self.drop_head),
            ("flows", self.flows),
            ("slots", self.slots),
            ("width_ps", self.width_ps),
            ("level", self.level),
            ("measure_packets", self.measure_packets),
        ]
    }
}

/// A discipline for the kernel, checked.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// The kernel's discipline.
    pub kind: Kind,
    /// The Rust discipline that makes the same decisions.
    pub spec: Spec,
    /// Parameters of the BPF program.
    pub params: Params,
    /// Number of packets and flows for which it needs memory, plus one: a power of two.
    pub room: u32,
}

/// Bounds of [`Plan::room`].
const ROOM: std::ops::RangeInclusive<u64> = 1 << 12..=1 << 17;
/// Largest number of slots of a calendar in the kernel.
const SLOTS: u32 = 4096;
/// Upper bound of rates, in bit/s: below it the BPF program can compute transmission times in 64 bits.
const FASTEST: u64 = 1 << 44;
/// Upper bound of the width of a slot, in picoseconds: in ticks of 2^-20 ps it must be below 2^63.
const WIDEST_PS: u64 = 1 << 43;

impl Plan {
    /// Parses a discipline, for example "efd limit 300p threshold 20p". `mtu` is the largest packet as the
    /// kernel counts it, with the header of its link.
    ///
    /// # Errors
    /// If the text is not a discipline of the kernel's, or a parameter is invalid or missing in the kernel's
    /// discipline.
    pub fn new(text: &str, rate: Option<Rate>, limit: Option<Limit>, mtu: u64) -> Result<Plan, PlanError> {
        let text = text.trim();
        let (word, rest) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
        let Some(kind) = Kind::ALL.into_iter().find(|kind| [kind.name(), kind.discipline()].contains(&word))
        else {
            let known = Kind::ALL.map(Kind::name).join(", ");
            return Err(PlanError::new(format!(
                "the kernel has no discipline {word:?} of Giveway: choose one of {known}"
            )));
        };
        let limit =
            limit.map(|limit| format!(" limit {limit}").replace(" packets", "p").replace(" bytes", "b"));
        let text = format!("{} {rest}{}", kind.discipline(), limit.unwrap_or_default());
        let spec: Spec = text.trim().parse().map_err(|error| PlanError::new(format!("{error}")))?;
        if kind == Kind::Trr && rate.is_none() {
            let what = "trr needs the rate of its link: write --rate, for example --rate 10mbit";
            return Err(PlanError::new(what));
        }
        // Without a rate no parameter below depends on the rate, but a context must have one.
        let context = LinkContext {
            mtu: Bytes(mtu),
            ..LinkContext::new(rate.unwrap_or(Rate::gbit(1)), Streams::new(1))
        };
        spec.build_numbered(&context).map_err(|invalid| PlanError::new(format!("{spec}: {invalid}")))?;
        let mut params = Params { rate: rate.map_or(0, Rate::as_bit), ..Params::default() };
        if params.rate >= FASTEST {
            return Err(PlanError::new(format!(
                "{} is too fast for the arithmetic of the kernel's disciplines",
                context.rate
            )));
        }
        let mut flows = 0;
        let limit = match &spec {
            Spec::fifo(config) => {
                params.drop_head = u64::from(config.drop == fifo::Victim::Head);
                config.limit
            }
            Spec::drr(config) => {
                only(config.quanta.is_empty(), "quanta", "all flows have the same quantum")?;
                only(
                    config.drop == drr::Victim::Longest,
                    "drop",
                    "the newest packet of the longest queue is dropped",
                )?;
                only(config.key == drr::Key::Flow, "key", "a flow is a connection")?;
                only(config.buckets == 0, "buckets", "each flow has a separate queue")?;
                params.quantum = config.quantum.unwrap_or(context.mtu).0;
                config.limit
            }
            Spec::efd(config) => {
                only(config.count_first, "nocount_first", "a packet is counted before it is compared")?;
                match config.threshold {
                    Limit::Packets(most) => params.threshold_packets = most,
                    Limit::Bytes(most) => (params.threshold_in_bytes, params.threshold_bytes) = (1, most),
                }
                config.limit
            }
            Spec::trr_sound(config) => {
                let width = config.width.unwrap_or_else(|| context.rate.time_for(context.mtu.0)).as_ps();
                only(config.slots <= SLOTS, "slots", &format!("there are at most {SLOTS}"))?;
                only(width < WIDEST_PS, "width", "a slot is at most 8 s")?;
                flows = u64::from(config.flows).min(ROOM.end() / 8);
                (params.slots, params.width_ps) = (config.slots.into(), width);
                (params.flows, params.quantum) = (flows, mtu);
                config.limit
            }
            Spec::bsq(config) => {
                let most = Route::MAX;
                only(
                    usize::from(config.level) <= most,
                    "level",
                    &format!("a route has at most {most} hops"),
                )?;
                only(config.order == ServiceOrder::Corrected, "order", "an empty sub-queue gets no turn")?;
                only(config.inner == Inner::Smooth, "inner", "a turn is a packet")?;
                only(!config.descend, "descend", "the largest sub-queue of one node is the victim")?;
                let drop = config.drop;
                only(
                    matches!(drop, bsq::Victim::Head | bsq::Victim::Tail),
                    "drop",
                    "the head of the largest sub-queue is dropped, or the arrival (drop tail)",
                )?;
                flows = u64::from(config.branches);
                only(flows <= ROOM.end() / 8, "branches", &format!("there are at most {}", ROOM.end() / 8))?;
                params.level = config.level.into();
                params.drop_head = u64::from(drop == bsq::Victim::Head);
                params.measure_packets = u64::from(config.measure == Measure::Packets);
                config.limit
            }
            _ => unreachable!("each kind has an arm"),
        };
        let packets = match limit {
            Limit::Packets(most) => {
                params.limit_packets = most;
                most
            }
            Limit::Bytes(most) => {
                params.limit_bytes = most;
                most / 60
            }
        };
        // One for the arrival, which is stored while the victim is chosen; one because number 0 means none.
        let room = packets.max(flows).saturating_add(2).max(*ROOM.start()).checked_next_power_of_two();
        let Some(room) = room.filter(|room| ROOM.contains(room)) else {
            let most = ROOM.end() - 2;
            let what = format!(
                "limit {limit} is up to {packets} packets: the kernel's disciplines store at most {most}"
            );
            return Err(PlanError::new(what));
        };
        Ok(Plan { kind, spec, params, room: room as u32 })
    }

    /// The discipline with its parameters, under the kernel's name.
    pub fn text(&self) -> String {
        self.spec.to_string().replacen(self.kind.discipline(), self.kind.name(), 1)
    }

    /// The routes as words for the BPF program, with their marks.
    ///
    /// # Errors
    /// If the discipline does not use routes, or its tree is too small for them.
    pub fn routes(&self, routes: &[(u32, Route)]) -> Result<Vec<(u32, u64)>, PlanError> {
        let Spec::bsq(config) = &self.spec else {
            return match routes {
                [] => Ok(Vec::new()),
                _ => Err(PlanError::new("only bsq uses routes: leave --hops out, or load bsq")),
            };
        };
        Route::check(routes, config.level.into(), config.branches)?;
        Ok(routes.iter().map(|(mark, route)| (*mark, route.word())).collect())
    }
}

fn only(holds: bool, parameter: &str, what: &str) -> Result<(), PlanError> {
    if holds {
        return Ok(());
    }
    Err(PlanError::new(format!("{parameter}: in the kernel {what}; leave it out")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use giveway_qdisc::DropReason;

    const HEADER: &str = include_str!("../../../kernel/giveway.h");

    fn plan(text: &str) -> Plan {
        Plan::new(text, Some(Rate::mbit(10)), None, 1514).unwrap()
    }

    fn refusal(text: &str) -> String {
        Plan::new(text, Some(Rate::mbit(10)), None, 1514).unwrap_err().to_string()
    }

    /// Names of a C struct's fields, in their order.
    fn fields(of: &str) -> Vec<String> {
        let body = HEADER.split_once(&format!("struct {of} {{\n")).expect("the header has the struct").1;
        let lines = body.split_once("\n};").expect("the struct ends").0.lines();
        let declared = lines.filter_map(|line| line.trim().strip_prefix("u64 ")?.split(';').next());
        declared.flat_map(|names| names.split(',').map(|name| name.trim().to_owned())).collect()
    }

    #[test]
    fn parameters_are_in_the_order_of_the_header() {
        assert_eq!(Params::default().words().map(|(name, _)| name.to_owned()).to_vec(), fields("params"));
    }

    #[test]
    fn reasons_for_drops_have_the_names_of_the_rust_code() {
        let counters = fields("counters");
        let first = counters.iter().position(|name| name == "overlimit").unwrap();
        let names = DropReason::ALL.map(DropReason::name);
        // The reasons that follow occur only in simulations.
        assert_eq!(counters[first..first + 9], names[..9]);
    }

    #[test]
    fn parameters_are_those_of_the_rust_discipline() {
        let efd = plan("efd limit 200p threshold 30kb").params;
        assert_eq!((efd.limit_packets, efd.threshold_in_bytes, efd.threshold_bytes), (200, 1, 30_720));
        let drr = plan("drr limit 100kb").params;
        assert_eq!((drr.limit_packets, drr.limit_bytes, drr.quantum), (0, 102_400, 1514));
        assert_eq!(plan("fifo drop head").params.drop_head, 1);
        // 1,514 bytes at 10 Mbit/s.
        let trr = plan("trr limit 500p");
        assert_eq!(
            (trr.params.width_ps, trr.params.slots, trr.spec.name()),
            (1_211_200_000, 4096, "trr_sound")
        );
        assert_eq!(trr.text(), "trr limit 500p");
    }

    #[test]
    fn memory_suffices_for_the_limit_and_the_arrival() {
        assert_eq!(
            ["fifo", "fifo limit 4094p", "fifo limit 4095p"].map(|text| plan(text).room),
            [4096, 4096, 8192]
        );
        assert!(refusal("fifo limit 200000p").contains("at most 131070"));
    }

    #[test]
    fn only_bsq_has_routes() {
        let route = [(7, "4.5".parse().unwrap())];
        assert_eq!(plan("bsq level 2 limit 9p").routes(&route).unwrap(), [(7, 0x6_0005)]);
        assert!(plan("bsq branches 2").routes(&route).unwrap_err().to_string().contains("branches 3"));
        assert!(plan("efd").routes(&route).is_err() && plan("efd").routes(&[]).is_ok());
        let bsq = plan("bsq drop tail measure packets").params;
        assert_eq!((bsq.level, bsq.drop_head, bsq.measure_packets), (1, 0, 1));
    }

    #[test]
    fn an_explicit_limit_overrides_that_of_the_text() {
        let plan = Plan::new("efd threshold 10p", None, Some(Limit::Packets(50)), 1514).unwrap();
        assert_eq!((plan.params.limit_packets, plan.params.rate), (50, 0));
    }

    #[test]
    fn parameters_that_the_kernel_lacks_are_refused() {
        assert!(refusal("codel").contains("fifo, drr, efd, trr, bsq"));
        assert!(refusal("drr buckets 10").contains("leave it out"));
        assert!(refusal("efd limit 0p").contains("write at least"));
        assert!(refusal("bsq level 5").contains("at most 4 hops"));
        assert!(refusal("bsq order fifo").contains("leave it out"));
        assert!(refusal("trr slots 5000").contains("at most 4096"));
        let without_a_rate = Plan::new("trr", None, None, 1514).unwrap_err().to_string();
        assert!(without_a_rate.contains("--rate 10mbit"), "{without_a_rate}");
    }
}
