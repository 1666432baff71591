//! Sobol indices and answers on functions whose indices are known.

use giveway_qdisc::Quantity;
use giveway_record::dataset::{Axis, Sample};
use giveway_sweep::{Data, Design, Effect, Files, Manifest, PointTable, Shard, answers, effects};

/// A function of numbers between 0 and 1 and of the seed, over a design.
fn data(axes: &[&str], design: &str, seeds: u64, of: impl Fn(&str, &[f64], u64) -> f64) -> Data {
    let parsed: Vec<giveway_sweep::Axis> = axes.iter().map(|axis| axis.parse().unwrap()).collect();
    let plan: Design = design.parse().unwrap();
    let disciplines = ["fifo", "efd"];
    let columns: Vec<Axis> = parsed
        .iter()
        .map(|axis| Axis { key: axis.key.clone(), column: axis.key.clone(), unit: Some("1") })
        .collect();
    let manifest = Manifest {
        giveway_sweep: 2,
        version: String::new(),
        title: String::new(),
        identity: String::new(),
        axes: axes.iter().map(|&axis| axis.to_owned()).collect(),
        design: design.to_owned(),
        disciplines: disciplines.map(str::to_owned).to_vec(),
        outside: Vec::new(),
        seeds: (1..=seeds).collect(),
        until: None,
        shard: Shard::WHOLE,
        created_by: String::new(),
        columns: Vec::new(),
        complete: true,
        files: Files::new(),
        next: Files::new(),
    };
    let mut samples = Vec::new();
    for point in 0..plan.points(&parsed).unwrap() {
        let values = plan.point(point, &parsed);
        let numbers: Vec<f64> = values.iter().map(|value| value.number().unwrap().0).collect();
        for discipline in disciplines {
            for seed in 1..=seeds {
                samples.push(Sample {
                    point,
                    discipline: discipline.to_owned(),
                    seed,
                    axes: numbers.iter().map(|number| Some(Quantity::Number(*number, "1"))).collect(),
                    value: Some(of(discipline, &numbers, seed)),
                });
            }
        }
    }
    Data::of(manifest, "fct_mean_s", &columns, &samples)
}

/// The function of Ishigami and Homma (1990) with a = 7 and b = 0.1. Its variance is 13.845; the indices of
/// first order are 0.3139, 0.4424 and 0, and the total ones 0.5576, 0.4424 and 0.2437.
fn ishigami(_: &str, at: &[f64], _: u64) -> f64 {
    let angle = |share: f64| (2.0 * share - 1.0) * std::f64::consts::PI;
    let (x, y, z) = (angle(at[0]), angle(at[1]), angle(at[2]));
    let (sin_x, sin_y) = (libm::sin(x), libm::sin(y));
    sin_x + 7.0 * sin_y * sin_y + 0.1 * z * z * z * z * sin_x
}

const FIRST: [f64; 3] = [0.3139, 0.4424, 0.0];
const TOTAL: [f64; 3] = [0.5576, 0.4424, 0.2437];
const DRAWN: [&str; 3] = ["a=lin(0,1)", "b=lin(0,1)", "c=lin(0,1)"];

fn near(found: &[Effect], first: f64, total: Option<f64>) {
    for effect in found {
        let axis = effect.axis;
        assert!((effect.first.value - FIRST[axis]).abs() < first, "{effect:?}");
        if let Some(within) = total {
            let total = effect.total.expect("the design has total indices").value;
            assert!((total - TOTAL[axis]).abs() < within, "{effect:?}");
        }
    }
}

#[test]
fn a_grid_has_the_indices_of_ishigami() {
    let axes = ["a=lin(0.0125,0.9875,40)", "b=lin(0.0125,0.9875,40)", "c=lin(0.0125,0.9875,40)"];
    let data = data(&axes, "grid", 1, ishigami);
    let found = effects(&data, &data.disciplines[0]);
    near(&found, 0.01, Some(0.01));
    assert_eq!(found[0].axis, 0, "the strongest key comes first");
    assert!(found.iter().all(|effect| effect.first.interval.is_none()), "one seed has no interval");
}

#[test]
fn the_points_of_saltelli_have_the_indices_of_ishigami_within_their_intervals() {
    let data = data(&DRAWN, "saltelli:1024", 1, ishigami);
    let found = effects(&data, &data.disciplines[0]);
    near(&found, 0.06, Some(0.06));
    for effect in &found {
        let (low, high) = effect.total.unwrap().interval.unwrap();
        assert!(low <= TOTAL[effect.axis] + 0.02 && TOTAL[effect.axis] - 0.02 <= high, "{effect:?}");
    }
}

#[test]
fn draws_have_first_order_indices() {
    for design in ["lhs:2000", "random:4000", "sobol:2048"] {
        let data = data(&DRAWN, design, 1, ishigami);
        let found = effects(&data, &data.disciplines[0]);
        near(&found, 0.05, None);
        assert!(found.iter().all(|effect| effect.total.is_none()));
    }
}

/// Noise of the seeds does not count as the effect of a key: with four seeds, the mean of a point has a
/// quarter of it.
#[test]
fn noise_of_seeds_does_not_count() {
    let noise = |words: [u64; 2]| {
        let mixed = words[0].wrapping_mul(0x9e37_79b9).wrapping_add(words[1].wrapping_mul(0x85eb_ca6b));
        (mixed % 1000) as f64 / 1000.0
    };
    let of =
        |_: &str, at: &[f64], seed: u64| at[0] + 0.5 * noise([(at[0] * 16.0 + at[1] * 997.0) as u64, seed]);
    let data = data(&["a=lin(0,1,10)", "b=lin(0,1,10)"], "grid", 4, of);
    let found = effects(&data, &data.disciplines[0]);
    assert_eq!(found[0].axis, 0);
    assert!(found[0].first.value > 0.9, "{found:?}");
    let (low, high) = found[0].first.interval.unwrap();
    assert!(low < found[0].first.value + 1e-9 && found[0].first.value < high + 1e-9);
    assert!(found[1].first.value < 0.05, "{found:?}");
}

#[test]
fn answers_say_where_the_best_changes_and_what_cannot_be_measured() {
    // EFD is better below 0.5, equal at 0.5 up to noise, and worse above.
    let of = |discipline: &str, at: &[f64], seed: u64| {
        let noise =
            if discipline == "efd" { ((seed * 7 + (at[0] * 8.0) as u64) % 5) as f64 * 0.01 } else { 0.0 };
        1.0 + if discipline == "efd" { at[0] - 0.52 + noise } else { 0.0 }
    };
    let data = data(&["load=0,0.25,0.5,0.75,1", "other=1,2"], "grid", 5, of);
    let sentences = answers(&data);
    let best = sentences.iter().find(|sentence| sentence.starts_with("load:")).unwrap();
    assert_eq!(
        best,
        "load: the lowest mean of fct_mean_s has efd up to 0.25 and fifo from 0.5 on. The best one does not differ \
         measurably at 0.5 (from any other)."
    );
    assert_eq!(sentences[0], "fifo: no key has a measurable effect on fct_mean_s with these seeds.");
    assert!(sentences[1].starts_with("efd: of the variance of fct_mean_s"), "{sentences:?}");
    assert!(sentences.last().unwrap().starts_with("Each point has 5 seeds."));
}

/// Three seeds: 10.7 to 31.7 s against 0.2 to 0.3 s is a clear ratio, and an unclear difference.
fn ten_times(discipline: &str, at: &[f64], seed: u64) -> f64 {
    let slow = [10.7, 31.7, 18.2][seed as usize - 1];
    let fast = [0.2, 0.3, 0.22][seed as usize - 1];
    (1.0 + at[0]) * if discipline == "fifo" { slow } else { fast }
}

#[test]
fn times_are_compared_as_ratios() {
    let times = data(&["load=0,1"], "grid", 3, ten_times);
    let best =
        |data: &Data| answers(data).into_iter().find(|sentence| sentence.starts_with("load:")).unwrap();
    assert_eq!(best(&times), "load: the lowest mean of fct_mean_s has efd at every value.");
    // The same numbers as losses, in percent: three seeds do not show the difference.
    let losses = Data { metric: "voice_loss".to_owned(), ..times };
    let sentence = best(&losses);
    assert!(
        sentence.starts_with("load: no difference between the disciplines in voice_loss is"),
        "{sentence}"
    );
    assert!(sentence.contains(" About ") && sentence.ends_with(" seeds would show the clearest one."));
}

#[test]
fn the_only_key_of_a_sweep_explains_nothing() {
    let found = answers(&data(&["load=0,1"], "grid", 3, ten_times));
    assert_eq!(found[0], "fifo: fct_mean_s by load: 20.2 s at 0 to 40.4 s at 1.");
    assert!(!found.iter().any(|sentence| sentence.contains("explain")), "{found:?}");
    let last = found.last().unwrap();
    assert!(last.contains("paired by seed, times as ratios") && last.contains("With 3 seeds"), "{last}");
}

/// Marks are neither good nor bad.
#[test]
fn nothing_is_best_without_a_better_direction() {
    let of = |_: &str, at: &[f64], seed: u64| at[0] + at[1] + seed as f64 * 0.01;
    let found = data(&["qdisc.limit=1,2,3", "load=0,1"], "grid", 5, of);
    let marks = answers(&Data { metric: "marks".to_owned(), ..found.clone() }).join("\n");
    assert!(marks.contains("the limit with the lowest marks, by load: 1 at every value"), "{marks}");
    assert!(!marks.contains("best"), "{marks}");
    let completed = answers(&Data { metric: "flows_completed".to_owned(), ..found }).join("\n");
    assert!(
        completed.contains("the best limit for flows_completed, by load: 3 at every value"),
        "{completed}"
    );
}

#[test]
fn a_small_sweep_has_a_table_of_its_points_and_a_large_one_of_its_extremes() {
    let table = PointTable::of(&data(&["load=0,1"], "grid", 3, ten_times)).unwrap();
    assert!(table.is_whole());
    assert_eq!(
        table.text(100),
        "fct_mean_s (ms) at each point, with 95 % intervals over the seeds:\n\
         load             fifo      efd\n\
         0     20200 (0–46636)  240±131\n\
         1     40400 (0–93272)  480±263\n"
    );
    let large = data(&["load=lin(0,1,6)", "other=lin(0,1,5)"], "grid", 1, |discipline, at, _| {
        at[0] + 0.5 * at[1] + f64::from(discipline == "efd")
    });
    let table = PointTable::of(&large).unwrap();
    assert!(!table.is_whole());
    assert_eq!(
        table.text(100),
        "fct_mean_s (ms), with 95 % intervals: of 30 points those with the lowest and the highest mean of a discipline:\n\
         load  other  fifo   efd\n\
         0         0     0  1000\n\
         1         1  1500  2500\n"
    );
    // In a narrow terminal the disciplines are below each other.
    assert_eq!(table.text(20).matches("other").count(), 2);
}

#[test]
fn one_seed_measures_no_difference() {
    let data = data(&["load=0,1"], "grid", 1, |discipline, at, _| at[0] + f64::from(discipline == "efd"));
    assert_eq!(answers(&data).last().unwrap(), "With one seed no difference is measurable: add --seeds 5.");
}
