//! `banking_knowledge`: a bank whose rules are in documents. The agent finds out from them which
//! tools it has, unlocks them, or hands them to the user.
//!
//! Variants say how the agent gets at the documents: `bm25_grep` (the default), `bm25`,
//! `grep_only`, `full_kb` (all in its rules) and `no_knowledge`. Those of the reference that need
//! embeddings, rerankers or a shell are not there.
//!
//! What an unlocked tool says of itself is part of a tool's result, and so of recorded
//! conversations: those descriptions are word for word the reference's (MIT licence, copyright 2025
//! Sierra Research).

mod accounts;
mod activation;
mod books;
mod cards;
mod credit;
mod customer;
mod debit;
mod desk;
mod disputes;
mod expression;
mod json;
mod knowledge;
mod limits;

use std::{fs, sync::Arc};

use crate::{
    DataDir, DataError, Dict, Domain, Failure, Task, TaskSet, Tool, Toolkit, Value, World,
    read_json,
    world::{Database, UserDatabase},
};
use knowledge::{Knowledge, SEARCH_TOOLS};

const NAME: &str = "banking_knowledge";

/// How the agent gets at the documents.
struct Variant {
    name: &'static str,
    /// The file with the rules.
    rules: &'static str,
    /// The search tools it has.
    tools: &'static [&'static str],
}

static VARIANTS: &[Variant] = &[
    Variant { name: "bm25_grep", rules: "classic_rag_bm25.md", tools: &["KB_search", "grep"] },
    Variant { name: "bm25", rules: "classic_rag_bm25_no_grep.md", tools: &["KB_search"] },
    Variant { name: "grep_only", rules: "grep_only.md", tools: &["grep"] },
    Variant { name: "full_kb", rules: "full_kb.md", tools: &[] },
    Variant { name: "no_knowledge", rules: "no_knowledge.md", tools: &[] },
];

/// Loads the domain in a variant.
pub(super) fn load(data: &DataDir, variant: Option<&str>) -> Result<Domain, DataError> {
    let name = variant.unwrap_or("bm25_grep");
    let Some(variant) = VARIANTS.iter().find(|variant| variant.name == name) else {
        let known: Vec<&str> = VARIANTS.iter().map(|variant| variant.name).collect();
        return Err(Failure::new(format!(
            "unknown variant {name:?} of {NAME}; there are {}",
            known.join(", ")
        ))
        .into());
    };
    let knowledge = Knowledge::load(data)?;
    let policy = rules(data, variant.rules, &knowledge)?;
    let db = data.database(NAME, "db.json", &books::TRANSACTIONAL_DB)?;
    Ok(assemble(variant, db, knowledge, policy))
}

fn assemble(variant: &Variant, db: Database, knowledge: Knowledge, policy: String) -> Domain {
    let search = SEARCH_TOOLS.iter().filter(|tool| variant.tools.contains(&tool.name));
    let tools = search.chain(desk::TOOLS).chain(discoverable()).collect();
    Domain {
        user: Some(Toolkit::new("KnowledgeUserTools", customer::TOOLS)),
        user_db: UserDatabase::Shared,
        prepare,
        assets: Arc::new(knowledge),
        ..Domain::new(NAME, Toolkit { class: "KnowledgeTools", tools }, db, policy)
    }
}

/// Loads the tasks, of which each has a file.
pub(super) fn tasks(data: &DataDir) -> Result<TaskSet, DataError> {
    let folder = data.file(NAME, "tasks");
    let files =
        fs::read_dir(&folder).map_err(|source| DataError::Read { path: folder.clone(), source })?;
    let mut files: Vec<_> = files.filter_map(|file| Some(file.ok()?.path())).collect();
    files.retain(|file| {
        let name = file.file_name().unwrap_or_default().to_string_lossy();
        name.starts_with("task_") && name.ends_with(".json")
    });
    files.sort();
    let tasks = files.iter().map(|file| read_json::<Task>(file).map(Arc::new));
    Ok(TaskSet { tasks: tasks.collect::<Result<_, _>>()?, splits: Vec::new() })
}

/// The agent's tools that are not shown.
fn discoverable() -> impl Iterator<Item = &'static Tool> {
    [
        desk::HIDDEN,
        credit::TOOLS,
        limits::TOOLS,
        disputes::TOOLS,
        accounts::TOOLS,
        debit::TOOLS,
        activation::TOOLS,
        cards::TOOLS,
    ]
    .into_iter()
    .flatten()
}

/// Calls of tools that only look something up leave no trace, but for those that the task expects.
const LOGGED_READS: &str = "logged_reads";

fn prepare(world: &mut World, task: Option<&Task>) {
    let actions = task.map(Task::actions).unwrap_or_default().iter();
    let calls = actions.filter(|action| action.name == "call_discoverable_agent_tool");
    let names = calls.filter_map(|action| action.arguments["agent_tool_name"].as_str());
    let names: Dict = names.map(|name| (name.to_owned(), true.into())).collect();
    world.scratch.set(LOGGED_READS, Value::from(names));
}

/// The rules with what they refer to in place.
fn rules(data: &DataDir, file: &str, knowledge: &Knowledge) -> Result<String, DataError> {
    let mut text = data.text(NAME, &format!("prompts/{file}"))?;
    while let Some((before, rest)) = text.split_once("{{component:") {
        let Some((component, after)) = rest.split_once("}}") else { break };
        let part = data.text(NAME, &format!("prompts/components/{component}.md"))?;
        text = format!("{before}{part}{after}");
    }
    Ok(text.replace("{{full_knowledge_base}}", &knowledge.whole()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Environment, Mode, Requestor, ToolCall, python::loads};

    fn environment() -> Environment {
        let model = &books::TRANSACTIONAL_DB;
        let db = loads(
            r#"{"accounts": {"data": {"a1": {"account_id": "a1", "user_id": "u1",
                "class": "checking", "status": "OPEN", "current_holdings": "$1,000.00"}}}}"#,
        );
        let db = Database { value: model.read(&db.unwrap()).unwrap(), model };
        let variant = VARIANTS.first().unwrap();
        let domain = assemble(variant, db, Knowledge::default(), String::new());
        Environment::new(&Arc::new(domain), Mode::Dialogue).unwrap()
    }

    fn call(environment: &mut Environment, requestor: Requestor, name: &str, args: &str) -> String {
        let arguments = loads(args).unwrap();
        let call = ToolCall { id: String::new(), name: name.to_owned(), arguments, requestor };
        environment.respond(&call).content.unwrap_or_default()
    }

    #[test]
    fn a_tool_must_be_unlocked_and_only_changes_leave_a_trace() {
        let mut bank = environment();
        let mut agent = |name: &str, args: &str| call(&mut bank, Requestor::Assistant, name, args);
        let read = r#"{"agent_tool_name": "get_all_user_accounts_by_user_id_3847",
            "arguments": "{\"user_id\": \"u1\"}"}"#;
        let locked = agent("call_discoverable_agent_tool", read);
        assert!(locked.contains("has not been unlocked"), "{locked}");
        agent(
            "unlock_discoverable_agent_tool",
            r#"{"agent_tool_name": "get_all_user_accounts_by_user_id_3847"}"#,
        );
        let accounts = agent("call_discoverable_agent_tool", read);
        assert!(accounts.contains("current_holdings: $1,000.00"), "{accounts}");
        assert!(bank.world.db["agent_discoverable_tools"]["data"].entries().is_empty());
    }

    #[test]
    fn what_the_user_does_with_a_tool_they_were_given_is_in_the_same_books() {
        let mut bank = environment();
        let deposit = r#"{"discoverable_tool_name": "deposit_check_3847",
            "arguments": "{\"account_id\": \"a1\", \"check_amount\": 25}"}"#;
        let user = Requestor::User;
        let refused = call(&mut bank, user, "call_discoverable_user_tool", deposit);
        assert!(refused.contains("has not been given to you"), "{refused}");
        let give = r#"{"discoverable_tool_name": "deposit_check_3847"}"#;
        call(&mut bank, Requestor::Assistant, "give_discoverable_user_tool", give);
        call(&mut bank, user, "call_discoverable_user_tool", deposit);
        assert_eq!(bank.world.db["accounts"]["data"]["a1"]["current_holdings"], "$1025.00");
        assert_eq!(bank.user_db_hash(), Some(bank.db_hash()));
    }
}
