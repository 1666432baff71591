//! The wheels of the Python package.

use super::making::Release;
use crate::python;
use crate::repository::{Done, copy_into};

/// Builds the wheels, and copies them.
pub fn build(release: &Release) -> Done {
    for wheel in python::wheels(&release.repository)? {
        copy_into(&wheel, &release.out)?;
    }
    Ok(())
}
