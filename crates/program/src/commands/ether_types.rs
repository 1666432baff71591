//! The EtherTypes of control frames, which `giveway live --reserve` and `giveway live reserve` share.

use giveway_reserve::EtherTypes;

/// Reason why a text does not name EtherTypes.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum EtherTypesError {
    /// A part of the text is not a hexadecimal number of 16 bits.
    #[error("\"{0}\" is not an EtherType: write 0x88b5, or 0x0801,0x0802 as in the paper")]
    Number(String),
    /// The number is below 0x600, so in a frame it would be a length.
    #[error("{0} is a length, not an EtherType: write 0x88b5, or 0x0801,0x0802 as in the paper")]
    Length(String),
    /// Other frames have this EtherType.
    #[error("{0} is in use by IP, ARP or VLANs: write 0x88b5, or 0x0801,0x0802 as in the paper")]
    InUse(String),
}

/// Parses the EtherTypes of starts and ends: one for both, or two with a comma.
///
/// # Errors
/// If a part is not an EtherType, or is in use by other frames.
pub fn ether_types(text: &str) -> Result<EtherTypes, EtherTypesError> {
    let (start, end) = text.split_once(',').unwrap_or((text, text));
    Ok(EtherTypes { start: ether_type(start)?, end: ether_type(end)? })
}

fn ether_type(text: &str) -> Result<u16, EtherTypesError> {
    let number = text.strip_prefix("0x").and_then(|digits| u16::from_str_radix(digits, 16).ok());
    match number {
        None => Err(EtherTypesError::Number(text.to_owned())),
        Some(0..0x600) => Err(EtherTypesError::Length(text.to_owned())),
        Some(0x0800 | 0x0806 | 0x86dd | 0x8100 | 0x88a8) => Err(EtherTypesError::InUse(text.to_owned())),
        Some(number) => Ok(number),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ether_types_are_parsed() {
        let wrong = |text: &str| ether_types(text).unwrap_err().to_string();
        assert!(wrong("88b5").contains("write 0x88b5"));
        assert!(wrong("0x0040").contains("is a length"));
        assert!(wrong("0x0800").contains("is in use by IP"));
        assert_eq!(ether_types("0x0801,0x0802"), Ok(EtherTypes::PUBLISHED));
        assert_eq!(ether_types("0x88b5"), Ok(EtherTypes::LOCAL));
    }
}
