//! The wheels of the Python package.

use super::auditable;
use super::making::Release;
use crate::python;
use crate::repository::{Done, copy_into};

/// Builds the wheels, whose libraries contain the list of their dependencies, and copies them.
pub fn build(release: &Release) -> Done {
    for wheel in python::wheels(&auditable::repository(release)?)? {
        copy_into(&wheel, &release.out)?;
    }
    Ok(())
}
