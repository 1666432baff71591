//! The list of measurements, `kernel/test/senders.txt`, and the rows of their results.

/// Measurements in one start of the machine.
pub struct Batch {
    pub name: String,
    pub lines: Vec<Line>,
}

/// A measurement.
pub enum Line {
    Cell(Cell),
    Trace(Trace),
}

/// Bulk connections: the words of the line behind `cell`.
pub struct Cell {
    words: Vec<String>,
}

/// A packet trace: the words of the line behind `trace`.
pub struct Trace {
    words: Vec<String>,
}

/// Reads the list.
pub fn batches(text: &str) -> Result<Vec<Batch>, String> {
    let mut batches: Vec<Batch> = Vec::new();
    for line in text.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        let (kind, rest) = line.split_once(' ').unwrap_or((line, ""));
        let words: Vec<String> = rest.split(' ').map(str::to_owned).collect();
        let read = match (kind, words.len()) {
            ("boot", _) => {
                batches.push(Batch { name: rest.to_owned(), lines: Vec::new() });
                continue;
            }
            ("cell", 9) => Line::Cell(Cell { words }),
            ("trace", 6) => Line::Trace(Trace { words }),
            _ => return Err(format!("senders.txt: {line}: the head of the file has the form of a line")),
        };
        batches.last_mut().ok_or("senders.txt begins without a boot")?.lines.push(read);
    }
    Ok(batches)
}

impl Line {
    /// The line for the program of the machine.
    pub fn text(&self) -> String {
        match self {
            Line::Cell(cell) => format!("cell {}", cell.words.join(" ")),
            Line::Trace(trace) => format!("trace {}", trace.words.join(" ")),
        }
    }
}

impl Cell {
    /// The rows of the cell in the output of the machine, as rows of the table.
    pub fn rows(&self, output: &str) -> Result<String, String> {
        let [name, controls, rate, rtt, queue, seconds, warm_up, ecn, bundle] = &self.words[..] else {
            unreachable!("the number of words was checked");
        };
        let mut queue = queue.split(':');
        let mut part = || queue.next().unwrap_or_default();
        let (kind, packets, threshold) = (part(), part(), part());
        let controls = controls.replace(',', "+");
        let fixed = format!(
            "{name},{controls},{rate},{rtt},{kind},{packets},{threshold},{seconds},{warm_up},{ecn},{bundle}"
        );
        let start = format!("ROW {name},");
        let rows = output.lines().filter_map(|line| line.strip_prefix(&start));
        let rows: Vec<String> = rows.map(|row| format!("{fixed},{row}\n")).collect();
        let wanted = self.words[1].split(',').count();
        if rows.len() == wanted {
            return Ok(rows.concat());
        }
        Err(format!("{name} has {} rows instead of {wanted}", rows.len()))
    }
}

impl Trace {
    /// The file of the trace in a folder.
    pub fn file(&self, folder: &str) -> String {
        format!("{folder}/{}-{}.csv", self.words[0], self.words[1])
    }

    /// Name of the object of its wire.
    pub fn object(&self) -> String {
        format!("{}.o", self.words[0])
    }

    /// The definitions of the macros `LOST` and `LATE` for its wire.
    pub fn definitions(&self) -> [String; 2] {
        let list = |words: &str| -> String {
            let listed = words.split(',').filter(|word| *word != "-").map(|word| {
                let (segment, times) = word.split_once('x').unwrap_or((word, "1"));
                format!("{{{segment},{times}}},")
            });
            listed.collect()
        };
        [format!("-DLOST={}", list(&self.words[3])), format!("-DLATE={}", list(&self.words[4]))]
    }

    /// The rows of the trace in the output of the machine.
    pub fn rows(&self, output: &str) -> Result<String, String> {
        let start = format!("PACKET {},{},", self.words[0], self.words[1]);
        let rows: String = output
            .lines()
            .filter_map(|line| line.strip_prefix(&start))
            .map(|row| format!("{row}\n"))
            .collect();
        if rows.is_empty() {
            Err(format!("{}-{} has no packets", self.words[0], self.words[1]))
        } else {
            Ok(rows)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_of_measurements_is_read() {
        let batches = batches(include_str!("../../../../kernel/test/senders.txt")).unwrap();
        assert_eq!(batches[0].name, "quick");
        assert!(batches.iter().all(|batch| !batch.lines.is_empty()));
    }

    #[test]
    fn a_cell_needs_a_row_for_each_connection() {
        let text = "boot a\ncell n reno,cubic 10 40 fifo:33 20 5 0 0\n";
        let batches = batches(text).unwrap();
        let Line::Cell(cell) = &batches[0].lines[0] else { panic!("it is a cell") };
        assert_eq!(
            cell.rows("ROW n,1,reno,5\nROW no,1,reno,5\nROW n,2,cubic,4").unwrap(),
            "n,reno+cubic,10,40,fifo,33,,20,5,0,0,1,reno,5\nn,reno+cubic,10,40,fifo,33,,20,5,0,0,2,cubic,4\n"
        );
        assert_eq!(cell.rows("ROW n,1,reno,5").unwrap_err(), "n has 1 rows instead of 2");
    }

    #[test]
    fn the_script_of_a_wire_is_a_list_of_segments_with_their_transmissions() {
        let batches = batches("boot a\ntrace n reno 100 39x2,42 - 0\n").unwrap();
        let Line::Trace(trace) = &batches[0].lines[0] else { panic!("it is a trace") };
        assert_eq!(trace.definitions(), ["-DLOST={39,2},{42,1},", "-DLATE="]);
    }
}
