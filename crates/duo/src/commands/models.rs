//! `duo models`: what can be asked.

use std::io::Write;

use duologue_models::KeyStatus;
use serde_json::json;

use crate::{
    cli::{Models, ModelsCommand},
    exit::Exit,
    failure::Done,
    house::{House, NO_MODEL},
    terminal::Style,
};

pub(crate) async fn run(house: &House, args: Models) -> Done {
    match args.command {
        None => list(house, args.json).await,
        Some(ModelsCommand::List { json }) => list(house, json || args.json).await,
        #[cfg(feature = "local")]
        Some(ModelsCommand::Pull { name, from }) => crate::local::pull(house, name, from).await,
        #[cfg(feature = "local")]
        Some(ModelsCommand::Remove { name }) => crate::local::remove(house, &name),
        #[cfg(feature = "local")]
        Some(ModelsCommand::Where) => crate::local::tell_where(),
        #[cfg(not(feature = "local"))]
        Some(_) => Err(crate::failure::Failure::usage(
            "this duo was built without the local model (--no-default-features); build it with the \
             feature `local`, or use a provider: `duo models` lists them",
        )),
    }
}

async fn list(house: &House, as_json: bool) -> Done {
    let providers = house.providers.available();
    let reached = house.providers.reachable().await;
    let chosen = house.plan().ok().map(|plan| plan.model);
    let state = |name: &str, key: &KeyStatus| match key {
        KeyStatus::Set { variable } => (Style::Good, format!("key in {variable}")),
        KeyStatus::Missing { variables } => {
            (Style::Dim, format!("no key; set {}", variables.join(" or ")))
        }
        KeyStatus::NotNeeded => match reached.iter().find(|site| site.provider == name) {
            None => (Style::Good, "needs no key".to_owned()),
            Some(site) => match &site.models {
                Ok(models) => (Style::Good, format!("{} models", models.len())),
                Err(error) if error.contains("refused") => (Style::Dim, "not running".to_owned()),
                Err(error) => (Style::Dim, format!("not reachable: {error}")),
            },
        },
    };
    let mut out = std::io::stdout().lock();
    if as_json {
        let list: Vec<_> = providers
            .iter()
            .map(|provider| {
                let site = reached.iter().find(|site| site.provider == provider.name);
                json!({
                    "provider": provider.name,
                    "wire": provider.wire.to_string(),
                    "base_url": provider.base_url,
                    "state": state(&provider.name, &provider.key).1,
                    "models": site.and_then(|site| site.models.as_ref().ok()),
                })
            })
            .collect();
        let whole = json!({"model": chosen, "providers": list});
        writeln!(out, "{}", serde_json::to_string_pretty(&whole)?)?;
        return Ok(Exit::Completed);
    }
    let paint = house.paint;
    match &chosen {
        Some(model) => writeln!(out, "in use: {}\n", paint.text(Style::Bold, model))?,
        None => writeln!(out, "{NO_MODEL}\n")?,
    }
    for provider in &providers {
        let (style, text) = state(&provider.name, &provider.key);
        let name = format!("{:<18}", format!("{}/…", provider.name));
        let place = paint.text(Style::Dim, &provider.base_url);
        writeln!(out, "{} {}  {place}", paint.text(Style::Bold, name), paint.text(style, text))?;
        let site = reached.iter().find(|site| site.provider == provider.name);
        for model in site.and_then(|site| site.models.as_ref().ok()).into_iter().flatten() {
            writeln!(out, "  {model}")?;
        }
    }
    #[cfg(feature = "local")]
    crate::local::list(&mut out, paint)?;
    writeln!(out, "demo               a script with real tools, no model")?;
    writeln!(out, "script:FILE        a script of your own (YAML or JSON)")?;
    writeln!(out, "replay:FILE        answers recorded with --record")?;
    Ok(Exit::Completed)
}
