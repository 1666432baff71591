//! The data of a chart as columns, rounded and thinned to the amount that a screen can show.

use serde_json::{Map, Number, Value};

/// Data of a chart, as columns: a name and its values.
pub type Columns = Vec<(&'static str, Vec<Value>)>;

/// Columns as JSON.
pub fn json(columns: Columns) -> Value {
    Value::Object(
        columns
            .into_iter()
            .map(|(name, values)| (name.to_owned(), Value::Array(values)))
            .collect::<Map<_, _>>(),
    )
}

/// A number with four significant digits, more than a screen can show.
pub fn number(value: f64) -> Value {
    rounded(value, 4)
}

/// A number with the given number of significant digits.
pub fn rounded(value: f64, digits: usize) -> Value {
    let rounded: f64 = format!("{value:.0$e}", digits - 1).parse().expect("the text is a formatted number");
    // A whole number without its ".0" is shorter.
    if rounded.fract() == 0.0 && rounded.abs() < 1e15 {
        return Value::Number(Number::from(rounded as i64));
    }
    Number::from_f64(rounded).map_or(Value::Null, Value::Number)
}

/// At most `most` of the points, evenly spread over their order by size and then time. So all sizes are
/// represented, and the choice is not random.
pub fn thinned(points: &[(f64, f64)], most: usize) -> Vec<(f64, f64)> {
    thinned_by(points, most, |point| *point)
}

/// At most `most` of the items, evenly spread over their order by size and then time.
pub fn thinned_by<T: Copy>(points: &[T], most: usize, of: impl Fn(&T) -> (f64, f64)) -> Vec<T> {
    let mut sorted = points.to_vec();
    sorted.sort_by(|a, b| {
        let (a, b) = (of(a), of(b));
        a.0.total_cmp(&b.0).then(a.1.total_cmp(&b.1))
    });
    if sorted.len() <= most {
        return sorted;
    }
    // The first and the last are always chosen.
    let last = sorted.len() - 1;
    (0..most).map(|i| sorted[i * last / (most - 1)]).collect()
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

    #[test]
    fn thinning_keeps_the_ends_and_every_size() {
        let points: Vec<(f64, f64)> = (0..1000).map(|i| (f64::from(i / 100), f64::from(i))).collect();
        let kept = thinned(&points, 50);
        assert_eq!((kept.len(), kept[0], kept[49]), (50, (0.0, 0.0), (9.0, 999.0)));
        assert!((0..10).all(|size| kept.iter().filter(|(found, _)| *found == f64::from(size)).count() >= 4));
        assert_eq!(thinned(&points[..3], 50).len(), 3);
    }
}
