//! `allow` and `publish`: the way between the nodes and the machine's outside.

use std::str::FromStr;

use windtunnel_model::plan::{InternetAllowRule, PortPublication};

use crate::grammar::{Decoder, NameListForm, YamlMapEntry, form};
use crate::position::LocatedValue;
use crate::text::shorten;

form! {
    /// Addresses outside, each perhaps with a prefix and ports, and `dns`.
    pub(super) Allowed: Vec<InternetAllowRule>, by read_allowed, like NameListForm::schema
}

form! {
    /// Ports of the machine with the ports of the node that they lead to.
    pub(super) Published: Vec<LocatedValue<PortPublication>>, by read_published, like NameListForm::schema
}

fn read_allowed(from: &mut Decoder<'_>, field: YamlMapEntry<'_>) -> Option<Vec<InternetAllowRule>> {
    let needed = "addresses such as 192.0.2.0/24:443, or `dns`";
    let hint = "write `192.0.2.7`, `192.0.2.0/24:443`, `[2001:db8::]/32:80-90` or `dns`";
    let read = read_each::<InternetAllowRule>(from, field, needed, hint)?;
    Some(read.into_iter().map(|it| it.value).collect())
}

fn read_published(
    from: &mut Decoder<'_>,
    field: YamlMapEntry<'_>,
) -> Option<Vec<LocatedValue<PortPublication>>> {
    let needed = "ports such as 8080:80";
    let hint = "the machine's port comes first: `8080:80` leads from it to port 80 of the node; \
                `0.0.0.0:8080:80` lets other machines in";
    read_each(from, field, needed, hint)
}

/// One text or a list of texts.
fn read_each<T: FromStr<Err: std::fmt::Display>>(
    from: &mut Decoder<'_>,
    field: YamlMapEntry<'_>,
    needed: &str,
    hint: &str,
) -> Option<Vec<LocatedValue<T>>> {
    let texts = from.names(field, needed)?;
    let mut read = Vec::new();
    for text in &texts {
        match text.value.parse() {
            Ok(value) => read.push(LocatedValue { value, place: text.place }),
            Err(_) => {
                let shown = shorten(&text.value);
                let message = format!("{}: `{shown}` is none of {needed}", field.key);
                from.mistake_with_hint(text.place, message, hint);
            }
        }
    }
    (read.len() == texts.len()).then_some(read)
}
