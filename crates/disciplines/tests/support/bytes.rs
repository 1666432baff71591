//! Tests of arbitrary bytes, for the fuzz targets and for a test that runs without a fuzzer.

use giveway_disciplines::{ALL, Spec};
use giveway_qdisc::contract::{Violation, drive, ops_from_bytes};
use giveway_qdisc::{LinkContext, Rate, Streams};

/// Applies operations to a discipline. The first byte selects the discipline, the second its variant, the
/// third the link; the rest are the operations.
///
/// # Errors
/// The first violation of the contract.
pub fn contract(bytes: &[u8]) -> Result<(), Violation> {
    let [discipline, variant, link, operations @ ..] = bytes else { return Ok(()) };
    let variants = ALL[usize::from(*discipline) % ALL.len()].default().variants();
    let spec = &variants[usize::from(*variant) % variants.len()];
    let rate = [Rate::kbit(64), Rate::mbit(10), Rate::gbit(1), Rate::gbit(400)][usize::from(link % 4)];
    let context = LinkContext::new(rate, Streams::new(u64::from(link / 4)).within("fuzz"));
    let Ok(mut qdisc) = spec.build_numbered(&context) else { return Ok(()) };
    match drive(&mut qdisc, spec.properties(&context), &ops_from_bytes(operations)) {
        Ok(_) => Ok(()),
        Err(violation) => Err(Violation(format!("{spec} at {rate}: {}", violation.0))),
    }
}

/// Parses a spec. A valid spec is written and parsed again with the same result; the position of an error is
/// inside the text.
///
/// # Panics
/// If one of these does not hold.
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
