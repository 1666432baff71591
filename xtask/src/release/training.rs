//! The profile of a training run: how often the hot functions of the simulator take each branch, and what
//! they call. With it the compiler places and inlines them (profile-guided optimisation). A card then needs
//! a fifth fewer instructions.
//!
//! - The program is built twice. The first one counts: it runs [`TRAINING`], and writes its counts.
//! - Only functions that count a five-hundredth of the highest count or more are in the profile. The compiler
//!   treats the others as it does without one. So what the training does not run, such as a bridge, is not
//!   taken for cold.
//! - Two builds shall have the same bytes, but hash tables of libraries have random keys. Their functions are
//!   left out, and the training runs twice: it fails if the two profiles differ.
//! - A program for another processor has no profile, since an emulator would train it for an hour.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use super::environment::with_flag;
use super::making::Release;
use super::platform::{PROFILE, Platform};
use crate::repository::{Done, Repository};
use crate::tools;

/// The arguments of the training run: a card of few seeds, whose simulations run one after the other.
const TRAINING: &str = "evaluate efd --against fifo,pfifo_fast,red,codel,pie,fq_codel,fq_pie,cake,dualpi2,sfq \
                        --short --seeds 2 --tune 2 --no-sensitivity --jobs 1 --quiet --out";

/// The share of the highest count that a function of the profile has.
const HOT: u64 = 500;

/// A part of the names of the functions that may be in the profile.
const OWN: &str = "giveway";

/// Builds the program that counts with `build`, which gets the repository with its environment, and trains
/// it. Returns the file of the profile; `None` for a platform of another processor.
pub fn profile(
    release: &Release,
    platform: &Platform,
    build: impl Fn(&Repository) -> Done,
    repository: &Repository,
) -> Result<Option<PathBuf>, String> {
    if platform.cross.is_some() {
        return Ok(None);
    }
    let merge = tools::profdata(repository)?;
    let folder = release.target.join("release-training");
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let target = folder.join("target");
    let counting = with_flag(repository, format!("-Cprofile-generate={}", folder.display()));
    build(&counting.with([("CARGO_TARGET_DIR".to_owned(), target.to_string_lossy().into_owned())]))?;
    let program = target.join(platform.target).join(PROFILE).join("giveway");
    let trained: Vec<String> = (1..=2)
        .map(|round| train(release, &program, &merge, &folder.join(round.to_string())))
        .collect::<Result<_, _>>()?;
    if trained[0] != trained[1] {
        return Err(format!("two training runs differ: their profiles are in {}", folder.display()));
    }
    let [text, file] = ["hot.proftext", "hot.profdata"].map(|name| folder.join(name));
    fs::write(&text, &trained[0]).map_err(|error| format!("{}: {error}", text.display()))?;
    repository.run(&merge, &["merge", "-o", &file.to_string_lossy(), &text.to_string_lossy()])?;
    println!("profile: {} functions", trained[0].matches("# Func Hash:").count());
    // The program that counts is not needed any more.
    fs::remove_dir_all(&target).map_err(|error| format!("{}: {error}", target.display()))?;
    Ok(Some(file))
}

/// The repository with an environment in which the compiler takes a profile.
pub fn with_profile(repository: &Repository, profile: &Path) -> Repository {
    with_flag(repository, format!("-Cprofile-use={}", profile.display()))
}

/// Runs the program that counts, and returns the profile of its hot functions as text.
fn train(release: &Release, program: &Path, merge: &str, folder: &Path) -> Result<String, String> {
    let failed = |error: std::io::Error| format!("{}: {error}", folder.display());
    fs::create_dir_all(folder).map_err(failed)?;
    let raw = folder.join("counts.profraw");
    let counts = ("LLVM_PROFILE_FILE".to_owned(), raw.to_string_lossy().into_owned());
    let repository = Repository { root: folder.to_owned(), ..release.repository.with([counts]) };
    let words: Vec<&str> = TRAINING.split_whitespace().chain(["card"]).collect();
    repository.run(&program.to_string_lossy(), &words)?;
    let text = folder.join("all.proftext");
    let arguments = ["merge", "--text", "-o", &text.to_string_lossy(), &raw.to_string_lossy()];
    repository.run(merge, &arguments)?;
    hot(&fs::read_to_string(&text).map_err(failed)?)
}

/// The hot functions of a profile in the text form of LLVM: a paragraph for each function, with its name, a
/// checksum and its counts.
fn hot(profile: &str) -> Result<String, String> {
    let mut functions: Vec<(&str, u64)> = Vec::new();
    for paragraph in profile.split("\n\n").map(str::trim).filter(|paragraph| !paragraph.is_empty()) {
        // The header is before the first name.
        let start =
            paragraph.lines().take_while(|line| line.starts_with(['#', ':'])).map(|line| line.len() + 1);
        let function = paragraph.get(start.sum()..).unwrap_or_default();
        if !function.is_empty() {
            let count =
                highest(function).ok_or_else(|| format!("the profile has no counts of {function}"))?;
            functions.push((function, count));
        }
    }
    let most = functions.iter().map(|(_, count)| *count).max().unwrap_or_default();
    let mut text = "# IR level Instrumentation Flag\n:ir\n".to_owned();
    for (function, count) in functions {
        let name = function.lines().next().unwrap_or_default();
        if name.contains(OWN) && count > 0 && count.saturating_mul(HOT) >= most {
            let _ = writeln!(text, "{function}\n");
        }
    }
    Ok(text)
}

/// The highest count of a function.
fn highest(function: &str) -> Option<u64> {
    let mut lines = function.lines().skip_while(|line| *line != "# Num Counters:").skip(1);
    let counters: usize = lines.next()?.parse().ok()?;
    lines
        .skip(1)
        .take(counters)
        .map(|line| line.parse().ok())
        .collect::<Option<Vec<u64>>>()?
        .into_iter()
        .max()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn function(name: &str, counts: &[u64]) -> String {
        let number = counts.len();
        let counts: String = counts.iter().map(|count| format!("{count}\n")).collect();
        format!("{name}\n# Func Hash:\n7\n# Num Counters:\n{number}\n# Counter Values:\n{counts}\n")
    }

    #[test]
    fn a_profile_has_the_hot_functions_only() {
        let header = "# IR level Instrumentation Flag\n:ir\n";
        let [hot_one, cold, hashes, never] = [
            function("giveway_sim::step", &[1_000, 0]),
            function("giveway_cli::main", &[1]),
            function("hashbrown::find", &[999]),
            function("giveway_live::bridge", &[0, 0]),
        ];
        let found = hot(&format!("{header}{hot_one}{cold}{hashes}{never}")).unwrap();
        assert_eq!(found, format!("{header}{hot_one}"));
        assert!(hot("giveway\n# Func Hash:\n7\n").unwrap_err().contains("no counts of giveway"));
        assert_eq!(hot("").unwrap(), header);
    }

    #[test]
    fn a_flag_is_added_to_the_others() {
        let variables = vec![("CARGO_ENCODED_RUSTFLAGS".to_owned(), "-Ca=b".to_owned())];
        let repository = Repository { root: PathBuf::from("/home/a"), variables };
        let changed = with_profile(&repository, Path::new("/home/a/hot.profdata"));
        // The last one of a name counts.
        assert_eq!(changed.variables[1].0, "CARGO_ENCODED_RUSTFLAGS");
        assert_eq!(changed.variables[1].1, "-Ca=b\u{1f}-Cprofile-use=/home/a/hot.profdata");
    }
}
