//! What a call would do, judged by where it would do it.
//!
//! A page on the list of sites was allowed beforehand. On another page, which somebody let the
//! browser go to, pointing is free: it tells the page nothing but which of its own things was
//! chosen. Writing into it sends what is written to its makers, since a script can read along.

use duologue_core::Risk;

use crate::{
    browser::Browser,
    desk::{Desk, Target},
    sites::Standing,
    snapshot::refs::Reference,
};

/// What an action does to a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Deed {
    /// Chooses something on it.
    Point,
    /// Gives it text.
    Write,
    /// Sends a form.
    Submit,
    /// Gives it a file.
    Upload,
}

/// The risk of going to an address.
pub(super) fn of_going(browser: &Browser, desk: Option<&Desk>, address: &str) -> Risk {
    match browser.config().sites.judge(address) {
        // It is refused when it runs, with the reason.
        Standing::Listed | Standing::Refused(_) => Risk::Harmless,
        Standing::Unlisted => {
            let known = desk.is_some_and(|desk| {
                let state = desk.state();
                let permits = &state.permits;
                permits.has_visited(address)
                    || (permits.is_offered(address) && permits.knows_origin(address))
            });
            if known { Risk::Harmless } else { Risk::SendsTo { target: host(address) } }
        }
    }
}

/// The risk of doing something to an element.
pub(super) fn of_element(
    browser: &Browser,
    desk: Option<&Desk>,
    reference: &str,
    deed: Deed,
) -> Risk {
    // What points nowhere fails when it runs, and says why.
    let Some(target) = target(desk, reference) else { return Risk::Harmless };
    let Some(desk) = desk else { return Risk::Harmless };
    let page = desk.state().frame(&target.frame).map(|frame| frame.url.clone());
    let page = page.unwrap_or_default();
    match (&target.known.submits, deed) {
        (Some(action), Deed::Point) => of_page(browser, desk, action, Deed::Submit),
        _ => of_page(browser, desk, &page, deed),
    }
}

/// The risk of doing something to the page in view.
pub(super) fn of_view(browser: &Browser, desk: Option<&Desk>, deed: Deed) -> Risk {
    let Some(desk) = desk else { return Risk::Harmless };
    let page = {
        let state = desk.state();
        let Ok(tab) = state.current_tab() else { return Risk::Harmless };
        tab.url().to_owned()
    };
    of_page(browser, desk, &page, deed)
}

/// What an element's reference points at, if it does.
pub(super) fn target(desk: Option<&Desk>, reference: &str) -> Option<Target> {
    let reference: Reference = reference.parse().ok()?;
    desk?.look_up(reference).ok()
}

fn of_page(browser: &Browser, desk: &Desk, page: &str, deed: Deed) -> Risk {
    let listed = browser.config().sites.judge(page) == Standing::Listed;
    let state = desk.state();
    let permits = &state.permits;
    let host = host(page);
    match (deed, listed) {
        (Deed::Point | Deed::Write, true) => Risk::Harmless,
        (Deed::Submit, true) => Risk::Grave { reason: format!("it sends a form to {host}") },
        (Deed::Upload, true) => Risk::Grave { reason: format!("it gives a file to {host}") },
        // An empty page, or one that the page around wrote itself.
        (Deed::Point, false) if permits.knows_origin(page) || !page.starts_with("http") => {
            Risk::Harmless
        }
        (Deed::Write, false) if permits.may_type(page) => Risk::Harmless,
        (Deed::Point | Deed::Write | Deed::Submit | Deed::Upload, false) => {
            Risk::SendsTo { target: host }
        }
    }
}

/// The host of an address, for people.
fn host(address: &str) -> String {
    let host = url::Url::parse(address).ok().and_then(|url| url.host_str().map(str::to_owned));
    host.unwrap_or_else(|| address.to_owned())
}
