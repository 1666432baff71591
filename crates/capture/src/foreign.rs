//! Formats that are not read: their names, and the command that converts each of them.

/// A format that is not read, with the command that makes a capture of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Foreign {
    /// The name of the format with its article, as in "a Sun snoop file".
    pub name: &'static str,
    remedy: Remedy,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Remedy {
    /// Wireshark's editcap converts it.
    Editcap,
    /// This command writes the capture to its standard output.
    Pipe(&'static str),
    /// A sentence; FILE stands for the name of the file.
    Say(&'static str),
}

use Remedy::{Editcap, Pipe, Say};

/// Formats by their first bytes.
const MAGICS: [(&[u8], &str, Remedy); 30] = [
    // Captures of other programs.
    (b"snoop\0\0\0", "a Sun snoop file", Editcap),
    (b"GMBU", "a Microsoft Network Monitor file", Editcap),
    (b"RTSS", "a Microsoft Network Monitor 1 file", Editcap),
    (b"TRSNIFF data    \x1a", "a Network General Sniffer file", Editcap),
    (b"XCP\0", "a NetXRay or Windows Sniffer file", Editcap),
    (b"iptrace ", "an AIX iptrace file", Editcap),
    (b"\x7fver", "a Savvius OmniPeek file", Editcap),
    (b"\x1c\0\x01\xac", "an Ixia capture", Editcap),
    (b"\x1c\0\x01\xab", "an Ixia capture", Editcap),
    (b"\xac\x01\0\x1c", "an Ixia capture", Editcap),
    (b"\xab\x01\0\x1c", "an Ixia capture", Editcap),
    (b"btsnoop\0", "a Bluetooth capture", Say("it has no IP packets of a link")),
    (b"\x0c\xa5\x01\0", "a file of nfdump", Say(NO_PACKETS)),
    (b"\x0c\xa5\x02\0", "a file of nfdump", Say(NO_PACKETS)),
    // Compressed files and archives.
    (b"\xfd7zXZ\0", "an xz file", Pipe("xz -dc FILE")),
    (b"BZh", "a bzip2 file", Pipe("bzip2 -dc FILE")),
    (b"LZIP", "an lzip file", Pipe("lzip -dc FILE")),
    (b"\x1f\x9d", "a compress file", Pipe("zcat FILE")),
    (b"\x5d\0\0", "an lzma file", Pipe("xz -dc FILE")),
    (b"PK\x03\x04", "a zip archive", Pipe("unzip -p FILE")),
    (b"7z\xbc\xaf\x27\x1c", "a 7z archive", Pipe("7z x -so FILE")),
    (b"Rar!\x1a\x07", "a rar archive", Pipe("unrar p -inul FILE")),
    // Exports.
    (b"<?xml", "an XML file", Say(EXPORT)),
    (b"\"No.\",", "a list of packets as CSV", Say(EXPORT)),
    (b"%!PS", "a PostScript file", Say(EXPORT)),
    (b"\x7fELF", "a program", Say("give the capture that it wrote")),
    (b"\x89GWT\r\n\x1a\n", "an operation trace of Giveway", Say("giveway replay-check reads it")),
    (b"{\"giveway_workload\"", "a workload of Giveway", Say("giveway compare takes the capture itself")),
    (b"PAR1", "a Parquet table", Say("giveway compare takes the capture itself")),
    (b"MZ", "a program", Say("give the capture that it wrote")),
];

const NO_PACKETS: &str =
    "it has counters of flows and no packets; capture with tcpdump -i INTERFACE -s 96 -w out.pcap";
const EXPORT: &str = "it is an export for people; save the capture itself, in Wireshark with File > Save As, \
                      with tshark or tcpdump with -w out.pcapng";
const PRINTED: &str = "the times and lengths of all packets are not in it; write the capture with tcpdump -i INTERFACE -s 96 -w out.pcap";

impl Foreign {
    /// The format of a file that starts with `head`; `None` if it is not known.
    pub(crate) fn of(head: &[u8]) -> Option<Foreign> {
        let known = MAGICS.iter().find(|(magic, ..)| head.starts_with(magic));
        if let Some((_, name, remedy)) = known {
            return Some(Foreign { name, remedy: *remedy });
        }
        let found = |name, remedy| Some(Foreign { name, remedy });
        // An ETL file begins with a buffer header of 72 bytes; a system header with its mark follows.
        if matches!(head.get(72..76), Some([2, 0, 1 | 2, 0xc0])) {
            return found("an ETL file of Windows", Say("convert it with `etl2pcapng FILE out.pcapng`"));
        }
        if is_erf(head) {
            return found("an Endace ERF file", Editcap);
        }
        if !is_text(head) {
            return None;
        }
        if is_printed(head) {
            return found("the printed output of tcpdump", Say(PRINTED));
        }
        match head.trim_ascii_start() {
            [b'{' | b'[', b'"' | b'{' | b' ' | b'\n' | b'\r', ..] => {
                found("a JSON file", Say("save the capture itself, for example with tshark -w out.pcapng"))
            }
            _ => found("a text file", Say("give a capture, as tcpdump -w and Wireshark write it")),
        }
    }

    /// The sentence on a file with this name: the format, and the command to type.
    pub fn about(&self, file: &str) -> String {
        let file = quoted(file);
        let remedy = match self.remedy {
            Editcap => format!("convert it with `editcap -F pcapng {file} out.pcapng`"),
            Pipe(command) => {
                format!("write `{} | giveway compare - ...`", command.replace("FILE", &file))
            }
            Say(sentence) => sentence.replace("FILE", &file),
        };
        format!("is {}: {remedy}", self.name)
    }
}

impl std::fmt::Display for Foreign {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.about("FILE"))
    }
}

/// A name as a shell takes it.
fn quoted(name: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./+:@%,".contains(c);
    if name.chars().all(plain) { name.to_owned() } else { format!("'{}'", name.replace('\'', "'\\''")) }
}

/// ERF has no magic number: a record starts with a time of this century, a known type and its length.
fn is_erf(head: &[u8]) -> bool {
    let Some(record) = head.first_chunk::<16>() else { return false };
    let seconds = u32::from_le_bytes([record[4], record[5], record[6], record[7]]);
    let kind = record[8] & 0x7f;
    let length = u16::from_be_bytes([record[10], record[11]]);
    let wire = u16::from_be_bytes([record[14], record[15]]);
    let unused = record[9] & 0xc0;
    (978_307_200..4_102_444_800).contains(&seconds)
        && (1..=27).contains(&kind)
        && length >= 24
        && length % 8 == 0
        && wire > 0
        && unused == 0
        && !is_text(record)
}

fn is_text(head: &[u8]) -> bool {
    let text = match std::str::from_utf8(head) {
        Ok(text) => text,
        // The last character may be cut off.
        Err(error) if error.error_len().is_none() => {
            std::str::from_utf8(&head[..error.valid_up_to()]).unwrap_or_default()
        }
        Err(_) => return false,
    };
    !text.is_empty() && text.chars().all(|c| !c.is_control() || c.is_ascii_whitespace())
}

/// True for lines such as `12:34:56.789012 IP 10.0.0.1.443 > ...`, with a date in front or not.
fn is_printed(head: &[u8]) -> bool {
    let line = String::from_utf8_lossy(head);
    let mut words = line.split_whitespace().take(3);
    words.any(|word| {
        word.len() == 15
            && word.bytes().enumerate().all(|(at, byte)| match at {
                2 | 5 => byte == b':',
                8 => byte == b'.',
                _ => byte.is_ascii_digit(),
            })
    })
}
