//! The card of disciplines on test beds in the virtual machine: BPF qdiscs next to Linux's qdiscs, on
//! real TCP.

use super::host::quoted;

/// The script of the machine: `giveway evaluate` with these arguments.
pub fn script(arguments: &[&str]) -> String {
    format!("card{}\n", quoted(arguments))
}

/// The card in the output of a machine, as `giveway evaluate` prints it.
pub fn card(output: &str) -> Result<String, String> {
    let lines: Vec<&str> = output.lines().filter_map(|line| line.strip_prefix("CARD ")).collect();
    match lines.is_empty() {
        true => Err("the output of the machine has no card".to_owned()),
        false => Ok(lines.join("\n")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_reach_the_shell_as_they_are() {
        let script = script(&["bpf:efd limit 300p", "--against", "it's"]);
        assert_eq!(script, "card 'bpf:efd limit 300p' '--against' 'it'\\''s'\n");
    }

    #[test]
    fn a_card_is_taken_out_of_the_output() {
        assert_eq!(card("boot\nCARD efd in 2 cells\nCARD \nSAID x\n").unwrap(), "efd in 2 cells\n");
        assert!(card("boot\n").is_err());
    }
}
