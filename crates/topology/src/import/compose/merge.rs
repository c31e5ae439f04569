//! One value over another. Source: the Compose Specification, "Merge and override".

use windtunnel_scenario::yaml::{Key, Kind, Value};

use super::find;

/// Keys whose lists of `NAME=VALUE` and maps are the same.
const PAIRS: [&str; 5] = ["environment", "labels", "sysctls", "annotations", "args"];
/// Keys whose lists of names are maps without values.
const NAMES: [&str; 2] = ["depends_on", "networks"];
/// Keys that are replaced whole.
const REPLACED: [&str; 3] = ["command", "entrypoint", "test"];
/// Keys whose items are known by where they are mounted.
const MOUNTED: [&str; 3] = ["volumes", "secrets", "configs"];

/// What `base` is with `over` on top of it; `key` is what both are the value of.
pub(super) fn merged(base: Value, over: Value, key: &str) -> Value {
    if REPLACED.contains(&key) {
        return over;
    }
    let (base, over) = (as_map(base, key), as_map(over, key));
    match (base.kind, over.kind) {
        (base, Kind::Null) => Value { place: over.place, kind: base },
        (Kind::Map(mut entries), Kind::Map(others)) => {
            for (key, value) in others {
                match entries.iter_mut().find(|(known, _)| known.text == key.text) {
                    Some((known, below)) => {
                        let empty = Value { place: below.place, kind: Kind::Null };
                        let below_it = std::mem::replace(below, empty);
                        *below = merged(below_it, value, &known.text);
                    }
                    None => entries.push((key, value)),
                }
            }
            Value { place: over.place, kind: Kind::Map(entries) }
        }
        (Kind::List(mut items), Kind::List(others)) => {
            for item in others {
                let target = mount(&item, key);
                items.retain(|known| match &target {
                    Some(target) => mount(known, key).as_ref() != Some(target),
                    None => !same_text(known, &item),
                });
                items.push(item);
            }
            Value { place: over.place, kind: Kind::List(items) }
        }
        (_, kind) => Value { place: over.place, kind },
    }
}

/// A list that may as well be a map, as one.
fn as_map(value: Value, key: &str) -> Value {
    let Kind::List(items) = &value.kind else { return value };
    let is_pairs = PAIRS.contains(&key);
    // `networks` and `depends_on` of a service are lists of texts.
    if !is_pairs && !NAMES.contains(&key) {
        return value;
    }
    let mut entries: Vec<(Key, Value)> = Vec::new();
    for item in items {
        let Kind::Text(text) = &item.kind else { return value };
        let (name, of) = match text.split_once('=').filter(|_| is_pairs) {
            Some((name, of)) => (name, Kind::Text(of.to_owned())),
            None => (text.as_str(), Kind::Null),
        };
        entries.retain(|(known, _)| known.text != name);
        let key = Key { place: item.place, text: name.to_owned() };
        entries.push((key, Value { place: item.place, kind: of }));
    }
    Value { place: value.place, kind: Kind::Map(entries) }
}

/// Where an item of a list is mounted.
fn mount(item: &Value, key: &str) -> Option<String> {
    if !MOUNTED.contains(&key) {
        return None;
    }
    match &item.kind {
        Kind::Text(text) if key == "volumes" => {
            text.split(':').nth(1).or(Some(text)).map(str::to_owned)
        }
        Kind::Text(text) => Some(text.clone()),
        Kind::Map(entries) => ["target", "source"].iter().find_map(|wanted| {
            let value = find(entries, wanted)?;
            match &value.kind {
                Kind::Text(text) => Some(text.clone()),
                _ => None,
            }
        }),
        _ => None,
    }
}

fn same_text(a: &Value, b: &Value) -> bool {
    matches!((&a.kind, &b.kind), (Kind::Text(a), Kind::Text(b)) if a == b)
}

/// A value of a map that is taken out of it.
pub(super) fn take(value: &mut Value, name: &str) -> Option<Value> {
    let Kind::Map(entries) = &mut value.kind else { return None };
    let at = entries.iter().position(|(key, _)| key.text == name)?;
    Some(entries.remove(at).1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use windtunnel_scenario::yaml::parse;

    fn shown(value: &Value) -> String {
        match &value.kind {
            Kind::Null => "~".to_owned(),
            Kind::Text(text) => text.clone(),
            Kind::List(items) => {
                format!("[{}]", items.iter().map(shown).collect::<Vec<_>>().join(", "))
            }
            Kind::Map(entries) => {
                let entry = |(key, value): &(Key, Value)| format!("{}: {}", key.text, shown(value));
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
