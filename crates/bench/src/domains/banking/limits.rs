//! Hidden tools around credit limits and payments.

use super::{
    books::{Answer, TODAY, add, amount_in, change, find, id, is_in, number, records, say, text},
    credit::credit_limit_increase_history,
};
use crate::{
    Args, Failure, Tool, Value, World,
    python::str_of,
    schema::{Type, field},
    toolkit::{read, write},
};

pub(super) static TOOLS: &[Tool] = &[
    write(
        "submit_credit_limit_increase_request_7392",
        "Submit a credit limit increase request for a customer's credit card.",
        &[
            field("credit_card_account_id", Type::Str)
                .about("The credit card account ID to request increase for"),
            field("user_id", Type::Str).about("The customer's unique identifier in the system"),
            field("requested_increase_amount", Type::Int).about(
                "The dollar amount by which to increase the credit limit (e.g., 2500 for $2,500)",
            ),
        ],
        submit_credit_limit_increase_request,
    )
    .discoverable(),
    read(
        "get_credit_limit_increase_history_4829",
        "Retrieve the credit limit increase request history for a specific credit card account. \
         Returns all previous CLI requests including dates, amounts, and statuses.",
        &[field("credit_card_account_id", Type::Str)
            .about("The credit card account ID to check for CLI history")],
        get_credit_limit_increase_history,
    )
    .discoverable(),
    read(
        "get_payment_history_6183",
        "Retrieve payment history for a credit card account.",
        &[
            field("credit_card_account_id", Type::Str)
                .about("The credit card account ID to check payment history for"),
            field("months", Type::Int).about("Number of months of payment history to retrieve"),
        ],
        get_payment_history,
    )
    .discoverable(),
    write(
        "approve_credit_limit_increase_5847",
        "Approve and apply a credit limit increase for a customer's credit card.",
        &[
            field("credit_card_account_id", Type::Str).about("The credit card account ID"),
            field("user_id", Type::Str).about("The customer's unique identifier in the system"),
            field("new_credit_limit", Type::Int)
                .about("The new total credit limit in dollars (e.g., 7500 for $7,500)"),
        ],
        approve_credit_limit_increase,
    )
    .discoverable(),
    write(
        "deny_credit_limit_increase_5848",
        "Deny a credit limit increase request for a customer's credit card.",
        &[
            field("credit_card_account_id", Type::Str).about("The credit card account ID"),
            field("user_id", Type::Str).about("The customer's unique identifier in the system"),
            field("denial_reason", Type::Str).about(
                "The reason for denying the request. Must be one of: 'insufficient_account_age', \
             'cooldown_period_active', 'pending_disputes', 'pending_replacement_card', \
             'past_due_balance', 'high_utilization', 'insufficient_payment_history', \
             'requested_amount_exceeds_limit', 'other'",
            ),
        ],
        deny_credit_limit_increase,
    )
    .discoverable(),
];

/// The id of a request, which follows from how much is asked for.
fn request_id(args: &Args, increase: f64) -> String {
    let (account, user) = (args.shown("credit_card_account_id"), args.shown("user_id"));
    format!("cli_{}", id(&format!("cli_request:{account}:{user}:{increase:.2}"), 12))
}

/// The credit card account of the arguments, or why it cannot be used.
fn own_account(world: &World, args: &Args) -> Result<Result<Value, String>, Failure> {
    let account = args.shown("credit_card_account_id");
    let found = find(world, "credit_card_accounts", &args["credit_card_account_id"])?;
    Ok(match found {
        None => Err(format!("Error: Credit card account '{account}' not found.")),
        Some(found) if !found["user_id"].equals(&args["user_id"]) => Err(format!(
            "Error: Credit card account '{account}' does not belong to user '{}'.",
            args.shown("user_id")
        )),
        Some(found) => Ok(found),
    })
}

/// `1234567` as `1,234,567`.
fn with_commas(number: i64) -> String {
    let digits = number.to_string();
    let mut out = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

#[allow(clippy::cast_possible_truncation, reason = "it is whole, and larger amounts do not occur")]
fn submit_credit_limit_increase_request(world: &mut World, args: &Args) -> Answer {
    let asked = &args["requested_increase_amount"];
    if !args["credit_card_account_id"].truthy() || !args["user_id"].truthy() || asked.is_none() {
        say!("Error: Missing required parameters.");
    }
    let Some(asked) = number(asked) else {
        say!("Error: Invalid requested_increase_amount. Must be a whole number.");
    };
    if asked.fract() != 0.0 {
        say!("Error: Invalid requested_increase_amount. Must be a whole number of dollars.");
    }
    if asked <= 0.0 {
        say!("Error: Requested increase amount must be positive.");
    }
    if let Err(refusal) = own_account(world, args)? {
        say!("{refusal}");
    }
    let whole = asked as i64;
    let request = request_id(args, asked);
    let record = Value::dict([
        ("request_id", request.clone().into()),
        ("credit_card_account_id", args["credit_card_account_id"].clone()),
        ("user_id", args["user_id"].clone()),
        ("requested_increase_amount", whole.into()),
        ("submitted_at", TODAY.into()),
        ("status", "PENDING".into()),
    ]);
    if !add(world, "credit_limit_increase_requests", &request, record) {
        say!("Error: A similar request may already exist.");
    }
    say!(
        "Credit limit increase request submitted successfully.\n\nExecuted: \
         submit_credit_limit_increase_request_7392\n  - Request ID: {request}\n  - Account: {}\n  \
         - Requested Increase: ${}\n  - Status: PENDING",
        args.shown("credit_card_account_id"),
        with_commas(whole)
    )
}

fn get_credit_limit_increase_history(world: &mut World, args: &Args) -> Answer {
    credit_limit_increase_history(world, args)
}

fn get_payment_history(world: &mut World, args: &Args) -> Answer {
    if !args["credit_card_account_id"].truthy() || args["months"].is_none() {
        say!("Error: Missing required parameters (credit_card_account_id, months).");
    }
    // A text must be a whole number; a float is cut.
    let months = match &args["months"] {
        Value::Str(text) => text.trim().parse::<i64>().ok(),
        #[allow(clippy::cast_possible_truncation, reason = "as `int` does")]
        other => other.as_f64().map(|months| months as i64),
    };
    let Some(months) = months else {
        say!("Error: Invalid months value. Must be a positive integer.");
    };
    if months <= 0 {
        say!("Error: months must be a positive integer.");
    }
    let account = args.shown("credit_card_account_id");
    let wanted = &args["credit_card_account_id"];
    let payments = records(world, "payment_history").iter().map(|(_, payment)| payment);
    let mut payments: Vec<&Value> =
        payments.filter(|payment| payment["credit_card_account_id"].equals(wanted)).collect();
    if payments.is_empty() {
        say!("No payment history found for account '{account}'.");
    }
    let date = |payment: &Value| payment["payment_date"].as_str().unwrap_or_default().to_owned();
    payments.sort_by_key(|payment| std::cmp::Reverse(date(payment)));
    payments.truncate(usize::try_from(months).unwrap_or(usize::MAX));
    let on_time = payments.iter().take_while(|payment| payment["status"] == "ON_TIME").count();
    let mut lines = vec![
        format!("Payment history for account '{account}' (last {months} months):"),
        format!("Consecutive on-time payments: {on_time}"),
    ];
    lines.extend(payments.iter().map(|payment| {
        format!(
            "\n  - Payment Date: {}\n    Amount: {}\n    Status: {}",
            str_of(&payment["payment_date"]),
            str_of(&payment["amount"]),
            str_of(&payment["status"])
        )
    }));
    say!("{}", lines.join("\n"))
}

fn approve_credit_limit_increase(world: &mut World, args: &Args) -> Answer {
    let limit = &args["new_credit_limit"];
    if !args["credit_card_account_id"].truthy() || !args["user_id"].truthy() || limit.is_none() {
        say!("Error: Missing required parameters.");
    }
    let card = match own_account(world, args)? {
        Ok(card) => card,
        Err(refusal) => say!("{refusal}"),
    };
    let disputed = records(world, "transaction_disputes").iter().any(|(_, dispute)| {
        dispute["user_id"].equals(&args["user_id"])
            && is_in(&dispute["status"], &["SUBMITTED", "UNDER_REVIEW", "PENDING"])
    });
    let replaced = records(world, "credit_card_orders").iter().any(|(_, order)| {
        order["credit_card_account_id"].equals(&args["credit_card_account_id"])
            && is_in(&order["status"], &["PENDING", "PROCESSING", "SHIPPED"])
    });
    let mut refused = disputed || replaced;
    if !refused && let Some(status) = card.entry("account_status") {
        let status = text(status, "upper")?.to_uppercase();
        refused = ["PAST_DUE", "DELINQUENT", "COLLECTIONS", "CLOSED"].contains(&status.as_str());
    }
    if refused {
        say!("Error: Credit limit increase request cannot be approved at this time.");
    }
    let before = card.entry("credit_limit").map_or(0.0, amount_in);
    let Some(after) = number(limit) else {
        return crate::raise(match limit {
            Value::Str(_) => {
                format!("could not convert string to float: {}", crate::python::repr(limit))
            }
            other => format!(
                "float() argument must be a string or a real number, not '{}'",
                crate::python::type_name(other)
            ),
        });
    };
    let new_limit = format!("${after:.2}");
    let raised = [("credit_limit", new_limit.clone().into())];
    change(world, "credit_card_accounts", &args["credit_card_account_id"], raised);
    let request = request_id(args, after - before);
    let record = Value::dict([
        ("request_id", request.clone().into()),
        ("credit_card_account_id", args["credit_card_account_id"].clone()),
        ("user_id", args["user_id"].clone()),
        ("previous_limit", format!("${before:.2}").into()),
        ("new_limit", new_limit.into()),
        ("increase_amount", format!("${:.2}", after - before).into()),
        ("decision_date", TODAY.into()),
        ("status", "APPROVED".into()),
    ]);
    add(world, "credit_limit_increase_requests", &request, record);
    say!(
        "Credit limit increase approved!\n  - Account: {}\n  - Previous Limit: ${before:.2}\n  - \
         New Limit: ${after:.2}\n  - Increase: ${:.2}\n  - Effective Date: {TODAY}\nThe customer \
         will receive a confirmation email.",
        args.shown("credit_card_account_id"),
        after - before
    )
}

fn deny_credit_limit_increase(world: &mut World, args: &Args) -> Answer {
    if ["credit_card_account_id", "user_id", "denial_reason"].iter().any(|n| !args[n].truthy()) {
        say!("Error: Missing required parameters.");
    }
    let reasons = [
        "insufficient_account_age",
        "cooldown_period_active",
        "pending_disputes",
        "pending_replacement_card",
        "past_due_balance",
        "high_utilization",
        "insufficient_payment_history",
        "requested_amount_exceeds_limit",
        "other",
    ];
    if !is_in(&args["denial_reason"], &reasons) {
        say!("Error: Invalid denial_reason. Must be one of: {}", reasons.join(", "));
    }
    let account = args.shown("credit_card_account_id");
    if find(world, "credit_card_accounts", &args["credit_card_account_id"])?.is_none() {
        say!("Error: Credit card account '{account}' not found.");
    }
    let request = request_id(args, 0.0);
    let record = Value::dict([
        ("request_id", request.clone().into()),
        ("credit_card_account_id", args["credit_card_account_id"].clone()),
        ("user_id", args["user_id"].clone()),
        ("denial_reason", args["denial_reason"].clone()),
        ("decision_date", TODAY.into()),
        ("status", "DENIED".into()),
    ]);
    add(world, "credit_limit_increase_requests", &request, record);
    say!(
        "Credit limit increase request denied.\n  - Account: {account}\n  - Denial Reason: {}\n  \
         - Date: {TODAY}\nThe customer will receive a notification explaining the denial.",
        args.shown("denial_reason")
    )
}
