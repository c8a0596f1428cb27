//! Keeps secrets in the journal so that only this server reads them.

use a2a::A2AError;
use base64::{Engine, engine::general_purpose::STANDARD_NO_PAD as BASE64};
use ring::{
    aead::{Aad, CHACHA20_POLY1305, LessSafeKey, NONCE_LEN, Nonce, UnboundKey},
    rand::{SecureRandom, SystemRandom},
};
use serde::{Serialize, de::DeserializeOwned};

pub(super) struct Vault {
    key: LessSafeKey,
    random: SystemRandom,
}

impl Vault {
    /// A vault with this key, or with one that ends with the process.
    pub(super) fn new(key: Option<[u8; 32]>) -> Result<Self, A2AError> {
        let random = SystemRandom::new();
        let bytes = match key {
            Some(bytes) => bytes,
            None => {
                let mut bytes = [0; 32];
                random.fill(&mut bytes).map_err(|_| broken())?;
                bytes
            }
        };
        let key = UnboundKey::new(&CHACHA20_POLY1305, &bytes).map_err(|_| broken())?;
        Ok(Self { key: LessSafeKey::new(key), random })
    }

    pub(super) fn seal<T: Serialize>(&self, secret: &T) -> Result<String, A2AError> {
        let mut nonce = [0; NONCE_LEN];
        self.random.fill(&mut nonce).map_err(|_| broken())?;
        let mut text = serde_json::to_vec(secret).map_err(|_| broken())?;
        self.key
            .seal_in_place_append_tag(Nonce::assume_unique_for_key(nonce), Aad::empty(), &mut text)
            .map_err(|_| broken())?;
        let mut sealed = nonce.to_vec();
        sealed.append(&mut text);
        Ok(BASE64.encode(sealed))
    }

    pub(super) fn open<T: DeserializeOwned>(&self, sealed: &str) -> Result<T, String> {
        let read = || {
            let bytes = BASE64.decode(sealed).ok()?;
            let (nonce, text) = bytes.split_at_checked(NONCE_LEN)?;
            let nonce = Nonce::try_assume_unique_for_key(nonce).ok()?;
            let mut text = text.to_vec();
            let plain = self.key.open_in_place(nonce, Aad::empty(), &mut text).ok()?;
            serde_json::from_slice(plain).ok()
        };
        read().ok_or_else(|| "its credentials were sealed with another key".to_owned())
    }
}

fn broken() -> A2AError {
    A2AError::internal("The credentials cannot be kept safe")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_opens_with_its_key_only() {
        let vault = Vault::new(Some([7; 32])).unwrap();
        let sealed = vault.seal(&"hunter2").unwrap();
        assert!(!sealed.contains("hunter2"));
        let again = Vault::new(Some([7; 32])).unwrap();
        assert_eq!(again.open::<String>(&sealed).unwrap(), "hunter2");
        assert!(Vault::new(None).unwrap().open::<String>(&sealed).is_err());
        assert!(vault.open::<String>("garbage").is_err());
    }
}
