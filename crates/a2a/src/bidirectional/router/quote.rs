//! What was really said. A model that answers another agent in the user's name must have it from the
//! user; one that cannot find an answer likes to repeat the request, or to make something up.

/// What may be told in the user's name: the words that the model copied, and nothing that it made of
/// them. None if they were never said, or only repeat the request, or if the model has no answer.
pub(super) fn told(
    words: &str,
    answer: &str,
    request: &str,
    mut said: impl Iterator<Item = String>,
) -> Option<String> {
    let (quoted, request) = (plain(words), plain(request));
    if quoted.is_empty() || answer.trim().is_empty() {
        return None;
    }
    let is_from_request = holds(&request, &quoted) && quoted.len() * 2 <= request.len();
    if !is_from_request && !said.any(|text| holds(&plain(&text), &quoted)) {
        return None;
    }
    Some(words.trim().to_owned())
}

/// The words of a text, without case and punctuation.
fn plain(text: &str) -> Vec<String> {
    let words = text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    words.map(str::to_lowercase).collect()
}

fn holds(text: &[String], words: &[String]) -> bool {
    text.windows(words.len()).any(|window| window == words)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told_of(words: &str, answer: &str, request: &str) -> Option<String> {
        let said = ["I am allergic to nuts.".to_owned()];
        told(words, answer, request, said.into_iter())
    }

    #[test]
    fn what_the_user_said_is_told() {
        let home = "I live in Rome. What is the weather at home?";
        // What the model adds is not told.
        assert_eq!(told_of("Rome", "Rome, and I pay by card.", home).unwrap(), "Rome");
        assert_eq!(told_of("in rome", "It is sunny.", home).unwrap(), "in rome");
        let nuts = "I am allergic to nuts";
        assert_eq!(told_of(nuts, "Nuts.", "Order a cake.").unwrap(), nuts);
    }

    #[test]
    fn what_was_made_up_or_only_repeats_the_request_is_not() {
        let invoice = "Pay the invoice.";
        assert_eq!(told_of("Pay the invoice", "Pay the invoice", invoice), None);
        assert_eq!(told_of("account 7", "account 7", invoice), None);
        assert_eq!(told_of("", "account 7", invoice), None);
        assert_eq!(told_of("invoice", " ", invoice), None);
        assert_eq!(told_of("the weather at home", "home", "What is the weather at home?"), None);
    }
}
