//! What a packet costs with each qdisc, as a table.

/// What a packet costs with each qdisc: instructions from the sender's call to the interface.
pub fn table(said: &str) -> Result<String, String> {
    let mut rows = Vec::new();
    for line in said.lines() {
        if let ["COST", kind, packets, seconds] = line.split_whitespace().collect::<Vec<_>>()[..] {
            let number = |word: &str| word.parse::<f64>().map_err(|error| format!("{line}: {error}"));
            rows.push((kind.to_owned(), number(seconds)? * 1e9 / number(packets)?));
        }
    }
    let of = |kind: &str| rows.iter().find(|(other, _)| other == kind).map(|(_, cost)| *cost);
    let (Some(none), Some(pfifo), Some(fq_codel)) = (of("noqueue"), of("pfifo"), of("fq_codel")) else {
        return Err("the comparison has no pfifo and no fq_codel".to_owned());
    };
    let mut table = "| qdisc | instructions per packet | of them the qdisc | to pfifo | to fq_codel |\n|---|---:|---:|---:|---:|\n".to_owned();
    for (kind, cost) in &rows {
        let (own, to_pfifo, to_fq_codel) = (cost - none, cost / pfifo, cost / fq_codel);
        table.push_str(&format!("| {kind} | {cost:.0} | {own:.0} | {to_pfifo:.2} | {to_fq_codel:.2} |\n"));
    }
    Ok(table)
}
