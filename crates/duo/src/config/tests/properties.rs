//! What holds for any input.

use proptest::prelude::*;

use super::super::keys::Config;
use super::super::schema::{Kind, Section, Spec};
use super::house;

/// Every path there is, with a name of one's own where one is wanted.
fn paths(spec: &'static Spec, at: &str) -> Vec<(String, Kind)> {
    let mut found = Vec::new();
    for key in spec.keys {
        let path = format!("{at}{}", key.name);
        match key.kind {
            Kind::Table(inner) | Kind::Inherited(_, inner) => {
                found.extend(paths(inner, &format!("{path}.")));
            }
            Kind::Named(inner) => found.extend(paths(inner, &format!("{path}.openai."))),
            Kind::Map(kind) => found.push((format!("{path}.X-A"), *kind)),
            kind => found.push((path, kind)),
        }
    }
    found
}

fn toml_value() -> impl Strategy<Value = String> {
    prop_oneof![
        any::<i64>().prop_map(|number| number.to_string()),
        (-3.0..40.0_f64).prop_map(|number| format!("{number:?}")),
        any::<bool>().prop_map(|flag| flag.to_string()),
        "[a-z/.~()*-]{0,12}".prop_map(|text| format!("'{text}'")),
        "[A-Z_]{1,8}".prop_map(|text| format!("'{text}'")),
        Just("'http://localhost:1'".to_owned()),
        Just("'ollama/x'".to_owned()),
        Just("['echo', 'shell']".to_owned()),
        Just("[]".to_owned()),
        Just("{}".to_owned()),
        Just("1979-05-27".to_owned()),
    ]
}

proptest! {
    /// What passes the checks becomes a `Config`: no value gets between the two.
    #[test]
    fn what_the_checks_let_through_the_types_accept(
        picks in prop::collection::vec((any::<prop::sample::Index>(), toml_value()), 1..6)
    ) {
        let all = paths(Config::SPEC, "");
        let mut lines = std::collections::BTreeMap::new();
        for (pick, value) in picks {
            lines.insert(pick.get(&all).0.clone(), value);
        }
        let file: String = lines.iter().map(|(key, value)| format!("{key} = {value}\n")).collect();
        for error in house().project(&file).errors() {
            prop_assert!(!error.contains("cannot be put together"), "{file}{error}");
            prop_assert!(error.starts_with("duologue.toml:"), "{file}{error}");
        }
    }

    #[test]
    fn no_text_in_a_file_a_variable_or_a_flag_is_met_with_a_panic(
        text in "\\PC{0,40}", name in "[A-Z_]{0,30}", lines in "([a-z\\[\\]=.\"' \\n{}0-9#]|model|agents){0,40}"
    ) {
        let _ = house().project(&text).user(&lines).try_load();
        let _ = house().var(&format!("DUOLOGUE_{name}"), &text).set(&text).try_load();
        let _ = house().set(&format!("{text}={lines}")).try_load();
    }
}
