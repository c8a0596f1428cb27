//! Hidden tools that order and list debit cards.

use super::books::{
    Answer, TODAY, add, amount_in, change, find, id, is_in, list, number, records, say, text,
};
use crate::{
    Args, Failure, Tool, Value, World,
    python::{Layout, dumps, float_repr, str_of},
    schema::{Default, Type, field},
    toolkit::{read, write},
};

pub(super) static TOOLS: &[Tool] = &[
    write(
        "order_debit_card_5739",
        "Order a new debit card for a customer's checking account.",
        &[
            field("account_id", Type::Str)
                .about("The checking account ID to link the debit card to"),
            field("user_id", Type::Str).about("The customer's unique identifier"),
            field("delivery_option", Type::Str)
                .about("Shipping speed: STANDARD, EXPEDITED, or RUSH"),
            field("delivery_fee", Type::Float).about("Fee to charge for delivery in dollars"),
            field("card_design", Type::Str).about("Card design: CLASSIC, PREMIUM, or CUSTOM"),
            field("design_fee", Type::Float).about("Fee to charge for card design in dollars"),
            field("shipping_address", Type::Str).about("Full shipping address for card delivery"),
            field("excess_replacement_fee", Type::Float)
                .or(Default::None)
                .about("Fee for exceeding replacement limit, if applicable"),
        ],
        order_debit_card,
    )
    .discoverable(),
    read(
        "get_debit_cards_by_account_id_7823",
        "Retrieve all debit cards associated with a checking account. Returns card details \
         including status, issue reason, and expiration date.",
        &[field("account_id", Type::Str)
            .about("The checking account ID to retrieve debit cards for")],
        get_debit_cards_by_account_id,
    )
    .discoverable(),
];

/// What an order costs.
struct Fees {
    delivery: f64,
    design: f64,
    excess: f64,
}

impl Fees {
    fn total(&self) -> f64 {
        self.delivery + self.design + self.excess
    }

    /// The fees that are charged, each with what stands before its amount.
    fn listed(&self, sign: &str) -> String {
        let mut parts = Vec::new();
        if self.delivery > 0.0 {
            parts.push(format!("Delivery{sign} ${}", float_repr(self.delivery)));
        }
        if self.design > 0.0 {
            parts.push(format!("Design{sign} ${}", float_repr(self.design)));
        }
        if self.excess > 0.0 {
            parts.push(format!("Excess Replacement{sign} ${:.0}", self.excess));
        }
        parts.join(", ")
    }
}

fn fees(args: &Args) -> Result<Fees, &'static str> {
    let fee = |name: &str| match &args[name] {
        Value::None => Some(None),
        given => number(given).map(Some),
    };
    let Some(delivery) = fee("delivery_fee") else {
        return Err("Error: delivery_fee must be a number.");
    };
    let Some(design) = fee("design_fee") else {
        return Err("Error: design_fee must be a number.");
    };
    let required = ["account_id", "user_id", "delivery_option", "card_design", "shipping_address"];
    match (delivery, design) {
        (Some(delivery), Some(design)) if required.iter().all(|name| args[name].truthy()) => {
            let excess = &args["excess_replacement_fee"];
            Ok(Fees { delivery, design, excess: number(excess).unwrap_or(0.0) })
        }
        _ => Err("Error: Missing required parameters. Required: account_id, user_id, \
                  delivery_option, delivery_fee, card_design, design_fee, shipping_address."),
    }
}

/// Why no card can be ordered for an account, or what the account holds.
fn usable(world: &World, args: &Args) -> Result<Result<f64, String>, Failure> {
    let id = args.shown("account_id");
    let Some(account) = find(world, "accounts", &args["account_id"])? else {
        return Ok(Err(format!("Error: Account '{id}' not found.")));
    };
    if account["class"] != "checking" {
        return Ok(Err(format!(
            "Error: Debit cards can only be ordered for checking accounts. Account '{id}' is a {} \
             account.",
            str_of(&account["class"])
        )));
    }
    if account["status"] != "OPEN" {
        let status = str_of(&account["status"]);
        return Ok(Err(format!(
            "Error: Account must be OPEN. Account '{id}' has status: {status}"
        )));
    }
    if !account["user_id"].equals(&args["user_id"]) {
        let user = args.shown("user_id");
        return Ok(Err(format!("Error: Account '{id}' does not belong to user '{user}'.")));
    }
    // Here a `$` makes an amount unreadable.
    let holdings = account.entry("current_holdings").map_or_else(|| "0".to_owned(), str_of);
    let held = if holdings.contains('$') { 0.0 } else { amount_in(&holdings.into()) };
    if held < 25.0 {
        return Ok(Err(format!(
            "Error: Account must have a minimum balance of $25. Current balance: ${held:.2}"
        )));
    }
    let of_account = |record: &Value, status: &str| {
        record["account_id"].equals(&args["account_id"]) && record["status"] == status
    };
    if records(world, "debit_card_orders").iter().any(|(_, order)| of_account(order, "PENDING")) {
        return Ok(Err(format!(
            "Error: There is already a pending debit card order for account '{id}'."
        )));
    }
    if records(world, "debit_cards").iter().any(|(_, card)| of_account(card, "ACTIVE")) {
        return Ok(Err(format!(
            "Error: Account '{id}' already has an active debit card. Maximum 1 active card per \
             checking account."
        )));
    }
    Ok(Ok(held))
}

/// Why the card is made out: what became of the one before.
fn issue_reason(world: &World, account: &Value) -> Value {
    let all = records(world, "debit_cards").iter().map(|(_, card)| card);
    let cards: Vec<&Value> = all.filter(|card| card["account_id"].equals(account)).collect();
    match cards.iter().find(|card| card["status"] == "CLOSED") {
        Some(closed) => match closed["closure_reason"].as_str() {
            Some("fraud_suspected") => "fraud".into(),
            Some(reason @ ("lost" | "stolen" | "fraud")) => reason.into(),
            _ => "first_card".into(),
        },
        None if cards.is_empty() => "new_account".into(),
        None => "first_card".into(),
    }
}

fn order_debit_card(world: &mut World, args: &Args) -> Answer {
    let fees = match fees(args) {
        Ok(fees) => fees,
        Err(refusal) => say!("{refusal}"),
    };
    let delivery = text(&args["delivery_option"], "upper")?.to_uppercase();
    let deliveries = ["STANDARD", "EXPEDITED", "RUSH"];
    let expected = match delivery.as_str() {
        "STANDARD" => "7-10 business days",
        "EXPEDITED" => "3-5 business days",
        "RUSH" => "1-2 business days",
        _ => say!("Error: Invalid delivery_option. Must be one of: {}", list(&deliveries)),
    };
    let design = text(&args["card_design"], "upper")?.to_uppercase();
    let designs = ["CLASSIC", "PREMIUM", "CUSTOM"];
    if !designs.contains(&design.as_str()) {
        say!("Error: Invalid card_design. Must be one of: {}", list(&designs));
    }
    let held = match usable(world, args)? {
        Ok(held) => held,
        Err(refusal) => say!("{refusal}"),
    };
    let total = fees.total();
    if total > 0.0 && held < total {
        say!(
            "Error: Insufficient funds for fees. Total fees: ${total:.2}. Current balance: \
             ${held:.2}"
        );
    }
    let (account, user) = (args.shown("account_id"), args.shown("user_id"));
    let order =
        format!("dcord_{}", id(&format!("debit_card_order:{account}:{user}:{delivery}"), 12));
    let record = Value::dict([
        ("order_id", order.clone().into()),
        ("account_id", args["account_id"].clone()),
        ("user_id", args["user_id"].clone()),
        ("delivery_option", delivery.clone().into()),
        ("card_design", design.clone().into()),
        ("shipping_address", args["shipping_address"].clone()),
        ("delivery_fee", fees.delivery.into()),
        ("design_fee", fees.design.into()),
        ("excess_replacement_fee", fees.excess.into()),
        ("total_fee", total.into()),
        ("order_date", TODAY.into()),
        ("expected_delivery", expected.into()),
        ("status", "PENDING".into()),
    ]);
    if !add(world, "debit_card_orders", &order, record) {
        say!("Error: Failed to create debit card order. Order may already exist.");
    }
    if total > 0.0 {
        charge(world, args, &order, held, &fees);
    }
    let card = issue(world, args, &design)?;
    let costs = if total > 0.0 {
        format!(
            "Total Fees: ${total:.2} ({}) - CHARGED to account {account}\nNew Account Balance: \
             ${:.2}",
            fees.listed(":"),
            held - total
        )
    } else {
        "Total Fees: $0 (No additional charges)".to_owned()
    };
    say!(
        "Debit Card Order Confirmed\nOrder ID: {order}\nCard ID: {card}\nLinked Account: \
         {account}\nDelivery Option: {delivery}\nCard Design: {design}\nShipping Address: \
         {}\nExpected Delivery: {expected}\n\nNote: Card will arrive with status PENDING. Customer \
         must call to activate after receiving the card.\n{costs}",
        args.shown("shipping_address")
    )
}

fn charge(world: &mut World, args: &Args, order: &str, held: f64, fees: &Fees) {
    let holdings = format!("{:.2}", held - fees.total()).into();
    change(world, "accounts", &args["account_id"], [("current_holdings", holdings)]);
    let tail: String = order.chars().skip(order.chars().count().saturating_sub(8)).collect();
    let transaction = format!("btxn_dcfee_{tail}");
    let record = Value::dict([
        ("transaction_id", transaction.clone().into()),
        ("account_id", args["account_id"].clone()),
        ("date", TODAY.into()),
        ("description", format!("DEBIT CARD ORDER FEE - {}", fees.listed("")).into()),
        ("amount", (-fees.total()).into()),
        ("type", "debit_card_fee".into()),
        ("status", "posted".into()),
    ]);
    add(world, "bank_account_transaction_history", &transaction, record);
}

/// Makes the card out; it waits for its activation.
fn issue(world: &mut World, args: &Args, design: &str) -> Result<String, Failure> {
    let (account, user) = (args.shown("account_id"), args.shown("user_id"));
    let card = format!("dbc_{}", id(&format!("debit_card:{account}:{user}:{TODAY}"), 12));
    let digits = |what: &str, length: usize, count: usize| {
        let seed = id(&format!("card_details:{card}:{what}"), length);
        let digits: String = seed.chars().filter(char::is_ascii_digit).take(count).collect();
        Value::from(format!("{digits:0>count$}"))
    };
    let holder = match find(world, "users", &args["user_id"])? {
        Some(holder) => match holder.entry("name") {
            Some(name) => text(name, "upper")?.to_uppercase(),
            None => "CARDHOLDER".to_owned(),
        },
        None => "CARDHOLDER".to_owned(),
    };
    let record = Value::dict([
        ("card_id", card.clone().into()),
        ("account_id", args["account_id"].clone()),
        ("user_id", args["user_id"].clone()),
        ("cardholder_name", holder.into()),
        ("last_4_digits", digits("last4", 8, 4)),
        ("cvv", digits("cvv", 6, 3)),
        ("status", "PENDING".into()),
        ("issue_date", TODAY.into()),
        ("expiration_date", "11/30/2029".into()),
        ("card_design", design.into()),
        ("issue_reason", issue_reason(world, &args["account_id"])),
    ]);
    add(world, "debit_cards", &card, record);
    Ok(card)
}

fn get_debit_cards_by_account_id(world: &mut World, args: &Args) -> Answer {
    if !args["account_id"].truthy() {
        say!("Error: Missing required parameter 'account_id'.");
    }
    let id = args.shown("account_id");
    let Some(account) = find(world, "accounts", &args["account_id"])? else {
        say!("Error: Account '{id}' not found.");
    };
    let class = account.entry("class").cloned().unwrap_or_else(|| "".into());
    let class = text(&class, "lower")?.to_lowercase();
    if !is_in(&class.into(), &["checking", "business_checking"]) {
        say!(
            "Error: Account '{id}' is not a checking account. Debit cards are only available for \
             checking accounts."
        );
    }
    let all = records(world, "debit_cards").iter();
    let own = all.filter(|(_, card)| card["account_id"].equals(&args["account_id"]));
    let mut cards: Vec<Value> = own
        .map(|(id, card)| {
            let mut shown = Value::dict([("card_id", id.into())]);
            shown.merge(card);
            rename(&mut shown, "last_4_digits", "card_number_last_4");
            rename(&mut shown, "issue_date", "date_issued");
            rename(&mut shown, "created_date", "date_issued");
            shown
        })
        .collect();
    if cards.is_empty() {
        say!("No debit cards found for account '{id}'.");
    }
    let date = |card: &Value| card["date_issued"].as_str().unwrap_or_default().to_owned();
    cards.sort_by_key(|card| std::cmp::Reverse(date(card)));
    say!("{}", dumps(&cards.into(), Layout::Indented(2)))
}

/// Gives a field another name, unless there is one of that name.
fn rename(record: &mut Value, from: &str, to: &'static str) {
    if record.entry(to).is_none()
        && let Some(value) = record.remove(from)
    {
        record.set(to, value);
    }
}
