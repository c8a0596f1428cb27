//! The reference's agents: `llm_agent`, `llm_agent_gt`, `llm_agent_solo`.

mod ground_truth;
mod llm;
mod solo;

pub use ground_truth::{GroundTruthAgent, StepDetail};
pub use llm::{LlmAgent, LlmState};
pub use solo::SoloAgent;
