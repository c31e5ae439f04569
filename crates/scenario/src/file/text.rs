//! Quantities and other texts of the file, with the patterns that editors check.

use schemars::JsonSchema;

/// A text of a certain form.
macro_rules! text {
    ($(#[$doc:meta])* $name:ident, $pattern:literal, $example:literal) => {
        $(#[$doc])*
        #[derive(JsonSchema)]
        #[schemars(extend("pattern" = $pattern, "examples" = [$example]))]
        pub(crate) struct $name(String);
    };
}

text!(
    /// A time with a unit: ns, us, ms, s, min or h.
    Time, r"^[0-9]+(\.[0-9]+)? ?(ns|us|µs|ms|s|min|h)$", "10ms"
);
text!(
    /// A time with a unit, or `none`.
    TimeOrNone, r"^(none|[0-9]+(\.[0-9]+)? ?(ns|us|µs|ms|s|min|h))$", "2ms"
);
text!(
    /// A time with a unit, or `never`.
    TimeOrNever, r"^(never|[0-9]+(\.[0-9]+)? ?(ns|us|µs|ms|s|min|h))$", "200ms"
);
text!(
    /// A probability in percent (also ppm, ppb), or `none`.
    Probability, r"^(none|[0-9]+(\.[0-9]+)? ?(%|ppm|ppb))$", "0.1%"
);
text!(
    /// `none`, `jitter`, or a probability.
    ReorderText, r"^(none|jitter|[0-9]+(\.[0-9]+)? ?(%|ppm|ppb))$", "1%"
);
text!(
    /// Bits a second (bit, kbit, mbit, gbit, tbit), bytes a second (B/s, KB/s, MB/s, GB/s), or `none`.
    Rate, r"^(none|[0-9]+(\.[0-9]+)? ?([KkMmGgt]?bit(/s)?|[KMG]?B/s))$", "10mbit"
);
text!(
    /// Bits a second (bit, kbit, mbit, gbit, tbit) or bytes a second (B/s, KB/s, MB/s, GB/s).
    PlainRate, r"^[0-9]+(\.[0-9]+)? ?([KkMmGgt]?bit(/s)?|[KMG]?B/s)$", "45mbit"
);
text!(
    /// A size in bytes: B, KB, MB, GB, TB, KiB, MiB or GiB.
    Size, r"^[0-9]+(\.[0-9]+)? ?([kKMGT]?B|[KMG]iB)$", "1400B"
);
text!(
    /// `ethernet`, `none`, `default`, or a size.
    Overhead, r"^(ethernet|none|default|[0-9]+(\.[0-9]+)? ?([kKMGT]?B|[KMG]iB))$", "ethernet"
);
text!(
    /// Packets (`100p`), bytes (`256KB`), a time (`50ms`), or `default`.
    Queue,
    r"^(default|[0-9]+(\.[0-9]+)? ?(p|[kKMGT]?B|[KMG]iB|ns|us|µs|ms|s|min|h))$",
    "100p"
);
text!(
    /// `tcp:PORT`, `listen` (some TCP or UDP port), `unix:PATH`, `log:REGEX` or `exit`.
    Ready, r"^(exit|listen|tcp:[0-9]+|unix:.+|log:.+)$", "tcp:80"
);
text!(
    /// The name of a signal, or `any`.
    SignalOrAny, r"^(any|SIG[A-Z0-9]+)$", "SIGTERM"
);
text!(
    /// A time with a unit, or `end` for the end of the run.
    TimeOrEnd, r"^(end|[0-9]+(\.[0-9]+)? ?(ns|us|µs|ms|s|min|h))$", "20s"
);
text!(
    /// Packets (`100p`), bytes (`256KB`) or a time (`50ms`).
    Occupancy, r"^[0-9]+(\.[0-9]+)? ?(p|[kKMGT]?B|[KMG]iB|ns|us|µs|ms|s|min|h)$", "100p"
);
