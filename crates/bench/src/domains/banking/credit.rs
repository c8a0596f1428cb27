//! Hidden tools around credit cards: rewards, replacements, closures, credits, payments.

use super::books::{
    Answer, TODAY, add, amount_in, balance, cents, change, find, history, id, is_in, is_nothing,
    joined, list, number, say, search, titled,
};
use crate::{
    Args, Tool, Value, World,
    python::{Layout, compare, dumps},
    schema::{Default, Type, field},
    toolkit::{read, write},
};

pub(super) static TOOLS: &[Tool] = &[
    write(
        "update_transaction_rewards_3847",
        "Update the rewards_earned field on a credit card transaction.",
        &[field("transaction_id", Type::Str).about("The unique identifier for the transaction to update"), field("new_rewards_earned", Type::Str).about("The corrected rewards value (e.g., '6300 points')")],
        update_transaction_rewards,
    )
    .discoverable(),
    write(
        "order_replacement_credit_card_7291",
        "Order a replacement credit card for a customer. The old card will be automatically \
         cancelled when the replacement is ordered.",
        &[field("credit_card_account_id", Type::Str).about("The credit card account ID for the card being replaced"), field("user_id", Type::Str).about("The user's unique identifier in the system"), field("shipping_address", Type::Str).about("Full shipping address where the new card should be sent"), field("reason", Type::Str).about("Reason for replacement. Must be one of: 'fraud_suspected', 'lost', 'stolen', \
             'damaged', 'expired', 'other'"), field("expedited_shipping", Type::Bool).or(Default::Bool(false)).about("Whether to use expedited shipping (2-3 business days instead of 7-10)")],
        order_replacement_credit_card,
    )
    .discoverable(),
    read(
        "get_pending_replacement_orders_5765",
        "Check if a credit card account has any pending replacement card orders.",
        &[field("credit_card_account_id", Type::Str).about("The credit card account ID to check for pending replacement orders")],
        get_pending_replacement_orders,
    )
    .discoverable(),
    write(
        "log_credit_card_closure_reason_4521",
        "Log the reason why a customer wants to close their credit card account.",
        &[field("credit_card_account_id", Type::Str).about("The credit card account ID the customer wants to close"), field("user_id", Type::Str).about("The user's unique identifier in the system"), field("closure_reason", Type::Str).about("Reason for closure. Must be one of: 'annual_fee', 'not_using_card', \
             'found_better_card', 'unhappy_with_rewards', 'simplifying_finances', \
             'negative_experience', 'other'")],
        log_credit_card_closure_reason,
    )
    .discoverable(),
    read(
        "get_closure_reason_history_8293",
        "Retrieve the closure reason history for a specific credit card account.",
        &[field("credit_card_account_id", Type::Str).about("The credit card account ID to check for previous closure attempts")],
        get_closure_reason_history,
    )
    .discoverable(),
    write(
        "apply_statement_credit_8472",
        "Apply a statement credit to a customer's credit card account.",
        &[field("user_id", Type::Str).about("The user's unique identifier in the system"), field("credit_card_account_id", Type::Str).about("The credit card account ID to apply the credit to"), field("amount", Type::Float).about("The credit amount in dollars (e.g., 25.00 for a $25 credit)"), field("reason", Type::Str).about("Reason for the statement credit. Must be one of: 'goodwill_adjustment', \
             'promotional_credit', 'annual_fee_reversal', 'late_fee_reversal', \
             'interest_charge_reversal', 'dispute_resolution', 'price_match', 'retention_offer', \
             'error_correction', 'other'")],
        apply_statement_credit,
    )
    .discoverable(),
    write(
        "apply_credit_card_account_flag_6147",
        "Apply a flag to a customer's credit card account. Flags can include annual fee waivers, \
         promotional APR rates, rewards bonuses, or other account-level modifiers. Each flag has \
         an effective date and expiration date.",
        &[field("credit_card_account_id", Type::Str).about("The credit card account ID to apply the flag to"), field("user_id", Type::Str).about("The user's unique identifier in the system"), field("flag_type", Type::Str).about("Type of flag to apply. Must be one of: 'annual_fee_waived', 'promotional_apr', \
             'rewards_bonus', 'other'"), field("expiration_date", Type::Str).about("Date when the flag expires (MM/DD/YYYY format)"), field("reason", Type::Str).about("Reason for applying this flag. Must be one of: 'retention_offer', 'loyalty_benefit', \
             'promotional', 'error_correction', 'other'")],
        apply_credit_card_account_flag,
    )
    .discoverable(),
    write(
        "close_credit_card_account_7834",
        "Close a customer's credit card account permanently.",
        &[field("credit_card_account_id", Type::Str).about("The credit card account ID to close"), field("user_id", Type::Str).about("The user's unique identifier in the system")],
        close_credit_card_account,
    )
    .discoverable(),
    write(
        "pay_credit_card_from_checking_9182",
        "Pay off a credit card balance using funds from the customer's Rho-Bank checking account. \
         This deducts the specified amount from the checking account and reduces the credit card \
         balance by the same amount.",
        &[field("user_id", Type::Str).about("The customer's unique identifier in the system"), field("checking_account_id", Type::Str).about("The ID of the Rho-Bank checking account to debit funds from"), field("credit_card_account_id", Type::Str).about("The ID of the credit card account to apply the payment to"), field("amount", Type::Float).about("The payment amount in dollars. Must be a positive number.")],
        pay_credit_card_from_checking,
    )
    .discoverable(),
];

/// The arguments as JSON, as some tools show them.
fn shown<const N: usize>(args: &Args, names: [&'static str; N]) -> String {
    dumps(&Value::dict(names.map(|name| (name, args[name].clone()))), Layout::Indented(2))
}

/// Whether a search for the credit card account of the arguments finds nothing.
fn no_account(world: &World, args: &Args) -> bool {
    let account = &args["credit_card_account_id"];
    is_nothing(&search(world, "credit_card_accounts", "account_id", account))
}

fn update_transaction_rewards(world: &mut World, args: &Args) -> Answer {
    let (transaction, rewards) = (args.shown("transaction_id"), args.shown("new_rewards_earned"));
    if !args["transaction_id"].truthy() || !args["new_rewards_earned"].truthy() {
        say!("Error: Missing required parameters.");
    }
    let table = "credit_card_transaction_history";
    if find(world, table, &args["transaction_id"])?.is_none() {
        say!("Error: Transaction '{transaction}' not found.");
    }
    let earned = args["new_rewards_earned"].clone();
    change(world, table, &args["transaction_id"], [("rewards_earned", earned)]);
    say!(
        "Transaction rewards updated successfully.\n\n\
         Executed: update_transaction_rewards_3847\nArguments: {}\nTransaction updated:\n  - \
         Transaction ID: {transaction}\n  - New Rewards: {rewards}",
        shown(args, ["transaction_id", "new_rewards_earned"])
    )
}

fn order_replacement_credit_card(world: &mut World, args: &Args) -> Answer {
    let required = ["credit_card_account_id", "user_id", "shipping_address", "reason"];
    if required.iter().any(|name| !args[name].truthy()) {
        say!(
            "Error: Missing required parameters (credit_card_account_id, user_id, \
             shipping_address, reason)."
        );
    }
    let reasons = ["fraud_suspected", "lost", "stolen", "damaged", "expired", "other"];
    if !is_in(&args["reason"], &reasons) {
        say!("Error: Invalid reason. Must be one of: {}", list(&reasons));
    }
    let account = args.shown("credit_card_account_id");
    if no_account(world, args) {
        say!("Error: Credit card account '{account}' not found.");
    }
    let (user, reason) = (args.shown("user_id"), args.shown("reason"));
    let order =
        format!("ccord_{}", id(&format!("credit_card_order:{account}:{user}:{reason}"), 12));
    let record = Value::dict([
        ("order_id", order.clone().into()),
        ("credit_card_account_id", args["credit_card_account_id"].clone()),
        ("user_id", args["user_id"].clone()),
        ("shipping_address", args["shipping_address"].clone()),
        ("reason", args["reason"].clone()),
        ("expedited_shipping", args["expedited_shipping"].clone()),
        ("order_date", TODAY.into()),
        ("status", "ORDERED".into()),
        ("old_card_cancelled", true.into()),
    ]);
    if !add(world, "credit_card_orders", &order, record) {
        say!("Error: Order may have already been placed for this card replacement.");
    }
    let closed = [("status", "CLOSED".into()), ("closed_date", TODAY.into())];
    change(world, "credit_card_accounts", &args["credit_card_account_id"], closed);
    let (method, delivery) = if args["expedited_shipping"].truthy() {
        ("Expedited", "2-3 business days")
    } else {
        ("Standard", "7-10 business days")
    };
    say!(
        "Order ID: {order}\nCard Account: {account}\nReason: {}\nShipping Address: {}\nShipping \
         Method: {method}\nExpected Delivery: {delivery}\n\nThe old card has been cancelled for \
         security. The new card will have the same account number but a new card number and CVV.",
        titled(&args["reason"]),
        args.shown("shipping_address")
    )
}

fn get_pending_replacement_orders(world: &mut World, args: &Args) -> Answer {
    let words = [
        "get_pending_replacement_orders_5765",
        "Pending replacement orders check completed.",
        "Replacement orders for credit card account",
        "No pending replacement orders found for this credit card account.",
    ];
    history(world, args, "credit_card_orders", "credit_card_account_id", words)
}

fn get_closure_reason_history(world: &mut World, args: &Args) -> Answer {
    let words = [
        "get_closure_reason_history_8293",
        "Closure reason history retrieved successfully.",
        "Closure reason history for credit card account",
        "No closure reason records found for this credit card account.",
    ];
    history(world, args, "credit_card_closure_reasons", "credit_card_account_id", words)
}

pub(super) fn credit_limit_increase_history(world: &World, args: &Args) -> Answer {
    let words = [
        "get_credit_limit_increase_history_4829",
        "Credit limit increase history retrieved.",
        "Credit limit increase history for account",
        "No credit limit increase requests found for this account.",
    ];
    history(world, args, "credit_limit_increase_requests", "credit_card_account_id", words)
}

fn log_credit_card_closure_reason(world: &mut World, args: &Args) -> Answer {
    let names = ["credit_card_account_id", "user_id", "closure_reason"];
    if names.iter().any(|name| !args[name].truthy()) {
        say!("Error: Missing required parameters.");
    }
    let reasons = [
        "annual_fee",
        "not_using_card",
        "found_better_card",
        "unhappy_with_rewards",
        "simplifying_finances",
        "negative_experience",
        "other",
    ];
    if !is_in(&args["closure_reason"], &reasons) {
        say!("Error: Invalid closure_reason. Must be one of: {}", list(&reasons));
    }
    let (account, user) = (args.shown("credit_card_account_id"), args.shown("user_id"));
    let record_id = format!("clsr_{}", id(&format!("closure_reason:{account}:{user}"), 12));
    let record = Value::dict([
        ("record_id", record_id.clone().into()),
        ("credit_card_account_id", args["credit_card_account_id"].clone()),
        ("user_id", args["user_id"].clone()),
        ("closure_reason", args["closure_reason"].clone()),
        ("logged_at", TODAY.into()),
        ("status", "LOGGED".into()),
    ]);
    add(world, "credit_card_closure_reasons", &record_id, record);
    say!(
        "Closure reason logged successfully.\n\n\
         Executed: log_credit_card_closure_reason_4521\nArguments: {}\nClosure reason '{}' logged \
         for account {account}.",
        shown(args, names),
        args.shown("closure_reason")
    )
}

fn apply_statement_credit(world: &mut World, args: &Args) -> Answer {
    let required = ["user_id", "credit_card_account_id", "reason"];
    if required.iter().any(|name| !args[name].truthy()) || args["amount"].is_none() {
        say!(
            "Error: Missing required parameters (user_id, credit_card_account_id, amount, reason)."
        );
    }
    if compare("<=", &args["amount"], &0.into())?.is_le() {
        say!("Error: Credit amount must be positive.");
    }
    let reasons = [
        "goodwill_adjustment",
        "promotional_credit",
        "annual_fee_reversal",
        "late_fee_reversal",
        "interest_charge_reversal",
        "dispute_resolution",
        "price_match",
        "retention_offer",
        "error_correction",
        "other",
    ];
    if !is_in(&args["reason"], &reasons) {
        say!("Error: Invalid reason. Must be one of: {}", list(&reasons));
    }
    let account = args.shown("credit_card_account_id");
    if no_account(world, args) {
        say!("Error: Credit card account '{account}' not found.");
    }
    let user = args.shown("user_id");
    let amount = cents(&args["amount"])?;
    let seed = joined(&[
        &"transaction".into(),
        &args["user_id"],
        &"STATEMENT_CREDIT".into(),
        &args["reason"],
        &amount.as_str().into(),
        &"Statement Credit".into(),
    ])?;
    let transaction = format!("txn_{}", id(&seed, 12));
    let record = Value::dict([
        ("transaction_id", transaction.clone().into()),
        ("user_id", args["user_id"].clone()),
        ("credit_card_account_id", args["credit_card_account_id"].clone()),
        ("credit_card_type", "N/A".into()),
        ("merchant_name", "Rho-Bank Statement Credit".into()),
        ("transaction_amount", format!("-${amount}").into()),
        ("transaction_date", TODAY.into()),
        ("category", "Statement Credit".into()),
        ("status", "COMPLETED".into()),
        ("rewards_earned", "0 points".into()),
        ("credit_reason", args["reason"].clone()),
    ]);
    if !add(world, "credit_card_transaction_history", &transaction, record) {
        say!(
            "Error: Failed to apply statement credit. Transaction ID '{transaction}' may already \
             exist."
        );
    }
    say!(
        "Statement credit applied successfully.\n\nExecuted: apply_statement_credit_8472\n  - \
         Transaction ID: {transaction}\n  - User ID: {user}\n  - Account: {account}\n  - Credit \
         Amount: ${amount}\n  - Reason: {}\n  - Date: {TODAY}",
        titled(&args["reason"])
    )
}

fn apply_credit_card_account_flag(world: &mut World, args: &Args) -> Answer {
    let names = ["credit_card_account_id", "user_id", "flag_type", "expiration_date", "reason"];
    if names.iter().any(|name| !args[name].truthy()) {
        say!("Error: Missing required parameters ({}).", names.join(", "));
    }
    let flags = ["annual_fee_waived", "promotional_apr", "rewards_bonus", "other"];
    if !is_in(&args["flag_type"], &flags) {
        say!("Error: Invalid flag_type. Must be one of: {}", list(&flags));
    }
    let reasons =
        ["retention_offer", "loyalty_benefit", "promotional", "error_correction", "other"];
    if !is_in(&args["reason"], &reasons) {
        say!("Error: Invalid reason. Must be one of: {}", list(&reasons));
    }
    let account = args.shown("credit_card_account_id");
    if no_account(world, args) {
        say!("Error: Credit card account '{account}' not found.");
    }
    let (flag_type, expires) = (args.shown("flag_type"), args.shown("expiration_date"));
    let flag =
        format!("ccflag_{}", id(&format!("account_flag:{account}:{flag_type}:{expires}"), 12));
    let record = Value::dict([
        ("flag_id", flag.clone().into()),
        ("credit_card_account_id", args["credit_card_account_id"].clone()),
        ("user_id", args["user_id"].clone()),
        ("flag_type", args["flag_type"].clone()),
        ("effective_date", TODAY.into()),
        ("expiration_date", args["expiration_date"].clone()),
        ("reason", args["reason"].clone()),
        ("applied_at", TODAY.into()),
        ("status", "ACTIVE".into()),
    ]);
    if !add(world, "credit_card_account_flags", &flag, record) {
        say!("Error: Failed to apply account flag. Flag ID '{flag}' may already exist.");
    }
    say!(
        "Account flag applied successfully!\n  - Flag ID: {flag}\n  - Account: {account}\n  - \
         User ID: {}\n  - Flag Type: {}\n  - Effective Date: {TODAY}\n  - Expiration Date: \
         {expires}\n  - Reason: {}",
        args.shown("user_id"),
        titled(&args["flag_type"]),
        titled(&args["reason"])
    )
}

fn close_credit_card_account(world: &mut World, args: &Args) -> Answer {
    let names = ["credit_card_account_id", "user_id"];
    if names.iter().any(|name| !args[name].truthy()) {
        say!("Error: Missing required parameters (credit_card_account_id, user_id).");
    }
    let account = args.shown("credit_card_account_id");
    if no_account(world, args) {
        say!("Error: Credit card account '{account}' not found.");
    }
    if find(world, "credit_card_accounts", &args["credit_card_account_id"])?.is_none() {
        say!("Error: Failed to close credit card account '{account}'.");
    }
    let closed = [
        ("status", "CLOSED".into()),
        ("closed_date", TODAY.into()),
        ("closed_by", args["user_id"].clone()),
    ];
    change(world, "credit_card_accounts", &args["credit_card_account_id"], closed);
    say!(
        "Credit card account closed successfully.\n\nExecuted: \
         close_credit_card_account_7834\nArguments: {}\nAccount {account} has been closed.",
        shown(args, names)
    )
}

fn pay_credit_card_from_checking(world: &mut World, args: &Args) -> Answer {
    let required = ["user_id", "checking_account_id", "credit_card_account_id"];
    if required.iter().any(|name| !args[name].truthy()) || args["amount"].is_none() {
        say!(
            "Error: Missing required parameters (user_id, checking_account_id, \
             credit_card_account_id, amount)."
        );
    }
    let Some(amount) = number(&args["amount"]) else {
        say!("Error: Invalid payment amount. Must be a positive number.");
    };
    if amount <= 0.0 {
        say!("Error: Payment amount must be a positive number.");
    }
    let (user, checking) = (args.shown("user_id"), args.shown("checking_account_id"));
    let credit = args.shown("credit_card_account_id");
    let Some(account) = find(world, "accounts", &args["checking_account_id"])? else {
        say!("Error: Checking account '{checking}' not found.");
    };
    if !account["user_id"].equals(&args["user_id"]) {
        say!("Error: Checking account '{checking}' does not belong to user '{user}'.");
    }
    if account["class"] != "checking" {
        say!("Error: Account '{checking}' is not a checking account.");
    }
    let held = balance(&account)?;
    if amount > held {
        say!(
            "Error: Insufficient funds in checking account. Available balance: ${held:.2}, \
             requested payment: ${amount:.2}."
        );
    }
    let Some(card) = find(world, "credit_card_accounts", &args["credit_card_account_id"])? else {
        say!("Error: Credit card account '{credit}' not found.");
    };
    if !card["user_id"].equals(&args["user_id"]) {
        say!("Error: Credit card account '{credit}' does not belong to user '{user}'.");
    }
    let owed = card.entry("current_balance").map_or(0.0, amount_in);
    if amount > owed {
        say!(
            "Error: Payment amount (${amount:.2}) exceeds credit card balance (${owed:.2}). \
             Please specify an amount up to the outstanding balance."
        );
    }
    let (held, owed) = (held - amount, owed - amount);
    let holdings = [("current_holdings", format!("{held:.2}").into())];
    change(world, "accounts", &args["checking_account_id"], holdings);
    let debts = [("current_balance", format!("${owed:.2}").into())];
    change(world, "credit_card_accounts", &args["credit_card_account_id"], debts);
    say!(
        "Payment processed successfully!\n  - Payment Amount: ${amount:.2}\n  - From Checking \
         Account: {checking}\n  - To Credit Card Account: {credit}\n  - New Checking Balance: \
         ${held:.2}\n  - New Credit Card Balance: ${owed:.2}\nThe payment has been applied \
         immediately."
    )
}
