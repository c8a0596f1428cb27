//! Hidden tools for debit cards in use: blocks, freezes, alerts, limits, closures.

use super::books::{
    Answer, TODAY, change, days_since, find, is_in, list, number, say, text, titled,
};
use crate::{
    Args, Tool, Value, World,
    python::{compare, multiply, str_of, subtract},
    schema::{Type, field},
    toolkit::write,
};

pub(super) static TOOLS: &[Tool] = &[
    write(
        "set_debit_card_recurring_block_7382",
        "Block or unblock all recurring payments on a debit card. When blocked, all \
         recurring/subscription charges will be declined. One-time purchases are not affected.",
        &[
            field("card_id", Type::Str).about("The debit card ID to update"),
            field("block_recurring", Type::Bool).about(
                "True to block all recurring payments, False to unblock/allow recurring payments",
            ),
        ],
        set_debit_card_recurring_block,
    )
    .discoverable(),
    write(
        "close_debit_card_4721",
        "Close or cancel a debit card permanently.",
        &[
            field("card_id", Type::Str).about("The debit card ID to close"),
            field("reason", Type::Str).about(
                "Reason for closing: lost, stolen, fraud_suspected, damaged, no_longer_needed, or \
             account_closing",
            ),
        ],
        close_debit_card,
    )
    .discoverable(),
    write(
        "freeze_debit_card_3892",
        "Temporarily freeze a debit card. The card can be unfrozen later.",
        &[field("card_id", Type::Str).about("The debit card ID to freeze")],
        freeze_debit_card,
    )
    .discoverable(),
    write(
        "unfreeze_debit_card_3893",
        "Unfreeze a previously frozen debit card.",
        &[field("card_id", Type::Str).about("The debit card ID to unfreeze")],
        unfreeze_debit_card,
    )
    .discoverable(),
    write(
        "clear_debit_card_fraud_alert_4892",
        "Clear a fraud alert or velocity block on a debit card.",
        &[
            field("card_id", Type::Str).about("The debit card ID to clear the alert/block for"),
            field("reason", Type::Str).about(
                "Reason for clearing: 'customer_verified' (for fraud alerts after customer \
             verification) or 'velocity_clear' (for velocity blocks after identity verification)",
            ),
        ],
        clear_debit_card_fraud_alert,
    )
    .discoverable(),
    write(
        "request_temporary_debit_card_limit_increase_8374",
        "Request a temporary 24-hour increase to a debit card's daily ATM or purchase limit.",
        &[
            field("card_id", Type::Str).about("The debit card ID to increase limits for"),
            field("limit_type", Type::Str).about(
                "Type of limit to increase: 'atm' for daily ATM withdrawal limit, 'purchase' for \
             daily purchase limit",
            ),
            field("new_limit", Type::Int)
                .about("The requested new temporary limit amount in dollars"),
        ],
        request_temporary_debit_card_limit_increase,
    )
    .discoverable(),
];

fn set_debit_card_recurring_block(world: &mut World, args: &Args) -> Answer {
    if !args["card_id"].truthy() {
        say!("Error: Missing required parameter: card_id");
    }
    let id = args.shown("card_id");
    let card = find(world, "debit_cards", &args["card_id"])?;
    let Some(card) = card.filter(Value::truthy) else {
        say!("Error: Debit card '{id}' not found.");
    };
    let status = card.entry("status").cloned().unwrap_or_else(|| "".into());
    let status = text(&status, "upper")?.to_uppercase();
    if status != "ACTIVE" {
        say!(
            "Error: Cannot update recurring block settings for a card with status '{status}'. \
             Card must be ACTIVE."
        );
    }
    let blocked = &args["block_recurring"];
    change(world, "debit_cards", &args["card_id"], [("recurring_blocked", blocked.clone())]);
    if blocked.truthy() {
        say!(
            "Recurring payments BLOCKED for debit card {id}.\nAll recurring/subscription charges \
             will be declined.\nOne-time purchases are not affected.\nThis change takes effect \
             within 24 hours."
        );
    }
    say!(
        "Recurring payments UNBLOCKED for debit card {id}.\nRecurring/subscription charges will \
         now be allowed.\nThis change takes effect within 24 hours."
    )
}

fn close_debit_card(world: &mut World, args: &Args) -> Answer {
    if !args["card_id"].truthy() || !args["reason"].truthy() {
        say!("Error: Missing required parameters. Required: card_id, reason.");
    }
    let reasons =
        ["lost", "stolen", "fraud_suspected", "damaged", "no_longer_needed", "account_closing"];
    let reason = text(&args["reason"], "lower")?.to_lowercase();
    if !reasons.contains(&reason.as_str()) {
        say!("Error: Invalid reason. Must be one of: {}", list(&reasons));
    }
    let id = args.shown("card_id");
    let Some(card) = find(world, "debit_cards", &args["card_id"])? else {
        say!("Error: Debit card '{id}' not found.");
    };
    let status = str_of(&card["status"]);
    if !is_in(&card["status"], &["ACTIVE", "PENDING"]) {
        say!(
            "Error: Debit card '{id}' cannot be closed. Current status: {status}. Only ACTIVE or \
             PENDING cards can be closed."
        );
    }
    let closed = [
        ("status", "CLOSED".into()),
        ("closed_date", TODAY.into()),
        ("closure_reason", reason.clone().into()),
    ];
    change(world, "debit_cards", &args["card_id"], closed);
    let mut warning = String::new();
    if ["lost", "stolen", "fraud_suspected"].contains(&reason.as_str()) {
        warning += "IMPORTANT: This card has been immediately deactivated for security.\nAny \
                    pending transactions may still be processed.\n";
    }
    if reason == "fraud_suspected" {
        warning += "Please advise the customer to review recent transactions and file disputes \
                    for any unauthorized charges.\nAlso recommend changing their online banking \
                    password.\n";
    }
    say!(
        "Debit Card Closed Successfully\nCard ID: {id}\nPrevious Status: {status}\nNew Status: \
         CLOSED\nClosure Reason: {}\nClosure Date: {TODAY}\n\n{warning}\nNote: This card cannot \
         be reactivated. If the customer needs a new card, they can order one through the \
         standard ordering process.\nAny recurring payments linked to this card will need to be \
         updated with new payment information.",
        titled(&reason.into())
    )
}

fn freeze_debit_card(world: &mut World, args: &Args) -> Answer {
    if !args["card_id"].truthy() {
        say!("Error: Missing required parameter: card_id.");
    }
    let id = args.shown("card_id");
    let Some(card) = find(world, "debit_cards", &args["card_id"])? else {
        say!("Error: Debit card '{id}' not found.");
    };
    if card["status"] == "FROZEN" {
        say!("Error: Debit card '{id}' is already frozen.");
    }
    if card["status"] != "ACTIVE" {
        say!(
            "Error: Debit card '{id}' cannot be frozen. Current status: {}. Only ACTIVE cards can \
             be frozen.",
            str_of(&card["status"])
        );
    }
    let frozen = [("status", "FROZEN".into()), ("frozen_date", TODAY.into())];
    change(world, "debit_cards", &args["card_id"], frozen);
    say!(
        "Debit Card Frozen Successfully\nCard ID: {id}\nStatus: FROZEN\nFrozen Date: \
         {TODAY}\n\nWhile frozen:\n- All new purchase transactions will be declined\n- Recurring \
         payments and subscriptions will be declined\n- Pending transactions already authorized \
         may still process\n\nTo unfreeze, the customer can call customer service or use the \
         mobile app.\nIf the card is confirmed lost or stolen, recommend closing the card \
         permanently instead."
    )
}

fn unfreeze_debit_card(world: &mut World, args: &Args) -> Answer {
    if !args["card_id"].truthy() {
        say!("Error: Missing required parameter: card_id.");
    }
    let id = args.shown("card_id");
    let Some(card) = find(world, "debit_cards", &args["card_id"])? else {
        say!("Error: Debit card '{id}' not found.");
    };
    if card["status"] == "ACTIVE" {
        say!("Error: Debit card '{id}' is already active.");
    }
    if card["status"] != "FROZEN" {
        say!(
            "Error: Debit card '{id}' cannot be unfrozen. Current status: {}. Only FROZEN cards \
             can be unfrozen.",
            str_of(&card["status"])
        );
    }
    if let Some(account) = find(world, "accounts", &card["account_id"])?
        && account["status"] != "OPEN"
    {
        say!(
            "Error: The linked checking account '{}' is no longer open. Card cannot be unfrozen.",
            str_of(&card["account_id"])
        );
    }
    let active = [("status", "ACTIVE".into()), ("unfrozen_date", TODAY.into())];
    change(world, "debit_cards", &args["card_id"], active);
    say!(
        "Debit Card Unfrozen Successfully\nCard ID: {id}\nStatus: ACTIVE\nUnfrozen Date: \
         {TODAY}\n\nThe card is now active and ready to use immediately.\nAll transactions will \
         process normally."
    )
}

fn clear_debit_card_fraud_alert(world: &mut World, args: &Args) -> Answer {
    for name in ["card_id", "reason"] {
        if !args[name].truthy() {
            say!("Error: Missing required parameter: {name}.");
        }
    }
    let reasons = ["customer_verified", "velocity_clear"];
    if !is_in(&args["reason"], &reasons) {
        say!(
            "Error: Invalid reason '{}'. Must be one of: {}",
            args.shown("reason"),
            reasons.join(", ")
        );
    }
    let id = args.shown("card_id");
    let Some(card) = find(world, "debit_cards", &args["card_id"])? else {
        say!("Error: Debit card '{id}' not found.");
    };
    if args["reason"] == "velocity_clear" {
        if !card["velocity_blocked"].truthy() {
            say!("Error: Debit card '{id}' does not have an active velocity block.");
        }
        let cleared = [("velocity_blocked", false.into()), ("velocity_cleared_date", TODAY.into())];
        change(world, "debit_cards", &args["card_id"], cleared);
        say!(
            "Velocity Block Cleared Successfully\nCard ID: {id}\nCleared Date: {TODAY}\n\nThe \
             card is now unblocked and ready for normal use.\nThe velocity monitoring will \
             continue - if the same unusual patterns recur,\nthe card may be blocked again \
             automatically."
        );
    }
    if !card["fraud_alert_active"].truthy() {
        say!("Error: Debit card '{id}' does not have an active fraud alert.");
    }
    if card["alert_source"] == "bank_initiated" {
        say!(
            "Error: BANK_INITIATED_ALERT - This fraud alert was initiated by the bank's fraud \
             detection system and cannot be cleared by customer service agents. Please transfer \
             the customer to the security team using transfer_to_human_agents."
        );
    }
    let cleared = [
        ("fraud_alert_active", false.into()),
        ("alert_source", Value::None),
        ("fraud_alert_cleared_date", TODAY.into()),
    ];
    change(world, "debit_cards", &args["card_id"], cleared);
    say!(
        "Fraud Alert Cleared Successfully\nCard ID: {id}\nCleared Date: {TODAY}\n\nThe fraud \
         alert has been removed from the card.\nAll transactions will process \
         normally.\n\nRemind the customer to review recent transactions and report any \
         unauthorized charges."
    )
}

/// How much may be drawn at machines in a day where the card does not say.
fn usual_atm_limit(level: &str) -> Option<i64> {
    Some(match level {
        "dark green account" => 300,
        "light blue account" => 400,
        "blue account" | "green fee-free account" => 500,
        "green account" | "gold years account" => 600,
        "evergreen account" => 750,
        "purple account" => 1000,
        "bluest account" => 1500,
        _ => return None,
    })
}

#[allow(clippy::cast_possible_truncation, reason = "as `int` does")]
fn request_temporary_debit_card_limit_increase(world: &mut World, args: &Args) -> Answer {
    for name in ["card_id", "limit_type"] {
        if !args[name].truthy() {
            say!("Error: Missing required parameter: {name}.");
        }
    }
    let kind = args.shown("limit_type");
    if !is_in(&args["limit_type"], &["atm", "purchase"]) {
        say!("Error: Invalid limit_type '{kind}'. Must be 'atm' or 'purchase'.");
    }
    if args["new_limit"].is_none() {
        say!("Error: Missing required parameter: new_limit.");
    }
    let Some(wanted) = number(&args["new_limit"]) else {
        say!("Error: new_limit must be an integer, got '{}'.", args.shown("new_limit"));
    };
    if wanted.fract() != 0.0 {
        say!("Error: new_limit must be an integer, got '{}'.", str_of(&wanted.into()));
    }
    let wanted = wanted as i64;
    if wanted <= 0 {
        say!("Error: new_limit must be a positive amount.");
    }
    let id = args.shown("card_id");
    let Some(card) = find(world, "debit_cards", &args["card_id"])? else {
        say!("Error: Debit card '{id}' not found.");
    };
    if card["status"] != "ACTIVE" {
        say!(
            "Error: Debit card '{id}' is not active. Current status: {}. Only ACTIVE cards can \
             have limit increases.",
            str_of(&card["status"])
        );
    }
    let Some(account) = find(world, "accounts", &card["account_id"])? else {
        say!("Error: Could not find linked account for debit card '{id}'.");
    };
    if account["status"] != "OPEN" {
        say!(
            "Error: The linked account '{}' is not in good standing. Account status: {}.",
            str_of(&card["account_id"]),
            str_of(&account["status"])
        );
    }
    if let Some(days) = account["date_opened"].as_str().and_then(days_since)
        && days < 60
    {
        say!(
            "Error: Account must be at least 60 days old for a temporary limit increase. Account \
             age: {days} days."
        );
    }
    let atm = kind == "atm";
    let (field, name) = if atm {
        ("daily_atm_limit", "Daily ATM Withdrawal Limit")
    } else {
        ("daily_purchase_limit", "Daily Purchase Limit")
    };
    let mut current = card[field].clone();
    if atm && current.is_none() {
        let level = account.entry("level").cloned().unwrap_or_else(|| "".into());
        let level = text(&level, "lower")?.to_lowercase();
        if level.contains("light green") {
            say!(
                "Error: Light Green Account (teen checking) cards have policy-based limits that \
                 cannot be modified. The daily ATM withdrawal limit of $150 is fixed by account \
                 policy for safety reasons. The customer may request the parent/guardian to \
                 withdraw cash from their own account if needed."
            );
        }
        let Some(usual) = usual_atm_limit(&level) else {
            say!(
                "Error: Could not determine the default ATM limit for account type '{}'. Please \
                 verify the account type.",
                str_of(&account["level"])
            );
        };
        current = usual.into();
    }
    if current.is_none() {
        say!(
            "Error: The card does not have a {} configured. This may be a restricted account type \
             where limits are set by account policy and cannot be modified.",
            name.to_lowercase()
        );
    }
    let most = multiply(&current, &1.5.into())?.as_f64().unwrap_or_default().trunc();
    let before = str_of(&current);
    if compare(">", &wanted.into(), &most.into())?.is_gt() {
        say!(
            "Error: Requested limit ${wanted} exceeds the maximum allowed temporary increase. \
             Maximum temporary limit is ${most:.0} (150% of current ${before} limit)."
        );
    }
    if compare("<=", &wanted.into(), &current)?.is_le() {
        say!("Error: Requested limit ${wanted} is not higher than the current limit of ${before}.");
    }
    let increase = str_of(&subtract(&wanted.into(), &current)?);
    let (granted, original, expires) = if atm {
        ("temporary_atm_limit_increase", "original_atm_limit", "temporary_atm_limit_expires")
    } else {
        (
            "temporary_purchase_limit_increase",
            "original_purchase_limit",
            "temporary_purchase_limit_expires",
        )
    };
    let fields = [
        (field, wanted.into()),
        (granted, true.into()),
        (original, current),
        (expires, TODAY.into()),
    ];
    change(world, "debit_cards", &args["card_id"], fields);
    say!(
        "Temporary {name} Increase Granted Successfully\nCard ID: {id}\nPrevious Limit: \
         ${before}\nNew Temporary Limit: ${wanted}\nIncrease Amount: ${increase}\n\nImportant \
         Information:\n- This temporary increase expires in 24 hours\n- After expiration, the \
         limit will revert to ${before}\n- Only one temporary increase is allowed per 24-hour \
         period\n\nNote: If the customer is at a third-party (non-Rho-Bank) ATM, that ATM may \
         have its own\nper-transaction or daily limits that Rho-Bank cannot override. The \
         customer may need to\nuse a Rho-Bank ATM or make multiple smaller withdrawals at \
         third-party ATMs."
    )
}
