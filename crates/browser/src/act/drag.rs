//! Dragging: the mouse is pressed, moved and released, and where the page uses the browser's own
//! drag and drop, what is dragged is carried over and dropped.

use std::time::Duration;

use serde_json::{Value, json};

use super::Point;
use crate::{desk::Desk, error::Result};

/// In how many steps the pointer goes; pages measure how it moves.
const STEPS: u32 = 12;
/// How long the browser may take to say that its own drag and drop began.
const BEGIN: Duration = Duration::from_millis(60);

impl Desk {
    /// Drag from one point to another.
    pub(crate) async fn drag(&self, from: Point, to: Point) -> Result<()> {
        let (tab, session) = self.current()?;
        let intercept = |on: bool| {
            let params = json!({"enabled": on});
            self.connection.send(Some(&session), "Input.setInterceptDrags", params)
        };
        intercept(true).done().await?;
        if let Some(tab) = self.state().tab_mut(tab) {
            tab.drag = None;
        }
        let before = vec![
            self.mouse(&session, "mouseMoved", from, "none", 0, 0),
            self.mouse(&session, "mousePressed", from, "left", 1, 1),
            // A small move first: it makes a drag begin.
            self.mouse(&session, "mouseMoved", between(from, to, 1), "left", 1, 0),
            self.mouse(&session, "mouseMoved", between(from, to, 2), "left", 1, 0),
        ];
        self.unless_held(tab, before).await?;
        let carried = self.until(BEGIN, |state| state.tab_mut(tab)?.drag.take()).await;
        let done = match carried {
            Some(data) => self.carry(&session, from, to, data).await,
            None => {
                for step in 3..=STEPS {
                    let point = between(from, to, step);
                    let moved = vec![self.mouse(&session, "mouseMoved", point, "left", 1, 0)];
                    self.unless_held(tab, moved).await?;
                }
                let up = vec![self.mouse(&session, "mouseReleased", to, "left", 0, 1)];
                self.unless_held(tab, up).await
            }
        };
        let _ = intercept(false).done().await;
        done
    }

    /// The browser's own drag and drop.
    async fn carry(
        &self,
        session: &crate::cdp::CdpSession,
        from: Point,
        to: Point,
        data: Value,
    ) -> Result<()> {
        let tell = |kind: &str, point: Point| {
            let params = json!({"type": kind, "x": point.x, "y": point.y, "data": data});
            self.connection.send(Some(session), "Input.dispatchDragEvent", params)
        };
        tell("dragEnter", between(from, to, 2)).done().await?;
        for step in 3..=STEPS {
            tell("dragOver", between(from, to, step)).done().await?;
        }
        tell("dragEnter", to).done().await?;
        tell("dragOver", to).done().await?;
        tell("drop", to).done().await?;
        self.mouse(session, "mouseReleased", to, "left", 0, 1).done().await
    }
}

fn between(from: Point, to: Point, step: u32) -> Point {
    let part = f64::from(step) / f64::from(STEPS);
    Point { x: from.x + (to.x - from.x) * part, y: from.y + (to.y - from.y) * part }
}
