//! Runs a program with libFuzzer: <https://llvm.org/docs/LibFuzzer.html>.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use super::options::Options;
use crate::repository::{Done, Repository};

/// Time limit of an input, in seconds.
const TIMEOUT: &str = "-timeout=10";
/// Memory limit of an input, in MiB.
const MEMORY: &str = "-rss_limit_mb=2048";
/// Length limit of an input, in bytes. Longer inputs are slow and find no new errors.
const LONGEST: &str = "-max_len=16384";

/// Coverage of a corpus.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Coverage {
    /// Edges of the control flow.
    pub edges: u64,
    /// Edges with the number of times that they are taken, and values that are compared.
    pub features: u64,
}

/// A target with its program and folders.
pub struct Fuzzer {
    /// Name of the target.
    pub target: String,
    /// Folder of the repository for finds.
    pub finds: PathBuf,
    /// Folder into which libFuzzer writes inputs that fail.
    pub artifacts: PathBuf,
    program: PathBuf,
    /// Inputs that are kept in the repository, as files.
    kept: PathBuf,
    dictionary: PathBuf,
    /// Folder of the inputs that reached new code.
    corpus: PathBuf,
    scratch: PathBuf,
}

impl Fuzzer {
    /// The fuzzer of a target. `kept` is the folder of stored inputs, `scratch` a folder for files of the
    /// target.
    pub fn new(repository: &Repository, target: &str, kept: &Path, scratch: &Path) -> Fuzzer {
        let fuzz = repository.root.join("fuzz");
        let machine = repository.host().unwrap_or_default();
        Fuzzer {
            target: target.to_owned(),
            finds: fuzz.join("finds").join(target),
            artifacts: fuzz.join("artifacts").join(target),
            program: fuzz.join("target").join(machine).join("release").join(target),
            kept: kept.join(target),
            dictionary: kept.join(format!("{target}.dict")),
            corpus: fuzz.join("corpus").join(target),
            scratch: scratch.to_owned(),
        }
    }

    /// Creates the folders to which libFuzzer writes.
    pub fn make_folders(&self) -> Done {
        for folder in [&self.artifacts, &self.corpus] {
            fs::create_dir_all(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
        }
        Ok(())
    }

    /// The command line of the program: the limits, then these arguments.
    pub fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(&self.program);
        command.args([TIMEOUT, MEMORY, LONGEST]).args(words);
        command.env("GIVEWAY_FUZZ_SCRATCH", &self.scratch).stdin(Stdio::null());
        command
    }

    fn with_inputs(&self, words: &[&str]) -> Command {
        let mut command = self.command(words);
        command.arg(&self.corpus).arg(&self.kept);
        command
    }

    /// Coverage of the corpus and the stored inputs together.
    pub fn coverage(&self) -> Result<Coverage, String> {
        let output = self.with_inputs(&["-runs=0"]).output().map_err(|error| self.explain(&error))?;
        let errors = String::from_utf8_lossy(&output.stderr);
        // A failing input ends the program before the total, so the last line with coverage counts.
        errors
            .lines()
            .rev()
            .find_map(read_coverage)
            .ok_or_else(|| format!("no coverage in the output:\n{errors}"))
    }

    /// Searches for new inputs. Returns the number of inputs tried, and the duration in seconds.
    pub fn fuzz(&self, options: &Options) -> Result<(u64, f64), String> {
        let fork = format!("-fork={}", options.jobs);
        let time = options.time.map(|time| format!("-max_total_time={}", time.as_secs()));
        let inputs = options.inputs.map(|inputs| format!("-runs={inputs}"));
        let artifacts = format!("-artifact_prefix={}/", self.artifacts.display());
        let dictionary = format!("-dict={}", self.dictionary.display());
        let go_on = ["-ignore_crashes=1", "-ignore_timeouts=1", "-ignore_ooms=1"];
        let mut words = vec![&*fork, &*artifacts];
        words.extend(time.as_deref());
        words.extend(inputs.as_deref());
        words.extend(go_on);
        if fs::metadata(&self.dictionary).is_ok_and(|about| about.len() > 0) {
            words.push(&dictionary);
        }
        let begun = Instant::now();
        let mut child =
            self.with_inputs(&words).stderr(Stdio::piped()).spawn().map_err(|error| self.explain(&error))?;
        let mut inputs = 0;
        for line in BufReader::new(child.stderr.take().expect("it is piped")).lines().map_while(Result::ok) {
            if let Some(count) = read_inputs(&line) {
                inputs = count;
                println!("{line}");
            }
        }
        child.wait().map_err(|error| self.explain(&error))?;
        Ok((inputs, begun.elapsed().as_secs_f64()))
    }

    /// Removes inputs from the corpus that reach no code that others do not reach. Returns the number of
    /// remaining inputs.
    pub fn minimise(&self) -> Result<usize, String> {
        let smaller = self.corpus.with_extension("smaller");
        let explain = |error: std::io::Error| format!("{}: {error}", smaller.display());
        if smaller.exists() {
            fs::remove_dir_all(&smaller).map_err(explain)?;
        }
        fs::create_dir_all(&smaller).map_err(explain)?;
        let mut merge = self.command(&["-merge=1"]);
        let merged = merge.arg(&smaller).arg(&self.corpus).arg(&self.kept).output();
        let merged = merged.map_err(|error| self.explain(&error))?;
        let left = fs::read_dir(&smaller).map_err(explain)?.count();
        if !merged.status.success() || left == 0 {
            // Keep the larger corpus: it covers the same.
            fs::remove_dir_all(&smaller).map_err(explain)?;
            return Ok(fs::read_dir(&self.corpus).map_err(explain)?.count());
        }
        fs::remove_dir_all(&self.corpus).map_err(explain)?;
        fs::rename(&smaller, &self.corpus).map_err(explain)?;
        Ok(left)
    }

    fn explain(&self, error: &std::io::Error) -> String {
        format!("{}: {error}", self.program.display())
    }
}

/// Coverage in a line such as `#1234  DONE   cov: 56 ft: 78 corp: ...`.
fn read_coverage(line: &str) -> Option<Coverage> {
    let number = |name: &str| {
        let (_, rest) = line.split_once(name)?;
        rest.split_whitespace().next()?.parse().ok()
    };
    (line.starts_with('#')).then_some(Coverage { edges: number("cov: ")?, features: number("ft: ")? })
}

/// Number of inputs in the status line for all processes, `#1234: cov: 56 ft: 78 corp: ...`.
fn read_inputs(line: &str) -> Option<u64> {
    line.strip_prefix('#')?.split_once(": cov: ")?.0.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_output_of_libfuzzer_is_parsed() {
        let all = "#4839: cov: 352 ft: 1120 corp: 211 exec/s: 2419 oom/timeout/crash: 0/0/0 time: 2s job: 1 dft_time: 0";
        assert_eq!(read_inputs(all), Some(4839));
        let one = "#15\tDONE   cov: 352 ft: 1120 corp: 14/2Kb lim: 4096 exec/s: 0 rss: 40Mb";
        assert_eq!(read_coverage(one), Some(Coverage { edges: 352, features: 1120 }));
        assert_eq!((read_inputs(one), read_coverage("INFO: seed corpus")), (None, None));
    }
}
