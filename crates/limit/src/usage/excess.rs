//! Processor time that the account of a control group does not have, and its processes do: what ran
//! outside of it.

/// What processes have used more than their group has counted.
#[derive(Debug, Default)]
pub struct CpuTimeExcess {
    /// What has been said already.
    said_ns: u64,
}

impl CpuTimeExcess {
    /// What is new of it, in a sentence.
    pub fn beyond(&mut self, processes_ns: u64, group_ns: u64) -> Option<String> {
        let outside_ns = processes_ns.saturating_sub(group_ns);
        if outside_ns.saturating_sub(self.said_ns) <= SLACK_NS {
            return None;
        }
        self.said_ns = outside_ns;
        let millis = outside_ns / 1_000_000;
        Some(format!("{millis} ms of processor time were used outside its control group"))
    }
}

/// Accounts of children that have ended are in ticks of 10 ms, of user and of system time.
const SLACK_NS: u64 = 30_000_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_group_does_not_have_was_used_outside_and_is_said_once() {
        let mut excess = CpuTimeExcess::default();
        let ms = |ms: u64| ms * 1_000_000;
        assert_eq!(excess.beyond(ms(500), ms(510)), None, "the group has the last moment, too");
        assert_eq!(excess.beyond(ms(1030), ms(1000)), None);
        let said = excess.beyond(ms(2080), ms(2000)).unwrap();
        assert_eq!(said, "80 ms of processor time were used outside its control group");
        assert_eq!(excess.beyond(ms(3085), ms(3000)), None);
        assert!(excess.beyond(ms(4200), ms(4000)).unwrap().starts_with("200 ms"));
    }
}
