//! Traces against a second implementation.

use std::collections::VecDeque;

use windtunnel_model::profile::QueueLimit;
use windtunnel_model::{LinkProfile, Packets, TraceMode};

use super::{following, opportunities, with};
use crate::support::{MS, Net, pair};

/// Numbers that look random.
fn noise(seed: &mut u64) -> u64 {
    *seed ^= *seed << 13;
    *seed ^= *seed >> 7;
    *seed ^= *seed << 17;
    *seed
}

/// Departures as mm-link would have them: opportunity by opportunity, byte by byte.
fn reference(lines: &[u64], arrivals: &[(u64, u64)], limit: usize) -> Vec<(u64, u32)> {
    let (length, each, overhead) = (*lines.last().unwrap() * MS, 1504, 4);
    let mut next = arrivals.iter().zip(0_u32..).peekable();
    let (mut queue, mut begun) = (VecDeque::new(), None);
    let mut out = Vec::new();
    for pass in 0.. {
        for line in lines {
            let at = pass * length + line * MS;
            while let Some((arrival, tag)) = next.next_if(|((time, _), _)| *time < at) {
                if queue.len() < limit {
                    queue.push_back((arrival.1 + overhead, tag));
                }
            }
            let mut left = each;
            while left > 0 {
                let Some((needed, tag)) = begun.take().or_else(|| queue.pop_front()) else { break };
                if needed > left {
                    begun = Some((needed - left, tag));
                    break;
                }
                left -= needed;
                out.push((at, tag));
            }
        }
        if next.peek().is_none() && queue.is_empty() && begun.is_none() {
            return out;
        }
    }
    out
}

#[test]
fn a_trace_like_a_mobile_links_gives_what_the_reference_gives() {
    for seed in 1..=20_u64 {
        let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        // Bursts, pauses and outages.
        let mut lines = vec![0, 0, 0];
        while lines.len() < 400 {
            let last = *lines.last().unwrap();
            let step = match noise(&mut state) % 20 {
                0 => 30 + noise(&mut state) % 200,
                1..=6 => 0,
                _ => 1 + noise(&mut state) % 4,
            };
            lines.push(last + step);
        }
        let mut arrivals = vec![];
        let mut at = 0;
        for _ in 0..900 {
            at += noise(&mut state) % (4 * MS);
            arrivals.push((at, 60 + noise(&mut state) % 1441));
        }
        let profile = LinkProfile {
            overhead: None,
            queue: Some(QueueLimit::Packets(Packets(15))),
            ..following(TraceMode::Opportunities)
        };
        let mut net = Net::new(with(pair(seed, profile), opportunities(&lines)));
        for ((at, len), tag) in arrivals.iter().zip(0..) {
            net.send_udp(*at, usize::try_from(*len).unwrap(), tag);
        }
        net.finish();
        assert_eq!(net.arrivals(), reference(&lines, &arrivals, 15), "seed {seed}");
        net.check_conservation();
    }
}
