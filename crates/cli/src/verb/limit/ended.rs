//! What is said at the end of a command, and of one that runs.

use windtunnel_model::{HeldLimit, Resource, Span};
use windtunnel_outside::limit::{
    AttachOutcome, AttachedProcessStatus, CommandCpuUsage, CommandLimitReport, CommandLimitStatus,
    CommandResourceUsage, DirectionThroughput, LimitEnforcementCounts, RefusedDestinations,
};

use crate::render::quantity;

/// What was asked and delivered, and what was not held.
pub(super) fn lines(ended: &CommandLimitReport, is_limited: bool) -> Vec<String> {
    let status = &ended.status;
    let has_rate = [&status.send, &status.receive].iter().any(|it| it.limit_bps.is_some());
    // A group that has rates later has moved something by then.
    let is_news = is_limited && (has_rate || status.used == CommandResourceUsage::default());
    let mut lines = if is_news { moved(status) } else { Vec::new() };
    lines.extend(used(&ended.status.used));
    lines.extend(ended.refused.as_ref().filter(|refused| refused.count > 0).map(refusals));
    lines.extend(not_held(&ended.status.used));
    lines.extend(ended.running.as_ref().filter(|it| it.detached).map(detached));
    lines.extend(ended.not_denied.iter().map(|what| format!("NOT DENIED: {what}")));
    lines
}

/// What is said once a program is limited that ran already.
pub(super) fn begun(pid: i32, attached: Option<AttachOutcome>) -> String {
    let Some(attached) = attached else {
        return format!("limit: process {pid} is limited, until it has ended or Ctrl-C");
    };
    let AttachOutcome { processes, stopped_ns } = attached;
    format!(
        "limit: process {pid} is limited, until it has ended or Ctrl-C; filters installed: {processes}, \
         stopped for {}",
        quantity::nanos(stopped_ns)
    )
}

/// What becomes of the programs.
fn detached(running: &AttachedProcessStatus) -> String {
    let AttachedProcessStatus { pid, keeper, .. } = running;
    let keeper = keeper.map(|keeper| {
        format!("; their filter stays, and process {keeper} lets all calls pass until they end")
    });
    format!(
        "limit: process {pid} and those below run on without a limit{}",
        keeper.unwrap_or_default()
    )
}

/// The share that is used now, of that which is asked.
pub(super) fn processors(cpu: &CommandCpuUsage) -> String {
    let used = cpu.latest_cpus.unwrap_or(cpu.delivered_cpus);
    format!("{} of {}", share(used), share(cpu.asked_cpus))
}

/// What is used, of what is asked.
pub(super) fn of(part: &HeldLimit, value: fn(u64) -> String) -> String {
    let used = part.used.map_or_else(|| "-".to_owned(), value);
    format!("{used} of {}", value(part.asked))
}

/// What was asked and delivered.
fn moved(status: &CommandLimitStatus) -> Vec<String> {
    let each = [("sent", &status.send), ("received", &status.receive)];
    let parts: Vec<String> = each.map(|(verb, moved)| part(verb, moved)).into();
    let mut lines = vec![format!("limit: {}", parts.join("; "))];
    if status.crowded > 0 {
        lines.push(format!(
            "not limited alone: {} times there was no room for another budget, and one was shared",
            status.crowded
        ));
    }
    if status.held.by_notification > 0 {
        lines.push(held(&status.held));
    }
    let not_limited = status.not_limited.iter();
    lines.extend(
        not_limited.map(|it| format!("NOT LIMITED: {} {}; see docs/limit.md", it.count, it.what)),
    );
    lines
}

/// How programs were held.
fn held(held: &LimitEnforcementCounts) -> String {
    format!(
        "held: {} programs by the library; {} processes, static or without it, by notification, in {} \
         calls",
        held.by_library, held.by_notification, held.notified_calls
    )
}

fn part(verb: &str, moved: &DirectionThroughput) -> String {
    let bytes = quantity::bytes(moved.bytes);
    let delivered = moved.delivered_bps.map(quantity::rate);
    let delivered = delivered.map(|rate| format!(" at {rate}")).unwrap_or_default();
    let Some(limit) = moved.limit_bps else { return format!("{verb} {bytes}{delivered}") };
    let waited = quantity::span(Span::from_nanos(moved.waited_ns));
    format!("{verb} {bytes}{delivered} of {}, waited {waited}", quantity::rate(limit))
}

/// What it has had of the machine, and by which mechanism it was held.
fn used(used: &CommandResourceUsage) -> Option<String> {
    let mut parts = Vec::new();
    if let Some(cpu) = &used.cpu {
        let throttled = quantity::nanos(cpu.throttled_ns);
        let [used, asked] = [cpu.delivered_cpus, cpu.asked_cpus].map(share);
        let around = cpu.around_cpus.map(share);
        let around = around.map(|most| format!(", {most} at most by the control groups around it"));
        let around = around.unwrap_or_default();
        let by = &cpu.mechanism;
        parts.push(format!("cpu {used} of {asked}{around}, throttled {throttled} ({by})"));
    }
    parts.extend(used.memory.as_ref().map(|part| amount(Resource::Memory, part, quantity::bytes)));
    parts.extend(
        used.pids.as_ref().map(|part| amount(Resource::Pids, part, |count| count.to_string())),
    );
    if let Some(part) = &used.open_files {
        parts.push(format!("open-files {} each ({})", part.asked, part.mechanism));
    }
    (!parts.is_empty()).then(|| format!("limit: {}", parts.join("; ")))
}

fn amount(of: Resource, part: &HeldLimit, value: fn(u64) -> String) -> String {
    let peak = part.peak.map(|peak| format!("{} at most of ", value(peak))).unwrap_or_default();
    let mut text = format!("{of} {peak}{}", value(part.asked));
    if part.ended > 0 {
        let count = usize::try_from(part.ended).unwrap_or(usize::MAX);
        let number = quantity::count(count, "time");
        text.push_str(&format!(", a process was ended {number}"));
        if !part.names.is_empty() {
            text.push_str(&format!(": {}", part.names.join(", ")));
        }
    } else if part.met > 0 && of == Resource::Pids {
        text.push_str(&format!(", {} more refused", part.met));
    }
    format!("{text} ({})", part.mechanism)
}

/// What was refused of connections and messages.
fn refusals(refused: &RefusedDestinations) -> String {
    let first: Vec<String> = refused.first.iter().map(ToString::to_string).collect();
    let calls = quantity::count(usize::try_from(refused.count).unwrap_or(usize::MAX), "call");
    let hidden = match refused.hidden {
        0 => String::new(),
        hidden => format!("; of {hidden} the destination could not be looked at"),
    };
    format!("limit: refused {calls} to connect or send elsewhere: {}{hidden}", first.join(", "))
}

/// What a limit was that could not be held.
fn not_held(used: &CommandResourceUsage) -> Vec<String> {
    let mut lines = Vec::new();
    if let Some(cpu) = &used.cpu {
        if cpu.exceeded_windows > 0 {
            let most = cpu.exceeded_max_cpus.map(share).unwrap_or_default();
            lines.push(format!(
                "NOT LIMITED: cpu: more than was asked in {} of {} s, at most {most}",
                cpu.exceeded_windows, cpu.windows
            ));
        }
        lines.extend(cpu.failure.as_ref().map(|why| format!("NOT LIMITED: cpu: {why}")));
    }
    let parts = [("memory", &used.memory), ("pids", &used.pids), ("open-files", &used.open_files)];
    for (name, part) in parts {
        let failure = part.as_ref().and_then(|part| part.failure.as_ref());
        lines.extend(failure.map(|why| format!("NOT LIMITED: {name}: {why}")));
    }
    lines
}

/// `24.9%` of a processor.
fn share(cpus: f64) -> String {
    let text = format!("{:.1}", cpus * 100.0);
    format!("{}%", text.trim_end_matches('0').trim_end_matches('.'))
}
