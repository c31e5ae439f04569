//! `--record`: what a run records, instead of what its file says.

use std::str::FromStr;

use clap::builder::FalseyValueParser;
use windtunnel_model::plan::{RecordLayerSet, RecordMode, RecordingPolicy};
use windtunnel_model::record::kind::RecordSource;

use crate::exit::ExitCategory;
use crate::failure::VerbFailure;

/// What is recorded.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct RecordFlags {
    /// Record evidence into `records` of the run folder, instead of what the file says: `true` (all
    /// layers), `standby` (until `windtunnel record start`), `off`, or layers such as
    /// `engine,calls`
    #[arg(
        long,
        value_name = "WHAT",
        env = "WINDTUNNEL_RECORD_WHAT",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "true"
    )]
    record: Option<RecordOptionValue>,
    /// Leave addresses and ports out of the records; flows stay distinct
    #[arg(long, env = "WINDTUNNEL_ANONYMOUS", value_parser = FalseyValueParser::new())]
    anonymous: bool,
    /// Measure before the run what a record costs at each source, and report it
    #[arg(long, env = "WINDTUNNEL_MEASURE_OVERHEAD", value_parser = FalseyValueParser::new())]
    measure_overhead: bool,
}

/// The value of `--record`.
#[derive(Debug, Clone, PartialEq, Eq)]
struct RecordOptionValue {
    mode: RecordMode,
    layers: RecordLayerSet,
}

impl FromStr for RecordOptionValue {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let of = |mode| Ok(RecordOptionValue { mode, layers: RecordLayerSet::default() });
        match text {
            "true" => return of(RecordMode::On),
            "standby" => return of(RecordMode::Standby),
            "off" | "false" => return of(RecordMode::Off),
            _ => {}
        }
        let layers: Result<Vec<RecordSource>, String> = text.split(',').map(layer).collect();
        Ok(RecordOptionValue { mode: RecordMode::On, layers: RecordLayerSet::of(layers?) })
    }
}

/// A layer by its name.
pub(crate) fn layer(name: &str) -> Result<RecordSource, String> {
    let names = RecordSource::ALL.map(RecordSource::name).join(", ");
    RecordSource::from_name(name)
        .ok_or_else(|| format!("`{name}` is not a layer: they are {names}"))
}

impl RecordFlags {
    /// Puts what is asked for in the place of what the file says.
    pub(super) fn apply(&self, recording: &mut RecordingPolicy) -> Result<(), VerbFailure> {
        if let Some(RecordOptionValue { mode, layers }) = &self.record {
            recording.mode = *mode;
            if *mode == RecordMode::On {
                recording.choice.layers = layers.clone();
            }
        }
        recording.anonymous |= self.anonymous;
        let needs =
            [(self.anonymous, "--anonymous"), (self.measure_overhead, "--measure-overhead")];
        if let Some((_, flag)) =
            needs.iter().find(|(asked, _)| *asked && recording.mode == RecordMode::Off)
        {
            let text = format!("{flag} is about records, and nothing is recorded");
            let hint = "add --record, or `record: true` to the file";
            return Err(VerbFailure::new(ExitCategory::Usage, text).hint(hint));
        }
        Ok(())
    }

    pub(super) fn measures_overhead(&self) -> bool {
        self.measure_overhead
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_or_layers_say_what_is_recorded() {
        let what = |text: &str| text.parse::<RecordOptionValue>().unwrap();
        assert_eq!(what("true").mode, RecordMode::On);
        assert_eq!(what("standby").mode, RecordMode::Standby);
        assert_eq!(what("off").mode, RecordMode::Off);
        let layers = what("tcp,engine").layers;
        assert_eq!(layers.iter().collect::<Vec<_>>(), [RecordSource::Engine, RecordSource::Tcp]);
        let error = "tpc".parse::<RecordOptionValue>().unwrap_err();
        assert_eq!(error, "`tpc` is not a layer: they are engine, calls, tcp, kernel");
    }

    #[test]
    fn what_is_about_records_needs_some() {
        let arguments = RecordFlags { record: None, anonymous: true, measure_overhead: false };
        let error = arguments.apply(&mut RecordingPolicy::default()).unwrap_err();
        assert!(error.causes().contains("--anonymous"), "{}", error.causes());
        let mut recording = RecordingPolicy::of(RecordMode::Standby);
        arguments.apply(&mut recording).unwrap();
        assert!(recording.anonymous);
    }
}
