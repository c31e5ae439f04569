//! The secret in the page's address.

use std::fmt;
use std::io;

use subtle::ConstantTimeEq;

/// 256 random bits, as text. It is not in any output of `Debug`.
#[derive(Clone)]
pub struct WebAccessToken(String);

impl WebAccessToken {
    /// From the system's random numbers.
    ///
    /// # Errors
    /// If the system has none.
    pub fn random() -> io::Result<Self> {
        let mut bytes = [0; BYTES];
        let mut filled = 0;
        while filled < BYTES {
            let flags = rustix::rand::GetRandomFlags::empty();
            filled += rustix::rand::getrandom(&mut bytes[filled..], flags)?;
        }
        Ok(WebAccessToken(bytes.iter().map(|byte| format!("{byte:02x}")).collect()))
    }

    /// As it stands in URLs: hexadecimal digits.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.0
    }

    /// Whether a text is the token. The time that this takes says nothing of where they differ.
    #[must_use]
    pub fn is(&self, text: &str) -> bool {
        self.0.as_bytes().ct_eq(text.as_bytes()).into()
    }
}

impl fmt::Debug for WebAccessToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token")
    }
}

const BYTES: usize = 32;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_another_each_time_and_is_not_shown() {
        let (one, two) = (WebAccessToken::random().unwrap(), WebAccessToken::random().unwrap());
        assert!(!one.is(two.text()) && one.is(one.text()));
        assert!(!one.is("") && !one.is(&one.text()[1..]));
        assert_eq!(format!("{one:?}"), "Token");
    }
}
