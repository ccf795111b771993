//! What is configured, for programs.

use serde_json::{Map, Value as Json, json};

use lmt_selector::collectives::CollectiveRule;
use lmt_selector::rules::Layer;

use super::effective::{Effective, in_words, whose};

/// One object: tables with their keys, layers with their rules, remarks.
pub fn of(effective: &Effective<'_>) -> Json {
    let tables: Map<String, Json> = effective
        .tables
        .iter()
        .map(|table| {
            let lines = table.lines.iter().map(|line| {
                let value =
                    json!({ "value": line.shown, "source": line.source, "from": line.source.to_string() });
                (line.key.to_owned(), value)
            });
            (table.name.clone(), Json::Object(lines.collect()))
        })
        .collect();
    let layers: Vec<Json> = effective.configuration.layers.iter().map(layer).collect();
    let collectives: Vec<Json> = effective.configuration.collectives.iter().map(collective).collect();
    json!({ "tables": tables, "layers": layers, "collectives": collectives, "remarks": effective.configuration.remarks })
}

fn collective(rule: &CollectiveRule) -> Json {
    json!({
        "operation": rule.operation,
        "algorithm": rule.algorithm,
        "above": rule.above,
        "up_to": rule.up_to,
        "min_ranks": rule.min_ranks,
        "max_ranks": rule.max_ranks,
        "source": rule.source,
        "from": rule.source.to_string(),
    })
}

fn layer(layer: &Layer) -> Json {
    let rules: Vec<Json> =
        layer.rules.iter().map(|rule| json!({ "line": rule.line, "rule": in_words(rule) })).collect();
    let bound = |bound: Option<lmt_selector::rules::Bound>| bound.map(|bound| bound.to_string());
    let ranges: Vec<Json> = layer
        .ranges
        .iter()
        .map(|of| {
            json!({
                "line": of.line,
                "mechanism": of.mechanism,
                "above": bound(of.above),
                "up_to": bound(of.up_to),
            })
        })
        .collect();
    json!({
        "path": layer.path.display().to_string(),
        "authority": whose(layer.authority),
        "rules": rules,
        "ranges": ranges,
        "figures": layer.figures.len(),
    })
}
