//! Any output of the programs that configure the kernel is parsed or rejected.

use giveway_kernel::printed;

/// Input: one byte that selects a parser, then the output of a program.
pub fn run(input: &[u8]) {
    let Some((choice, text)) = input.split_first() else { return };
    // The output of a child process is converted in the same way.
    let text = String::from_utf8_lossy(text);
    match choice % 4 {
        0 => {
            let typed = printed::as_typed(&text);
            assert!(typed.starts_with("handle"));
        }
        1 => drop(printed::object_name(&text)),
        2 => {
            if let Some(number) = printed::registered(&text) {
                assert!(text.contains(&number.to_string()) || text.contains('+'));
            }
        }
        _ => {
            let Ok(json) = printed::json(&text) else { return };
            let _ = printed::root_qdisc(&json);
            let _ = printed::counters(&json);
            let _ = printed::has_ingress(&json);
            let _ = printed::is_promiscuous(&json);
            let (maps, room) = printed::maps(&json, u64::from(*choice));
            assert!(room == 0 || maps.iter().any(|(name, _)| name == "slots"));
        }
    }
}
