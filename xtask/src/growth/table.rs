//! The table `docs/growth.csv`: a line about the machine, the names of the columns, and a row for each size.

use std::fmt;

/// The file, relative to the repository.
pub const FILE: &str = "docs/growth.csv";
/// Its second line.
pub const HEADER: &str = "curve,size,packets,events,cpu_s,peak_kib,instructions";

/// The cost of one size of a curve.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Row {
    pub curve: String,
    pub size: u32,
    /// Packets that the bottleneck got, or that the applications sent.
    pub packets: u64,
    pub events: u64,
    /// User time of the trial.
    pub cpu_s: f64,
    /// The largest memory of the process.
    pub peak_kib: u64,
    /// Instructions per packet, if they were counted.
    pub instructions: Option<f64>,
}

impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Row { curve, size, packets, events, cpu_s, peak_kib, instructions } = self;
        write!(f, "{curve},{size},{packets},{events},{cpu_s:.3},{peak_kib},")?;
        instructions.map_or(Ok(()), |instructions| write!(f, "{instructions:.0}"))
    }
}

/// The machine and the rows, in the order of the file.
///
/// # Errors
/// The first line that is not a row.
pub fn parse(text: &str) -> Result<(String, Vec<Row>), String> {
    let machine = text.lines().next().and_then(|line| line.strip_prefix("# "));
    let machine = machine.ok_or(format!("{FILE}, line 1: \"# \" and the machine are expected"))?;
    let rows = text.lines().enumerate().skip(2).map(|(number, line)| {
        row(line).ok_or_else(|| format!("{FILE}, line {}: {HEADER} is expected", number + 1))
    });
    Ok((machine.to_owned(), rows.collect::<Result<_, _>>()?))
}

fn row(line: &str) -> Option<Row> {
    let fields: Vec<&str> = line.split(',').collect();
    let [curve, size, packets, events, cpu_s, peak_kib, instructions] = fields[..] else { return None };
    Some(Row {
        curve: curve.to_owned(),
        size: size.parse().ok()?,
        packets: packets.parse().ok()?,
        events: events.parse().ok()?,
        cpu_s: cpu_s.parse().ok()?,
        peak_kib: peak_kib.parse().ok()?,
        instructions: if instructions.is_empty() { None } else { Some(instructions.parse().ok()?) },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_is_read_as_it_was_written() {
        for instructions in [None, Some(5678.0)] {
            let (curve, size) = ("flows".to_owned(), 10);
            let written = Row { curve, size, packets: 1, events: 2, cpu_s: 0.5, peak_kib: 3, instructions };
            let text = format!("# a machine\n{HEADER}\n{written}\n");
            assert_eq!(parse(&text).unwrap(), ("a machine".to_owned(), vec![written]));
        }
        for wrong in ["", "flows,10,1,2,0.5,3", "flows,10,1,2,0.5,3,x", "flows,ten,1,2,0.5,3,"] {
            assert!(row(wrong).is_none(), "{wrong}");
        }
        assert!(parse(HEADER).is_err());
    }
}
