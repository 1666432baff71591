//! The program that is published, and the platforms that it is compiled for. A new platform is an entry of
//! [`PLATFORMS`].

/// The package of the program that users type, which has the metadata of the Debian package.
pub const PACKAGE: &str = "giveway-cli";
/// The packages of the two programs, and their programs. The first becomes the second, so they are installed
/// in one folder.
pub const PROGRAMS: [(&str, &str); 2] = [(PACKAGE, "giveway"), ("giveway-net", "giveway-net")];
/// The build profile.
pub const PROFILE: &str = "dist";

/// The linker: Rust's own, for every platform. So the bytes do not depend on the linker of the system.
pub const LINKER: &str = "rust-lld";
/// Options of the linker. It stores relocations as bits, which saves a megabyte; the C library of a system
/// may be too old for that, and the program has its own. Functions with the same code become one.
pub const LINK: [&str; 4] = ["-C", "link-arg=-zpack-relative-relocs", "-C", "link-arg=--icf=all"];

/// A platform of the program. Programs for these targets need no library of the system.
#[derive(Debug, PartialEq, Eq)]
pub struct Platform {
    /// Name of the processor, for the option `--without`.
    pub name: &'static str,
    /// Target of the compiler.
    pub target: &'static str,
    /// The means to compile for another processor, and to run its programs.
    pub cross: Option<Cross>,
}

/// The means to compile for another processor than this machine's.
#[derive(Debug, PartialEq, Eq)]
pub struct Cross {
    /// Name of the processor in Debian.
    pub debian: &'static str,
    /// Target of clang, and name of the folder with the headers of musl.
    pub clang: &'static str,
    /// Program that runs programs for the platform.
    pub emulator: &'static str,
}

/// The platforms.
pub static PLATFORMS: [Platform; 2] = [
    Platform { name: "x86_64", target: "x86_64-unknown-linux-musl", cross: None },
    Platform {
        name: "aarch64",
        target: "aarch64-unknown-linux-musl",
        cross: Some(Cross { debian: "arm64", clang: "aarch64-linux-musl", emulator: "qemu-aarch64-static" }),
    },
];

impl Platform {
    /// The variable that names the linker for cargo.
    pub fn linker(&self) -> (String, String) {
        let target = self.target.replace('-', "_").to_uppercase();
        (format!("CARGO_TARGET_{target}_LINKER"), LINKER.to_owned())
    }

    /// The words of a command that runs a program of this platform on this machine.
    pub fn command<'a>(&self, program: &'a str) -> Vec<&'a str> {
        self.cross.iter().map(|cross| cross.emulator).chain([program]).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_platform_has_the_linker_of_rust() {
        let linkers = PLATFORMS.each_ref().map(Platform::linker);
        let expected = ["X86_64", "AARCH64"]
            .map(|name| (format!("CARGO_TARGET_{name}_UNKNOWN_LINUX_MUSL_LINKER"), "rust-lld".to_owned()));
        assert_eq!(linkers, expected);
    }
}
