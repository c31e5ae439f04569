//! The app as characters.

use ratatui::Frame;
use ratatui::layout::{Alignment, Constraint, Layout, Position, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Cell, Paragraph, Row as Drawn, Table, TableState};
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use super::app::{KeyInputMode, LiveTableTab, TopViewState};
use super::columns::{LiveTableRow, RowHighlight};
use super::help;
use super::view::LiveTableView;
use crate::render::quantity;
use crate::render::table::{ColumnAlignment, printable};

/// Draws everything. `silent_s` is how long the run has owed an answer, in seconds.
pub(super) fn draw(frame: &mut Frame<'_>, app: &mut TopViewState, colours: bool, silent_s: u64) {
    let paint = TerminalPalette { colours };
    let talk = talk(app, frame.area().width);
    let talk_rows = u16::try_from(talk.len()).unwrap_or(1);
    let rows = [
        Constraint::Length(1),
        Constraint::Min(1),
        Constraint::Length(talk_rows),
        Constraint::Length(1),
    ];
    let [title_at, body_at, talk_at, keys_at] = Layout::vertical(rows).areas(frame.area());
    app.page = usize::from(body_at.height.saturating_sub(1)).max(1);
    frame.render_widget(title(app, paint, silent_s), title_at);
    if let KeyInputMode::Help(top) = &mut app.mode {
        let lines = help::lines(app.tab);
        let most = lines.len().saturating_sub(usize::from(body_at.height));
        *top = (*top).min(u16::try_from(most).unwrap_or(u16::MAX));
        let text: Vec<Line<'_>> = lines.into_iter().map(Line::from).collect();
        frame.render_widget(Paragraph::new(text).scroll((*top, 0)), body_at);
    } else {
        table(frame, app, paint, body_at);
    }
    let bad = app.status.as_ref().is_some_and(|status| status.bad);
    let style = if bad { paint.of(Color::Red) } else { Style::new() };
    let talk: Vec<Line<'_>> = talk.into_iter().map(Line::from).collect();
    frame.render_widget(Paragraph::new(talk).style(style), talk_at);
    bottom(frame, app, paint, keys_at);
}

/// Colours, where they are wanted.
#[derive(Debug, Clone, Copy)]
struct TerminalPalette {
    colours: bool,
}

impl TerminalPalette {
    fn of(self, colour: Color) -> Style {
        if self.colours { Style::new().fg(colour) } else { Style::new() }
    }
}

/// `quickstart  12.3s  [Links 10] Nodes 4`, and unusual states.
fn title(app: &TopViewState, paint: TerminalPalette, silent_s: u64) -> Line<'static> {
    let bold = Style::new().add_modifier(Modifier::BOLD);
    let Some(snapshot) = &app.snapshot else {
        let late = if silent_s > 0 { format!(" ({silent_s}s)") } else { String::new() };
        return Line::from(format!("waiting for the run to answer{late}"));
    };
    let status = &snapshot.status;
    let seconds = status.elapsed_ns / 100_000_000;
    let tab = |tab: LiveTableTab, name: &str, count: usize| {
        let text = format!(" {name} {count} ");
        let here = Style::new().add_modifier(Modifier::REVERSED);
        Span::styled(text, if app.tab == tab { here } else { Style::new() })
    };
    let mut spans = vec![
        Span::styled(printable(status.name.clone()), bold),
        Span::from(format!("  {}.{}s  ", seconds / 10, seconds % 10)),
        tab(LiveTableTab::Links, "links", snapshot.links.len()),
        tab(LiveTableTab::Nodes, "nodes", status.nodes.len()),
    ];
    let view = app.view();
    if !view.filter().is_empty() {
        let (shown, all) = (view.shown().len(), view.total());
        spans.push(Span::from(format!("  /{}: {shown} of {all} rows", view.filter())));
    }
    if app.paused {
        spans.push(Span::styled("  paused", paint.of(Color::Yellow).patch(bold)));
    } else if silent_s > 0 {
        let text = format!("  no answer for {silent_s}s");
        spans.push(Span::styled(text, paint.of(Color::Red).patch(bold)));
    } else if snapshot.window_ns < 1_000_000_000 {
        let window = quantity::nanos(snapshot.window_ns);
        spans.push(Span::from(format!("  rates over {window}")));
    }
    Line::from(spans)
}

fn table(frame: &mut Frame<'_>, app: &TopViewState, paint: TerminalPalette, area: Rect) {
    let view = app.view();
    let height = usize::from(area.height.saturating_sub(1)).max(1);
    // The selected row is on the page that it is on however it was come to.
    let first = view.selected() / height * height;
    let rows: Vec<&LiveTableRow> = view.shown().skip(first).take(height).collect();
    let columns = fit(view, &rows, super::app::names(app.tab), usize::from(area.width));
    let header = columns.iter().map(|&(column, width)| {
        let spec = &view.columns()[column];
        let sorted = view.sort().is_some_and(|sort| sort.column == column);
        let text = flush(&heading(view, column), spec.align, width);
        let style = if sorted { Modifier::BOLD | Modifier::UNDERLINED } else { Modifier::BOLD };
        Cell::from(Span::styled(text, Style::new().add_modifier(style)))
    });
    let drawn = rows.iter().map(|row| {
        let cells = columns.iter().map(|&(column, width)| {
            let text = printable(row.cells[column].text());
            Cell::from(flush(&text, view.columns()[column].align, width))
        });
        Drawn::new(cells.collect::<Vec<_>>()).style(match row.mood {
            RowHighlight::Calm => Style::new(),
            RowHighlight::Dropping => paint.of(Color::Yellow),
            RowHighlight::Bad => paint.of(Color::Red),
        })
    });
    let widths = columns.iter().map(|&(_, width)| length(width));
    let table = Table::new(drawn.collect::<Vec<_>>(), widths.collect::<Vec<_>>())
        .header(Drawn::new(header.collect::<Vec<_>>()))
        .column_spacing(1)
        .row_highlight_style(Style::new().add_modifier(Modifier::REVERSED));
    let mut state = TableState::default();
    state.select((!rows.is_empty()).then(|| view.selected() - first));
    frame.render_stateful_widget(table, area, &mut state);
    if rows.is_empty() && app.snapshot.is_some() {
        let nothing = Rect { y: area.y + 1, height: area.height.saturating_sub(1), ..area };
        let text = if view.total() == 0 { "there is none" } else { "no row has this in a name" };
        frame.render_widget(Paragraph::new(text).alignment(Alignment::Center), nothing);
    }
}

fn length(width: usize) -> Constraint {
    Constraint::Length(u16::try_from(width).unwrap_or(u16::MAX))
}

/// Columns with their widths: the names, then from the first that is not left out as many as fit.
fn fit(
    view: &LiveTableView,
    rows: &[&LiveTableRow],
    names: usize,
    width: usize,
) -> Vec<(usize, usize)> {
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
        columns.push((column, taken));
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
fn talk(app: &TopViewState, width: u16) -> Vec<String> {
    let width = usize::from(width.max(1));
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
fn bottom(frame: &mut Frame<'_>, app: &TopViewState, paint: TerminalPalette, area: Rect) {
    let (prompt, line) = match &app.mode {
        KeyInputMode::Table => return frame.render_widget(keys(app, paint), area),
        KeyInputMode::Help(_) => {
            return frame.render_widget(Line::from("Up Down scroll, any other key: back"), area);
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
    let gone = (before + 1).saturating_sub(usize::from(area.width));
    let scroll = u16::try_from(gone).unwrap_or(u16::MAX);
    let text = Paragraph::new(format!("{prompt}{}", line.text())).scroll((0, scroll));
    frame.render_widget(text, area);
    let x = area.x + u16::try_from(before - gone).unwrap_or(0);
    frame.set_cursor_position(Position { x, y: area.y });
}

fn keys(app: &TopViewState, paint: TerminalPalette) -> Line<'static> {
    let change = match app.tab {
        LiveTableTab::Links => "s set  d down  u up  ",
        LiveTableTab::Nodes => "",
    };
    let text = format!(
        "? help  Tab {}  / filter  <> sort  {change}p pause  q quit",
        if app.tab == LiveTableTab::Links { "nodes" } else { "links" },
    );
    Line::styled(text, paint.of(Color::Cyan))
}

const NAME_WIDTH_MAX: usize = 28;
const NAME_WIDTH_MIN: usize = 8;
/// Addresses of a node with many.
const OTHER_WIDTH_MAX: usize = 24;
const TALK_ROWS_MAX: usize = 3;
