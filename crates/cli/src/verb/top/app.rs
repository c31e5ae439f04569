//! The state of `top` and the effects of keys: without a terminal, a clock or a connection.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use windtunnel_control::{LaneChoice, Snapshot};
use windtunnel_model::Plan;

use super::columns::{self, LiveTableRowKey};
use super::edit::LineEditor;
use super::order::{self, RunChangeRequest};
use super::view::LiveTableView;

/// Everything that is drawn.
#[derive(Debug)]
pub(super) struct TopViewState {
    plan: Plan,
    /// The newest look at the run.
    pub(super) snapshot: Option<Snapshot>,
    links: LiveTableView,
    nodes: LiveTableView,
    pub(super) tab: LiveTableTab,
    pub(super) mode: KeyInputMode,
    pub(super) status: Option<StatusLine>,
    /// The tables stand still.
    pub(super) paused: bool,
    /// Rows that the screen holds, as far as a page goes.
    pub(super) page: usize,
}

/// Which table is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LiveTableTab {
    Links,
    Nodes,
}

/// The mode that keys act in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum KeyInputMode {
    /// They move and sort.
    Table,
    /// They write the filter; Esc restores the former one.
    Filter { line: LineEditor, before: String },
    /// They write properties of a link.
    Set { link: String, direction: String, both: bool, line: LineEditor },
    /// They write a limit of a node.
    Limit { node: String, line: LineEditor },
    /// They scroll the help, which begins at this line.
    Help(u16),
}

/// The last line of talk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct StatusLine {
    pub(super) text: String,
    /// It could not be done.
    pub(super) bad: bool,
}

/// The effect of a key beyond the drawing.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum KeyPressEffect {
    Nothing,
    Quit,
    Order(Box<RunChangeRequest>),
}

impl TopViewState {
    /// Nothing has been seen of the run yet.
    pub(super) fn new(plan: Plan) -> Self {
        TopViewState {
            plan,
            snapshot: None,
            links: LiveTableView::new(columns::LINKS),
            nodes: LiveTableView::new(columns::NODES),
            tab: LiveTableTab::Links,
            mode: KeyInputMode::Table,
            status: None,
            paused: false,
            page: 1,
        }
    }

    /// Takes a new look at the run.
    pub(super) fn update(&mut self, snapshot: Snapshot) {
        self.links.update(columns::links(&snapshot));
        self.nodes.update(columns::nodes(&snapshot));
        self.snapshot = Some(snapshot);
    }

    /// The table that is shown.
    pub(super) fn view(&self) -> &LiveTableView {
        match self.tab {
            LiveTableTab::Links => &self.links,
            LiveTableTab::Nodes => &self.nodes,
        }
    }

    /// Says something in the last line but one.
    pub(super) fn say(&mut self, text: impl Into<String>, bad: bool) {
        self.status = Some(StatusLine { text: text.into(), bad });
    }

    /// Executes a key.
    pub(super) fn key(&mut self, key: KeyEvent) -> KeyPressEffect {
        if key.code == KeyCode::Char('c') && key.modifiers.contains(KeyModifiers::CONTROL) {
            return KeyPressEffect::Quit;
        }
        match std::mem::replace(&mut self.mode, KeyInputMode::Table) {
            KeyInputMode::Table => {
                self.status = None;
                self.table_key(key)
            }
            KeyInputMode::Filter { line, before } => self.filter_key(key, line, before),
            KeyInputMode::Set { link, direction, both, line } => {
                self.set_key(key, link, direction, both, line)
            }
            KeyInputMode::Limit { node, line } => self.limit_key(key, node, line),
            KeyInputMode::Help(top) => {
                self.help_key(key, top);
                KeyPressEffect::Nothing
            }
        }
    }

    fn table_key(&mut self, key: KeyEvent) -> KeyPressEffect {
        let Some(change) = change_of(key.code) else {
            return self.look_key(key.code);
        };
        let (link, direction) = match (self.view().selected_key().cloned(), &change) {
            (Some(LiveTableRowKey::Lane { link, direction }), _) => (link, direction),
            (Some(LiveTableRowKey::Program { node, .. }), LinkEditCommand::Set) => {
                self.mode = KeyInputMode::Limit { node, line: LineEditor::default() };
                return KeyPressEffect::Nothing;
            }
            (Some(LiveTableRowKey::Program { .. }), LinkEditCommand::State { .. }) => {
                self.say("only links can be taken down: Tab shows them", true);
                return KeyPressEffect::Nothing;
            }
            (None, _) => {
                self.say("nothing is selected", true);
                return KeyPressEffect::Nothing;
            }
        };
        match change {
            LinkEditCommand::Set => {
                let line = LineEditor::default();
                self.mode = KeyInputMode::Set { link, direction, both: false, line };
                KeyPressEffect::Nothing
            }
            LinkEditCommand::State { up, both } => {
                let order = order::state(lanes(link, direction, both), up);
                KeyPressEffect::Order(Box::new(order))
            }
        }
    }

    fn look_key(&mut self, code: KeyCode) -> KeyPressEffect {
        let page = isize::try_from(self.page.max(1)).unwrap_or(isize::MAX);
        let names = names(self.tab);
        match code {
            KeyCode::Char('q') => return KeyPressEffect::Quit,
            KeyCode::Char('?' | 'h') | KeyCode::F(1) => self.mode = KeyInputMode::Help(0),
            KeyCode::Char('p') => self.paused = !self.paused,
            KeyCode::Char('/') => {
                let before = self.view().filter().to_owned();
                self.mode = KeyInputMode::Filter { line: LineEditor::with(&before), before };
            }
            KeyCode::Tab | KeyCode::BackTab => {
                self.tab = if self.tab == LiveTableTab::Links {
                    LiveTableTab::Nodes
                } else {
                    LiveTableTab::Links
                };
            }
            KeyCode::Esc => self.view_mut().set_filter(""),
            KeyCode::Up | KeyCode::Char('k') => self.view_mut().move_by(-1),
            KeyCode::Down | KeyCode::Char('j') => self.view_mut().move_by(1),
            KeyCode::PageUp => self.view_mut().move_by(-page),
            KeyCode::PageDown => self.view_mut().move_by(page),
            KeyCode::Home | KeyCode::Char('g') => self.view_mut().select(0),
            KeyCode::End | KeyCode::Char('G') => self.view_mut().select(usize::MAX),
            KeyCode::Left => self.view_mut().scroll(false, names),
            KeyCode::Right => self.view_mut().scroll(true, names),
            KeyCode::Char('<' | ',') => self.view_mut().sort_beside(false),
            KeyCode::Char('>' | '.') => self.view_mut().sort_beside(true),
            KeyCode::Char('r') => self.view_mut().reverse(),
            KeyCode::Char(digit @ '0'..='9') => {
                // 0 is the tenth, as on the keyboard.
                let digit = digit.to_digit(10).and_then(|digit| usize::try_from(digit).ok());
                self.view_mut().sort_by(digit.map_or(0, |digit| (digit + 9) % 10));
            }
            _ => self.say("this key does nothing: ? shows those that do", false),
        }
        KeyPressEffect::Nothing
    }

    fn filter_key(
        &mut self,
        key: KeyEvent,
        mut line: LineEditor,
        before: String,
    ) -> KeyPressEffect {
        match key.code {
            KeyCode::Enter => {}
            KeyCode::Esc => self.view_mut().set_filter(&before),
            _ => {
                line.key(key);
                self.view_mut().set_filter(line.text());
                self.mode = KeyInputMode::Filter { line, before };
            }
        }
        KeyPressEffect::Nothing
    }

    fn set_key(
        &mut self,
        key: KeyEvent,
        link: String,
        direction: String,
        mut both: bool,
        mut line: LineEditor,
    ) -> KeyPressEffect {
        match key.code {
            KeyCode::Esc => return KeyPressEffect::Nothing,
            KeyCode::Enter => {
                let lanes = lanes(link.clone(), direction.clone(), both);
                match order::set(lanes, line.text(), &self.plan) {
                    Ok(order) => return KeyPressEffect::Order(Box::new(order)),
                    // The typed line stays, to be corrected.
                    Err(why) => self.say(why, true),
                }
            }
            KeyCode::Tab => both = !both,
            _ => {
                self.status = None;
                line.key(key);
            }
        }
        self.mode = KeyInputMode::Set { link, direction, both, line };
        KeyPressEffect::Nothing
    }

    fn limit_key(&mut self, key: KeyEvent, node: String, mut line: LineEditor) -> KeyPressEffect {
        match key.code {
            KeyCode::Esc => return KeyPressEffect::Nothing,
            KeyCode::Enter => match order::limit(&node, line.text()) {
                Ok(order) => return KeyPressEffect::Order(Box::new(order)),
                // The typed line stays, to be corrected.
                Err(why) => self.say(why, true),
            },
            _ => {
                self.status = None;
                line.key(key);
            }
        }
        self.mode = KeyInputMode::Limit { node, line };
        KeyPressEffect::Nothing
    }

    fn help_key(&mut self, key: KeyEvent, top: u16) {
        let page = u16::try_from(self.page).unwrap_or(u16::MAX);
        self.mode = match key.code {
            KeyCode::Up => KeyInputMode::Help(top.saturating_sub(1)),
            KeyCode::Down => KeyInputMode::Help(top.saturating_add(1)),
            KeyCode::PageUp => KeyInputMode::Help(top.saturating_sub(page)),
            KeyCode::PageDown | KeyCode::Char(' ') => KeyInputMode::Help(top.saturating_add(page)),
            _ => KeyInputMode::Table,
        };
    }

    fn view_mut(&mut self) -> &mut LiveTableView {
        match self.tab {
            LiveTableTab::Links => &mut self.links,
            LiveTableTab::Nodes => &mut self.nodes,
        }
    }
}

/// How many columns name the row: they are always shown.
pub(super) fn names(tab: LiveTableTab) -> usize {
    match tab {
        LiveTableTab::Links => 2,
        LiveTableTab::Nodes => 1,
    }
}

/// The link directions to change.
enum LinkEditCommand {
    Set,
    State { up: bool, both: bool },
}

fn change_of(code: KeyCode) -> Option<LinkEditCommand> {
    match code {
        KeyCode::Enter | KeyCode::Char('s') => Some(LinkEditCommand::Set),
        KeyCode::Char('d') => Some(LinkEditCommand::State { up: false, both: false }),
        KeyCode::Char('D') => Some(LinkEditCommand::State { up: false, both: true }),
        KeyCode::Char('u') => Some(LinkEditCommand::State { up: true, both: false }),
        KeyCode::Char('U') => Some(LinkEditCommand::State { up: true, both: true }),
        _ => None,
    }
}

fn lanes(link: String, direction: String, both: bool) -> LaneChoice {
    LaneChoice { link, direction: (!both).then_some(direction) }
}
