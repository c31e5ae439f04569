//! Messages on a stream: a length of four bytes (big-endian), then JSON of so many bytes.

use serde::Serialize;
use serde::de::DeserializeOwned;
use windtunnel_model::valid::{PlanValidationError, Validate};

/// The longest message that is taken: a plan of thousands of nodes fits.
pub const FRAME_BYTES_MAX: usize = 256 << 20;

/// Bytes before a message.
pub const HEAD: usize = 4;

/// Why bytes are not a message.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FrameError {
    /// It says that it is longer than any message.
    #[error("a message of {0} bytes is longer than {FRAME_BYTES_MAX}")]
    TooLong(usize),
    /// It is not what was expected.
    #[error("a message cannot be read: {0}")]
    Unreadable(#[from] serde_json::Error),
    /// It is one that may not be sent.
    #[error("a message is not valid: {0}")]
    Invalid(#[from] PlanValidationError),
}

/// The bytes of a message.
///
/// # Errors
/// If it is longer than [`FRAME_BYTES_MAX`], or cannot be written as JSON.
pub fn encode(message: &impl Serialize) -> Result<Vec<u8>, FrameError> {
    let mut bytes = vec![0; HEAD];
    serde_json::to_writer(&mut bytes, message)?;
    let length = bytes.len() - HEAD;
    let head = u32::try_from(length).ok().filter(|_| length <= FRAME_BYTES_MAX);
    bytes[..HEAD].copy_from_slice(&head.ok_or(FrameError::TooLong(length))?.to_be_bytes());
    Ok(bytes)
}

/// The length that a head announces.
///
/// # Errors
/// If that is longer than [`FRAME_BYTES_MAX`].
pub fn length(head: [u8; HEAD]) -> Result<usize, FrameError> {
    let length = usize::try_from(u32::from_be_bytes(head)).unwrap_or(usize::MAX);
    if length > FRAME_BYTES_MAX { Err(FrameError::TooLong(length)) } else { Ok(length) }
}

/// What the bytes after a head say, if that is a valid message: the one way from bytes to messages.
///
/// # Errors
/// If they are not what was expected.
pub fn decode<T: DeserializeOwned + Validate>(body: &[u8]) -> Result<T, FrameError> {
    let message: T = serde_json::from_slice(body)?;
    message.validate()?;
    Ok(message)
}

/// Bytes of a stream that come in pieces.
#[derive(Debug, Default)]
pub struct FrameDecoder {
    bytes: Vec<u8>,
    /// Before this, all has been taken.
    taken: usize,
}

impl FrameDecoder {
    /// Adds what has come.
    pub fn add(&mut self, bytes: &[u8]) {
        self.bytes.drain(..std::mem::take(&mut self.taken));
        self.bytes.extend_from_slice(bytes);
    }

    /// The next whole message, if there is one.
    ///
    /// # Errors
    /// If the bytes are not a message; those after them mean nothing.
    pub fn take<T: DeserializeOwned + Validate>(&mut self) -> Result<Option<T>, FrameError> {
        let rest = &self.bytes[self.taken..];
        let Some((head, body)) = rest.split_first_chunk::<HEAD>() else { return Ok(None) };
        let length = length(*head)?;
        let Some(body) = body.get(..length) else { return Ok(None) };
        let message = decode(body)?;
        self.taken += HEAD + length;
        Ok(Some(message))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Some text.
    #[derive(Debug, PartialEq, Serialize, serde::Deserialize)]
    #[serde(transparent)]
    struct Text(String);

    impl Validate for Text {
        fn validate(&self) -> Result<(), PlanValidationError> {
            windtunnel_model::valid::ensure(self.0 != "bad", || "it is bad".to_owned())
        }
    }

    #[test]
    fn an_encoded_message_decodes_to_itself() {
        let bytes = encode(&"some text").unwrap();
        let (head, body) = bytes.split_first_chunk().unwrap();
        assert_eq!(length(*head).unwrap(), body.len());
        assert_eq!(decode::<Text>(body).unwrap().0, "some text");
    }

    #[test]
    fn messages_come_whole_whatever_the_pieces_are() {
        let sent = ["a", "", "some more of it"];
        let bytes: Vec<u8> = sent.iter().flat_map(|text| encode(text).unwrap()).collect();
        for piece in 1..bytes.len() {
            let (mut frames, mut got) = (FrameDecoder::default(), Vec::new());
            for piece in bytes.chunks(piece) {
                frames.add(piece);
                while let Some(text) = frames.take::<Text>().unwrap() {
                    got.push(text.0);
                }
            }
            assert_eq!(got, sent);
        }
    }

    #[test]
    fn a_message_that_cannot_be_is_refused_before_it_is_waited_for() {
        assert!(matches!(length([0xff; HEAD]), Err(FrameError::TooLong(_))));
        assert!(matches!(decode::<Text>(b"7"), Err(FrameError::Unreadable(_))));
        assert!(matches!(decode::<Text>(b"\"bad\""), Err(FrameError::Invalid(_))));
    }
}
