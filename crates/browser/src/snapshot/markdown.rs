//! A page as Markdown: its text with headings, lists, tables and links.

use url::Url;

use super::{
    capture::{Document, Kind, NodeIndex},
    page::Page,
    text::{plain, tidy},
};

/// The whole page, or the part under one node.
pub(crate) fn markdown(page: &Page, under: Option<(usize, i64)>) -> String {
    let mut writer = Writer { page, ..Writer::new(page) };
    let (slot, node) = match under {
        None => (0, None),
        Some((slot, node)) => (slot, Some(node)),
    };
    let Some(document) = page.documents.get(slot) else { return String::new() };
    let at = match node {
        None => Some(document.root()),
        Some(node) => (0..document.len()).find(|at| document.backend(*at) == node),
    };
    writer.stack.extend(at.map(|at| Step::Enter(slot, at)));
    writer.run();
    writer.out.trim().to_owned()
}

enum Step {
    Enter(usize, NodeIndex),
    /// Text that closes what was opened.
    Close(String),
    Block,
    EndList,
    EndPre,
    EndRow,
    EndTable,
    EndQuote,
}

struct Writer<'a> {
    page: &'a Page,
    stack: Vec<Step>,
    out: String,
    /// Where lists stand: the next number, or `None` for points.
    lists: Vec<Option<u32>>,
    pre: u32,
    quote: u32,
    /// Cells of the row under way, and rows of the tables around.
    in_row: u32,
    rows: Vec<u32>,
    cells: u32,
}

impl<'a> Writer<'a> {
    fn new(page: &'a Page) -> Self {
        Self {
            page,
            stack: Vec::new(),
            out: String::new(),
            lists: Vec::new(),
            pre: 0,
            quote: 0,
            in_row: 0,
            rows: Vec::new(),
            cells: 0,
        }
    }

    fn run(&mut self) {
        while let Some(step) = self.stack.pop() {
            match step {
                Step::Enter(slot, at) => self.enter(slot, at),
                Step::Close(text) => self.out.push_str(&text),
                Step::Block => self.block(),
                Step::EndList => {
                    self.lists.pop();
                    if self.lists.is_empty() {
                        self.block();
                    }
                }
                Step::EndPre => {
                    self.pre = self.pre.saturating_sub(1);
                    self.out.push_str("\n```");
                    self.block();
                }
                Step::EndRow => self.end_row(),
                Step::EndTable => {
                    self.rows.pop();
                    self.block();
                }
                Step::EndQuote => {
                    self.quote = self.quote.saturating_sub(1);
                    self.block();
                }
            }
        }
    }

    fn enter(&mut self, slot: usize, at: NodeIndex) {
        let page = self.page;
        let Some(document) = page.documents.get(slot) else { return };
        match document.kind(at) {
            Kind::Text => return self.text(document, at),
            Kind::Other => return,
            Kind::Document => return self.descend(slot, document, at),
            Kind::Element => {}
        }
        let tag = document.tag(at);
        if matches!(
            tag,
            "script" | "style" | "noscript" | "template" | "head" | "select" | "option"
        ) || document.attribute(at, "aria-hidden") == Some("true")
        {
            return;
        }
        let Some(boxed) = document.boxed(at) else { return self.descend(slot, document, at) };
        match tag {
            "br" => return self.out.push('\n'),
            "hr" => {
                self.block();
                self.out.push_str("---");
                return self.block();
            }
            "h1" | "h2" | "h3" | "h4" | "h5" | "h6" => {
                self.block();
                let level = tag.get(1..).and_then(|n| n.parse().ok()).unwrap_or(2);
                self.out.push_str(&"#".repeat(level));
                self.out.push(' ');
                self.stack.push(Step::Block);
            }
            "a" => {
                let target =
                    document.attribute(at, "href").and_then(|href| absolute(document, href));
                if let Some(target) = target {
                    self.space();
                    self.out.push('[');
                    self.stack.push(Step::Close(format!("]({target})")));
                }
            }
            "img" => {
                let alt = document.attribute(at, "alt").map(tidy).unwrap_or_default();
                let source = document.source(at).or_else(|| document.attribute(at, "src"));
                if let (false, Some(source)) =
                    (alt.is_empty(), source.and_then(|s| absolute(document, s)))
                {
                    self.out.push_str(&format!("![{alt}]({source})"));
                }
                return;
            }
            "strong" | "b" => self.wrap("**"),
            "em" | "i" => self.wrap("*"),
            "code" if self.pre == 0 => self.wrap("`"),
            "pre" => {
                self.block();
                self.out.push_str("```\n");
                self.pre += 1;
                self.stack.push(Step::EndPre);
            }
            "blockquote" => {
                self.block();
                self.quote += 1;
                self.out.push_str("> ");
                self.stack.push(Step::EndQuote);
            }
            "ul" | "ol" => {
                if self.lists.is_empty() {
                    self.block();
                }
                self.lists.push((tag == "ol").then_some(1));
                self.stack.push(Step::EndList);
            }
            "li" => {
                self.line();
                let depth = self.lists.len().saturating_sub(1);
                self.out.push_str(&"  ".repeat(depth));
                match self.lists.last_mut() {
                    Some(Some(number)) => {
                        self.out.push_str(&format!("{number}. "));
                        *number += 1;
                    }
                    _ => self.out.push_str("- "),
                }
            }
            "table" if self.in_row == 0 => {
                self.block();
                self.rows.push(0);
                self.stack.push(Step::EndTable);
            }
            "tr" if self.in_row == 0 => {
                self.line();
                self.in_row += 1;
                self.cells = 0;
                self.stack.push(Step::EndRow);
            }
            "td" | "th" if self.in_row == 1 => {
                self.out.push_str("| ");
                self.cells += 1;
                self.stack.push(Step::Close(" ".into()));
            }
            "input" | "textarea" => {
                if let Some(value) = document.input(at)
                    && document.attribute(at, "type") != Some("password")
                    && !value.is_empty()
                {
                    self.out.push_str(&tidy(value));
                }
                return;
            }
            "iframe" => {
                self.block();
                if let Some(inner) = page.inside.get(&(slot, document.backend(at)))
                    && let Some(other) = page.documents.get(*inner)
                {
                    self.stack.push(Step::Block);
                    self.stack.push(Step::Enter(*inner, other.root()));
                }
                return;
            }
            _ if !boxed.inline => {
                self.block();
                self.stack.push(Step::Block);
            }
            _ => {}
        }
        self.descend(slot, document, at);
    }

    fn descend(&mut self, slot: usize, document: &Document, at: NodeIndex) {
        let children = document.children(at).into_iter().rev();
        self.stack.extend(children.map(|child| Step::Enter(slot, child)));
    }

    fn text(&mut self, document: &Document, at: NodeIndex) {
        if self.pre > 0 {
            self.out.extend(document.raw_text(at).chars().filter_map(plain));
            return;
        }
        let Some(text) = document.shown_text(at) else { return };
        if text.starts_with(char::is_whitespace) {
            self.space();
        }
        self.out.push_str(&tidy(text));
        if text.ends_with(char::is_whitespace) && !text.trim().is_empty() {
            self.space();
        }
    }

    fn wrap(&mut self, mark: &'static str) {
        self.out.push_str(mark);
        self.stack.push(Step::Close(mark.into()));
    }

    fn space(&mut self) {
        if !self.out.is_empty() && !self.out.ends_with([' ', '\n', '[', '(']) {
            self.out.push(' ');
        }
    }

    /// Begin a new line.
    fn line(&mut self) {
        if self.in_row > 0 {
            return self.space();
        }
        let end = self.out.trim_end_matches(' ').len();
        self.out.truncate(end);
        if !self.out.is_empty() && !self.out.ends_with('\n') {
            self.out.push('\n');
        }
        for _ in 0..self.quote {
            self.out.push_str("> ");
        }
    }

    /// Begin a new paragraph.
    fn block(&mut self) {
        if self.in_row > 0 {
            return self.space();
        }
        if !self.lists.is_empty() {
            // The first block of an item goes on its line.
            if !self.out.ends_with("- ") && !self.out.ends_with(". ") {
                self.line();
                self.out.push_str(&"  ".repeat(self.lists.len()));
                let end = self.out.trim_end_matches(' ').len();
                if self.out.get(..end).is_some_and(|text| text.ends_with('\n')) {
                    self.out.truncate(end);
                }
            }
            return;
        }
        let end = self.out.trim_end().len();
        self.out.truncate(end);
        if !self.out.is_empty() {
            self.out.push_str("\n\n");
            for _ in 0..self.quote {
                self.out.push_str("> ");
            }
        }
    }

    fn end_row(&mut self) {
        self.in_row = self.in_row.saturating_sub(1);
        let end = self.out.trim_end().len();
        self.out.truncate(end);
        if self.cells == 0 {
            return;
        }
        self.out.push_str(" |\n");
        if let Some(rows) = self.rows.last_mut() {
            *rows += 1;
            if *rows == 1 {
                self.out.push_str(&"| --- ".repeat(self.cells as usize));
                self.out.push_str("|\n");
            }
        }
    }
}

fn absolute(document: &Document, href: &str) -> Option<String> {
    let url = Url::parse(&document.url).ok()?.join(href.trim()).ok()?;
    matches!(url.scheme(), "http" | "https" | "file" | "mailto").then(|| url.into())
}
