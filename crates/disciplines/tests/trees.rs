//! Trees of classes: counters at every node, and the memory of large ones.

use giveway_disciplines::{ALL, Spec};
use giveway_qdisc::{
    Backlog, ClassState, Cx, FlowKey, LinkContext, Next, Outbox, Packet, Qdisc, Rate, Rng, Streams, Time,
};
use proptest::prelude::*;

/// Every variant of every discipline that has classes.
pub fn trees() -> Vec<Spec> {
    let variants = ALL.iter().flat_map(|entry| entry.default().variants());
    variants.filter(|spec| !classes(&*build(spec)).is_empty()).collect()
}

fn context() -> LinkContext {
    LinkContext::new(Rate::mbit(10), Streams::new(7).within("trees"))
}

fn build(spec: &Spec) -> Box<dyn Qdisc<u64>> {
    spec.build_numbered(&context()).expect("variants can be built")
}

fn classes(qdisc: &dyn Qdisc<u64>) -> Vec<ClassState> {
    let mut all = Vec::new();
    qdisc.classes(&mut |state| all.push(state));
    all
}

#[test]
fn disciplines_with_classes_are_known() {
    let mut names: Vec<&str> = trees().iter().map(|spec| spec.name()).collect();
    names.dedup();
    for name in ["prio", "ets", "wrr", "htb"] {
        assert!(names.contains(&name), "{name} has classes: {names:?}");
    }
}

/// Checks a tree: each path is below an earlier one, and no packet is lost between a class and those below.
fn check(spec: &Spec, qdisc: &dyn Qdisc<u64>, arrived: Backlog, sent: Backlog) {
    let all = classes(qdisc);
    for (at, state) in all.iter().enumerate() {
        let ClassState { path, level, arrived, sent, dropped, backlog, .. } = state;
        assert_eq!(path.matches('/').count() + 1, usize::from(*level), "{spec}: {path}");
        assert_eq!(*arrived, sent.plus(*dropped).plus(*backlog), "{spec}: {path}");
        if let Some((above, _)) = path.rsplit_once('/') {
            assert!(
                all[..at].iter().any(|earlier| earlier.path == above),
                "{spec}: {path} comes after {above}"
            );
        }
        let below =
            all.iter().filter(|other| other.path.rsplit_once('/').is_some_and(|(above, _)| above == path));
        let below: Vec<&ClassState> = below.collect();
        // A leaf may have a discipline with classes, which has its own packets.
        if !below.is_empty() && !state.leaf {
            let sum = |of: fn(&ClassState) -> Backlog| {
                below.iter().fold(Backlog::ZERO, |sum, state| sum.plus(of(state)))
            };
            assert_eq!(*arrived, sum(|state| state.arrived), "{spec}: {path}");
            assert_eq!(*sent, sum(|state| state.sent), "{spec}: {path}");
            assert_eq!(*backlog, sum(|state| state.backlog), "{spec}: {path}");
        }
    }
    // Packets without a class are in none.
    let top = |of: fn(&ClassState) -> Backlog| {
        all.iter().filter(|state| state.level == 1).fold(Backlog::ZERO, |sum, state| sum.plus(of(state)))
    };
    assert!(top(|state| state.arrived).packets <= arrived.packets, "{spec}");
    assert!(top(|state| state.sent).packets <= sent.packets, "{spec}");
    assert!(top(|state| state.backlog).packets <= qdisc.backlog().packets, "{spec}");
    let direct = arrived.packets - top(|state| state.arrived).packets;
    assert!(top(|state| state.sent).packets + direct >= sent.packets, "{spec}");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    /// At every class, what arrived was sent or dropped or is queued, and a class has the sum of those below
    /// it.
    #[test]
    fn packets_are_conserved_at_every_class(
        steps in prop::collection::vec((any::<bool>(), 40u32..1500, 0u16..16, 0u16..6, 0u64..3000), 1..300),
    ) {
        for spec in trees() {
            let (mut qdisc, mut out, mut now) = (build(&spec), Outbox::default(), Time::ms(1));
            let (mut arrived, mut sent) = (Backlog::ZERO, Backlog::ZERO);
            for (arrives, bytes, class, to, wait) in &steps {
                now += giveway_qdisc::Span::us(*wait);
                if *arrives {
                    let mut pkt = Packet::new(FlowKey(u64::from(*class)), *bytes, 0);
                    (pkt.meta.class, pkt.meta.to, pkt.meta.arrived) = (*class, *to, now);
                    arrived.add(*bytes);
                    qdisc.enqueue(pkt, &mut Cx::new(now, &mut out));
                } else if let Next::Packet(pkt) = qdisc.dequeue(&mut Cx::new(now, &mut out)) {
                    sent.add(pkt.bytes());
                }
                out.dropped.clear();
                out.marked.clear();
            }
            check(&spec, &*qdisc, arrived, sent);
        }
    }
}

/// Towers with as many homes each, 316 * 317 = 100,172 leaves. A filter of a tower is joined with one of its
/// homes.
const LARGE: &str = "htb classes [(name net rate 10gbit classes [(name tower[1-316] rate 30mbit ceil 1gbit match \
                     [(from [0-315])] classes [(name home[1-100172] rate 100kbit ceil 50mbit match \
                     [(to [0-316])])])])]";

/// A tree of 100,000 classes takes at most 64 MB without packets, and each class gets its packets.
#[test]
fn a_large_tree_fits_into_64_megabytes() {
    let spec: Spec = LARGE.parse().unwrap();
    let context = LinkContext::new(Rate::gbit(10), Streams::new(1));
    let before = giveway_counting::held();
    let mut qdisc = spec.build_numbered(&context).unwrap();
    let held = giveway_counting::held() - before;
    let all = classes(&*qdisc);
    assert_eq!(all.len(), 1 + 316 + 100_172);
    println!("{held} bytes, {} for each class", held as usize / all.len());
    assert!(held <= 64_000_000, "{held} bytes");
    let (mut rng, mut out) = (Rng::clone(&Streams::new(2).rng()), Outbox::default());
    let mut expected = std::collections::BTreeMap::new();
    for _ in 0..1000 {
        let (from, to) = (rng.below(316) as u16, rng.below(317) as u16);
        let mut pkt = Packet::new(FlowKey(1), 500, 0);
        (pkt.meta.from, pkt.meta.to) = (from, to);
        qdisc.enqueue(pkt, &mut Cx::new(Time::ZERO, &mut out));
        let home = usize::from(from) * 317 + usize::from(to) + 1;
        *expected.entry(format!("net/tower{}/home{home}", from + 1)).or_insert(0) += 1;
    }
    let busy = classes(&*qdisc).into_iter().filter(|state| state.leaf && state.arrived.packets > 0);
    assert_eq!(
        busy.map(|state| (state.path, state.arrived.packets)).collect::<Vec<_>>().len(),
        expected.len()
    );
    let of_class =
        |path: &str| classes(&*qdisc).into_iter().find(|state| state.path == path).unwrap().arrived.packets;
    let (path, packets) = expected.iter().next().unwrap();
    assert_eq!(of_class(path), *packets, "{path}");
}
