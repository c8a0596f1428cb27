//! What a model is shown: schemas (all but the descriptions, which are our own) and policies.

use std::sync::Arc;

use duologue_bench::{
    Domain, Toolkit, Value, domains, python,
    toolkit::{Access, Kind},
};
use serde_json::{Value as Json, json};

use crate::support::{Check, Goldens, base_name, same, text};

pub fn tool_schemas(goldens: &Goldens) -> Check {
    let Some(golden) = goldens.json("tool_schemas.json") else {
        return Check::absent("tool_schemas.json");
    };
    let mut check = Check::new("tool_schemas.json");
    for (name, sides) in golden.entries() {
        let Some(domain) = variant(goldens, name) else {
            check.wait(base_name(name));
            continue;
        };
        let sides = json_of(sides);
        let kits = [("agent", Some(&domain.agent)), ("user", domain.user.as_ref())];
        for (side, kit) in kits {
            let golden = sides[side].as_array().cloned().unwrap_or_default();
            let ours: Vec<Json> =
                kit.map(|kit| kit.shown().map(|tool| tool.schema()).collect()).unwrap_or_default();
            let names = |tools: &[Json]| -> Vec<String> {
                tools.iter().map(|tool| tool["function"]["name"].to_string()).collect()
            };
            check.case(
                || format!("{name} {side} tools"),
                same("the list", names(&ours), names(&golden)),
            );
            for tool in &golden {
                let ours = ours.iter().find(|t| t["function"]["name"] == tool["function"]["name"]);
                let ours = ours.map(without_descriptions);
                check.case(
                    || format!("{name} {side} {}", tool["function"]["name"]),
                    same("the schema", ours, Some(without_descriptions(tool))),
                );
            }
        }
        let types = sides["tool_types"].as_object().cloned().unwrap_or_default();
        for (tool, golden) in types {
            let side = golden["side"].as_str().unwrap_or_default().to_owned();
            let kit = if side == "user" { domain.user.as_ref() } else { Some(&domain.agent) };
            let ours = kit.map_or(Json::Null, |kit| tool_type(kit, &tool, &side));
            check.case(|| format!("{name} type of {tool}"), same("the type", ours, golden));
        }
    }
    check
}

pub fn policies(goldens: &Goldens) -> Check {
    let Some(golden) = goldens.json("policies.json") else {
        return Check::absent("policies.json");
    };
    let mut check = Check::new("policies.json");
    for (name, policy) in golden.entries() {
        let (solo, variant_name) = match name.strip_suffix(":solo") {
            Some(name) => (true, name),
            None => (false, &**name),
        };
        let Some(domain) = variant(goldens, variant_name) else {
            check.wait(base_name(name));
            continue;
        };
        let ours = if solo { domain.solo_policy.clone() } else { Some(domain.policy.clone()) };
        // A policy too long for the goldens is there as its length and hash.
        let result = match policy {
            Value::Str(policy) => same("the policy", ours, Some(policy.to_string())),
            about => {
                let ours = ours.unwrap_or_default();
                let sha256 = python::sha256(ours.as_bytes());
                same("the hash", sha256, text(&about["sha256"]))
            }
        };
        check.case(|| name.to_string(), result);
    }
    check
}

/// A domain in the variant that its name asks for.
fn variant(goldens: &Goldens, name: &str) -> Option<Arc<Domain>> {
    match name.split_once(':') {
        None => goldens.domain(name).map(|(domain, _)| Arc::clone(domain)),
        Some((base, variant)) => {
            let entry = domains::find(base).ok()?;
            Some(Arc::new((entry.load)(&goldens.data, Some(variant)).unwrap()))
        }
    }
}

fn tool_type(kit: &Toolkit, name: &str, side: &str) -> Json {
    let Some(tool) = kit.tool(name) else { return Json::Null };
    let kind = match tool.kind {
        Kind::Read => "read",
        Kind::Write => "write",
        Kind::Think => "think",
        Kind::Generic => "generic",
    };
    let discoverable = tool.access == Access::Discoverable;
    json!({"type": kind, "mutates": tool.mutates, "discoverable": discoverable, "side": side})
}

/// Descriptions of tools, parameters and records; a property may be called so too.
fn without_descriptions(schema: &Json) -> Json {
    match schema {
        Json::Object(entries) => entries
            .iter()
            .filter(|(key, value)| *key != "description" || value.is_object())
            .map(|(key, value)| (key.clone(), without_descriptions(value)))
            .collect(),
        Json::Array(items) => items.iter().map(without_descriptions).collect(),
        other => other.clone(),
    }
}

fn json_of(value: &Value) -> Json {
    serde_json::to_value(value).unwrap()
}
