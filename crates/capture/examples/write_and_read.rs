//! Writes a capture of one packet, and reads it: prints the time and the length of the packet.

use giveway_capture::{EnhancedPacket, InterfaceDescription, LinkType, Reader, Writer};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut writer = Writer::new(Vec::new(), "an example")?;
    let interface = InterfaceDescription { name: "eth0", link: LinkType::RAW, ..Default::default() };
    writer.interface(&interface)?;
    writer.packet(&EnhancedPacket {
        interface: 0,
        time: 7,
        bytes: 1500,
        data: &[0x45; 64],
        comment: None,
    })?;
    let file = writer.finish()?;

    let packets: Vec<_> = Reader::new(std::io::Cursor::new(file))?.collect::<Result<_, _>>()?;
    assert_eq!((packets.len(), packets[0].time), (1, 7));
    println!("{} ns: {} bytes", packets[0].time, packets[0].bytes);
    Ok(())
}
