//! JSON texts with one value replaced by a hostile one.

/// The texts that come of `json` when each of its numbers, texts and other plain values in turn is
/// replaced by each hostile value; `pick` chooses one of them, with any value.
#[must_use]
pub fn with_hostile_value(json: &[u8], pick: usize) -> Vec<u8> {
    let tokens = tokens(json);
    let Some(count) = tokens.len().checked_mul(HOSTILE.len()).filter(|count| *count > 0) else {
        return json.to_vec();
    };
    let pick = pick % count;
    let ((start, end), value) = (tokens[pick / HOSTILE.len()], HOSTILE[pick % HOSTILE.len()]);
    [&json[..start], value.as_bytes(), &json[end..]].concat()
}

/// How many there are for a text.
#[must_use]
pub fn hostile_values(json: &[u8]) -> usize {
    tokens(json).len() * HOSTILE.len()
}

/// Gives `entry` each seed with each of its values replaced by each hostile one, and
/// [damaged](crate::fuzzing::damage) up to `end`.
///
/// # Panics
/// As `entry` does.
pub fn spoil<Name, const N: usize>(
    seeds: &[(Name, Vec<u8>)],
    end: usize,
    wrong: impl Fn(u8) -> [u8; N],
    entry: impl Fn(&[u8]),
) {
    for (_, seed) in seeds {
        for pick in 0..hostile_values(seed) {
            entry(&with_hostile_value(seed, pick));
        }
        crate::fuzzing::damage(seed, end, &wrong, &entry);
    }
}

/// The text of `json` after values are replaced one after the other, as `picks` choose them.
#[must_use]
pub fn with_hostile_values(json: &[u8], picks: impl IntoIterator<Item = usize>) -> Vec<u8> {
    picks.into_iter().fold(json.to_vec(), |json, pick| with_hostile_value(&json, pick))
}

/// Where plain values begin and end: texts with their quotes, numbers, words. Keys are among them.
fn tokens(json: &[u8]) -> Vec<(usize, usize)> {
    let (mut tokens, mut at) = (Vec::new(), 0);
    while at < json.len() {
        let length = match json[at] {
            b'"' => text(&json[at..]),
            byte if is_plain(byte) => json[at..].iter().take_while(|byte| is_plain(**byte)).count(),
            _ => {
                at += 1;
                continue;
            }
        };
        tokens.push((at, at + length));
        at += length;
    }
    tokens
}

/// The length of a text that begins with its quote.
fn text(json: &[u8]) -> usize {
    let mut escaped = true;
    for (at, byte) in json.iter().enumerate() {
        if *byte == b'"' && !escaped {
            return at + 1;
        }
        escaped = (at == 0 || *byte == b'\\') && !escaped;
    }
    json.len()
}

fn is_plain(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"+-.".contains(&byte)
}

const HOSTILE: [&str; 24] = [
    "0",
    "1",
    "-1",
    "64",
    "255",
    "65535",
    "65536",
    "2147483647",
    "-2147483648",
    "4294967295",
    "9223372036854775807",
    "-9223372036854775808",
    "18446744073709551615",
    "18446744073709551616",
    "1e308",
    "null",
    "[]",
    "{}",
    "\"\"",
    "\"../../.ssh\"",
    "\"\\u0000\\u001b[2J\"",
    "\"18446744073709551615ns\"",
    "\"ffffffffffffffff\"",
    "\"/\"",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_plain_value_is_replaced_and_the_rest_stays() {
        let json = br#"{"a\"b": [1, true], "c": ""}"#;
        let found: Vec<&[u8]> = tokens(json).iter().map(|(from, to)| &json[*from..*to]).collect();
        assert_eq!(found, [&br#""a\"b""#[..], b"1", b"true", br#""c""#, br#""""#]);
        assert_eq!(hostile_values(json), 5 * 24);
        let of = |token: usize, value: usize| {
            String::from_utf8(with_hostile_value(json, 24 * token + value)).expect("it is a text")
        };
        assert_eq!(of(1, 0), r#"{"a\"b": [0, true], "c": ""}"#);
        assert_eq!(of(4, 23), r#"{"a\"b": [1, true], "c": "/"}"#);
        assert_eq!(with_hostile_value(b"[ ]", 7), b"[ ]");
        // The first becomes `[]`, so that the second value is the first then.
        assert_eq!(with_hostile_values(b"[1, 2]", [16, 2]), b"[[], -1]");
    }

    #[test]
    fn every_seed_is_spoiled_in_every_way() {
        let seen = std::cell::RefCell::new(Vec::new());
        let seeds = [("one", b"7".to_vec()), ("none", b"[]".to_vec())];
        spoil(&seeds, 1, |_| [b'x'], |bytes| seen.borrow_mut().push(bytes.to_vec()));
        let seen = seen.into_inner();
        let hostile: Vec<&[u8]> = HOSTILE.iter().map(|value| value.as_bytes()).collect();
        assert_eq!(seen[..24], hostile);
        assert_eq!(seen[24..], [&b""[..], b"x", b"", b"x]"]);
    }
}
