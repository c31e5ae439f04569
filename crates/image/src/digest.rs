//! SHA-256 digests as OCI writes them. Source: OCI Image Specification, descriptor.md, "Digests".

use std::fmt;
use std::io::{self, Read};

use sha2::{Digest as _, Sha256};

/// A SHA-256 digest.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Sha256Digest(String);

impl Sha256Digest {
    /// The digest of bytes.
    #[must_use]
    pub fn of(bytes: &[u8]) -> Sha256Digest {
        Sha256Digest(hex(&Sha256::digest(bytes)))
    }

    /// From `sha256:` and 64 hexadecimal digits; `None` for anything else.
    #[must_use]
    pub fn parse(text: &str) -> Option<Sha256Digest> {
        let hex = text.strip_prefix("sha256:")?;
        let lower = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
        (hex.len() == 64 && hex.bytes().all(lower)).then(|| Sha256Digest(hex.to_owned()))
    }

    /// Its 64 hexadecimal digits.
    #[must_use]
    pub fn hex(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Sha256Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "sha256:{}", self.0)
    }
}

/// Reads what another reader gives, and knows its digest and its length.
#[derive(Debug)]
pub struct HashingReader<R> {
    inner: R,
    hash: Sha256,
    bytes: u64,
}

impl<R: Read> HashingReader<R> {
    /// Nothing has been read yet.
    #[must_use]
    pub fn new(inner: R) -> Self {
        HashingReader { inner, hash: Sha256::new(), bytes: 0 }
    }

    /// Reads all that is left; the digest of the whole, and its bytes.
    ///
    /// # Errors
    /// Those of the other reader.
    pub fn finish(mut self) -> io::Result<(Sha256Digest, u64)> {
        io::copy(&mut self, &mut io::sink())?;
        Ok((Sha256Digest(hex(&self.hash.finalize())), self.bytes))
    }
}

impl<R: Read> Read for HashingReader<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.inner.read(buffer)?;
        self.hash.update(&buffer[..read]);
        self.bytes += u64::try_from(read).unwrap_or(u64::MAX);
        Ok(read)
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// FIPS 180-4, the digest of no bytes.
    const EMPTY: &str = "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

    #[test]
    fn a_digest_is_read_as_it_is_written() {
        assert_eq!(Sha256Digest::of(b"").to_string(), EMPTY);
        assert_eq!(Sha256Digest::parse(EMPTY), Some(Sha256Digest::of(b"")));
        let short = &EMPTY[..70];
        for wrong in ["", "sha512:00", short, &EMPTY.to_uppercase(), "../../../etc/passwd"] {
            assert_eq!(Sha256Digest::parse(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn what_was_not_read_yet_counts_as_well() {
        let mut reader = HashingReader::new(&b"some bytes"[..]);
        reader.read_exact(&mut [0; 3]).unwrap();
        assert_eq!(reader.finish().unwrap(), (Sha256Digest::of(b"some bytes"), 10));
    }
}
