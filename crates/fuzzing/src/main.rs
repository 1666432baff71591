//! Runs targets without a fuzzer.
//!
//! ```text
//! giveway-fuzzing                    all targets: stored inputs, and a fixed number of mutations of them
//! giveway-fuzzing smoke NAME...      the same for these targets
//! giveway-fuzzing quick              all targets, with a sixth of the mutations
//! giveway-fuzzing run NAME FILE...   a target on files, for a debugger or to repeat a failure
//! giveway-fuzzing kept FOLDER        writes stored inputs to FOLDER/NAME/ and words to FOLDER/NAME.dict,
//!                                    and prints the names of the targets
//! ```

#![allow(clippy::disallowed_methods, reason = "it prints durations")]

use std::cell::Cell;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use giveway_fuzzing::{TARGETS, Target, kept, smoke};

/// Reason why a command does not start or fails.
#[derive(Debug, thiserror::Error)]
enum CommandError {
    #[error("write smoke [NAME...], quick, run NAME FILE..., or kept FOLDER")]
    Usage,
    #[error("unknown target {name}: write one of {known}")]
    UnknownTarget { name: String, known: String },
    #[error("{}: {source}", path.display())]
    File { path: PathBuf, source: io::Error },
}

impl CommandError {
    /// Adds the path to an error of the system.
    fn file(path: &Path) -> impl FnOnce(io::Error) -> CommandError {
        move |source| CommandError::File { path: path.to_owned(), source }
    }
}

/// Time after which an input is considered not to end.
const STUCK: Duration = Duration::from_secs(60);

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let done = match words.as_slice() {
        [] | ["smoke"] => all(TARGETS),
        ["quick"] => all(&TARGETS
            .iter()
            .map(|target| Target { smoke: target.smoke / 6, ..*target })
            .collect::<Vec<_>>()),
        ["smoke", names @ ..] => find_all(names).and_then(|targets| all(&targets)),
        ["run", name, files @ ..] => {
            find(name).and_then(|target| files.iter().try_for_each(|file| replay(target, file)))
        }
        ["kept", folder] => write_kept(Path::new(folder)),
        _ => Err(CommandError::Usage),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn find(name: &str) -> Result<&'static Target, CommandError> {
    TARGETS.iter().find(|target| target.name == name).ok_or_else(|| {
        let names: Vec<&str> = TARGETS.iter().map(|target| target.name).collect();
        CommandError::UnknownTarget { name: name.to_owned(), known: names.join(", ") }
    })
}

fn find_all(names: &[&str]) -> Result<Vec<Target>, CommandError> {
    names.iter().map(|name| find(name).copied()).collect()
}

fn replay(target: &Target, file: &str) -> Result<(), CommandError> {
    let bytes = std::fs::read(file).map_err(CommandError::file(Path::new(file)))?;
    let begun = Instant::now();
    (target.run)(&bytes);
    println!("{file}: passed in {:.3} s", begun.elapsed().as_secs_f64());
    Ok(())
}

/// Writes the stored inputs as files, for libFuzzer.
fn write_kept(folder: &Path) -> Result<(), CommandError> {
    for target in TARGETS {
        let inputs = folder.join(target.name);
        std::fs::create_dir_all(&inputs).map_err(CommandError::file(&inputs))?;
        for (at, input) in kept::inputs(target).iter().enumerate() {
            let path = inputs.join(format!("{at:04}"));
            std::fs::write(&path, &input.bytes).map_err(CommandError::file(&path))?;
        }
        let path = folder.join(format!("{}.dict", target.name));
        std::fs::write(&path, kept::dictionary_text(target)).map_err(CommandError::file(&path))?;
        println!("{}", target.name);
    }
    Ok(())
}

/// Runs targets, as many at once as there are processors, and prints a line for each. The first failure ends
/// the program ([`watch`]).
fn all(targets: &[Target]) -> Result<(), CommandError> {
    println!("{:<14} {:>7} {:>9} {:>8}  kind of input", "target", "stored", "inputs", "seconds");
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    let workers: Vec<Worker> = (0..processors).map(|_| Worker::default()).collect();
    let workers: &'static [Worker] = workers.leak();
    watch(workers);
    let next = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for worker in workers {
            let next = &next;
            scope.spawn(move || {
                THIS.set(Some(worker));
                while let Some(target) = targets.get(next.fetch_add(1, Ordering::Relaxed)) {
                    worker.run(target);
                }
                worker.ended.store(true, Ordering::Relaxed);
            });
        }
    });
    Ok(())
}

/// A thread that runs targets.
#[derive(Default)]
struct Worker {
    /// The input that is being processed, with the name of its target.
    current: Mutex<Option<(&'static str, Vec<u8>)>>,
    /// Number of inputs that were started.
    started: AtomicU64,
    /// There are no more targets for it.
    ended: AtomicBool,
}

thread_local! {
    /// The worker of this thread.
    static THIS: Cell<Option<&'static Worker>> = const { Cell::new(None) };
}

impl Worker {
    fn run(&self, target: &Target) {
        let kept = kept::inputs(target);
        let begun = Instant::now();
        let mut inputs = 0u64;
        smoke::inputs(target, &kept, target.smoke, |input| {
            *self.current() = Some((target.name, input.to_vec()));
            self.started.fetch_add(1, Ordering::Relaxed);
            (target.run)(input);
            inputs += 1;
        });
        let took = begun.elapsed().as_secs_f64();
        println!("{:<14} {:>7} {inputs:>9} {took:>8.1}  {}", target.name, kept.len(), target.reads);
    }

    fn current(&self) -> MutexGuard<'_, Option<(&'static str, Vec<u8>)>> {
        self.current.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Arranges that an input that panics or does not end is stored as a file, and ends the program.
fn watch(workers: &'static [Worker]) {
    let print = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |about| {
        print(about);
        if let Some(worker) = THIS.get() {
            store(worker, "the input panics");
        }
        std::process::exit(1);
    }));
    std::thread::spawn(move || {
        let mut last: Vec<u64> = vec![0; workers.len()];
        loop {
            std::thread::sleep(STUCK);
            for (worker, last) in workers.iter().zip(&mut last) {
                let now = worker.started.load(Ordering::Relaxed);
                if now == *last && !worker.ended.load(Ordering::Relaxed) {
                    store(worker, "the input does not end");
                    std::process::exit(1);
                }
                *last = now;
            }
        }
    });
}

/// Stores the current input in a temporary file, and prints the failure and the command that repeats it.
fn store(worker: &Worker, failure: &str) {
    let current = worker.current();
    let Some((name, bytes)) = &*current else { return };
    let path = std::env::temp_dir().join(format!("giveway-{name}-{}", std::process::id()));
    let kept = std::fs::File::create(&path).and_then(|mut file| file.write_all(bytes));
    match kept {
        Ok(()) => eprintln!(
            "{name}: {failure}. To repeat it:\n  cargo run -p giveway-fuzzing -- run {name} {0}\nTo test it from now on, copy {0} to fuzz/finds/{name}/",
            path.display()
        ),
        Err(error) => eprintln!("{name}: {failure}, and {} cannot be written: {error}", path.display()),
    }
}
