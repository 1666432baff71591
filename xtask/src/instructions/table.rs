//! The table `docs/instructions.csv`: label, workload and instructions per packet in each row.

/// The file, relative to the repository.
pub const FILE: &str = "docs/instructions.csv";
/// Its first line.
pub const HEADER: &str = "label,workload,instructions";

/// One workload and its instructions per packet.
pub struct Count {
    pub workload: String,
    pub instructions: f64,
}

/// The counts by label, in the order of the file.
///
/// # Errors
/// The first line that is not a row.
pub fn parse(text: &str) -> Result<Vec<(String, Vec<Count>)>, String> {
    let mut table: Vec<(String, Vec<Count>)> = Vec::new();
    for (number, line) in text.lines().enumerate().skip(1) {
        let row = row(line).ok_or_else(|| format!("{FILE}, line {}: {HEADER} is expected", number + 1));
        let (label, count) = row?;
        match table.last_mut() {
            Some((last, counts)) if *last == label => counts.push(count),
            _ => table.push((label, vec![count])),
        }
    }
    Ok(table)
}

/// Label and count of a row.
pub(super) fn row(line: &str) -> Option<(String, Count)> {
    let (label, rest) = line.split_once(",\"")?;
    let (workload, instructions) = rest.split_once("\",")?;
    let count = Count { workload: workload.to_owned(), instructions: instructions.parse().ok()? };
    Some((label.to_owned(), count))
}
