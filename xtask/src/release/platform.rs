//! The program that is published, and the platforms that it is compiled for. A new platform is an entry of
//! [`PLATFORMS`].

/// The package of the program.
pub const PACKAGE: &str = "giveway-cli";
/// The build profile.
pub const PROFILE: &str = "dist";

/// A platform of the program. Programs for these targets need no library of the system.
#[derive(Debug, PartialEq, Eq)]
pub struct Platform {
    /// Name of the processor, for the option `--without`.
    pub name: &'static str,
    /// Target of the compiler.
    pub target: &'static str,
    /// Option of the linker that stores the relocations of the program as bits, which saves a megabyte. The C
    /// library of a system may be too old for it; the program has its own.
    pub packed: &'static str,
    /// The means to compile for another processor, and to run its programs.
    pub cross: Option<Cross>,
}

/// The means to compile for another processor than that of this machine.
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
    Platform {
        name: "x86_64",
        target: "x86_64-unknown-linux-musl",
        packed: "link-arg=-Wl,-z,pack-relative-relocs",
        cross: None,
    },
    Platform {
        name: "aarch64",
        target: "aarch64-unknown-linux-musl",
        packed: "link-arg=-zpack-relative-relocs",
        cross: Some(Cross { debian: "arm64", clang: "aarch64-linux-musl", emulator: "qemu-aarch64-static" }),
    },
];

impl Platform {
    /// The words of a command that runs a program of this platform on this machine.
    pub fn command<'a>(&self, program: &'a str) -> Vec<&'a str> {
        self.cross.iter().map(|cross| cross.emulator).chain([program]).collect()
    }
}
