//! A file with the headers of packets that were read.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use ::giveway_capture::{EnhancedPacket, Frame, InterfaceDescription, Writer};
use giveway_files::Dir;

use super::mode::shown;
use giveway_runner::RunnerError;

/// Bytes of a packet that are copied: headers of several encapsulations are shorter.
const KEPT: usize = 256;
/// Access rights of the file: it contains other people's traffic.
const PRIVATE: u32 = 0o600;

/// Writes the headers of packets into a file, for a replay.
pub(super) struct Copy {
    writer: Writer<BufWriter<File>>,
    /// The number of the interface of each link type.
    interfaces: BTreeMap<u16, u32>,
    path: PathBuf,
}

impl Copy {
    /// Checks that there is no file, or that `force` is true.
    pub(super) fn check(path: &Path, force: bool) -> Result<(), RunnerError> {
        if !force && path.exists() {
            let path = shown(path);
            return Err(RunnerError::Usage(format!("--keep {path}: the file exists; --force replaces it")));
        }
        Ok(())
    }

    /// Creates the file. Another one at its place is replaced only if `force` is true.
    pub(super) fn create(path: &Path, force: bool) -> Result<Copy, RunnerError> {
        Copy::check(path, force)?;
        let name = path.file_name().unwrap_or_default();
        let create = || {
            let file = Dir::open(path.parent().unwrap_or(Path::new("")))?.new_file(name, PRIVATE)?;
            Writer::new(BufWriter::new(file), "giveway compare")
        };
        let writer = create().map_err(RunnerError::io(format!("cannot write {}", shown(path))))?;
        Ok(Copy { writer, interfaces: BTreeMap::new(), path: path.to_owned() })
    }

    pub(super) fn packet(&mut self, time: u64, frame: &Frame<'_>) -> Result<(), RunnerError> {
        let mut write = || {
            let interface = match self.interfaces.get(&frame.link.0) {
                Some(interface) => *interface,
                None => {
                    let about = InterfaceDescription { link: frame.link, ..Default::default() };
                    let interface = self.writer.interface(&about)?;
                    self.interfaces.insert(frame.link.0, interface);
                    interface
                }
            };
            let data = &frame.data[..frame.data.len().min(KEPT)];
            let block = EnhancedPacket { interface, time, bytes: frame.wire_bytes, data, comment: None };
            self.writer.packet(&block)
        };
        write().map_err(|error| RunnerError::io(format!("cannot write {}", shown(&self.path)))(error))
    }

    pub(super) fn finish(self) -> Result<(), RunnerError> {
        let finish = || self.writer.finish()?.flush();
        finish().map_err(RunnerError::io(format!("cannot write {}", shown(&self.path))))
    }
}
