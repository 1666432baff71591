//! The difference of two colours, as people with usual colour vision and with deuteranopia perceive it.
//!
//! Deuteranopia is simulated as by G. M. Machado, M. M. Oliveira and L. A. F. Fernandes, "A
//! Physiologically-based Model for Simulation of Color Vision Deficiency", IEEE Transactions on
//! Visualization and Computer Graphics 15 (2009), table 1, deuteranomaly of severity 1.0: a matrix on
//! linear sRGB. The difference is the distance in CIELAB (CIE 1976) under the white D65.

/// The matrix of the simulation.
const DEUTERANOPIA: [[f64; 3]; 3] = [
    [0.367_322, 0.860_646, -0.227_968],
    [0.280_085, 0.672_501, 0.047_413],
    [-0.011_820, 0.042_940, 0.968_881],
];

/// Linear sRGB to XYZ (IEC 61966-2-1), divided by the white D65.
const TO_XYZ: [[f64; 3]; 3] = [
    [0.412_456_4 / 0.950_47, 0.357_576_1 / 0.950_47, 0.180_437_5 / 0.950_47],
    [0.212_672_9, 0.715_152_2, 0.072_175_0],
    [0.019_333_9 / 1.088_83, 0.119_192_0 / 1.088_83, 0.950_304_1 / 1.088_83],
];

/// Colours with a smaller difference are alike: thin lines and small dots in them are hard to distinguish.
pub(crate) const ALIKE: f64 = 20.0;

/// The smaller of the differences of two colours (`#rrggbb`) under usual colour vision and deuteranopia.
pub(crate) fn difference(one: &str, other: &str) -> f64 {
    let [one, other] = [linear(one), linear(other)];
    let usual = distance(lab(one), lab(other));
    let [one, other] =
        [one, other].map(|colour| times(&DEUTERANOPIA, colour).map(|part| part.clamp(0.0, 1.0)));
    usual.min(distance(lab(one), lab(other)))
}

/// The linear parts of a colour, 0 to 1 (IEC 61966-2-1).
pub(crate) fn linear(colour: &str) -> [f64; 3] {
    [1, 3, 5].map(|at| {
        let share = f64::from(u8::from_str_radix(&colour[at..at + 2], 16).unwrap_or(0)) / 255.0;
        if share <= 0.040_45 { share / 12.92 } else { libm::pow((share + 0.055) / 1.055, 2.4) }
    })
}

fn lab(colour: [f64; 3]) -> [f64; 3] {
    let [x, y, z] = times(&TO_XYZ, colour).map(|part| {
        let bent = part > 216.0 / 24_389.0;
        if bent { libm::cbrt(part) } else { (24_389.0 / 27.0 * part + 16.0) / 116.0 }
    });
    [116.0 * y - 16.0, 500.0 * (x - y), 200.0 * (y - z)]
}

fn times(matrix: &[[f64; 3]; 3], colour: [f64; 3]) -> [f64; 3] {
    matrix.map(|row| row.iter().zip(colour).map(|(factor, part)| factor * part).sum())
}

fn distance(one: [f64; 3], other: [f64; 3]) -> f64 {
    one.iter().zip(other).map(|(a, b)| (a - b) * (a - b)).sum::<f64>().sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Black and white are 100 apart. Red and green of equal lightness differ for most people, and hardly for
    /// people with deuteranopia.
    #[test]
    fn the_difference_is_that_of_the_worse_vision() {
        assert!((difference("#000000", "#ffffff") - 100.0).abs() < 0.1);
        assert!(difference("#123456", "#123456") < 1e-9);
        let (red, green) = ("#c0504d", "#6e7e2e");
        let usual = distance(lab(linear(red)), lab(linear(green)));
        assert!(usual > 50.0 && difference(red, green) < ALIKE, "{usual} {}", difference(red, green));
    }
}
