//! The fingerprints of the scenarios on platforms of other processors.

use super::making::Release;
use crate::repository::Done;
use crate::scenarios;

/// Runs the short form of every scenario with the programs for other processors, under an emulator. The
/// fingerprints must match `xtask/golden.toml`, which this machine's processor has.
pub fn compare(release: &Release) -> Done {
    for platform in release.platforms.iter().filter(|platform| platform.cross.is_some()) {
        println!("{}", platform.target);
        let program = release.built(platform).join("giveway");
        scenarios::compare_with(&release.repository, &platform.command(&program.to_string_lossy()))?;
    }
    Ok(())
}
