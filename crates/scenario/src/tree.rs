//! The file as a tree of values with their places, built from the parser's events within fixed
//! bounds.

mod map;
mod moved;

use std::collections::BTreeMap;

use saphyr_parser::{Event, Parser, ScalarStyle, ScanError};

use crate::position::{SourceLocation, line};
use map::OpenMap;
use moved::ReindentedText;

/// A value with its place.
#[derive(Debug, Clone)]
pub struct YamlValue {
    /// Where it starts.
    pub place: SourceLocation,
    /// What it is.
    pub kind: YamlValueKind,
}

/// What a value is. YAML's guesses about plain scalars (is `1e3` a number?) are left to the decoder
/// of each key, which knows what it needs.
#[derive(Debug, Clone)]
pub enum YamlValueKind {
    /// Nothing, `null` or `~`.
    Null,
    /// A scalar, quoted or not.
    Text(String),
    /// A list.
    List(Vec<YamlValue>),
    /// A map, in the order of the text; no key twice, merge keys (`<<`) resolved.
    Map(Vec<(YamlKey, YamlValue)>),
}

/// The key of a map.
#[derive(Debug, Clone)]
pub struct YamlKey {
    /// Where it stands.
    pub place: SourceLocation,
    /// Its text.
    pub text: String,
}

/// Whether a key is for people and other programs: it means nothing here, as in compose files.
pub(crate) fn is_extension(key: &str) -> bool {
    key.starts_with("x-")
}

/// Why a text is not a tree.
#[derive(Debug)]
pub struct TreeError {
    /// Where it was noticed.
    pub place: SourceLocation,
    /// What is wrong.
    pub message: String,
    /// How to repair it, where that is known.
    pub hint: Option<String>,
}

/// The most values in one file, repetitions by aliases included.
const MOST_VALUES: usize = 2_000_000;
/// The deepest nesting; the file's own keys need fewer than ten levels.
const DEEPEST: usize = 64;
/// The most bytes that aliases may repeat.
const MOST_REPEATED: usize = 4 << 20;

/// Reads one document. `None` for an empty one.
///
/// # Errors
/// If the text is not YAML, holds tags or doubled keys, or is larger or deeper than the bounds of
/// this room.
pub fn parse(text: &str) -> Result<Option<YamlValue>, TreeError> {
    let mut moved = ReindentedText::new(text);
    loop {
        let mut builder = YamlTreeBuilder::default();
        let Some(error) = builder.read(&moved)? else { return Ok(builder.root) };
        let mut open = builder.open.iter().map(|open| open.place);
        let flow = open.clone().find(|place| moved.is_flow(*place));
        let flow = flow.or_else(|| moved.unnoticed(&error));
        if flow.is_some_and(|flow| moved.indent(&error, flow)) {
            continue;
        }
        let place = moved.original(SourceLocation::at(error.marker()));
        return Err(match flow.filter(|flow| moved.has_moved(flow.line, place.line)) {
            // The line did not belong to it.
            Some(flow) => endless(flow),
            None => syntax_error(text, error.info(), place, open.next_back()),
        });
    }
}

#[derive(Default)]
struct YamlTreeBuilder {
    root: Option<YamlValue>,
    open: Vec<OpenCollection>,
    anchors: BTreeMap<usize, YamlValue>,
    documents: usize,
    values: usize,
    repeated: usize,
}

/// A collection whose end has not come.
struct OpenCollection {
    place: SourceLocation,
    anchor: usize,
    kind: OpenKind,
}

enum OpenKind {
    List(Vec<YamlValue>),
    Map(OpenMap),
}

impl YamlTreeBuilder {
    /// Reads a text; `Some`: why the parser refuses it.
    fn read(&mut self, moved: &ReindentedText<'_>) -> Result<Option<ScanError>, TreeError> {
        let mut parser = Parser::new_from_str(&moved.text);
        while let Some(event) = parser.next_event() {
            match event {
                Ok((event, span)) => {
                    self.handle(event, moved.original(SourceLocation::of(span)))?;
                }
                Err(error) => return Ok(Some(error)),
            }
        }
        Ok(None)
    }

    fn handle(&mut self, event: Event<'_>, place: SourceLocation) -> Result<(), TreeError> {
        match event {
            Event::DocumentStart(_) => {
                self.documents += 1;
                match self.documents {
                    1 => Ok(()),
                    _ => {
                        Err(error(place, "a second document starts here: one file, one experiment")
                            .hint(
                                "remove the `---` line and what does not belong to this experiment",
                            ))
                    }
                }
            }
            Event::Scalar(text, style, anchor, tag) => {
                check_tag(tag.as_deref(), place)?;
                let plain = style == ScalarStyle::Plain;
                self.add(anchor, scalar(text.into_owned(), plain, place), plain)
            }
            Event::SequenceStart(anchor, tag) => {
                check_tag(tag.as_deref(), place)?;
                self.open(anchor, place, OpenKind::List(Vec::new()))
            }
            Event::MappingStart(anchor, tag) => {
                check_tag(tag.as_deref(), place)?;
                self.open(anchor, place, OpenKind::Map(OpenMap::default()))
            }
            Event::SequenceEnd | Event::MappingEnd => self.close(),
            Event::Alias(id) => self.repeat(id, place),
            Event::Nothing | Event::StreamStart | Event::StreamEnd | Event::DocumentEnd => Ok(()),
        }
    }

    fn open(
        &mut self,
        anchor: usize,
        place: SourceLocation,
        kind: OpenKind,
    ) -> Result<(), TreeError> {
        if self.open.len() >= DEEPEST {
            return Err(error(place, format!("nested more than {DEEPEST} levels deep")));
        }
        if self.expects_key() {
            return Err(error(place, "a key must be a text, not a list or a map"));
        }
        self.open.push(OpenCollection { place, anchor, kind });
        Ok(())
    }

    fn close(&mut self) -> Result<(), TreeError> {
        let Some(OpenCollection { place, anchor, kind }) = self.open.pop() else { return Ok(()) };
        let kind = match kind {
            OpenKind::List(items) => YamlValueKind::List(items),
            OpenKind::Map(map) => YamlValueKind::Map(map.close()),
        };
        self.add(anchor, YamlValue { place, kind }, false)
    }

    fn repeat(&mut self, anchor: usize, place: SourceLocation) -> Result<(), TreeError> {
        let Some(value) = self.anchors.get(&anchor).cloned() else {
            return Err(error(place, "this alias stands inside the value that it repeats"));
        };
        self.repeated += weight(&value);
        self.add(0, value, false)
    }

    fn add(&mut self, anchor: usize, value: YamlValue, plain: bool) -> Result<(), TreeError> {
        self.values += 1;
        if self.values > MOST_VALUES {
            return Err(error(value.place, format!("more than {MOST_VALUES} values in one file")));
        }
        if anchor != 0 {
            self.anchors.insert(anchor, value.clone());
            self.repeated += weight(&value);
        }
        if self.repeated > MOST_REPEATED {
            return Err(error(value.place, "anchors and aliases repeat more than 4 MB"));
        }
        match self.open.last_mut().map(|open| &mut open.kind) {
            None => self.root = Some(value),
            Some(OpenKind::List(items)) => items.push(value),
            Some(OpenKind::Map(map)) => map.add(value, plain)?,
        }
        Ok(())
    }

    fn expects_key(&self) -> bool {
        let open = self.open.last().map(|open| &open.kind);
        matches!(open, Some(OpenKind::Map(map)) if map.expects_key())
    }
}

impl TreeError {
    fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}

fn error(place: SourceLocation, message: impl Into<String>) -> TreeError {
    TreeError { place, message: message.into(), hint: None }
}

fn scalar(text: String, plain: bool, place: SourceLocation) -> YamlValue {
    let null = plain && matches!(text.as_str(), "" | "~" | "null");
    YamlValue { place, kind: if null { YamlValueKind::Null } else { YamlValueKind::Text(text) } }
}

fn check_tag(tag: Option<&saphyr_parser::Tag>, place: SourceLocation) -> Result<(), TreeError> {
    const CORE: [&str; 7] = ["str", "int", "float", "bool", "null", "map", "seq"];
    match tag {
        Some(tag) if !(tag.is_yaml_core_schema() && CORE.contains(&tag.suffix.as_str())) => {
            let shown = match tag.is_yaml_core_schema() {
                true => crate::text::shorten(&format!("!!{}", tag.suffix)),
                false => crate::text::shorten(&tag.to_string()),
            };
            Err(error(place, format!("the tag `{shown}` means nothing here")).hint("remove it"))
        }
        _ => Ok(()),
    }
}

/// Roughly the bytes that a copy of `value` takes.
fn weight(value: &YamlValue) -> usize {
    const EACH: usize = 64;
    EACH + match &value.kind {
        YamlValueKind::Null => 0,
        YamlValueKind::Text(text) => text.len(),
        YamlValueKind::List(items) => items.iter().map(weight).sum(),
        YamlValueKind::Map(entries) => {
            entries.iter().map(|(key, value)| EACH + key.text.len() + weight(value)).sum()
        }
    }
}

/// The parser's complaints in our words, with what usually is behind them.
fn syntax_error(
    text: &str,
    info: &str,
    place: SourceLocation,
    open: Option<SourceLocation>,
) -> TreeError {
    let line = line(text, place.line);
    let leads_with_tab = line.trim_start_matches(' ').starts_with('\t');
    if leads_with_tab || info.starts_with("tab") {
        let before = line.chars().take_while(|c| *c == ' ').count();
        let column = u32::try_from(before + 1).unwrap_or(1);
        let place = if leads_with_tab { SourceLocation { column, ..place } } else { place };
        return error(place, "a tab in the indentation: YAML indents with spaces only")
            .hint("replace the tab by spaces");
    }
    let (message, hint) = explain(info);
    let error = match open {
        // The parser notices at the next line, or at the end, what is missing here.
        Some(open) if info.contains("flow") && open.line != place.line => endless(open),
        _ => error(place, message),
    };
    match hint {
        Some(hint) => error.hint(hint),
        None => error,
    }
}

fn endless(open: SourceLocation) -> TreeError {
    error(open, "the list or map that starts here does not end")
}

fn explain(info: &str) -> (String, Option<&'static str>) {
    let known = [
        ("recursion limit", "nested too deep", None),
        ("unprintable", "an unprintable character", Some("a scenario is a text file in UTF-8")),
        (
            "flow mapping",
            "here `,` or `}` was expected: the map `{…}` does not end",
            Some(
                "close the map with `}`; quote a text that holds `: `, `{`, `}`, `[`, `]`, `,` or ` #`",
            ),
        ),
        (
            "flow sequence",
            "here `,` or `]` was expected: the list `[…]` does not end",
            Some(
                "close the list with `]`; quote a text that holds `: `, `{`, `}`, `[`, `]`, `,` or ` #`",
            ),
        ),
        (
            "mapping values are not allowed",
            "a `:` that belongs to no key",
            Some("quote a text that holds `: `, and check the indentation"),
        ),
        (
            "block mapping",
            "here a key was expected",
            Some("check the indentation: keys of one map start in the same column"),
        ),
        (
            "block collection",
            "here `- ` was expected",
            Some("check the indentation: the `-` of one list stand in the same column"),
        ),
        ("unknown anchor", "an alias of an anchor that does not exist", None),
        ("unexpected end of stream", "the quoted text that starts here does not end", None),
        ("invalid indentation", "the indentation fits nothing above it", None),
        (
            "simple key expect",
            "here `key: value` was expected",
            Some("is a `:` missing, or the indentation wrong?"),
        ),
        (
            "unknown escape",
            "an unknown escape in a text in double quotes",
            Some("write `\\\\` for a backslash, or use single quotes"),
        ),
    ];
    match known.iter().find(|(part, ..)| info.contains(part)) {
        Some((_, message, hint)) => ((*message).to_owned(), *hint),
        None => (format!("this is not YAML: {info}"), None),
    }
}
