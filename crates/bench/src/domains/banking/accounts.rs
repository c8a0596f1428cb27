//! Hidden tools around checking and savings accounts.

use super::books::{
    Answer, TODAY, add, balance, change, day_number, days_since, find, id, is_in, is_nothing, list,
    listing, number, put, records, say, search, text,
};
use crate::{
    Args, Failure, Key, Tool, Value, World,
    python::{float_repr, round, str_of},
    schema::{Default, Type, field},
    toolkit::{read, write},
};

pub(super) static TOOLS: &[Tool] = &[
    write(
        "open_bank_account_4821",
        "Open a new bank account for a customer.",
        &[field("user_id", Type::Str).about("The customer's unique identifier in the system"), field("account_type", Type::Str).about("Type of account to open. Must be one of: 'checking' (personal checking), 'savings' \
             (personal savings), 'business_checking', 'business_savings'"), field("account_class", Type::Str).about("The full official account class name")],
        open_bank_account,
    )
    .discoverable(),
    write(
        "close_bank_account_7392",
        "Close a customer's bank account (checking or savings).",
        &[field("account_id", Type::Str).about("The ID of the bank account to close"), field("reason", Type::Str).or(Default::Str("Customer requested closure")).about("The reason for closing the account"), field("waive_early_closure_fee", Type::Bool).or(Default::Bool(false)).about("Whether to waive early closure fees")],
        close_bank_account,
    )
    .discoverable(),
    read(
        "get_all_user_accounts_by_user_id_3847",
        "Retrieve all accounts (checking, savings, credit cards) for a customer.",
        &[field("user_id", Type::Str).about("The customer's unique identifier in the system")],
        get_all_user_accounts_by_user_id,
    )
    .discoverable(),
    write(
        "transfer_funds_between_bank_accounts_7291",
        "Transfer funds from one bank account to another.",
        &[field("source_account_id", Type::Str).about("The account ID to transfer funds from"), field("destination_account_id", Type::Str).about("The account ID to transfer funds to"), field("amount", Type::Float).about("The amount to transfer in USD")],
        transfer_funds_between_bank_accounts,
    )
    .discoverable(),
    write(
        "apply_checking_account_credit_5829",
        "Apply a credit to a customer's checking account.",
        &[field("account_id", Type::Str).about("The checking account ID to credit"), field("amount", Type::Float).about("The positive dollar amount to credit (must be greater than 0)"), field("credit_type", Type::Str).about("The type of credit: 'rebate_credit' for missing rebates, 'fee_refund' for incorrect \
             fee charges")],
        apply_checking_account_credit,
    )
    .discoverable(),
    write(
        "apply_savings_account_credit_6831",
        "Apply a credit to a customer's savings account for interest corrections, fee refunds, or \
         goodwill adjustments.",
        &[field("account_id", Type::Str).about("The savings account ID to credit"), field("amount", Type::Float).about("The positive dollar amount to credit (must be greater than 0)"), field("credit_type", Type::Str).about("The type of credit: 'interest_correction' for APY/interest calculation errors, \
             'fee_refund' for incorrect fee charges, 'goodwill_credit' for customer service \
             gestures")],
        apply_savings_account_credit,
    )
    .discoverable(),
    write(
        "submit_interest_discrepancy_report_7294",
        "Submit a report for interest calculation discrepancies to the backend team for \
         investigation. Use this when the interest credited to a customer's account does not \
         match expected APY calculations.",
        &[field("account_id", Type::Str).about("The savings account ID with the discrepancy"), field("user_id", Type::Str).about("The customer's unique identifier"), field("expected_apy", Type::Float).about("The APY percentage the customer should have received (e.g., 2.775 for 2.775%)"), field("actual_apy", Type::Float).about("The APY percentage that was actually applied (e.g., 2.5 for 2.5%)"), field("amount_difference", Type::Float).about("The dollar amount difference between expected and actual interest credited")],
        submit_interest_discrepancy_report,
    )
    .discoverable(),
    read(
        "get_bank_account_transactions_9173",
        "Retrieve the transaction history for a bank account.\n\nTransactions are returned in \
         reverse chronological order (most recent\nfirst).",
        &[field("account_id", Type::Str).about("The bank account ID to retrieve transactions for")],
        get_bank_account_transactions,
    )
    .discoverable(),
];

/// Accounts that may be used.
const OPEN: &[&str] = &["ACTIVE", "OPEN"];

fn or_empty(account: &Value, names: &[&str]) -> Value {
    let found = names.iter().find_map(|name| account.entry(name));
    found.cloned().unwrap_or_else(|| "".into())
}

fn age(account: &Value) -> i64 {
    account["date_opened"].as_str().and_then(days_since).unwrap_or(0)
}

/// Whether somebody with these accounts may open one of a kind.
fn may_open(kind: &str, accounts: &[&Value]) -> Result<bool, Failure> {
    let has = |kinds: &[&str], days: i64| {
        accounts.iter().any(|account| {
            is_in(&or_empty(account, &["account_type", "class"]), kinds)
                && is_in(&account["status"], OPEN)
                && (days == 0 || age(account) >= days)
        })
    };
    let personal = ["checking", "personal_checking"];
    Ok(match kind {
        "savings" => has(&personal, 14),
        "business_checking" => {
            accounts.iter().all(|account| account["status"] != "CLOSED") && has(&personal, 0)
        }
        "business_savings" => {
            for account in accounts {
                if balance(account)? < 0.0 {
                    return Ok(false);
                }
            }
            has(&["business_checking"], 30)
        }
        _ => true,
    })
}

fn open_bank_account(world: &mut World, args: &Args) -> Answer {
    if ["user_id", "account_type", "account_class"].iter().any(|name| !args[name].truthy()) {
        say!("Error: Missing required parameters.");
    }
    let types = ["checking", "savings", "business_checking", "business_savings"];
    if !is_in(&args["account_type"], &types) {
        say!("Error: Invalid account_type. Must be one of: {}", list(&types));
    }
    let all = records(world, "accounts").iter().map(|(_, account)| account);
    let accounts: Vec<&Value> =
        all.filter(|account| account["user_id"].equals(&args["user_id"])).collect();
    let (user, kind) = (args.shown("user_id"), args.shown("account_type"));
    if !may_open(&kind, &accounts)? {
        say!("Error: Account eligibility requirements not met.");
    }
    let class = args.shown("account_class");
    let account = id(&format!("account:{user}:{kind}:{class}"), 16);
    let record = Value::dict([
        ("account_id", account.clone().into()),
        ("user_id", args["user_id"].clone()),
        ("account_type", args["account_type"].clone()),
        ("account_class", args["account_class"].clone()),
        ("current_holdings", "0.00".into()),
        ("status", "OPEN".into()),
        ("date_opened", TODAY.into()),
    ]);
    if !add(world, "accounts", &account, record) {
        say!("Failed to open account: Account ID '{account}' may already exist.");
    }
    say!(
        "Bank account opened successfully!\n  - Account ID: {account}\n  - User ID: {user}\n  - \
         Account Type: {kind}\n  - Account Class: {class}\n  - Status: OPEN\n  - Initial Balance: \
         $0.00\n  - Date Opened: {TODAY}"
    )
}

/// What closing an account early costs, and for how many days after its opening.
fn early_closure(class: &Value, level: &Value) -> Option<(f64, i64)> {
    let (class, level) = (class.as_str()?, level.as_str()?);
    Some(match (class, level) {
        ("checking", "Light Blue Account" | "Light Green Account" | "Green Fee-Free Account") => {
            (15.0, 30)
        }
        ("checking", "Blue Account" | "Green Account") => (25.0, 60),
        ("checking", "Evergreen Account") => (50.0, 90),
        ("checking", "Bluest Account") => (100.0, 180),
        ("savings", "Bronze Account") => (20.0, 60),
        ("savings", "Silver Account" | "Silver Plus Account") => (35.0, 90),
        ("savings", "Gold Account" | "Gold Plus Account" | "Gold Years Account") => (75.0, 180),
        ("savings", "Platinum Account" | "Platinum Plus Account" | "Diamond Elite Account") => {
            (150.0, 270)
        }
        _ => return None,
    })
}

fn close_bank_account(world: &mut World, args: &Args) -> Answer {
    if !args["account_id"].truthy() {
        say!("Error: Missing required parameter (account_id).");
    }
    let id = args.shown("account_id");
    let Some(account) = find(world, "accounts", &args["account_id"])? else {
        say!("Error: Account '{id}' not found.");
    };
    if account["status"] == "CLOSED" {
        say!("Error: Account '{id}' is already closed.");
    }
    let held = balance(&account)?;
    let waived = &args["waive_early_closure_fee"];
    let mut rest = held;
    if !waived.truthy()
        && let Some((fee, window)) = early_closure(&account["class"], &account["level"])
        && let Some(days) = account["date_opened"].as_str().and_then(days_since)
        && days < window
    {
        if held < fee {
            say!("Error: Account unable to be closed.");
        }
        rest -= fee;
    }
    if rest != 0.0 {
        say!("Error: Account balance must be $0.00 before closing. Current balance: ${held:.2}");
    }
    let closed = [
        ("status", "CLOSED".into()),
        ("date_closed", TODAY.into()),
        ("closure_reason", args["reason"].clone()),
        ("early_closure_fee_waived", waived.clone()),
    ];
    change(world, "accounts", &args["account_id"], closed);
    let known = |name| account.entry(name).map_or_else(|| "N/A".to_owned(), str_of);
    say!(
        "Bank account closed successfully!\n  - Account ID: {id}\n  - Account Type: {}\n  - \
         Account Class: {}\n  - Status: CLOSED\n  - Date Closed: {TODAY}\n  - Reason: {}\n  - \
         Early Closure Fee Waived: {}",
        known("account_type"),
        known("account_class"),
        args.shown("reason"),
        if waived.truthy() { "Yes" } else { "No" }
    )
}

fn get_all_user_accounts_by_user_id(world: &mut World, args: &Args) -> Answer {
    if !args["user_id"].truthy() {
        say!("Error: Missing required parameter: user_id");
    }
    let found = |table: &str, nothing: &str| {
        let found = search(world, table, "user_id", &args["user_id"]);
        if is_nothing(&found) { nothing.to_owned() } else { found }
    };
    say!(
        "User accounts retrieved successfully.\n\nExecuted: \
         get_all_user_accounts_by_user_id_3847\nAccounts for user {}:\n\nBank \
         Accounts:\n{}\n\nCredit Card Accounts:\n{}",
        args.shown("user_id"),
        found("accounts", "  No bank accounts found."),
        found("credit_card_accounts", "  No credit card accounts found.")
    )
}

fn transfer_funds_between_bank_accounts(world: &mut World, args: &Args) -> Answer {
    let (from, to) = (&args["source_account_id"], &args["destination_account_id"]);
    if !from.truthy() || !to.truthy() || args["amount"].is_none() {
        say!(
            "Error: Missing required parameters (source_account_id, destination_account_id, \
             amount)."
        );
    }
    let Some(amount) = number(&args["amount"]) else {
        say!("Error: Invalid amount '{}'. Must be a number.", args.shown("amount"));
    };
    if amount <= 0.0 {
        say!("Error: Transfer amount must be positive.");
    }
    if from.equals(to) {
        say!("Error: Source and destination accounts cannot be the same.");
    }
    let (source_id, target_id) = (str_of(from), str_of(to));
    let Some(source) = find(world, "accounts", from)? else {
        say!("Error: Source account '{source_id}' not found.");
    };
    let Some(target) = find(world, "accounts", to)? else {
        say!("Error: Destination account '{target_id}' not found.");
    };
    if !is_in(&source["status"], OPEN) {
        say!("Error: Source account '{source_id}' is not active.");
    }
    if !is_in(&target["status"], OPEN) {
        say!("Error: Destination account '{target_id}' is not active.");
    }
    let held = balance(&source)?;
    if held < amount {
        say!(
            "Error: Insufficient funds. Source account balance is ${held:.2}, but transfer amount \
             is ${amount:.2}."
        );
    }
    let (left, received) = (held - amount, balance(&target)? + amount);
    change(world, "accounts", from, [("current_holdings", format!("${left:.2}").into())]);
    change(world, "accounts", to, [("current_holdings", format!("${received:.2}").into())]);
    say!(
        "Transfer completed successfully!\n  - Amount: ${amount:.2}\n  - From: {source_id} (new \
         balance: ${left:.2})\n  - To: {target_id} (new balance: ${received:.2})"
    )
}

/// A kind of credit to an account.
struct Credit {
    /// What the account must be, in words and as classes.
    class: &'static str,
    classes: &'static [&'static str],
    /// What is said where it is something else.
    refusal: &'static str,
    /// Credits and how they are described in the books.
    types: &'static [(&'static str, &'static str)],
    /// What the new balance begins with.
    currency: &'static str,
}

fn apply_checking_account_credit(world: &mut World, args: &Args) -> Answer {
    let credit = Credit {
        class: "checking",
        classes: &["checking"],
        refusal: "Credits can only be applied to checking accounts.",
        types: &[
            ("rebate_credit", "REBATE CREDIT - CUSTOMER SERVICE"),
            ("fee_refund", "FEE REFUND - CUSTOMER SERVICE"),
        ],
        currency: "$",
    };
    apply(world, args, &credit)
}

fn apply_savings_account_credit(world: &mut World, args: &Args) -> Answer {
    let credit = Credit {
        class: "savings",
        classes: &["saving", "savings"],
        refusal: "This tool only applies to savings accounts.",
        types: &[
            ("interest_correction", "INTEREST CORRECTION - CUSTOMER SERVICE"),
            ("fee_refund", "FEE REFUND - CUSTOMER SERVICE"),
            ("goodwill_credit", "GOODWILL CREDIT - CUSTOMER SERVICE"),
        ],
        currency: "",
    };
    apply(world, args, &credit)
}

fn apply(world: &mut World, args: &Args, credit: &Credit) -> Answer {
    let kind = &args["credit_type"];
    if !args["account_id"].truthy() || args["amount"].is_none() || !kind.truthy() {
        say!("Error: Missing required parameters.");
    }
    let Some(amount) = number(&args["amount"]) else {
        say!("Error: Invalid credit amount. Must be a number.");
    };
    if amount <= 0.0 {
        say!("Error: Credit amount must be positive.");
    }
    let Some((_, description)) = credit.types.iter().find(|(name, _)| kind == name) else {
        let names: Vec<&str> = credit.types.iter().map(|(name, _)| *name).collect();
        say!("Error: Invalid credit_type. Must be one of: {}", list(&names));
    };
    let account_id = args.shown("account_id");
    let Some(account) = find(world, "accounts", &args["account_id"])? else {
        say!("Error: Account '{account_id}' not found.");
    };
    let Credit { class, refusal, currency, .. } = credit;
    let of = or_empty(&account, &["class"]);
    if !credit.classes.contains(&text(&of, "lower")?.to_lowercase().as_str()) {
        say!("Error: Account '{account_id}' is not a {class} account. {refusal}");
    }
    if !is_in(&account["status"], OPEN) {
        say!("Error: Account '{account_id}' is not active.");
    }
    let before = balance(&account)?;
    let after = before + amount;
    let holdings = format!("{currency}{after:.2}").into();
    change(world, "accounts", &args["account_id"], [("current_holdings", holdings)]);
    let kind = str_of(kind);
    let seed = format!("{class}_credit:{account_id}:{kind}:{}:{TODAY}", float_repr(amount));
    let transaction = format!("txn_{}", id(&seed, 16));
    let record = Value::dict([
        ("transaction_id", transaction.clone().into()),
        ("account_id", args["account_id"].clone()),
        ("date", TODAY.into()),
        ("description", (*description).into()),
        ("amount", amount.into()),
        ("type", args["credit_type"].clone()),
        ("status", "posted".into()),
    ]);
    put(world, "bank_account_transaction_history", &transaction, record);
    say!(
        "\nCredit applied successfully!\n  - Transaction ID: {transaction}\n  - Account: \
         {account_id}\n  - Credit Type: {kind}\n  - Amount: ${amount:.2}\n  - Previous Balance: \
         ${before:.2}\n  - New Balance: ${after:.2}"
    )
}

/// The report is told and not kept: the reference has no table for it.
fn submit_interest_discrepancy_report(world: &mut World, args: &Args) -> Answer {
    let figures = ["expected_apy", "actual_apy", "amount_difference"].map(|name| &args[name]);
    if !args["account_id"].truthy()
        || !args["user_id"].truthy()
        || figures.iter().any(|figure| figure.is_none())
    {
        say!("Error: Missing required parameters.");
    }
    let [Some(expected), Some(actual), Some(difference)] = figures.map(number) else {
        say!("Error: expected_apy, actual_apy, and amount_difference must be numbers.");
    };
    let (account_id, user_id) = (args.shown("account_id"), args.shown("user_id"));
    let Some(account) = find(world, "accounts", &args["account_id"])? else {
        say!("Error: Account '{account_id}' not found.");
    };
    let Some(user) = find(world, "users", &args["user_id"])? else {
        say!("Error: User '{user_id}' not found.");
    };
    let (expected_shown, actual_shown) = (float_repr(expected), float_repr(actual));
    let seed =
        format!("interest_report:{account_id}:{user_id}:{expected_shown}:{actual_shown}:{TODAY}");
    let known = |record: &Value, name: &str| {
        record.entry(name).map_or_else(|| "Unknown".to_owned(), str_of)
    };
    say!(
        "\nInterest Discrepancy Report Submitted Successfully!\n  - Report ID: IDR_{}\n  - \
         Account: {account_id} ({})\n  - Customer: {}\n  - Expected APY: {expected_shown}%\n  - \
         Actual APY: {actual_shown}%\n  - APY Difference: {}%\n  - Amount Difference: \
         ${difference:.2}\n  - Status: PENDING_REVIEW\n\nThe backend team will investigate this \
         discrepancy and ensure correct APY calculations are applied going forward.",
        id(&seed, 16),
        known(&account, "level"),
        known(&user, "name"),
        float_repr(round(expected - actual, 4))
    )
}

/// When a transaction was: its day, and the time where one is told.
fn moment(transaction: &Value) -> Option<(i64, String)> {
    let date = str_of(&transaction["date"]);
    let (day, time) = date.split_once(' ').unwrap_or((&date, ""));
    let time: Vec<&str> = time.split(':').collect();
    let two = |part: &&str| format!("{part:0>2}");
    Some((day_number(day)?, time.iter().map(two).collect()))
}

fn get_bank_account_transactions(world: &mut World, args: &Args) -> Answer {
    if !args["account_id"].truthy() {
        say!("Error: Missing required parameter: account_id");
    }
    let account = args.shown("account_id");
    if find(world, "accounts", &args["account_id"])?.is_none() {
        say!("Error: Account '{account}' not found.");
    }
    let table = "bank_account_transaction_history";
    let all = records(world, table).iter();
    let mut found: Vec<&(Key, Value)> =
        all.filter(|(_, record)| record["account_id"].equals(&args["account_id"])).collect();
    // The latest first; those of one day stay as they are.
    found.sort_by_key(|(_, record)| std::cmp::Reverse(moment(record)));
    let found = if found.is_empty() {
        "\nNo transactions found for this account.".to_owned()
    } else {
        listing(table, found.into_iter())
    };
    say!(
        "Bank account transactions retrieved successfully.\n\nExecuted: \
         get_bank_account_transactions_9173\nTransactions for account {account}:\n{found}"
    )
}
