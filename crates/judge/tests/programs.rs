//! Programs in WebAssembly.

use giveway_judge::{Code, Program, Request, judge};
use giveway_trials::Silent;
use giveway_wasm::{Limits, Module};

const FIFO: &str = include_str!("../../wasm/tests/modules/fifo.wat");

fn program(text: &str) -> Program {
    let bytes = wat::parse_str(text).unwrap();
    Program::new("mine.wasm", Module::read(&bytes, Limits::default()).unwrap(), &bytes)
}

#[test]
#[ignore = "it takes long: cargo xtask test --all runs it"]
fn long_a_program_is_judged_and_equals_the_discipline_that_it_is() {
    let request = Request { baseline: "fifo limit 100p".to_owned(), jobs: 2, ..Request::default() };
    let judgement = judge(&program(FIFO), &request, &Silent).unwrap();
    assert_eq!(judgement.rejected, None);
    // Every gain over the same queue is zero.
    assert_eq!(judgement.score(), Some(0.0));
    assert!(judgement.cells.iter().all(|(_, gains)| gains.values().all(|gain| *gain == 0.0)));
    assert!(judgement.fuel.unwrap() > 10.0);
}

#[test]
fn a_program_without_an_end_is_rejected_in_the_first_cell() {
    let text = r#"(module (func (export "enqueue") (param i64) (loop $again (br $again)))
        (func (export "dequeue") (result i64) (i64.const -1)))"#;
    let found = judge(&program(text), &Request::default(), &Silent).unwrap().rejected.unwrap();
    assert_eq!(
        (found.code, found.cell.as_deref(), found.seed),
        (Code::Fuel, Some("rfc7928/tcp-same-window"), Some(1))
    );
}
