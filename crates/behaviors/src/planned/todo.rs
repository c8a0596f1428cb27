//! The TODO list: what of the plan is done, and what is left.

use std::fmt::Write as _;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::plan::Plan;

/// The most items of a list.
const MOST_ITEMS: usize = 100;

/// A list of what is to be done.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Todo {
    /// The items, in order.
    pub items: Vec<TodoItem>,
    /// How many items without a plan step the task has had.
    #[serde(skip)]
    added: u32,
}

/// One thing to do.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TodoItem {
    /// What it is called; the plan step's id if it is bound to one.
    pub id: String,
    /// What is to be done.
    pub title: String,
    /// The plan step that it stands for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step: Option<String>,
    /// Where it stands.
    pub status: TodoStatus,
}

/// Where an item stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TodoStatus {
    /// To be done.
    #[default]
    Open,
    /// Done.
    Done,
    /// Given up on purpose.
    Skipped,
}

/// What `todo_manager` is asked to do.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
pub(crate) struct TodoRequest {
    /// What to do with the list.
    pub(crate) action: TodoAction,
    /// For set and add: the items.
    #[serde(default)]
    pub(crate) items: Vec<NewItem>,
    /// For complete and skip: the item.
    #[serde(default)]
    pub(crate) id: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum TodoAction {
    Get,
    Set,
    Add,
    Complete,
    Skip,
}

/// An item as the model gives it.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
pub(crate) struct NewItem {
    /// What is to be done.
    pub(crate) title: String,
    /// The id of the plan step that it stands for, if any.
    #[serde(default)]
    pub(crate) step: String,
    /// Where it stands; open if left out.
    #[serde(default)]
    pub(crate) status: TodoStatus,
}

impl Todo {
    /// How many items are done or skipped.
    pub fn finished(&self) -> usize {
        self.items.iter().filter(|item| item.status != TodoStatus::Open).count()
    }

    /// How many items are still to be done.
    pub fn open(&self) -> usize {
        self.items.len() - self.finished()
    }

    /// Whether there are items and none is left to do.
    pub fn is_finished(&self) -> bool {
        !self.items.is_empty() && self.open() == 0
    }

    /// The seed's rule for re-planning after so many steps: too many steps for each finished item
    /// or too little finished.
    pub fn is_slow(&self, steps: u64) -> bool {
        if self.items.is_empty() {
            return false;
        }
        let finished = self.finished() as f64;
        let completion = finished / self.items.len() as f64;
        let steps_per_item = steps as f64 / finished.max(1.0);
        (steps_per_item > 5.0 && completion < 0.5) || (steps > 10 && completion < 0.3)
    }

    /// A new plan: what is finished stays, what was open gives way to the plan's steps.
    pub(crate) fn follow(&mut self, plan: &Plan) {
        self.items.retain(|item| item.status != TodoStatus::Open);
        let steps = plan.steps.iter().map(|step| TodoItem {
            id: step.id.clone(),
            title: step.title.clone(),
            step: Some(step.id.clone()),
            status: TodoStatus::Open,
        });
        self.items.extend(steps);
    }

    /// A tool succeeded: the first open item whose plan step it finishes is done.
    pub(crate) fn tool_succeeded(&mut self, plan: &Plan, tool: &str) -> bool {
        let finishes = |item: &TodoItem| {
            item.status == TodoStatus::Open
                && plan.steps.iter().any(|step| {
                    item.step.as_ref() == Some(&step.id) && step.tool.as_deref() == Some(tool)
                })
        };
        match self.items.iter_mut().find(|item| finishes(item)) {
            Some(item) => {
                item.status = TodoStatus::Done;
                true
            }
            None => false,
        }
    }

    /// Do what the model asked for; what it is told.
    pub(crate) fn apply(&mut self, request: &TodoRequest, plan: &Plan) -> Result<String, String> {
        match request.action {
            TodoAction::Get => {}
            TodoAction::Set => {
                let mut next = Self { items: Vec::new(), added: self.added };
                next.add(&request.items, plan)?;
                *self = next;
            }
            TodoAction::Add => {
                if request.items.is_empty() {
                    return Err("items: what is to be added?".to_owned());
                }
                let mut next = self.clone();
                next.add(&request.items, plan)?;
                *self = next;
            }
            TodoAction::Complete => self.finish_all(request, TodoStatus::Done)?,
            TodoAction::Skip => self.finish_all(request, TodoStatus::Skipped)?,
        }
        Ok(self.to_text())
    }

    fn add(&mut self, items: &[NewItem], plan: &Plan) -> Result<(), String> {
        if self.items.len() + items.len() > MOST_ITEMS {
            return Err(format!("items: a list holds at most {MOST_ITEMS}"));
        }
        for (at, item) in items.iter().enumerate() {
            let title = item.title.trim();
            if title.is_empty() {
                return Err(format!("items[{at}].title: must not be empty"));
            }
            let step = item.step.trim();
            let is_step = plan.steps.iter().any(|known| known.id == step);
            if !step.is_empty() && !is_step {
                return Err(format!("items[{at}].step: the plan has no step {step:?}"));
            }
            // An item takes its step's id, unless another item of the step has it already.
            let is_free = !self.items.iter().any(|other| other.id == step);
            let id = if is_step && is_free {
                step.to_owned()
            } else {
                self.added += 1;
                format!("t{}", self.added)
            };
            self.items.push(TodoItem {
                id,
                title: title.to_owned(),
                step: is_step.then(|| step.to_owned()),
                status: item.status,
            });
        }
        Ok(())
    }

    /// Finish the item of the id. Weak models name it among the items instead, as they read it in
    /// the list.
    fn finish_all(&mut self, request: &TodoRequest, status: TodoStatus) -> Result<(), String> {
        if !request.id.is_empty() || request.items.is_empty() {
            return self.finish(&request.id, status);
        }
        let mut next = self.clone();
        for named in &request.items {
            let title = named.title.trim();
            let is_meant = |item: &&TodoItem| {
                title == item.title || title == format!("{}: {}", item.id, item.title)
            };
            let id = self.items.iter().find(is_meant).map_or(title, |item| &item.id);
            next.finish(id, status)?;
        }
        *self = next;
        Ok(())
    }

    fn finish(&mut self, id: &str, status: TodoStatus) -> Result<(), String> {
        match self.items.iter_mut().find(|item| item.id == id) {
            Some(item) => {
                item.status = status;
                Ok(())
            }
            None => {
                let ids: Vec<&str> = self.items.iter().map(|item| item.id.as_str()).collect();
                Err(format!("id: there is no item {id:?}; the items are: {}", ids.join(", ")))
            }
        }
    }

    /// The list as a person and a model read it.
    pub fn to_text(&self) -> String {
        if self.items.is_empty() {
            return "The TODO list is empty.".to_owned();
        }
        let mut text = format!("TODO ({} of {} finished)", self.finished(), self.items.len());
        for TodoItem { id, title, status, .. } in &self.items {
            let mark = match status {
                TodoStatus::Open => ' ',
                TodoStatus::Done => 'x',
                TodoStatus::Skipped => '-',
            };
            let _ = write!(text, "\n- [{mark}] {id}: {title}");
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::planned::plan::{PlanAnswer, StepAnswer};

    fn plan(tools: &[&str]) -> Plan {
        let steps = tools
            .iter()
            .map(|tool| StepAnswer { title: format!("use {tool}"), tool: (*tool).to_owned() });
        let mut plan = Plan::default();
        let answer = PlanAnswer { reasoning: String::new(), steps: steps.collect() };
        plan.replace(answer, &mut 0);
        plan
    }

    fn following(tools: &[&str]) -> (Todo, Plan) {
        let plan = plan(tools);
        let mut todo = Todo::default();
        todo.follow(&plan);
        (todo, plan)
    }

    fn request(json: serde_json::Value) -> TodoRequest {
        serde_json::from_value(json).unwrap()
    }

    #[test]
    fn a_call_finishes_the_first_open_item_of_its_tool_and_never_one_that_only_sounds_alike() {
        let (mut todo, plan) = following(&["read", "", "read", "write"]);
        assert!(todo.tool_succeeded(&plan, "read"));
        assert!(todo.tool_succeeded(&plan, "read"));
        assert!(!todo.tool_succeeded(&plan, "read"));
        assert!(!todo.tool_succeeded(&plan, ""), "a step without a tool waits for the model");
        assert_eq!(
            todo.to_text(),
            "TODO (2 of 4 finished)\n- [x] s1: use read\n- [ ] s2: use\n- [x] s3: use read\n- [ ] s4: use write"
        );
    }

    #[test]
    fn an_item_is_finished_by_its_id_or_as_it_is_written_in_the_list() {
        let named = [
            serde_json::json!({"action": "complete", "id": "s2"}),
            serde_json::json!({"action": "complete", "items": [{"title": "s2"}]}),
            serde_json::json!({"action": "complete", "items": [{"title": "use write"}]}),
            serde_json::json!({"action": "complete", "items": [{"title": "s2: use write"}]}),
        ];
        for json in named {
            let (mut todo, plan) = following(&["read", "write"]);
            todo.apply(&request(json), &plan).unwrap();
            assert_eq!(
                todo.to_text(),
                "TODO (1 of 2 finished)\n- [ ] s1: use read\n- [x] s2: use write"
            );
        }
        let (mut todo, plan) = following(&["read", "write"]);
        let both =
            serde_json::json!({"action": "skip", "items": [{"title": "s1"}, {"title": "?"}]});
        let error = todo.apply(&request(both), &plan).unwrap_err();
        assert!(error.starts_with("id: there is no item \"?\""), "{error}");
        assert_eq!(todo.finished(), 0, "all or none");
    }

    #[test]
    fn requests_that_cannot_be_met_say_why_and_change_nothing() {
        let (mut todo, plan) = following(&["read"]);
        let before = todo.clone();
        let wrong = [
            (serde_json::json!({"action": "complete", "id": "s9"}), "id: there is no item \"s9\""),
            (serde_json::json!({"action": "add"}), "items: what is to be added?"),
            (
                serde_json::json!({"action": "set", "items": [{"title": "a"}, {"title": " "}]}),
                "items[1].title: must not be empty",
            ),
            (
                serde_json::json!({"action": "add", "items": [{"title": "a", "step": "s7"}]}),
                "items[0].step: the plan has no step \"s7\"",
            ),
        ];
        for (json, expected) in wrong {
            let error = todo.apply(&request(json), &plan).unwrap_err();
            assert!(error.starts_with(expected), "{error}");
            assert_eq!(todo, before);
        }
    }

    #[test]
    fn another_plan_keeps_what_is_finished() {
        let (mut todo, mut plan) = following(&["read", "write"]);
        todo.tool_succeeded(&plan, "read");
        let answer = PlanAnswer {
            reasoning: String::new(),
            steps: vec![StepAnswer { title: "copy".into(), tool: String::new() }],
        };
        plan.replace(answer, &mut 2);
        todo.follow(&plan);
        assert_eq!(todo.to_text(), "TODO (1 of 2 finished)\n- [x] s1: use read\n- [ ] s3: copy");
    }

    #[test]
    fn the_seeds_rule_for_slow_work_holds_at_its_edges() {
        let of = |finished: usize, total: usize| {
            let (mut todo, plan) = following(&vec!["t"; total]);
            for _ in 0..finished {
                todo.tool_succeeded(&plan, "t");
            }
            todo
        };
        assert!(!Todo::default().is_slow(100), "no list, no rule");
        assert!(!of(0, 4).is_slow(5) && of(0, 4).is_slow(6), "more than 5 steps for an item");
        assert!(!of(2, 4).is_slow(20), "half is enough for the first rule");
        assert!(of(1, 4).is_slow(11) && !of(3, 8).is_slow(12), "more than 10 and less than 0.3");
        assert!(of(2, 10).is_slow(11), "the second rule alone would do");
    }

    fn any_request() -> impl Strategy<Value = TodoRequest> {
        let action = prop_oneof![
            Just(TodoAction::Get),
            Just(TodoAction::Set),
            Just(TodoAction::Add),
            Just(TodoAction::Complete),
            Just(TodoAction::Skip),
        ];
        let status =
            prop_oneof![Just(TodoStatus::Open), Just(TodoStatus::Done), Just(TodoStatus::Skipped)];
        let item = (" ?[a-c]{0,2}", "s?[0-3]{0,1}", status)
            .prop_map(|(title, step, status)| NewItem { title, step, status });
        (action, prop::collection::vec(item, 0..4), "[st][0-4]")
            .prop_map(|(action, items, id)| TodoRequest { action, items, id })
    }

    proptest! {
        #[test]
        fn folding_requests_is_total_and_gives_the_same_list_every_time(
            requests in prop::collection::vec(any_request(), 0..30)
        ) {
            let run = || {
                let (mut todo, plan) = following(&["read", "write", "read"]);
                let told: Vec<_> = requests.iter().map(|r| todo.apply(r, &plan)).collect();
                (todo, told)
            };
            let (todo, told) = run();
            prop_assert_eq!((todo.clone(), told), run());
            prop_assert_eq!(todo.finished() + todo.open(), todo.items.len());
            let mut ids: Vec<&str> = todo.items.iter().map(|item| item.id.as_str()).collect();
            ids.sort_unstable();
            ids.dedup();
            prop_assert_eq!(ids.len(), todo.items.len(), "ids are unique");
        }
    }
}
