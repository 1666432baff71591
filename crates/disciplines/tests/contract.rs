//! Every registered discipline keeps the contract, in all its variants.

use giveway_disciplines::Spec;
use giveway_qdisc::contract::{Op, Violation, drive};
use giveway_qdisc::{Backlog, Cx, Downstream, LinkContext, Next, Packet, Qdisc, Rate, Streams};
use proptest::prelude::*;

fn context() -> LinkContext {
    // Some downstream links are known: those of the routes of the contract's flows.
    let links = [
        ((0, 1), Rate::mbit(30)),
        ((0, 2), Rate::mbit(10)),
        ((1, 1), Rate::kbit(70)),
        ((1, 2), Rate::gbit(1)),
    ];
    let downstream = Downstream::new(0, links);
    LinkContext { downstream, ..LinkContext::new(Rate::mbit(10), Streams::new(42).within("contract")) }
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        8 => (any::<u8>(), any::<u16>(), any::<u8>(), any::<bool>())
            .prop_map(|(flow, bytes, class, ecn)| Op::Enqueue { flow, bytes, class, ecn }),
        1 => (any::<u8>(), any::<u16>(), any::<u8>())
            .prop_map(|(flow, bytes, class)| Op::EnqueueAny { flow, bytes, class }),
        5 => Just(Op::Dequeue),
        2 => any::<u16>().prop_map(Op::Wait),
        // Minutes and hours. Rare, since most disciplines forget all flows in this time.
        1 => (0..20u16, any::<u16>()).prop_map(|(dice, s)| if dice < 3 { Op::Pause(s) } else { Op::Wait(s) }),
        2 => Just(Op::WaitUntilAsked),
        1 => any::<u8>().prop_map(Op::Rate),
        // Rare, so that queues become long between resets.
        1 => (0..20u8).prop_map(|dice| if dice == 0 { Op::Reset } else { Op::Dequeue }),
    ]
}

/// A discipline that is informed of one rate before each call.
struct Informed<Q> {
    inner: Q,
    rate: Rate,
}

impl<Q: Qdisc<u64>> Qdisc<u64> for Informed<Q> {
    fn enqueue(&mut self, pkt: Packet<u64>, cx: &mut Cx<'_, u64>) {
        self.inner.rate_changed(self.rate, cx.now());
        self.inner.enqueue(pkt, cx);
    }
    fn dequeue(&mut self, cx: &mut Cx<'_, u64>) -> Next<u64> {
        self.inner.rate_changed(self.rate, cx.now());
        self.inner.dequeue(cx)
    }
    fn backlog(&self) -> Backlog {
        self.inner.backlog()
    }
    fn reset(&mut self, cx: &mut Cx<'_, u64>) {
        self.inner.reset(cx);
    }
}

fn every_variant(mut test: impl FnMut(&Spec) -> Result<(), Violation>) {
    for entry in crate::tested() {
        for spec in entry.default().variants() {
            if let Err(violation) = test(&spec) {
                panic!("{spec}: {}", violation.0);
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 192, ..ProptestConfig::default() })]

    /// Conservation, exact backlog, order within flows, the limit, wake-ups, work conservation and reset hold
    /// after every operation, for every discipline.
    #[test]
    fn the_contract_holds(ops in prop::collection::vec(op(), 1..300)) {
        every_variant(|spec| {
            let mut qdisc = spec.build_numbered(&context()).expect("variants can be built");
            drive(&mut qdisc, spec.properties(&context()), &ops).map(drop)
        });
    }

    /// A discipline that is informed of the rate for which it was built decides as without that.
    #[test]
    fn the_same_rate_changes_nothing(ops in prop::collection::vec(op(), 1..200)) {
        let ops: Vec<Op> = ops.into_iter().filter(|op| !matches!(op, Op::Rate(_))).collect();
        every_variant(|spec| {
            let build = || spec.build_numbered(&context()).expect("variants can be built");
            let uninformed = drive(&mut build(), spec.properties(&context()), &ops)?;
            let mut informed = Informed { inner: build(), rate: context().rate };
            let informed = drive(&mut informed, spec.properties(&context()), &ops)?;
            if informed == uninformed { Ok(()) } else { Err(Violation("the decisions differ".into())) }
        });
    }

    /// Two runs with the same seed and the same operations have the same trace.
    #[test]
    fn runs_are_reproducible(ops in prop::collection::vec(op(), 1..300)) {
        every_variant(|spec| {
            let run = || {
                let mut qdisc = spec.build_numbered(&context()).expect("variants can be built");
                drive(&mut qdisc, spec.properties(&context()), &ops)
            };
            if run()? == run()? { Ok(()) } else { Err(Violation("two runs differ".into())) }
        });
    }

    /// A written spec can be parsed, with the same result.
    #[test]
    fn specs_are_written_and_read_again(pick in any::<prop::sample::Index>()) {
        let all: Vec<Spec> = crate::tested().into_iter().flat_map(|entry| entry.default().variants()).collect();
        let spec = pick.get(&all);
        prop_assert_eq!(&spec.to_string().parse::<Spec>().unwrap(), spec);
    }
}
