//! A page as it is read: documents, and lines of things to read and to act on.

use std::collections::HashMap;

use super::capture::Document;

/// All documents of a page, with how frames hang together.
#[derive(Debug, Default)]
pub(crate) struct Page {
    pub(crate) documents: Vec<Document>,
    /// The documents inside frames: by the document and the node of the frame's element.
    pub(crate) inside: HashMap<(usize, i64), usize>,
    /// Width and height of what is seen.
    pub(crate) view: (f64, f64),
    /// The node that has the keyboard, by its document.
    pub(crate) focused: HashMap<usize, i64>,
}

/// One line.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Line {
    pub(crate) mark: &'static str,
    pub(crate) pieces: Vec<Piece>,
    pub(crate) place: Place,
}

/// A part of a line.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Piece {
    /// Something to read, and the element that it is in.
    Text { text: String, slot: usize, node: i64 },
    /// Something to act on.
    Item(Item),
}

/// Something that can be acted on.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Item {
    pub(crate) slot: usize,
    pub(crate) node: i64,
    pub(crate) role: String,
    pub(crate) name: String,
    pub(crate) value: Option<String>,
    pub(crate) states: Vec<&'static str>,
    pub(crate) options: Vec<String>,
    pub(crate) href: Option<String>,
    /// Where pressing it sends a form to.
    pub(crate) submits: Option<String>,
}

/// Where something is, seen from what is on the screen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Place {
    InView,
    Above,
    Below,
    Beside,
}

impl Place {
    pub(crate) fn words(self) -> &'static str {
        match self {
            Self::InView => "in view",
            Self::Above => "above the view",
            Self::Below => "below the view",
            Self::Beside => "beside the view",
        }
    }
}
