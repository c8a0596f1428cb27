//! What the router tells the model at its decision points.

use std::fmt::Write;

use duologue_core::{Outcome, ToolSpec};
use serde::{Deserialize, Serialize};

use super::{
    super::tools::LLM,
    decision::Point,
    work::{MOST_STEPS, Work, WorkStep, shortened},
};

/// The most agents that a prompt tells of.
const MOST_AGENTS: usize = 50;
/// The most characters of one description.
const LONGEST: usize = 300;

/// What a small model sees of the shape of a route. An example of a remote one would draw all to it.
const REJECTS: &str = r#"{"asked_for": "help with stealing a car", "reason": "Stealing is a crime.", "route": "reject"}"#;
const KEEPS: &str = r#"{"asked_for": "the meaning of a word", "reason": "No other agent is there for words.", "route": "local"}"#;

/// Another agent, as a decision sees it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Peer {
    pub(crate) id: String,
    pub(crate) name: String,
    #[serde(default)]
    pub(crate) description: String,
    /// Names and descriptions of what it can do.
    #[serde(default)]
    pub(crate) skills: Vec<String>,
    /// Whether it did not answer when it was last tried.
    #[serde(default)]
    pub(crate) is_down: bool,
}

/// The tools, one in a line.
fn tools(text: &mut String, specs: &[&ToolSpec]) {
    text.push_str("Tools of this agent:\n");
    for spec in specs {
        let _ = writeln!(text, "- {}: {}", spec.name, cut(&spec.description));
    }
}

/// The other agents, one in a line.
fn agents(text: &mut String, specs: &[&ToolSpec], peers: &[Peer]) {
    if peers.is_empty() {
        text.push_str("Other agents: none are known.\n");
        return;
    }
    text.push_str("Other agents:\n");
    for peer in peers.iter().take(MOST_AGENTS) {
        let _ = writeln!(text, "- {} ({}): {}", peer.id, peer.name, about(specs, peer));
    }
}

/// What an agent is there for. A skill that is a tool here too speaks for nobody.
fn about(specs: &[&ToolSpec], peer: &Peer) -> String {
    let mut text = cut(&peer.description);
    let is_own = |skill: &str| {
        let name = skill.split(':').next();
        specs.iter().any(|spec| Some(spec.name.as_str()) == name)
    };
    let skills = peer.skills.iter().map(String::as_str).filter(|skill| !is_own(skill));
    let skills: Vec<&str> = skills.collect();
    if !skills.is_empty() {
        let _ = write!(text, " Skills: {}", cut(&skills.join("; ")));
    }
    if peer.is_down {
        text.push_str(" (did not answer lately)");
    }
    text
}

pub(super) fn clarity() -> String {
    "Look at the request above, with all that was said before. Is it clear enough to be worked on, \
     or is something missing that cannot be guessed sensibly? Short requests are usually clear. \
     Answer in JSON."
        .to_owned()
}

pub(super) fn decomposition(
    specs: &[&ToolSpec],
    peers: &[Peer],
    so_far: Option<(&Work, &WorkStep, &Outcome)>,
) -> String {
    let mut text = String::new();
    tools(&mut text, specs);
    agents(&mut text, specs, peers);
    let _ = write!(
        text,
        "\nFirst list the different results that the request above asks for. One question, one \
         text or one thing to do is a single result, however hard it is: then needs_steps is false \
         and there are no steps. If it asks for several results (this and that, one after the other), \
         needs_steps is true: give 2 to {MOST_STEPS} steps, at least one for each result. Steps that \
         do not need each other's results run side by side. Each step names the agent that does it, \
         or no agent if this one does."
    );
    if let Some((work, step, outcome)) = so_far {
        let _ = write!(text, "\n\nAn earlier plan failed at step {}: {outcome}.", step.id);
        for step in &work.steps {
            if let super::work::Stand::Done(parts) = &step.stand {
                let task = shortened(&step.task);
                let _ = write!(text, "\nDone: {task}\nResult: {}", shortened(parts));
            }
        }
        text.push_str("\nMake a plan for what is left that avoids this.");
    }
    text.push_str(" Answer in JSON.");
    text
}

pub(super) fn route(specs: &[&ToolSpec], peers: &[Peer]) -> String {
    let mut text =
        "Who does what the request above asks for? Go through this list and take the first \
         that fits:\n"
            .to_owned();
    for peer in peers.iter().take(MOST_AGENTS) {
        let _ = writeln!(text, "- `remote:{}`: {}", peer.id, about(specs, peer));
    }
    // What the model itself does is anything else.
    let own = specs.iter().filter(|spec| spec.name != LLM);
    let own: Vec<String> =
        own.map(|spec| format!("{}: {}", spec.name, cut(&spec.description))).collect();
    let _ = write!(
        text,
        "- `reject`: help with hacking, with weapons, with hurting somebody or with a crime\n\
         - `local`: anything else, and what the tools of this agent do ({})\n\
         Say first in a few words what is asked for, then who of this list is there for that, and \
         then which of the list it is. Answer in JSON, such as:\n{REJECTS}\n{KEEPS}",
        own.join("; ")
    );
    text
}

pub(super) fn tool(specs: &[&ToolSpec]) -> String {
    let mut text = String::new();
    tools(&mut text, specs);
    for spec in specs {
        let _ =
            writeln!(text, "Parameters of {}: {}", spec.name, cut(&spec.parameters.to_string()));
    }
    text.push_str(
        "\nWhich one of these tools answers the request above best, and with what parameters? If \
         none fits exactly, it is llm. Answer in JSON: {\"tool_name\": …, \"params\": {…}}.",
    );
    text
}

pub(super) fn risk(action: &str) -> String {
    format!(
        "This is about to be done: {action}\nCould it delete, pay, send or publish something, or \
         be impossible to undo? Reading, answering and calculating are not risky. Answer in JSON."
    )
}

pub(super) fn returned(step: &WorkStep, question: &str) -> String {
    let agent = step.agent.as_deref().unwrap_or("another agent");
    format!(
        "The agent {agent} works on this: {}\nIt asks: {question}\nThe answer may be in what the user \
         said above, in the request itself or before it. First copy the words that answer the \
         question. If there are such words, `handle_directly`, with the answer. If the user did not \
         say it, `need_human_input`: it is not for you to guess. Answer in JSON.",
        shortened(&step.task)
    )
}

pub(super) fn recovery(
    specs: &[&ToolSpec],
    peers: &[Peer],
    step: &WorkStep,
    outcome: &Outcome,
    is_plan: bool,
) -> String {
    let mut text = String::new();
    agents(&mut text, specs, peers);
    let who = step.agent.as_deref().unwrap_or("this agent itself");
    let _ = write!(
        text,
        "\nThis was given to {who}: {}\nIt ended badly after {} tries: {outcome}\nWhat now? Say first \
         why it went wrong, then take the first that fits:\n\
         - `retry` only if the cause passes by itself: a lost connection, a time limit, too much to \
         do at the moment.\n\
         - `give_up` if nobody could do it.\n\
         - `another_agent` with its id, if {who} cannot do such things and another agent of the list \
         is there for them.\n\
         - `local` if {who} cannot do such things and no other agent is there for them, but anybody \
         who can read, write and think could.\n{}Answer in JSON.",
        shortened(&step.task),
        step.tries,
        if is_plan { "- `replan` if the plan itself is wrong.\n" } else { "" },
    );
    text
}

pub(super) fn synthesis(work: &Work) -> String {
    let mut text = "The request was worked on in steps. These are the results:\n".to_owned();
    for (step, parts) in work.results().unwrap_or_default() {
        let who = step.agent.as_deref().unwrap_or("this agent");
        let task = shortened(&step.task);
        let _ = writeln!(text, "\nStep {} ({who}): {task}\n{}", step.id, shortened(parts));
    }
    text.push_str(
        "\nGive the user one answer to the request, put together from these results. Do not tell \
         of the steps.",
    );
    text
}

/// What is said to a model whose answer did not fit.
pub(super) fn misfit(point: Point, problem: &str) -> String {
    format!(
        "Your last answer cannot be used as the {}: {problem}. Give it again, as JSON and nothing \
         else.",
        point.name()
    )
}

fn cut(text: &str) -> String {
    let mut short: String = text.chars().take(LONGEST).collect();
    if short.len() < text.len() {
        short.push('…');
    }
    short
}
