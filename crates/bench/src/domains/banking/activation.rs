//! Hidden tools that activate debit cards and set their PINs.

use super::books::{Answer, TODAY, change, find, is_in, records, say, text, titled};
use crate::{
    Args, Failure, Tool, Value, World,
    python::str_of,
    schema::{Type, field},
    toolkit::write,
};

pub(super) static TOOLS: &[Tool] = &[
    write(
        "activate_debit_card_8291",
        "Activate a NEW debit card for a customer. Use ONLY for first-time cards on a checking \
         account (issue_reason = 'new_account' or 'first_card'). For replacement or reissued \
         cards, use the appropriate variant.",
        &[
            field("card_id", Type::Str).about("The debit card ID to activate"),
            field("last_4_digits", Type::Str)
                .about("Last 4 digits of the card number (for verification)"),
            field("expiration_date", Type::Str).about("Card expiration date in MM/YY format"),
            field("cvv", Type::Str).about("3-digit CVV from the back of the card"),
            field("pin", Type::Str).about("4-digit PIN chosen by the customer"),
        ],
        activate_debit_card_8291,
    )
    .discoverable(),
    write(
        "activate_debit_card_8292",
        "Activate a REPLACEMENT debit card. Use ONLY for cards replacing lost, stolen, or \
         fraud-suspected cards (issue_reason = 'lost', 'stolen', or 'fraud'). For new or reissued \
         cards, use the appropriate variant.",
        &[
            field("card_id", Type::Str).about("The debit card ID to activate"),
            field("last_4_digits", Type::Str)
                .about("Last 4 digits of the card number (for verification)"),
            field("expiration_date", Type::Str).about("Card expiration date in MM/YY format"),
            field("cvv", Type::Str).about("3-digit CVV from the back of the card"),
            field("pin", Type::Str).about("4-digit PIN chosen by the customer"),
        ],
        activate_debit_card_8292,
    )
    .discoverable(),
    write(
        "activate_debit_card_8293",
        "Activate a REISSUED debit card. Use ONLY for cards reissued due to expiration, damage, \
         design upgrade, or bank-initiated replacement (issue_reason = 'expired', 'damaged', \
         'upgrade', or 'bank_reissue'). For new or replacement cards, use the appropriate variant.",
        &[
            field("card_id", Type::Str).about("The debit card ID to activate"),
            field("last_4_digits", Type::Str)
                .about("Last 4 digits of the card number (for verification)"),
            field("expiration_date", Type::Str).about("Card expiration date in MM/YY format"),
            field("cvv", Type::Str).about("3-digit CVV from the back of the card"),
            field("pin", Type::Str).about("4-digit PIN chosen by the customer"),
        ],
        activate_debit_card_8293,
    )
    .discoverable(),
    write(
        "reset_debit_card_pin_6284",
        "Reset a debit card PIN when the customer has forgotten it.",
        &[
            field("card_id", Type::Str).about("The debit card ID to reset PIN for"),
            field("last_4_digits", Type::Str)
                .about("Last 4 digits of the card number (for verification)"),
            field("new_pin", Type::Str).about("The new 4-digit PIN chosen by the customer"),
        ],
        reset_debit_card_pin,
    )
    .discoverable(),
    write(
        "change_debit_card_pin_6285",
        "Change a debit card PIN when the customer knows their current PIN.",
        &[
            field("card_id", Type::Str).about("The debit card ID to change PIN for"),
            field("current_pin", Type::Str).about("The customer's current 4-digit PIN"),
            field("new_pin", Type::Str).about("The new 4-digit PIN chosen by the customer"),
        ],
        change_debit_card_pin,
    )
    .discoverable(),
];

fn are_digits(text: &str, count: usize) -> bool {
    text.chars().count() == count && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// What is wrong with a PIN.
fn bad_pin(pin: &Value) -> Result<Option<&'static str>, Failure> {
    if !pin.truthy() || !are_digits(text(pin, "isdigit")?, 4) {
        return Ok(Some("PIN must be exactly 4 digits."));
    }
    let digits = text(pin, "isdigit")?.as_bytes();
    let steps: Vec<i16> = digits
        .windows(2)
        .filter_map(|pair| match pair {
            [a, b] => Some(i16::from(*b) - i16::from(*a)),
            _ => None,
        })
        .collect();
    let all = |step: i16| steps.iter().all(|s| *s == step);
    Ok(if all(1) || all(-1) {
        Some("PIN cannot be sequential (e.g., 1234). Please choose a more secure PIN.")
    } else if all(0) {
        Some("PIN cannot be all the same digit (e.g., 1111). Please choose a more secure PIN.")
    } else {
        None
    })
}

/// Which tool activates cards that were issued for a reason.
fn activation_tool(reason: &str) -> &'static str {
    match reason {
        "new_account" | "first_card" => "activate_debit_card_8291",
        "lost" | "stolen" | "fraud" => "activate_debit_card_8292",
        "expired" | "damaged" | "upgrade" | "bank_reissue" => "activate_debit_card_8293",
        _ => "unknown",
    }
}

/// What a tool does to the other active cards of the account.
enum Others {
    Deactivate(&'static str),
    Grace,
}

/// Activates a card. Returns why it was issued and the other cards that were active, or the
/// refusal.
fn activate(
    world: &mut World,
    args: &Args,
    tool: &str,
    others: &Others,
) -> Result<Result<(String, Vec<String>), String>, Failure> {
    let required = ["card_id", "last_4_digits", "expiration_date", "cvv", "pin"];
    if required.iter().any(|name| !args[name].truthy()) {
        return Ok(Err(format!(
            "Error: Missing required parameters. Required: {}.",
            required.join(", ")
        )));
    }
    if let Some(wrong) = bad_pin(&args["pin"])? {
        return Ok(Err(format!("Error: {wrong}")));
    }
    if !are_digits(text(&args["cvv"], "isdigit")?, 3) {
        return Ok(Err("Error: CVV must be exactly 3 digits.".to_owned()));
    }
    if !are_digits(text(&args["last_4_digits"], "isdigit")?, 4) {
        return Ok(Err("Error: Last 4 digits must be exactly 4 digits.".to_owned()));
    }
    let id = args.shown("card_id");
    let Some(card) = find(world, "debit_cards", &args["card_id"])? else {
        return Ok(Err(format!("Error: Debit card '{id}' not found.")));
    };
    let reason = card.entry("issue_reason").map_or_else(|| "new_account".to_owned(), str_of);
    let right = activation_tool(&reason);
    if right != tool {
        return Ok(Err(format!(
            "Error: Wrong activation tool. This card has issue_reason='{reason}'. Please use \
             {right} instead of {tool}."
        )));
    }
    if card["status"] == "ACTIVE" {
        return Ok(Err(format!("Error: Debit card '{id}' is already active.")));
    }
    if card["status"] != "PENDING" {
        return Ok(Err(format!(
            "Error: Debit card '{id}' cannot be activated. Current status: {}. Only PENDING cards \
             can be activated.",
            str_of(&card["status"])
        )));
    }
    if !card["last_4_digits"].equals(&args["last_4_digits"]) {
        return Ok(Err(UNVERIFIED.to_owned()));
    }
    if let Some(account) = find(world, "accounts", &card["account_id"])?
        && account["status"] != "OPEN"
    {
        let account = str_of(&card["account_id"]);
        return Ok(Err(format!(
            "Error: The linked checking account '{account}' is no longer open. Card cannot be \
             activated."
        )));
    }
    let active = [("status", "ACTIVE".into()), ("activated_date", TODAY.into())];
    change(world, "debit_cards", &args["card_id"], active);
    let all = records(world, "debit_cards").iter();
    let before: Vec<String> = all
        .filter(|(other, record)| {
            **other != *id
                && record["account_id"].equals(&card["account_id"])
                && record["status"] == "ACTIVE"
        })
        .map(|(other, _)| other.to_string())
        .collect();
    for other in &before {
        let other = other.as_str().into();
        match others {
            Others::Deactivate(why) => {
                let why = why.replace("{}", &reason);
                let fields = [
                    ("status", "DEACTIVATED".into()),
                    ("deactivated_date", TODAY.into()),
                    ("deactivation_reason", why.into()),
                ];
                change(world, "debit_cards", &other, fields);
            }
            Others::Grace => {
                let why = format!("Reissued card activated ({reason})");
                let fields = [
                    ("status", "GRACE_PERIOD".into()),
                    ("grace_period_ends", TODAY.into()),
                    ("deactivation_reason", why.into()),
                ];
                change(world, "debit_cards", &other, fields);
            }
        }
    }
    Ok(Ok((reason, before)))
}

const UNVERIFIED: &str =
    "Error: Card verification failed. The last 4 digits do not match our records.";

fn activate_debit_card_8291(world: &mut World, args: &Args) -> Answer {
    let others = Others::Deactivate("New card activated");
    let before = match activate(world, args, "activate_debit_card_8291", &others)? {
        Ok((_, before)) => before,
        Err(refusal) => say!("{refusal}"),
    };
    let mut lines = format!(
        "New Debit Card Activation Successful\nCard ID: {}\nStatus: ACTIVE\nActivation Date: \
         {TODAY}\n\nYour card is now ready to use at any ATM or point of sale terminal.\nFor \
         security, please sign the back of your card.",
        args.shown("card_id")
    );
    if !before.is_empty() {
        lines += "\n\nNote: Previous card(s) have been deactivated: ";
        lines += &before.join(", ");
    }
    Ok(lines.into())
}

fn activate_debit_card_8292(world: &mut World, args: &Args) -> Answer {
    let others = Others::Deactivate("Replacement card activated ({})");
    let (reason, before) = match activate(world, args, "activate_debit_card_8292", &others)? {
        Ok(activated) => activated,
        Err(refusal) => say!("{refusal}"),
    };
    let mut lines = format!(
        "Replacement Debit Card Activation Successful\nCard ID: {}\nReplacement Reason: \
         {}\nStatus: ACTIVE\nActivation Date: {TODAY}\n\nYour replacement card is now ready to \
         use.\n\nIMPORTANT SECURITY REMINDERS:\n- Please review your recent transactions for any \
         unauthorized charges\n- Report any suspicious activity immediately",
        args.shown("card_id"),
        titled(&reason.as_str().into())
    );
    if reason == "fraud" {
        lines +=
            "\n- Since fraud was suspected, we recommend changing your online banking password";
    }
    if !before.is_empty() {
        lines += "\n\nPrevious card(s) have been deactivated for security: ";
        lines += &before.join(", ");
    }
    Ok(lines.into())
}

fn activate_debit_card_8293(world: &mut World, args: &Args) -> Answer {
    let (reason, before) = match activate(world, args, "activate_debit_card_8293", &Others::Grace)?
    {
        Ok(activated) => activated,
        Err(refusal) => say!("{refusal}"),
    };
    let mut lines = format!(
        "Reissued Debit Card Activation Successful\nCard ID: {}\nReissue Reason: {}\nStatus: \
         ACTIVE\nActivation Date: {TODAY}\n\nYour reissued card is now ready to use.",
        args.shown("card_id"),
        titled(&reason.as_str().into())
    );
    if !before.is_empty() {
        lines += &format!(
            "\n\nNote: Your previous card(s) ({}) will remain active for 24 hours as a grace \
             period.\nAfter 24 hours, the old card(s) will be automatically deactivated.",
            before.join(", ")
        );
    }
    if ["expired", "bank_reissue"].contains(&reason.as_str()) {
        lines += "\n\nReminder: If your card number changed, please update any recurring payments \
                  with your new card details.";
    }
    Ok(lines.into())
}

fn reset_debit_card_pin(world: &mut World, args: &Args) -> Answer {
    if ["card_id", "last_4_digits", "new_pin"].iter().any(|name| !args[name].truthy()) {
        say!("Error: Missing required parameters. Required: card_id, last_4_digits, new_pin.");
    }
    if !are_digits(text(&args["last_4_digits"], "isdigit")?, 4) {
        say!("Error: Last 4 digits must be exactly 4 digits.");
    }
    if let Some(wrong) = bad_pin(&args["new_pin"])? {
        say!("Error: {wrong}");
    }
    let id = args.shown("card_id");
    let Some(card) = find(world, "debit_cards", &args["card_id"])? else {
        say!("Error: Debit card '{id}' not found.");
    };
    if !card["last_4_digits"].equals(&args["last_4_digits"]) {
        say!("{UNVERIFIED}");
    }
    if !is_in(&card["status"], &["ACTIVE"]) {
        say!(
            "Error: Cannot reset PIN. Card status is {}. Only ACTIVE cards can have their PIN \
             reset.",
            str_of(&card["status"])
        );
    }
    let fields = [
        ("pin_last_changed", TODAY.into()),
        ("pin_locked", false.into()),
        ("pin_attempts_remaining", 3.into()),
    ];
    change(world, "debit_cards", &args["card_id"], fields);
    say!(
        "Debit Card PIN Reset Successfully\nCard ID: {id}\nPIN Changed: {TODAY}\n\nThe new PIN is \
         effective immediately.\nYour card has been unlocked and is ready to use.\nCustomer can \
         use the new PIN for ATM withdrawals and point-of-sale transactions.\n\nSecurity \
         reminder: Never share your PIN with anyone."
    )
}

fn change_debit_card_pin(world: &mut World, args: &Args) -> Answer {
    if ["card_id", "current_pin", "new_pin"].iter().any(|name| !args[name].truthy()) {
        say!("Error: Missing required parameters. Required: card_id, current_pin, new_pin.");
    }
    if !are_digits(text(&args["current_pin"], "isdigit")?, 4) {
        say!("Error: Current PIN must be exactly 4 digits.");
    }
    if let Some(wrong) = bad_pin(&args["new_pin"])? {
        say!("Error: {wrong}");
    }
    if args["current_pin"].equals(&args["new_pin"]) {
        say!("Error: New PIN must be different from current PIN.");
    }
    let id = args.shown("card_id");
    let Some(card) = find(world, "debit_cards", &args["card_id"])? else {
        say!("Error: Debit card '{id}' not found.");
    };
    if card["status"] != "ACTIVE" {
        say!(
            "Error: Cannot change PIN. Card status is {}. Only ACTIVE cards can have their PIN \
             changed.",
            str_of(&card["status"])
        );
    }
    change(world, "debit_cards", &args["card_id"], [("pin_last_changed", TODAY.into())]);
    say!(
        "Debit Card PIN Changed Successfully\nCard ID: {id}\nPIN Changed: {TODAY}\n\nThe new PIN \
         is effective immediately.\nCustomer can use the new PIN for ATM withdrawals and \
         point-of-sale transactions.\n\nSecurity reminder: Never share your PIN with anyone."
    )
}
