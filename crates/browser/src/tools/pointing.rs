//! `click`, `click_at`, `hover`, `drag`, `scroll`.

use duologue_core::{Effect, Risk};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use super::{
    Action, Said, Scene,
    risk::{self, Deed},
};
use crate::{
    act::{Button, Care, Point},
    browser::Browser,
    desk::{Desk, Target},
    error::{BrowserError, Result},
    snapshot::refs::Reference,
};

/// What a reference written by a model points at.
pub(super) fn target(scene: &Scene, reference: &str) -> Result<Target> {
    let reference: Reference = reference.parse()?;
    scene.desk.look_up(reference)
}

/// An element as it is told: `f1:e7 button "Go"`.
pub(super) fn told(target: &Target) -> String {
    let known = &target.known;
    match (known.role.as_str(), known.name.as_str()) {
        ("", _) => target.reference.to_string(),
        (role, "") => format!("{} {role}", target.reference),
        (role, name) => format!("{} {role} {name:?}", target.reference),
    }
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Click {
    /// What to click, by its reference, such as f1:e7.
    r#ref: String,
    /// The button of the mouse.
    #[serde(default)]
    button: Button,
    /// Twice instead of once.
    #[serde(default)]
    double: bool,
}

impl Action for Click {
    const NAME: &'static str = "click";
    const ABOUT: &'static str = "Clicks an element and waits until the page has settled. Sending a \
        form needs a person's yes.";
    const EFFECT: Effect = Effect::SideEffect;

    fn risk(&self, browser: &Browser, desk: Option<&Desk>) -> Risk {
        risk::of_element(browser, desk, &self.r#ref, Deed::Point)
    }

    async fn run(self, scene: Scene) -> Result<Said> {
        let target = target(&scene, &self.r#ref)?;
        if let Some(action) = &target.known.submits {
            scene.desk.state().permits.submit_to(action);
        }
        let times = if self.double { 2 } else { 1 };
        let click = async {
            let (_, point) = scene.desk.aim(&target, Care::Checked).await?;
            scene.desk.press(point, self.button, times).await
        };
        let said = scene.act(click, |()| format!("clicked {}", told(&target))).await;
        scene.desk.release(&target.session);
        said
    }
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ClickAt {
    /// Pixels from the left edge of the view, or of the element.
    x: f64,
    /// Pixels from the top edge of the view, or of the element.
    y: f64,
    /// An element whose corner is counted from, such as a canvas.
    #[serde(default)]
    r#ref: Option<String>,
    /// The button of the mouse.
    #[serde(default)]
    button: Button,
    /// Twice instead of once.
    #[serde(default)]
    double: bool,
}

impl Action for ClickAt {
    const NAME: &'static str = "click_at";
    const ABOUT: &'static str = "Clicks at a point, for drawings and maps that have no elements. A \
        screenshot shows the view pixel by pixel.";
    const EFFECT: Effect = Effect::SideEffect;

    fn risk(&self, browser: &Browser, desk: Option<&Desk>) -> Risk {
        // What is at the point is not known beforehand.
        match risk::of_view(browser, desk, Deed::Write) {
            Risk::SendsTo { target } => Risk::SendsTo { target },
            _ => risk::of_view(browser, desk, Deed::Point),
        }
    }

    async fn run(self, scene: Scene) -> Result<Said> {
        let from = match &self.r#ref {
            None => Point { x: 0.0, y: 0.0 },
            Some(reference) => corner(&scene, &target(&scene, reference)?).await?,
        };
        let point = Point { x: from.x + self.x, y: from.y + self.y };
        refuse_submit(&scene, point).await?;
        let times = if self.double { 2 } else { 1 };
        let press = scene.desk.press(point, self.button, times);
        scene.act(press, |()| format!("clicked at {:.0},{:.0}", point.x, point.y)).await
    }
}

/// Sending a form is asked about, which only a reference allows: it tells the form.
async fn refuse_submit(scene: &Scene, point: Point) -> Result<()> {
    let expression = format!(
        "(() => {{ let e = document.elementFromPoint({}, {}); while (e && e.shadowRoot) {{ const i = \
         e.shadowRoot.elementFromPoint({0}, {1}); if (!i || i === e) break; e = i; }} const b = e && \
         e.closest('button, input'); return !!(b && b.form && ['submit', 'image'].includes(b.type)); }})()",
        point.x, point.y
    );
    let params = json!({"expression": expression, "returnByValue": true});
    let answer: serde_json::Value = scene.desk.call("Runtime.evaluate", params).await?;
    if answer.pointer("/result/value") == Some(&true.into()) {
        return Err(BrowserError::cannot(
            "a button that sends a form is there; click it by its reference instead",
        ));
    }
    Ok(())
}

/// The corner of an element, in the coordinates of the tab.
async fn corner(scene: &Scene, target: &Target) -> Result<Point> {
    let (element, _) = scene.desk.aim(target, Care::Anyhow).await?;
    let place = "function() { const r = (this.nodeType === 1 ? this : this.parentElement)\
                 .getBoundingClientRect(); return {x: r.left, y: r.top}; }";
    let inner: Point = scene.desk.call_on(&element, place, &[]).await?;
    let frame = scene.desk.corner(&target.frame).await?;
    Ok(Point { x: inner.x + frame.x, y: inner.y + frame.y })
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Hover {
    /// What to point at, by its reference.
    r#ref: String,
}

impl Action for Hover {
    const NAME: &'static str = "hover";
    const ABOUT: &'static str =
        "Moves the pointer over an element, for menus and hints that open so.";
    const EFFECT: Effect = Effect::Idempotent;

    fn risk(&self, browser: &Browser, desk: Option<&Desk>) -> Risk {
        let _ = (browser, desk);
        Risk::Harmless
    }

    async fn run(self, scene: Scene) -> Result<Said> {
        let target = target(&scene, &self.r#ref)?;
        let hover = async {
            let (_, point) = scene.desk.aim(&target, Care::Anyhow).await?;
            scene.desk.point_at(point).await
        };
        scene.act(hover, |()| format!("pointing at {}", told(&target))).await
    }
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Drag {
    /// What to drag, by its reference.
    r#ref: String,
    /// Where to drop it: another element, by its reference.
    #[serde(default)]
    to: Option<String>,
    /// Or how far to the right, in pixels.
    #[serde(default)]
    dx: Option<f64>,
    /// Or how far down, in pixels.
    #[serde(default)]
    dy: Option<f64>,
}

impl Action for Drag {
    const NAME: &'static str = "drag";
    const ABOUT: &'static str = "Drags an element onto another one, or by a distance.";
    const EFFECT: Effect = Effect::SideEffect;

    fn risk(&self, browser: &Browser, desk: Option<&Desk>) -> Risk {
        risk::of_element(browser, desk, &self.r#ref, Deed::Point)
    }

    async fn run(self, scene: Scene) -> Result<Said> {
        let what = target(&scene, &self.r#ref)?;
        let onto = self.to.as_deref().map(|to| target(&scene, to)).transpose()?;
        if onto.is_none() && self.dx.is_none() && self.dy.is_none() {
            return Err(BrowserError::cannot("say where to: `to`, or `dx` and `dy`"));
        }
        let drag = async {
            let to = match &onto {
                Some(onto) => Some(scene.desk.aim(onto, Care::Anyhow).await?.1),
                None => None,
            };
            let (_, from) = scene.desk.aim(&what, Care::Checked).await?;
            let to = match (to, &onto) {
                // Bringing the one into view may have moved the other.
                (Some(_), Some(onto)) => scene.desk.aim(onto, Care::Anyhow).await?.1,
                _ => Point {
                    x: from.x + self.dx.unwrap_or_default(),
                    y: from.y + self.dy.unwrap_or_default(),
                },
            };
            scene.desk.drag(from, to).await
        };
        scene.act(drag, |()| format!("dragged {}", told(&what))).await
    }
}

#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Way {
    Down,
    Up,
    Left,
    Right,
    Top,
    Bottom,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Scroll {
    /// Which way: down, up, left, right, or to the top or the bottom. Without one, the element is
    /// brought into view.
    #[serde(default)]
    to: Option<Way>,
    /// What to scroll or to bring into view, by its reference; the page otherwise.
    #[serde(default)]
    r#ref: Option<String>,
    /// How far, in views.
    #[serde(default)]
    views: Option<f64>,
}

impl Action for Scroll {
    const NAME: &'static str = "scroll";
    const ABOUT: &'static str = "Scrolls the page, or what scrolls around an element, and waits for \
        what loads then; or brings an element into view.";
    const EFFECT: Effect = Effect::Idempotent;

    async fn run(self, scene: Scene) -> Result<Said> {
        let target = self.r#ref.as_deref().map(|to| target(&scene, to)).transpose()?;
        let Some(way) = self.to else {
            let Some(target) = target else {
                return Err(BrowserError::cannot("say which way, or what to bring into view"));
            };
            let bring = scene.desk.bring_into_view(&target);
            return scene.act(bring, |()| format!("{} is in view", told(&target))).await;
        };
        let far = self.views.unwrap_or(0.9).clamp(0.01, 100.0);
        let (by, end) = match way {
            Way::Down => ((0.0, far), None),
            Way::Up => ((0.0, -far), None),
            Way::Left => ((-far, 0.0), None),
            Way::Right => ((far, 0.0), None),
            Way::Top => ((0.0, -1.0), Some("start")),
            Way::Bottom => ((0.0, 1.0), Some("end")),
        };
        let scroll = scene.desk.scroll(target.as_ref(), by, end);
        scene
            .act(scroll, |scrolled| {
                let what = if scrolled.page { "the page" } else { "the part" };
                let end = scrolled.at + scrolled.seen;
                let place =
                    format!("{:.0}–{end:.0} of {:.0} px in view", scrolled.at, scrolled.whole);
                match scrolled.moved {
                    true => format!("scrolled {what}: {place}"),
                    false => format!("{what} does not scroll further that way: {place}"),
                }
            })
            .await
    }
}
