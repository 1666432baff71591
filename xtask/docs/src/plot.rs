//! Line charts on logarithmic axes, as SVG within a page of the book.

/// A line.
pub struct Series {
    /// The quantity that is drawn, with its unit.
    pub title: String,
    /// The name of the horizontal axis.
    pub axis: String,
    /// Positive numbers, from left to right.
    pub points: Vec<(f64, f64)>,
}

/// Size of a figure, in pixels.
const SIZE: (f64, f64) = (340.0, 220.0);
/// The area between the axes: left, top, right, bottom.
const AREA: (f64, f64, f64, f64) = (60.0, 26.0, 325.0, 175.0);

/// The figure of a line. The axes have whole decades, or the powers of two if the line has less than two
/// decades to the right.
pub fn figure(series: &Series) -> String {
    let (width, height) = SIZE;
    let (left, top, right, bottom) = AREA;
    let Series { title, axis, points } = series;
    let mut svg = format!(
        "<svg width=\"{width}\" height=\"{height}\" role=\"img\" aria-label=\"{title}, by {axis}\" font-size=\"11\" \
         fill=\"currentColor\"><text x=\"{left}\" y=\"15\" font-weight=\"bold\">{title}</text>\
         <text x=\"{:.0}\" y=\"{:.0}\" text-anchor=\"middle\">{axis}</text>",
        (left + right) / 2.0,
        height - 8.0,
    );
    let (across, up) = (Scale::of(points.iter().map(|(x, _)| *x)), Scale::of(points.iter().map(|(_, y)| *y)));
    let x = |value: f64| left + across.share(value) * (right - left);
    let y = |value: f64| bottom - up.share(value) * (bottom - top);
    for mark in across.marks() {
        svg.push_str(&format!(
            "<path d=\"M{0:.1} {bottom}V{top}\" stroke=\"#888\" stroke-opacity=\"0.3\"/>\
             <text x=\"{0:.1}\" y=\"{1:.0}\" text-anchor=\"middle\">{2}</text>",
            x(mark),
            bottom + 14.0,
            label(mark)
        ));
    }
    for mark in up.marks() {
        svg.push_str(&format!(
            "<path d=\"M{left} {0:.1}H{right}\" stroke=\"#888\" stroke-opacity=\"0.3\"/>\
             <text x=\"{1:.0}\" y=\"{2:.1}\" text-anchor=\"end\">{3}</text>",
            y(mark),
            left - 5.0,
            y(mark) + 4.0,
            label(mark)
        ));
    }
    let line: Vec<String> =
        points.iter().map(|point| format!("{:.1},{:.1}", x(point.0), y(point.1))).collect();
    svg.push_str(&format!(
        "<polyline points=\"{}\" fill=\"none\" stroke=\"#4477aa\" stroke-width=\"2\"/>",
        line.join(" ")
    ));
    for point in points {
        svg.push_str(&format!(
            "<circle cx=\"{:.1}\" cy=\"{:.1}\" r=\"3\" fill=\"#4477aa\"/>",
            x(point.0),
            y(point.1)
        ));
    }
    svg + "</svg>"
}

/// A logarithmic axis from a power of its base to another.
struct Scale {
    base: f64,
    from: i32,
    to: i32,
}

impl Scale {
    fn of(values: impl Iterator<Item = f64> + Clone) -> Scale {
        let least = values.clone().fold(f64::INFINITY, f64::min);
        let most = values.fold(0.0, f64::max);
        let base: f64 = if most / least <= 32.0 { 2.0 } else { 10.0 };
        // A power itself must not be rounded to the next.
        let power = |value: f64| (libm::log(value) / libm::log(base) * 1e9).round() / 1e9;
        let (from, to) = (power(least).floor() as i32, power(most).ceil() as i32);
        Scale { base, from, to: to.max(from + 1) }
    }

    /// The place of a value on the axis, 0 to 1.
    fn share(&self, value: f64) -> f64 {
        (libm::log(value) / libm::log(self.base) - f64::from(self.from)) / f64::from(self.to - self.from)
    }

    fn marks(&self) -> impl Iterator<Item = f64> + '_ {
        (self.from..=self.to).map(|power| libm::pow(self.base, power.into()))
    }
}

/// A mark of an axis in a few characters: 0.25, 64, 1k, 1M.
fn label(mark: f64) -> String {
    for (unit, letter) in [(1e6, "M"), (1e3, "k")] {
        if mark >= unit && mark % unit == 0.0 {
            return format!("{}{letter}", mark / unit);
        }
    }
    let text = format!("{mark:.3}");
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
}

/// A whole number with commas.
pub fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn axes_have_the_powers_around_the_values() {
        let decades: Vec<f64> = Scale::of([10.0, 1e6].into_iter()).marks().collect();
        assert_eq!(decades, [10.0, 1e2, 1e3, 1e4, 1e5, 1e6]);
        let twos: Vec<f64> = Scale::of([0.3, 1.0].into_iter()).marks().collect();
        assert_eq!(twos, [0.25, 0.5, 1.0]);
        assert_eq!(Scale::of([1.0, 16.0].into_iter()).share(4.0), 0.5);
    }

    #[test]
    fn marks_and_numbers_are_short() {
        assert_eq!([0.001, 0.25, 64.0, 1e3, 1e6].map(label), ["0.001", "0.25", "64", "1k", "1M"]);
        assert_eq!([0, 999, 1_000, 1_234_567].map(grouped), ["0", "999", "1,000", "1,234,567"]);
    }
}
