//! Errors of run folders.

use std::io;
use std::path::PathBuf;

use parquet::errors::ParquetError;

use super::manifest::FORMAT;
use crate::seal::Damage;

/// An error that prevents writing a run folder. Its causes are in `source()`.
#[derive(Debug, thiserror::Error)]
pub enum FolderError {
    /// A file or folder could not be created, written or renamed.
    #[error("cannot write {path}", path = path.display())]
    Write {
        /// The file or folder.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// A table could not be written or read back.
    #[error("cannot write the table {path}", path = path.display())]
    Table {
        /// The file.
        path: PathBuf,
        /// The error of the table.
        source: ParquetError,
    },
    /// Another process writes the folder.
    #[error(
        "{path} is being written by {holder}. Nothing was changed. Wait until that process has ended, or name another folder",
        path = path.display()
    )]
    Busy {
        /// The folder.
        path: PathBuf,
        /// The process, and the time since when it writes.
        holder: String,
    },
    /// The folder is not empty, and it is not a run folder.
    #[error(
        "{path} is not empty and is not a run folder: it contains {held}. Nothing was changed. Name another folder, or add \
         --force, which {goes}",
        path = path.display(), held = some_of(holds), goes = going(goes)
    )]
    Foreign {
        /// The folder.
        path: PathBuf,
        /// The names in it.
        holds: Vec<String>,
        /// The names that `--force` would remove.
        goes: Vec<String>,
    },
    /// The folder contains a run of another scenario.
    #[error(
        "{path} contains another experiment: \"{title}\" (scenario {scenario}), made on {when} by `{created_by}`. Nothing was \
         changed. Name another folder, or add --force to replace it",
        path = path.display()
    )]
    Another {
        /// The folder.
        path: PathBuf,
        /// The title of that scenario.
        title: String,
        /// The scenario's name.
        scenario: String,
        /// The command that made it.
        created_by: String,
        /// The time of the run.
        when: String,
    },
    /// The folder has another format.
    #[error(
        "{path} was written by Giveway {wrote} in format {found}, and this version writes format {FORMAT}. Nothing was changed. \
         Name another folder, or add --force to replace it",
        path = path.display()
    )]
    Format {
        /// The folder.
        path: PathBuf,
        /// The version of Giveway that wrote it.
        wrote: String,
        /// The number of its format.
        found: u64,
    },
    /// A part of the folder is a link, which may lead to files of others.
    #[error(
        "{path} is a link, and Giveway follows no link in its folders. Nothing was changed. Remove the link, or name another \
         folder",
        path = path.display()
    )]
    Link {
        /// The link.
        path: PathBuf,
    },
    /// The manifest is damaged, so that the content of the folder is unknown.
    #[error(
        "{damage}, so the content of its folder is unknown. Nothing was changed. Name another folder, or add --force to \
         replace it"
    )]
    Unknown {
        /// The damage.
        damage: Damage,
    },
    /// The folder cannot keep trials: it contains others, or what it contains is unknown.
    #[error("{path} cannot keep trials: {why}. Nothing was changed. Name another folder", path = path.display())]
    Trials {
        /// The folder.
        path: PathBuf,
        /// The reason.
        why: String,
    },
    /// A finished trial was damaged while the folder was in use.
    #[error("{0}. The same command repeats it")]
    Damaged(Damage),
}

impl FolderError {
    /// True if the disk is full, or the user's part of it: no other file could be written either.
    pub fn is_full(&self) -> bool {
        let full = |error: &io::Error| {
            matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
        };
        match self {
            FolderError::Write { source, .. } => full(source),
            FolderError::Table { source: ParquetError::External(source), .. } => {
                source.downcast_ref::<io::Error>().is_some_and(full)
            }
            // The library formats some errors of the system.
            FolderError::Table { source: ParquetError::General(text), .. } => {
                ["No space left", "quota exceeded"].iter().any(|part| text.contains(part))
            }
            _ => false,
        }
    }

    /// True if the place was refused for its content: another place, or `--force`, would help.
    pub fn is_refusal(&self) -> bool {
        matches!(
            self,
            FolderError::Foreign { .. }
                | FolderError::Another { .. }
                | FolderError::Format { .. }
                | FolderError::Link { .. }
                | FolderError::Unknown { .. }
                | FolderError::Trials { .. }
        )
    }
}

/// The first names of several.
fn some_of(names: &[String]) -> String {
    const MAX: usize = 3;
    match names.len().checked_sub(MAX) {
        None | Some(0) => names.join(", "),
        Some(more) => format!("{} and {more} more", names[..MAX].join(", ")),
    }
}

fn going(names: &[String]) -> String {
    match names {
        [] => "writes the run beside them and removes nothing".to_owned(),
        names => format!("removes {} and nothing else", names.join(", ")),
    }
}
