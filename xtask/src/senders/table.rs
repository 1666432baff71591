//! The table `docs/senders.csv`: a row for each connection of each cell of `docs/senders-linux.csv`, with the
//! measurement of Linux and that of the simulator.

use std::fmt;

/// The file, relative to the repository.
pub const FILE: &str = "docs/senders.csv";
/// Its first line.
pub const HEADER: &str = "cell,rate_mbit_s,rtt_ms,queue,control,linux_goodput_mbit_s,goodput_mbit_s,linux_queueing_ms,\
                          queueing_ms,linux_dropped,dropped,linux_marked,marked";

/// A connection. The values of the simulator are means over its seeds.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Row {
    pub cell: String,
    pub rate_mbit_s: f64,
    pub rtt_ms: f64,
    /// The queue of the bottleneck, as the page shows it.
    pub queue: String,
    pub control: String,
    pub linux_goodput: f64,
    pub goodput: f64,
    /// Mean time from the arrival at the bottleneck to the end of the transmission, of all connections of
    /// the cell.
    pub linux_queueing: f64,
    pub queueing: f64,
    /// Packets that the bottleneck dropped and marked, of all connections of the cell.
    pub linux_dropped: f64,
    pub dropped: f64,
    pub linux_marked: f64,
    pub marked: f64,
}

impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Row { cell, rate_mbit_s, rtt_ms, queue, control, .. } = self;
        write!(f, "{cell},{rate_mbit_s},{rtt_ms},{queue},{control}")?;
        let Row { linux_goodput, goodput, linux_queueing, queueing, .. } = self;
        write!(f, ",{linux_goodput:.3},{goodput:.3},{linux_queueing:.3},{queueing:.3}")?;
        let Row { linux_dropped, dropped, linux_marked, marked, .. } = self;
        write!(f, ",{linux_dropped:.0},{dropped:.1},{linux_marked:.0},{marked:.1}")
    }
}

/// The rows, in the order of the file.
///
/// # Errors
/// The first line that is not a row.
pub fn parse(text: &str) -> Result<Vec<Row>, String> {
    if text.lines().next() != Some(HEADER) {
        return Err(format!("{FILE}, line 1: {HEADER} is expected"));
    }
    let rows = text.lines().enumerate().skip(1).map(|(number, line)| {
        row(line).ok_or_else(|| format!("{FILE}, line {}: {HEADER} is expected", number + 1))
    });
    rows.collect()
}

fn row(line: &str) -> Option<Row> {
    let fields: Vec<&str> = line.split(',').collect();
    let [cell, rate, rtt, queue, control, numbers @ ..] = &fields[..] else { return None };
    let numbers: Vec<f64> = numbers.iter().map(|number| number.parse().ok()).collect::<Option<_>>()?;
    let [linux_goodput, goodput, linux_queueing, queueing, linux_dropped, dropped, linux_marked, marked] =
        numbers[..]
    else {
        return None;
    };
    Some(Row {
        cell: (*cell).to_owned(),
        rate_mbit_s: rate.parse().ok()?,
        rtt_ms: rtt.parse().ok()?,
        queue: (*queue).to_owned(),
        control: (*control).to_owned(),
        linux_goodput,
        goodput,
        linux_queueing,
        queueing,
        linux_dropped,
        dropped,
        linux_marked,
        marked,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_is_read_as_it_was_written() {
        let written = Row {
            cell: "bbr-10-40-1bdp".to_owned(),
            rate_mbit_s: 10.0,
            rtt_ms: 40.0,
            queue: "fifo 33p".to_owned(),
            control: "bbr".to_owned(),
            linux_goodput: 9.424,
            goodput: 9.422,
            linux_queueing: 8.505,
            queueing: 8.591,
            linux_dropped: 1.0,
            dropped: 2.5,
            linux_marked: 0.0,
            marked: 0.5,
        };
        assert_eq!(parse(&format!("{HEADER}\n{written}\n")).unwrap(), [written]);
        for wrong in ["", "bbr,10,40,fifo,bbr,1,2,3,4,5,6,7", "bbr,10,40,fifo,bbr,1,2,3,4,5,6,7,x"] {
            assert!(row(wrong).is_none(), "{wrong}");
        }
        assert!(parse("").is_err());
    }
}
