//! Plain text that is a command all the same: `connect to localhost:4201`, `list servers`.
//!
//! Only a whole line counts, so that a request which merely begins like a command reaches the agent.

/// The command that a line is in other words, if it is one.
pub(super) fn command_of(line: &str) -> Option<String> {
    let line = line.trim().trim_end_matches(['.', '!']);
    let lower = line.to_lowercase();
    let words: Vec<&str> = lower.split_whitespace().collect();
    let fixed = match words.as_slice() {
        ["help"] | ["show", "help"] => Some(":help"),
        ["list" | "show", "servers"] | ["list" | "show", "known", "servers"] => Some(":servers"),
        ["list" | "show", "agents"] | ["list" | "show", "known", "agents"] => Some(":servers"),
        ["disconnect"] => Some(":disconnect"),
        ["stop", "listening"] | ["stop", "server"] | ["stop", "the", "server"] => Some(":stop"),
        ["show", "card"] | ["show", "agent", "card"] | ["show", "your", "card"] => Some(":card"),
        ["list" | "show", "tools"] => Some(":tools"),
        ["list" | "show", "tasks"] => Some(":tasks"),
        ["show", "history"] => Some(":history"),
        ["show", "memory"] => Some(":memory"),
        ["show", "session"] => Some(":session show"),
        ["new", "session"] => Some(":session new"),
        ["quit" | "exit"] => Some(":quit"),
        _ => None,
    };
    if let Some(command) = fixed {
        return Some(command.to_owned());
    }
    // Addresses keep their letters as they were typed.
    let typed: Vec<&str> = line.split_whitespace().collect();
    match (words.as_slice(), typed.as_slice()) {
        (["connect", "to", _], [_, _, place]) | (["connect", _], [_, place]) if is_place(place) => {
            Some(format!(":connect {place}"))
        }
        (["listen", port] | ["listen", "on", port] | ["listen", "on", "port", port], _)
            if port.parse::<u16>().is_ok() =>
        {
            Some(format!(":listen {port}"))
        }
        _ => None,
    }
}

/// Whether a word is an address, a host with a port, or the number of an agent.
fn is_place(word: &str) -> bool {
    let has_port = word.rsplit_once(':').is_some_and(|(host, port)| {
        !host.is_empty() && port.trim_end_matches('/').parse::<u16>().is_ok()
    });
    word.contains("://") || has_port || word.parse::<u16>().is_ok() || word == "localhost"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_lines_of_known_words_are_commands() {
        for (line, command) in [
            ("connect to http://Host:4201/A", ":connect http://Host:4201/A"),
            ("Connect localhost:4201.", ":connect localhost:4201"),
            ("connect 2", ":connect 2"),
            ("List servers", ":servers"),
            ("listen on port 4200", ":listen 4200"),
            ("stop the server", ":stop"),
            ("show card", ":card"),
            ("Quit", ":quit"),
        ] {
            assert_eq!(command_of(line).as_deref(), Some(command), "{line}");
        }
    }

    #[test]
    fn what_only_begins_so_is_for_the_agent() {
        for line in [
            "connect the dots",
            "connect to the database and count its rows",
            "list servers of the game and their players",
            "listen to me",
            "what is a quit claim?",
            "help me with this",
        ] {
            assert_eq!(command_of(line), None, "{line}");
        }
    }
}
