//! Reduction of many rows to the amount that a screen can show. Every function here loses details; the
//! captions name them.

/// The smallest value, the median and the largest value within one pixel column.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Column {
    pub at: f64,
    pub least: f64,
    pub median: f64,
    pub most: f64,
}

/// Divides the time from `from` to `until` into at most `columns` columns, each with the smallest value, the
/// median and the largest value. The position of a column is its middle. Columns without a value are left
/// out. Values must be in the order of time.
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

/// Size bins per decade, and the number of transfers that a bin needs to have a median.
pub(super) const BINS_PER_DECADE: f64 = 5.0;
pub(super) const BIN_NEEDS: usize = 5;

/// The median of a size bin.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Median {
    /// The median size, bytes.
    pub size: f64,
    /// The median completion time, seconds.
    pub time: f64,
    /// Neighbouring bins have the same number. A line must not cross from one stretch to the next.
    pub stretch: usize,
}

/// Medians of the completion time by size: one for each bin that has enough transfers.
pub(super) fn medians_by_size(points: &[(f64, f64)]) -> Vec<Median> {
    let mut sorted: Vec<(f64, f64)> = points.iter().copied().filter(|(size, _)| *size > 0.0).collect();
    sorted.sort_by(|a, b| a.0.total_cmp(&b.0));
    let bin = |size: f64| (libm::log10(size) * BINS_PER_DECADE).floor() as i64;
    let middle = |mut values: Vec<f64>| {
        values.sort_by(f64::total_cmp);
        values[(values.len() - 1) / 2]
    };
    let mut medians = Vec::new();
    let (mut stretch, mut last) = (0, None);
    for points in sorted.chunk_by(|(a, _), (b, _)| bin(*a) == bin(*b)) {
        if points.len() < BIN_NEEDS {
            continue;
        }
        let here = bin(points[0].0);
        stretch += usize::from(last.is_some_and(|last| here != last + 1));
        last = Some(here);
        let (sizes, times) = points.iter().copied().unzip();
        medians.push(Median { size: middle(sizes), time: middle(times), stretch });
    }
    medians
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Ten values in two columns. The column with the peak keeps it.
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

    /// Five transfers of about 1 kB have a median. Four of 10 kB are too few.
    #[test]
    fn medians_need_company() {
        let kilo = [1.0, 5.0, 2.0, 4.0, 3.0].map(|seconds| (1_000.0 + seconds, seconds));
        let ten = [9.0; 4].map(|seconds| (10_000.0, seconds));
        let median = Median { size: 1_003.0, time: 3.0, stretch: 0 };
        assert_eq!(medians_by_size(&[kilo.as_slice(), &ten].concat()), [median]);
    }

    /// A line would state completion times of sizes that nobody transferred.
    #[test]
    fn a_gap_in_sizes_divides_the_line() {
        let five = |size: f64| [size; 5].map(|size| (size, 1.0));
        let points = [five(1_000.0), five(1_600.0), five(1_000_000.0)].concat();
        let stretches: Vec<usize> = medians_by_size(&points).iter().map(|median| median.stretch).collect();
        assert_eq!(stretches, [0, 0, 1]);
    }
}
