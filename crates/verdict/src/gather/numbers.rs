//! Whether the numbers of a JSON text of another machine are such that sums of them mean something.

/// Whether no whole number in the text is above [`NUMBER_MAX`]. Texts and fractions are left to
/// their readers.
pub(crate) fn are_sane(json: &[u8]) -> bool {
    let (mut in_text, mut escaped, mut number) = (false, false, 0_u64);
    for byte in json {
        if in_text {
            in_text = escaped || *byte != b'"';
            escaped = !escaped && *byte == b'\\';
            continue;
        }
        number = match byte {
            b'0'..=b'9' => number.saturating_mul(10).saturating_add(u64::from(byte - b'0')),
            _ => 0,
        };
        in_text = *byte == b'"';
        if number > NUMBER_MAX {
            return false;
        }
    }
    true
}

/// Nanoseconds of four years and a half, or the bytes that a link of 1 Tbit/s carries in a
/// fortnight: what one part counts stays below.
const NUMBER_MAX: u64 = 1 << 57;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_bounded_wherever_it_stands_and_a_text_is_not_a_number() {
        assert!(are_sane(br#"{"a": 144115188075855872, "b": [1,2], "99999999999999999999": "x"}"#));
        assert!(are_sane(br#"{"a": "\"99999999999999999999", "b": "\\"}"#));
        for wrong in
            ["144115188075855873", "-99999999999999999999", r#"{"a\"": [1, 18446744073709551615]}"#]
        {
            assert!(!are_sane(wrong.as_bytes()), "{wrong}");
        }
    }
}
