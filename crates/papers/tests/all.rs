//! The tests of this crate, in one program, which is linked once.

mod backbone;
mod families;
mod studies;

/// An error and its causes in one line, as the front end prints them.
fn chain(error: &dyn std::error::Error) -> String {
    let causes = std::iter::successors(Some(error), |error| error.source());
    causes.map(ToString::to_string).collect::<Vec<_>>().join(": ")
}
