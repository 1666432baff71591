//! Whatever the programs print that speak to the kernel is understood or refused.

use giveway_kernel::printed;

/// The first byte chooses what is read; the rest is what a program printed.
pub fn run(input: &[u8]) {
    let Some((choice, text)) = input.split_first() else { return };
    // As a child's output is read.
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
