//! The wheels of the Python package.

use std::fs;

use super::making::Release;
use crate::python;
use crate::repository::Done;

/// Builds the wheels, and copies them.
pub fn build(release: &Release) -> Done {
    for wheel in python::wheels(&release.repository)? {
        let name = wheel.file_name().ok_or("a wheel has no name")?;
        fs::copy(&wheel, release.out.join(name)).map_err(|error| format!("{}: {error}", wheel.display()))?;
    }
    Ok(())
}
