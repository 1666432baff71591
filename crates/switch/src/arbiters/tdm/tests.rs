use super::super::hand::{Hand, context};
use super::decomposition::{permutations, slots};
use super::*;

#[test]
fn every_pair_has_its_slot() {
    let mut tdm: Box<dyn Arbiter<1>> = Config::default().arbiter(&context(3)).unwrap();
    let all = Hand::cells([[1; 3]; 3]);
    for (slot, pairs) in
        [(0, "0-0 1-1 2-2"), (1, "0-1 1-2 2-0"), (2, "0-2 1-0 2-1"), (3, "0-0 1-1 2-2"), (7, "0-1 1-2 2-0")]
    {
        assert_eq!(all.clone().at(slot).pairs(&mut *tdm), pairs, "slot {slot}");
    }
    // A pair with nothing to send, or with a busy port, loses its slot.
    let some = Hand::cells([[0, 1, 1], [1, 1, 0], [1, 1, 1]]);
    assert_eq!(some.clone().at(1).pairs(&mut *tdm), "0-1 2-0");
    assert_eq!(some.free(&[0, 2], &[1, 2]).at(1).pairs(&mut *tdm), "0-1");
}

/// Two permutations, the first with five slots of seven: its slots are spread, not in a row.
#[test]
fn permutations_take_turns_by_weight() {
    let mut frame = Frame::new(vec![(vec![1, 0, 2], 5), (vec![0, 2, 1], 2)]);
    // Credits before each turn: 5 2, 3 4, 8 -1, 6 1, 4 3, 2 5, 7 0.
    assert_eq!(frame.order, [0, 1, 0, 0, 0, 1, 0]);
    let all = Hand::cells([[1; 3]; 3]);
    assert_eq!(all.clone().at(0).pairs(&mut frame), "0-1 1-0 2-2");
    assert_eq!(all.clone().at(1).pairs(&mut frame), "0-0 1-2 2-1");
    assert_eq!(all.at(7 + 5).pairs(&mut frame), "0-0 1-2 2-1");
}

/// Share of the slots of each pair in a schedule, row by row.
fn served(ports: usize, schedule: impl IntoIterator<Item = (Vec<usize>, f64)>) -> Vec<f64> {
    let mut served = vec![0.0; ports * ports];
    for (outputs, share) in schedule {
        for (input, output) in outputs.into_iter().enumerate() {
            served[input * ports + output] += share;
        }
    }
    served
}

fn own(ports: usize, rates: &Rates) -> (Vec<f64>, usize, u32) {
    let weighted = permutations::<1>(ports, slots(ports, rates));
    let frame: u32 = weighted.iter().map(|(_, weight)| weight).sum();
    let count = weighted.len();
    let share = |(outputs, weight): (Vec<u16>, u32)| {
        let mut seen = outputs.clone();
        seen.sort_unstable();
        assert!(seen.iter().copied().eq(0..ports as u16), "{outputs:?} is not a permutation");
        (outputs.into_iter().map(usize::from).collect(), f64::from(weight) / f64::from(frame))
    };
    (served(ports, weighted.into_iter().map(share)), count, frame)
}

/// Against the decomposition of `theory`, which counts in 10^-12: where a frame has the rates exactly, both
/// serve every pair alike; otherwise this one serves at most a 65th less than it should.
#[test]
fn pairs_are_served_at_their_rates() {
    use Pattern::{Diagonal, LogDiagonal, Matrix, QuasiDiagonal, Unbalanced, Uniform};
    let two = vec![vec![0.5, 0.3, 0.2], vec![0.2, 0.5, 0.3], vec![0.3, 0.2, 0.5]];
    let one = vec![vec![0.7, 0.1, 0.2], vec![0.1, 0.6, 0.3], vec![0.2, 0.3, 0.5]];
    for (pattern, ports, frame) in [
        (Uniform, 16, Some(16)),
        (Diagonal, 16, Some(3)),
        (LogDiagonal, 8, Some(255)),
        (LogDiagonal, 16, None),
        (QuasiDiagonal, 16, Some(30)),
        (Unbalanced(0.5), 16, Some(32)),
        (Unbalanced(0.123), 16, None),
        (Matrix(two), 3, Some(10)),
        (Matrix(one), 3, Some(10)),
    ] {
        let rates = Rates::new(&pattern, ports, 1.0).unwrap();
        let rows = (0..ports).map(|input| rates.row(input).to_vec()).collect();
        let matrix = giveway_theory::crossbar::rates::RateMatrix::new(rows).unwrap();
        let schedule = matrix.schedule().unwrap();
        let theirs = served(ports, schedule.into_iter().map(|each| (each.outputs, each.share)));
        let (ours, count, slots) = own(ports, &rates);
        assert!(count <= ports * ports - 2 * ports + 2, "{pattern:?}: {count} permutations");
        if let Some(frame) = frame {
            assert_eq!(slots, frame, "{pattern:?}");
        }
        for (pair, (ours, theirs)) in ours.iter().zip(&theirs).enumerate() {
            if frame.is_some() {
                assert!((ours - theirs).abs() < 1e-9, "{pattern:?}, pair {pair}: {ours}, not {theirs}");
            } else {
                assert!(*ours >= theirs * 64.0 / 65.0, "{pattern:?}, pair {pair}: {ours} of {theirs}");
            }
        }
    }
}

/// No rotation fits here, so perfect matchings have all slots.
#[test]
fn matchings_follow_rotations() {
    let swapped = Config {
        pattern: PatternName::Matrix,
        rates: vec![0.0, 1.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 1.0],
        ..Config::default()
    };
    let mut tdm: Box<dyn Arbiter<1>> = swapped.arbiter(&context(3)).unwrap();
    assert_eq!(Hand::cells([[1; 3]; 3]).at(5).pairs(&mut *tdm), "0-1 1-0 2-2");
    // A row or column with less than others is filled up, and every pair is still served in full.
    let rates = Rates::new(&Pattern::Matrix(vec![vec![0.5, 0.25], vec![0.0, 0.25]]), 2, 1.0).unwrap();
    let (served, ..) = own(2, &rates);
    assert!(served.iter().zip([0.5, 0.25, 0.0, 0.25]).all(|(has, wants)| *has >= wants), "{served:?}");
}

#[test]
fn contradictory_parameters_are_refused() {
    let refused = |config: Config| match config.arbiter::<1>(&context(3)) {
        Ok(_) => "nothing".to_owned(),
        Err(invalid) => invalid.to_string(),
    };
    let with = |pattern, share, rates: &[f64]| Config { pattern, share, rates: rates.to_vec() };
    assert!(refused(with(PatternName::Diagonal, Some(0.5), &[])).contains("pattern unbalanced"));
    assert!(refused(with(PatternName::Unbalanced, None, &[])).contains("share 0.5"));
    assert!(refused(with(PatternName::Unbalanced, Some(1.5), &[])).contains("from 0 to 1"));
    assert!(refused(with(PatternName::Uniform, None, &[0.1; 9])).contains("pattern matrix"));
    assert!(refused(with(PatternName::Matrix, None, &[0.1; 4])).contains("write 3 for each of 3 inputs"));
    assert!(refused(with(PatternName::Matrix, None, &[0.5; 9])).contains("sums to at most 1"));
    assert_eq!(refused(with(PatternName::Unbalanced, Some(0.5), &[])), "nothing");
}
