//! The agent's side: customers, lines, plans and bills.

use super::{
    super::common::{TRANSFER, no_attribute},
    shapes::{BILL, LINE_ITEM},
};
use crate::{
    Args, Failure, Reply, Tool, Value, World,
    python::{add, compare, multiply, str_of},
    raise,
    schema::{Default, Field, Type, field},
    toolkit::{internal, read, write},
};

const TODAY: &str = "2025-02-25";

const CUSTOMER: Field = field("customer_id", Type::Str).about("Whose line or bill it is");
const LINE: Field = field("line_id", Type::Str).about("Which line");

pub(super) static TOOLS: &[Tool] = &[
    read(
        "get_customer_by_phone",
        "Look up a customer by a phone number: their contact number or that of one of their lines.",
        &[field("phone_number", Type::Str).about("The number")],
        |world, args| Ok(shown(customer_by_phone(&world.db, &args["phone_number"])?)),
    ),
    read(
        "get_customer_by_id",
        "Look up a customer by their id.",
        &[field("customer_id", Type::Str).about("The customer's id")],
        |world, args| Ok(shown(customer(world, args)?.1)),
    ),
    read(
        "get_customer_by_name",
        "Look up customers by full name and date of birth. Several may match.",
        &[
            field("full_name", Type::Str).about("The full name"),
            field("dob", Type::Str).about("The date of birth, as YYYY-MM-DD"),
        ],
        get_customer_by_name,
    ),
    read(
        "get_details_by_id",
        "Look up a customer, line, device, bill or plan by its id.",
        &[field("id", Type::Str).about("The id; its first letter tells what it is of")],
        get_details_by_id,
    ),
    write(
        "suspend_line",
        "Suspend an active line, for at most six months.",
        &[CUSTOMER, LINE, field("reason", Type::Str).about("Why it is suspended")],
        suspend_line,
    ),
    write(
        "resume_line",
        "Make a suspended line, or one that waits for its activation, active.",
        &[CUSTOMER, LINE],
        resume_line,
    ),
    read(
        "get_bills_for_customer",
        "List a customer's bills, the latest first.",
        &[
            field("customer_id", Type::Str).about("Whose bills"),
            field("limit", Type::Int).or(Default::Int(12)).about("How many at most"),
        ],
        get_bills_for_customer,
    ),
    write(
        "send_payment_request",
        "Ask a customer to pay a bill. Only one bill may wait for payment at a time. Whether the \
         bill is already paid is not checked here: look first.",
        &[CUSTOMER, field("bill_id", Type::Str).about("Which bill")],
        send_payment_request,
    ),
    read(
        "get_data_usage",
        "Tell how much data a line used in this billing cycle, its limit, what was refueled and \
         when the cycle ends.",
        &[CUSTOMER, LINE],
        get_data_usage,
    ),
    write("enable_roaming", "Allow a line to roam abroad.", &[CUSTOMER, LINE], |world, args| {
        set_roaming(world, args, true)
    }),
    write(
        "disable_roaming",
        "Stop a line from roaming abroad.",
        &[CUSTOMER, LINE],
        |world, args| set_roaming(world, args, false),
    ),
    TRANSFER,
    write(
        "refuel_data",
        "Add data to a line. The customer's next bill is charged at the plan's price per GB.",
        &[CUSTOMER, LINE, field("gb_amount", Type::Float).about("How many GB to add")],
        refuel_data,
    ),
    internal("get_available_plan_ids", &[], |world, _| {
        let plans = world.db["plans"].items().iter();
        Ok(Reply::Plain(Value::list(plans.map(|plan| plan["plan_id"].clone()))))
    }),
    internal(
        "set_data_usage",
        &[CUSTOMER, LINE, field("data_used_gb", Type::Float)],
        |world, args| {
            let (at, _) = target_line(world, args)?;
            change(world, "lines", at, "data_used_gb", args["data_used_gb"].clone());
            let (used, line) = (args.shown("data_used_gb"), args.shown("line_id"));
            Ok(format!("Data usage set to {used} GB for line {line}").into())
        },
    ),
    internal(
        "suspend_line_for_overdue_bill",
        &[CUSTOMER, LINE, field("new_bill_id", Type::Str), field("contract_ended", Type::Bool)],
        suspend_line_for_overdue_bill,
    ),
    internal(
        "assert_data_refueling_amount",
        &[CUSTOMER, LINE, field("expected_amount", Type::Float)],
        |world, args| {
            let line = target_line(world, args)?.1;
            let (refueled, expected) = (&line["data_refueling_gb"], &args["expected_amount"]);
            let difference = crate::python::subtract(refueled, expected)?;
            Ok(difference.as_f64().is_some_and(|difference| difference.abs() < 1e-6).into())
        },
    ),
    internal(
        "assert_line_status",
        &[CUSTOMER, LINE, field("expected_status", Type::Str)],
        |world, args| {
            Ok(target_line(world, args)?.1["status"].equals(&args["expected_status"]).into())
        },
    ),
    internal(
        "assert_overdue_bill_exists",
        &[CUSTOMER, field("overdue_bill_id", Type::Str)],
        |world, args| {
            let (customer, id) = (customer(world, args)?.1, &args["overdue_bill_id"]);
            if !holds(&customer["bill_ids"], id) {
                return raise(format!("Overdue bill {} not found", str_of(id)));
            }
            if record(&world.db, "bills", id)?.1["status"] != "Overdue" {
                return raise(format!("Overdue bill {} is not overdue", str_of(id)));
            }
            Ok(true.into())
        },
    ),
    internal("assert_no_overdue_bill", &[field("overdue_bill_id", Type::Str)], |world, args| {
        let bill = record(&world.db, "bills", &args["overdue_bill_id"]);
        Ok(bill.map_or(true, |(_, bill)| bill["status"] == "Paid").into())
    }),
];

/// A record by its id, and its place in its section.
pub(super) fn record<'a>(
    db: &'a Value,
    section: &str,
    id: &Value,
) -> Result<(usize, &'a Value), Failure> {
    let (key, what) = match section {
        "customers" => ("customer_id", "Customer"),
        "lines" => ("line_id", "Line"),
        "bills" => ("bill_id", "Bill"),
        "devices" => ("device_id", "Device"),
        _ => ("plan_id", "Plan"),
    };
    let found = db[section].items().iter().enumerate().find(|(_, record)| record[key].equals(id));
    found.map_or_else(|| raise(format!("{what} with ID {} not found", str_of(id))), Ok)
}

/// The customer whose contact number this is, or who has a line with it.
pub(super) fn customer_by_phone<'a>(db: &'a Value, number: &Value) -> Result<&'a Value, Failure> {
    for customer in db["customers"].items() {
        if customer["phone_number"].equals(number) {
            return Ok(customer);
        }
        for line in customer["line_ids"].items() {
            if record(db, "lines", line)?.1["phone_number"].equals(number) {
                return Ok(customer);
            }
        }
    }
    raise(format!("Customer with phone number {} not found", str_of(number)))
}

/// The line with this number.
pub(super) fn line_by_phone<'a>(db: &'a Value, number: &Value) -> Result<&'a Value, Failure> {
    let line = db["lines"].items().iter().find(|line| line["phone_number"].equals(number));
    match line {
        Some(line) => Ok(line),
        None => raise(format!("Line with phone number {} not found", str_of(number))),
    }
}

/// The customer's bills that wait for payment.
pub(super) fn awaiting_payment<'a>(
    db: &'a Value,
    customer: &Value,
) -> Result<Vec<&'a Value>, Failure> {
    let mut bills = bills_of(db, customer)?;
    bills.retain(|(_, bill)| bill["status"] == "Awaiting Payment");
    Ok(bills.into_iter().map(|(_, bill)| bill).collect())
}

/// Sets a bill's status.
pub(super) fn set_bill(world: &mut World, id: &Value, status: &str) -> Result<(), Failure> {
    let (at, _) = record(&world.db, "bills", id)?;
    change(world, "bills", at, "status", status);
    Ok(())
}

fn get_customer_by_name(world: &mut World, args: &Args) -> Result<Reply, Failure> {
    let customers = world.db["customers"].items();
    let name = match &args["full_name"] {
        Value::Str(name) => name.to_lowercase(),
        _ if customers.is_empty() => String::new(),
        other => return no_attribute(other, "lower"),
    };
    let matching = customers.iter().filter(|customer| {
        let full_name = customer["full_name"].as_str().unwrap_or_default();
        full_name.to_lowercase() == name && customer["date_of_birth"].equals(&args["dob"])
    });
    Ok(Reply::List(matching.map(shown).collect()))
}

fn get_details_by_id(world: &mut World, args: &Args) -> Result<Reply, Failure> {
    let id = &args["id"];
    let Value::Str(text) = id else { return no_attribute(id, "startswith") };
    let section = match text.chars().next() {
        Some('L') => "lines",
        Some('D') => "devices",
        Some('B') => "bills",
        Some('C') => "customers",
        Some('P') => "plans",
        _ => return raise(format!("Unknown ID format or type: {text}")),
    };
    Ok(shown(record(&world.db, section, id)?.1))
}

fn suspend_line(world: &mut World, args: &Args) -> Result<Reply, Failure> {
    let (at, line) = target_line(world, args)?;
    if line["status"] != "Active" {
        return raise("Line must be active to suspend");
    }
    change(world, "lines", at, "status", "Suspended");
    change(world, "lines", at, "suspension_start_date", TODAY);
    let message = "Line suspended successfully. $5/month holding fee will apply.";
    Ok(Reply::Dict(vec![("message", message.into()), ("line", shown(&world.db["lines"][at]))]))
}

fn resume_line(world: &mut World, args: &Args) -> Result<Reply, Failure> {
    let (at, line) = target_line(world, args)?;
    if line["status"] != "Suspended" && line["status"] != "Pending Activation" {
        return raise("Line must be suspended to resume");
    }
    change(world, "lines", at, "status", "Active");
    change(world, "lines", at, "suspension_start_date", Value::None);
    let message = "Line resumed successfully";
    Ok(Reply::Dict(vec![("message", message.into()), ("line", shown(&world.db["lines"][at]))]))
}

fn get_bills_for_customer(world: &mut World, args: &Args) -> Result<Reply, Failure> {
    let customer = customer(world, args)?.1;
    let mut bills = bills_of(&world.db, customer)?;
    bills.sort_by(|(_, a), (_, b)| b["issue_date"].as_str().cmp(&a["issue_date"].as_str()));
    let limit = match &args["limit"] {
        Value::None => bills.len(),
        // A negative limit counts from the end.
        limit => match limit.as_i64() {
            Some(limit) if limit < 0 => bills
                .len()
                .saturating_sub(usize::try_from(limit.unsigned_abs()).unwrap_or(usize::MAX)),
            Some(limit) => usize::try_from(limit).unwrap_or(usize::MAX),
            None => {
                return raise("slice indices must be integers or None or have an __index__ method");
            }
        },
    };
    Ok(Reply::List(bills.iter().take(limit).map(|(_, bill)| shown(bill)).collect()))
}

fn send_payment_request(world: &mut World, args: &Args) -> Result<Reply, Failure> {
    let (customer, bill) = (customer(world, args)?.1, &args["bill_id"]);
    if !awaiting_payment(&world.db, customer)?.is_empty() {
        return raise("A bill is already awaiting payment for this customer");
    }
    if !holds(&customer["bill_ids"], bill) {
        let (bill, customer) = (args.shown("bill_id"), args.shown("customer_id"));
        return raise(format!("Bill {bill} not found for customer {customer}"));
    }
    set_bill(world, bill, "Awaiting Payment")?;
    Ok(format!("Payment request sent to the customer for bill {}", str_of(bill)).into())
}

fn get_data_usage(world: &mut World, args: &Args) -> Result<Reply, Failure> {
    let line = target_line(world, args)?.1;
    let plan = record(&world.db, "plans", &line["plan_id"])?.1;
    Ok(Reply::Plain(Value::dict([
        ("line_id", args["line_id"].clone()),
        ("data_used_gb", line["data_used_gb"].clone()),
        ("data_limit_gb", plan["data_limit_gb"].clone()),
        ("data_refueling_gb", line["data_refueling_gb"].clone()),
        ("cycle_end_date", "2025-02-28".into()),
    ])))
}

fn set_roaming(world: &mut World, args: &Args, on: bool) -> Result<Reply, Failure> {
    let (at, line) = target_line(world, args)?;
    let state = if on { "enabled" } else { "disabled" };
    if line["roaming_enabled"].truthy() == on {
        return Ok(format!("Roaming was already {state}").into());
    }
    change(world, "lines", at, "roaming_enabled", on);
    Ok(format!("Roaming {state} successfully").into())
}

fn refuel_data(world: &mut World, args: &Args) -> Result<Reply, Failure> {
    let (at, line) = target_line(world, args)?;
    let amount = &args["gb_amount"];
    if compare("<=", amount, &0.into())?.is_le() {
        return raise("Refuel amount must be positive");
    }
    let price =
        record(&world.db, "plans", &line["plan_id"])?.1["data_refueling_price_per_gb"].clone();
    let charge = multiply(amount, &price)?;
    let refueled = add(&line["data_refueling_gb"], amount)?;
    change(world, "lines", at, "data_refueling_gb", refueled.clone());
    let (gb, line) = (str_of(amount), args.shown("line_id"));
    let reason = format!("Data refueling: {gb} GB at ${}/GB", str_of(&price));
    charge_once(world, args, &charge, reason)?;
    let dollars = charge.as_f64().unwrap_or_default();
    let message = format!("Successfully added {gb} GB of data for line {line} for ${dollars:.2}");
    Ok(Reply::Plain(Value::dict([
        ("message", message.into()),
        ("new_data_refueling_gb", refueled),
        ("charge", charge),
    ])))
}

/// Adds a charge to the customer's next bill; there is one from now on.
fn charge_once(
    world: &mut World,
    args: &Args,
    amount: &Value,
    description: String,
) -> Result<(), Failure> {
    let (owner, customer) = customer(world, args)?;
    let bills = bills_of(&world.db, customer)?;
    let draft = bills.iter().find(|(_, bill)| bill["status"] == "Draft").map(|(at, _)| *at);
    let at = match draft {
        Some(at) => at,
        None => {
            // The reference draws the id at random; one that is known can be replayed.
            let id = "B00000000";
            let bill = BILL.make([
                ("bill_id", id.into()),
                ("customer_id", args["customer_id"].clone()),
                ("period_start", "2025-03-01".into()),
                ("period_end", "2025-03-31".into()),
                ("issue_date", "2025-03-01".into()),
                ("total_due", 0.into()),
                ("due_date", "2025-03-15".into()),
            ])?;
            add_bill(world, owner, id.into(), bill)
        }
    };
    let credit = compare("<", amount, &0.into())?.is_lt();
    let item = LINE_ITEM.make([
        ("description", description.into()),
        ("amount", amount.clone()),
        ("date", TODAY.into()),
        ("item_type", if credit { "Credit" } else { "Charge" }.into()),
    ])?;
    let total = add(&world.db["bills"][at]["total_due"], amount)?;
    let bill = world.db.get_mut("bills").and_then(|bills| bills.item_mut(at));
    if let Some(bill) = bill {
        if let Some(items) = bill.get_mut("line_items") {
            items.push(item);
        }
        bill.set("total_due", total);
    }
    Ok(())
}

fn suspend_line_for_overdue_bill(world: &mut World, args: &Args) -> Result<Reply, Failure> {
    let (at, line) = record(&world.db, "lines", &args["line_id"])?;
    if line["status"] != "Active" {
        return raise("Line must be active to suspend for unpaid bill");
    }
    let amount = record(&world.db, "plans", &line["plan_id"])?.1["price_per_month"].clone();
    if compare("<=", &amount, &0.into())?.is_le() {
        return raise("Amount must be positive for overdue bill");
    }
    let (owner, customer) = customer(world, args)?;
    if bills_of(&world.db, customer)?.iter().any(|(_, bill)| bill["status"] == "Overdue") {
        return raise("Customer already has an overdue bill");
    }
    let last_month_ends = "2025-01-31";
    let item = LINE_ITEM.make([
        ("description", format!("Charge for line {}", str_of(&line["line_id"])).into()),
        ("amount", amount.clone()),
        ("date", TODAY.into()),
        ("item_type", "Charge".into()),
    ])?;
    let bill = BILL.make([
        ("bill_id", args["new_bill_id"].clone()),
        ("customer_id", args["customer_id"].clone()),
        ("period_start", "2025-01-01".into()),
        ("period_end", last_month_ends.into()),
        ("issue_date", "2025-01-01".into()),
        ("total_due", amount),
        ("due_date", "2025-01-15".into()),
        ("line_items", Value::list([item])),
        ("status", "Overdue".into()),
    ])?;
    add_bill(world, owner, args["new_bill_id"].clone(), bill);
    change(world, "lines", at, "status", "Suspended");
    change(world, "lines", at, "suspension_start_date", TODAY);
    if args["contract_ended"].truthy() {
        change(world, "lines", at, "contract_end_date", last_month_ends);
    }
    let (line, bill) = (args.shown("line_id"), args.shown("new_bill_id"));
    let ended = args.shown("contract_ended");
    Ok(format!("Line {line} suspended for unpaid bill {bill}. Contract ended: {ended}").into())
}

/// Adds a bill to all bills and to its owner's; returns its place.
fn add_bill(world: &mut World, owner: usize, id: Value, bill: Value) -> usize {
    let at = world.db["bills"].items().len();
    if let Some(bills) = world.db.get_mut("bills") {
        bills.push(bill);
    }
    let customer = world.db.get_mut("customers").and_then(|customers| customers.item_mut(owner));
    if let Some(ids) = customer.and_then(|customer| customer.get_mut("bill_ids")) {
        ids.push(id);
    }
    at
}

fn customer<'a>(world: &'a World, args: &Args) -> Result<(usize, &'a Value), Failure> {
    record(&world.db, "customers", &args["customer_id"])
}

/// The line of the arguments, which must be the customer's.
fn target_line<'a>(world: &'a World, args: &Args) -> Result<(usize, &'a Value), Failure> {
    if !holds(&customer(world, args)?.1["line_ids"], &args["line_id"]) {
        let (line, customer) = (args.shown("line_id"), args.shown("customer_id"));
        return raise(format!("Line {line} not found for customer {customer}"));
    }
    record(&world.db, "lines", &args["line_id"])
}

fn bills_of<'a>(db: &'a Value, customer: &Value) -> Result<Vec<(usize, &'a Value)>, Failure> {
    customer["bill_ids"].items().iter().map(|id| record(db, "bills", id)).collect()
}

fn holds(list: &Value, item: &Value) -> bool {
    list.items().iter().any(|held| held.equals(item))
}

fn change(
    world: &mut World,
    section: &str,
    at: usize,
    field: &'static str,
    value: impl Into<Value>,
) {
    if let Some(record) = world.db.get_mut(section).and_then(|records| records.item_mut(at)) {
        record.set(field, value);
    }
}

fn shown(record: &Value) -> Reply {
    Reply::Model(record.clone())
}
