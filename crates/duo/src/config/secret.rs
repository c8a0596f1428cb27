//! Secrets do not belong into a configuration: the checks that keep them out, and off the screen.

use super::keys::{Piece, pieces};

/// Endings of names that people give to secrets.
const ENDINGS: [&str; 9] = [
    "apikey",
    "key",
    "token",
    "secret",
    "password",
    "passwd",
    "passphrase",
    "credential",
    "credentials",
];

/// Whether a name says that what it names is a secret.
fn names_a_secret(name: &str) -> bool {
    let mut words = String::new();
    for c in name.chars() {
        // accessToken is access_token.
        if c.is_ascii_uppercase() && words.ends_with(|last: char| last.is_ascii_lowercase()) {
            words.push('_');
        }
        words.push(if c == '-' { '_' } else { c });
    }
    let name = words.to_ascii_lowercase();
    ENDINGS.iter().any(|ending| {
        let Some(before) = name.strip_suffix(ending) else {
            return false;
        };
        before.is_empty() || before.ends_with('_')
    }) || name == "authorization"
}

/// Why a key is refused, if its name says that it holds a secret. Its value is not looked at.
pub(crate) fn refusal(path: &[String]) -> Option<String> {
    let name = path.last().filter(|name| names_a_secret(name))?;
    let provider = match path {
        [section, provider, _] if section == "providers" => provider.as_str(),
        _ => "provider",
    };
    let variable: String = provider
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_uppercase() } else { '_' })
        .collect();
    Some(format!(
        "looks like a secret, and secrets do not belong into a configuration; put it into an \
         environment variable and name that one: api_key_env = \"{variable}_API_KEY\" in \
         [providers.{}] instead of {name}",
        super::path::quote(provider)
    ))
}

/// Whether a text is the name of an environment variable, and not the secret itself.
pub(crate) fn check_variable(text: &str) -> Result<(), String> {
    let starts_well = text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
    let is_name = starts_well && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    // Some providers' keys are letters and digits only; names of variables are not that long and
    // mixed.
    let is_key = text.len() >= 20 && text.chars().any(|c| c.is_ascii_lowercase());
    if is_name && !is_key {
        return Ok(());
    }
    // The text may be the key: it is not repeated.
    Err("expected the name of an environment variable, such as \"OPENAI_API_KEY\", not a key; \
         if this was a key, take it out and set it in the environment"
        .into())
}

/// Whether a text is an address without credentials in it.
pub(crate) fn check_url(text: &str) -> Result<(), String> {
    let rest = text
        .strip_prefix("http://")
        .or_else(|| text.strip_prefix("https://"))
        .ok_or("expected an address that begins with http:// or https://")?;
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    if authority.contains('@') {
        return Err("has a user name or password in it; use api_key_env or headers".into());
    }
    if authority.is_empty() || text.chars().any(|c| c.is_whitespace() || c.is_control()) {
        return Err("expected an address such as \"http://localhost:8000/v1\"".into());
    }
    let query = text.split_once('?').map(|(_, query)| query);
    let parameters = query.into_iter().flat_map(|query| query.split('&'));
    for parameter in parameters {
        let name = parameter.split('=').next().unwrap_or_default();
        if names_a_secret(name) {
            return Err("has a key in it; use api_key_env or headers".into());
        }
    }
    Ok(())
}

/// Whether a header has a name that can be sent and a value that is no secret in the open.
pub(crate) fn check_header(name: &str, value: &str) -> Result<(), String> {
    let is_token = |c: char| c.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~".contains(c);
    if name.is_empty() || !name.chars().all(is_token) {
        return Err("is not the name of a header".into());
    }
    if value.chars().any(|c| c.is_control() && c != '\t') {
        return Err("the value has a control character".into());
    }
    let parts = pieces(value);
    for part in &parts {
        if let Piece::Variable(variable) = part
            && check_variable(variable).is_err()
        {
            return Err("${…} holds something that is not the name of a variable".into());
        }
        if let Piece::Literal(text) = part
            && text.contains("${")
        {
            return Err("has ${ without }".into());
        }
    }
    let has_variable = parts.iter().any(|part| matches!(part, Piece::Variable(_)));
    if names_a_secret(name) && !has_variable {
        return Err(
            "looks like a secret; put it into an environment variable and write ${VARIABLE} in \
             its place"
                .into(),
        );
    }
    Ok(())
}

/// A header's value with everything hidden but the names of its variables.
pub(crate) fn redacted(value: &str) -> String {
    let parts = pieces(value).into_iter().map(|part| match part {
        Piece::Literal(_) => "***".to_owned(),
        Piece::Variable(name) => format!("${{{name}}}"),
    });
    parts.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_secrets_are_recognised_and_others_are_not() {
        for name in ["api_key", "apiKey", "API-KEY", "key", "token", "accessToken", "x-api-key"] {
            assert!(names_a_secret(name), "{name}");
        }
        for name in ["api_key_env", "tokens", "max_tokens", "monkey", "keys", "turkey", "env"] {
            assert!(!names_a_secret(name), "{name}");
        }
    }

    #[test]
    fn a_key_in_place_of_a_variable_is_refused_without_repeating_it() {
        for key in ["sk-ant-abc123", "AIzaSyD4x5y6z7a8b9c0d1e2f3g4h5", "", "a b", "1KEY"] {
            let error = check_variable(key).unwrap_err();
            assert!(key.is_empty() || !error.contains(key), "{error}");
        }
        for name in ["OPENAI_API_KEY", "_X1", "my_key", "A_VERY_LONG_NAME_OF_A_VARIABLE"] {
            assert_eq!(check_variable(name), Ok(()), "{name}");
        }
    }

    #[test]
    fn addresses_carry_no_credentials() {
        for url in ["http://localhost:1/v1", "https://a.b/c?api-version=2", "http://[::1]:8000"] {
            assert_eq!(check_url(url), Ok(()), "{url}");
        }
        for url in [
            "localhost:8000",
            "ftp://a",
            "http://",
            "http://user:pw@host/",
            "https://a.b/?key=abc",
            "https://a.b/?x=1&api_key=abc",
            "http://a b",
        ] {
            let error = check_url(url).unwrap_err();
            assert!(!error.contains("abc") && !error.contains("pw@"), "{error}");
        }
    }

    #[test]
    fn credentials_in_headers_come_from_variables() {
        assert_eq!(check_header("Authorization", "Bearer ${TOKEN}"), Ok(()));
        assert_eq!(check_header("X-Team", "blue"), Ok(()));
        for (name, value) in [
            ("Authorization", "Bearer abc"),
            ("x-api-key", "abc"),
            ("X-Team", "${TEAM"),
            ("X-Team", "${a b}"),
            ("X-Team", "a\r\nX-Other: b"),
            ("X Team", "blue"),
        ] {
            assert!(check_header(name, value).is_err(), "{name}: {value}");
        }
    }

    #[test]
    fn only_the_names_of_variables_are_shown() {
        assert_eq!(redacted("Bearer ${TOKEN}"), "***${TOKEN}");
        assert_eq!(redacted("blue"), "***");
        assert_eq!(redacted("${A}${B}"), "${A}${B}");
    }
}
