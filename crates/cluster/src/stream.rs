//! Messages on a stream of a connection, as `windtunnel_control::frame` has them.

use std::io::{self, ErrorKind};

use quinn::{RecvStream, SendStream};
use serde::Serialize;
use serde::de::DeserializeOwned;
use windtunnel_control::frame;

/// Sends a message.
///
/// # Errors
/// If the other end has gone or does not want it.
pub(crate) async fn send(to: &mut SendStream, message: &impl Serialize) -> io::Result<()> {
    let bytes = frame::encode(message).map_err(invalid)?;
    Ok(to.write_all(&bytes).await?)
}

/// The next message, which is at most `most` bytes long.
///
/// # Errors
/// If the other end has gone or says what is no message.
pub(crate) async fn receive<T: DeserializeOwned>(
    from: &mut RecvStream,
    most: usize,
) -> io::Result<T> {
    let mut head = [0; frame::HEAD];
    from.read_exact(&mut head).await.map_err(broken)?;
    let length = frame::length(head).map_err(invalid)?;
    if length > most {
        return Err(invalid(frame::FrameError::TooLong(length)));
    }
    let mut body = vec![0; length];
    from.read_exact(&mut body).await.map_err(broken)?;
    frame::decode(&body).map_err(invalid)
}

fn invalid(error: frame::FrameError) -> io::Error {
    io::Error::new(ErrorKind::InvalidData, error)
}

fn broken(error: quinn::ReadExactError) -> io::Error {
    match error {
        quinn::ReadExactError::FinishedEarly(_) => {
            io::Error::new(ErrorKind::UnexpectedEof, "it broke off")
        }
        quinn::ReadExactError::ReadError(error) => error.into(),
    }
}
