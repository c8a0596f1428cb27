//! Hidden tools around disputed transactions.

use super::books::{Answer, TODAY, add, cents, find, history, id, is_in, list, say, text, titled};
use crate::{
    Args, Tool, Value, World,
    python::{compare, str_of},
    schema::{Default, Type, field},
    toolkit::{read, write},
};

pub(super) static TOOLS: &[Tool] = &[
    write(
        "file_credit_card_transaction_dispute_4829",
        "File a formal dispute for a credit card transaction.",
        &[field("transaction_id", Type::Str).about("The unique identifier for the transaction being disputed"), field("card_action", Type::Str).about("Flag indicating the card's status. Must be one of: 'keep_active' (card remains \
             active, dispute only), 'cancel_and_reissue' (card is being cancelled and replaced). \
             This is for record-keeping only and does NOT order a replacement card."), field("card_last_4_digits", Type::Str).about("Last 4 digits of the credit card number"), field("full_name", Type::Str).about("Full legal name of the cardholder"), field("user_id", Type::Str).about("The user's unique identifier in the system"), field("phone", Type::Str).about("Contact phone number"), field("email", Type::Str).about("Contact email address"), field("address", Type::Str).about("Contact mailing address"), field("contacted_merchant", Type::Bool).about("Whether the user attempted to resolve the issue with the merchant first"), field("purchase_date", Type::Str).about("Date when the purchase was made, format MM/DD/YYYY"), field("issue_noticed_date", Type::Str).about("Date when the user noticed the issue, format MM/DD/YYYY"), field("dispute_reason", Type::Str).about("Reason for the dispute. Must be one of: 'unauthorized_fraudulent_charge', \
             'duplicate_charge', 'incorrect_amount', 'goods_services_not_received', \
             'goods_services_not_as_described', 'canceled_subscription_still_charging', \
             'refund_never_processed'"), field("resolution_requested", Type::Str).about("Resolution being requested. Must be one of: 'full_refund', 'partial_refund'"), field("eligible_for_provisional_credit", Type::Bool).about("Whether the user is eligible for provisional credit"), field("partial_refund_amount", Type::Float).or(Default::None).about("Amount requested for partial refund (required only if resolution_requested is \
             'partial_refund')")],
        file_credit_card_transaction_dispute,
    )
    .discoverable(),
    write(
        "file_debit_card_transaction_dispute_6281",
        "File a formal dispute for a debit card transaction under Regulation E. Debit card \
         disputes affect actual bank funds and have different liability rules based on reporting \
         timing.",
        &[field("transaction_id", Type::Str).about("The unique identifier for the transaction being disputed"), field("account_id", Type::Str).about("The checking account ID linked to the debit card"), field("card_id", Type::Str).about("The debit card ID"), field("user_id", Type::Str).about("The user's unique identifier in the system"), field("dispute_category", Type::Str).about("Category of the dispute. Must be one of: 'unauthorized_transaction', \
             'atm_cash_discrepancy', 'atm_deposit_not_credited', 'duplicate_charge', \
             'incorrect_amount', 'goods_services_not_received', \
             'recurring_charge_after_cancellation', 'card_present_fraud', 'card_not_present_fraud'"), field("transaction_date", Type::Str).about("Date when the transaction occurred, format MM/DD/YYYY"), field("discovery_date", Type::Str).about("Date when the user first noticed the issue, format MM/DD/YYYY"), field("disputed_amount", Type::Float).about("The dollar amount being disputed"), field("transaction_type", Type::Str).about("Type of transaction. Must be one of: 'pin_purchase', 'signature_purchase', \
             'online_purchase', 'atm_withdrawal', 'atm_deposit', 'recurring_payment', \
             'person_to_person'"), field("card_in_possession", Type::Bool).about("Whether the customer still has their physical debit card in their possession"), field("pin_compromised", Type::Str).about("Whether the customer's PIN may have been compromised. Must be one of: 'yes_shared', \
             'yes_observed', 'no', 'unknown'"), field("contacted_merchant", Type::Bool).about("Whether the user attempted to resolve the issue with the merchant first"), field("police_report_filed", Type::Bool).about("Whether a police report has been filed (recommended for fraud over $500)"), field("written_statement_provided", Type::Bool).about("Whether the customer has provided a written statement describing what happened \
             (required for Reg E provisional credit)"), field("provisional_credit_eligible", Type::Bool).about("Whether the user is eligible for provisional credit based on Debit Card Provisional \
             Credit Guidelines"), field("customer_max_liability_amount", Type::Float).about("The maximum dollar amount the customer could be liable for based on Regulation E \
             reporting timing rules and the disputed amount. Use -1 for unlimited liability."), field("card_action", Type::Str).about("Action to take on the card. Must be one of: 'keep_active', \
             'freeze_pending_investigation', 'close_and_reissue'")],
        file_debit_card_transaction_dispute,
    )
    .discoverable(),
    read(
        "get_debit_dispute_status_7483",
        "Retrieve a user's debit card dispute history from the debit_card_disputes table. Returns \
         all debit card disputes filed by the user, including dispute IDs, categories, amounts, \
         statuses, and provisional credit information.",
        &[field("user_id", Type::Str).about("The user's unique identifier in the system")],
        get_debit_dispute_status,
    )
    .discoverable(),
    read(
        "get_atm_deposit_images_8473",
        "Retrieve ATM deposit envelope/check images for a specific ATM deposit transaction.",
        &[field("transaction_id", Type::Str).about("The transaction ID of the ATM deposit to retrieve images for")],
        get_atm_deposit_images,
    )
    .discoverable(),
    read(
        "get_user_dispute_history_7291",
        "Retrieve a user's credit card transaction dispute history from the transaction_disputes \
         table. Returns all credit card transaction disputes filed by the user, including dispute \
         IDs, transaction IDs, dispute reasons, statuses, and submission dates.",
        &[field("user_id", Type::Str).about("The user's unique identifier in the system")],
        get_user_dispute_history,
    )
    .discoverable(),
];

/// Says which texts an argument may be, where it is none of them.
fn refused(args: &Args, name: &str, texts: &[&str]) -> Option<String> {
    (!is_in(&args[name], texts))
        .then(|| format!("Error: Invalid {name}. Must be one of: {}", list(texts)))
}

fn dispute_id(args: &Args) -> String {
    let (user, transaction) = (args.shown("user_id"), args.shown("transaction_id"));
    format!("dsp_{}", id(&format!("dispute:{user}:{transaction}"), 12))
}

fn file_credit_card_transaction_dispute(world: &mut World, args: &Args) -> Answer {
    if !args["transaction_id"].truthy() || !args["user_id"].truthy() {
        say!("Error: Missing required parameters.");
    }
    let reasons = [
        "unauthorized_fraudulent_charge",
        "duplicate_charge",
        "incorrect_amount",
        "goods_services_not_received",
        "goods_services_not_as_described",
        "canceled_subscription_still_charging",
        "refund_never_processed",
    ];
    let refusal = refused(args, "card_action", &["keep_active", "cancel_and_reissue"])
        .or_else(|| refused(args, "dispute_reason", &reasons))
        .or_else(|| refused(args, "resolution_requested", &["full_refund", "partial_refund"]));
    if let Some(refusal) = refusal {
        say!("{refusal}");
    }
    let partial = &args["partial_refund_amount"];
    if args["resolution_requested"] == "partial_refund" && partial.is_none() {
        say!(
            "Error: partial_refund_amount is required when resolution_requested is \
             'partial_refund'."
        );
    }
    let dispute = dispute_id(args);
    let given = |name: &'static str| (name, args[name].clone());
    let record = Value::dict([
        ("dispute_id", dispute.clone().into()),
        given("transaction_id"),
        given("user_id"),
        given("card_action"),
        given("card_last_4_digits"),
        given("full_name"),
        given("phone"),
        given("email"),
        given("address"),
        given("contacted_merchant"),
        given("purchase_date"),
        given("issue_noticed_date"),
        given("dispute_reason"),
        given("resolution_requested"),
        given("partial_refund_amount"),
        given("eligible_for_provisional_credit"),
        ("provisional_credit_given", args["eligible_for_provisional_credit"].clone()),
        ("submitted_at", TODAY.into()),
        ("status", "SUBMITTED".into()),
    ]);
    if !add(world, "transaction_disputes", &dispute, record) {
        say!("Error: Dispute may have already been filed for this transaction.");
    }
    let mut lines = vec![
        "Credit card transaction dispute filed successfully. A case has been opened and will be \
         reviewed within 10 business days."
            .to_owned(),
        String::new(),
        "Executed: file_credit_card_transaction_dispute_4829".to_owned(),
        format!("Dispute ID: {dispute}"),
        format!("Transaction: {}", args.shown("transaction_id")),
        format!("Reason: {}", titled(&args["dispute_reason"])),
        format!("Resolution Requested: {}", titled(&args["resolution_requested"])),
    ];
    if partial.truthy() {
        lines.push(format!("Partial Refund Amount: ${}", cents(partial)?));
    }
    lines.push(if args["eligible_for_provisional_credit"].truthy() {
        "Provisional Credit: ELIGIBLE - Credit will be applied within 2 business days.".to_owned()
    } else {
        "Provisional Credit: Not eligible at this time.".to_owned()
    });
    say!("{}", lines.join("\n"))
}

fn file_debit_card_transaction_dispute(world: &mut World, args: &Args) -> Answer {
    let required = [
        "transaction_id",
        "account_id",
        "card_id",
        "user_id",
        "dispute_category",
        "transaction_date",
        "discovery_date",
        "disputed_amount",
        "transaction_type",
        "pin_compromised",
        "card_action",
    ];
    if required.iter().any(|name| !args[name].truthy()) {
        say!("Error: Missing required parameters.");
    }
    if args["customer_max_liability_amount"].is_none() {
        say!("Error: customer_max_liability_amount is required.");
    }
    let told = [
        "card_in_possession",
        "contacted_merchant",
        "police_report_filed",
        "written_statement_provided",
    ];
    if told.iter().any(|name| args[name].is_none()) {
        say!(
            "Error: card_in_possession, contacted_merchant, police_report_filed, and \
             written_statement_provided are required boolean fields."
        );
    }
    let categories = [
        "unauthorized_transaction",
        "atm_cash_discrepancy",
        "atm_deposit_not_credited",
        "duplicate_charge",
        "incorrect_amount",
        "goods_services_not_received",
        "recurring_charge_after_cancellation",
        "card_present_fraud",
        "card_not_present_fraud",
    ];
    let types = [
        "pin_purchase",
        "signature_purchase",
        "online_purchase",
        "atm_withdrawal",
        "atm_deposit",
        "recurring_payment",
        "person_to_person",
    ];
    let pins = ["yes_shared", "yes_observed", "no", "unknown"];
    let actions = ["keep_active", "freeze_pending_investigation", "close_and_reissue"];
    let refusal = refused(args, "dispute_category", &categories)
        .or_else(|| refused(args, "transaction_type", &types))
        .or_else(|| refused(args, "pin_compromised", &pins))
        .or_else(|| refused(args, "card_action", &actions));
    if let Some(refusal) = refusal {
        say!("{refusal}");
    }
    let amount = &args["disputed_amount"];
    if compare("<=", amount, &0.into())?.is_le() {
        say!("Error: disputed_amount must be a positive number.");
    }
    let dispute = dispute_id(args);
    let frauds = ["unauthorized_transaction", "card_present_fraud", "card_not_present_fraud"];
    let fraud = is_in(&args["dispute_category"], &frauds);
    let shared = args["pin_compromised"] == "yes_shared";
    let eligible = &args["provisional_credit_eligible"];
    let given = |name: &'static str| (name, args[name].clone());
    let record = Value::dict([
        ("dispute_id", dispute.clone().into()),
        given("transaction_id"),
        given("account_id"),
        given("card_id"),
        given("user_id"),
        given("dispute_category"),
        given("transaction_date"),
        given("discovery_date"),
        given("disputed_amount"),
        given("transaction_type"),
        given("card_in_possession"),
        given("pin_compromised"),
        given("contacted_merchant"),
        given("police_report_filed"),
        given("written_statement_provided"),
        given("provisional_credit_eligible"),
        ("provisional_credit_issued", eligible.clone()),
        ("provisional_credit_amount", if eligible.truthy() { amount.clone() } else { Value::None }),
        given("customer_max_liability_amount"),
        given("card_action"),
        ("is_fraud_category", fraud.into()),
        ("pin_shared_voluntarily", shared.into()),
        ("submitted_at", TODAY.into()),
        ("status", "OPEN".into()),
    ]);
    if !add(world, "debit_card_disputes", &dispute, record) {
        say!("Error: Dispute may have already been filed for this transaction.");
    }
    let dollars = cents(amount)?;
    let mut lines = vec![
        format!("Dispute ID: {dispute}"),
        format!("Transaction: {}", args.shown("transaction_id")),
        format!("Account: {}", args.shown("account_id")),
        format!("Category: {}", titled(&args["dispute_category"])),
        format!("Disputed Amount: ${dollars}"),
        format!("Card Action: {}", titled(&args["card_action"])),
    ];
    lines.push(if eligible.truthy() {
        format!(
            "Provisional Credit: ISSUED - ${dollars} credited within 10 business days per \
             Regulation E."
        )
    } else {
        "Provisional Credit: Not eligible - see Debit Card Provisional Credit Guidelines for \
         details."
            .to_owned()
    });
    if shared {
        lines.push(
            "WARNING: Customer indicated PIN was shared voluntarily. This may affect liability \
             determination."
                .to_owned(),
        );
    }
    let large = compare(">", amount, &500.into())?.is_gt();
    if fraud && !args["police_report_filed"].truthy() && large {
        lines.push(
            "RECOMMENDATION: For fraud disputes over $500, filing a police report is recommended."
                .to_owned(),
        );
    }
    say!("{}", lines.join("\n"))
}

fn get_debit_dispute_status(world: &mut World, args: &Args) -> Answer {
    let words = [
        "get_debit_dispute_status_7483",
        "Debit card dispute history retrieved successfully.",
        "Debit card dispute history for user",
        "No debit card disputes found for this user.",
    ];
    history(world, args, "debit_card_disputes", "user_id", words)
}

fn get_user_dispute_history(world: &mut World, args: &Args) -> Answer {
    let words = [
        "get_user_dispute_history_7291",
        "User transaction dispute history retrieved successfully.",
        "Transaction dispute history for user",
        "No transaction disputes found for this user.",
    ];
    history(world, args, "transaction_disputes", "user_id", words)
}

/// There are no pictures: those that the reference has are of transactions that its data lack.
fn get_atm_deposit_images(world: &mut World, args: &Args) -> Answer {
    if !args["transaction_id"].truthy() {
        say!("Error: Missing required parameter: transaction_id");
    }
    let id = args.shown("transaction_id");
    let table = "bank_account_transaction_history";
    let Some(transaction) = find(world, table, &args["transaction_id"])? else {
        say!("Error: Transaction '{id}' not found.");
    };
    if transaction["type"] != "atm_deposit" {
        say!(
            "Error: Transaction '{id}' is not an ATM deposit. This tool only works for ATM \
             deposit transactions."
        );
    }
    let place = match transaction.entry("description") {
        Some(place) => text(place, "upper")?,
        None => "",
    };
    let upper = place.to_uppercase();
    if !upper.contains("RHO-BANK") && !upper.contains("RHOBANK") {
        say!(
            "Error: Transaction '{id}' is from a third-party ATM. Deposit images are only \
             available for Rho-Bank ATM deposits. For third-party ATM disputes, a chargeback \
             request must be submitted to the ATM network."
        );
    }
    let date = transaction.entry("date").map_or_else(|| "Unknown".to_owned(), str_of);
    let amount = transaction["amount"].as_f64().unwrap_or_default().abs();
    say!(
        "ATM Deposit Image Retrieval Results\n=====================================\nTransaction \
         ID: {id}\nATM: {place}\nDeposit Date: {date}\nAmount Recorded: ${amount:.2}\n\n--- IMAGE \
         STATUS ---\nStatus: IMAGES NOT AVAILABLE\nReason: Deposit images for this transaction \
         have either expired (older than 90 days) or were not captured by the ATM system.\n\nFor \
         deposits without available images, the dispute will proceed based on customer statement \
         and ATM journal records only. Investigation timeline may be extended.\n"
    )
}
