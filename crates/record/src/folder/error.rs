//! Errors of run folders.

use std::io;
use std::path::PathBuf;

use parquet::errors::ParquetError;

use super::manifest::FORMAT;
use crate::seal::Damage;

/// Why a folder could not be written.
#[derive(Debug, thiserror::Error)]
pub enum FolderError {
    /// A file or folder could not be made, written or renamed: no permission, no space, no such place.
    #[error("cannot write {path}: {source}", path = path.display())]
    Write {
        /// Which file or folder.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// A table could not be written or read back.
    #[error("cannot write the table {path}: {source}", path = path.display())]
    Table {
        /// Which file.
        path: PathBuf,
        /// What went wrong.
        source: ParquetError,
    },
    /// Another process writes the folder.
    #[error(
        "{path} is being written by {holder}. Nothing was changed: wait until that has ended, or name another folder",
        path = path.display()
    )]
    Busy {
        /// The folder.
        path: PathBuf,
        /// Who that is, and since when.
        holder: String,
    },
    /// The folder is not empty and no run folder.
    #[error(
        "{path} is not empty and is no run folder: it holds {held}. Nothing was changed. Name another folder, or add \
         --force, which {goes}",
        path = path.display(), held = some_of(holds), goes = going(goes)
    )]
    Foreign {
        /// The folder.
        path: PathBuf,
        /// The names in it.
        holds: Vec<String>,
        /// What would be removed to make room.
        goes: Vec<String>,
    },
    /// The folder holds a run of another scenario.
    #[error(
        "{path} holds another experiment: \"{title}\" (scenario {scenario}), made on {when} by `{created_by}`. Nothing was \
         changed. Name another folder, or add --force to remove what is there",
        path = path.display()
    )]
    Another {
        /// The folder.
        path: PathBuf,
        /// What it is about.
        title: String,
        /// The scenario's name.
        scenario: String,
        /// The command that made it.
        created_by: String,
        /// When.
        when: String,
    },
    /// The folder was written in another format.
    #[error(
        "{path} was written by Giveway {wrote}, in format {found}; this one writes format {FORMAT}. Nothing was changed. \
         Name another folder, or add --force to remove what is there",
        path = path.display()
    )]
    Format {
        /// The folder.
        path: PathBuf,
        /// Which Giveway wrote it.
        wrote: String,
        /// The number of its format.
        found: u64,
    },
    /// The manifest is damaged, so that nobody can say what the folder holds.
    #[error(
        "{damage}, so it is not known what its folder holds. Nothing was changed. Name another folder, or add --force to \
         remove what is there"
    )]
    Unknown {
        /// What is wrong with it.
        damage: Damage,
    },
    /// A finished run was damaged while the folder was in use.
    #[error("{0}. The same command runs it again")]
    Damaged(Damage),
}

impl FolderError {
    /// Whether the place was refused for what is there: another place, or leave to replace that, would do.
    pub fn is_refusal(&self) -> bool {
        matches!(
            self,
            FolderError::Foreign { .. }
                | FolderError::Another { .. }
                | FolderError::Format { .. }
                | FolderError::Unknown { .. }
        )
    }
}

/// The first names of several.
fn some_of(names: &[String]) -> String {
    const MOST: usize = 3;
    match names.len().checked_sub(MOST) {
        None | Some(0) => names.join(", "),
        Some(more) => format!("{} and {more} more", names[..MOST].join(", ")),
    }
}

fn going(names: &[String]) -> String {
    match names {
        [] => "writes the run beside that and removes nothing".to_owned(),
        names => format!("removes {} and nothing else", names.join(", ")),
    }
}
