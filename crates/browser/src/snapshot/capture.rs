//! What the browser tells about a page in one answer: all nodes of all documents of a process,
//! shadow trees included, with their boxes. `DOMSnapshot` gives it as columns.

use serde::Deserialize;
use serde_json::json;

use crate::{
    cdp::{CdpSession, Connection},
    error::Result,
};

/// The computed styles that are asked for, in this order.
const STYLES: [&str; 4] = ["display", "visibility", "cursor", "pointer-events"];

/// All documents of one process of a page.
#[derive(Debug, Deserialize)]
pub(crate) struct Capture {
    documents: Vec<Columns>,
    strings: Vec<String>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Columns {
    title: i32,
    #[serde(rename = "documentURL")]
    url: i32,
    frame_id: i32,
    nodes: Nodes,
    layout: Layout,
    #[serde(default)]
    scroll_offset_x: f64,
    #[serde(default)]
    scroll_offset_y: f64,
    #[serde(default)]
    content_width: f64,
    #[serde(default)]
    content_height: f64,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Nodes {
    parent_index: Vec<i32>,
    node_type: Vec<i32>,
    node_name: Vec<i32>,
    node_value: Vec<i32>,
    backend_node_id: Vec<i64>,
    attributes: Vec<Vec<i32>>,
    #[serde(default)]
    shadow_root_type: RareStrings,
    #[serde(default)]
    text_value: RareStrings,
    #[serde(default)]
    input_value: RareStrings,
    #[serde(default)]
    input_checked: RareFlags,
    #[serde(default)]
    option_selected: RareFlags,
    #[serde(default)]
    content_document_index: RareStrings,
    #[serde(default)]
    is_clickable: RareFlags,
    #[serde(default, rename = "currentSourceURL")]
    current_source: RareStrings,
}

#[derive(Debug, Default, Deserialize)]
struct RareStrings {
    index: Vec<i32>,
    value: Vec<i32>,
}

#[derive(Debug, Default, Deserialize)]
struct RareFlags {
    index: Vec<i32>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Layout {
    node_index: Vec<i32>,
    styles: Vec<Vec<i32>>,
    bounds: Vec<Vec<f64>>,
    text: Vec<i32>,
}

/// Take a look at all documents that a session shows.
pub(crate) async fn capture(connection: &Connection, session: &CdpSession) -> Result<Capture> {
    let params = json!({"computedStyles": STYLES});
    connection.call(Some(session), "DOMSnapshot.captureSnapshot", params).await
}

/// The name of a node of a document: its place in the columns.
pub(crate) type NodeIndex = usize;

/// What kind of node something is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Element,
    Text,
    Document,
    Other,
}

/// A rectangle in the coordinates of its document.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Bounds {
    pub(crate) x: f64,
    pub(crate) y: f64,
    pub(crate) width: f64,
    pub(crate) height: f64,
}

/// The box of a node that has one.
#[derive(Clone, Debug)]
pub(crate) struct Boxed {
    pub(crate) bounds: Bounds,
    pub(crate) inline: bool,
    pub(crate) visible: bool,
    pub(crate) pointer: bool,
    text: i32,
}

/// One document as a tree.
#[derive(Debug)]
pub(crate) struct Document {
    pub(crate) title: String,
    pub(crate) url: String,
    pub(crate) frame_id: String,
    pub(crate) scroll: (f64, f64),
    pub(crate) size: (f64, f64),
    nodes: Vec<Node>,
}

#[derive(Debug)]
struct Node {
    kind: Kind,
    parent: Option<NodeIndex>,
    children: Vec<NodeIndex>,
    name: String,
    value: String,
    backend: i64,
    attributes: Vec<(String, String)>,
    boxed: Option<Boxed>,
    layout_text: Option<String>,
    input: Option<String>,
    source: Option<String>,
    checked: bool,
    selected: bool,
    clickable: bool,
    content: Option<usize>,
}

impl Capture {
    /// The documents as trees, in the order in which nodes refer to them.
    pub(crate) fn into_documents(self) -> Vec<Document> {
        let Self { documents, strings } = self;
        documents.into_iter().map(|columns| document(columns, &strings)).collect()
    }
}

fn document(columns: Columns, strings: &[String]) -> Document {
    let text = |at: i32| {
        usize::try_from(at).ok().and_then(|at| strings.get(at)).map_or("", String::as_str)
    };
    let place = |at: i32| usize::try_from(at).ok();
    let all = columns.nodes;
    let mut nodes: Vec<Node> = Vec::with_capacity(all.node_type.len());
    for (at, node_type) in all.node_type.iter().enumerate() {
        let column = |list: &[i32]| list.get(at).copied().unwrap_or(-1);
        let attributes = all.attributes.get(at).map(Vec::as_slice).unwrap_or_default();
        let pairs = attributes.chunks_exact(2).filter_map(|pair| match pair {
            [name, value] => Some((text(*name).to_owned(), text(*value).to_owned())),
            _ => None,
        });
        nodes.push(Node {
            kind: match node_type {
                1 => Kind::Element,
                3 => Kind::Text,
                9 => Kind::Document,
                _ => Kind::Other,
            },
            parent: place(column(&all.parent_index)),
            children: Vec::new(),
            name: text(column(&all.node_name)).to_ascii_lowercase(),
            value: if *node_type == 3 {
                text(column(&all.node_value)).to_owned()
            } else {
                String::new()
            },
            backend: all.backend_node_id.get(at).copied().unwrap_or_default(),
            attributes: pairs.collect(),
            boxed: None,
            layout_text: None,
            input: None,
            source: None,
            checked: false,
            selected: false,
            clickable: false,
            content: None,
        });
    }
    for at in 0..nodes.len() {
        let parent = nodes.get(at).and_then(|node| node.parent);
        if let Some(parent) = parent.and_then(|parent| nodes.get_mut(parent)) {
            parent.children.push(at);
        }
    }
    let mut mark = |list: &RareFlags, set: fn(&mut Node)| {
        for at in list.index.iter().filter_map(|at| place(*at)) {
            if let Some(node) = nodes.get_mut(at) {
                set(node);
            }
        }
    };
    mark(&all.input_checked, |node| node.checked = true);
    mark(&all.option_selected, |node| node.selected = true);
    mark(&all.is_clickable, |node| node.clickable = true);
    let mut put = |list: &RareStrings, set: &dyn Fn(&mut Node, i32)| {
        for (at, value) in list.index.iter().zip(&list.value) {
            if let Some(node) = place(*at).and_then(|at| nodes.get_mut(at)) {
                set(node, *value);
            }
        }
    };
    put(&all.shadow_root_type, &|node, value| {
        // What the browser builds its own controls of is not the page's.
        if text(value) == "user-agent" {
            node.kind = Kind::Other;
        }
    });
    put(&all.text_value, &|node, value| node.input = Some(text(value).to_owned()));
    put(&all.input_value, &|node, value| node.input = Some(text(value).to_owned()));
    put(&all.current_source, &|node, value| node.source = Some(text(value).to_owned()));
    put(&all.content_document_index, &|node, value| node.content = place(value));
    let layout = columns.layout;
    for (row, at) in layout.node_index.iter().enumerate() {
        let Some(node) = place(*at).and_then(|at| nodes.get_mut(at)) else { continue };
        let style = |which: usize| {
            layout.styles.get(row).and_then(|row| row.get(which)).map_or("", |at| text(*at))
        };
        let bounds = match layout.bounds.get(row).map(Vec::as_slice) {
            Some([x, y, width, height]) => Bounds { x: *x, y: *y, width: *width, height: *height },
            _ => Bounds::default(),
        };
        let shown = layout.text.get(row).copied().unwrap_or(-1);
        if shown >= 0 {
            // A text that is broken up has several boxes; together they are what is read.
            node.layout_text.get_or_insert_default().push_str(text(shown));
        }
        if node.boxed.is_none() {
            node.boxed = Some(Boxed {
                bounds,
                inline: node.kind == Kind::Text
                    || style(0).starts_with("inline")
                    || style(0) == "contents",
                visible: !matches!(style(1), "hidden" | "collapse"),
                pointer: style(2) == "pointer" && style(3) != "none",
                text: shown,
            });
        }
    }
    Document {
        title: text(columns.title).to_owned(),
        url: text(columns.url).to_owned(),
        frame_id: text(columns.frame_id).to_owned(),
        scroll: (columns.scroll_offset_x, columns.scroll_offset_y),
        size: (columns.content_width, columns.content_height),
        nodes,
    }
}

impl Document {
    fn node(&self, at: NodeIndex) -> Option<&Node> {
        self.nodes.get(at)
    }

    pub(crate) fn len(&self) -> usize {
        self.nodes.len()
    }

    pub(crate) fn kind(&self, at: NodeIndex) -> Kind {
        self.node(at).map_or(Kind::Other, |node| node.kind)
    }

    /// The tag, in lower case.
    pub(crate) fn tag(&self, at: NodeIndex) -> &str {
        self.node(at).map_or("", |node| &node.name)
    }

    pub(crate) fn backend(&self, at: NodeIndex) -> i64 {
        self.node(at).map_or(0, |node| node.backend)
    }

    pub(crate) fn parent(&self, at: NodeIndex) -> Option<NodeIndex> {
        self.node(at)?.parent
    }

    pub(crate) fn attribute(&self, at: NodeIndex, name: &str) -> Option<&str> {
        let attributes = &self.node(at)?.attributes;
        attributes.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    pub(crate) fn boxed(&self, at: NodeIndex) -> Option<&Boxed> {
        self.node(at)?.boxed.as_ref()
    }

    /// What is read of a text node, as it is laid out.
    pub(crate) fn shown_text(&self, at: NodeIndex) -> Option<&str> {
        let node = self.node(at)?;
        let boxed = node.boxed.as_ref()?;
        let around = node.parent.and_then(|parent| self.boxed(parent));
        if !around.is_none_or(|around| around.visible) {
            return None;
        }
        match boxed.text >= 0 {
            true => node.layout_text.as_deref(),
            false => None,
        }
    }

    /// What a text node says, shown or not.
    pub(crate) fn raw_text(&self, at: NodeIndex) -> &str {
        self.node(at).map_or("", |node| &node.value)
    }

    /// What is entered in a field.
    pub(crate) fn input(&self, at: NodeIndex) -> Option<&str> {
        self.node(at)?.input.as_deref()
    }

    /// The address of an image as the browser chose it.
    pub(crate) fn source(&self, at: NodeIndex) -> Option<&str> {
        self.node(at)?.source.as_deref()
    }

    pub(crate) fn is_checked(&self, at: NodeIndex) -> bool {
        self.node(at).is_some_and(|node| node.checked)
    }

    pub(crate) fn is_selected(&self, at: NodeIndex) -> bool {
        self.node(at).is_some_and(|node| node.selected)
    }

    /// Whether a script listens for clicks on it.
    pub(crate) fn is_clickable(&self, at: NodeIndex) -> bool {
        self.node(at).is_some_and(|node| node.clickable)
    }

    /// The document inside a frame of the same process.
    pub(crate) fn content(&self, at: NodeIndex) -> Option<usize> {
        self.node(at)?.content
    }

    /// The children as they are in the document.
    pub(crate) fn own_children(&self, at: NodeIndex) -> &[NodeIndex] {
        self.node(at).map_or(&[], |node| &node.children)
    }

    /// The children as they are seen: the browser gives a tree in which shadow trees are in the
    /// place of the light ones, and light children in the slots that take them.
    pub(crate) fn children(&self, at: NodeIndex) -> Vec<NodeIndex> {
        let own = self.own_children(at).iter().copied();
        own.filter(|child| self.kind(*child) != Kind::Other).collect()
    }

    /// The nodes under one, in order, itself left out. It bounds itself by the document's size,
    /// whatever the page nests.
    pub(crate) fn descendants(&self, at: NodeIndex) -> Vec<NodeIndex> {
        let mut found = Vec::new();
        let mut stack: Vec<NodeIndex> = self.children(at).into_iter().rev().collect();
        while let Some(node) = stack.pop() {
            found.push(node);
            stack.extend(self.children(node).into_iter().rev());
        }
        found
    }

    /// The root element's place.
    pub(crate) fn root(&self) -> NodeIndex {
        0
    }
}
