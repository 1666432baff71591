//! The capture of a run: every packet that crosses the interface of the near hosts.
//!
//! A forward packet is captured before it enters the queue of the bottleneck, and a reverse packet after it
//! has left that queue, as in a capture at home. `tcpdump` writes a temporary pcap file. At the end of the
//! run its packets are copied into a pcapng file.
//!
//! If tcpdump is too slow, the kernel drops packets of the capture. Their number is reported.

use std::fs::File;
use std::io::{self, BufReader, BufWriter, Read};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use giveway_capture::{EnhancedPacket, Frames, InterfaceDescription, Writer};
use nix::sys::signal::Signal;

use crate::background::Background;
use crate::command::exists;
use crate::error::TestbedError;
use crate::topology::{NEAR, Namespace, Topology};

/// Number of bytes of each packet that are captured. The headers of Ethernet, IPv4 and TCP with all options
/// have 94 bytes.
const SNAP: &str = "96";
/// Buffer of tcpdump in the kernel, in KiB.
const BUFFER: &str = "65536";

/// A capture in progress.
pub(crate) struct Pcap {
    tcpdump: Background,
    /// The capture as tcpdump writes it.
    raw: PathBuf,
    /// The messages of tcpdump.
    messages: PathBuf,
}

/// Checks that this machine has tcpdump.
///
/// # Errors
/// If tcpdump is not installed.
pub fn ready() -> Result<(), TestbedError> {
    if exists("tcpdump", "--version") {
        return Ok(());
    }
    Err(TestbedError::missing("the program tcpdump is not installed", "apt-get install tcpdump"))
}

impl Pcap {
    /// Starts tcpdump. Packets that are sent after this function returns are captured. `scratch` is a folder
    /// for temporary files.
    ///
    /// # Errors
    /// The message of tcpdump, if it does not start.
    pub(crate) fn start(topology: &Topology, scratch: &Path) -> Result<Pcap, TestbedError> {
        let (raw, messages) = (scratch.join("tcpdump.pcap"), scratch.join("tcpdump.messages"));
        let written =
            File::create(&messages).map_err(TestbedError::system(format!("write {}", messages.display())))?;
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &topology.name(Namespace::Near), "tcpdump"]);
        // Without -Z tcpdump changes to another user, who has no permission to write the file.
        command.args([
            "-i",
            NEAR,
            "-s",
            SNAP,
            "-B",
            BUFFER,
            "--nano",
            "--immediate-mode",
            "-Z",
            "root",
            "-w",
        ]);
        // A separate process group: Ctrl-C must not end tcpdump before the run is over.
        command.arg(&raw).process_group(0);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(written);
        let tcpdump = command.spawn().map_err(TestbedError::system("start tcpdump"))?;
        let mut pcap = Pcap { tcpdump: Background::new(tcpdump), raw, messages };
        let messages = pcap.messages.clone();
        if pcap.tcpdump.starts(|| output(&messages).contains("listening on")) {
            return Ok(pcap);
        }
        Err(pcap.error("does not start"))
    }

    /// Stops tcpdump and writes the packets to `file`. Returns the number of packets that the kernel dropped.
    ///
    /// # Errors
    /// The message of tcpdump, or of the system.
    pub(crate) fn stop(mut self, file: &Path) -> Result<u64, TestbedError> {
        self.tcpdump.signal(Signal::SIGINT);
        if !self.tcpdump.ends() {
            return Err(self.error("does not end"));
        }
        let missed = missed(&output(&self.messages));
        let written = copy(&self.raw, file);
        written.map_err(TestbedError::system(format!("write {}", file.display())))?;
        missed.ok_or_else(|| self.error("reports no number of packets"))
    }

    fn error(&self, what: &str) -> TestbedError {
        TestbedError::Command {
            command: format!("tcpdump {what}; it"),
            output: output(&self.messages).trim().to_owned(),
        }
    }
}

/// The messages of tcpdump so far.
fn output(messages: &Path) -> String {
    std::fs::read_to_string(messages).unwrap_or_default()
}

/// The number of packets that the kernel dropped, from the last messages of tcpdump.
fn missed(messages: &str) -> Option<u64> {
    let line = messages.lines().find(|line| line.contains("dropped by kernel"))?;
    line.split_whitespace().next()?.parse().ok()
}

/// Copies a capture of tcpdump to a pcapng file. After an error the file does not exist or is not changed.
fn copy(raw: &Path, file: &Path) -> io::Result<()> {
    let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let input: Box<dyn Read + Send> = Box::new(BufReader::new(File::open(raw)?));
    let mut frames = Frames::new(input).map_err(io::Error::other)?;
    let temporary = tempfile::NamedTempFile::new_in(folder)?;
    let program = concat!("giveway ", env!("CARGO_PKG_VERSION"));
    let mut writer = Writer::new(BufWriter::new(temporary), program)?;
    let mut interface = None;
    while let Some(frame) = frames.next().map_err(io::Error::other)? {
        let interface = match interface {
            Some(interface) => interface,
            None => *interface.insert(writer.interface(&InterfaceDescription {
                name: NEAR,
                description: "the near hosts of a test bed",
                link: frame.link,
                snap: SNAP.parse().expect("the constant is a number"),
                ..InterfaceDescription::default()
            })?),
        };
        writer.packet(&EnhancedPacket {
            interface,
            time: frame.time,
            bytes: frame.wire_bytes,
            data: frame.data,
            comment: None,
        })?;
    }
    let temporary = writer.finish()?.into_inner().map_err(io::IntoInnerError::into_error)?;
    temporary.as_file().sync_all()?;
    // A capture is read by other programs and users; a temporary file is only for its owner.
    let readable = std::os::unix::fs::PermissionsExt::from_mode(0o644);
    temporary.as_file().set_permissions(readable)?;
    temporary.persist(file)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_number_of_missed_packets_is_read_from_the_messages_of_tcpdump() {
        let messages = "tcpdump: listening on cli, link-type EN10MB (Ethernet), snapshot length 128 bytes\n\
            12 packets captured\n14 packets received by filter\n2 packets dropped by kernel\n";
        assert_eq!(missed(messages), Some(2));
        assert_eq!(missed("tcpdump: cli: No such device exists\n"), None);
    }
}
