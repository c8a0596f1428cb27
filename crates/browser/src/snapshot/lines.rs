//! A page as lines: what is read and what can be acted on, in reading order.

use super::{
    capture::{Bounds, Document, Kind, NodeIndex},
    meaning::{Acting, Meanings},
    page::{Item, Line, Page, Piece, Place},
    text::{clip, plain, tidy},
};

/// The largest row of a table that is put on one line.
const ROW_NODES: usize = 80;
/// How many options of a list are shown.
const SHOWN_OPTIONS: usize = 25;

/// The lines of a page, or of the part of it under one node.
pub(crate) fn lines(page: &Page, under: Option<(usize, i64)>) -> Vec<Line> {
    let meanings: Vec<Meanings<'_>> = page
        .documents
        .iter()
        .enumerate()
        .map(|(slot, document)| Meanings::of(document, page.focused.get(&slot).copied()))
        .collect();
    let mut walk = Walk {
        page,
        meanings: &meanings,
        origins: vec![(0.0, 0.0); page.documents.len()],
        stack: Vec::new(),
        lines: Vec::new(),
        pieces: Vec::new(),
        gap: false,
        mark: "",
        place: None,
        in_row: 0,
        quiet: 0,
        delegated: 0,
    };
    walk.place_frames();
    match under {
        None => walk.enter_document(0),
        Some((slot, node)) => {
            let document = page.documents.get(slot);
            let at = document.and_then(|d| (0..d.len()).find(|at| d.backend(*at) == node));
            if let Some(at) = at {
                walk.stack.push(Step::Enter(slot, at));
            }
        }
    }
    walk.run();
    walk.lines
}

struct Walk<'a> {
    page: &'a Page,
    meanings: &'a [Meanings<'a>],
    /// Where each document's corner is, in the coordinates of the view.
    origins: Vec<(f64, f64)>,
    /// What is still to be done; no recursion, so that no page is too deep.
    stack: Vec<Step>,
    lines: Vec<Line>,
    pieces: Vec<Piece>,
    /// Whether white space stands before the next text.
    gap: bool,
    mark: &'static str,
    place: Option<Place>,
    in_row: u32,
    quiet: u32,
    delegated: u32,
}

#[derive(Clone, Copy)]
enum Step {
    Enter(usize, NodeIndex),
    /// The end of something that stands on lines of its own.
    EndBlock,
    EndRow,
    EndQuiet,
    EndDelegated,
}

impl Walk<'_> {
    /// Where the documents of frames are. Frames come after the documents that they are in.
    fn place_frames(&mut self) {
        if let (Some(first), Some(origin)) = (self.page.documents.first(), self.origins.first_mut())
        {
            *origin = (-first.scroll.0, -first.scroll.1);
        }
        let mut links: Vec<_> = self.page.inside.iter().collect();
        links.sort();
        // As often as frames can be nested in each other, which is seldom more than twice.
        for _ in 0..links.len().min(8) {
            for ((slot, node), inner) in &links {
                let Some(document) = self.page.documents.get(*slot) else { continue };
                let at = (0..document.len()).find(|at| document.backend(*at) == *node);
                let Some(boxed) = at.and_then(|at| document.boxed(at)) else { continue };
                let base = self.origins.get(*slot).copied().unwrap_or_default();
                let scroll = self.page.documents.get(**inner).map_or((0.0, 0.0), |d| d.scroll);
                if let Some(origin) = self.origins.get_mut(**inner) {
                    *origin =
                        (base.0 + boxed.bounds.x - scroll.0, base.1 + boxed.bounds.y - scroll.1);
                }
            }
        }
    }

    fn enter_document(&mut self, slot: usize) {
        if let Some(document) = self.page.documents.get(slot) {
            self.stack.push(Step::Enter(slot, document.root()));
        }
    }

    fn run(&mut self) {
        while let Some(step) = self.stack.pop() {
            match step {
                Step::Enter(slot, at) => self.enter(slot, at),
                Step::EndBlock => {
                    self.end_line();
                    if self.in_row == 0 {
                        self.mark = "";
                    }
                }
                Step::EndRow => {
                    self.in_row = self.in_row.saturating_sub(1);
                    self.end_line();
                }
                Step::EndQuiet => self.quiet = self.quiet.saturating_sub(1),
                Step::EndDelegated => self.delegated = self.delegated.saturating_sub(1),
            }
        }
        self.end_line();
    }

    fn enter(&mut self, slot: usize, at: NodeIndex) {
        let page = self.page;
        let (Some(document), Some(meanings)) = (page.documents.get(slot), self.meanings.get(slot))
        else {
            return;
        };
        match document.kind(at) {
            Kind::Text => return self.text(slot, document, at),
            Kind::Other => return,
            Kind::Document => return self.descend(slot, document, at),
            Kind::Element => {}
        }
        let tag = document.tag(at);
        if matches!(
            tag,
            "script" | "style" | "noscript" | "template" | "head" | "title" | "datalist"
        ) {
            return;
        }
        if document.attribute(at, "aria-hidden") == Some("true") {
            // Its text is told elsewhere, but what can be pressed there can be pressed.
            if !meanings.holds_actor(at) && meanings.acting(at) == Acting::No {
                return;
            }
            self.quiet += 1;
            self.stack.push(Step::EndQuiet);
        }
        let Some(boxed) = document.boxed(at) else {
            return self.descend(slot, document, at);
        };
        if tag == "br" {
            return self.end_line();
        }
        let is_row = tag == "tr" || document.attribute(at, "role") == Some("row");
        let block = !boxed.inline || is_row;
        if block {
            self.end_line();
            self.stack.push(Step::EndBlock);
        }
        if !boxed.visible {
            return self.descend(slot, document, at);
        }
        let role = meanings.role(at);
        match meanings.acting(at) {
            Acting::Control => {
                self.item(slot, meanings, at, role);
                let inside = meanings.holds_actor(at)
                    && !matches!(tag, "select" | "input" | "textarea")
                    && role != "textbox";
                if inside {
                    self.stack.push(Step::EndQuiet);
                    self.quiet += 1;
                    self.descend(slot, document, at);
                }
                return;
            }
            Acting::Clickable if tag == "svg" || !meanings.holds_actor(at) => {
                let parts = document.children(at);
                let blocks = parts.iter().filter(|child| {
                    document.kind(**child) == Kind::Element && document.boxed(**child).is_some()
                });
                // A script that listens on a list means its items.
                if blocks.count() > 2 && meanings.text_inside(at).chars().count() > 60 {
                    self.stack.push(Step::EndDelegated);
                    self.delegated += 1;
                    return self.descend(slot, document, at);
                }
                let shape = is_shape(tag);
                self.item(slot, meanings, at, if shape { tag } else { "clickable" });
                return;
            }
            Acting::Clickable | Acting::No => {}
        }
        match role {
            "heading" => {
                let level = tag.strip_prefix('h').and_then(|n| n.parse().ok());
                let said = document.attribute(at, "aria-level").and_then(|n| n.parse().ok());
                self.end_line();
                self.mark = match said.or(level).unwrap_or(2u8) {
                    1 => "# ",
                    2 => "## ",
                    3 => "### ",
                    _ => "#### ",
                };
                self.stack.push(Step::EndBlock);
            }
            "image" => {
                let name = meanings.name(at);
                if !name.is_empty() {
                    self.say(slot, document, at, &format!("(image: {name})"));
                }
                return;
            }
            "iframe" => return self.frame(slot, document, meanings, at),
            "dialog" | "alertdialog" | "alert" => {
                self.end_line();
                let name = document.attribute(at, "aria-label").map(tidy).unwrap_or_default();
                self.say(
                    slot,
                    document,
                    at,
                    &format!("({role}{}{name})", if name.is_empty() { "" } else { ": " }),
                );
                self.end_line();
            }
            "progressbar" | "meter" => {
                let value = meanings.value(at).unwrap_or_default();
                self.say(slot, document, at, &format!("({role} {} {value})", meanings.name(at)));
                return;
            }
            "separator" => return,
            _ => {}
        }
        if tag == "svg" && !meanings.holds_actor(at) {
            let name = meanings.name(at);
            if !name.is_empty() {
                self.say(slot, document, at, &format!("(image: {name})"));
            }
            return;
        }
        if meanings.is_label_of_control(at) && !meanings.holds_actor(at) {
            return;
        }
        if tag == "label" && meanings.holds_actor(at) && document.attribute(at, "for").is_none() {
            self.quiet += 1;
            self.stack.push(Step::EndQuiet);
        }
        if tag == "li" || document.attribute(at, "role") == Some("listitem") {
            self.mark = "- ";
        }
        if is_row && self.in_row == 0 && is_small(document, at) {
            self.in_row += 1;
            self.mark = "| ";
            self.stack.push(Step::EndRow);
        }
        let is_cell = matches!(tag, "td" | "th")
            || matches!(role, "cell" | "columnheader" | "rowheader" | "gridcell");
        if is_cell && self.in_row > 0 && !self.pieces.is_empty() {
            self.raw(slot, document, at, " | ");
            self.gap = false;
        }
        self.descend(slot, document, at);
    }

    fn descend(&mut self, slot: usize, document: &Document, at: NodeIndex) {
        let children = document.children(at);
        self.stack.extend(children.into_iter().rev().map(|child| Step::Enter(slot, child)));
    }

    /// A frame and what is in it.
    fn frame(&mut self, slot: usize, document: &Document, meanings: &Meanings<'_>, at: NodeIndex) {
        self.end_line();
        self.item(slot, meanings, at, "iframe");
        self.end_line();
        self.stack.push(Step::EndBlock);
        let inner = self.page.inside.get(&(slot, document.backend(at)));
        if let Some(inner) = inner {
            self.enter_document(*inner);
        }
    }

    fn text(&mut self, slot: usize, document: &Document, at: NodeIndex) {
        if self.quiet > 0 {
            return;
        }
        let Some(text) = document.shown_text(at) else { return };
        self.gap |= text.starts_with(char::is_whitespace);
        let words = tidy(text);
        if !words.is_empty() {
            self.say(slot, document, at, &words);
        }
        self.gap |= text.ends_with(char::is_whitespace);
    }

    /// Add something to read to the line.
    fn say(&mut self, slot: usize, document: &Document, at: NodeIndex, text: &str) {
        if self.gap && !self.pieces.is_empty() {
            self.raw(slot, document, at, " ");
        }
        self.gap = false;
        self.raw(slot, document, at, text);
    }

    fn raw(&mut self, slot: usize, document: &Document, at: NodeIndex, text: &str) {
        self.see(slot, document, at);
        if let Some(Piece::Text { text: before, .. }) = self.pieces.last_mut() {
            before.push_str(text);
            return;
        }
        let element = match document.kind(at) {
            Kind::Text => document.parent(at).unwrap_or(at),
            _ => at,
        };
        let node = document.backend(element);
        if self.delegated > 0 && self.pieces.is_empty() && !text.trim().is_empty() {
            let item = Item {
                slot,
                node,
                role: "text".into(),
                name: text.to_owned(),
                value: None,
                states: Vec::new(),
                options: Vec::new(),
                href: None,
                submits: None,
            };
            self.pieces.push(Piece::Item(item));
            return;
        }
        self.pieces.push(Piece::Text { text: text.to_owned(), slot, node });
    }

    fn item(&mut self, slot: usize, meanings: &Meanings<'_>, at: NodeIndex, role: &str) {
        let document = meanings.document;
        self.see(slot, document, at);
        let mut value = meanings.value(at);
        let mut role = role.to_owned();
        if role == "option" && document.tag(at) == "option" {
            // Inside a list that is laid out; the list itself says which there are.
            return;
        }
        if role == "canvas" || is_shape(&role) {
            value = Some(describe_shape(document, at));
        }
        if role.is_empty() {
            role = "clickable".into();
        }
        let options = match document.tag(at) {
            "select" => {
                let all = meanings.options(at);
                let mut names: Vec<String> = all
                    .iter()
                    .take(SHOWN_OPTIONS)
                    .map(|option| clip(&meanings.option_label(*option), 60))
                    .collect();
                if all.len() > SHOWN_OPTIONS {
                    names.push(format!("… {} more", all.len() - SHOWN_OPTIONS));
                }
                names
            }
            _ => Vec::new(),
        };
        let href = document.attribute(at, "href").map(str::to_owned);
        self.pieces.push(Piece::Item(Item {
            slot,
            node: document.backend(at),
            name: meanings.name(at).replace('"', "'"),
            role: role.chars().filter_map(plain).take(30).collect(),
            value,
            states: meanings.states(at),
            options,
            href: href.filter(|_| matches!(document.tag(at), "a" | "area")),
            submits: meanings.submits(at),
        }));
        self.gap = true;
    }

    /// Where the line is: where its first piece is.
    fn see(&mut self, slot: usize, document: &Document, at: NodeIndex) {
        if self.place.is_some() {
            return;
        }
        let Some(boxed) = document.boxed(at) else { return };
        let origin = self.origins.get(slot).copied().unwrap_or_default();
        self.place = Some(place(boxed.bounds, origin, self.page.view));
    }

    fn end_line(&mut self) {
        if self.in_row > 0 {
            self.gap = true;
            return;
        }
        let mark = std::mem::take(&mut self.mark);
        self.gap = false;
        let pieces = std::mem::take(&mut self.pieces);
        let place = self.place.take().unwrap_or(Place::InView);
        if pieces.is_empty() {
            // The mark of an item whose content begins in a block of its own is for that block.
            self.mark = mark;
            return;
        }
        self.lines.push(Line { mark, pieces, place });
    }
}

fn place(bounds: Bounds, origin: (f64, f64), view: (f64, f64)) -> Place {
    let top = bounds.y + origin.1;
    let left = bounds.x + origin.0;
    if top >= view.1 {
        Place::Below
    } else if top + bounds.height <= 0.0 && bounds.height > 0.0 {
        Place::Above
    } else if left >= view.0 || (left + bounds.width <= 0.0 && bounds.width > 0.0) {
        Place::Beside
    } else {
        Place::InView
    }
}

fn is_small(document: &Document, at: NodeIndex) -> bool {
    let inside = document.descendants(at);
    inside.len() <= ROW_NODES && !inside.iter().any(|node| document.tag(*node) == "table")
}

fn is_shape(tag: &str) -> bool {
    matches!(
        tag,
        "svg"
            | "circle"
            | "rect"
            | "ellipse"
            | "polygon"
            | "polyline"
            | "path"
            | "line"
            | "g"
            | "text"
            | "tspan"
    )
}

/// What is seen of a drawing: its size, its place, its colour.
fn describe_shape(document: &Document, at: NodeIndex) -> String {
    let mut words = String::new();
    if let Some(boxed) = document.boxed(at) {
        let Bounds { x, y, width, height } = boxed.bounds;
        words = format!("{width:.0}×{height:.0} at {x:.0},{y:.0}");
    }
    let colour = document.attribute(at, "fill").or_else(|| document.attribute(at, "stroke"));
    if let Some(colour) = colour {
        words.push(' ');
        words.push_str(&clip(&tidy(colour), 30));
    }
    words
}
