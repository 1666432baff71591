//! The wheels of the Python package.

use super::auditable;
use super::making::Release;
use super::platform::PROGRAMS;
use crate::python;
use crate::repository::{Done, copy_into};

/// Builds the wheels, whose libraries contain the list of their dependencies, and copies them.
///
/// # Errors
/// If the release has no program for this machine, whose `giveway-net` is in a wheel, or a wheel cannot be
/// built.
pub fn build(release: &Release) -> Done {
    let own = release.platforms.iter().find(|platform| platform.cross.is_none());
    let own =
        own.ok_or("a wheel needs the program for this machine: leave out --without, or also the wheels")?;
    let net = release.built(own).join(PROGRAMS[1].1);
    for wheel in python::wheels(&auditable::repository(release)?, &net)? {
        copy_into(&wheel, &release.out)?;
    }
    Ok(())
}
