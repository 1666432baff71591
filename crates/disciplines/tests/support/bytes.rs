//! What a fuzzer's bytes mean: shared by the fuzz targets and by a test that runs without a fuzzer.

use giveway_disciplines::{ALL, Spec};
use giveway_qdisc::contract::{Violation, drive, ops_from_bytes};
use giveway_qdisc::{LinkContext, Rate, Streams};

/// The first byte picks a discipline, the second its variant, the third the link; the rest is operations on
/// it.
///
/// # Errors
/// The first broken promise of the contract.
pub fn contract(bytes: &[u8]) -> Result<(), Violation> {
    let [discipline, variant, link, operations @ ..] = bytes else { return Ok(()) };
    let variants = (ALL[usize::from(*discipline) % ALL.len()].variants)();
    let spec = &variants[usize::from(*variant) % variants.len()];
    let rate = [Rate::kbit(64), Rate::mbit(10), Rate::gbit(1), Rate::gbit(400)][usize::from(link % 4)];
    let context = LinkContext::new(rate, Streams::new(u64::from(link / 4)).within("fuzz"));
    let Ok(mut qdisc) = spec.build::<u64>(&context) else { return Ok(()) };
    match drive(&mut qdisc, spec.properties(&context), &ops_from_bytes(operations)) {
        Ok(_) => Ok(()),
        Err(violation) => Err(Violation(format!("{spec} at {rate}: {}", violation.0))),
    }
}

/// Text that can be read as a discipline is written so that it reads the same again, and building it does not
/// panic. An error points inside the text.
///
/// # Panics
/// When one of these does not hold.
pub fn spec(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    match text.parse::<Spec>() {
        Ok(spec) => {
            let written = spec.to_string();
            assert_eq!(
                written.parse::<Spec>().as_ref(),
                Ok(&spec),
                "\"{text}\" was written as \"{written}\""
            );
        }
        Err(error) => {
            assert!(text.get(error.span.clone()).is_some(), "\"{text}\": {error} at {:?}", error.span);
        }
    }
}
