//! Rows of trace files, read one at a time.
//!
//! Two formats:
//! - mahimahi: a whole number per line, the time of an opportunity in milliseconds from the beginning of the
//!   trace. A time may be repeated, and none is lower than the one before it. The last time is also the
//!   length of the trace.
//! - CSV: a time and a value per line, separated by a comma. A number without a unit is in seconds, or in
//!   bit/s. The first time is zero, and each is later than the one before it. The last row is the end of a
//!   loop. A first row of names and lines that start with `#` are skipped.
//!
//! Lines are at most [`LONGEST`] bytes long, so that a binary file takes no memory.

use std::io::{BufRead, Read};

use giveway_qdisc::{Rate, Span};

use crate::error::TraceError;
use crate::quantity::{HIGHEST, Quantity, SHORTEST, check};

/// Maximum number of bytes in a line.
const LONGEST: u64 = 200;
/// Bytes of an opportunity.
pub(crate) const OPPORTUNITY: u64 = 1500;
/// Maximum number of opportunities in a millisecond, by the highest rate.
const MAX_OPPORTUNITIES: u64 = HIGHEST.as_bit() / 1000 / (8 * OPPORTUNITY);

/// Format of a trace file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Format {
    Mahimahi,
    Csv(Quantity),
}

/// A row: a time and what starts at it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Step {
    pub at: Span,
    /// The rate in bit/s, the delay in picoseconds, or the bytes of an opportunity.
    pub value: u64,
}

/// Reads rows.
#[derive(Debug)]
pub(crate) struct Rows<R> {
    input: R,
    format: Format,
    line: u64,
    text: Vec<u8>,
    last: Option<Span>,
    /// Opportunities at the last time.
    repeated: u64,
}

impl<R: BufRead> Rows<R> {
    pub fn new(input: R, format: Format) -> Rows<R> {
        Rows { input, format, line: 0, text: Vec::new(), last: None, repeated: 0 }
    }

    /// Goes back to the first row.
    pub fn rewind(&mut self) -> std::io::Result<()>
    where
        R: std::io::Seek,
    {
        self.input.rewind()?;
        (self.line, self.last, self.repeated) = (0, None, 0);
        Ok(())
    }

    /// The next row; `None` at the end of the file.
    pub fn next(&mut self) -> Result<Option<Step>, TraceError> {
        if self.format == Format::Mahimahi
            && let Some(ms) = self.plain_number()
        {
            self.line += 1;
            return self.in_order(Step { at: Span::ms(ms), value: OPPORTUNITY }).map(Some);
        }
        loop {
            self.text.clear();
            let read = (&mut self.input).take(LONGEST).read_until(b'\n', &mut self.text);
            let read = read
                .map_err(|error| TraceError::whole(format!("cannot be read: {error}"), "check the file"))?;
            if read == 0 {
                return Ok(None);
            }
            self.line += 1;
            if read as u64 == LONGEST && self.text.last() != Some(&b'\n') {
                return Err(self.wrong("the line has more than 200 characters".to_owned()));
            }
            let Ok(text) = std::str::from_utf8(&self.text) else {
                return Err(self.wrong("this is not text".to_owned()));
            };
            let text = text.trim();
            if text.is_empty() || text.starts_with('#') {
                continue;
            }
            match self.parse(text) {
                Ok(Some(row)) => return self.in_order(row).map(Some),
                Ok(None) => continue,
                Err(message) => return Err(self.wrong(message)),
            }
        }
    }

    /// The number of a line that has nothing else. A trace contains a line for each packet, so this is on the
    /// path of packets. `None` for any other line, which is left in the input.
    #[inline]
    fn plain_number(&mut self) -> Option<u64> {
        /// Fewer digits than the longest run needs.
        const DIGITS: usize = 9;
        let buffer = self.input.fill_buf().ok()?;
        let mut number = 0;
        for (i, byte) in buffer.iter().take(DIGITS + 1).enumerate() {
            match byte {
                b'0'..=b'9' if i < DIGITS => number = 10 * number + u64::from(byte - b'0'),
                b'\n' if i > 0 => {
                    self.input.consume(i + 1);
                    return Some(number);
                }
                _ => return None,
            }
        }
        None
    }

    /// Parses a line; `None` for the names of the columns.
    fn parse(&self, text: &str) -> Result<Option<Step>, String> {
        match self.format {
            Format::Mahimahi => {
                let ms: u64 = text
                    .parse()
                    .map_err(|_| format!("expected a whole number of milliseconds, found {text:?}"))?;
                if ms > Span::s(4800 * 3600).as_ps() / 1_000_000_000 {
                    return Err(format!("{ms} ms is later than the end of the longest run, 4,800 h"));
                }
                Ok(Some(Step { at: Span::ms(ms), value: OPPORTUNITY }))
            }
            Format::Csv(quantity) => {
                let mut columns = text.split(',').map(str::trim);
                let (Some(at), Some(value), None) = (columns.next(), columns.next(), columns.next()) else {
                    return Err(format!(
                        "expected two columns, time and {}, found {text:?}",
                        quantity.name()
                    ));
                };
                let is_name = |column: &str| column.starts_with(|c: char| c.is_ascii_alphabetic());
                if self.last.is_none() && is_name(at) && is_name(value) {
                    return Ok(None);
                }
                let at = span(at).map_err(|error| format!("time: {error}"))?;
                let value = match quantity {
                    Quantity::Rate => rate(value).map(Rate::as_bit),
                    Quantity::Delay => span(value).map(Span::as_ps),
                };
                let value = value.map_err(|error| format!("{}: {error}", quantity.name()))?;
                Ok(Some(Step { at, value }))
            }
        }
    }

    /// Checks the order of the rows, and their rates.
    fn in_order(&mut self, row: Step) -> Result<Step, TraceError> {
        let bursts = self.format == Format::Mahimahi;
        match self.last {
            Some(last) if row.at < last => {
                let message = format!("the time goes back, from {last} to {}", row.at);
                return Err(TraceError::at(self.line, message, "sort the lines by time"));
            }
            Some(last) if row.at == last && !bursts => {
                let message = format!("the time {last} is listed twice");
                return Err(TraceError::at(self.line, message, "write each time once, with one value"));
            }
            Some(last) if row.at < last + SHORTEST && !bursts => {
                let message = format!("the rows at {last} and {} are less than {SHORTEST} apart", row.at);
                return Err(TraceError::at(self.line, message, "leave rows out"));
            }
            None if !bursts && !row.at.is_zero() => {
                let message = format!("the first row is at {}, and nothing says what is before", row.at);
                return Err(TraceError::at(self.line, message, "begin with a row at time 0"));
            }
            _ => {}
        }
        self.repeated = if self.last == Some(row.at) { self.repeated + 1 } else { 1 };
        self.last = Some(row.at);
        if bursts && self.repeated > MAX_OPPORTUNITIES {
            let message =
                format!("more than {MAX_OPPORTUNITIES} opportunities at {} exceed 10 Tbit/s", row.at);
            return Err(TraceError::at(self.line, message, "write fewer lines with the same time"));
        }
        if let Format::Csv(quantity) = self.format {
            check(quantity, row.value).map_err(|(message, help)| TraceError::at(self.line, message, help))?;
        }
        Ok(row)
    }

    fn wrong(&self, message: String) -> TraceError {
        let help = match self.format {
            Format::Mahimahi => {
                "write a line for each packet of 1,500 bytes that may leave, with its time in milliseconds, \
                 such as 12"
            }
            Format::Csv(Quantity::Rate) => "write a time and a rate in each line, such as 1.5,20mbit",
            Format::Csv(Quantity::Delay) => "write a time and a delay in each line, such as 1.5,20ms",
        };
        TraceError::at(self.line, message, help)
    }
}

/// A time with a unit, or in seconds.
fn span(text: &str) -> Result<Span, String> {
    with_unit(text, "s", |text| text.parse())
}

/// A rate with a unit, or in bit/s.
fn rate(text: &str) -> Result<Rate, String> {
    with_unit(text, "bit", |text| text.parse())
}

/// Parses a number with its unit, which is `unit` if there is none. The text with the unit is on the stack.
fn with_unit<T>(
    text: &str,
    unit: &str,
    parse: impl Fn(&str) -> Result<T, giveway_qdisc::UnitError>,
) -> Result<T, String> {
    let mut buffer = [0; LONGEST as usize + 8];
    let complete = if text.ends_with(|c: char| c.is_ascii_digit()) {
        let length = text.len() + unit.len();
        buffer[..text.len()].copy_from_slice(text.as_bytes());
        buffer[text.len()..length].copy_from_slice(unit.as_bytes());
        std::str::from_utf8(&buffer[..length]).expect("two texts are a text")
    } else {
        text
    };
    parse(complete).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(format: Format, text: &[u8]) -> Result<Vec<(Span, u64)>, TraceError> {
        let mut rows = Rows::new(text, format);
        let mut all = Vec::new();
        while let Some(Step { at, value }) = rows.next()? {
            all.push((at, value));
        }
        Ok(all)
    }

    fn error(format: Format, text: &[u8]) -> String {
        all(format, text).unwrap_err().to_string()
    }

    const CSV: Format = Format::Csv(Quantity::Rate);

    #[test]
    fn rows_have_units_or_are_seconds_and_bits() {
        let read = all(CSV, b"time, rate\n# a comment\n0, 1500\n0.25,20mbit\r\n\n1 min , 0\n").unwrap();
        assert_eq!(read, [(Span::ZERO, 1500), (Span::ms(250), 20_000_000), (Span::s(60), 0)]);
        let read = all(Format::Csv(Quantity::Delay), b"0,20ms\n1,0.5").unwrap();
        assert_eq!(read, [(Span::ZERO, 20_000_000_000), (Span::s(1), 500_000_000_000)]);
    }

    #[test]
    fn a_wrong_row_is_named_with_its_line() {
        let cases: [(&[u8], &str); 8] = [
            (b"0,1mbit\n2,1mbit\n1,1mbit", "line 3: the time goes back, from 2s to 1s"),
            (b"0,1mbit\n0,2mbit", "line 2: the time 0s is listed twice"),
            (b"1,1mbit", "line 1: the first row is at 1s, and nothing says what is before"),
            (b"0,11tbit", "line 1: the rate of 11000gbit exceeds 10 Tbit/s"),
            (b"0;1mbit", "line 1: expected two columns, time and rate, found \"0;1mbit\""),
            (b"0,\xff\xfe", "line 1: this is not text"),
            (b"0,1mbit\n500ns,2mbit", "line 2: the rows at 0s and 500ns are less than 10us apart"),
            (&[b'1'; 1000], "line 1: the line has more than 200 characters"),
        ];
        for (text, message) in cases {
            assert_eq!(error(CSV, text), message);
        }
        assert!(error(CSV, b"0,fast").starts_with("line 1: rate: \"fast\" is not a rate"));
        assert!(error(CSV, b"-1,1mbit").starts_with("line 1: time: "));
    }

    #[test]
    fn opportunities_are_milliseconds_that_do_not_go_back() {
        let read = all(Format::Mahimahi, b"0\n3\n3\n7").unwrap();
        assert_eq!(read.iter().map(|(at, _)| at.as_ps() / 1_000_000_000).collect::<Vec<_>>(), [0, 3, 3, 7]);
        let wrong = |text: &[u8]| error(Format::Mahimahi, text);
        assert_eq!(wrong(b"3\n2"), "line 2: the time goes back, from 3ms to 2ms");
        assert_eq!(wrong(b"3.5"), "line 1: expected a whole number of milliseconds, found \"3.5\"");
        assert_eq!(
            wrong(b"99999999999"),
            "line 1: 99999999999 ms is later than the end of the longest run, 4,800 h"
        );
    }
}
