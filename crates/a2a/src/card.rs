//! The card of an agent: what it is, what it can do and how it is reached.

use std::collections::HashMap;

use a2a::{
    AgentCapabilities, AgentCard, AgentExtension, AgentInterface, AgentSkill,
    TRANSPORT_PROTOCOL_GRPC, TRANSPORT_PROTOCOL_HTTP_JSON, TRANSPORT_PROTOCOL_JSONRPC,
};
use duologue_core::Agent;

use crate::{Access, service::PIECES, task::delegation::DELEGATION, v03};

/// Where a server is reached.
pub(crate) struct Reached<'a> {
    /// The address of the JSON bindings, without a slash at the end.
    pub(crate) url: &'a str,
    /// Host and port of gRPC.
    pub(crate) grpc: Option<&'a str>,
}

/// The extension by which a card says what the agent is called in directories.
pub(crate) const IDENTITY: &str = "urn:duologue:agent";

/// The id that a card declares.
pub(crate) fn id_in(card: &AgentCard) -> Option<String> {
    let all = card.capabilities.extensions.iter().flatten();
    let own = all.into_iter().find(|extension| extension.uri == IDENTITY)?;
    let id = own.params.as_ref()?.get("id")?.as_str()?;
    (!id.is_empty()).then(|| id.to_owned())
}

/// Declare an id.
pub(crate) fn declare_id(card: &mut AgentCard, id: &str) {
    let params = HashMap::from([("id".to_owned(), id.into())]);
    card.capabilities.extensions.get_or_insert_default().push(AgentExtension {
        uri: IDENTITY.to_owned(),
        description: Some("What the agent is called in directories".to_owned()),
        required: None,
        params: Some(params),
    });
}

/// The card of an agent, its skills from its tools.
pub(crate) fn card_of(
    agent: &Agent,
    access: &Access,
    reached: &Reached<'_>,
    push: bool,
) -> AgentCard {
    let mut faces = vec![
        AgentInterface::new(reached.url, TRANSPORT_PROTOCOL_JSONRPC),
        AgentInterface::new(reached.url, TRANSPORT_PROTOCOL_HTTP_JSON),
    ];
    if let Some(grpc) = reached.grpc {
        faces.push(AgentInterface::new(grpc, TRANSPORT_PROTOCOL_GRPC));
    }
    // The first of these is what clients of 0.3 take unless they want another.
    for binding in [TRANSPORT_PROTOCOL_JSONRPC, TRANSPORT_PROTOCOL_HTTP_JSON] {
        let mut old = AgentInterface::new(reached.url, binding);
        v03::VERSION.clone_into(&mut old.protocol_version);
        faces.push(old);
    }
    let schemes = access.schemes();
    let requirements = schemes.iter().map(|(name, _)| HashMap::from([(name.clone(), Vec::new())]));
    let requirements: Vec<_> = requirements.collect();
    AgentCard {
        name: agent.name().to_owned(),
        description: match agent.description() {
            "" => format!("The agent {}", agent.name()),
            text => text.to_owned(),
        },
        version: env!("CARGO_PKG_VERSION").to_owned(),
        supported_interfaces: faces,
        capabilities: AgentCapabilities {
            streaming: Some(true),
            push_notifications: Some(push),
            extensions: Some(vec![
                extension(PIECES, "Pieces of an answer while it is written"),
                extension(DELEGATION, "Budgets and ways of requests that are passed on"),
            ]),
            extended_agent_card: Some(false),
        },
        default_input_modes: vec!["text/plain".to_owned(), "application/json".to_owned()],
        default_output_modes: vec!["text/plain".to_owned(), "application/json".to_owned()],
        skills: skills_of(agent),
        provider: None,
        documentation_url: None,
        icon_url: None,
        security_schemes: (!schemes.is_empty()).then(|| schemes.into_iter().collect()),
        security_requirements: (!requirements.is_empty()).then_some(requirements),
        signatures: None,
    }
}

fn extension(uri: &str, description: &str) -> AgentExtension {
    AgentExtension {
        uri: uri.to_owned(),
        description: Some(description.to_owned()),
        required: None,
        params: None,
    }
}

fn skills_of(agent: &Agent) -> Vec<AgentSkill> {
    let skill = |id: &str, description: &str, tag: &str| AgentSkill {
        id: id.to_owned(),
        name: id.to_owned(),
        description: description.to_owned(),
        tags: vec![tag.to_owned()],
        examples: None,
        input_modes: None,
        output_modes: None,
        security_requirements: None,
    };
    let specs = agent.tools().specs();
    if specs.is_empty() {
        let text = match agent.description() {
            "" => "Answers messages",
            text => text,
        };
        return vec![skill(agent.name(), text, "conversation")];
    }
    specs.iter().map(|spec| skill(&spec.name, &spec.description, "tool")).collect()
}
