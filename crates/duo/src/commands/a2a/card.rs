//! `duo card`: what another agent says about itself.

use std::io::Write;

use clap::Args;
use duologue_a2a::a2a::{AgentCard, SecurityScheme};

use crate::{
    exit::Exit,
    failure::Done,
    house::House,
    terminal::{Paint, Style, clip, visible},
};

#[derive(Args, Debug)]
#[command(after_help = "Examples:\n  \
    duo card http://localhost:8080\n  \
    duo card localhost:8080 --json | jq .skills")]
pub(crate) struct Card {
    /// A name of [remotes], an address, or a host and a port.
    #[arg(value_name = "AGENT")]
    pub(crate) place: String,

    /// Print the card as JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

pub(crate) async fn card(house: &House, args: Card) -> Done {
    let remote = house.reach(&args.place, None).await?;
    let mut out = std::io::stdout().lock();
    if args.json {
        writeln!(out, "{}", serde_json::to_string_pretty(remote.card())?)?;
        return Ok(Exit::Completed);
    }
    writeln!(out, "{}", card_lines(house.paint, remote.card()))?;
    let face = remote.interface();
    let way =
        format!("talked to by {} {} at {}", face.protocol_binding, face.protocol_version, face.url);
    writeln!(out, "{}", house.paint.text(Style::Dim, visible(&way)))?;
    Ok(Exit::Completed)
}

/// A card for people.
pub(crate) fn card_lines(paint: Paint, card: &AgentCard) -> String {
    let mut lines = vec![format!(
        "{} {}\n{}",
        paint.text(Style::Bold, visible(&card.name)),
        paint.text(Style::Dim, visible(&card.version)),
        visible(&card.description)
    )];
    let able = [
        ("streams", card.capabilities.streaming),
        ("notifies", card.capabilities.push_notifications),
        ("has an extended card", card.capabilities.extended_agent_card),
    ];
    let able: Vec<&str> =
        able.into_iter().filter(|(_, can)| *can == Some(true)).map(|(what, _)| what).collect();
    if !able.is_empty() {
        lines.push(able.join(", "));
    }
    if card.signatures.as_ref().is_some_and(|all| !all.is_empty()) {
        lines.push("the card is signed".to_owned());
    }
    for face in &card.supported_interfaces {
        let face =
            format!("  {:<10} {:<4} {}", face.protocol_binding, face.protocol_version, face.url);
        lines.push(visible(&face));
    }
    for (name, scheme) in card.security_schemes.iter().flatten() {
        let kind = match scheme {
            SecurityScheme::ApiKey(key) => format!("an API key in {} {}", key.location, key.name),
            SecurityScheme::HttpAuth(auth) => format!("{} credentials", auth.scheme),
            SecurityScheme::OAuth2(_) => "OAuth 2".to_owned(),
            SecurityScheme::OpenIdConnect(_) => "OpenID Connect".to_owned(),
            SecurityScheme::MutualTls(_) => "a client certificate".to_owned(),
        };
        lines.push(visible(&format!("  wants {name}: {kind}")));
    }
    for skill in &card.skills {
        let name = paint.text(Style::Tool, visible(&format!("{:<18}", skill.id)));
        lines.push(format!("  {name} {}", clip(&skill.description, 80)));
    }
    lines.join("\n")
}
