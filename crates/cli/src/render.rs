//! Tables, lines and texts for people. Pure: values in, text out.

pub(crate) mod face;
pub(crate) mod hosts;
pub(crate) mod overload;
pub(crate) mod page;
pub(crate) mod paths;
pub(crate) mod placement;
pub(crate) mod plan;
pub(crate) mod summary;
pub(crate) mod table;
pub(crate) mod text;
pub(crate) mod values;
pub(crate) mod verdict;

use anstyle::{AnsiColor, Style};
pub(crate) use windtunnel_report::text::{event, quantity};

/// The text in a colour, if colours are wanted.
pub(crate) fn paint(text: &str, colour: AnsiColor, colours: bool) -> String {
    if !colours {
        return text.to_owned();
    }
    let style = Style::new().fg_color(Some(colour.into()));
    format!("{style}{text}{style:#}")
}
