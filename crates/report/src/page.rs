//! The page: one file of HTML that draws a document, or asks a server for it.

use std::io::Write;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use flate2::Compression;
use flate2::write::ZlibEncoder;
use serde::Serialize;
use serde_json::Value;

use crate::document::ReportDocument;

/// The page as the web tool chain leaves it, with a place for what it draws.
const PAGE: &str = include_str!("../page/page.html");
/// That place.
const PLACE: &str = "<!--windtunnel-document-->";

/// A page with a document inside, which is packed once.
#[derive(Debug)]
pub struct ReportPage {
    /// The document: JSON, deflated (RFC 1950).
    packed: Vec<u8>,
}

impl ReportPage {
    pub(crate) fn of(document: &ReportDocument) -> ReportPage {
        ReportPage { packed: deflated(document) }
    }

    /// Bytes of the page.
    pub(crate) fn len(&self) -> usize {
        PAGE.len() + base64_len(self.packed.len())
    }

    /// Bytes that a part of a document has in a page by itself.
    pub(crate) fn encoded_len(part: &impl Serialize) -> usize {
        base64_len(deflated(part).len())
    }

    /// The file's text.
    #[must_use]
    pub fn html(&self) -> String {
        with(&format!(
            "<script type=\"application/octet-stream\" id=\"windtunnel-document\" \
             data-encoding=\"deflate-base64\">{}</script>",
            STANDARD.encode(&self.packed)
        ))
    }
}

fn base64_len(bytes: usize) -> usize {
    bytes.div_ceil(3) * 4
}

/// The page of a run that goes on; it asks the server that it came from, with this token.
#[must_use]
pub fn live(token: &str) -> String {
    with(&settings("windtunnel-live", token))
}

/// The page of a file that is edited, likewise.
#[must_use]
pub fn edit(token: &str) -> String {
    with(&settings("windtunnel-edit", token))
}

fn with(script: &str) -> String {
    PAGE.replacen(PLACE, script, 1)
}

fn settings(id: &str, token: &str) -> String {
    let json = Value::from_iter([("token", token)]).to_string();
    // Nothing of it may end the script.
    let json = json.replace('<', "\\u003c");
    format!("<script type=\"application/json\" id=\"{id}\">{json}</script>")
}

fn deflated(part: &impl Serialize) -> Vec<u8> {
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::new(LEVEL));
    // Memory takes all that is written, and the document has no keys other than texts.
    let _ = serde_json::to_writer(&mut encoder, part);
    let _ = encoder.flush();
    encoder.finish().unwrap_or_default()
}

const LEVEL: u32 = 6;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_has_one_place_for_what_it_draws() {
        assert_eq!(PAGE.matches(PLACE).count(), 1);
    }

    #[test]
    fn a_token_cannot_end_its_script() {
        let page = live("</script><script>alert(1)");
        assert!(!page.contains("</script><script>alert"));
        assert!(page.contains("\\u003c/script>"));
    }

    #[test]
    fn nothing_is_loaded_from_elsewhere() {
        let loads = ["src=\"http", "href=\"http", "src='http", "@import", "url(http", "url(//"];
        for load in loads {
            assert!(!PAGE.contains(load), "{load}");
        }
    }
}
