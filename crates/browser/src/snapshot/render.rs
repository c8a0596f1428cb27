//! Lines as text for a model, within a budget of tokens.

use super::{
    page::{Item, Line, Piece, Place},
    refs::{Reference, Refs},
    text::clip,
};

/// The longest text between two things to act on.
const LONGEST_TEXT: usize = 400;

/// Whether the addresses of links are shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Addresses {
    #[default]
    Hidden,
    Shown,
}

/// Gives numbers to nodes: the number of a document's slot, and its references.
pub(crate) trait Numbers {
    fn refs(&mut self, slot: usize) -> Option<(u32, &mut Refs)>;
}

/// Lines as a text of at most so many tokens. What does not fit is counted; what is in view goes
/// first.
pub(crate) fn render(
    lines: &[Line],
    numbers: &mut dyn Numbers,
    most_tokens: usize,
    addresses: Addresses,
) -> String {
    let most = most_tokens.saturating_mul(4);
    // About what a line takes, without giving numbers to nodes that are not shown.
    let sizes: Vec<usize> = lines.iter().map(|line| estimate(line, addresses)).collect();
    let mut kept = vec![false; lines.len()];
    let mut used = 0;
    for in_view in [true, false] {
        for (at, line) in lines.iter().enumerate() {
            let size = sizes.get(at).copied().unwrap_or_default();
            if (line.place == Place::InView) == in_view && used + size <= most {
                used += size;
                if let Some(mark) = kept.get_mut(at) {
                    *mark = true;
                }
            }
        }
    }
    let mut text = String::new();
    let mut place = Place::InView;
    let mut left_out: Vec<&Line> = Vec::new();
    for (line, kept) in lines.iter().zip(kept) {
        if !kept {
            left_out.push(line);
            continue;
        }
        note_gap(&mut text, &mut left_out);
        if line.place != place {
            place = line.place;
            text.push_str(&format!("-- {}:\n", place.words()));
        }
        text.push_str(&write_line(line, numbers, addresses));
        text.push('\n');
    }
    note_gap(&mut text, &mut left_out);
    text
}

/// Say how much was left out at this place.
fn note_gap(text: &mut String, left_out: &mut Vec<&Line>) {
    if left_out.is_empty() {
        return;
    }
    let items = left_out.iter().flat_map(|line| &line.pieces);
    let items = items.filter(|piece| matches!(piece, Piece::Item(_))).count();
    let lines = left_out.len();
    text.push_str(&format!(
        "-- {lines} lines with {items} elements left out here; find, grep_elements or a snapshot \
         within an element shows them\n"
    ));
    left_out.clear();
}

fn estimate(line: &Line, addresses: Addresses) -> usize {
    let pieces = line.pieces.iter().map(|piece| match piece {
        Piece::Text { text, .. } => text.len().min(LONGEST_TEXT * 4),
        Piece::Item(item) => {
            let address = match addresses {
                Addresses::Shown => item.href.as_ref().map_or(0, |href| href.len() + 2),
                Addresses::Hidden => 0,
            };
            let value = item.value.as_ref().map_or(0, |value| value.len() + 6);
            let states: usize = item.states.iter().map(|state| state.len() + 2).sum();
            let options: usize = item.options.iter().map(|option| option.len() + 3).sum();
            14 + item.role.len() + item.name.len() + 3 + value + states + options + address
        }
    });
    pieces.sum::<usize>() + line.mark.len() + 1
}

/// One line.
pub(crate) fn write_line(line: &Line, numbers: &mut dyn Numbers, addresses: Addresses) -> String {
    let mut text = line.mark.to_owned();
    let alone = line.pieces.len() == 1;
    for piece in &line.pieces {
        match piece {
            Piece::Text { text: words, .. } => {
                if text.ends_with(']') && !words.starts_with(' ') {
                    text.push(' ');
                }
                text.push_str(&clip(words, LONGEST_TEXT));
            }
            Piece::Item(item) => {
                let written = write_item(item, numbers, addresses);
                if alone {
                    text.push_str(&written);
                } else {
                    if !text.is_empty() && !text.ends_with(' ') {
                        text.push(' ');
                    }
                    text.push_str(&format!("[{written}]"));
                }
            }
        }
    }
    text.trim_end().to_owned()
}

/// Something to act on: `f1:e3 textbox "Search" = "abc" (required, focused)`.
pub(crate) fn write_item(item: &Item, numbers: &mut dyn Numbers, addresses: Addresses) -> String {
    let mut text = match numbers.refs(item.slot) {
        Some((document, refs)) => Reference { document, node: refs.number_of(item) }.to_string(),
        None => "?".to_owned(),
    };
    text.push(' ');
    text.push_str(&item.role);
    if !item.name.is_empty() {
        text.push_str(&format!(" \"{}\"", item.name));
    }
    if let Some(value) = &item.value {
        text.push_str(&format!(" = \"{}\"", value.replace('\n', "\\n")));
    }
    if !item.states.is_empty() {
        text.push_str(&format!(" ({})", item.states.join(", ")));
    }
    if !item.options.is_empty() {
        text.push_str(&format!(" of: {}", item.options.join(" | ")));
    }
    if let (Addresses::Shown, Some(href)) = (addresses, &item.href) {
        text.push_str(&format!(" → {href}"));
    }
    text
}

/// A line to point at: every line begins with a reference, also one that is only read.
pub(crate) fn write_found(line: &Line, numbers: &mut dyn Numbers) -> String {
    if let Some(Piece::Text { slot, node, .. }) = line.pieces.first()
        && let Some((document, refs)) = numbers.refs(*slot)
    {
        let reference = Reference { document, node: refs.number(*node) };
        return format!("{reference} {}", write_line(line, numbers, Addresses::Hidden));
    }
    write_line(line, numbers, Addresses::Hidden)
}

#[cfg(test)]
mod tests {
    use super::*;

    struct One(Refs);

    impl Numbers for One {
        fn refs(&mut self, _: usize) -> Option<(u32, &mut Refs)> {
            Some((1, &mut self.0))
        }
    }

    fn button(node: i64, name: &str, place: Place) -> Line {
        let item = Item {
            slot: 0,
            node,
            role: "button".into(),
            name: name.into(),
            value: None,
            states: vec!["disabled"],
            options: Vec::new(),
            href: None,
            submits: None,
        };
        Line { mark: "", pieces: vec![Piece::Item(item)], place }
    }

    #[test]
    fn what_does_not_fit_is_counted_and_what_is_in_view_goes_first() {
        let mut lines = vec![button(1, "first", Place::InView)];
        lines.extend((2..50).map(|n| button(n, "below", Place::Below)));
        lines.push(button(99, "foot, always seen", Place::InView));
        let mut numbers = One(Refs::default());
        let text = render(&lines, &mut numbers, 50, Addresses::Hidden);
        assert!(text.len() <= 50 * 4 + 200, "{}", text.len());
        assert!(text.starts_with("f1:e1 button \"first\" (disabled)\n-- below the view:\n"));
        assert!(text.contains("elements left out here"), "{text}");
        assert!(text.trim_end().ends_with("button \"foot, always seen\" (disabled)"), "{text}");
    }
}
