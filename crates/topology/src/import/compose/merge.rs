//! One value over another. Source: the Compose Specification, "Merge and override".

use windtunnel_scenario::yaml::{YamlKey, YamlValue, YamlValueKind};

use crate::import::mapping::find;

/// Keys whose lists of `NAME=VALUE` and maps are the same.
const PAIRS: [&str; 5] = ["environment", "labels", "sysctls", "annotations", "args"];
/// Keys whose lists of names are maps without values.
const NAMES: [&str; 2] = ["depends_on", "networks"];
/// Keys that are replaced whole.
const REPLACED: [&str; 3] = ["command", "entrypoint", "test"];
/// Keys whose items are known by where they are mounted.
const MOUNTED: [&str; 3] = ["volumes", "secrets", "configs"];

/// What `base` is with `over` on top of it; `key` is what both are the value of.
pub(super) fn merged(base: YamlValue, over: YamlValue, key: &str) -> YamlValue {
    if REPLACED.contains(&key) {
        return over;
    }
    let (base, over) = (as_map(base, key), as_map(over, key));
    match (base.kind, over.kind) {
        (base, YamlValueKind::Null) => YamlValue { place: over.place, kind: base },
        (YamlValueKind::Map(mut entries), YamlValueKind::Map(others)) => {
            for (key, value) in others {
                match entries.iter_mut().find(|(known, _)| known.text == key.text) {
                    Some((known, below)) => {
                        let empty = YamlValue { place: below.place, kind: YamlValueKind::Null };
                        let below_it = std::mem::replace(below, empty);
                        *below = merged(below_it, value, &known.text);
                    }
                    None => entries.push((key, value)),
                }
            }
            YamlValue { place: over.place, kind: YamlValueKind::Map(entries) }
        }
        (YamlValueKind::List(mut items), YamlValueKind::List(others)) => {
            for item in others {
                let target = mount(&item, key);
                items.retain(|known| match &target {
                    Some(target) => mount(known, key).as_ref() != Some(target),
                    None => !same_text(known, &item),
                });
                items.push(item);
            }
            YamlValue { place: over.place, kind: YamlValueKind::List(items) }
        }
        (_, kind) => YamlValue { place: over.place, kind },
    }
}

/// A list that may as well be a map, as one.
fn as_map(value: YamlValue, key: &str) -> YamlValue {
    let YamlValueKind::List(items) = &value.kind else { return value };
    let is_pairs = PAIRS.contains(&key);
    // `networks` and `depends_on` of a service are lists of texts.
    if !is_pairs && !NAMES.contains(&key) {
        return value;
    }
    let mut entries: Vec<(YamlKey, YamlValue)> = Vec::new();
    for item in items {
        let YamlValueKind::Text(text) = &item.kind else { return value };
        let (name, of) = match text.split_once('=').filter(|_| is_pairs) {
            Some((name, of)) => (name, YamlValueKind::Text(of.to_owned())),
            None => (text.as_str(), YamlValueKind::Null),
        };
        entries.retain(|(known, _)| known.text != name);
        let key = YamlKey { place: item.place, text: name.to_owned() };
        entries.push((key, YamlValue { place: item.place, kind: of }));
    }
    YamlValue { place: value.place, kind: YamlValueKind::Map(entries) }
}

/// Where an item of a list is mounted.
fn mount(item: &YamlValue, key: &str) -> Option<String> {
    if !MOUNTED.contains(&key) {
        return None;
    }
    match &item.kind {
        YamlValueKind::Text(text) if key == "volumes" => {
            text.split(':').nth(1).or(Some(text)).map(str::to_owned)
        }
        YamlValueKind::Text(text) => Some(text.clone()),
        YamlValueKind::Map(entries) => ["target", "source"].iter().find_map(|wanted| {
            let value = find(entries, wanted)?;
            match &value.kind {
                YamlValueKind::Text(text) => Some(text.clone()),
                _ => None,
            }
        }),
        _ => None,
    }
}

fn same_text(a: &YamlValue, b: &YamlValue) -> bool {
    matches!((&a.kind, &b.kind), (YamlValueKind::Text(a), YamlValueKind::Text(b)) if a == b)
}

/// A value of a map that is taken out of it.
pub(super) fn take(value: &mut YamlValue, name: &str) -> Option<YamlValue> {
    let YamlValueKind::Map(entries) = &mut value.kind else { return None };
    let at = entries.iter().position(|(key, _)| key.text == name)?;
    Some(entries.remove(at).1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use windtunnel_scenario::yaml::parse;

    fn shown(value: &YamlValue) -> String {
        match &value.kind {
            YamlValueKind::Null => "~".to_owned(),
            YamlValueKind::Text(text) => text.clone(),
            YamlValueKind::List(items) => {
                format!("[{}]", items.iter().map(shown).collect::<Vec<_>>().join(", "))
            }
            YamlValueKind::Map(entries) => {
                let entry =
                    |(key, value): &(YamlKey, YamlValue)| format!("{}: {}", key.text, shown(value));
                format!("{{{}}}", entries.iter().map(entry).collect::<Vec<_>>().join(", "))
            }
        }
    }

    #[test]
    fn values_are_laid_over_others_as_the_specification_says() {
        let read = |text: &str| parse(text).unwrap().unwrap();
        let cases = [
            ("{image: a, command: [x, y]}", "{command: [z]}", "{image: a, command: [z]}"),
            ("{environment: [A=1, B=2]}", "{environment: {B: 3}}", "{environment: {A: 1, B: 3}}"),
            ("{ports: ['80:80']}", "{ports: ['80:80', '81:81']}", "{ports: [80:80, 81:81]}"),
            ("{volumes: ['a:/x', 'b:/y']}", "{volumes: ['c:/x']}", "{volumes: [b:/y, c:/x]}"),
            (
                "{depends_on: [a]}",
                "{depends_on: {b: {condition: c}}}",
                "{depends_on: {a: ~, b: {condition: c}}}",
            ),
            ("{a: {b: 1}}", "{a: ~}", "{a: {b: 1}}"),
        ];
        for (base, over, expected) in cases {
            assert_eq!(shown(&merged(read(base), read(over), "")), expected, "{over}");
        }
    }
}
