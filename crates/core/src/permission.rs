//! Who may do what: which calls run by themselves, which wait for a yes, which never run.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{Authors, Effect, Reach, Risk, ToolSpec};

/// What happens to a call that no rule names.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mode {
    /// Pure tools run; everything else is refused.
    ReadOnly,
    /// Pure tools run; everything else asks.
    #[default]
    Ask,
    /// Pure tools and changes inside the workspace run; everything else asks.
    AutoEdit,
    /// Everything runs.
    Full,
}

/// The answer to one call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It runs.
    Allow,
    /// Somebody has to say yes.
    Ask {
        /// Why.
        reason: String,
    },
    /// It does not run.
    Deny {
        /// Why, for the model.
        reason: String,
    },
}

/// What counts besides the call itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Situation {
    /// Whether somebody approved the tool for the session.
    pub grant: Grant,
    /// Whose words the session has read. From strangers' words on it is tainted: a call that can
    /// send something out of the machine waits for a yes, in every mode, unless its target was
    /// allowed beforehand.
    pub read: Authors,
    /// What the tool says of the call.
    pub risk: Risk,
}

/// A person's yes to all further calls of a tool.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Grant {
    /// Nobody gave one.
    #[default]
    None,
    /// Somebody did, before strangers' words were read. It does not cover what they may want.
    BeforeStrangers,
    /// Somebody did, and nothing has changed since.
    Standing,
}

/// The rules of an agent: deny before ask before allow, then the mode.
///
/// ```
/// use duologue_core::{Mode, Policy};
///
/// let policy = Policy::new(Mode::Ask)
///     .allow("shell(git status*)")?
///     .deny("write_file(.git/**)")?;
/// # Ok::<(), duologue_core::RuleError>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Policy {
    mode: Mode,
    deny: Vec<Rule>,
    ask: Vec<Rule>,
    allow: Vec<Rule>,
}

/// A tool, and perhaps a pattern that one of its arguments must match.
///
/// - `write_file`: every call of the tool; `*` in the name stands for any characters.
/// - `write_file(docs/**)`: calls whose first required argument matches the pattern.
/// - `http_get(url=https://example.com/**)`: calls whose argument of that name matches.
///
/// In a pattern `?` is one character, `**` is anything, and `*` is anything but line breaks and
/// what chains shell commands (`; & | < > $ ( )` and the backtick), so that `shell(git status*)`
/// does not allow `git status; rm -rf .`. For a deny rule `*` is anything as well.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule {
    tool: String,
    argument: Option<(Option<String>, String)>,
}

/// A rule that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("cannot read the rule {rule:?}: write `tool`, `tool(pattern)` or `tool(argument=pattern)`")]
pub struct RuleError {
    /// The rule as it was written.
    pub rule: String,
}

impl FromStr for Rule {
    type Err = RuleError;

    fn from_str(text: &str) -> Result<Self, RuleError> {
        let wrong = || RuleError { rule: text.to_owned() };
        let rule = text.trim();
        let (tool, argument) = match rule.split_once('(') {
            None => (rule, None),
            Some((tool, rest)) => {
                let inner = rest.strip_suffix(')').ok_or_else(wrong)?;
                (tool, Some(inner))
            }
        };
        let is_name = |name: &str| {
            !name.is_empty()
                && name.chars().all(|c| c.is_ascii_alphanumeric() || "_-.:/*".contains(c))
        };
        if !is_name(tool) {
            return Err(wrong());
        }
        let argument = match argument {
            None => None,
            Some("") => return Err(wrong()),
            Some(inner) => Some(match inner.split_once('=') {
                Some((name, pattern))
                    if !name.is_empty()
                        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_') =>
                {
                    (Some(name.to_owned()), pattern.to_owned())
                }
                _ => (None, inner.to_owned()),
            }),
        };
        Ok(Self { tool: tool.to_owned(), argument })
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.argument {
            None => f.write_str(&self.tool),
            Some((None, pattern)) => write!(f, "{}({pattern})", self.tool),
            Some((Some(name), pattern)) => write!(f, "{}({name}={pattern})", self.tool),
        }
    }
}

/// How widely a pattern's single star reaches.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Star {
    Careful,
    Anything,
}

impl Rule {
    fn matches(&self, spec: &ToolSpec, arguments: &Value, star: Star) -> bool {
        if !glob(&self.tool, &spec.name, Star::Anything) {
            return false;
        }
        let Some((name, pattern)) = &self.argument else {
            return true;
        };
        let name = name.as_deref().or_else(|| first_required(spec));
        let Some(value) = name.and_then(|name| arguments.get(name)) else {
            return false;
        };
        match value {
            Value::String(text) => glob(pattern, text, star),
            other => glob(pattern, &other.to_string(), star),
        }
    }
}

fn first_required(spec: &ToolSpec) -> Option<&str> {
    spec.parameters.get("required")?.as_array()?.first()?.as_str()
}

/// Matches without backtracking over more than the last star, so that no pattern is slow.
fn glob(pattern: &str, text: &str, star: Star) -> bool {
    let mut tokens = Vec::new();
    let mut chars = pattern.chars().peekable();
    while let Some(c) = chars.next() {
        tokens.push(match c {
            '*' if chars.peek() == Some(&'*') => {
                while chars.next_if_eq(&'*').is_some() {}
                Token::Many(Star::Anything)
            }
            '*' => Token::Many(star),
            '?' => Token::One,
            other => Token::Exactly(other),
        });
    }
    // Every reachable position in the pattern, for each character of the text.
    let mut reached = vec![false; tokens.len() + 1];
    close(&tokens, &mut reached, 0);
    for c in text.chars() {
        let mut next = vec![false; tokens.len() + 1];
        for (at, token) in tokens.iter().enumerate() {
            if !reached.get(at).copied().unwrap_or(false) {
                continue;
            }
            match token {
                Token::Many(Star::Careful) if chains_commands(c) => {}
                Token::Many(_) => close(&tokens, &mut next, at),
                Token::One => close(&tokens, &mut next, at + 1),
                Token::Exactly(expected) if *expected == c => close(&tokens, &mut next, at + 1),
                Token::Exactly(_) => {}
            }
        }
        reached = next;
    }
    reached.last().copied().unwrap_or(false)
}

#[derive(Clone, Copy)]
enum Token {
    Exactly(char),
    One,
    Many(Star),
}

/// Mark a position, and those behind stars that match nothing.
fn close(tokens: &[Token], reached: &mut [bool], from: usize) {
    let mut at = from;
    loop {
        if let Some(mark) = reached.get_mut(at) {
            *mark = true;
        }
        match tokens.get(at) {
            Some(Token::Many(_)) => at += 1,
            _ => return,
        }
    }
}

fn chains_commands(c: char) -> bool {
    matches!(c, ';' | '&' | '|' | '<' | '>' | '$' | '(' | ')' | '`' | '\n' | '\r')
}

impl Policy {
    /// A policy without rules.
    pub fn new(mode: Mode) -> Self {
        Self { mode, ..Self::default() }
    }

    /// The same policy with a rule for calls that never run.
    pub fn deny(mut self, rule: &str) -> Result<Self, RuleError> {
        self.deny.push(rule.parse()?);
        Ok(self)
    }

    /// The same policy with a rule for calls that always ask.
    pub fn ask(mut self, rule: &str) -> Result<Self, RuleError> {
        self.ask.push(rule.parse()?);
        Ok(self)
    }

    /// The same policy with a rule for calls that run by themselves.
    pub fn allow(mut self, rule: &str) -> Result<Self, RuleError> {
        self.allow.push(rule.parse()?);
        Ok(self)
    }

    /// The mode.
    pub fn mode(&self) -> Mode {
        self.mode
    }

    /// What happens to a call.
    pub fn verdict(&self, spec: &ToolSpec, arguments: &Value, situation: &Situation) -> Verdict {
        if let Some(refusal) = self.denial(spec, arguments) {
            return refusal;
        }
        let target = outward(spec, &situation.risk).filter(|_| situation.read != Authors::Known);
        if let Some(target) = target
            && situation.grant != Grant::Standing
            && !self.names_target(spec, arguments)
        {
            if self.mode == Mode::ReadOnly && spec.effect != Effect::Pure {
                return self.by_mode(spec);
            }
            return Verdict::Ask {
                reason: format!(
                    "it can send something to {target}, and the session has read what strangers \
                     wrote"
                ),
            };
        }
        if situation.grant != Grant::None {
            return Verdict::Allow;
        }
        if let Some(rule) = self.ask.iter().find(|r| r.matches(spec, arguments, Star::Anything)) {
            return Verdict::Ask { reason: format!("the rule {rule} asks for it") };
        }
        if self.allow.iter().any(|rule| rule.matches(spec, arguments, Star::Careful)) {
            return Verdict::Allow;
        }
        self.by_risk(spec, &situation.risk)
    }

    /// Whether an allow rule names the target of a call, rather than all calls of the tool.
    fn names_target(&self, spec: &ToolSpec, arguments: &Value) -> bool {
        let mut rules = self.allow.iter().filter(|rule| rule.argument.is_some());
        rules.any(|rule| rule.matches(spec, arguments, Star::Careful))
    }

    /// What happens to a call that no rule names.
    fn by_risk(&self, spec: &ToolSpec, risk: &Risk) -> Verdict {
        let reason = match (risk, self.mode) {
            (Risk::AsDeclared, _) | (_, Mode::Full | Mode::ReadOnly) => return self.by_mode(spec),
            (Risk::Harmless, Mode::Ask | Mode::AutoEdit) => return Verdict::Allow,
            (Risk::Grave { reason }, Mode::Ask | Mode::AutoEdit) => reason.clone(),
            (Risk::SendsTo { target }, Mode::Ask | Mode::AutoEdit) => {
                format!("it goes to {target}, which is not on the list of what is allowed")
            }
        };
        Verdict::Ask { reason }
    }

    /// The refusal of a call that a deny rule or the mode forbids whatever a person says.
    pub fn denial(&self, spec: &ToolSpec, arguments: &Value) -> Option<Verdict> {
        let rule = self.deny.iter().find(|rule| rule.matches(spec, arguments, Star::Anything))?;
        Some(Verdict::Deny { reason: format!("the rule {rule} forbids it") })
    }

    /// What happens to a call of a tool that no rule names.
    pub fn by_mode(&self, spec: &ToolSpec) -> Verdict {
        match (self.mode, spec.effect) {
            (Mode::Full, _) | (_, Effect::Pure) => Verdict::Allow,
            (Mode::ReadOnly, effect) => Verdict::Deny {
                reason: format!(
                    "{} has the effect \"{effect}\" and the mode is read-only",
                    spec.name
                ),
            },
            (Mode::AutoEdit, _) if spec.reach == Reach::Workspace => Verdict::Allow,
            (Mode::Ask | Mode::AutoEdit, effect) => {
                Verdict::Ask { reason: format!("its effect is \"{effect}\"") }
            }
        }
    }
}

/// Where a call can send something to, if it can leave the machine and the place was not allowed
/// beforehand.
fn outward(spec: &ToolSpec, risk: &Risk) -> Option<String> {
    match risk {
        Risk::Harmless | Risk::Grave { .. } => None,
        Risk::SendsTo { target } => Some(target.clone()),
        Risk::AsDeclared => match (spec.reach, spec.effect) {
            // What acts on the machine, such as a shell, can send as well.
            (Reach::Workspace, _) | (Reach::Machine, Effect::Pure) => None,
            (Reach::Machine | Reach::Network, _) => Some("another machine".to_owned()),
        },
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn spec(name: &str, effect: Effect) -> ToolSpec {
        let schema = json!({"type": "object", "required": ["command"]});
        ToolSpec { effect, ..ToolSpec::new(name, "", schema) }
    }

    fn fresh() -> Situation {
        Situation::default()
    }

    fn allows(policy: &Policy, command: &str) -> bool {
        let shell = spec("shell", Effect::SideEffect);
        policy.verdict(&shell, &json!({"command": command}), &fresh()) == Verdict::Allow
    }

    #[test]
    fn a_careful_star_does_not_reach_over_a_chained_command() {
        let policy = Policy::new(Mode::Ask).allow("shell(git status*)").unwrap();
        assert!(allows(&policy, "git status --short src/lib.rs"));
        for chained in
            ["git status; rm -rf .", "git status && x", "git status $(x)", "git status\nx"]
        {
            assert!(!allows(&policy, chained), "{chained}");
        }
    }

    #[test]
    fn deny_comes_before_ask_before_allow_before_the_mode() {
        let policy = Policy::new(Mode::Full)
            .allow("shell")
            .and_then(|p| p.ask("shell(git push*)"))
            .and_then(|p| p.deny("shell(*--force*)"))
            .unwrap();
        let shell = spec("shell", Effect::SideEffect);
        let verdict = |command| policy.verdict(&shell, &json!({"command": command}), &fresh());
        assert_eq!(verdict("ls"), Verdict::Allow);
        assert!(matches!(verdict("git push"), Verdict::Ask { .. }));
        assert!(matches!(verdict("git push; --force"), Verdict::Deny { .. }));
        let standing = Situation { grant: Grant::Standing, ..fresh() };
        let granted = policy.verdict(&shell, &json!({"command": "git push --force"}), &standing);
        assert!(matches!(granted, Verdict::Deny { .. }), "a grant does not lift a deny rule");
    }

    #[test]
    fn a_rule_looks_only_at_the_argument_it_names() {
        let policy = Policy::new(Mode::Ask).allow("write_file(path=docs/**)").unwrap();
        let tool = spec("write_file", Effect::Idempotent);
        let sneaky = json!({"path": "secrets", "content": "docs/x"});
        assert!(matches!(policy.verdict(&tool, &sneaky, &fresh()), Verdict::Ask { .. }));
        let plain = json!({"path": "docs/x", "content": ""});
        assert_eq!(policy.verdict(&tool, &plain, &fresh()), Verdict::Allow);
    }

    #[test]
    fn modes_differ_by_effect_and_reach() {
        let pure = spec("look", Effect::Pure);
        let edit = ToolSpec { reach: Reach::Workspace, ..spec("edit", Effect::SideEffect) };
        let shell = spec("shell", Effect::SideEffect);
        let of = |mode, tool| Policy::new(mode).by_mode(tool);
        assert_eq!(of(Mode::ReadOnly, &pure), Verdict::Allow);
        assert!(matches!(of(Mode::ReadOnly, &edit), Verdict::Deny { .. }));
        assert!(matches!(of(Mode::Ask, &edit), Verdict::Ask { .. }));
        assert_eq!(of(Mode::AutoEdit, &edit), Verdict::Allow);
        assert!(matches!(of(Mode::AutoEdit, &shell), Verdict::Ask { .. }));
        assert_eq!(of(Mode::Full, &shell), Verdict::Allow);
    }

    #[test]
    fn a_session_that_read_strangers_words_asks_before_it_sends_in_every_mode() {
        let get = ToolSpec { reach: Reach::Network, ..spec("http_get", Effect::Pure) };
        let shell = spec("shell", Effect::SideEffect);
        let edit = ToolSpec { reach: Reach::Workspace, ..spec("edit", Effect::SideEffect) };
        let tainted = Situation { read: Authors::Strangers, ..fresh() };
        let target = json!({"command": "https://a.b/c"});
        for mode in [Mode::Ask, Mode::AutoEdit, Mode::Full] {
            let policy = Policy::new(mode).allow("http_get").unwrap();
            assert_eq!(policy.verdict(&get, &target, &fresh()), Verdict::Allow);
            for tool in [&get, &shell] {
                let verdict = policy.verdict(tool, &target, &tainted);
                assert!(matches!(verdict, Verdict::Ask { .. }), "{mode:?} {}", tool.name);
            }
            let listed = policy.allow("http_get(https://a.b/**)").unwrap();
            assert_eq!(listed.verdict(&get, &target, &tainted), Verdict::Allow);
        }
        assert_eq!(Policy::new(Mode::AutoEdit).verdict(&edit, &target, &tainted), Verdict::Allow);
        let refused = Policy::new(Mode::ReadOnly).verdict(&shell, &target, &tainted);
        assert!(matches!(refused, Verdict::Deny { .. }));
    }

    #[test]
    fn a_grant_from_before_strangers_words_does_not_cover_what_they_may_want() {
        let get = ToolSpec { reach: Reach::Network, ..spec("http_get", Effect::Pure) };
        let policy = Policy::new(Mode::Full);
        let of = |grant| {
            let situation = Situation { grant, read: Authors::Strangers, ..fresh() };
            policy.verdict(&get, &json!({}), &situation)
        };
        assert!(matches!(of(Grant::BeforeStrangers), Verdict::Ask { .. }));
        assert_eq!(of(Grant::Standing), Verdict::Allow);
    }

    #[test]
    fn what_a_tool_says_of_a_call_decides_where_no_rule_does() {
        let click = ToolSpec { reach: Reach::Network, ..spec("click", Effect::SideEffect) };
        let of = |mode, risk: &Risk, read| {
            let situation = Situation { risk: risk.clone(), read, ..fresh() };
            Policy::new(mode).verdict(&click, &json!({}), &situation)
        };
        let grave = Risk::Grave { reason: "it submits a form".into() };
        let elsewhere = Risk::SendsTo { target: "a.b".into() };
        for read in [Authors::Known, Authors::Strangers] {
            assert_eq!(of(Mode::Ask, &Risk::Harmless, read), Verdict::Allow);
            assert!(matches!(of(Mode::ReadOnly, &Risk::Harmless, read), Verdict::Deny { .. }));
            let asks = Verdict::Ask { reason: "it submits a form".into() };
            assert_eq!(of(Mode::AutoEdit, &grave, read), asks);
            assert_eq!(of(Mode::Full, &grave, read), Verdict::Allow);
            assert!(matches!(of(Mode::Ask, &elsewhere, read), Verdict::Ask { .. }));
        }
        assert_eq!(of(Mode::Full, &elsewhere, Authors::Known), Verdict::Allow);
        assert!(matches!(of(Mode::Full, &elsewhere, Authors::Strangers), Verdict::Ask { .. }));
    }

    #[test]
    fn an_unreadable_rule_says_how_to_write_one() {
        for wrong in ["", "shell(", "shell()", "a b", "shell(x"] {
            assert!(wrong.parse::<Rule>().is_err(), "{wrong}");
        }
        let rule = "http_get(url=https://a.b/**)";
        assert_eq!(rule.parse::<Rule>().unwrap().to_string(), rule);
    }

    proptest! {
        #[test]
        fn a_pattern_without_wildcards_matches_itself_alone(a in "[a-z/. ]{0,8}", b in "[a-z/. ]{0,8}") {
            prop_assert_eq!(glob(&a, &b, Star::Careful), a == b);
            let padded = format!("{a}x{b}");
            let pattern = format!("{a}**{b}");
            prop_assert!(glob(&pattern, &padded, Star::Careful));
        }
    }
}
