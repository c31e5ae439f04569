//! The attributes of a message from the kernel. Source: netlink(7).

use super::message::{ALIGNMENT, ATTRIBUTE_HEADER};

/// Hands the kind and the value of each attribute to `take`. `None` where one is not whole, or not as
/// `take` wants it.
pub(super) fn each_attribute(
    bytes: &[u8],
    mut take: impl FnMut(u16, &[u8]) -> Option<()>,
) -> Option<()> {
    let mut rest = bytes;
    while rest.len() >= ATTRIBUTE_HEADER {
        let length = usize::from(u16::from_ne_bytes(*rest.first_chunk()?));
        let kind = u16::from_ne_bytes(*rest.get(2..)?.first_chunk()?);
        take(kind & KIND_MASK, rest.get(ATTRIBUTE_HEADER..length)?)?;
        rest = rest.get(length.next_multiple_of(ALIGNMENT)..).unwrap_or_default();
    }
    Some(())
}

/// A text, to its zero byte.
pub(super) fn text(value: &[u8]) -> String {
    let text = value.split(|byte| *byte == 0).next().unwrap_or_default();
    String::from_utf8_lossy(text).into_owned()
}

/// A number in the machine's order, as those of rtnetlink are.
pub(super) fn number(value: &[u8]) -> Option<u32> {
    Some(u32::from_ne_bytes(*value.first_chunk()?))
}

/// The two highest bits say of what kind the value is.
const KIND_MASK: u16 = 0x3fff;

#[cfg(test)]
mod tests {
    use super::*;

    fn kinds(bytes: &[u8]) -> Option<Vec<(u16, Vec<u8>)>> {
        let mut found = Vec::new();
        each_attribute(bytes, |kind, value| {
            found.push((kind, value.to_vec()));
            Some(())
        })?;
        Some(found)
    }

    #[test]
    fn attributes_are_padded_and_their_kinds_are_without_flags() {
        let mut bytes = Vec::new();
        bytes.extend(5_u16.to_ne_bytes());
        bytes.extend(0x8003_u16.to_ne_bytes());
        bytes.extend([7, 0, 0, 0]);
        bytes.extend(6_u16.to_ne_bytes());
        bytes.extend(4_u16.to_ne_bytes());
        bytes.extend([b'x', 0]);
        assert_eq!(kinds(&bytes), Some(vec![(3, vec![7]), (4, vec![b'x', 0])]));
    }

    #[test]
    fn an_attribute_that_is_longer_than_its_message_or_than_nothing_is_none() {
        for length in [0_u16, 1, 3, 9, u16::MAX] {
            let mut bytes = length.to_ne_bytes().to_vec();
            bytes.extend([1, 0, 0, 0, 0, 0]);
            assert_eq!(kinds(&bytes), None, "{length}");
        }
    }
}
