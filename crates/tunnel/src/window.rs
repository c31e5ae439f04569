//! Which datagrams of a series have come: each counts once, in any order within the window.

/// Numbers below the greatest that are remembered one by one.
pub(crate) const WINDOW: u64 = 8192;
const WORDS: usize = 128;

/// The series from one sender to one receiver (RFC 4303, 3.4.3, with a larger window).
#[derive(Debug)]
pub(crate) struct AntiReplayWindow {
    /// The first that came, and the greatest.
    span: Option<(u64, u64)>,
    /// Those from the first on that have come.
    arrived: u64,
    /// One bit for each of the last [`WINDOW`] numbers, at its number modulo that.
    seen: [u64; WORDS],
}

/// The state of a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AntiReplayVerdict {
    New,
    /// It has come before.
    Seen,
    /// It is so far behind that whether it has come is not known any more.
    TooOld,
}

impl AntiReplayWindow {
    pub(crate) fn new() -> Self {
        AntiReplayWindow { span: None, arrived: 0, seen: [0; WORDS] }
    }

    /// Looks, and changes nothing: so a datagram not yet authenticated may be checked.
    pub(crate) fn look(&self, number: u64) -> AntiReplayVerdict {
        let Some((_, greatest)) = self.span else { return AntiReplayVerdict::New };
        if number > greatest {
            AntiReplayVerdict::New
        } else if greatest - number >= WINDOW {
            AntiReplayVerdict::TooOld
        } else if self.bit(number) {
            AntiReplayVerdict::Seen
        } else {
            AntiReplayVerdict::New
        }
    }

    /// Takes note of a number that is [`AntiReplayVerdict::New`].
    pub(crate) fn mark(&mut self, number: u64) {
        let (first, greatest) = self.span.unwrap_or((number, number));
        if number.saturating_sub(greatest) >= WINDOW {
            self.seen = [0; WORDS];
        } else {
            (greatest..number).for_each(|before| self.clear(before + 1));
        }
        let (word, bit) = place(number);
        self.seen[word] |= bit;
        self.arrived += u64::from(number >= first);
        self.span = Some((first, greatest.max(number)));
    }

    /// Numbers after the first that came which others have overtaken, and which have not come.
    pub(crate) fn missing(&self) -> u64 {
        // The first has come.
        self.span.map_or(0, |(first, greatest)| greatest - first - (self.arrived - 1))
    }

    fn bit(&self, number: u64) -> bool {
        let (word, bit) = place(number);
        self.seen[word] & bit != 0
    }

    fn clear(&mut self, number: u64) {
        let (word, bit) = place(number);
        self.seen[word] &= !bit;
    }
}

fn place(number: u64) -> (usize, u64) {
    let at = number % WINDOW;
    let word = usize::try_from(at / 64).expect("less than the number of words");
    (word, 1 << (at % 64))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn each_number_is_new_once_in_whatever_order() {
        let mut window = AntiReplayWindow::new();
        for number in [100, 103, 101] {
            assert_eq!(window.look(number), AntiReplayVerdict::New);
            window.mark(number);
            assert_eq!(window.look(number), AntiReplayVerdict::Seen);
        }
        assert_eq!((window.missing(), window.look(102)), (1, AntiReplayVerdict::New));
        // A number before the first that came is not counted as missing, and is accepted.
        assert_eq!(window.look(99), AntiReplayVerdict::New);
        window.mark(99);
        assert_eq!((window.missing(), window.look(99)), (1, AntiReplayVerdict::Seen));
    }

    #[test]
    fn a_number_is_forgotten_when_the_window_has_passed_it() {
        let mut window = AntiReplayWindow::new();
        window.mark(5);
        window.mark(5 + WINDOW - 1);
        assert_eq!(window.look(5), AntiReplayVerdict::Seen);
        window.mark(5 + WINDOW);
        assert_eq!(window.look(5), AntiReplayVerdict::TooOld);
        assert_eq!(window.look(6), AntiReplayVerdict::New);
        assert_eq!(window.missing(), WINDOW - 2);
        window.mark(u64::MAX / 2);
        assert_eq!(window.look(6 + WINDOW), AntiReplayVerdict::TooOld);
        assert_eq!(window.look(u64::MAX / 2 - 1), AntiReplayVerdict::New);
    }

    #[test]
    fn the_last_number_is_a_number_like_others() {
        let mut window = AntiReplayWindow::new();
        window.mark(u64::MAX);
        assert_eq!((window.look(u64::MAX), window.missing()), (AntiReplayVerdict::Seen, 0));
        window.mark(u64::MAX - 1);
        assert_eq!(window.look(u64::MAX - 1), AntiReplayVerdict::Seen);
        let mut all = AntiReplayWindow::new();
        [0, u64::MAX].into_iter().for_each(|number| all.mark(number));
        assert_eq!(all.missing(), u64::MAX - 1);
    }

    proptest! {
        #[test]
        fn the_window_agrees_with_a_set(steps in proptest::collection::vec(0..12_000u64, 1..400)) {
            let (mut window, mut all) = (AntiReplayWindow::new(), BTreeSet::new());
            let mut greatest = 1 << 20;
            let mut first = None;
            for step in steps {
                let number = greatest + 3 - step.min(greatest);
                let expected = match () {
                    () if first.is_some() && number + WINDOW <= greatest => AntiReplayVerdict::TooOld,
                    () if all.contains(&number) => AntiReplayVerdict::Seen,
                    () => AntiReplayVerdict::New,
                };
                prop_assert_eq!(window.look(number), expected);
                if expected == AntiReplayVerdict::New {
                    window.mark(number);
                    all.insert(number);
                    let first = *first.get_or_insert(number);
                    greatest = if all.len() == 1 { number } else { greatest.max(number) };
                    let came = all.range(first..).count() as u64;
                    prop_assert_eq!(window.missing(), greatest - first + 1 - came);
                }
            }
        }
    }
}
