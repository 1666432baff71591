//! Makes one program for the kernel out of the bitcode of all disciplines.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::bitcode::succeed;
use super::folders::Folders;
use super::{plugin, stack};
use crate::repository::{Done, Repository, cargo};

/// Variables that the program of the user reads and writes.
const SHARED: &str = "gw_broken,gw_heap,gw_ops,gw_record,gw_call";

/// Functions that the passes call.
const RUNTIME: &str = "gw_umulh,gw_copy,gw_fill,gw_high,gw_udivti,gw_umodti,gw_divti,gw_modti,gw_f64_uno,\
    gw_f64_eq,gw_f64_lt,gw_f64_le,gw_f64_min,gw_f64_max,gw_f64_sqrt,gw_f64_floor,gw_f64_ceil,\
    gw_f64_trunc,gw_f64_round,gw_f64_rint,gw_f64_fma,gw_floattidf,gw_floatuntidf,gw_fixdfti,\
    gw_fixunsdfti,__adddf3,__subdf3,__muldf3,__divdf3,__floatdidf,__floatundidf,__fixdfdi,\
    __fixunsdfdi,__fixdfsi,__fixunsdfsi,__extendsfdf2,__truncdfsf2";

/// Disciplines that are not in the kernel yet, with the reason.
const MISSING: [(&str, &str); 8] = [
    ("prio", CHILDREN),
    ("tbf", CHILDREN),
    ("ets", CHILDREN),
    ("wrr", CHILDREN),
    ("htb", CHILDREN),
    ("hfsc", CHILDREN),
    ("gred", CHILDREN),
    ("cake_mq", "it names its queues with formatted text"),
];
const CHILDREN: &str = "a child may be any discipline, so its program would have all";

/// Functions that keep their values in the arena, because the verifier finds too many cases otherwise.
const DEMOTED: [(&str, &str); 1] = [("qfq", "gw_qfq_leave")];

/// Functions inlined into others grow to about this cost, which is less than a call's check by the verifier.
const INLINE: &str = "-inline-threshold=400";

/// A discipline.
pub(super) struct Discipline {
    pub name: String,
    /// The reason why it is not in the kernel.
    pub missing: Option<&'static str>,
}

/// A program for the kernel.
pub(super) struct Object {
    pub path: PathBuf,
    /// Places of the discipline's code where a panic remains possible, in the eyes of the compiler.
    pub sites: usize,
    pub bytes: String,
}

/// The driver of the test.
pub(super) struct Test(PathBuf);

impl Test {
    /// The program that loads an object and compares it.
    pub(super) fn driver(&self) -> &Path {
        &self.0
    }
}

/// Builds the plug-in of the optimizer and the driver of the test.
///
/// # Errors
/// The error of a compiler.
pub(super) fn test_parts(repository: &Repository, folders: &Folders) -> Result<Test, String> {
    plugin::build(repository, folders)?;
    let target = folders.built("native");
    let mut native = repository.command(&cargo());
    native.args(["build", "--quiet", "--locked", "--release", "--package", "giveway-kernel-test"]);
    native.arg("--manifest-path").arg(folders.sources.join("Cargo.toml")).env("CARGO_TARGET_DIR", &target);
    succeed(native.status(), "cargo")?;
    Ok(Test(target.join("release/giveway-kernel-test")))
}

impl Discipline {
    /// All disciplines, as `entry/src/lib.rs` lists them.
    ///
    /// # Errors
    /// If there is no list.
    pub(super) fn all(folders: &Folders) -> Result<Vec<Discipline>, String> {
        let file = folders.sources.join("entry/src/lib.rs");
        let text = fs::read_to_string(&file).map_err(|error| format!("{}: {error}", file.display()))?;
        let list = text.split("$macro! {").nth(1).and_then(|rest| rest.split('}').next());
        let list = list.ok_or(format!("{} has no list", file.display()))?;
        let names = list.split(',').map(str::trim).filter(|name| !name.is_empty());
        let reason = |name: &str| MISSING.iter().find(|(missing, _)| *missing == name).map(|(_, why)| *why);
        Ok(names.map(|name| Discipline { name: name.to_owned(), missing: reason(name) }).collect())
    }

    /// Builds the program.
    ///
    /// # Errors
    /// The error of a compiler, which says what does not fit BPF.
    pub(super) fn build(&self, repository: &Repository, folders: &Folders) -> Result<Object, String> {
        let name = &self.name;
        let work = Work {
            repository,
            name,
            plugin: plugin::path(folders),
            folder: folders.built("objects").join(name),
        };
        let _ = fs::remove_dir_all(&work.folder);
        fs::create_dir_all(&work.folder).map_err(|error| format!("{}: {error}", work.folder.display()))?;
        let entries = format!("gw_{name}_build,gw_{name}_test");
        let keep = |more: &str| format!("-internalize-public-api-list={SHARED},{entries},{more}");
        fs::copy(folders.built("all.bc"), work.folder.join("all.bc")).map_err(|error| error.to_string())?;
        let sites = format!("-gw-sites={}", work.folder.join("sites").display());
        let sever = "internalize,globaldce,gw-sever,globaldce,gw-dispatch,globaldce";
        work.opt(sever, &[&sites, &keep(RUNTIME)], "all", "severed")?;
        work.opt("default<O2>,lower-atomic,gw-lower", &[], "severed", "lowered")?;
        let again = "internalize,globaldce,gw-unwind,default<O2>,gw-lower";
        work.opt(again, &[INLINE, &keep("gw_copy,gw_fill,gw_umulh")], "lowered", "small")?;
        let flat = "internalize,globaldce,gw-flatten,function(sroa,early-cse,simplifycfg),globaldce,\
                    lower-switch,\
                    fix-irreducible,function(loop-simplify)";
        work.opt(flat, &[&keep("gw_copy,gw_fill")], "small", "flat")?;
        let main = work.folder.join("main.bc");
        let mut clang = repository.command("clang-22");
        clang.args(["-O2", "-g", "-target", "bpf", "-mcpu=v4", "-emit-llvm", "-c"]);
        clang
            .arg(format!("-DNAME={name}"))
            .arg(format!("-I/usr/include/{}-linux-gnu", std::env::consts::ARCH));
        clang.arg(folders.sources.join("test/main.bpf.c")).arg("-o").arg(&main);
        quiet(clang)?;
        let mut demoted: Vec<String> =
            DEMOTED.iter().filter(|(of, _)| of == name).map(|(_, function)| (*function).to_owned()).collect();
        let path = work.folder.join(format!("{name}.o"));
        for _ in 0..12 {
            let more = work.finish(&demoted, &path)?;
            if more.is_empty() {
                return Ok(Object { sites: work.sites()?, bytes: size(&path)?, path });
            }
            demoted.extend(more);
        }
        Err(format!("the stack is too small, with {} in the arena", demoted.join(", ")))
    }
}

/// The build of one program.
struct Work<'a> {
    repository: &'a Repository,
    /// Name of the discipline.
    name: &'a str,
    plugin: PathBuf,
    folder: PathBuf,
}

impl Work<'_> {
    /// Runs passes on a file of bitcode.
    fn opt(&self, passes: &str, more: &[&str], from: &str, to: &str) -> Done {
        let mut opt = self.repository.command("opt-22");
        opt.arg(format!("-load-pass-plugin={}", self.plugin.display())).arg(format!("-passes={passes}"));
        opt.arg(format!("-gw-discipline={}", self.name)).args(more);
        opt.arg(self.folder.join(format!("{from}.bc"))).arg("-o");
        opt.arg(self.folder.join(format!("{to}.bc")));
        quiet(opt)
    }

    /// Makes the object. Returns functions that need too much stack.
    fn finish(&self, demoted: &[String], path: &Path) -> Result<Vec<String>, String> {
        let demote = demoted.iter().map(|name| format!("-gw-demote={name}")).collect::<Vec<_>>();
        let demote: Vec<&str> = demote.iter().map(String::as_str).collect();
        self.opt("gw-arena,verify,globaldce", &demote, "flat", "arena")?;
        self.opt("function(early-cse<memssa>,dce,simplifycfg)", &[], "arena", "last")?;
        let file = |name: &str| self.folder.join(name);
        let mut link = self.repository.command("llvm-link-22");
        link.arg(file("main.bc")).arg(file("last.bc")).arg("-o").arg(file("linked.bc"));
        quiet(link)?;
        // Each function is checked on its own, as a global one; the two that copy take any pointers.
        let symbols = self.repository.output("llvm-nm-22", &[file("linked.bc")])?;
        let global =
            symbols.lines().filter_map(|line| match line.split_whitespace().collect::<Vec<_>>()[..] {
                [.., "T" | "D" | "B", name] if !["gw_copy", "gw_fill"].contains(&name) => Some(name),
                _ => None,
            });
        let keep = format!("-internalize-public-api-list={}", global.collect::<Vec<_>>().join(","));
        self.opt("internalize,globaldce", &[&keep], "linked", "whole")?;
        let mut llc = self.repository.command("llc-22");
        llc.args(["-O2", "-march=bpfel", "-mcpu=v4", "-filetype=obj"])
            .arg(file("whole.bc"))
            .arg("-o")
            .arg(path);
        if let Err(error) = quiet(llc) {
            let large = error.lines().filter(|line| line.contains("stack limit is exceeded"));
            let names = large.filter_map(|line| line.split("in function ").nth(1)?.split(' ').next());
            let mut names: Vec<String> = names.map(str::to_owned).collect();
            names.sort_unstable();
            names.dedup();
            names.retain(|name| !demoted.contains(name));
            return if names.is_empty() { Err(error) } else { Ok(names) };
        }
        let path = path.to_string_lossy();
        let listing = self.repository.output("llvm-objdump-22", &["-dr", "--no-show-raw-insn", &path])?;
        Ok(stack::too_much(&listing, demoted).into_iter().collect())
    }

    /// Number of places of panics that are left.
    fn sites(&self) -> Result<usize, String> {
        let text =
            self.repository.output("opt-22", &["-S".as_ref(), self.folder.join("flat.bc").as_os_str()])?;
        let numbers = text
            .lines()
            .filter_map(|line| line.split("@gw_stop_at(i32 ").nth(1)?.split(')').next()?.parse::<u32>().ok());
        let left: std::collections::BTreeSet<u32> = numbers.collect();
        let all = fs::read_to_string(self.folder.join("sites")).map_err(|error| error.to_string())?;
        let of = |line: &&str| {
            line.split('\t').next().and_then(|at| at.parse().ok()).is_some_and(|at| left.contains(&at))
        };
        let places: Vec<&str> = all.lines().filter(of).collect();
        fs::write(self.folder.join("panics"), places.join("\n")).map_err(|error| error.to_string())?;
        Ok(left.len())
    }
}

/// Runs a program whose messages matter only if it fails.
fn quiet(mut command: Command) -> Done {
    let name = command.get_program().to_string_lossy().into_owned();
    let output = command.output().map_err(|error| format!("{name} cannot be run: {error}"))?;
    if output.status.success() {
        return Ok(());
    }
    let text = String::from_utf8_lossy(&output.stderr);
    let lines: Vec<&str> = text.lines().filter(|line| !line.contains("BPF stack limit")).take(4).collect();
    let large = text.lines().filter(|line| line.contains("stack limit is exceeded"));
    Err(format!(
        "{name}: {}\n{}",
        output.status,
        lines.into_iter().chain(large).collect::<Vec<_>>().join("\n")
    ))
}

fn size(path: &Path) -> Result<String, String> {
    let bytes = fs::metadata(path).map_err(|error| format!("{}: {error}", path.display()))?.len();
    Ok(format!("{} kB of object", bytes / 1000))
}
