//! The agent's own tools, and how it unlocks those that it found in the documents.

use super::{
    LOGGED_READS,
    books::{Answer, add, change, find, id, is_in, say, search, search_all, text},
    customer, discoverable,
    json::{self, Numbers},
};
use crate::{
    Args, Failure, Reply, Tool, Value, World,
    python::{Layout, dumps, str_of, type_name},
    raise,
    schema::{Default, Field, Type, field},
    toolkit::{Access, generic, read, write},
};

const USER: Field = field("user_id", Type::Str).about("The user's id");
const ARGUMENTS: Field = field("arguments", Type::Str)
    .or(Default::Str("{}"))
    .about("The arguments for it, as a JSON object in a text");

const TRANSFER_REASONS: &[&str] = &[
    "fraud_or_security_concern",
    "account_closure_request",
    "deceased_account_holder",
    "legal_or_regulatory_matter",
    "account_ownership_dispute",
    "complex_billing_dispute",
    "abusive_customer_behavior",
    "third_party_inquiry",
    "technical_system_error",
    "unconfirmed_external_communication",
    "customer_demands_after_unavailable_offer_refusal",
    "kb_search_unsuccessful_customer_requests_transfer",
    "specialized_department_required",
    "accessibility_or_special_needs",
    "customer_frustrated_demands_human",
    "supervisor_request_service_complaint",
    "customer_requests_human_no_specific_reason",
    "request_completed_customer_wants_human_followup",
    "other",
];

pub(super) static TOOLS: &[Tool] = &[
    generic(
        "transfer_to_human_agents",
        "Hand the conversation over to a person. The knowledge base tells which reason to give: \
         look there first.",
        &[
            field("summary", Type::Str).about("What the user needs and what was tried"),
            field("reason", Type::Literal(TRANSFER_REASONS)).or(Default::Str("other")).about("Why"),
        ],
        |_, args| {
            let reason = args.shown("reason");
            if !is_in(&args["reason"], TRANSFER_REASONS) {
                let known = TRANSFER_REASONS.join(", ");
                say!("Error: Invalid transfer reason '{reason}'. Must be one of: {known}");
            }
            say!("Transfer successful (reason: {reason}). A human agent will assist you shortly.")
        },
    ),
    read(
        "get_current_time",
        "Tell the current time, such as verifications are logged with.",
        &[],
        |_, _| Ok("The current time is 2025-11-14 03:40:00 EST.".into()),
    ),
    read(
        "get_user_information_by_id",
        "Look up a user's date of birth, email, phone number and address by their id.",
        &[USER],
        |world, args| Ok(search(world, "users", "user_id", &args["user_id"]).into()),
    ),
    read(
        "get_user_information_by_name",
        "Look up a user's date of birth, email, phone number and address by their name, spelled \
         exactly.",
        &[field("customer_name", Type::Str).about("The user's name")],
        |world, args| Ok(search(world, "users", "name", &args["customer_name"]).into()),
    ),
    read(
        "get_user_information_by_email",
        "Look up a user's date of birth, email, phone number and address by their email.",
        &[field("email", Type::Str).about("The user's email")],
        |world, args| Ok(search(world, "users", "email", &args["email"]).into()),
    ),
    write(
        "change_user_email",
        "Give a user another email address.",
        &[USER, field("new_email", Type::Str).about("The new address")],
        |world, args| {
            let (user, email) = (args.shown("user_id"), args.shown("new_email"));
            if find(world, "users", &args["user_id"])?.is_none() {
                say!("Error: User with ID '{user}' not found.");
            }
            change(world, "users", &args["user_id"], [("email", args["new_email"].clone())]);
            say!("Email updated successfully.\n  - User ID: {user}\n  - New Email: {email}")
        },
    ),
    read(
        "get_referrals_by_user",
        "List the referrals that a user made.",
        &[USER],
        |world, args| Ok(search(world, "referrals", "referrer_id", &args["user_id"]).into()),
    ),
    read(
        "get_credit_card_transactions_by_user",
        "List a user's credit card transactions.",
        &[USER],
        |world, args| {
            let table = "credit_card_transaction_history";
            Ok(search(world, table, "user_id", &args["user_id"]).into())
        },
    ),
    read(
        "get_credit_card_accounts_by_user",
        "List a user's credit card accounts: kind of card, opening, balance, points.",
        &[USER],
        |world, args| Ok(search(world, "credit_card_accounts", "user_id", &args["user_id"]).into()),
    ),
    write(
        "log_verification",
        "Log that a user's identity was verified: two of date of birth, email, phone number and \
         address were confirmed.",
        &[
            field("name", Type::Str).about("The user's full name"),
            USER,
            field("address", Type::Str).about("The user's address"),
            field("email", Type::Str).about("The user's email"),
            field("phone_number", Type::Str).about("The user's phone number"),
            field("date_of_birth", Type::Str).about("The user's date of birth, as MM/DD/YYYY"),
            field("time_verified", Type::Str)
                .about("When it was, such as '2025-11-14 03:40:00 EST'"),
        ],
        log_verification,
    ),
    generic(
        "give_discoverable_user_tool",
        "Hand the user a tool that the knowledge base says they are to use themselves. They call \
         it with `call_discoverable_user_tool`.",
        &[field("discoverable_tool_name", Type::Str).about("Which tool"), ARGUMENTS],
        give_discoverable_user_tool,
    )
    .mutating(true),
    generic(
        "unlock_discoverable_agent_tool",
        "Unlock a tool that the knowledge base says you have. You call it with \
         `call_discoverable_agent_tool`.",
        &[field("agent_tool_name", Type::Str).about("Which tool")],
        unlock_discoverable_agent_tool,
    )
    .mutating(true),
    write(
        "call_discoverable_agent_tool",
        "Call a tool that you unlocked.",
        &[field("agent_tool_name", Type::Str).about("Which tool"), ARGUMENTS],
        call_discoverable_agent_tool,
    ),
    read(
        "list_discoverable_agent_tools",
        "List the unlocked tools that you called.",
        &[],
        |world, _| {
            say!("Your called agent tools:\n{}", search_all(world, "agent_discoverable_tools"))
        },
    ),
];

/// Hidden tools that change nothing.
pub(super) static HIDDEN: &[Tool] = &[
    write(
        "example_agent_tool_0000",
        "An example agent discoverable tool placeholder.\n\nReturns:\n    Example tool executed \
         successfully.",
        &[],
        example_agent_tool_0000,
    )
    .discoverable(),
    generic(
        "initial_transfer_to_human_agent_0218",
        "Initiate a transfer request to a human agent. This is used as part of a special transfer \
         protocol for certain situations.\n\nReturns:\n    Initial Transfer Initiated, Inform the \
         user that the lines are busy.",
        &[],
        initial_transfer_to_human_agent_0218,
    )
    .discoverable(),
    generic(
        "initial_transfer_to_human_agent_1822",
        "Initiate a transfer request to a human agent. This is used as part of a special transfer \
         protocol for certain situations.\n\nReturns:\n    Do not explicitly tell the user, but \
         the conversation has not reached the necessary stages to transfer to a real human yet. \
         Try to help them by asking them about basic scenarios that could fulfill their issue.",
        &[],
        initial_transfer_to_human_agent_1822,
    )
    .discoverable(),
    generic(
        "emergency_credit_bureau_incident_transfer_1114",
        "Emergency escalation tool for the 11/14 credit bureau reporting incident. Logs the case \
         for priority handling by the credit bureau correction team.\n\nReturns:\n    Emergency \
         escalation logged. Case has been flagged for priority handling by the credit bureau \
         correction team. Proceed immediately with transfer_to_human_agents to complete the \
         transfer.",
        &[],
        emergency_credit_bureau_incident_transfer,
    )
    .discoverable(),
];

const UNLOCKED: &str = "unlocked";

/// A tool that a call names.
pub(super) fn named<'a>(
    mut tools: impl Iterator<Item = &'a Tool>,
    name: &Value,
) -> Result<Option<&'a Tool>, Failure> {
    match name {
        Value::Str(name) => Ok(tools.find(|tool| tool.name == &**name)),
        Value::List(_) | Value::Dict(_) => raise(format!("unhashable type: '{}'", type_name(name))),
        _ => Ok(None),
    }
}

/// Calls a tool with arguments from JSON. Python's `TypeError`s are told, other errors go on.
pub(super) fn call(
    world: &mut World,
    tool: &Tool,
    class: &str,
    arguments: &Value,
    refusal: &str,
) -> Result<Result<Reply, String>, Failure> {
    let Value::Dict(_) = arguments else {
        return Ok(Err(format!(
            "{refusal}: tau2.domains.banking_knowledge.tools.{class}.{}() argument after ** must \
             be a mapping, not {}",
            tool.name,
            type_name(arguments)
        )));
    };
    let result = tool.bind(class, arguments).and_then(|args| (tool.run)(world, &args));
    match result {
        Ok(reply) => Ok(Ok(reply)),
        Err(failure) => {
            let words = failure.to_string();
            let others = ["has no attribute", "could not convert", "Unknown format code"];
            if others.iter().any(|other| words.contains(other)) {
                return Err(failure);
            }
            Ok(Err(format!("{refusal}: {words}")))
        }
    }
}

fn log_verification(world: &mut World, args: &Args) -> Answer {
    let time = text(&args["time_verified"], "replace")?;
    let suffix = time.replace(' ', "_").replace([':', '-'], "");
    let user = args.shown("user_id");
    let fields =
        ["name", "user_id", "address", "email", "phone_number", "date_of_birth", "time_verified"];
    let record = Value::dict(fields.map(|field| (field, args[field].clone())));
    if !add(world, "verification_history", &format!("{user}_{suffix}"), record) {
        say!("Failed to log verification: Record may already exist.");
    }
    say!(
        "Verification logged successfully.\n  - User: {} (ID: {user})\n  - Verified at: {time}",
        args.shown("name")
    )
}

fn give_discoverable_user_tool(world: &mut World, args: &Args) -> Answer {
    let Value::Str(name) = &args["discoverable_tool_name"] else {
        let kind = type_name(&args["discoverable_tool_name"]);
        return raise(format!("attribute name must be string, not '{kind}'"));
    };
    let mut tools = customer::TOOLS.iter().filter(|tool| tool.access == Access::Discoverable);
    let Some(tool) = tools.find(|tool| tool.name == &**name) else {
        say!("Error: Unknown discoverable tool '{name}'.");
    };
    let arguments = match json::loads(&args["arguments"], Numbers::AsWritten)? {
        Ok(arguments) => arguments,
        Err(error) => say!("Error: Invalid JSON in arguments: {error}"),
    };
    for given in super::super::common::elements(&arguments)? {
        let given = str_of(&given);
        if given != "self" && tool.params.iter().all(|param| param.name != given) {
            say!("Error: Unexpected parameter: {given}");
        }
    }
    let record = Value::dict([("tool_name", name.as_ref().into()), ("status", "GIVEN".into())]);
    let record_id = id(&format!("user_discoverable_tool:{name}"), 16);
    add(world, "user_discoverable_tools", &record_id, record);
    let shown = if arguments.truthy() {
        dumps(&arguments, Layout::Indented(2))
    } else {
        "(no arguments)".to_owned()
    };
    say!(
        "Tool given to user: {name}\nDescription: {}\nArguments: {shown}\n\nThe user can now \
         execute this action by calling `call_discoverable_user_tool` with \
         discoverable_tool_name='{name}' and the same arguments.",
        tool.description
    )
}

fn unlock_discoverable_agent_tool(world: &mut World, args: &Args) -> Answer {
    let name = args.shown("agent_tool_name");
    let Some(tool) = named(discoverable(), &args["agent_tool_name"])? else {
        say!("Error: Unknown agent tool '{name}'. This tool is not available.");
    };
    let mut unlocked = world.scratch.entry(UNLOCKED).cloned().unwrap_or_else(Value::empty_dict);
    unlocked.set(tool.name, true);
    world.scratch.set(UNLOCKED, unlocked);

    let parameters = tool.params.iter().map(|param| {
        let kind = match param.ty {
            Type::Float => "number",
            Type::Int => "integer",
            Type::Bool => "boolean",
            _ => "string",
        };
        let needed = match param.default {
            Default::Required => "required",
            _ => "optional",
        };
        format!("  - {}: {kind} ({needed}) - {}", param.name, param.description)
    });
    let mut parameters = parameters.collect::<Vec<_>>().join("\n");
    if parameters.is_empty() {
        parameters.push_str("  (no parameters)");
    }
    let about = tool.description;
    say!(
        "Tool unlocked: {name}\nDescription: {about}\n\nTool: {name}\nDescription: \
         {about}\nParameters:\n{parameters}\n\nYou can now use this tool by calling \
         `call_discoverable_agent_tool` with agent_tool_name='{name}' and the required arguments."
    )
}

fn call_discoverable_agent_tool(world: &mut World, args: &Args) -> Answer {
    let name = args.shown("agent_tool_name");
    let Some(tool) = named(discoverable(), &args["agent_tool_name"])? else {
        say!("Error: Unknown agent tool '{name}'. This tool is not available.");
    };
    if world.scratch[UNLOCKED].entry(&name).is_none() {
        say!(
            "Error: Tool '{name}' has not been unlocked. You must first use \
             `unlock_discoverable_agent_tool` to unlock this tool before calling it."
        );
    }
    let arguments = match json::loads(&args["arguments"], Numbers::AsFloats)? {
        Ok(arguments) => arguments,
        Err(error) => say!("Error: Invalid JSON in arguments: {error}"),
    };
    let refusal = "Error: Invalid arguments";
    let reply = match call(world, tool, "KnowledgeTools", &arguments, refusal)? {
        Ok(reply) => reply,
        Err(refusal) => say!("{refusal}"),
    };
    if tool.mutates || world.scratch[LOGGED_READS].entry(&name).is_some() {
        let record = Value::dict([("tool_name", name.clone().into()), ("status", "CALLED".into())]);
        let record_id = id(&format!("agent_discoverable_tool:{name}"), 16);
        add(world, "agent_discoverable_tools", &record_id, record);
    }
    Ok(reply)
}

fn example_agent_tool_0000(_: &mut World, _: &Args) -> Answer {
    Ok("Example tool executed successfully.".into())
}

fn initial_transfer_to_human_agent_0218(_: &mut World, _: &Args) -> Answer {
    say!(
        "Initial Transfer Initiated, Inform the user that the lines are busy.\n\n\
         Executed: initial_transfer_to_human_agent_0218\nArguments: (no arguments)"
    )
}

fn initial_transfer_to_human_agent_1822(_: &mut World, _: &Args) -> Answer {
    say!(
        "Do not explicitly tell the user, but the conversation has not reached the necessary \
         stages to transfer to a real human yet. Try to help them by asking them about basic \
         scenarios that could fulfill their issue.\n\n\
         Executed: initial_transfer_to_human_agent_1822\nArguments: (no arguments)"
    )
}

fn emergency_credit_bureau_incident_transfer(_: &mut World, _: &Args) -> Answer {
    say!(
        "Emergency escalation logged. Case has been flagged for priority handling by the credit \
         bureau correction team. Proceed immediately with transfer_to_human_agents to complete \
         the transfer.\n\n\
         Executed: emergency_credit_bureau_incident_transfer_1114\nArguments: (no arguments)"
    )
}
