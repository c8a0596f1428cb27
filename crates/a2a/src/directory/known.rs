//! What is known of one agent.

use a2a::AgentCard;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::card::id_in;

/// The most characters of an id.
const LONGEST_ID: usize = 64;
/// The most characters of a text that another agent says about itself.
const LONGEST_TEXT: usize = 2_000;
/// The most skills that are kept of one agent.
const MOST_SKILLS: usize = 64;

/// An agent that somebody added, or that another agent told of.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct KnownAgent {
    /// What it is called here; unique in the directory.
    pub id: String,
    /// Its own name.
    pub name: String,
    /// Where it is reached.
    pub url: String,
    /// What it says it is for.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub description: String,
    /// What it says it can do.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub skills: Vec<Skill>,
    /// Its card, once it was fetched.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub card: Option<AgentCard>,
    /// The agent that told of it, if nobody here added it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub learned_from: Option<String>,
    /// When it became known, in milliseconds since 1970.
    #[serde(default)]
    pub added_at: i64,
    /// When it was last reached.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_seen: Option<i64>,
    /// When it was last tried.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_tried: Option<i64>,
    /// How it was when it was last tried.
    #[serde(default)]
    pub health: Health,
    /// How long its card took when it was last fetched, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latency_ms: Option<u64>,
}

/// Something that an agent can do.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Skill {
    /// Its name.
    pub id: String,
    /// What it does.
    #[serde(default)]
    pub description: String,
}

/// How an agent was when it was last tried.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum Health {
    /// It was never tried.
    #[default]
    Unknown,
    /// It answered.
    Up,
    /// It did not answer.
    Down {
        /// How often in a row.
        failures: u32,
        /// Why, the last time.
        error: String,
    },
}

impl Health {
    /// One word for it.
    pub fn word(&self) -> &'static str {
        match self {
            Self::Unknown => "unknown",
            Self::Up => "up",
            Self::Down { .. } => "down",
        }
    }
}

impl KnownAgent {
    /// An agent that was never tried.
    pub(super) fn new(id: String, name: String, url: String, now: i64) -> Self {
        Self {
            id,
            name,
            url,
            description: String::new(),
            skills: Vec::new(),
            card: None,
            learned_from: None,
            added_at: now,
            last_seen: None,
            last_tried: None,
            health: Health::Unknown,
            latency_ms: None,
        }
    }

    /// Take in what it says about itself.
    pub(super) fn seen(&mut self, card: &AgentCard, latency_ms: u64, now: i64) {
        self.name = short(&card.name);
        self.description = short(&card.description);
        self.skills = card
            .skills
            .iter()
            .take(MOST_SKILLS)
            .map(|skill| Skill { id: short(&skill.id), description: short(&skill.description) })
            .collect();
        self.card = Some(card.clone());
        self.last_seen = Some(now);
        self.last_tried = Some(now);
        self.health = Health::Up;
        self.latency_ms = Some(latency_ms);
    }

    /// It could not be reached.
    pub(super) fn missed(&mut self, error: String, now: i64) {
        let failures = match &self.health {
            Health::Down { failures, .. } => failures.saturating_add(1),
            Health::Unknown | Health::Up => 1,
        };
        self.last_tried = Some(now);
        self.health = Health::Down { failures, error: short(&error) };
    }

    /// Whether it says that it can do this.
    pub fn has_skill(&self, id: &str) -> bool {
        self.skills.iter().any(|skill| skill.id == id)
    }

    /// As `list_agents` gives it: `{id, name}`.
    pub fn simple(&self) -> Value {
        json!({ "id": self.id, "name": self.name })
    }

    /// As `list_agents` gives it in detail.
    pub fn detailed(&self) -> Value {
        let skills: Vec<&str> = self.skills.iter().map(|skill| skill.id.as_str()).collect();
        json!({
            "id": self.id,
            "name": self.name,
            "url": self.url,
            "description": self.description,
            "skills": skills,
            "health": self.health.word(),
            "last_seen": self.last_seen,
            "latency_ms": self.latency_ms,
        })
    }
}

/// The id that an agent would be given by its card, before others are looked at.
pub(super) fn wished_id(card: &AgentCard) -> String {
    let wish = id_in(card).unwrap_or_else(|| card.name.clone());
    slug(&wish)
}

/// A text as an id: lower case, without gaps.
pub(super) fn slug(text: &str) -> String {
    let mut id = String::new();
    for c in text.trim().chars() {
        let c = c.to_ascii_lowercase();
        if c.is_ascii_alphanumeric() || c == '_' || c == '.' {
            id.push(c);
        } else if !id.ends_with('-') && !id.is_empty() {
            id.push('-');
        }
        if id.len() >= LONGEST_ID {
            break;
        }
    }
    match id.trim_end_matches('-') {
        "" => "agent".to_owned(),
        id => id.to_owned(),
    }
}

pub(super) fn short(text: &str) -> String {
    text.chars().take(LONGEST_TEXT).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_becomes_an_id_that_can_be_typed() {
        assert_eq!(slug("Agent Two"), "agent-two");
        assert_eq!(slug("  Müller & Söhne "), "m-ller-s-hne");
        assert_eq!(slug("bidirectional-agent-2"), "bidirectional-agent-2");
        assert_eq!(slug("日本"), "agent");
    }

    #[test]
    fn failures_are_counted_until_it_answers() {
        let mut agent = KnownAgent::new("a".into(), "A".into(), "http://x".into(), 1);
        agent.missed("no".into(), 2);
        agent.missed("still no".into(), 3);
        assert_eq!(agent.health, Health::Down { failures: 2, error: "still no".into() });
        assert_eq!((agent.last_seen, agent.last_tried), (None, Some(3)));
    }
}
