//! What the examples share: which model they talk to.

use std::{collections::BTreeMap, error::Error, sync::Arc};

use duologue_core::Model;
use duologue_models::{Providers, Scripted};

/// The model named after the example's arguments, such as `openai/gpt-4.1`, or the example's own
/// script, which needs neither a key nor a network.
pub fn model_or(script: Scripted) -> Result<Arc<dyn Model>, Box<dyn Error>> {
    match std::env::args().nth(1) {
        Some(name) if name.contains('/') => Ok(Providers::new(BTreeMap::new())?.model(&name)?),
        _ => Ok(Arc::new(script)),
    }
}
