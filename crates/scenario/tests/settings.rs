//! Keys of a link as settings of a running bridge.

use std::path::Path;

use giveway_scenario::link_key;

fn wrong(key: &str, value: &str) -> String {
    link_key(key, value, Some(Path::new("/nowhere"))).unwrap_err().to_string()
}

#[test]
fn keys_are_read_as_in_a_scenario() {
    let read = |key: &str, value: &str| link_key(key, value, None).unwrap();
    let rate = read("rate", "{ steps = [[\"0s\", \"50mbit\"], [\"10s\", \"1mbit\"]] }").rate.unwrap();
    assert_eq!((rate.least(), rate.most()), (1_000_000, 50_000_000));
    let delay = read("delay", "{ ramp = [[\"0s\", \"20ms\"], [\"1s\", \"60ms\"]], loop = true }").delay;
    assert!(delay.is_some_and(|delay| delay.repeats()));
    assert!(read("loss", "{ model = \"gemodel\", p = \"1%\", r = \"20%\" }").loss.is_some());
    assert_eq!(read("reorder", "{ percent = \"1%\", distance = 3 }").reorder.unwrap().distance, 3);
    assert_eq!(read("corrupt", "0.1%").corrupt.get(), 0.001);
    assert!(read("unordered", "yes").unordered);
}

#[test]
fn mistakes_have_the_messages_of_a_scenario() {
    assert_eq!(wrong("rate", "{ setps = [] }"), "unknown key \"setps\" of rate; did you mean \"steps\"?");
    assert_eq!(
        wrong("rate", "{ loop = true }"),
        "nothing says how it varies; write one of trace, csv, steps, ramp, model"
    );
    assert!(wrong("rate", "{ trace = \"x.mahi\" }").starts_with("trace: x.mahi: cannot be opened: "));
    assert!(wrong("rate", "{ steps = ").starts_with("this is not TOML: "));
    assert!(wrong("corrupt", "half").contains("half"), "{}", wrong("corrupt", "half"));
    assert!(wrong("unordered", "maybe").contains("true or false"), "{}", wrong("unordered", "maybe"));
    let file = link_key("rate", "{ trace = \"x.mahi\" }", None).unwrap_err().to_string();
    assert!(file.starts_with("trace: a running bridge opens no files; "), "{file}");
}
