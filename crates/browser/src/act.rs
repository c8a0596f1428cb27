//! Acting on a page as a person would: pointer, keyboard, fields, files.

use std::time::{Duration, Instant};

use serde::{Deserialize, de::DeserializeOwned};
use serde_json::{Value, json};

use crate::{
    cdp::{CdpSession, Sent},
    desk::{Desk, TabId, Target},
    error::{BrowserError, Result},
};

pub(crate) mod drag;
pub(crate) mod fields;
pub(crate) mod keys;

/// How long an element may take to become ready to be acted on.
const READY: Duration = Duration::from_secs(2);

/// An element, held for a moment.
#[derive(Clone, Debug)]
pub(crate) struct Element {
    object: String,
    session: CdpSession,
}

/// A point of what is seen, in pixels.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
pub(crate) struct Point {
    pub(crate) x: f64,
    pub(crate) y: f64,
}

/// Which button of the mouse.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Button {
    #[default]
    Left,
    Right,
    Middle,
}

impl Button {
    fn word(self) -> &'static str {
        match self {
            Self::Left => "left",
            Self::Right => "right",
            Self::Middle => "middle",
        }
    }
}

/// Brings an element into view and tells where to press it, or why it cannot be pressed.
const AIM: &str = "async function(checked) {
  const el = this.nodeType === 1 ? this : this.parentElement;
  if (!el || !el.isConnected) return {state: 'gone'};
  const inside = (node, outer) => {
    for (; node; node = node.assignedSlot || node.parentNode || node.host) if (node === outer) return true;
    return false;
  };
  const moving = () => document.getAnimations().some(a => a.playState === 'running'
    && a.effect && a.effect.target && inside(el, a.effect.target)
    && Number.isFinite(a.effect.getComputedTiming().endTime));
  for (let i = 0; i < 40 && moving(); i++) await new Promise(r => requestAnimationFrame(r));
  const view = () => [...el.getClientRects()].find(r => r.width > 0 && r.height > 0);
  let r = view();
  if (!r && el.tagName === 'AREA') r = el.closest('map') && document.querySelector('img[usemap]').getBoundingClientRect();
  if (!r) return {state: 'hidden'};
  const outside = r => r.bottom <= 0 || r.right <= 0 || r.top >= innerHeight || r.left >= innerWidth;
  const middle = r => ({
    x: (Math.max(r.left, 0) + Math.min(r.right, innerWidth)) / 2,
    y: (Math.max(r.top, 0) + Math.min(r.bottom, innerHeight)) / 2});
  const root = el.getRootNode();
  const at = p => {
    const hit = (root.elementFromPoint ? root : document).elementFromPoint(p.x, p.y) || document.elementFromPoint(p.x, p.y);
    if (!hit) return {p, ok: false};
    const label = hit.closest && hit.closest('label');
    const ok = inside(hit, el) || (label && (label.control === el || inside(el, label))) || (inside(el, hit) && hit.tagName !== 'BODY' && hit.tagName !== 'HTML' && getComputedStyle(el).pointerEvents === 'none');
    return {p, hit, ok};
  };
  const look = () => {
    const first = at(middle(r));
    if (first.ok || !checked) return first;
    // Where the middle is covered, another part of it may still be open.
    for (const u of [0.5, 0.15, 0.85, 0.05, 0.95]) for (const v of [0.5, 0.15, 0.85, 0.05, 0.95]) {
      const p = {x: r.left + r.width * u, y: r.top + r.height * v};
      if (p.x < 0 || p.y < 0 || p.x >= innerWidth || p.y >= innerHeight) continue;
      const other = at(p);
      if (other.ok) return other;
    }
    return first;
  };
  let seen = outside(r) ? {ok: false} : look();
  if (!seen.ok) {
    el.scrollIntoView({block: 'center', inline: 'center', behavior: 'instant'});
    r = view();
    if (!r) return {state: 'hidden'};
    seen = look();
  }
  const disabled = el.matches(':disabled') || !!(el.closest && el.closest('[aria-disabled=\"true\"]'));
  if (checked && disabled) return {state: 'disabled'};
  if (checked && !seen.ok) {
    const h = seen.hit;
    const what = h ? h.tagName.toLowerCase() + (h.id ? '#' + h.id : '') + ' ' + JSON.stringify((h.innerText || '').trim().slice(0, 60)) : 'nothing';
    return {state: 'covered', what};
  }
  return {state: 'ready', x: seen.p.x, y: seen.p.y, width: r.width, height: r.height, left: r.left, top: r.top};
}";

/// Where the inside of a frame's element begins.
const INSIDE: &str = "function() {
  const r = this.getBoundingClientRect();
  if (r.bottom <= 0 || r.right <= 0 || r.top >= innerHeight || r.left >= innerWidth)
    this.scrollIntoView({block: 'center', behavior: 'instant'});
  const s = getComputedStyle(this), b = this.getBoundingClientRect();
  return {x: b.left + this.clientLeft + parseFloat(s.paddingLeft), y: b.top + this.clientTop + parseFloat(s.paddingTop)};
}";

#[derive(Deserialize)]
#[serde(tag = "state", rename_all = "lowercase")]
enum Aim {
    Ready { x: f64, y: f64 },
    Gone,
    Hidden,
    Disabled,
    Covered { what: String },
}

/// Whether an element must be open to a person's pointer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Care {
    /// It must be enabled and uncovered.
    Checked,
    /// Only its place is wanted.
    Anyhow,
}

impl Desk {
    /// Hold on to what a reference points at.
    pub(crate) async fn element(&self, target: &Target) -> Result<Element> {
        // A page that crashed or is held by a dialog would leave the question unanswered.
        self.current()?;
        self.element_of(&target.frame, target.known.backend).await.map_err(|error| match error {
            BrowserError::Refused { .. } => BrowserError::cannot(format!(
                "{} is stale: it is no longer on the page; take a new snapshot",
                target.reference
            )),
            other => other,
        })
    }

    async fn element_of(&self, frame: &str, backend: i64) -> Result<Element> {
        #[derive(Deserialize)]
        struct Resolved {
            object: Object,
        }
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Object {
            object_id: String,
        }
        let (session, world) = self.world(frame).await?;
        let params = json!({
            "backendNodeId": backend,
            "executionContextId": world,
            "objectGroup": "duologue",
        });
        let resolved: Resolved =
            self.connection.call(Some(&session), "DOM.resolveNode", params).await?;
        Ok(Element { object: resolved.object.object_id, session })
    }

    /// Call a function of ours on an element, out of reach of the page's scripts.
    pub(crate) async fn call_on<T: DeserializeOwned>(
        &self,
        element: &Element,
        function: &str,
        arguments: &[Value],
    ) -> Result<T> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Called {
            result: Returned,
            exception_details: Option<Exception>,
        }
        #[derive(Deserialize)]
        struct Returned {
            #[serde(default)]
            value: Value,
        }
        #[derive(Deserialize)]
        struct Exception {
            text: String,
            exception: Option<Thrown>,
        }
        #[derive(Deserialize)]
        struct Thrown {
            description: Option<String>,
        }
        let arguments: Vec<Value> = arguments.iter().map(|value| json!({"value": value})).collect();
        let params = json!({
            "objectId": element.object,
            "functionDeclaration": function,
            "arguments": arguments,
            "returnByValue": true,
            "awaitPromise": true,
        });
        let called: Called =
            self.connection.call(Some(&element.session), "Runtime.callFunctionOn", params).await?;
        if let Some(exception) = called.exception_details {
            let told = exception.exception.and_then(|thrown| thrown.description);
            let told = told.unwrap_or(exception.text);
            let told = told.lines().next().unwrap_or_default().trim_start_matches("Error: ");
            return Err(BrowserError::cannot(told.to_owned()));
        }
        serde_json::from_value(called.result.value).map_err(|error| BrowserError::Unexpected {
            method: "Runtime.callFunctionOn".into(),
            error: error.to_string(),
        })
    }

    /// Let go of all elements.
    pub(crate) fn release(&self, session: &CdpSession) {
        let params = json!({"objectGroup": "duologue"});
        drop(self.connection.send(Some(session), "Runtime.releaseObjectGroup", params));
    }

    /// Where to press an element, in the coordinates of the tab. Waits a moment for one that is
    /// hidden or covered.
    pub(crate) async fn aim(&self, target: &Target, care: Care) -> Result<(Element, Point)> {
        let element = self.element(target).await?;
        let deadline = Instant::now() + READY;
        let reference = target.reference;
        loop {
            let checked = care == Care::Checked;
            let aim: Aim = self.call_on(&element, AIM, &[checked.into()]).await?;
            let problem = match aim {
                Aim::Ready { x, y } => {
                    let corner = self.corner(&target.frame).await?;
                    return Ok((element, Point { x: x + corner.x, y: y + corner.y }));
                }
                Aim::Gone => {
                    return Err(BrowserError::cannot(format!(
                        "{reference} is stale: it is no longer on the page; take a new snapshot"
                    )));
                }
                Aim::Hidden => format!("{reference} is not shown"),
                Aim::Disabled => format!("{reference} is disabled"),
                Aim::Covered { what } => {
                    let what = crate::snapshot::tidy(&what);
                    format!("{reference} is covered by {what}; close or move that first")
                }
            };
            if Instant::now() >= deadline {
                return Err(BrowserError::cannot(problem));
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    /// Where a frame's document begins, in the coordinates of the tab.
    pub(crate) async fn corner(&self, frame: &str) -> Result<Point> {
        let mut corner = Point { x: 0.0, y: 0.0 };
        let mut at = frame.to_owned();
        // Frames in frames; a bound, should a page make them go round.
        for _ in 0..16 {
            let parent = self.state().frame(&at).and_then(|frame| frame.parent.clone());
            let Some(parent) = parent else { return Ok(corner) };
            let Some(owner) = self.frame_owner(&at).await else { return Ok(corner) };
            let element = self.element_of(&parent, owner).await?;
            let inside: Point = self.call_on(&element, INSIDE, &[]).await?;
            corner.x += inside.x;
            corner.y += inside.y;
            at = parent;
        }
        Ok(corner)
    }

    /// Press at a point. A dialog that opens meanwhile holds the page, and ends the waiting.
    pub(crate) async fn press(&self, point: Point, button: Button, times: u32) -> Result<()> {
        let (tab, session) = self.current()?;
        let mut sent = vec![self.mouse(&session, "mouseMoved", point, "none", 0, 0)];
        for count in 1..=times {
            sent.push(self.mouse(&session, "mousePressed", point, button.word(), 1, count));
            sent.push(self.mouse(&session, "mouseReleased", point, button.word(), 0, count));
        }
        self.unless_held(tab, sent).await
    }

    /// Move the pointer to a point.
    pub(crate) async fn point_at(&self, point: Point) -> Result<()> {
        let (tab, session) = self.current()?;
        let sent = vec![self.mouse(&session, "mouseMoved", point, "none", 0, 0)];
        self.unless_held(tab, sent).await
    }

    fn mouse(
        &self,
        session: &CdpSession,
        kind: &str,
        point: Point,
        button: &str,
        buttons: u32,
        count: u32,
    ) -> Sent {
        let params = json!({
            "type": kind,
            "x": point.x,
            "y": point.y,
            "button": button,
            "buttons": buttons,
            "clickCount": count,
        });
        self.connection.send(Some(session), "Input.dispatchMouseEvent", params)
    }

    /// Wait for commands, unless the page cannot go on.
    async fn unless_held(&self, tab: TabId, sent: Vec<Sent>) -> Result<()> {
        let all = async {
            for command in sent {
                match command.done().await {
                    Ok(()) => {}
                    // A page that left under the pointer took it as meant.
                    Err(error) if error.is_page_gone() => {}
                    Err(error) => return Err(error),
                }
            }
            Ok(())
        };
        let held = self.until(Duration::from_secs(60), |state| {
            state.tab(tab).is_none_or(|tab| tab.dialog.is_some() || tab.crashed).then_some(())
        });
        tokio::select! {
            done = all => done,
            _ = held => Ok(()),
        }
    }
}
