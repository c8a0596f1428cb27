//! Signed cards: a client that pins an agent's key knows that the card is the agent's own.
//!
//! A card is written in one canonical way (RFC 8785, without fields that hold their default) and signed
//! as a JSON Web Signature. Keys are pinned by the client: one that a card itself points to proves
//! nothing.

use std::fmt;

use a2a::{AgentCard, AgentCardSignature};
use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD as BASE64};
use ring::{
    rand::SystemRandom,
    signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair},
};
use serde_json::{Value, json};

use crate::access::KeySet;

/// Fields that are always there, whatever they hold, or whose being there means something.
const KEPT: [&str; 17] = [
    "name",
    "description",
    "version",
    "supportedInterfaces",
    "capabilities",
    "defaultInputModes",
    "defaultOutputModes",
    "skills",
    "url",
    "protocolBinding",
    "protocolVersion",
    "id",
    "tags",
    "streaming",
    "pushNotifications",
    "extendedAgentCard",
    "organization",
];

/// A key that signs cards, on the curve P-256.
pub struct CardKey {
    id: String,
    pair: EcdsaKeyPair,
}

/// Why a card's signature does not count.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CardError {
    /// The key is none.
    #[error("this is not a PKCS#8 key on the curve P-256")]
    Key,
    /// The pinned keys are none.
    #[error("the pinned keys: {0}")]
    Pinned(String),
    /// Nobody signed the card.
    #[error("the card is not signed")]
    Unsigned,
    /// Nobody who is trusted signed it, or it was changed since.
    #[error("no signature of the card was made by a pinned key")]
    Untrusted,
}

impl CardKey {
    /// A key under an id, from its PKCS#8 bytes.
    pub fn from_pkcs8(id: impl Into<String>, bytes: &[u8]) -> Result<Self, CardError> {
        let random = SystemRandom::new();
        let pair = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, bytes, &random);
        Ok(Self { id: id.into(), pair: pair.map_err(|_| CardError::Key)? })
    }

    /// A new key, as PKCS#8 bytes to be kept.
    pub fn generate() -> Result<Vec<u8>, CardError> {
        let random = SystemRandom::new();
        let key = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &random);
        Ok(key.map_err(|_| CardError::Key)?.as_ref().to_vec())
    }

    /// The public half as a JWKS, for clients to pin.
    pub fn jwks(&self) -> String {
        let point = self.pair.public_key().as_ref();
        let (x, y) = point.get(1..).unwrap_or_default().split_at(32.min(point.len() / 2));
        json!({ "keys": [{
            "kty": "EC", "crv": "P-256", "alg": "ES256", "use": "sig", "kid": self.id,
            "x": BASE64.encode(x), "y": BASE64.encode(y),
        }]})
        .to_string()
    }

    /// Sign a card. Signatures that it has already stay.
    pub fn sign(&self, card: &mut AgentCard) -> Result<(), CardError> {
        let header = json!({ "alg": "ES256", "typ": "JOSE", "kid": self.id }).to_string();
        let protected = BASE64.encode(header);
        let signed = format!("{protected}.{}", BASE64.encode(canonical(card)));
        let signature = self.pair.sign(&SystemRandom::new(), signed.as_bytes());
        let signature = BASE64.encode(signature.map_err(|_| CardError::Key)?);
        let signature = AgentCardSignature { protected, signature, header: None };
        card.signatures.get_or_insert_default().push(signature);
        Ok(())
    }
}

impl fmt::Debug for CardKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CardKey").field("id", &self.id).finish_non_exhaustive()
    }
}

/// Check that one of these keys (a JWKS) signed a card as it is.
pub fn verify_card(card: &AgentCard, pinned: &str) -> Result<(), CardError> {
    let keys = KeySet::parse(pinned).map_err(CardError::Pinned)?;
    let signatures = card.signatures.iter().flatten();
    let payload = BASE64.encode(canonical(card));
    let mut is_signed = false;
    for AgentCardSignature { protected, signature, .. } in signatures {
        is_signed = true;
        if keys.verify_signature(&format!("{protected}.{payload}.{signature}")).is_ok() {
            return Ok(());
        }
    }
    Err(if is_signed { CardError::Untrusted } else { CardError::Unsigned })
}

/// The one way to write a card.
fn canonical(card: &AgentCard) -> String {
    let mut value = serde_json::to_value(card).unwrap_or(Value::Null);
    if let Some(fields) = value.as_object_mut() {
        fields.remove("signatures");
    }
    prune(&mut value);
    let mut text = String::new();
    write(&value, &mut text);
    text
}

/// Leave out fields that hold their default.
fn prune(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.retain(|name, value| {
                KEPT.contains(&name.as_str())
                    || match value {
                        Value::Null | Value::Bool(false) => false,
                        Value::String(text) => !text.is_empty(),
                        Value::Array(items) => !items.is_empty(),
                        Value::Object(map) => name != "securitySchemes" || !map.is_empty(),
                        _ => true,
                    }
            });
            fields.values_mut().for_each(prune);
        }
        Value::Array(items) => items.iter_mut().for_each(prune),
        _ => {}
    }
}

/// Write JSON with its keys in order, however the map keeps them.
fn write(value: &Value, text: &mut String) {
    match value {
        Value::Object(fields) => {
            let mut names: Vec<&String> = fields.keys().collect();
            names.sort_by(|a, b| a.encode_utf16().cmp(b.encode_utf16()));
            text.push('{');
            for (place, name) in names.into_iter().enumerate() {
                if place > 0 {
                    text.push(',');
                }
                text.push_str(&Value::String(name.clone()).to_string());
                text.push(':');
                if let Some(value) = fields.get(name) {
                    write(value, text);
                }
            }
            text.push('}');
        }
        Value::Array(items) => {
            text.push('[');
            for (place, item) in items.iter().enumerate() {
                if place > 0 {
                    text.push(',');
                }
                write(item, text);
            }
            text.push(']');
        }
        // Cards hold no fractions, so numbers are written the same way everywhere.
        other => text.push_str(&other.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn card() -> AgentCard {
        serde_json::from_value(json!({
            "name": "Example Agent", "description": "", "version": "1",
            "supportedInterfaces": [
                {"url": "https://a.example/", "protocolBinding": "JSONRPC", "protocolVersion": "1.0"}
            ],
            "capabilities": {"streaming": false, "pushNotifications": false, "extensions": []},
            "defaultInputModes": ["text/plain"], "defaultOutputModes": [], "skills": [],
        }))
        .unwrap()
    }

    #[test]
    fn a_card_is_written_in_one_way() {
        let expected = "{\"capabilities\":{\"pushNotifications\":false,\"streaming\":false},\
            \"defaultInputModes\":[\"text/plain\"],\"defaultOutputModes\":[],\"description\":\"\",\
            \"name\":\"Example Agent\",\"skills\":[],\"supportedInterfaces\":[{\
            \"protocolBinding\":\"JSONRPC\",\"protocolVersion\":\"1.0\",\"url\":\"https://a.example/\"}],\
            \"version\":\"1\"}";
        assert_eq!(canonical(&card()), expected);
    }

    #[test]
    fn a_signature_counts_only_for_what_was_signed_and_with_a_pinned_key() {
        let key = CardKey::from_pkcs8("k1", &CardKey::generate().unwrap()).unwrap();
        let other = CardKey::from_pkcs8("k1", &CardKey::generate().unwrap()).unwrap();
        let mut card = card();
        assert_eq!(verify_card(&card, &key.jwks()), Err(CardError::Unsigned));
        key.sign(&mut card).unwrap();
        // Through the wire and back.
        let mut card: AgentCard =
            serde_json::from_str(&serde_json::to_string(&card).unwrap()).unwrap();
        assert_eq!(verify_card(&card, &key.jwks()), Ok(()));
        assert_eq!(verify_card(&card, &other.jwks()), Err(CardError::Untrusted));
        other.sign(&mut card).unwrap();
        assert_eq!(verify_card(&card, &other.jwks()), Ok(()), "one good signature is enough");
        "Another".clone_into(&mut card.name);
        assert_eq!(verify_card(&card, &key.jwks()), Err(CardError::Untrusted));
    }
}
