//! Merges the shards of a sweep into one folder.

use std::path::{Path, PathBuf};

use crate::error::SweepError;
use crate::folder::{Files, Manifest, Shard, SweepFolder};

/// The result of a merge.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Merged {
    /// Trials of all shards.
    pub trials: u64,
    /// Shards that are not complete.
    pub missing: Vec<PathBuf>,
}

/// Merges the shards in `dirs` into the folder `out`, which has the same bytes as one that a single process
/// made. Shards that are not complete are merged as far as they are.
///
/// # Errors
/// If a shard is missing, damaged, belongs to another sweep or came from another version, or a file cannot be
/// read or written.
pub fn merge(out: &Path, dirs: &[PathBuf]) -> Result<Merged, SweepError> {
    let usage = |message: String| Err(SweepError::Usage(message));
    let mut shards: Vec<(PathBuf, Manifest)> = Vec::new();
    for dir in dirs {
        match Manifest::read(dir)? {
            Some(manifest) => shards.push((dir.clone(), manifest)),
            None => return usage(format!("{} is not the folder of a sweep", dir.display())),
        }
    }
    let Some((first_dir, first)) = shards.first().cloned() else {
        return usage("there is no shard to merge: name their folders".to_owned());
    };
    for (dir, shard) in &shards {
        if shard.version != first.version {
            return usage(format!(
                "{} came from Giveway {}, and {} from Giveway {}: run one of them again",
                dir.display(),
                shard.version,
                first_dir.display(),
                first.version
            ));
        }
        if !shard.same_sweep(&first) {
            return usage(format!("{} and {} are of different sweeps", dir.display(), first_dir.display()));
        }
    }
    for index in 0..first.shard.of {
        match shards.iter().filter(|(_, manifest)| manifest.shard.index == index).count() {
            1 => {}
            0 => return usage(format!("shard {} of {} is missing", index + 1, first.shard.of)),
            _ => return usage(format!("shard {} of {} is given twice", index + 1, first.shard.of)),
        }
    }
    let missing: Vec<PathBuf> =
        shards.iter().filter(|(_, shard)| !shard.complete).map(|(dir, _)| dir.clone()).collect();
    // All files are checked before anything is written.
    let scenario = first.scenario(&first_dir)?;
    let (mut trials, mut failed) = (Vec::new(), Vec::new());
    for (dir, shard) in &shards {
        trials.extend(shard.trials(dir)?);
        failed.extend(shard.failed(dir)?);
    }
    let (shard, files, next) = (Shard::WHOLE, Files::new(), Files::new());
    let whole = Manifest { shard, complete: false, files, next, ..first };
    let trials =
        SweepFolder::of_manifest(out, whole, &scenario)?.take(&trials, &failed, missing.is_empty())?;
    Ok(Merged { trials, missing })
}
