//! The bank's books: tables of records, how they are searched and written, and the ids of records.

use super::json::{self, Numbers};
use crate::{
    Args, Failure, Key, Reply, Value, World,
    python::{repr, sha256, str_of, type_name},
    raise,
    schema::{Default, Field, Model, Type, field},
};

/// Today, for ever.
pub(super) const TODAY: &str = "11/14/2025";

/// Answers with a text.
macro_rules! say {
    ($($text:tt)*) => { return Ok(format!($($text)*).into()) };
}
pub(super) use say;

/// What a tool answers.
pub(super) type Answer = Result<Reply, Failure>;

pub(super) static TRANSACTIONAL_DB: Model = Model::strict(
    "TransactionalDB",
    &[
        table("users"),
        table("accounts"),
        table("debit_cards"),
        table("referrals"),
        table("credit_card_applications"),
        table("user_discoverable_tools"),
        table("user_discoverable_tool_calls"),
        table("verification_history"),
        table("credit_card_transaction_history"),
        table("cash_back_disputes"),
        table("bank_account_transaction_history"),
        table("credit_card_accounts"),
        table("agent_discoverable_tools"),
        table("task_config"),
        table("human_transfer_requests"),
        table("transaction_disputes"),
        table("credit_card_orders"),
        table("debit_card_orders"),
        table("credit_card_closure_reasons"),
        table("credit_card_account_flags"),
        table("credit_limit_increase_requests"),
        table("payment_history"),
        table("debit_card_disputes"),
    ],
);

const fn table(name: &'static str) -> Field {
    field(name, Type::Model(&TABLE)).or(Default::Model)
}

static TABLE: Model = Model::new(
    "DatabaseTable",
    &[
        field("data", Type::Dict(&Type::Object)).or(Default::Dict),
        field("notes", Type::Str).or(Default::Str("")),
    ],
);

/// The records of a table with their ids.
pub(super) fn records<'a>(world: &'a World, table: &str) -> &'a [(Key, Value)] {
    world.db[table]["data"].entries()
}

/// A record by its id, which may be anything.
pub(super) fn find(world: &World, table: &str, id: &Value) -> Result<Option<Value>, Failure> {
    match id {
        Value::Str(id) => Ok(world.db[table]["data"].entry(id).cloned()),
        Value::List(_) | Value::Dict(_) => raise(format!("unhashable type: '{}'", type_name(id))),
        _ => Ok(None),
    }
}

/// Adds a record, unless there is one under the id.
pub(super) fn add(world: &mut World, table: &str, id: &str, record: Value) -> bool {
    let is_new = world.db[table]["data"].entry(id).is_none();
    is_new && put(world, table, id, record)
}

/// Puts a record in place of any under the id.
pub(super) fn put(world: &mut World, table: &str, id: &str, record: Value) -> bool {
    match world.db.at_mut(&[table, "data"]) {
        Some(records) => {
            records.set(id.to_owned(), record);
            true
        }
        None => false,
    }
}

/// Sets fields of a record.
pub(super) fn change<const N: usize>(
    world: &mut World,
    table: &str,
    id: &Value,
    fields: [(&'static str, Value); N],
) {
    let id = id.as_str().unwrap_or_default();
    if let Some(record) = world.db.at_mut(&[table, "data", id]) {
        for (field, value) in fields {
            record.set(field, value);
        }
    }
}

/// What a search for records with a value in a field says.
///
/// The reference writes the value into JSON as it comes: a quotation mark in it is an error.
pub(super) fn search(world: &World, table: &str, field: &str, wanted: &Value) -> String {
    let wanted = format!(r#"{{"{field}": "{}"}}"#, str_of(wanted));
    match json::parse(&wanted, Numbers::AsWritten) {
        Ok(wanted) => {
            let wanted = wanted.entries();
            let matching = records(world, table).iter().filter(|(_, record)| {
                wanted.iter().all(|(field, value)| record[&**field].equals(value))
            });
            listing(table, matching)
        }
        Err(error) => format!("Error: Invalid JSON: {error}"),
    }
}

/// What a search for everything says.
pub(super) fn search_all(world: &World, table: &str) -> String {
    listing(table, records(world, table).iter())
}

/// Records as a numbered list.
pub(super) fn listing<'a>(table: &str, records: impl Iterator<Item = &'a (Key, Value)>) -> String {
    let mut lines = Vec::new();
    let mut count = 0;
    for (id, record) in records {
        count += 1;
        lines.push(format!("{count}. Record ID: {id}"));
        let fields = record.entries().iter();
        lines.extend(fields.map(|(field, value)| format!("   {field}: {}", str_of(value))));
        lines.push(String::new());
    }
    if count == 0 {
        return format!("No records found in '{table}'.");
    }
    format!("Found {count} record(s) in '{table}':\n\n{}", lines.join("\n"))
}

/// A table's records of one account or one user.
pub(super) fn history(
    world: &World,
    args: &Args,
    table: &str,
    owner: &str,
    [tool, done, heading, nothing]: [&str; 4],
) -> Answer {
    if !args[owner].truthy() {
        say!("Error: Missing required parameter: {owner}");
    }
    let mut found = search(world, table, owner, &args[owner]);
    if is_nothing(&found) {
        found = format!("\n{nothing}");
    }
    let whose = args.shown(owner);
    say!("{done}\n\nExecuted: {tool}\n{heading} {whose}:\n{found}")
}

/// Whether a search found nothing.
pub(super) fn is_nothing(found: &str) -> bool {
    found.contains("No records found")
}

/// The id that follows from what a record is about.
pub(super) fn id(seed: &str, length: usize) -> String {
    sha256(seed.as_bytes()).chars().take(length).collect()
}

/// `":".join(parts)`, which takes texts only.
pub(super) fn joined(parts: &[&Value]) -> Result<String, Failure> {
    for (at, part) in parts.iter().enumerate() {
        if part.as_str().is_none() {
            return raise(format!(
                "sequence item {at}: expected str instance, {} found",
                type_name(part)
            ));
        }
    }
    let parts: Vec<&str> = parts.iter().filter_map(|part| part.as_str()).collect();
    Ok(parts.join(":"))
}

/// `float(value)`; `None` where Python raises.
pub(super) fn number(value: &Value) -> Option<f64> {
    match value {
        Value::Str(text) => {
            let text = text.trim();
            let plain = text.strip_prefix(['+', '-']).unwrap_or(text).to_ascii_lowercase();
            let named = ["inf", "infinity", "nan"].contains(&plain.as_str());
            let numeric = plain.starts_with(|c: char| c.is_ascii_digit() || c == '.');
            if named || numeric { text.replace('_', "").parse().ok() } else { None }
        }
        other => other.as_f64(),
    }
}

/// `f"{value:.2f}"`.
pub(super) fn cents(value: &Value) -> Result<String, Failure> {
    match value.as_f64() {
        Some(number) => Ok(format!("{number:.2}")),
        None if matches!(value, Value::Str(_)) => {
            raise("Unknown format code 'f' for object of type 'str'")
        }
        None => {
            raise(format!("unsupported format string passed to {}.__format__", type_name(value)))
        }
    }
}

/// What an account holds: a number, or a text such as `$2,850.00`.
pub(super) fn balance(account: &Value) -> Result<f64, Failure> {
    let held = account.entry("current_holdings").or_else(|| account.entry("balance"));
    match held {
        Some(Value::Str(text)) => {
            let plain = text.replace(['$', ','], "");
            match number(&plain.as_str().into()) {
                Some(number) => Ok(number),
                None => raise(format!(
                    "could not convert string to float: {}",
                    repr(&plain.as_str().into())
                )),
            }
        }
        Some(other) => Ok(other.as_f64().unwrap_or(0.0)),
        None => Ok(0.0),
    }
}

/// `str(value)` without `$` and `,` as a number, 0 where it is none.
pub(super) fn amount_in(value: &Value) -> f64 {
    number(&str_of(value).replace(['$', ','], "").into()).unwrap_or(0.0)
}

/// The text that a method is called on; anything else has no such method.
pub(super) fn text<'a>(value: &'a Value, method: &str) -> Result<&'a str, Failure> {
    match value {
        Value::Str(text) => Ok(text),
        other => raise(format!("'{}' object has no attribute '{method}'", type_name(other))),
    }
}

/// Whether it is one of some texts.
pub(super) fn is_in(value: &Value, texts: &[&str]) -> bool {
    value.as_str().is_some_and(|text| texts.contains(&text))
}

/// Texts as Python shows a list of them.
pub(super) fn list(texts: &[&str]) -> String {
    repr(&Value::list(texts.iter().map(Value::str)))
}

/// `first_card` as `First Card`.
pub(super) fn titled(value: &Value) -> String {
    let text = str_of(value).replace('_', " ");
    let mut out = String::with_capacity(text.len());
    let mut inside = false;
    for letter in text.chars() {
        if inside {
            out.extend(letter.to_lowercase());
        } else {
            out.extend(letter.to_uppercase());
        }
        inside = letter.is_alphabetic();
    }
    out
}

/// How many days ago a day such as `11/08/2025` was; `None` where it is no such day.
pub(super) fn days_since(date: &str) -> Option<i64> {
    Some(day_number("11/14/2025")? - day_number(date)?)
}

/// Days on a scale that begins somewhere; `None` where it is no day.
pub(super) fn day_number(date: &str) -> Option<i64> {
    let mut parts = date.split('/');
    let (month, day, year) = (parts.next()?, parts.next()?, parts.next()?);
    let digits = |text: &str, most: usize| {
        let fits = (1..=most).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_digit());
        fits.then(|| text.parse::<i64>().ok()).flatten()
    };
    let (month, day) = (digits(month, 2)?, digits(day, 2)?);
    let year = digits(year, 4).filter(|_| year.len() == 4 && parts.next().is_none())?;
    let leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
    let length = match month {
        2 => 28 + i64::from(leap),
        4 | 6 | 9 | 11 => 30,
        1..=12 => 31,
        _ => return None,
    };
    if !(1..=length).contains(&day) {
        return None;
    }
    // Counted from March, leap days fall at the end of years.
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    Some(year * 365 + year / 4 - year / 100 + year / 400 + (month * 153 + 2) / 5 + day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_are_counted_over_months_and_leap_years() {
        assert_eq!(days_since("11/08/2025"), Some(6));
        assert_eq!(days_since("2/28/2024"), Some(625));
        assert_eq!(days_since("02/30/2024"), None);
        assert_eq!(days_since("2024-02-28"), None);
    }

    #[test]
    fn numbers_are_read_as_python_reads_them() {
        for (text, read) in
            [(" 12.5 ", Some(12.5)), ("1_000", Some(1000.0)), ("$5", None), ("", None)]
        {
            assert_eq!(number(&text.into()), read, "{text}");
        }
        assert_eq!(titled(&"goodwill_adjustment".into()), "Goodwill Adjustment");
    }
}
