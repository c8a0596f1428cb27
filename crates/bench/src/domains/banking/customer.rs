//! The user's tools: applications, referrals, purchases, and what the agent hands them.

use super::{
    books::{
        Answer, TODAY, add, balance, cents, change, find, id, is_in, is_nothing, joined, list,
        number, records, say, search, search_all,
    },
    desk,
    json::{self, Numbers},
};
use crate::{
    Args, Tool, Value, World,
    python::{Layout, dumps, float_repr, multiply, sha256, str_of, type_name},
    raise,
    schema::{Default, Type, field},
    toolkit::{Access, read, write},
};

pub(super) static TOOLS: &[Tool] = &[
    write(
        "apply_for_credit_card",
        "Apply for a credit card.",
        &[
            field("card_type", Type::Str).about("Which card"),
            field("customer_name", Type::Str).about("Your full name"),
            field("annual_income", Type::Float).about("What you earn in a year, in dollars"),
            field("rho_bank_subscription", Type::Bool)
                .or(Default::Bool(false))
                .about("Whether you subscribe to Rho-Bank+"),
        ],
        apply_for_credit_card,
    ),
    write(
        "submit_referral",
        "Refer somebody to the bank so that they open an account.",
        &[
            field("user_id", Type::Str).about("Your user id"),
            field("account_type", Type::Str).about("Which kind of account they are to open"),
        ],
        submit_referral,
    ),
    write(
        "call_discoverable_user_tool",
        "Use a tool that the agent handed you, as if you did it yourself.",
        &[
            field("discoverable_tool_name", Type::Str).about("Which tool"),
            field("arguments", Type::Str)
                .or(Default::Str("{}"))
                .about("The arguments for it, as a JSON object in a text"),
        ],
        call_discoverable_user_tool,
    ),
    read(
        "list_discoverable_user_tools",
        "List the tools that the agent handed you.",
        &[],
        |world, _| {
            let found = search_all(world, "user_discoverable_tools");
            say!("Tools given to you by the agent:\n{found}")
        },
    ),
    write(
        "request_human_agent_transfer",
        "Ask to be handed over to a person.",
        &[],
        request_human_agent_transfer,
    ),
    write(
        "submit_transaction",
        "Buy something with a credit card.",
        &[
            field("user_id", Type::Str).about("Your user id"),
            field("credit_card_type", Type::Str).about("Which card, such as 'Gold Rewards Card'"),
            field("merchant_name", Type::Str).about("Where you buy"),
            field("amount", Type::Float).about("The price in dollars"),
            field("category", Type::Str).about("What it is, such as 'Groceries' or 'Travel'"),
        ],
        submit_transaction,
    ),
    write(
        "submit_cash_back_dispute_0589",
        "Submit a cash back dispute for a specific transaction.",
        &[
            field("user_id", Type::Str).about("The user's unique identifier in the system"),
            field("transaction_id", Type::Str)
                .about("The unique identifier for the transaction with incorrect cash back"),
        ],
        submit_cash_back_dispute,
    )
    .discoverable(),
    write(
        "get_referral_link",
        "Generate a referral link for a specific credit card to share with friends or family.",
        &[
            field("user_id", Type::Str)
                .about("The user's unique identifier in the system (the referrer)"),
            field("card_name", Type::Str).about(
                "The name of the credit card to create a referral for (e.g., 'Gold Rewards Card')",
            ),
        ],
        get_referral_link,
    )
    .discoverable(),
    read(
        "get_card_last_4_digits",
        "Look up the last 4 digits of a credit card number.",
        &[field("credit_card_account_id", Type::Str)
            .about("The credit card account ID to look up (e.g., 'cc_76ad9cc60e_gold')")],
        get_card_last_4_digits,
    )
    .discoverable(),
    write(
        "deposit_check_3847",
        "Deposit a check into a checking or savings account. The user takes a photo of the check \
         and submits it through their mobile banking app.",
        &[
            field("account_id", Type::Str).about("The bank account ID to deposit the check into"),
            field("check_amount", Type::Float).about("The amount of the check in USD"),
        ],
        deposit_check,
    )
    .discoverable(),
];

/// A card and its rewards in percent: for some categories, and for all others.
type Rewards = (&'static str, &'static [(&'static str, f64)], f64);

static REWARDS: &[Rewards] = &[
    ("Bronze Rewards Card", &[], 1.0),
    ("Silver Rewards Card", &[("Travel", 4.0), ("Software", 4.0)], 1.0),
    ("Gold Rewards Card", &[], 2.5),
    ("Platinum Rewards Card", &[], 10.0),
    ("Business Bronze Rewards Card", &[], 1.0),
    ("Business Silver Rewards Card", &[("Travel", 10.0), ("Software", 10.0)], 1.0),
    ("Green Rewards Card", &[("Sustainable", 3.0)], 1.0),
    ("Business Gold Rewards Card", &[("Operations", 2.5)], 1.0),
    ("Business Platinum Rewards Card", &[("Travel", 4.0), ("Software", 4.0), ("Media", 4.0)], 1.5),
    ("Silver Zoom Card", &[("Transportation", 3.0)], 1.0),
    ("Diamond Elite Card", &[], 5.0),
    ("EcoCard", &[("Green", 5.0)], 1.0),
    ("Crypto-Cash Back", &[], 2.0),
];

fn apply_for_credit_card(world: &mut World, args: &Args) -> Answer {
    let mut cards: Vec<&str> = REWARDS.iter().map(|(card, _, _)| *card).collect();
    cards.sort_unstable();
    let card = args.shown("card_type");
    if !is_in(&args["card_type"], &cards) {
        say!("Error: Invalid card_type '{card}'. Must be one of: {}", list(&cards));
    }
    let Some(income) = number(&args["annual_income"]) else {
        say!("Error: Invalid annual_income. Must be a number.");
    };
    let (name, subscribed) = (args.shown("customer_name"), args.shown("rho_bank_subscription"));
    let seed = format!("credit_card:{card}:{name}:{}:{subscribed}", float_repr(income));
    let application = id(&seed, 16);
    let record = Value::dict([
        ("application_id", application.clone().into()),
        ("card_type", args["card_type"].clone()),
        ("customer_name", args["customer_name"].clone()),
        ("annual_income", income.into()),
        ("rho_bank_subscription", args["rho_bank_subscription"].clone()),
        ("status", "PENDING".into()),
        ("date", TODAY.into()),
    ]);
    if !add(world, "credit_card_applications", &application, record) {
        say!("Failed to submit application: Record ID '{application}' may already exist.");
    }
    say!(
        "Credit card application submitted:\nYour application has been successfully submitted. \
         You will receive a decision within 5-7 business days via email."
    )
}

fn submit_referral(world: &mut World, args: &Args) -> Answer {
    let seed = joined(&[&"referral".into(), &args["user_id"], &args["account_type"]])?;
    let referral = id(&seed, 16);
    let (user, account) = (args.shown("user_id"), args.shown("account_type"));
    if !add_referral(world, &referral, &args["user_id"], &args["account_type"]) {
        say!("Failed to submit referral: Record ID '{referral}' may already exist.");
    }
    say!(
        "Referral request submitted successfully!\n  - Referral ID: {referral}\n  - Referrer ID: \
         {user}\n  - Account Type: {account}\n  - Status: NO_PROGRESS\n  - Date: {TODAY}\n\n\
         Share your referral ID with the person you're referring. They will need to use this \
         when applying for their account."
    )
}

fn add_referral(world: &mut World, referral: &str, user: &Value, account: &Value) -> bool {
    let record = Value::dict([
        ("referral_id", referral.into()),
        ("referrer_id", user.clone()),
        ("referred_account_type", account.clone()),
        ("referral_status", "NO_PROGRESS".into()),
        ("date", TODAY.into()),
    ]);
    add(world, "referrals", referral, record)
}

fn call_discoverable_user_tool(world: &mut World, args: &Args) -> Answer {
    let name = args.shown("discoverable_tool_name");
    let tools = TOOLS.iter().filter(|tool| tool.access == Access::Discoverable);
    let Some(tool) = desk::named(tools, &args["discoverable_tool_name"])? else {
        say!("Error: Unknown discoverable tool '{name}'.");
    };
    let arguments = match json::loads(&args["arguments"], Numbers::AsFloats)? {
        Ok(arguments) => arguments,
        Err(error) => say!("Error: Invalid JSON in arguments: {error}"),
    };
    let given = super::super::common::elements(&arguments)?;
    for param in tool.params {
        if matches!(param.default, Default::Required) && !given.iter().any(|g| *g == param.name) {
            say!("Error: Missing required parameter: {}", param.name);
        }
    }
    for given in given {
        if tool.params.iter().all(|param| given != param.name) {
            say!("Error: Unexpected parameter: {}", str_of(&given));
        }
    }
    let refusal = format!("Error: Invalid arguments for tool '{name}'");
    match desk::call(world, tool, "KnowledgeUserTools", &arguments, &refusal)? {
        Ok(reply) => Ok(reply),
        Err(refusal) => say!("{refusal}"),
    }
}

fn request_human_agent_transfer(world: &mut World, _: &Args) -> Answer {
    let count = records(world, "human_transfer_requests").len();
    let count = if count == 0 {
        1
    } else {
        search_all(world, "human_transfer_requests").matches("request_id").count() + 1
    };
    let request = format!("transfer_request_{count}");
    let record = Value::dict([
        ("request_id", request.clone().into()),
        ("request_number", count.into()),
        ("requested_at", TODAY.into()),
        ("status", "PENDING".into()),
    ]);
    add(world, "human_transfer_requests", &request, record);
    say!("Transfer request #{count} submitted.\nThe agent will process your request.")
}

fn submit_transaction(world: &mut World, args: &Args) -> Answer {
    let (user, card) = (args.shown("user_id"), args.shown("credit_card_type"));
    if let unhashable @ (Value::List(_) | Value::Dict(_)) = &args["credit_card_type"] {
        return raise(format!("unhashable type: '{}'", type_name(unhashable)));
    }
    let Some((_, special, general)) = REWARDS.iter().find(|(known, _, _)| *known == card) else {
        let known: Vec<&str> = REWARDS.iter().map(|(card, _, _)| *card).collect();
        say!("Error: Unknown credit card type '{card}'. Available types: {}", list(&known));
    };
    let amount = cents(&args["amount"])?;
    let seed = joined(&[
        &"transaction".into(),
        &args["user_id"],
        &args["credit_card_type"],
        &args["merchant_name"],
        &amount.as_str().into(),
        &args["category"],
    ])?;
    let transaction = format!("txn_{}", id(&seed, 12));
    let (merchant, category) = (args.shown("merchant_name"), args.shown("category"));
    let rate = special.iter().find(|(name, _)| *name == category).map_or(general, |(_, rate)| rate);
    let points = multiply(&args["amount"], &(*rate).into())?.as_f64().unwrap_or_default().trunc();
    let record = Value::dict([
        ("transaction_id", transaction.clone().into()),
        ("user_id", args["user_id"].clone()),
        ("credit_card_type", args["credit_card_type"].clone()),
        ("merchant_name", args["merchant_name"].clone()),
        ("transaction_amount", format!("${amount}").into()),
        ("transaction_date", TODAY.into()),
        ("category", args["category"].clone()),
        ("status", "COMPLETED".into()),
        ("rewards_earned", format!("{points:.0} points").into()),
    ]);
    if !add(world, "credit_card_transaction_history", &transaction, record) {
        say!("Failed to submit transaction: Record ID '{transaction}' may already exist.");
    }
    say!(
        "Transaction submitted successfully!\n  - Transaction ID: {transaction}\n  - User ID: \
         {user}\n  - Card Type: {card}\n  - Merchant: {merchant}\n  - Amount: ${amount}\n  - \
         Category: {category}\n  - Date: {TODAY}\n  - Rewards Earned: {points:.0} points \
         ({}% cashback rate)\n",
        float_repr(*rate)
    )
}

/// Whether the agent handed a tool over; if so, its call is logged. The arguments are returned as
/// they are shown, or the refusal.
fn begin<const N: usize>(
    world: &mut World,
    tool: &str,
    args: &Args,
    names: [&'static str; N],
) -> Result<String, String> {
    if is_nothing(&search(world, "user_discoverable_tools", "tool_name", &tool.into())) {
        return Err(format!(
            "Error: Tool '{tool}' has not been given to you by the agent. The agent must first \
             use `give_discoverable_user_tool` to give this tool to you."
        ));
    }
    let given = Value::dict(names.map(|name| (name, args[name].clone())));
    let sorted = dumps(&given, Layout::Sorted);
    let call = id(&format!("user_discoverable_tool_call:{tool}:{sorted}"), 16);
    let shown = dumps(&given, Layout::Indented(2));
    let record = Value::dict([
        ("tool_name", tool.into()),
        ("arguments", given),
        ("called_at", TODAY.into()),
        ("status", "CALLED".into()),
    ]);
    add(world, "user_discoverable_tool_calls", &call, record);
    Ok(shown)
}

fn submit_cash_back_dispute(world: &mut World, args: &Args) -> Answer {
    let tool = "submit_cash_back_dispute_0589";
    let shown = match begin(world, tool, args, ["user_id", "transaction_id"]) {
        Ok(shown) => shown,
        Err(refusal) => say!("{refusal}"),
    };
    let (user, transaction) = (args.shown("user_id"), args.shown("transaction_id"));
    let dispute = format!("dsp_{}", id(&format!("dispute:{user}:{transaction}"), 12));
    let settings = &world.db["task_config"]["data"]["dispute_settings"];
    let resolved = settings["auto_resolve_disputes"].truthy();
    let mut record = Value::dict([
        ("dispute_id", dispute.clone().into()),
        ("user_id", args["user_id"].clone()),
        ("transaction_id", args["transaction_id"].clone()),
        ("submitted_at", TODAY.into()),
        ("status", if resolved { "RESOLVED" } else { "SUBMITTED" }.into()),
    ]);
    if resolved {
        record.set("resolution", "APPROVED");
    }
    let added = add(world, "cash_back_disputes", &dispute, record);
    let outcome = if !added {
        "Note: Dispute may have already been submitted for this transaction.".to_owned()
    } else if resolved {
        format!(
            "Dispute ID: {dispute}\nStatus: RESOLVED - The dispute has been reviewed and \
             approved. The transaction rewards need to be updated."
        )
    } else {
        format!(
            "Dispute ID: {dispute}\nStatus: SUBMITTED - Your dispute has been queued for review."
        )
    };
    say!(
        "Cash back dispute submitted successfully. Your case has been queued for review.\n\n\
         Executed: {tool}\nArguments: {shown}\n{outcome}"
    )
}

fn get_referral_link(world: &mut World, args: &Args) -> Answer {
    let shown = match begin(world, "get_referral_link", args, ["user_id", "card_name"]) {
        Ok(shown) => shown,
        Err(refusal) => say!("{refusal}"),
    };
    let (user, card) = (args.shown("user_id"), args.shown("card_name"));
    let referral = id(&format!("referral_link:{user}:{card}"), 16);
    let outcome = if add_referral(world, &referral, &args["user_id"], &args["card_name"]) {
        format!("Referral ID: {referral}\nReferral link: https://rhobank.com/refer/{referral}")
    } else {
        "Note: A referral link for this card may have already been generated.".to_owned()
    };
    say!(
        "Referral link generated successfully. Share this link with the person you want to \
         refer.\n\nExecuted: get_referral_link\nArguments: {shown}\n{outcome}"
    )
}

fn get_card_last_4_digits(world: &mut World, args: &Args) -> Answer {
    let tool = "get_card_last_4_digits";
    let shown = match begin(world, tool, args, ["credit_card_account_id"]) {
        Ok(shown) => shown,
        Err(refusal) => say!("{refusal}"),
    };
    let account = args.shown("credit_card_account_id");
    let found =
        search(world, "credit_card_accounts", "account_id", &args["credit_card_account_id"]);
    if is_nothing(&found) {
        say!("Error: Credit card account '{account}' not found.");
    }
    let digest = sha256(format!("card_last4:{account}").as_bytes());
    let digits: String = digest.chars().filter(char::is_ascii_digit).take(4).collect();
    say!(
        "Card information retrieved successfully.\n\nExecuted: {tool}\nArguments: {shown}\nLast 4 \
         digits of card: {digits:0<4}"
    )
}

fn deposit_check(world: &mut World, args: &Args) -> Answer {
    let tool = "deposit_check_3847";
    let shown = match begin(world, tool, args, ["account_id", "check_amount"]) {
        Ok(shown) => shown,
        Err(refusal) => say!("{refusal}"),
    };
    let id = args.shown("account_id");
    let Some(amount) = number(&args["check_amount"]) else {
        say!("Error: Invalid check amount '{}'. Must be a number.", args.shown("check_amount"));
    };
    if amount <= 0.0 {
        say!("Error: Check amount must be positive.");
    }
    let Some(account) = find(world, "accounts", &args["account_id"])? else {
        say!("Error: Account '{id}' not found.");
    };
    if !is_in(&account["status"], &["ACTIVE", "OPEN"]) {
        say!("Error: Account '{id}' is not active.");
    }
    let before = balance(&account)?;
    let after = before + amount;
    let holdings = format!("${after:.2}").into();
    change(world, "accounts", &args["account_id"], [("current_holdings", holdings)]);
    say!(
        "Check deposited successfully. Funds will be available according to your account's \
         deposit policy.\n\nExecuted: {tool}\nArguments: {shown}\nCheck deposit processed!\n  - \
         Account: {id}\n  - Check Amount: ${amount:.2}\n  - Previous Balance: ${before:.2}\n  - \
         New Balance: ${after:.2}"
    )
}
