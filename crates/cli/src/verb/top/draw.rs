//! The app as characters.

use std::ops::Range;

use anstyle::{AnsiColor, Effects, Style};
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use super::app::{KeyInputMode, LiveTableTab, TopViewState};
use super::canvas::{ScreenCanvas, ScreenPosition, divide, skip_columns};
use super::columns::{LiveTableRow, RowHighlight};
use super::help;
use super::view::LiveTableView;
use crate::render::quantity;
use crate::render::table::{ColumnAlignment, printable};

/// Draws everything on a blank canvas. `silent_s` is how long the run has owed an answer, in seconds.
pub(super) fn draw(
    canvas: &mut ScreenCanvas,
    app: &mut TopViewState,
    colours: bool,
    silent_s: u64,
) {
    let paint = TerminalPalette { colours };
    let talk = talk(app, canvas.width());
    let [title_row, body, talk_rows, keys_row] = divide(canvas.height(), talk.len());
    app.page = body.len().saturating_sub(1).max(1);
    for row in title_row {
        title(canvas, row, app, paint, silent_s);
    }
    if let KeyInputMode::Help(top) = &mut app.mode {
        let lines = help::lines(app.tab);
        let most = lines.len().saturating_sub(body.len());
        *top = (*top).min(u16::try_from(most).unwrap_or(u16::MAX));
        for (row, line) in body.zip(lines.iter().skip(usize::from(*top))) {
            canvas.print(ScreenPosition { column: 0, row }, line, Style::new());
        }
    } else {
        table(canvas, body, app, paint);
    }
    let bad = app.status.as_ref().is_some_and(|status| status.bad);
    let style = if bad { paint.of(AnsiColor::Red) } else { Style::new() };
    for (row, line) in talk_rows.zip(&talk) {
        canvas.print(ScreenPosition { column: 0, row }, line, style);
    }
    for row in keys_row {
        bottom(canvas, row, app, paint);
    }
}

/// Colours, where they are wanted.
#[derive(Debug, Clone, Copy)]
struct TerminalPalette {
    colours: bool,
}

impl TerminalPalette {
    fn of(self, colour: AnsiColor) -> Style {
        if self.colours { Style::new().fg_color(Some(colour.into())) } else { Style::new() }
    }
}

/// `quickstart  12.3s  [Links 10] Nodes 4`, and unusual states.
fn title(
    canvas: &mut ScreenCanvas,
    row: usize,
    app: &TopViewState,
    paint: TerminalPalette,
    silent_s: u64,
) {
    let mut column = 0;
    let mut print =
        |text: &str, style| column = canvas.print(ScreenPosition { column, row }, text, style);
    let plain = Style::new();
    let Some(snapshot) = &app.snapshot else {
        let late = if silent_s > 0 { format!(" ({silent_s}s)") } else { String::new() };
        return print(&format!("waiting for the run to answer{late}"), plain);
    };
    let status = &snapshot.status;
    let seconds = status.elapsed_ns / 100_000_000;
    print(&printable(status.name.clone()), plain.bold());
    print(&format!("  {}.{}s  ", seconds / 10, seconds % 10), plain);
    let mut print_tab = |tab: LiveTableTab, name: &str, count: usize| {
        print(&format!(" {name} {count} "), if app.tab == tab { plain.invert() } else { plain });
    };
    print_tab(LiveTableTab::Links, "links", snapshot.links.len());
    print_tab(LiveTableTab::Nodes, "nodes", status.nodes.len());
    let view = app.view();
    if !view.filter().is_empty() {
        let (shown, all) = (view.shown().len(), view.total());
        print(&format!("  /{}: {shown} of {all} rows", view.filter()), plain);
    }
    if app.paused {
        print("  paused", paint.of(AnsiColor::Yellow).bold());
    } else if silent_s > 0 {
        print(&format!("  no answer for {silent_s}s"), paint.of(AnsiColor::Red).bold());
    } else if snapshot.window_ns < 1_000_000_000 {
        print(&format!("  rates over {}", quantity::nanos(snapshot.window_ns)), plain);
    }
}

fn table(
    canvas: &mut ScreenCanvas,
    area: Range<usize>,
    app: &TopViewState,
    paint: TerminalPalette,
) {
    let view = app.view();
    let height = area.len().saturating_sub(1).max(1);
    // The selected row is on the page that it is on however it was come to.
    let first = view.selected() / height * height;
    let rows: Vec<&LiveTableRow> = view.shown().skip(first).take(height).collect();
    let columns = fit(view, &rows, super::app::names(app.tab), canvas.width());
    let mut places = area.clone();
    let Some(header) = places.next() else { return };
    let mut left = 0;
    for &FittedColumn { column, width } in &columns {
        let text = flush(&heading(view, column), view.columns()[column].align, width);
        let sorted = view.sort().is_some_and(|sort| sort.column == column);
        let underlined = if sorted { Effects::UNDERLINE } else { Effects::new() };
        let style = Style::new().effects(Effects::BOLD | underlined);
        canvas.print(ScreenPosition { column: left, row: header }, &text, style);
        left += width + 1;
    }
    for ((row, shown), at) in places.zip(&rows).zip(first..) {
        let mut style = match shown.mood {
            RowHighlight::Calm => Style::new(),
            RowHighlight::Dropping => paint.of(AnsiColor::Yellow),
            RowHighlight::Bad => paint.of(AnsiColor::Red),
        };
        if at == view.selected() {
            style = style.invert();
        }
        canvas.tint(row, style);
        let mut left = 0;
        for &FittedColumn { column, width } in &columns {
            let text = printable(shown.cells[column].text());
            let text = flush(&text, view.columns()[column].align, width);
            canvas.print(ScreenPosition { column: left, row }, &text, style);
            left += width + 1;
        }
    }
    if rows.is_empty() && app.snapshot.is_some() {
        let text = if view.total() == 0 { "there is none" } else { "no row has this in a name" };
        let column = canvas.width().saturating_sub(text.len()) / 2;
        canvas.print(ScreenPosition { column, row: header + 1 }, text, Style::new());
    }
}

/// A column of the table, as wide as it is drawn.
#[derive(Debug, Clone, Copy)]
struct FittedColumn {
    column: usize,
    width: usize,
}

/// Columns with their widths: the names, then from the first that is not left out as many as fit.
fn fit(
    view: &LiveTableView,
    rows: &[&LiveTableRow],
    names: usize,
    width: usize,
) -> Vec<FittedColumn> {
    let natural = |column: usize| {
        let cells = rows.iter().map(|row| printable(row.cells[column].text()).width());
        cells.max().unwrap_or(0).max(heading(view, column).width())
    };
    let mut left = width;
    let mut columns = Vec::new();
    for column in (0..names).chain(names + view.skipped()..view.columns().len()) {
        let spec = &view.columns()[column];
        let last = column + 1 == view.columns().len() && spec.align == ColumnAlignment::Left;
        let wanted = natural(column);
        let taken = if column < names {
            wanted.min(NAME_WIDTH_MAX).min((width / 4).max(NAME_WIDTH_MIN))
        } else if last {
            // Words at the end of the line may be cut short.
            wanted.min(left)
        } else {
            wanted.min(OTHER_WIDTH_MAX)
        };
        if taken > left {
            break;
        }
        columns.push(FittedColumn { column, width: taken });
        left = left.saturating_sub(taken + 1);
        if left == 0 {
            break;
        }
    }
    columns
}

/// The heading with an arrow where rows are sorted by it.
fn heading(view: &LiveTableView, column: usize) -> String {
    let heading = view.columns()[column].heading;
    match view.sort() {
        Some(sort) if sort.column == column => {
            format!("{heading}{}", if sort.descending { "▼" } else { "▲" })
        }
        _ => heading.to_owned(),
    }
}

/// The text on its side of the column; what does not fit ends in `…`.
fn flush(text: &str, align: ColumnAlignment, width: usize) -> String {
    let cut = shorten(text, width);
    let blanks = " ".repeat(width.saturating_sub(cut.width()));
    match align {
        ColumnAlignment::Left => cut,
        ColumnAlignment::Right => blanks + &cut,
    }
}

fn shorten(text: &str, width: usize) -> String {
    if text.width() <= width {
        return text.to_owned();
    }
    let mut cut = String::new();
    let mut left = width.saturating_sub(1);
    for c in text.chars() {
        let Some(rest) = left.checked_sub(c.width().unwrap_or(0)) else { break };
        left = rest;
        cut.push(c);
    }
    cut + "…"
}

/// The message, broken between words; never more than a part of the screen.
fn talk(app: &TopViewState, width: usize) -> Vec<String> {
    let width = width.max(1);
    let text = app.status.as_ref().map_or("", |status| status.text.as_str());
    let mut lines = vec![String::new()];
    for word in printable(text.to_owned()).split(' ') {
        let full = lines.len() == TALK_ROWS_MAX;
        match lines.last_mut() {
            Some(line) if line.is_empty() => line.push_str(word),
            Some(line) if full || line.width() + 1 + word.width() <= width => {
                line.extend([" ", word]);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines.iter().map(|line| shorten(line, width)).collect()
}

/// The keys, or the line that is typed.
fn bottom(canvas: &mut ScreenCanvas, row: usize, app: &TopViewState, paint: TerminalPalette) {
    let begin = ScreenPosition { column: 0, row };
    let (prompt, line) = match &app.mode {
        KeyInputMode::Table => {
            canvas.print(begin, &keys(app), paint.of(AnsiColor::Cyan));
            return;
        }
        KeyInputMode::Help(_) => {
            canvas.print(begin, "Up Down scroll, any other key: back", Style::new());
            return;
        }
        KeyInputMode::Filter { line, .. } => ("/".to_owned(), line),
        KeyInputMode::Limit { node, line } => {
            (format!("limit {}: ", printable(node.clone())), line)
        }
        KeyInputMode::Set { link, direction, both, line } => {
            let way = if *both { "both directions" } else { direction.as_str() };
            (format!("set {} ({way}, Tab: change): ", printable(link.clone())), line)
        }
    };
    let before = prompt.width() + line.before_cursor().width();
    // The cursor stays on the screen: the text is scrolled to the left.
    let gone = (before + 1).saturating_sub(canvas.width());
    let text = format!("{prompt}{}", line.text());
    canvas.print(begin, skip_columns(&text, gone), Style::new());
    canvas.show_cursor(ScreenPosition { column: before - gone, row });
}

fn keys(app: &TopViewState) -> String {
    let change = match app.tab {
        LiveTableTab::Links => "s set  d down  u up  ",
        LiveTableTab::Nodes => "",
    };
    format!(
        "? help  Tab {}  / filter  <> sort  {change}p pause  q quit",
        if app.tab == LiveTableTab::Links { "nodes" } else { "links" },
    )
}

const NAME_WIDTH_MAX: usize = 28;
const NAME_WIDTH_MIN: usize = 8;
/// Addresses of a node with many.
const OTHER_WIDTH_MAX: usize = 24;
const TALK_ROWS_MAX: usize = 3;
