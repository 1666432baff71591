//! From many rows to what a screen can show. Every function here loses something; the captions say what.

use serde_json::{Map, Number, Value};

/// Data of a chart, as columns: a name and its values.
pub(super) type Columns = Vec<(&'static str, Vec<Value>)>;

/// Columns as JSON.
pub(super) fn json(columns: Columns) -> Value {
    Value::Object(
        columns
            .into_iter()
            .map(|(name, values)| (name.to_owned(), Value::Array(values)))
            .collect::<Map<_, _>>(),
    )
}

/// Four significant digits: more than a screen can show.
pub(super) fn number(value: f64) -> Value {
    rounded(value, 4)
}

/// A number with so many significant digits.
pub(super) fn rounded(value: f64, digits: usize) -> Value {
    let rounded: f64 = format!("{value:.0$e}", digits - 1).parse().expect("a number that was just written");
    // A whole number without its ".0" is shorter.
    if rounded.fract() == 0.0 && rounded.abs() < 1e15 {
        return Value::Number(Number::from(rounded as i64));
    }
    Number::from_f64(rounded).map_or(Value::Null, Value::Number)
}

/// Least, median and most within one pixel column.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Column {
    pub at: f64,
    pub least: f64,
    pub median: f64,
    pub most: f64,
}

/// At most `columns` columns from `from` to `until`: of the values in each the least, the median and the most. A column
/// stands at its middle; columns without a value are left out. Values are in the order of time.
pub(super) fn pixel_columns(values: &[(f64, f64)], from: f64, until: f64, columns: usize) -> Vec<Column> {
    let width = (until - from) / columns as f64;
    let place = |at: f64| (((at - from) / width) as usize).min(columns - 1);
    let within: Vec<&(f64, f64)> = values.iter().filter(|(at, _)| from <= *at && *at <= until).collect();
    let few = within.len() <= columns;
    let chunks = within.chunk_by(|(a, _), (b, _)| !few && place(*a) == place(*b));
    let column = |chunk: &[&(f64, f64)]| {
        let mut sorted: Vec<f64> = chunk.iter().map(|(_, value)| *value).collect();
        sorted.sort_by(f64::total_cmp);
        Column {
            at: if few { chunk[0].0 } else { from + (place(chunk[0].0) as f64 + 0.5) * width },
            least: sorted[0],
            median: sorted[(sorted.len() - 1) / 2],
            most: sorted[sorted.len() - 1],
        }
    };
    chunks.map(column).collect()
}

/// At most `most` of the points, evenly spread over their order by size and then time, so that no size is left out and
/// nothing is left to chance.
pub(super) fn thinned(points: &[(f64, f64)], most: usize) -> Vec<(f64, f64)> {
    thinned_by(points, most, |point| *point)
}

/// The same for what has a size and a time.
pub(super) fn thinned_by<T: Copy>(points: &[T], most: usize, of: impl Fn(&T) -> (f64, f64)) -> Vec<T> {
    let mut sorted = points.to_vec();
    sorted.sort_by(|a, b| {
        let (a, b) = (of(a), of(b));
        a.0.total_cmp(&b.0).then(a.1.total_cmp(&b.1))
    });
    if sorted.len() <= most {
        return sorted;
    }
    // The first and the last are always among them.
    let last = sorted.len() - 1;
    (0..most).map(|i| sorted[i * last / (most - 1)]).collect()
}

/// Size bins per decade, and how many transfers a bin needs to have a median.
pub(super) const BINS_PER_DECADE: f64 = 5.0;
pub(super) const BIN_NEEDS: usize = 5;

/// Medians of the completion time by size: median size and median time of each bin that has enough transfers.
pub(super) fn medians_by_size(points: &[(f64, f64)]) -> Vec<(f64, f64)> {
    let mut sorted: Vec<(f64, f64)> = points.iter().copied().filter(|(size, _)| *size > 0.0).collect();
    sorted.sort_by(|a, b| a.0.total_cmp(&b.0));
    let bin = |size: f64| (libm::log10(size) * BINS_PER_DECADE).floor();
    let bins = sorted.chunk_by(|(a, _), (b, _)| bin(*a) == bin(*b)).filter(|bin| bin.len() >= BIN_NEEDS);
    let median = |mut values: Vec<f64>| {
        values.sort_by(f64::total_cmp);
        values[(values.len() - 1) / 2]
    };
    let both = |bin: &[(f64, f64)]| {
        let (sizes, times) = bin.iter().copied().unzip();
        (median(sizes), median(times))
    };
    bins.map(both).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_four_digits() {
        let text = |value| number(value).to_string();
        assert_eq!(text(59.948_3), "59.95");
        assert_eq!(text(0.000_123_456), "0.0001235");
        assert_eq!(text(123_456.0), "123500");
        assert_eq!(text(0.0), "0");
        assert_eq!(text(-2.0), "-2");
        assert_eq!(text(f64::NAN), "null");
    }

    /// Ten values in two columns; the peak is kept where it is.
    #[test]
    fn a_pixel_column_keeps_its_extremes() {
        let values: Vec<(f64, f64)> = (0..10).map(|i| (f64::from(i), f64::from(i % 5))).collect();
        let columns = pixel_columns(&values, 0.0, 10.0, 2);
        assert_eq!(
            columns,
            [
                Column { at: 2.5, least: 0.0, median: 2.0, most: 4.0 },
                Column { at: 7.5, least: 0.0, median: 2.0, most: 4.0 }
            ]
        );
        let few = pixel_columns(&values[..2], 0.0, 10.0, 5);
        assert_eq!(few[1], Column { at: 1.0, least: 1.0, median: 1.0, most: 1.0 });
        assert!(pixel_columns(&[], 0.0, 10.0, 5).is_empty());
    }

    #[test]
    fn thinning_keeps_the_ends_and_every_size() {
        let points: Vec<(f64, f64)> = (0..1000).map(|i| (f64::from(i / 100), f64::from(i))).collect();
        let kept = thinned(&points, 50);
        assert_eq!((kept.len(), kept[0], kept[49]), (50, (0.0, 0.0), (9.0, 999.0)));
        assert!((0..10).all(|size| kept.iter().filter(|(found, _)| *found == f64::from(size)).count() >= 4));
        assert_eq!(thinned(&points[..3], 50).len(), 3);
    }

    /// Five of about 1 kB, four of 10 kB: the four are too few.
    #[test]
    fn medians_need_company() {
        let kilo = [1.0, 5.0, 2.0, 4.0, 3.0].map(|seconds| (1_000.0 + seconds, seconds));
        let ten = [9.0; 4].map(|seconds| (10_000.0, seconds));
        assert_eq!(medians_by_size(&[kilo.as_slice(), &ten].concat()), [(1_003.0, 3.0)]);
    }
}
