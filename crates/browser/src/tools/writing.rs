//! `fill`, `press_key`, `select`, `check`.

use duologue_core::{Effect, Risk};
use schemars::JsonSchema;
use serde::Deserialize;

use super::{
    Action, Said, Scene, Stir,
    pointing::{target, told},
    risk::{self, Deed},
};
use crate::{
    act::{Button, Care, fields::Writing, keys::Stroke},
    browser::Browser,
    desk::Desk,
    error::{BrowserError, Result},
    snapshot::{clip, tidy},
};

/// How many times a key may be pressed in one call.
const MOST_PRESSES: u32 = 200;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Fill {
    /// The field, by its reference.
    r#ref: String,
    /// What it shall hold; an empty text clears it. Dates are written 2026-01-31, times 14:05.
    text: String,
    /// Key by key instead of at once, for pages that listen to keys.
    #[serde(default)]
    by_keys: bool,
    /// Press Enter afterwards, which sends most forms.
    #[serde(default)]
    submit: bool,
}

impl Action for Fill {
    const NAME: &'static str = "fill";
    const ABOUT: &'static str = "Writes into a field, in place of what it holds. Works for text, \
        dates, times, colours, sliders and editable text. Lists take select, boxes check, files \
        upload.";
    const EFFECT: Effect = Effect::SideEffect;

    fn risk(&self, browser: &Browser, desk: Option<&Desk>) -> Risk {
        let deed = if self.submit { Deed::Submit } else { Deed::Write };
        risk::of_element(browser, desk, &self.r#ref, deed)
    }

    async fn run(self, scene: Scene) -> Result<Said> {
        let target = target(&scene, &self.r#ref)?;
        permit(&scene, &target.frame, self.submit);
        let writing = if self.by_keys { Writing::KeyByKey } else { Writing::AtOnce };
        let fill = async {
            let filled = scene.desk.fill(&target, &self.text, writing).await?;
            if self.submit {
                scene.desk.stroke(&target.session, &Stroke::read("Enter")?).await?;
            }
            let stirs = filled.stirred || self.submit;
            Ok((filled.holds, if stirs { Stir::Unknown } else { Stir::None }))
        };
        let said = scene
            .act_and_watch(fill, |holds| match holds {
                Some(holds) if holds != self.text => {
                    format!("filled {}; it holds {:?}", told(&target), clip(&tidy(&holds), 200))
                }
                _ => format!("filled {}", told(&target)),
            })
            .await;
        scene.desk.release(&target.session);
        said
    }
}

/// Note that writing into a page was permitted.
fn permit(scene: &Scene, frame: &str, submits: bool) {
    let mut state = scene.desk.state();
    let Some(url) = state.frame(frame).map(|frame| frame.url.clone()) else { return };
    state.permits.type_into(&url);
    if submits {
        state.permits.submit_to(&url);
    }
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct PressKey {
    /// One character, a name such as Enter, Tab, Escape, ArrowDown, Backspace or F5, or a chord
    /// such as Control+A.
    key: String,
    /// Where, by its reference; where the keyboard is otherwise.
    #[serde(default)]
    r#ref: Option<String>,
    /// How many times.
    #[serde(default)]
    times: Option<u32>,
}

impl Action for PressKey {
    const NAME: &'static str = "press_key";
    const ABOUT: &'static str = "Presses a key or a chord. Enter in a form sends it.";
    const EFFECT: Effect = Effect::SideEffect;

    fn risk(&self, browser: &Browser, desk: Option<&Desk>) -> Risk {
        let Ok(stroke) = Stroke::read(&self.key) else { return Risk::Harmless };
        let deed = match (stroke.is_enter(), stroke.writes()) {
            (true, _) => Deed::Submit,
            (false, true) => Deed::Write,
            (false, false) => Deed::Point,
        };
        match &self.r#ref {
            Some(reference) => risk::of_element(browser, desk, reference, deed),
            None => risk::of_view(browser, desk, deed),
        }
    }

    async fn run(self, scene: Scene) -> Result<Said> {
        let stroke = Stroke::read(&self.key)?;
        let target = self.r#ref.as_deref().map(|to| target(&scene, to)).transpose()?;
        let (_, main) = scene.desk.current()?;
        let frame = match &target {
            Some(target) => target.frame.clone(),
            None => scene.desk.state().current_tab()?.target.clone(),
        };
        if stroke.writes() {
            permit(&scene, &frame, stroke.is_enter());
        }
        let times = self.times.unwrap_or(1).clamp(1, MOST_PRESSES);
        let press = async {
            if let Some(target) = &target {
                scene.desk.focus(target).await?;
            }
            let session = target.as_ref().map_or(&main, |target| &target.session);
            for _ in 0..times {
                scene.desk.stroke(session, &stroke).await?;
            }
            Ok(())
        };
        scene.act(press, |()| format!("pressed {}", self.key)).await
    }
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Select {
    /// The list, by its reference.
    r#ref: String,
    /// The options to choose, as they are shown; several only where the list allows it.
    options: Vec<String>,
}

impl Action for Select {
    const NAME: &'static str = "select";
    const ABOUT: &'static str =
        "Chooses options of a list (an HTML select). Other lists are clicked.";
    const EFFECT: Effect = Effect::SideEffect;

    fn risk(&self, browser: &Browser, desk: Option<&Desk>) -> Risk {
        risk::of_element(browser, desk, &self.r#ref, Deed::Point)
    }

    async fn run(self, scene: Scene) -> Result<Said> {
        let target = target(&scene, &self.r#ref)?;
        let choose = scene.desk.choose(&target, &self.options);
        let said = scene
            .act(choose, |chosen| {
                let chosen = tidy(&chosen.join(", "));
                format!("chose {:?} in {}", clip(&chosen, 200), told(&target))
            })
            .await;
        scene.desk.release(&target.session);
        said
    }
}

fn yes() -> bool {
    true
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Check {
    /// The box, switch or radio button, by its reference.
    r#ref: String,
    /// Whether it shall be checked.
    #[serde(default = "yes")]
    checked: bool,
}

impl Action for Check {
    const NAME: &'static str = "check";
    const ABOUT: &'static str = "Checks or unchecks a box, a switch or a radio button; does nothing \
        if it is so already.";
    const EFFECT: Effect = Effect::SideEffect;

    fn risk(&self, browser: &Browser, desk: Option<&Desk>) -> Risk {
        risk::of_element(browser, desk, &self.r#ref, Deed::Point)
    }

    async fn run(self, scene: Scene) -> Result<Said> {
        let target = target(&scene, &self.r#ref)?;
        let word = if self.checked { "checked" } else { "unchecked" };
        let check = async {
            let element = scene.desk.element(&target).await?;
            let before = scene.desk.ticked(&target, &element).await?;
            if before.ticked == self.checked {
                return Ok("already");
            }
            if before.radio && !self.checked {
                return Err(BrowserError::cannot(format!(
                    "{}: a radio button is unchecked by checking another of its group",
                    target.reference
                )));
            }
            let (_, point) = scene.desk.aim(&target, Care::Checked).await?;
            scene.desk.press(point, Button::Left, 1).await?;
            match scene.desk.ticked(&target, &element).await {
                Ok(after) if after.ticked != self.checked => Err(BrowserError::cannot(format!(
                    "{}: it was clicked and is still not {word}",
                    target.reference
                ))),
                _ => Ok("now"),
            }
        };
        let said = scene.act(check, |when| format!("{} is {when} {word}", told(&target))).await;
        scene.desk.release(&target.session);
        said
    }
}
