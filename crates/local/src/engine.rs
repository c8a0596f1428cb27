//! The engine: one thread that serves all requests to one loaded model.
//!
//! Requests wait in a bounded queue. Up to a few of them are worked on together: every pass through
//! the network takes the next token of each that is writing, and a piece of the prompt of one that
//! is still reading. A request whose stream was dropped is forgotten, in the middle of a pass if
//! need be.

use std::{
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use duologue_core::{Delta, ErrorClass, ModelError, Request, StopReason, Usage};
use tokio::sync::mpsc;

use crate::{
    answer::Answer,
    constraint::Constraint,
    gguf::{Gguf, GgufError},
    grammar::{self, Form, Grammars},
    memory::Memory,
    model::LocalOptions,
    net::{Chunk, Interrupted, Net, Sequence, Workspace},
    prompt::Template,
    sample::{Sampler, Sampling},
    tokenizer::Tokenizer,
};

/// How many tokens of a prompt are read in one pass: enough to use the processor well, few enough
/// that what they touch stays in its cache and others do not wait long.
const PIECE: usize = 128;

/// So few tokens are read beside others without making them wait.
const SHORT: usize = 8;

/// How long an answer may be that nobody set a limit for. Small models can repeat themselves for as
/// long as they are let.
const USUAL: usize = 4_096;
/// The same for an answer with a shape, which is brought to its end there.
const USUAL_SHAPED: usize = 768;

/// A request, and where its answer goes.
#[derive(Debug)]
pub(crate) struct Job {
    pub(crate) request: Request,
    pub(crate) reply: Reply,
    /// Given back when the engine is done with it.
    pub(crate) ticket: Ticket,
}

/// Counts a request for as long as it waits or is worked on.
#[derive(Debug)]
pub(crate) struct Ticket(Arc<AtomicUsize>);

impl Ticket {
    pub(crate) fn new(count: &Arc<AtomicUsize>) -> Self {
        count.fetch_add(1, Ordering::SeqCst);
        Self(Arc::clone(count))
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

type Reply = mpsc::UnboundedSender<Result<Delta, ModelError>>;

/// Load a model, then serve until nobody can ask any more.
pub(crate) fn serve(path: PathBuf, options: &LocalOptions, mut jobs: mpsc::Receiver<Job>) {
    let mut engine = match Engine::load(&path, options) {
        Ok(engine) => engine,
        Err(error) => {
            let error = ModelError::new(ErrorClass::BadRequest, error.to_string());
            while let Some(job) = jobs.blocking_recv() {
                let _ = job.reply.send(Err(error.clone()));
            }
            return;
        }
    };
    loop {
        let next = if engine.running.is_empty() {
            match jobs.blocking_recv() {
                Some(job) => Some(job),
                None => return,
            }
        } else if engine.running.len() < options.parallel.max(1) {
            jobs.try_recv().ok()
        } else {
            None
        };
        match next {
            Some(job) => engine.admit(job),
            None => engine.pass(),
        }
    }
}

struct Engine {
    net: Net,
    tokenizer: Arc<Tokenizer>,
    template: Template,
    grammars: Option<Grammars>,
    memory: Memory,
    space: Workspace,
    running: Vec<Running>,
    context: usize,
    sampling: Sampling,
}

/// A request that is worked on.
struct Running {
    reply: Reply,
    _ticket: Ticket,
    sequence: Sequence,
    /// Tokens that the network has yet to read.
    unread: Vec<u32>,
    constraint: Option<Constraint>,
    sampler: Sampler,
    answer: Answer,
    usage: Usage,
    /// How many more tokens may be written.
    left: usize,
    /// What ends the answer when no more may be written.
    limit: StopReason,
    over: bool,
}

impl Running {
    fn send(&self, deltas: impl IntoIterator<Item = Delta>) {
        for delta in deltas {
            // A closed stream is noticed before the next pass.
            let _ = self.reply.send(Ok(delta));
        }
    }

    fn fail(&mut self, error: ModelError) {
        let _ = self.reply.send(Err(error));
        self.over = true;
    }

    fn complete(&mut self, cut: Option<StopReason>) {
        let (deltas, reason) = self.answer.finish();
        self.send(deltas);
        self.send([Delta::Usage(self.usage), Delta::Stop(cut.unwrap_or(reason))]);
        self.over = true;
    }

    fn write(&mut self, token: u32, tokenizer: &Tokenizer) {
        self.usage.output_tokens += 1;
        self.left = self.left.saturating_sub(1);
        self.unread.push(token);
        let deltas = self.answer.push(tokenizer.shown(token));
        self.send(deltas);
        if self.answer.stopped() {
            self.complete(None);
        } else if self.left == 0 {
            let whole = self.constraint.as_mut().is_some_and(Constraint::is_whole);
            let limit = (!whole).then(|| self.limit.clone());
            self.complete(limit);
        }
    }

    /// Choose the next token by its scores, and take what the constraint then forces.
    fn choose(&mut self, scores: &[f32], tokenizer: &Tokenizer) {
        if let Err(error) = self.try_choose(scores, tokenizer) {
            self.fail(error);
        }
    }

    fn try_choose(&mut self, scores: &[f32], tokenizer: &Tokenizer) -> Result<(), ModelError> {
        let left = self.left;
        let allowed = match &mut self.constraint {
            Some(constraint) => Some(constraint.allowed(left)?),
            None => None,
        };
        let scores = scores.get(..tokenizer.len()).unwrap_or(scores);
        let Some(token) = self.sampler.choose(scores, allowed.as_ref()) else {
            let text =
                "no token of the vocabulary may follow: the model cannot answer in that form";
            return Err(ModelError::new(ErrorClass::Malformed, text));
        };
        if tokenizer.ends.contains(&token) {
            self.usage.output_tokens += 1;
            self.complete(None);
            return Ok(());
        }
        let tokens = match &mut self.constraint {
            Some(constraint) => constraint.take(token, left)?,
            None => vec![token],
        };
        // A constraint that lets nothing be written any more has its answer whole.
        if tokens.is_empty() {
            self.complete(None);
        }
        self.write_all(tokens, tokenizer);
        if !self.over && self.constraint.as_ref().is_some_and(Constraint::is_over) {
            self.complete(None);
        }
        Ok(())
    }

    /// Write tokens until they or the answer end.
    fn write_all(&mut self, tokens: Vec<u32>, tokenizer: &Tokenizer) {
        for token in tokens {
            if self.over {
                return;
            }
            if tokenizer.ends.contains(&token) {
                return self.complete(None);
            }
            self.write(token, tokenizer);
        }
    }
}

impl Engine {
    fn load(path: &std::path::Path, options: &LocalOptions) -> Result<Self, GgufError> {
        let mut file = Gguf::open(path)?;
        let tokenizer = Arc::new(Tokenizer::load(&mut file)?);
        let template = Template::load(&file, &tokenizer)?;
        let net = Net::load(file, options.threads())?;
        let context =
            options.context.map_or(net.shape.context, |tokens| tokens.min(net.shape.context));
        Ok(Self {
            memory: Memory::new(options.cache_bytes, net.shape.cache_bytes_per_token()),
            net,
            tokenizer,
            template,
            grammars: None,
            space: Workspace::default(),
            running: Vec::new(),
            context,
            sampling: Sampling {
                temperature: options.temperature,
                top_p: options.top_p,
                top_k: options.top_k,
            },
        })
    }

    fn admit(&mut self, job: Job) {
        if job.reply.is_closed() {
            return;
        }
        let reply = job.reply.clone();
        match self.prepare(job) {
            Ok(running) => self.running.push(running),
            Err(error) => {
                let _ = reply.send(Err(error));
            }
        }
    }

    fn prepare(&mut self, job: Job) -> Result<Running, ModelError> {
        let Job { request, reply, ticket } = job;
        let request = &request;
        let form = grammar::form(request)?;
        let tokens = self.template.tokens(request, &self.tokenizer)?;
        let room = self.context.saturating_sub(tokens.len());
        if room == 0 {
            return Err(ModelError::new(
                ErrorClass::ContextOverflow,
                format!(
                    "the prompt has {} tokens, and this model reads at most {}",
                    tokens.len(),
                    self.context
                ),
            ));
        }
        let constraint = if form == Form::Text {
            None
        } else {
            let grammars = match &mut self.grammars {
                Some(grammars) => grammars,
                empty => empty.insert(Grammars::new(&self.tokenizer, self.net.shape.vocabulary)?),
            };
            grammars.constrain(request)?
        };
        let sampling = Sampling {
            temperature: request
                .options
                .temperature
                .map_or(self.sampling.temperature, |t| t as f32),
            ..self.sampling
        };
        let usual = if request.options.output.is_some() { USUAL_SHAPED } else { USUAL };
        let wanted = request.options.max_tokens.map_or(usual, |max| max as usize);
        let sequence = self.recall(&tokens);
        let known = sequence.tokens().len();
        let mut running = Running {
            reply,
            _ticket: ticket,
            unread: tokens.get(known..).unwrap_or_default().to_vec(),
            sequence,
            constraint,
            sampler: Sampler::new(sampling, request.options.seed),
            answer: Answer::new(&form, request.options.stop.clone()),
            usage: Usage {
                input_tokens: tokens.len() as u64,
                cached_tokens: known as u64,
                ..Usage::default()
            },
            left: wanted.min(room),
            limit: if room < wanted && request.options.max_tokens.is_none() {
                StopReason::Other("the context is full".to_owned())
            } else {
                StopReason::MaxTokens
            },
            over: false,
        };
        if wanted == 0 {
            running.complete(Some(StopReason::MaxTokens));
        }
        // What the form forces from the start is part of what is read first.
        if let Some(constraint) = &mut running.constraint {
            let forced = constraint.begin(running.left);
            running.write_all(forced, &self.tokenizer);
        }
        Ok(running)
    }

    /// What was read of a text before: by an earlier request, or by one that is still running.
    fn recall(&mut self, tokens: &[u32]) -> Sequence {
        let best = self.memory.recall(tokens);
        let useful = tokens.len().saturating_sub(1);
        let live = self
            .running
            .iter()
            .map(|running| {
                let pairs = running.sequence.tokens().iter().zip(tokens);
                let same = pairs.take_while(|(a, b)| a == b).count();
                (same.min(useful), running)
            })
            .max_by_key(|(same, _)| *same);
        match live {
            Some((same, running)) if same > best.tokens().len() => running.sequence.prefix(same),
            _ => best,
        }
    }

    /// The request whose prompt is read next. One at a time: two would make each other, and everyone
    /// else, wait. Of requests that came together and begin alike, the others then have little left
    /// to read.
    fn reader(&mut self) -> Option<usize> {
        let index = self.running.iter().position(|running| running.unread.len() > SHORT)?;
        let running = self.running.get(index)?;
        let known = running.sequence.tokens().len();
        let mut tokens = running.sequence.tokens().to_vec();
        tokens.extend_from_slice(&running.unread);
        let read = self.recall(&tokens);
        let running = self.running.get_mut(index)?;
        if let Some(more) = read.tokens().len().checked_sub(known).filter(|more| *more > 0) {
            running.unread.drain(..more);
            running.sequence = read;
            let cached = running.usage.cached_tokens + more as u64;
            running.usage.cached_tokens = cached.min(running.usage.input_tokens);
        }
        Some(index)
    }

    /// One pass through the network for everyone who waits.
    fn pass(&mut self) {
        self.settle();
        let reader = self.reader();
        let mut pieces = Vec::new();
        for (index, running) in self.running.iter().enumerate() {
            if running.unread.len() <= SHORT || reader == Some(index) {
                pieces.push((index, running.unread.len().min(PIECE)));
            }
        }
        let mut chunks = Vec::with_capacity(pieces.len());
        let mut replies = Vec::with_capacity(pieces.len());
        let mut wanted = pieces.iter().peekable();
        for (index, running) in self.running.iter_mut().enumerate() {
            if let Some((_, len)) = wanted.next_if(|(wanted, _)| *wanted == index) {
                replies.push(running.reply.clone());
                chunks.push(Chunk {
                    tokens: running.unread.iter().take(*len).copied().collect(),
                    scores: *len == running.unread.len(),
                    sequence: &mut running.sequence,
                });
            }
        }
        if chunks.is_empty() {
            return;
        }
        let cancelled = || replies.iter().any(mpsc::UnboundedSender::is_closed);
        let scores = match self.net.forward(&mut self.space, &mut chunks, &cancelled) {
            Ok(scores) => scores,
            // Nothing was lost: the others are taken up again in the next pass.
            Err(Interrupted::Cancelled) => return self.settle(),
            Err(Interrupted::File(error)) => {
                for running in &mut self.running {
                    running.fail(ModelError::new(ErrorClass::BadRequest, error.to_string()));
                }
                return;
            }
        };
        let mut scores = scores.iter();
        for (index, len) in pieces {
            let Some(running) = self.running.get_mut(index) else {
                continue;
            };
            running.unread.drain(..len);
            if running.unread.is_empty()
                && let Some(scores) = scores.next()
            {
                running.choose(scores, &self.tokenizer);
            }
        }
        self.settle();
    }

    /// Let go of requests that are over or that nobody waits for, and keep what they read.
    fn settle(&mut self) {
        let mut index = 0;
        while let Some(running) = self.running.get(index) {
            if running.over || running.reply.is_closed() {
                let running = self.running.remove(index);
                self.memory.keep(running.sequence);
            } else {
                index += 1;
            }
        }
    }
}

/// How long a request that found the queue full should wait.
pub(crate) const RETRY: Duration = Duration::from_secs(1);
