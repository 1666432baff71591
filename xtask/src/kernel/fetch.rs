//! Downloads the newest Debian kernel, and unpacks it in `target/kernel`.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::debian::mirror;
use crate::repository::{Done, Repository};

/// Files of an unpacked kernel.
pub struct Kernel {
    /// Folder of the modules.
    pub modules: PathBuf,
    /// The compressed kernel, for qemu.
    pub image: PathBuf,
    /// The kernel without compression, which has the BTF types.
    pub types: PathBuf,
}

impl Kernel {
    fn at(folder: &Path, version: &str) -> Kernel {
        let modules = folder.join(version).join(format!("usr/lib/modules/{version}"));
        Kernel { image: modules.join("vmlinuz"), types: folder.join(version).join("vmlinux"), modules }
    }

    /// Its version, such as `7.2.13+deb14-cloud-amd64`.
    pub fn version(&self) -> String {
        self.modules.file_name().unwrap_or_default().to_string_lossy().into_owned()
    }
}

/// Returns the newest kernel of Debian, downloaded from the mirror that apt of this machine uses. A kernel
/// that was downloaded before is used again, also if the mirror cannot be reached.
///
/// # Errors
/// If no kernel is stored, and none can be downloaded.
pub fn fetch(repository: &Repository, folder: &Path) -> Result<Kernel, String> {
    match fetch_newest(repository, folder) {
        Ok(kernel) => Ok(kernel),
        Err(why) => {
            let entries = fs::read_dir(folder).into_iter().flatten().flatten();
            let kept = entries.map(|entry| Kernel::at(folder, &entry.file_name().to_string_lossy()));
            kept.filter(|kernel| kernel.types.exists()).last().ok_or(why)
        }
    }
}

fn fetch_newest(repository: &Repository, folder: &Path) -> Result<Kernel, String> {
    let apt = folder.join("apt");
    for part in ["lists/partial", "cache/archives/partial", "packages"] {
        fs::create_dir_all(apt.join(part)).map_err(|error| error.to_string())?;
    }
    let source =
        format!("deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] {} sid main\n", mirror()?);
    fs::write(apt.join("source.list"), source).map_err(|error| error.to_string())?;
    let option = |name: &str, value: &str| format!("{name}={value}");
    let at = |part: &str| apt.join(part).to_string_lossy().into_owned();
    let options = [
        option("Dir::Etc::sourcelist", &at("source.list")),
        option("Dir::Etc::sourceparts", "/dev/null"),
        option("Dir::State::lists", &at("lists")),
        option("Dir::Cache", &at("cache")),
        option("APT::Sandbox::User", "root"),
        option("Acquire::Retries", "1"),
        option("Acquire::http::Timeout", "20"),
    ];
    let run = |program: &str, words: &[&str], seconds: &str| {
        let mut arguments = vec![seconds, program, "-q"];
        options.iter().for_each(|option| arguments.extend(["-o", option]));
        arguments.extend(words);
        let output = Command::new("timeout").args(&arguments).current_dir(apt.join("packages")).output();
        let output = output.map_err(|error| error.to_string())?;
        match output.status.success() {
            true => Ok(String::from_utf8_lossy(&output.stdout).into_owned()),
            false => Err(format!(
                "{program} {}: {}",
                words.join(" "),
                String::from_utf8_lossy(&output.stderr).trim_end()
            )),
        }
    };
    run("apt-get", &["update"], "60")?;
    let depends = run("apt-cache", &["depends", "linux-image-cloud-amd64"], "20")?;
    let version = depends.lines().find_map(|line| {
        let name = line.trim().strip_prefix("Depends: linux-image-")?;
        name.starts_with(|first: char| first.is_ascii_digit()).then(|| name.to_owned())
    });
    let version = version.ok_or("linux-image-cloud-amd64 does not depend on a kernel")?;
    let kernel = Kernel::at(folder, &version);
    if kernel.types.exists() {
        return Ok(kernel);
    }
    let packages = ["base", "binary", "modules"].map(|part| format!("linux-{part}-{version}"));
    let words: Vec<&str> = std::iter::once("download").chain(packages.iter().map(String::as_str)).collect();
    run("apt-get", &words, "120")?;
    let root = folder.join(&version);
    for entry in fs::read_dir(apt.join("packages")).into_iter().flatten().flatten() {
        repository.run("dpkg", &["-x", &entry.path().to_string_lossy(), &root.to_string_lossy()])?;
        let _ = fs::remove_file(entry.path());
    }
    uncompress(&kernel)?;
    Ok(kernel)
}

/// Extracts the compressed kernel from its image.
fn uncompress(kernel: &Kernel) -> Done {
    let image = fs::read(&kernel.image).map_err(|error| format!("{}: {error}", kernel.image.display()))?;
    const ZSTD: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];
    let start =
        image.windows(4).position(|window| window == ZSTD).ok_or("the kernel is not compressed with zstd")?;
    let partial = kernel.types.with_extension("partial");
    let out = fs::File::create(&partial).map_err(|error| error.to_string())?;
    let mut zstd =
        Command::new("zstd").arg("-dc").stdin(Stdio::piped()).stdout(out).stderr(Stdio::null()).spawn();
    let zstd = zstd.as_mut().map_err(|error| error.to_string())?;
    // zstd stops at the end of the kernel with an error about the bytes after it, so its result is ignored.
    let _ = zstd.stdin.take().expect("stdin is piped").write_all(&image[start..]);
    zstd.wait().map_err(|error| error.to_string())?;
    if fs::metadata(&partial).map_or(0, |of| of.len()) < 1 << 20 {
        return Err("the kernel's image cannot be uncompressed".to_owned());
    }
    fs::rename(&partial, &kernel.types).map_err(|error| error.to_string())
}
