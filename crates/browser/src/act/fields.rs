//! Fields: writing into them, choosing, ticking, scrolling to them.

use serde::Deserialize;
use serde_json::{Value, json};

use super::{Element, keys::Stroke};
use crate::{
    desk::{Desk, Target},
    error::{BrowserError, Result},
};

/// Makes a field ready to be written into, or writes what only its value can hold.
const READY_TO_WRITE: &str = "function(text) {
  let el = this.nodeType === 1 ? this : this.parentElement;
  if (!el || !el.isConnected) throw new Error('it is no longer on the page; take a new snapshot');
  if (el.tagName === 'LABEL' && el.control) el = el.control;
  if (el.matches(':disabled')) throw new Error('it is disabled');
  if (el.readOnly) throw new Error('it is read-only');
  const watch = () => {
    let stirs = false;
    const observer = new MutationObserver(() => { stirs = true; });
    observer.observe(el.ownerDocument, {subtree: true, childList: true, attributes: true, characterData: true});
    globalThis.duologueStirred = () => { observer.disconnect(); return stirs; };
  };
  el.scrollIntoView({block: 'nearest', inline: 'nearest', behavior: 'instant'});
  const tag = el.tagName;
  if (tag === 'SELECT') throw new Error('it is a list; use select');
  if (tag === 'INPUT') {
    const type = el.type;
    if (type === 'checkbox' || type === 'radio') throw new Error('it is a ' + type + '; use check');
    if (type === 'file') throw new Error('it takes files; use upload');
    if (['button', 'submit', 'reset', 'image'].includes(type)) throw new Error('it is a button; use click');
    if (['date', 'time', 'month', 'week', 'datetime-local', 'color', 'range'].includes(type)) {
      el.focus();
      watch();
      const before = el.value;
      Object.getOwnPropertyDescriptor(HTMLInputElement.prototype, 'value').set.call(el, text);
      if (text && el.value !== text && type !== 'range') {
        Object.getOwnPropertyDescriptor(HTMLInputElement.prototype, 'value').set.call(el, before);
        const shape = {date: '2026-01-31', time: '14:05', month: '2026-01', week: '2026-W05', 'datetime-local': '2026-01-31T14:05', color: '#aabbcc'}[type];
        throw new Error('it takes a ' + type + ' such as ' + shape + ', not ' + JSON.stringify(text));
      }
      el.dispatchEvent(new Event('input', {bubbles: true, composed: true}));
      el.dispatchEvent(new Event('change', {bubbles: true}));
      return 'set';
    }
  }
  if (tag === 'INPUT' || tag === 'TEXTAREA') {
    el.focus();
    el.select();
    watch();
    return 'write';
  }
  if (el.isContentEditable) {
    el.focus();
    const range = el.ownerDocument.createRange();
    range.selectNodeContents(el);
    const selection = el.getRootNode().getSelection ? el.getRootNode().getSelection() : getSelection();
    selection.removeAllRanges();
    selection.addRange(range);
    watch();
    return 'write';
  }
  const inner = el.querySelectorAll('input:not([type=hidden]), textarea, [contenteditable]');
  throw new Error('nothing can be written into it' + (inner.length === 1 ? '; the field is inside of it' : ''));
}";

/// What a field holds, and whether anything on the page changed since it was made ready, after
/// what the page put off until the next moment.
const FILLED: &str = "async function() {
  await new Promise(done => setTimeout(done));
  const el = this.tagName === 'LABEL' && this.control ? this.control : this;
  const stirred = globalThis.duologueStirred ? duologueStirred() : true;
  const secret = el.type === 'password';
  const holds = secret ? null : 'value' in el && el.tagName !== 'BUTTON' ? String(el.value) : el.isContentEditable ? el.innerText : null;
  return {holds, stirred};
}";

const CHOOSE: &str = "function(wanted) {
  let el = this.tagName === 'OPTION' ? this.closest('select') : this.tagName === 'LABEL' && this.control ? this.control : this;
  if (!el || el.tagName !== 'SELECT') throw new Error('it is no list of options; click it and then the option');
  if (el.matches(':disabled')) throw new Error('it is disabled');
  const all = [...el.options];
  const tidy = s => s.replace(/\\s+/g, ' ').trim();
  const find = w => all.find(o => tidy(o.label) === tidy(w)) || all.find(o => o.value === w)
    || all.find(o => tidy(o.label).toLowerCase() === tidy(w).toLowerCase());
  const chosen = wanted.map(w => {
    const option = find(w);
    if (!option) throw new Error('there is no option ' + JSON.stringify(w) + '; there are ' + all.slice(0, 40).map(o => JSON.stringify(tidy(o.label))).join(', ') + (all.length > 40 ? ', …' : ''));
    if (option.disabled) throw new Error('the option ' + JSON.stringify(w) + ' is disabled');
    return option;
  });
  if (!el.multiple && chosen.length !== 1) throw new Error('one option can be chosen, not ' + chosen.length);
  el.focus();
  if (el.multiple) all.forEach(o => { o.selected = chosen.includes(o); });
  else chosen[0].selected = true;
  el.dispatchEvent(new Event('input', {bubbles: true, composed: true}));
  el.dispatchEvent(new Event('change', {bubbles: true}));
  return [...el.selectedOptions].map(o => tidy(o.label));
}";

/// Whether something that can be ticked is.
const TICKED: &str = "function() {
  const el = this.tagName === 'LABEL' && this.control ? this.control : this;
  if (el.type === 'checkbox' || el.type === 'radio') return {ticked: el.checked, radio: el.type === 'radio'};
  const said = el.getAttribute('aria-checked') ?? el.getAttribute('aria-selected') ?? el.getAttribute('aria-pressed');
  const inner = said === null && el.querySelector && el.querySelector('input[type=checkbox], input[type=radio]');
  if (inner) return {ticked: inner.checked, radio: inner.type === 'radio'};
  if (said === null) throw new Error('it is nothing that can be checked');
  return {ticked: said === 'true', radio: el.getAttribute('role') === 'radio'};
}";

const SCROLL: &str = "function(dx, dy, end) {
  const root = document.scrollingElement || document.documentElement;
  const can = (el, x, y) => {
    if (!el || el.nodeType !== 1) return false;
    const s = getComputedStyle(el);
    const way = (over, size, full) => (el === root || /auto|scroll|overlay/.test(over)) && full > size + 1;
    return (y && way(s.overflowY, el.clientHeight, el.scrollHeight)) || (x && way(s.overflowX, el.clientWidth, el.scrollWidth));
  };
  let el = this === document ? document.elementFromPoint(innerWidth / 2, innerHeight / 2) : this.nodeType === 1 ? this : this.parentElement;
  while (el && !can(el, dx, dy)) el = el.assignedSlot || el.parentElement || (el.getRootNode() && el.getRootNode().host);
  if (!el || el === document.body) el = root;
  const before = [el.scrollLeft, el.scrollTop];
  if (end === 'start') el.scrollTo({top: 0, behavior: 'instant'});
  else if (end === 'end') el.scrollTo({top: el.scrollHeight, behavior: 'instant'});
  else el.scrollBy({left: dx * el.clientWidth, top: dy * el.clientHeight, behavior: 'instant'});
  return {
    moved: before[0] !== el.scrollLeft || before[1] !== el.scrollTop,
    at: Math.round(el.scrollTop), seen: el.clientHeight, whole: el.scrollHeight,
    page: el === root};
}";

const INTO_VIEW: &str = "function() {
  const el = this.nodeType === 1 ? this : this.parentElement;
  el.scrollIntoView({block: 'center', inline: 'center', behavior: 'instant'});
}";

/// How far something is scrolled.
#[derive(Debug, Deserialize)]
pub(crate) struct Scrolled {
    pub(crate) moved: bool,
    pub(crate) at: f64,
    pub(crate) seen: f64,
    pub(crate) whole: f64,
    pub(crate) page: bool,
}

#[derive(Debug, Deserialize)]
pub(crate) struct Ticked {
    pub(crate) ticked: bool,
    pub(crate) radio: bool,
}

/// How text gets into a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Writing {
    /// At once, as pasting does.
    AtOnce,
    /// Key by key, for pages that listen to keys.
    KeyByKey,
}

/// What came of writing into a field.
#[derive(Debug, Deserialize)]
pub(crate) struct Filled {
    /// What it holds now, unless that is secret.
    pub(crate) holds: Option<String>,
    /// Whether anything on the page changed meanwhile.
    pub(crate) stirred: bool,
}

impl Desk {
    /// Replace what a field holds.
    pub(crate) async fn fill(
        &self,
        target: &Target,
        text: &str,
        writing: Writing,
    ) -> Result<Filled> {
        let element = self.element(target).await?;
        let way: String = self
            .call_on(&element, READY_TO_WRITE, &[text.into()])
            .await
            .map_err(|error| at(target, error))?;
        if way == "write" {
            match (text.is_empty(), writing) {
                (true, _) => self.stroke(&target.session, &Stroke::read("Delete")?).await?,
                (false, Writing::AtOnce) => {
                    let params = json!({"text": text});
                    self.connection.run(Some(&target.session), "Input.insertText", params).await?;
                }
                (false, Writing::KeyByKey) => {
                    for c in text.chars() {
                        self.stroke(&target.session, &Stroke::character(c, 0)).await?;
                    }
                }
            }
        }
        let filled = self.call_on(&element, FILLED, &[]).await;
        // A page that replaced the field under the text took it as meant.
        Ok(filled.unwrap_or(Filled { holds: None, stirred: true }))
    }

    /// Choose options of a list; those that are chosen then.
    pub(crate) async fn choose(&self, target: &Target, wanted: &[String]) -> Result<Vec<String>> {
        let element = self.element(target).await?;
        let wanted = Value::from(wanted.to_vec());
        self.call_on(&element, CHOOSE, &[wanted]).await.map_err(|error| at(target, error))
    }

    pub(crate) async fn ticked(&self, target: &Target, element: &Element) -> Result<Ticked> {
        self.call_on(element, TICKED, &[]).await.map_err(|error| at(target, error))
    }

    /// Scroll by so many views, or to an end.
    pub(crate) async fn scroll(
        &self,
        target: Option<&Target>,
        by: (f64, f64),
        end: Option<&str>,
    ) -> Result<Scrolled> {
        let element = match target {
            Some(target) => self.element(target).await?,
            None => self.page_element().await?,
        };
        self.call_on(&element, SCROLL, &[by.0.into(), by.1.into(), end.into()]).await
    }

    pub(crate) async fn bring_into_view(&self, target: &Target) -> Result<()> {
        let element = self.element(target).await?;
        self.call_on::<Value>(&element, INTO_VIEW, &[]).await.map(|_| ())
    }

    /// Put the keyboard on an element.
    pub(crate) async fn focus(&self, target: &Target) -> Result<()> {
        let element = self.element(target).await?;
        let focus = "function() { (this.nodeType === 1 ? this : this.parentElement).focus(); }";
        self.call_on::<Value>(&element, focus, &[]).await.map(|_| ())
    }

    /// The document of the current tab, held as an element.
    async fn page_element(&self) -> Result<Element> {
        #[derive(Deserialize)]
        struct Evaluated {
            result: Object,
        }
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Object {
            object_id: Option<String>,
        }
        self.current()?;
        let frame = {
            let state = self.state();
            state.current_tab()?.target.clone()
        };
        let (session, world) = self.world(&frame).await?;
        let params = json!({
            "expression": "document",
            "contextId": world,
            "objectGroup": "duologue",
        });
        let found: Evaluated =
            self.connection.call(Some(&session), "Runtime.evaluate", params).await?;
        let object =
            found.result.object_id.ok_or_else(|| BrowserError::cannot("the page is gone"))?;
        Ok(Element { object, session })
    }
}

/// An error with the element that it is about.
fn at(target: &Target, error: BrowserError) -> BrowserError {
    match error {
        BrowserError::Cannot(reason) => {
            BrowserError::cannot(format!("{}: {reason}", target.reference))
        }
        other => other,
    }
}
