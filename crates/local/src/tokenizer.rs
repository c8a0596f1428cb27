//! From text to tokens and back, with the vocabulary that the model file carries.
//!
//! Two families are known: byte-pair merging over bytes (`gpt2`: Qwen, Llama 3, SmolLM) and
//! score-based merging over characters (`llama`: Llama 2, TinyLlama). Unicode text is not
//! normalised first: what a person wrote is what the model reads.

mod merge;
mod split;

use std::collections::HashMap;

use crate::gguf::{Gguf, GgufError, Value};
use merge::{Symbol, merge};
use split::Splitter;

/// Hides a special token in a text: put after its first character, it is dropped again when the
/// text has been cut at the real special tokens. It is a code point that no text may exchange.
const SHIELD: char = '\u{fdd0}';

/// What a token is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TokenKind {
    /// A piece of text.
    Text,
    /// A piece of text that is always a token of its own, such as `<think>`.
    Marker,
    /// Steers the conversation and is never shown.
    Control,
}

/// A vocabulary.
#[derive(Debug)]
pub(crate) struct Tokenizer {
    /// What each token stands for.
    bytes: Vec<Vec<u8>>,
    /// Tokens that are written as themselves, the longest first.
    special: Vec<(String, u32)>,
    kinds: Vec<TokenKind>,
    family: Family,
    /// What begins every text.
    pub(crate) begin: Option<u32>,
    /// What ends an answer.
    pub(crate) ends: Vec<u32>,
}

#[derive(Debug)]
enum Family {
    Bytes {
        splitter: Splitter,
        /// The token of each byte.
        alphabet: Vec<u32>,
        /// For two neighbouring tokens: how early they merge, and into what.
        merges: HashMap<(u32, u32), (u32, u32)>,
        /// Words that are tokens are taken whole, whatever the merges say.
        whole: Option<HashMap<Vec<u8>, u32>>,
    },
    Characters {
        ids: HashMap<Vec<u8>, u32>,
        scores: Vec<f32>,
        /// The tokens of single bytes, for characters that are no token.
        alphabet: Vec<u32>,
        space_first: bool,
    },
}

impl Tokenizer {
    pub(crate) fn load(file: &mut Gguf) -> Result<Self, GgufError> {
        let Some(Value::Texts(texts)) = file.take("tokenizer.ggml.tokens") else {
            return Err(file.invalid("it carries no vocabulary"));
        };
        let kinds = match file.take("tokenizer.ggml.token_type") {
            Some(Value::Integers(kinds)) if kinds.len() == texts.len() => kinds,
            _ => vec![1; texts.len()],
        };
        let ids: HashMap<&str, u32> =
            (0..).zip(&texts).map(|(id, text)| (text.as_str(), id)).collect();
        let family = match file.text("tokenizer.ggml.model") {
            Some("gpt2") => bytes_family(file, &texts, &ids)?,
            Some("llama") => characters_family(file, &texts)?,
            other => {
                return Err(file.unsupported(format!(
                    "the tokenizer {other:?} is not supported (gpt2 and llama are)"
                )));
            }
        };
        let mut special: Vec<(String, u32)> = Vec::new();
        let mut bytes = Vec::with_capacity(texts.len());
        for ((id, text), kind) in (0..).zip(&texts).zip(&kinds) {
            let itself = matches!(kind, 3 | 4);
            if itself && !text.is_empty() {
                special.push((text.clone(), id));
            }
            bytes.push(match (&family, itself) {
                (Family::Bytes { .. }, false) => split::unspell(text),
                (Family::Characters { .. }, false) => byte_token(text)
                    .map_or_else(|| text.replace('▁', " ").into_bytes(), |b| vec![b]),
                (_, true) => text.clone().into_bytes(),
            });
        }
        special.sort_by(|a, b| b.0.len().cmp(&a.0.len()).then(a.1.cmp(&b.1)));
        let id = |key: &str| {
            let id = u32::try_from(file.count(key)?).ok()?;
            ((id as usize) < texts.len()).then_some(id)
        };
        let mut ends: Vec<u32> = ["eos", "eot", "eom"]
            .iter()
            .filter_map(|name| id(&format!("tokenizer.ggml.{name}_token_id")))
            .collect();
        for name in
            ["<|im_end|>", "<|endoftext|>", "<|eot_id|>", "<|eom_id|>", "<|end_of_text|>", "</s>"]
        {
            if let Some(id) = ids.get(name) {
                ends.push(*id);
            }
        }
        ends.sort_unstable();
        ends.dedup();
        // Files of the character family begin texts with a token unless they say otherwise.
        let begins = file
            .flag("tokenizer.ggml.add_bos_token")
            .unwrap_or(matches!(family, Family::Characters { .. }));
        let begin = begins.then(|| id("tokenizer.ggml.bos_token_id")).flatten();
        let kinds = kinds.iter().map(|kind| match kind {
            3 | 5 => TokenKind::Control,
            4 => TokenKind::Marker,
            _ => TokenKind::Text,
        });
        Ok(Self { bytes, special, kinds: kinds.collect(), family, begin, ends })
    }

    /// How many tokens there are.
    pub(crate) fn len(&self) -> usize {
        self.bytes.len()
    }

    /// What a token stands for.
    pub(crate) fn bytes(&self, token: u32) -> &[u8] {
        self.bytes.get(token as usize).map_or(&[], Vec::as_slice)
    }

    /// What a token is for.
    pub(crate) fn kind(&self, token: u32) -> TokenKind {
        let kind = self.kinds.get(token as usize);
        kind.copied().unwrap_or(TokenKind::Control)
    }

    /// What a reader sees of a token.
    pub(crate) fn shown(&self, token: u32) -> &[u8] {
        match self.kind(token) {
            TokenKind::Text | TokenKind::Marker => self.bytes(token),
            TokenKind::Control => &[],
        }
    }

    /// What a token is called in the file.
    pub(crate) fn special_text(&self, token: u32) -> Option<&str> {
        let found = self.special.iter().find(|(_, id)| *id == token)?;
        Some(&found.0)
    }

    /// The same text with special tokens in it made harmless: after [`Self::encode`] they are
    /// ordinary characters. Use it on everything that somebody else wrote.
    pub(crate) fn shield(&self, text: &str) -> String {
        let mut out = String::with_capacity(text.len());
        let mut rest = text;
        while let Some(first) = rest.chars().next() {
            // The shield itself in a text would vanish; what stands for the unreadable stays.
            out.push(if first == SHIELD { '\u{fffd}' } else { first });
            if self.special_at(rest).is_some() {
                out.push(SHIELD);
            }
            rest = rest.get(first.len_utf8()..).unwrap_or_default();
        }
        out
    }

    /// The tokens of a text in which special tokens count.
    pub(crate) fn encode(&self, text: &str) -> Vec<u32> {
        let mut tokens = Vec::with_capacity(text.len() / 3);
        let mut plain_from = 0;
        let mut at = 0;
        let mut after_special = true;
        while let Some(rest) = text.get(at..).filter(|rest| !rest.is_empty()) {
            if let Some((special, id)) = self.special_at(rest) {
                self.encode_plain(
                    text.get(plain_from..at).unwrap_or_default(),
                    after_special,
                    &mut tokens,
                );
                tokens.push(*id);
                at += special.len();
                plain_from = at;
                after_special = true;
            } else {
                at += rest.chars().next().map_or(1, char::len_utf8);
            }
        }
        self.encode_plain(text.get(plain_from..).unwrap_or_default(), after_special, &mut tokens);
        tokens
    }

    /// The tokens of a text without special ones.
    pub(crate) fn encode_text(&self, text: &str) -> Vec<u32> {
        let mut tokens = Vec::with_capacity(text.len() / 3);
        self.encode_plain(text, false, &mut tokens);
        tokens
    }

    fn special_at(&self, text: &str) -> Option<&(String, u32)> {
        // Almost no place in a text begins with one of the few first bytes of special tokens.
        let first = text.as_bytes().first()?;
        self.special.iter().find(|(special, _)| {
            special.as_bytes().first() == Some(first) && text.starts_with(special)
        })
    }

    fn encode_plain(&self, text: &str, begins: bool, tokens: &mut Vec<u32>) {
        if text.is_empty() {
            return;
        }
        let unshielded;
        let text = if text.contains(SHIELD) {
            unshielded = text.replace(SHIELD, "");
            &unshielded
        } else {
            text
        };
        match &self.family {
            Family::Bytes { splitter, alphabet, merges, whole } => {
                splitter.words(text, &mut |word| {
                    if let Some(id) = whole.as_ref().and_then(|ids| ids.get(word.as_bytes())) {
                        tokens.push(*id);
                        return;
                    }
                    let symbols = word.bytes().map(|byte| Symbol {
                        id: alphabet.get(usize::from(byte)).copied(),
                        len: 1,
                    });
                    let pair = |left: &Symbol, right: &Symbol, _: &[u8]| {
                        let (rank, id) = merges.get(&(left.id?, right.id?))?;
                        Some((f64::from(*rank), *id))
                    };
                    let merged = merge(symbols.collect(), word.as_bytes(), pair);
                    tokens.extend(merged.iter().filter_map(|symbol| symbol.id));
                });
            }
            Family::Characters { ids, scores, alphabet, space_first } => {
                let mut spelled = text.replace(' ', "▁");
                if *space_first && begins {
                    spelled.insert(0, '▁');
                }
                let mut piece = [0; 4];
                let symbols = spelled.chars().map(|char| Symbol {
                    id: ids.get(char.encode_utf8(&mut piece).as_bytes()).copied(),
                    len: char.len_utf8(),
                });
                let pair = |_: &Symbol, _: &Symbol, both: &[u8]| {
                    let id = *ids.get(both)?;
                    Some((-f64::from(*scores.get(id as usize)?), id))
                };
                let mut rest = spelled.as_bytes();
                for symbol in merge(symbols.collect(), spelled.as_bytes(), pair) {
                    let (mine, others) = rest.split_at_checked(symbol.len).unwrap_or((rest, &[]));
                    rest = others;
                    match symbol.id {
                        Some(id) => tokens.push(id),
                        None => tokens.extend(
                            mine.iter().filter_map(|byte| alphabet.get(usize::from(*byte))),
                        ),
                    }
                }
            }
        }
    }
}

fn bytes_family(
    file: &mut Gguf,
    texts: &[String],
    ids: &HashMap<&str, u32>,
) -> Result<Family, GgufError> {
    let pre = file.text("tokenizer.ggml.pre").unwrap_or("default").to_owned();
    let splitter = Splitter::named(&pre).ok_or_else(|| {
        file.unsupported(format!(
            "the way its tokenizer {pre:?} splits words is not supported (qwen2, llama-bpe, gpt-2 \
             and smollm are)"
        ))
    })?;
    let Some(Value::Texts(rules)) = file.take("tokenizer.ggml.merges") else {
        return Err(file.invalid("its vocabulary has no merges"));
    };
    let mut merges = HashMap::with_capacity(rules.len());
    let mut both = String::new();
    for (rank, rule) in (0..).zip(&rules) {
        // The first character may itself be the space that separates the parts.
        let cut = rule.char_indices().skip(1).find(|(_, char)| *char == ' ');
        let Some((left, right)) =
            cut.and_then(|(at, _)| Some((rule.get(..at)?, rule.get(at + 1..)?)))
        else {
            return Err(file.invalid(format!("its merge {rule:?} is not a pair")));
        };
        both.clear();
        both.push_str(left);
        both.push_str(right);
        if let (Some(left), Some(right), Some(id)) =
            (ids.get(left), ids.get(right), ids.get(both.as_str()))
        {
            merges.entry((*left, *right)).or_insert((rank, *id));
        }
    }
    let mut alphabet = Vec::with_capacity(256);
    for byte in 0..=255 {
        let spelled = split::spell(byte).to_string();
        let id = ids.get(spelled.as_str());
        alphabet.push(*id.ok_or_else(|| file.invalid(format!("no token for byte {byte}")))?);
    }
    let whole = splitter
        .takes_whole_words()
        .then(|| (0..).zip(texts).map(|(id, text)| (split::unspell(text), id)).collect());
    Ok(Family::Bytes { splitter, alphabet, merges, whole })
}

fn characters_family(file: &mut Gguf, texts: &[String]) -> Result<Family, GgufError> {
    let scores = match file.take("tokenizer.ggml.scores") {
        Some(Value::Floats(scores)) if scores.len() == texts.len() => scores,
        _ => return Err(file.invalid("its vocabulary has no scores")),
    };
    let mut alphabet = vec![0; 256];
    for (id, text) in (0..).zip(texts) {
        if let Some(place) = byte_token(text).and_then(|byte| alphabet.get_mut(usize::from(byte))) {
            *place = id;
        }
    }
    Ok(Family::Characters {
        ids: (0..).zip(texts).map(|(id, text)| (text.clone().into_bytes(), id)).collect(),
        scores,
        alphabet,
        space_first: file.flag("tokenizer.ggml.add_space_prefix").unwrap_or(true),
    })
}

/// The byte that a token such as `<0x0A>` stands for.
fn byte_token(text: &str) -> Option<u8> {
    let digits = text.strip_prefix("<0x")?.strip_suffix('>')?;
    (digits.len() == 2).then(|| u8::from_str_radix(digits, 16).ok())?
}
