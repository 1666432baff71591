//! The virtual machine that hosts test beds, and what leaves it.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::image;
use crate::kernel::fetch::Kernel;
use crate::kernel::machine::{COUNTED, boot_for};
use crate::repository::Repository;

/// Time limit of a machine, in seconds.
const SECONDS: &str = "3600";

/// A virtual machine for test beds.
pub struct Machine<'a> {
    /// The checkout.
    pub repository: &'a Repository,
    kernel: &'a Kernel,
    /// The folder of its files, such as its disk.
    pub folder: PathBuf,
    /// The folder with compiled BPF qdiscs, which the machine has as `/objects`; `None` for a machine
    /// without.
    objects: Option<PathBuf>,
}

impl Machine<'_> {
    /// Builds the programs of the machine.
    pub fn new<'a>(
        repository: &'a Repository,
        folder: &Path,
        kernel: &'a Kernel,
    ) -> Result<Machine<'a>, String> {
        // The programs that the tests have built, as for the other tests of the kernel.
        repository.build_tests()?;
        let folder = folder.join("bed");
        fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
        Ok(Machine { repository, kernel, folder, objects: None })
    }

    /// The machine with compiled BPF qdiscs of this folder.
    pub fn with_objects(self, objects: PathBuf) -> Self {
        Machine { objects: Some(objects), ..self }
    }

    /// Runs a script for the functions of `kernel/test/testbed.sh` and returns the output. `slots` is the
    /// number of captures that it writes to the disk.
    pub fn run(&self, script: &str, slots: usize) -> Result<String, String> {
        image::write(self.repository, &self.folder, self.kernel, script, self.objects.as_deref())?;
        boot_for(&self.folder, self.kernel, slots, &COUNTED, SECONDS)
    }
}

/// The results of a test bed in the output of a machine, as `giveway testbed --json` prints them.
pub fn results(output: &str, name: &str) -> Result<Value, String> {
    let start = format!("BED {name} ");
    let text = output.lines().find_map(|line| line.strip_prefix(&start));
    let text = text.ok_or_else(|| format!("the output of the machine has no results of {name}"))?;
    serde_json::from_str(text).map_err(|error| format!("{name}: {error}"))
}

/// Words for the shell of the machine, each with a space before it.
pub fn quoted(words: &[&str]) -> String {
    words.iter().map(|word| format!(" '{}'", word.replace('\'', "'\\''"))).collect()
}

/// Prints the messages of the test beds.
pub fn said(output: &str) {
    output.lines().filter_map(|line| line.strip_prefix("SAID ")).for_each(|line| println!("{line}"));
}
