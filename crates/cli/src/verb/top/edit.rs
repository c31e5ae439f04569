//! A line that is typed.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

/// Text with a cursor.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct LineEditor {
    text: String,
    /// In bytes, at the beginning of a character or the end.
    cursor: usize,
}

impl LineEditor {
    /// A line that begins with a text, the cursor behind it.
    pub(super) fn with(text: &str) -> Self {
        LineEditor { text: text.to_owned(), cursor: text.len() }
    }

    /// The typed text.
    pub(super) fn text(&self) -> &str {
        &self.text
    }

    /// The text before the cursor.
    pub(super) fn before_cursor(&self) -> &str {
        &self.text[..self.cursor]
    }

    /// Changes the line as the keys of a shell do; other keys do nothing.
    pub(super) fn key(&mut self, key: KeyEvent) {
        let control = key.modifiers.contains(KeyModifiers::CONTROL);
        match key.code {
            KeyCode::Char('a') if control => self.cursor = 0,
            KeyCode::Char('e') if control => self.cursor = self.text.len(),
            KeyCode::Char('u') if control => self.remove_from(0),
            KeyCode::Char('w') if control => self.remove_from(self.word()),
            KeyCode::Char('k') if control => self.text.truncate(self.cursor),
            KeyCode::Char(c) if !control && !c.is_control() => {
                self.text.insert(self.cursor, c);
                self.cursor += c.len_utf8();
            }
            KeyCode::Backspace => self.remove_from(self.left()),
            KeyCode::Delete if self.cursor < self.text.len() => drop(self.text.remove(self.cursor)),
            KeyCode::Left => self.cursor = self.left(),
            KeyCode::Right => {
                let next = self.text[self.cursor..].chars().next();
                self.cursor += next.map_or(0, char::len_utf8);
            }
            KeyCode::Home => self.cursor = 0,
            KeyCode::End => self.cursor = self.text.len(),
            _ => {}
        }
    }

    fn left(&self) -> usize {
        let last = self.before_cursor().chars().next_back();
        self.cursor - last.map_or(0, char::len_utf8)
    }

    /// Where the word before the cursor begins.
    fn word(&self) -> usize {
        let before = self.before_cursor().trim_end();
        before.rfind(' ').map_or(0, |blank| blank + 1)
    }

    fn remove_from(&mut self, start: usize) {
        self.text.replace_range(start..self.cursor, "");
        self.cursor = start;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn typed(keys: &[KeyCode]) -> LineEditor {
        let mut line = LineEditor::default();
        for code in keys {
            line.key(KeyEvent::from(*code));
        }
        line
    }

    #[test]
    fn a_line_is_mended_anywhere_in_it() {
        use KeyCode::{Backspace, Char, Delete, End, Home, Left, Right};
        let line = typed(&[Char('ä'), Char('x'), Char('b'), Left, Backspace, Right, Char('c')]);
        assert_eq!(line, LineEditor::with("äbc"));
        let line = typed(&[Char('a'), Char('b'), Home, Delete, Delete, Delete, End, Char('z')]);
        assert_eq!(line, LineEditor::with("z"));
        assert_eq!(typed(&[Backspace, Left, Right]), LineEditor::default());
    }

    #[test]
    fn words_and_lines_are_removed_as_in_a_shell() {
        let control = |c| KeyEvent::new(KeyCode::Char(c), KeyModifiers::CONTROL);
        let mut line = LineEditor::with("loss=1% rate=2mbit ");
        line.key(control('w'));
        assert_eq!(line.text(), "loss=1% ");
        line.key(control('u'));
        assert_eq!(line, LineEditor::default());
        line.key(control('c'));
        assert_eq!(line, LineEditor::default());
    }
}
