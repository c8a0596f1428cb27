//! What a good player does in each task, by our tools alone.

use regex::Regex;
use serde_json::json;

use crate::support::{Hand, find, references};

type Played = Result<(), String>;

/// Play one episode.
pub async fn play(hand: &Hand, task: &str, utterance: &str) -> Played {
    let page = hand.snapshot().await;
    let player = Player { hand, page, utterance };
    match task {
        "click-test" => player.click("Click Me!").await,
        "click-test-2" => player.click("button \"ONE\"").await,
        "click-button" | "unicode-test" => {
            let name = player.quoted(0)?;
            player.click(&format!("button \"{name}\"")).await
        }
        "click-link" => {
            let name = player.quoted(0)?;
            player.click(&format!("\"{name}\"")).await
        }
        "click-dialog" => player.click("button \"Close\"").await,
        "click-dialog-2" => match player.quoted(0)?.as_str() {
            "x" => player.click("button \"Close\"").await,
            name => player.click(&format!("button \"{name}\"")).await,
        },
        "click-button-sequence" => {
            player.click("button \"ONE\"").await?;
            player.click("button \"TWO\"").await
        }
        "enter-text" | "enter-text-dynamic" => player.enter(&player.quoted(0)?).await,
        "focus-text" => player.click_nth("textbox", 0).await,
        "focus-text-2" => {
            let nth = player.capture(r"the (\d)")?.parse::<usize>().unwrap();
            player.click_nth("textbox", nth - 1).await
        }
        "enter-password" => {
            let word = player.quoted(0)?;
            for nth in 0..2 {
                player.fill(&player.nth("password", nth)?, &word).await?;
            }
            player.click("button \"Submit\"").await
        }
        "login-user" => {
            player.fill(&player.nth("textbox", 0)?, &player.quoted(0)?).await?;
            player.fill(&player.nth("password", 0)?, &player.quoted(1)?).await?;
            player.click("button \"Login\"").await
        }
        "click-option" | "click-checkboxes" => {
            let names = player.capture("Select (.*) and click Submit")?;
            let role = if task == "click-option" { "radio" } else { "checkbox" };
            for name in names.split(", ").filter(|name| *name != "nothing") {
                let place = player.reference(&format!("{role} \"{name}\""))?;
                hand.try_call("check", json!({"ref": place})).await?;
            }
            player.click("button \"Submit\"").await
        }
        "click-tab" => {
            let name = player.capture("Click on (.*)\\.")?;
            player.click(&format!("\"{name}\"")).await
        }
        "choose-list" => {
            let name = player.capture("Select (.*) from the list")?;
            let list = player.reference("combobox")?;
            hand.try_call("select", json!({"ref": list, "options": [name]})).await?;
            player.click("button \"Submit\"").await
        }
        "simple-arithmetic" => {
            let sum = Regex::new(r"(\d) ([-+x]) (\d) =").unwrap();
            let found = sum.captures(&player.page).ok_or("no sum")?;
            let number = |at: usize| found[at].parse::<i32>().unwrap();
            let answer = match &found[2] {
                "+" => number(1) + number(3),
                "-" => number(1) - number(3),
                _ => number(1) * number(3),
            };
            player.enter(&answer.to_string()).await
        }
        "click-collapsible" => {
            player.click("Section #").await?;
            let next = Player { page: hand.snapshot().await, ..player };
            next.click("button \"Submit\"").await
        }
        "copy-paste" => {
            let text = Regex::new("textbox = \"([^\"]+)\" \\(multiline").unwrap();
            let text = text.captures(&player.page).ok_or("no text to copy")?[1].to_owned();
            let fields = Regex::new(r#"(f\d+:e\d+) textbox( = "[^"]*")?( \(multiline)?"#).unwrap();
            let mut fields = fields.captures_iter(&player.page);
            let field =
                fields.find(|field| field.get(3).is_none()).ok_or("no field")?[1].to_owned();
            player.fill(&field, &text).await?;
            player.click("button \"Submit\"").await
        }
        "read-table" => {
            let name = player.capture("the value of (.*) into")?;
            let row = format!("| {name} | ");
            let line = player.page.lines().find(|line| line.starts_with(&row)).ok_or("no row")?;
            player.enter(line.trim_start_matches(&row)).await
        }
        "find-word" => {
            let nth = player.capture(r"the (\d+)\w+ word")?.parse::<usize>().unwrap();
            let mut lines = player.page.lines().skip_while(|line| !line.contains("and press"));
            let text = lines.nth(1).ok_or("no paragraph")?;
            let word = text.split_whitespace().nth(nth - 1).ok_or("too few words")?;
            player.enter(word.trim_matches(|c: char| !c.is_alphabetic())).await
        }
        "use-spinner" => {
            let wanted = player.capture(r"Select (-?\d+) with")?.parse::<i32>().unwrap();
            let field = player.reference("Select a value")?;
            let key = if wanted < 0 { "ArrowDown" } else { "ArrowUp" };
            for _ in 0..wanted.abs() {
                hand.try_call("press_key", json!({"key": key, "ref": field})).await?;
            }
            player.click("button \"Submit\"").await
        }
        "text-transform" => {
            let mut lines =
                player.page.lines().skip_while(|line| !line.contains("Type the text below"));
            let word = lines.nth(1).ok_or("no word")?.to_owned();
            player.enter(&word).await
        }
        "enter-date" => {
            let date = player.capture(r"Enter (\d+/\d+/\d+) as")?;
            let parts: Vec<&str> = date.split('/').collect();
            let field = player.reference("date")?;
            player.fill(&field, &format!("{}-{}-{}", parts[2], parts[0], parts[1])).await?;
            player.click("button \"Submit\"").await
        }
        "enter-time" => {
            let clock = Regex::new(r"Enter (\d+):(\d+)\s*([AP])M").unwrap();
            let found = clock.captures(player.utterance).ok_or("no time")?;
            let hour =
                found[1].parse::<u32>().unwrap() % 12 + if &found[3] == "P" { 12 } else { 0 };
            let field =
                player.page.lines().find_map(|line| find(line, " time")).ok_or("no field")?;
            player.fill(&field, &format!("{hour:02}:{}", &found[2])).await?;
            player.click("button \"Submit\"").await
        }
        "click-widget" => {
            let kind = player.quoted(0)?;
            let lines = player.page.lines().filter(|line| !references(line).is_empty());
            let place = lines
                .filter(|line| match kind.as_str() {
                    "text" => line.contains(" textbox") && !line.contains("multiline"),
                    "textarea" => line.contains("multiline"),
                    other => line.contains(&format!(" {other}")),
                })
                .find_map(|line| references(line).first().cloned())
                .ok_or("no widget")?;
            hand.try_call("click", json!({"ref": place})).await.map(|_| ())
        }
        "drag-box" => {
            let (small, large) = (player.reference("\"s\"")?, player.reference("\"L\"")?);
            hand.try_call("drag", json!({"ref": small, "to": large})).await?;
            player.click("button \"Submit\"").await
        }
        other => Err(format!("nobody plays {other}")),
    }
}

struct Player<'a> {
    hand: &'a Hand,
    page: String,
    utterance: &'a str,
}

impl Player<'_> {
    fn reference(&self, what: &str) -> Result<String, String> {
        find(&self.page, what).ok_or_else(|| format!("no {what}"))
    }

    /// The nth text between quotation marks in what is asked.
    fn quoted(&self, nth: usize) -> Result<String, String> {
        let parts: Vec<&str> = self.utterance.split('"').collect();
        parts.get(nth * 2 + 1).map(|text| (*text).to_owned()).ok_or("nothing is quoted".into())
    }

    fn capture(&self, pattern: &str) -> Result<String, String> {
        let found = Regex::new(pattern).unwrap().captures(self.utterance);
        found.map(|found| found[1].to_owned()).ok_or(format!("no {pattern} in what is asked"))
    }

    /// The nth element of a role.
    fn nth(&self, role: &str, nth: usize) -> Result<String, String> {
        let pattern = Regex::new(&format!(r"(f\d+:e\d+) {role}")).unwrap();
        let found = pattern.captures_iter(&self.page).nth(nth);
        found.map(|found| found[1].to_owned()).ok_or(format!("no {role} {nth}"))
    }

    async fn click(&self, what: &str) -> Played {
        let place = self.reference(what)?;
        self.hand.try_call("click", json!({"ref": place})).await.map(|_| ())
    }

    async fn click_nth(&self, role: &str, nth: usize) -> Played {
        let place = self.nth(role, nth)?;
        self.hand.try_call("click", json!({"ref": place})).await.map(|_| ())
    }

    async fn fill(&self, place: &str, text: &str) -> Played {
        self.hand.try_call("fill", json!({"ref": place, "text": text})).await.map(|_| ())
    }

    /// Fill the only field and press the only button.
    async fn enter(&self, text: &str) -> Played {
        self.fill(&self.nth("textbox", 0)?, text).await?;
        self.click("button \"Submit\"").await
    }
}
