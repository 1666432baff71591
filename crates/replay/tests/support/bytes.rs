//! The interpretation of fuzzed bytes, shared by the fuzz target and by a test without a fuzzer.

use std::io::Cursor;

use giveway_replay::format::{MAGIC, VERSION, head};
use giveway_replay::{Item, Outcome, Reader, TraceError, check};

/// Checks that any bytes are read as a trace, or refused with a position inside them. The same must hold for
/// the bytes as operations of a trace with correct checks, complete and truncated.
///
/// # Panics
/// If this does not hold.
pub fn trace(bytes: &[u8]) {
    read(bytes);
    // Only a FIFO queue is run: with arbitrary times, other disciplines may catch up for hours.
    let build = [&[2, b'u', b'p', 4][..], b"fifo", &[0x64, 0xdc, 0x0b], &[0; 8], &[0, 0, 0]].concat();
    let mut file = [&MAGIC[..], &VERSION.to_le_bytes(), &[0]].concat();
    file.extend([&head(1, 0, build.len() as u32, &build)[..], &build].concat());
    let (first, second) = bytes.split_at(bytes.len() / 2);
    // In two chunks, which need not be cut between operations.
    let two =
        [first, second].map(|content| [&head(2, 0, content.len() as u32, content)[..], content].concat());
    let one = [&head(2, 0, bytes.len() as u32, bytes)[..], bytes].concat();
    let close = [&head(3, 0, bytes.len() as u32, bytes)[..], bytes].concat();
    let other = [&head(1, 1, bytes.len() as u32, bytes)[..], bytes].concat();
    for rest in [one, two.concat(), close, other] {
        let whole = [&file[..], &rest].concat();
        let all = run(&whole);
        let cut = run(&whole[..whole.len() - rest.len().min(3)]);
        let of = |outcome: &Outcome| outcome.sections.iter().map(|s| s.totals.operations).sum::<u64>();
        assert!(of(&cut) <= of(&all) && cut.sections.len() <= all.sections.len());
    }
    read(&file);
}

fn run(file: &[u8]) -> Outcome {
    let outcome = check(Cursor::new(file)).expect("the header is correct");
    if let Some(error) = &outcome.damage {
        check_position(error, file);
    }
    outcome
}

fn read(bytes: &[u8]) {
    let mut reader = match Reader::new(Cursor::new(bytes)) {
        Ok(reader) => reader,
        Err(error) => return check_position(&error, bytes),
    };
    loop {
        match reader.next() {
            Ok(Some(Item::Begin { .. } | Item::Operation { .. } | Item::End { .. })) => {}
            Ok(None) => return,
            Err(error) => {
                check_position(&error, bytes);
                assert!(
                    matches!(reader.next(), Ok(None)) && !reader.whole(),
                    "there are no items after an error"
                );
                return;
            }
        }
    }
}

fn check_position(error: &TraceError, file: &[u8]) {
    assert!(!error.to_string().is_empty());
    match error {
        TraceError::NotATrace | TraceError::Version(_) => {}
        TraceError::Read { error, .. } => panic!("memory can be read: {error}"),
        TraceError::Damaged { offset, .. } => assert!(*offset <= file.len() as u64, "{error}"),
    }
}
