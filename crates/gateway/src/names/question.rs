//! Messages of the domain name system, as far as they have to be read here (RFC 1035, 4.1).

/// The server could not find out.
pub(super) const SERVER_FAILURE: u8 = 2;
/// The server does not want to.
pub(super) const REFUSED: u8 = 5;

/// Whether a message is a question.
pub(super) fn is_one(message: &[u8]) -> bool {
    message.len() >= HEADER && message[2] & RESPONSE == 0
}

/// The answer that a question has failed, with the question itself; nothing where that makes no
/// sense.
pub(super) fn failure(question: &[u8], code: u8) -> Vec<u8> {
    let Some(end) = end_of_question(question) else { return Vec::new() };
    let mut answer = question.get(..end).unwrap_or_default().to_vec();
    if answer.len() < HEADER {
        return Vec::new();
    }
    answer[2] |= RESPONSE;
    answer[3] = code;
    // One question, and nothing else.
    answer[4..HEADER].copy_from_slice(&[0, 1, 0, 0, 0, 0, 0, 0]);
    answer
}

/// Where the first question ends: a name, a type and a class.
fn end_of_question(message: &[u8]) -> Option<usize> {
    let mut at = HEADER;
    loop {
        match usize::from(*message.get(at)?) {
            0 => break,
            length @ 1..=LABEL_MAX => at += 1 + length,
            // A question is not compressed: there is nothing before it.
            _ => return None,
        }
    }
    let end = at + 1 + 4;
    (end <= message.len()).then_some(end)
}

const HEADER: usize = 12;
const RESPONSE: u8 = 0x80;
const LABEL_MAX: usize = 63;

#[cfg(test)]
mod tests {
    use super::*;

    /// A question for `a.b` with recursion desired, and an option record behind it.
    const QUESTION: [u8; 32] = [
        0x12, 0x34, 0x01, 0, 0, 1, 0, 0, 0, 0, 0, 1, 1, b'a', 1, b'b', 0, 0, 1, 0, 1, 0, 0, 41, 4,
        208, 0, 0, 0, 0, 0, 0,
    ];

    #[test]
    fn a_failure_repeats_identifier_and_question_only() {
        let answer = failure(&QUESTION, REFUSED);
        assert_eq!(answer[..12], [0x12, 0x34, 0x81, 5, 0, 1, 0, 0, 0, 0, 0, 0]);
        assert_eq!(answer[12..], QUESTION[12..21]);
    }

    #[test]
    fn what_is_no_question_is_not_answered() {
        assert!(is_one(&QUESTION));
        assert!(!is_one(&failure(&QUESTION, REFUSED)), "an answer");
        assert!(!is_one(&QUESTION[..11]));
        for cut in 0..21 {
            assert_eq!(failure(&QUESTION[..cut], REFUSED), [0; 0], "{cut} bytes");
        }
        let mut compressed = QUESTION;
        compressed[12] = 0xc0;
        assert_eq!(failure(&compressed, REFUSED), [0; 0]);
    }
}
