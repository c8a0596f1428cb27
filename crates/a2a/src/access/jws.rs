//! JSON Web Tokens and the keys that they are signed with.
//!
//! The algorithm is the key's and not the token's, so a token cannot choose how it is checked.

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD as BASE64};
use ring::signature::{
    ECDSA_P256_SHA256_FIXED, ECDSA_P384_SHA384_FIXED, ED25519, RSA_PKCS1_2048_8192_SHA256,
    RSA_PKCS1_2048_8192_SHA384, RSA_PKCS1_2048_8192_SHA512, RsaPublicKeyComponents,
    UnparsedPublicKey,
};
use serde::Deserialize;
use serde_json::Value;

/// How far clocks may differ, in seconds.
const LEEWAY: i64 = 60;

/// Public keys, as a JWKS file holds them.
#[derive(Debug)]
pub(crate) struct KeySet(Vec<Key>);

#[derive(Debug)]
struct Key {
    id: Option<String>,
    algorithm: Option<String>,
    material: Material,
}

#[derive(Debug)]
enum Material {
    Rsa { n: Vec<u8>, e: Vec<u8> },
    P256(Vec<u8>),
    P384(Vec<u8>),
    Ed25519(Vec<u8>),
}

#[derive(Deserialize)]
struct Jwks {
    keys: Vec<Jwk>,
}

#[derive(Deserialize)]
struct Jwk {
    kty: String,
    #[serde(default)]
    kid: Option<String>,
    #[serde(default)]
    alg: Option<String>,
    #[serde(default)]
    crv: Option<String>,
    #[serde(default)]
    n: Option<String>,
    #[serde(default)]
    e: Option<String>,
    #[serde(default)]
    x: Option<String>,
    #[serde(default)]
    y: Option<String>,
}

#[derive(Deserialize)]
struct Header {
    alg: String,
    #[serde(default)]
    kid: Option<String>,
    #[serde(default)]
    crit: Option<Value>,
}

/// What a token says, its signature checked.
#[derive(Debug, Deserialize)]
pub(crate) struct Claims {
    #[serde(default)]
    sub: Option<String>,
    #[serde(default)]
    iss: Option<String>,
    #[serde(default)]
    aud: Option<Value>,
    exp: Number,
    #[serde(default)]
    nbf: Option<Number>,
}

/// Seconds since 1970, perhaps with a fraction. Anything else is refused rather than passed over.
#[derive(Debug, Deserialize)]
#[serde(transparent)]
struct Number(f64);

impl KeySet {
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let set: Jwks =
            serde_json::from_str(text).map_err(|error| format!("not a JWKS: {error}"))?;
        let keys: Result<Vec<Key>, String> = set.keys.into_iter().map(Jwk::key).collect();
        let keys = keys?;
        if keys.is_empty() {
            return Err("it holds no keys".to_owned());
        }
        Ok(Self(keys))
    }

    /// What a token says, if one of the keys signed it.
    pub(crate) fn verify(&self, token: &str) -> Result<Claims, &'static str> {
        let payload = self.verify_signature(token)?;
        serde_json::from_slice(&payload).map_err(|_| "the token's claims are wrong")
    }

    /// What was signed, if one of the keys signed it.
    pub(crate) fn verify_signature(&self, token: &str) -> Result<Vec<u8>, &'static str> {
        let malformed = "the token is malformed";
        let (signed, signature) = token.rsplit_once('.').ok_or(malformed)?;
        let (header, payload) = signed.split_once('.').ok_or(malformed)?;
        let decode = |text: &str| BASE64.decode(text).map_err(|_| malformed);
        let header: Header =
            serde_json::from_slice(&decode(header)?).map_err(|_| "the token's header is wrong")?;
        if header.crit.is_some() {
            return Err("the token asks for extensions that are not known");
        }
        let signature = decode(signature)?;
        let is_signed = self
            .0
            .iter()
            .filter(|key| header.kid.is_none() || key.id.is_none() || key.id == header.kid)
            .any(|key| key.verifies(&header.alg, signed.as_bytes(), &signature));
        if !is_signed {
            return Err("the token is not signed by a known key");
        }
        decode(payload)
    }
}

impl Key {
    fn verifies(&self, algorithm: &str, message: &[u8], signature: &[u8]) -> bool {
        if self.algorithm.as_deref().is_some_and(|wanted| wanted != algorithm) {
            return false;
        }
        match (&self.material, algorithm) {
            (Material::Rsa { n, e }, "RS256" | "RS384" | "RS512") => {
                let parameters = match algorithm {
                    "RS256" => &RSA_PKCS1_2048_8192_SHA256,
                    "RS384" => &RSA_PKCS1_2048_8192_SHA384,
                    _ => &RSA_PKCS1_2048_8192_SHA512,
                };
                let key = RsaPublicKeyComponents { n, e };
                key.verify(parameters, message, signature).is_ok()
            }
            (Material::P256(point), "ES256") => {
                UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, point)
                    .verify(message, signature)
                    .is_ok()
            }
            (Material::P384(point), "ES384") => {
                UnparsedPublicKey::new(&ECDSA_P384_SHA384_FIXED, point)
                    .verify(message, signature)
                    .is_ok()
            }
            (Material::Ed25519(key), "EdDSA") => {
                UnparsedPublicKey::new(&ED25519, key).verify(message, signature).is_ok()
            }
            _ => false,
        }
    }
}

impl Jwk {
    fn key(self) -> Result<Key, String> {
        let name = self.kid.clone().unwrap_or_else(|| "without a kid".to_owned());
        let field = |text: &Option<String>, field: &str| {
            let text = text.as_deref().ok_or_else(|| format!("key {name}: {field} is missing"))?;
            BASE64.decode(text).map_err(|_| format!("key {name}: {field} is not base64url"))
        };
        let point = || {
            let mut point = vec![4];
            point.extend(field(&self.x, "x")?);
            point.extend(field(&self.y, "y")?);
            Ok::<_, String>(point)
        };
        let material = match (self.kty.as_str(), self.crv.as_deref()) {
            ("RSA", _) => Material::Rsa { n: field(&self.n, "n")?, e: field(&self.e, "e")? },
            ("EC", Some("P-256")) => Material::P256(point()?),
            ("EC", Some("P-384")) => Material::P384(point()?),
            ("OKP", Some("Ed25519")) => Material::Ed25519(field(&self.x, "x")?),
            (kty, crv) => {
                let crv = crv.unwrap_or("no curve");
                return Err(format!("key {name}: {kty} with {crv} is not known"));
            }
        };
        Ok(Key { id: self.kid, algorithm: self.alg, material })
    }
}

impl Claims {
    pub(crate) fn subject(&self) -> Option<&str> {
        self.sub.as_deref()
    }

    pub(crate) fn issuer(&self) -> Option<&str> {
        self.iss.as_deref()
    }

    pub(crate) fn check(
        &self,
        now: i64,
        issuer: Option<&str>,
        audience: Option<&str>,
    ) -> Result<(), &'static str> {
        if self.exp.0 <= (now - LEEWAY) as f64 {
            return Err("the token has expired");
        }
        if self.nbf.as_ref().is_some_and(|nbf| nbf.0 > (now + LEEWAY) as f64) {
            return Err("the token is not valid yet");
        }
        if issuer.is_some_and(|issuer| self.iss.as_deref() != Some(issuer)) {
            return Err("the token is of another issuer");
        }
        let is_for = |audience: &str| match &self.aud {
            Some(Value::String(one)) => one == audience,
            Some(Value::Array(all)) => all.iter().any(|one| one.as_str() == Some(audience)),
            _ => false,
        };
        if audience.is_some_and(|audience| !is_for(audience)) {
            return Err("the token is for another audience");
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use ring::{
        rand::SystemRandom,
        signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair},
    };
    use serde_json::json;

    use super::*;

    struct Signer {
        pair: EcdsaKeyPair,
        random: SystemRandom,
    }

    impl Signer {
        fn new() -> Self {
            let random = SystemRandom::new();
            let alg = &ECDSA_P256_SHA256_FIXED_SIGNING;
            let key = EcdsaKeyPair::generate_pkcs8(alg, &random).unwrap();
            let pair = EcdsaKeyPair::from_pkcs8(alg, key.as_ref(), &random).unwrap();
            Self { pair, random }
        }

        fn jwks(&self) -> String {
            let point = self.pair.public_key().as_ref();
            let (x, y) = (BASE64.encode(&point[1..33]), BASE64.encode(&point[33..]));
            json!({"keys": [{"kty": "EC", "crv": "P-256", "kid": "k1", "x": x, "y": y}]})
                .to_string()
        }

        fn token(&self, header: Value, claims: Value) -> String {
            let encode = |value: Value| BASE64.encode(value.to_string());
            let signed = format!("{}.{}", encode(header), encode(claims));
            let signature = self.pair.sign(&self.random, signed.as_bytes()).unwrap();
            format!("{signed}.{}", BASE64.encode(signature))
        }
    }

    #[test]
    fn a_token_is_taken_only_if_a_known_key_signed_it() {
        let signer = Signer::new();
        let keys = KeySet::parse(&signer.jwks()).unwrap();
        let claims = json!({"sub": "ada", "iss": "i", "aud": ["a", "b"], "exp": 1_000_000});
        let header = json!({"alg": "ES256", "kid": "k1"});
        let token = signer.token(header.clone(), claims.clone());
        assert_eq!(keys.verify(&token).unwrap().subject(), Some("ada"));
        let other = Signer::new().token(header, claims.clone());
        assert!(keys.verify(&other).is_err());
        let unsigned = signer.token(json!({"alg": "none"}), claims.clone());
        assert!(keys.verify(&unsigned).is_err());
        // The key must not be used with an algorithm that is not its own.
        assert!(keys.verify(&signer.token(json!({"alg": "HS256"}), claims)).is_err());
        for garbage in ["", "a", "a.b", "a.b.c", "...."] {
            assert!(keys.verify(garbage).is_err());
        }
    }

    #[test]
    fn claims_count_in_their_time_and_for_their_audience() {
        let claims = |value: Value| serde_json::from_value::<Claims>(value);
        let good = claims(json!({"iss": "i", "aud": "a", "exp": 1000, "nbf": 500.5})).unwrap();
        assert_eq!(good.check(700, Some("i"), Some("a")), Ok(()));
        assert!(good.check(1061, None, None).is_err());
        assert!(good.check(100, None, None).is_err());
        assert!(good.check(700, Some("j"), None).is_err());
        assert!(good.check(700, None, Some("b")).is_err());
        // A time that is no number is no reason to leave the check out.
        assert!(claims(json!({"exp": "never"})).is_err());
        assert!(claims(json!({"exp": 5, "nbf": "x"})).is_err());
        assert!(claims(json!({})).is_err());
    }
}
