//! A language model inside the process: no key, no second program, no accelerator.
//!
//! - [`Catalogue`] and [`ModelFile`]: the models that are known by name; [`pull`] fetches one, and
//!   [`where_is`] and [`remove`] look after the cache.
//! - [`LocalModel`]: a model as everyone else sees it. It is loaded at the first request.
//!
//! ```no_run
//! use duologue_local::{Catalogue, LocalModel, LocalOptions, PullOptions, cache_folder, pull};
//!
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let catalogue = Catalogue::default();
//! let file = catalogue.fitting(&cache_folder()).ok_or("there is too little room for any")?;
//! let path = pull(file, &PullOptions::default(), &|_| {}).await?;
//! // For an agent: `Agent::builder(…).model(Arc::new(model))`.
//! let model = LocalModel::from_file("mine", &path, LocalOptions::default());
//! # Ok(())
//! # }
//! ```
//!
//! Inside, from the file up:
//!
//! | module | is |
//! |---|---|
//! | `gguf` | the file format: metadata, and where each tensor's bytes are |
//! | `pack` | weights laid out for the processor, eight rows side by side |
//! | `kernel` | the arithmetic that takes the time; the one place with unsafe code is `kernel::x86` |
//! | `net` | the network: weights, attention, the forward pass, what it remembers of a text |
//! | `tokenizer` | text to tokens and back |
//! | `prompt` | a request as the model was taught to read conversations |
//! | `grammar`, `constraint` | constrained decoding, by `llguidance` |
//! | `ending` | how a constrained answer is brought to its end when room runs out |
//! | `sample`, `answer` | choosing tokens, and what they mean: text, thoughts, calls |
//! | `memory` | the prefix cache |
//! | `engine` | the thread that serves all requests |
//!
//! # Why an engine of our own
//!
//! llama.cpp's bindings need cmake and libclang, which a fresh machine does not have. `candle` needs
//! only cargo, but was measured at 4.4 GB for the 1.5B model and at a third of llama.cpp's prompt
//! speed for the 0.5B one, and takes over three minutes of a release build. This engine does one
//! thing, dense Llama-like networks on a processor, in about 2,500 lines:
//!
//! - Weights are read once and packed with eight rows side by side, in the bits of the file. Every
//!   lane of a register is a row, so nothing is added across lanes, and one kernel serves prompts
//!   and single tokens alike. The file is not mapped: the packed copy is all there is, and the table
//!   of embeddings stays on disk, where a token needs one row of it.
//! - Activations are rounded to bytes with a scale for each 32, products are summed in integers.
//! - Which instructions exist (AVX2, VNNI) is asked at run time. No compiler flags are needed, and
//!   an old processor runs the same program slowly instead of dying of an illegal instruction.
//! - All sums are made in the same order whatever else is computed beside them. So the same seed
//!   gives the same text, alone or in a batch, from the cache or not.
//!
//! # How small models are led
//!
//! Qwen2.5-Coder writes tool tags unreliably. A call is one JSON object, `{"tool_name": …,
//! "params": …}`, and constrained decoding allows nothing else. Where the model may also speak, it
//! must first choose, in the same form: `{"tool_name": "answer"}` and then the text. A few example
//! turns go before the conversation. They, not the instructions, decide what a small model does:
//! of 36 requests for tools the 0.5B one answered 30 with the right call when none of the examples
//! was about arithmetic, whatever the instructions said, and 32 with one; with examples of talk last
//! it called nothing for 20 questions that need no tool. `bench-local choices` has these requests;
//! the tests judge by others.

mod answer;
mod catalogue;
mod constraint;
mod ending;
mod engine;
mod gguf;
mod grammar;
mod half;
mod kernel;
mod memory;
mod model;
mod net;
mod pack;
mod prompt;
mod pull;
mod sample;
mod tokenizer;

pub use catalogue::{Catalogue, ModelFile, Source, cache_folder, remove, where_is};
pub use gguf::GgufError;
pub use model::{LocalModel, LocalOptions, OpenError};
pub use pull::{Listener, Progress, PullError, PullOptions, pull};
