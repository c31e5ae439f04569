//! Messages on a stream of a connection, as `windtunnel_control::frame` has them.

use std::io::{self, ErrorKind};

use quinn::{ReadExactError, RecvStream, SendStream};
use serde::Serialize;
use serde::de::DeserializeOwned;
use windtunnel_control::frame;
use windtunnel_model::valid::Validate;

/// Sends a message.
///
/// # Errors
/// If the other end has gone or does not want it.
pub(crate) async fn send(to: &mut SendStream, message: &impl Serialize) -> io::Result<()> {
    let bytes = frame::encode(message).map_err(invalid)?;
    Ok(to.write_all(&bytes).await?)
}

/// The next message, which is at most `most` bytes long, and valid. Memory is taken as its bytes
/// come, not as its length says.
///
/// # Errors
/// If the other end has gone or sends an invalid message.
pub(crate) async fn receive<T: DeserializeOwned + Validate>(
    from: &mut RecvStream,
    most: usize,
) -> io::Result<T> {
    let mut head = [0; frame::HEAD];
    from.read_exact(&mut head).await.map_err(broken)?;
    let length = frame::length(head).map_err(invalid)?;
    if length > most {
        return Err(invalid(frame::FrameError::TooLong(length)));
    }
    let mut body = Vec::new();
    while body.len() < length {
        let chunk = from.read_chunk((length - body.len()).min(PIECE), true).await?;
        let Some(chunk) = chunk else {
            return Err(broken(ReadExactError::FinishedEarly(body.len())));
        };
        body.extend_from_slice(&chunk.bytes);
    }
    frame::decode(&body).map_err(invalid)
}

fn invalid(error: frame::FrameError) -> io::Error {
    io::Error::new(ErrorKind::InvalidData, error)
}

fn broken(error: ReadExactError) -> io::Error {
    match error {
        ReadExactError::FinishedEarly(_) => {
            io::Error::new(ErrorKind::UnexpectedEof, "it broke off")
        }
        ReadExactError::ReadError(error) => error.into(),
    }
}

/// Bytes that are taken at once.
const PIECE: usize = 64 * 1024;
