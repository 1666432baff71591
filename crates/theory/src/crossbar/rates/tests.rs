use proptest::prelude::*;

use super::*;

fn matrix(rows: &[&[f64]]) -> RateMatrix {
    RateMatrix::new(rows.iter().map(|rates| rates.to_vec()).collect()).expect("it is a matrix of rates")
}

/// The rates that a schedule serves, pair by pair.
fn served(schedule: &[Configuration], ports: usize) -> Vec<Vec<f64>> {
    let mut rates = vec![vec![0.0; ports]; ports];
    for configuration in schedule {
        for (input, output) in configuration.outputs.iter().enumerate() {
            rates[input][*output] += configuration.share;
        }
    }
    rates
}

#[test]
fn invalid_matrices_of_rates_are_refused() {
    assert_eq!(RateMatrix::new(vec![]), Err(MatrixError::Empty));
    let short = MatrixError::NotSquare { row: 1, has: 1, rows: 2 };
    assert_eq!(RateMatrix::new(vec![vec![0.1, 0.2], vec![0.3]]), Err(short));
    for rate in [-0.1, f64::INFINITY] {
        let refused = RateMatrix::new(vec![vec![0.5, 0.0], vec![rate, 0.5]]);
        assert_eq!(refused, Err(MatrixError::Rate { input: 1, output: 0, rate }));
    }
    let refused = RateMatrix::new(vec![vec![f64::NAN]]).expect_err("a rate is a number");
    assert!(matches!(refused, MatrixError::Rate { input: 0, output: 0, rate } if rate.is_nan()));
}

/// The second row sums to 1.25 and the first column to 1.125.
#[test]
fn overloads_name_the_ports() {
    let overloaded = matrix(&[&[0.5, 0.125], &[0.625, 0.625]]);
    let expected =
        [Overload { port: Port::Input(1), load: 1.25 }, Overload { port: Port::Output(0), load: 1.125 }];
    assert_eq!(overloaded.overloads(), expected);
    assert_eq!(expected[0].excess(), 0.25);
    assert_eq!(expected[0].to_string(), "input 1 is offered 1.25 cells per slot, 0.25 too many");
    assert_eq!(expected[1].to_string(), "output 0 is offered 1.125 cells per slot, 0.125 too many");
    assert_eq!(overloaded.schedule(), Err(expected[0]));
}

/// 0.1 summed ten times is not 1, and 49 times 1/49 neither.
#[test]
fn rounding_is_not_an_overload() {
    for ports in 1..=64 {
        let uniform =
            RateMatrix::new(vec![vec![1.0 / f64::from(ports); ports as usize]; ports as usize]).unwrap();
        assert_eq!(uniform.overloads(), []);
    }
    assert_eq!(matrix(&[&[1.0 + 1e-6]]).overloads().len(), 2, "the row and the column");
}

/// 0.7 of the identity and 0.3 of its reverse. The reverse is found first: input 1 moved input 0 from
/// output 0.
#[test]
fn two_ports_by_hand() {
    let schedule = matrix(&[&[0.7, 0.3], &[0.3, 0.7]]).schedule().unwrap();
    let expected = [
        Configuration { share: 0.3, outputs: vec![1, 0] },
        Configuration { share: 0.7, outputs: vec![0, 1] },
    ];
    assert_eq!(schedule, expected);
}

/// N matchings in turn, a Latin square, also for N whose reciprocal is rounded in binary.
#[test]
fn uniform_rates_need_as_many_matchings_as_ports() {
    for ports in 1..=32 {
        let uniform = RateMatrix::new(vec![vec![1.0 / ports as f64; ports]; ports]).unwrap();
        let schedule = uniform.schedule().unwrap();
        assert_eq!(schedule.len(), ports);
        assert!(
            schedule.iter().all(|configuration| (configuration.share * ports as f64 - 1.0).abs() < 1e-12)
        );
    }
}

#[test]
fn nothing_to_carry_takes_any_matching() {
    let schedule = matrix(&[&[0.0, 0.0], &[0.0, 0.0]]).schedule().unwrap();
    assert_eq!(schedule, [Configuration { share: 1.0, outputs: vec![0, 1] }]);
}

/// Generic: sums of random permutation matrices are doubly stochastic, sparse when few and full when many.
fn permutations() -> impl Strategy<Value = (usize, Vec<(f64, Vec<usize>)>)> {
    (1..=64usize).prop_flat_map(|ports| {
        let permutation = Just((0..ports).collect::<Vec<_>>()).prop_shuffle();
        (Just(ports), prop::collection::vec((0.01..1.0f64, permutation), 1..40))
    })
}

/// Random numbers, of which half are 0, scaled so that the port with the largest load has this load.
fn substochastic() -> impl Strategy<Value = RateMatrix> {
    (1..=64usize, 0.05..=1.0f64).prop_flat_map(|(ports, load)| {
        let rate = prop_oneof![Just(0.0), 0.0..1.0f64];
        prop::collection::vec(prop::collection::vec(rate, ports), ports).prop_map(move |rows| {
            let any = RateMatrix::new(rows).unwrap();
            let lines = (0..ports).flat_map(|port| [Port::Input(port), Port::Output(port)]);
            let fullest = lines.map(|port| any.load(port)).fold(f64::MIN_POSITIVE, f64::max);
            let scaled = any.rows.iter().map(|row| row.iter().map(|rate| rate * (load / fullest)).collect());
            RateMatrix::new(scaled.collect()).unwrap()
        })
    })
}

fn check(matrix: &RateMatrix) -> Result<Vec<Vec<f64>>, TestCaseError> {
    let ports = matrix.ports();
    let schedule = matrix.schedule().expect("it is admissible");
    prop_assert!(schedule.len() <= ports * ports + 2 - 2 * ports, "{} for N = {ports}", schedule.len());
    let total: f64 = schedule.iter().map(|configuration| configuration.share).sum();
    prop_assert!((total - 1.0).abs() < 1e-12, "{total}");
    for configuration in &schedule {
        prop_assert!(configuration.share > 0.0);
        let mut outputs = configuration.outputs.clone();
        outputs.sort_unstable();
        prop_assert_eq!(outputs, (0..ports).collect::<Vec<_>>());
    }
    let served = served(&schedule, ports);
    for (input, served) in served.iter().enumerate() {
        for (output, served) in served.iter().enumerate() {
            prop_assert!(*served >= matrix.rate(input, output) - 2e-12);
        }
    }
    Ok(served)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn any_admissible_matrix_has_a_schedule(matrix in substochastic()) {
        check(&matrix)?;
    }

    /// Full rows and columns leave no spare slots, so the rates served are those requested.
    #[test]
    fn full_lines_are_served_exactly((ports, mixture) in permutations()) {
        let total: f64 = mixture.iter().map(|(weight, _)| weight).sum();
        let mut rows = vec![vec![0.0; ports]; ports];
        for (weight, permutation) in &mixture {
            for (input, output) in permutation.iter().enumerate() {
                rows[input][*output] += weight / total;
            }
        }
        let matrix = RateMatrix::new(rows).unwrap();
        let served = check(&matrix)?;
        for (input, served) in served.iter().enumerate() {
            for (output, served) in served.iter().enumerate() {
                // Rounding the entries of a line to 1e-12 may leave that much of it per entry to fill up.
                prop_assert!((served - matrix.rate(input, output)).abs() < 1e-12 * (ports + 1) as f64);
            }
        }
    }
}
