//! Changing orders and addresses.

use super::{
    lookup::{order, payment_method, user, variant},
    shapes::{ORDER_PAYMENT, USER_ADDRESS},
};
use crate::{
    Args, Failure, Reply, Value, World,
    domains::common::{count, elements, sorted},
    python::{self, add, compare, subtract},
    raise,
};

pub(super) fn cancel(world: &mut World, args: &Args) -> Result<Reply, Failure> {
    let held = order(world, &args["order_id"])?.clone();
    if held["status"] != "pending" {
        return raise("Non-pending order cannot be cancelled");
    }
    let reason = &args["reason"];
    if reason != "no longer needed" && reason != "ordered by mistake" {
        return raise("Invalid reason");
    }
    let mut refunds = Vec::new();
    for payment in held["payment_history"].items() {
        refunds.push(transaction("refund", &payment["amount"], &payment["payment_method_id"])?);
        user(world, &held["user_id"])?;
        let method = &payment["payment_method_id"];
        move_money(world, &held["user_id"], method, &payment["amount"], add)?;
    }
    change_order(world, args, |order| {
        order.set("status", "cancelled");
        order.set("cancel_reason", reason);
        append_payments(order, refunds);
    })
}

pub(super) fn exchange(world: &mut World, args: &Args) -> Result<Reply, Failure> {
    let held = order(world, &args["order_id"])?.clone();
    if held["status"] != "delivered" {
        return raise("Non-delivered order cannot be exchanged");
    }
    check_items(&held, &args["item_ids"], |id| format!("Number of {id} not found."))?;
    let (old, new) = (elements(&args["item_ids"])?, elements(&args["new_item_ids"])?);
    if old.len() != new.len() {
        return raise("The number of items to be exchanged should match.");
    }
    let mut difference = Value::Int(0);
    for (id, new_id) in old.iter().zip(&new) {
        let (item, variant) = replacement(world, &held, id, new_id)?;
        difference = add(&difference, &subtract(&variant["price"], &item["price"])?)?;
    }
    if let Value::Float(number) = difference {
        difference = python::round(number, 2).into();
    }
    let method = payment_method(world, &held["user_id"], &args["payment_method_id"])?;
    if lacks(method, &difference)? {
        return raise("Insufficient gift card balance to pay for the price difference");
    }
    let (items, new_items) = (sorted(&args["item_ids"])?, sorted(&args["new_item_ids"]));
    // The status changes before the new items are sorted; only lists of mixed types tell.
    change_order(world, args, |order| {
        order.set("status", "exchange requested");
        order.set("exchange_items", items);
    })?;
    let new_items = new_items?;
    change_order(world, args, |order| {
        order.set("exchange_new_items", new_items);
        order.set("exchange_payment_method_id", &args["payment_method_id"]);
        order.set("exchange_price_difference", difference);
    })
}

pub(super) fn order_address(world: &mut World, args: &Args) -> Result<Reply, Failure> {
    if !is_pending(order(world, &args["order_id"])?) {
        return raise("Non-pending order cannot be modified");
    }
    let address = address(args)?;
    change_order(world, args, |order| order.set("address", address))
}

pub(super) fn user_address(world: &mut World, args: &Args) -> Result<Reply, Failure> {
    user(world, &args["user_id"])?;
    let address = address(args)?;
    let id = args.shown("user_id");
    let Some(user) = world.db.at_mut(&["users", &id]) else { return raise("User not found") };
    user.set("address", address);
    Ok(Reply::Model(user.clone()))
}

pub(super) fn order_items(world: &mut World, args: &Args) -> Result<Reply, Failure> {
    let held = order(world, &args["order_id"])?.clone();
    if held["status"] != "pending" {
        return raise("Non-pending order cannot be modified");
    }
    check_items(&held, &args["item_ids"], |id| format!("{id} not found"))?;
    let (old, new) = (elements(&args["item_ids"])?, elements(&args["new_item_ids"])?);
    if old.len() != new.len() {
        return raise("The number of items to be exchanged should match");
    }
    let mut difference = Value::Int(0);
    let mut last = Value::None;
    for (id, new_id) in old.iter().zip(&new) {
        if id.equals(new_id) {
            return raise("The new item id should be different from the old item id");
        }
        let (item, variant) = replacement(world, &held, id, new_id)?;
        difference = add(&difference, &subtract(&variant["price"], &item["price"])?)?;
        last = variant;
    }
    let method = payment_method(world, &held["user_id"], &args["payment_method_id"])?;
    if lacks(method, &difference)? {
        return raise("Insufficient gift card balance to pay for the new item");
    }
    let is_paid = compare(">", &difference, &0.into())?.is_gt();
    let amount = if compare("<", &difference, &0.into())?.is_lt() {
        python::negate(&difference)?
    } else {
        difference.clone()
    };
    let kind = if is_paid { "payment" } else { "refund" };
    let payment = transaction(kind, &amount, &args["payment_method_id"])?;
    change_order(world, args, |order| append_payments(order, vec![payment]))?;
    move_money(world, &held["user_id"], &args["payment_method_id"], &difference, subtract)?;
    for (id, new_id) in old.iter().zip(&new) {
        let mut replaced = false;
        change_order(world, args, |order| {
            let Some(items) = order.get_mut("items") else { return };
            if let Some(item) = items.items_mut().iter_mut().find(|i| i["item_id"].equals(id)) {
                item.set("item_id", new_id);
                // The reference gives every item the last one's price and options.
                item.set("price", &last["price"]);
                item.set("options", &last["options"]);
                replaced = true;
            }
        })?;
        if !replaced {
            return raise(format!("Item {} not found", python::str_of(id)));
        }
    }
    change_order(world, args, |order| order.set("status", "pending (item modified)"))
}

pub(super) fn order_payment(world: &mut World, args: &Args) -> Result<Reply, Failure> {
    let held = order(world, &args["order_id"])?.clone();
    if !is_pending(&held) {
        return raise("Non-pending order cannot be modified");
    }
    let (user_id, method_id) = (&held["user_id"], &args["payment_method_id"]);
    let method = payment_method(world, user_id, method_id)?;
    let [paid] = held["payment_history"].items() else {
        return raise("There should be exactly one payment for a pending order");
    };
    if paid["transaction_type"] != "payment" {
        return raise("There should be exactly one payment for a pending order");
    }
    let old_method_id = &paid["payment_method_id"];
    if old_method_id.equals(method_id) {
        return raise("The new payment method should be different from the current one");
    }
    let amount = &paid["amount"];
    if lacks(method, amount)? {
        return raise("Insufficient gift card balance to pay for the order");
    }
    let payments = vec![
        transaction("payment", amount, method_id)?,
        transaction("refund", amount, old_method_id)?,
    ];
    change_order(world, args, |order| append_payments(order, payments))?;
    move_money(world, user_id, method_id, amount, subtract)?;
    move_money(world, user_id, old_method_id, amount, add)?;
    order(world, &args["order_id"]).map(|order| Reply::Model(order.clone()))
}

pub(super) fn return_items(world: &mut World, args: &Args) -> Result<Reply, Failure> {
    let held = order(world, &args["order_id"])?.clone();
    if held["status"] != "delivered" {
        return raise("Non-delivered order cannot be returned");
    }
    let method_id = &args["payment_method_id"];
    let method = payment_method(world, &user(world, &held["user_id"])?["user_id"], method_id)?;
    if method["source"] != "gift_card" {
        match held["payment_history"].items().first() {
            None => return raise("list index out of range"),
            Some(paid) if !paid["payment_method_id"].equals(method_id) => {
                return raise("Payment method should be the original payment method");
            }
            Some(_) => {}
        }
    }
    check_items(&held, &args["item_ids"], |_| "Some item not found".to_owned())?;
    let items = sorted(&args["item_ids"]);
    change_order(world, args, |order| order.set("status", "return requested"))?;
    let items = items?;
    change_order(world, args, |order| {
        order.set("return_items", items);
        order.set("return_payment_method_id", method_id);
    })
}

fn is_pending(order: &Value) -> bool {
    order["status"].as_str().is_some_and(|status| status.contains("pending"))
}

/// Whether a gift card holds less than an amount. Other payment methods lack nothing.
fn lacks(method: &Value, amount: &Value) -> Result<bool, Failure> {
    Ok(method["source"] == "gift_card" && compare("<", &method["balance"], amount)?.is_lt())
}

/// Each item must be in the order at least as often as in the list.
fn check_items(
    order: &Value,
    ids: &Value,
    problem: impl Fn(String) -> String,
) -> Result<(), Failure> {
    let ordered = Value::list(order["items"].items().iter().map(|item| item["item_id"].clone()));
    for id in elements(ids)? {
        if count(ids, &id)? > count(&ordered, &id)? {
            return raise(problem(python::str_of(&id)));
        }
    }
    Ok(())
}

/// An item of an order, and the variant that takes its place.
fn replacement(
    world: &World,
    order: &Value,
    id: &Value,
    new_id: &Value,
) -> Result<(Value, Value), Failure> {
    let item = order["items"].items().iter().find(|item| item["item_id"].equals(id));
    let Some(item) = item else {
        return raise(format!("Item {} not found", python::str_of(id)));
    };
    let variant = variant(world, &item["product_id"], new_id)?;
    if !variant["available"].truthy() {
        return raise(format!("New item {} not found or available", python::str_of(new_id)));
    }
    Ok((item.clone(), variant.clone()))
}

fn transaction(kind: &str, amount: &Value, method: &Value) -> Result<Value, Failure> {
    ORDER_PAYMENT.make([
        ("transaction_type", kind.into()),
        ("amount", amount.clone()),
        ("payment_method_id", method.clone()),
    ])
}

/// Adds to or takes from a gift card, and rounds. Other payment methods hold no money.
fn move_money(
    world: &mut World,
    user_id: &Value,
    method_id: &Value,
    amount: &Value,
    operation: fn(&Value, &Value) -> Result<Value, Failure>,
) -> Result<(), Failure> {
    let method = payment_method(world, user_id, method_id)?;
    if method["source"] != "gift_card" {
        return Ok(());
    }
    let balance = operation(&method["balance"], amount)?;
    let balance = balance.as_f64().map_or(balance, |number| python::round(number, 2).into());
    let (user, method) = (python::str_of(user_id), python::str_of(method_id));
    if let Some(card) = world.db.at_mut(&["users", &user, "payment_methods", &method]) {
        card.set("balance", balance);
    }
    Ok(())
}

fn append_payments(order: &mut Value, payments: Vec<Value>) {
    if let Some(history) = order.get_mut("payment_history") {
        payments.into_iter().for_each(|payment| history.push(payment));
    }
}

fn address(args: &Args) -> Result<Value, Failure> {
    USER_ADDRESS.make(
        ["address1", "address2", "city", "state", "country", "zip"]
            .map(|name| (name, args[name].clone())),
    )
}

fn change_order(
    world: &mut World,
    args: &Args,
    change: impl FnOnce(&mut Value),
) -> Result<Reply, Failure> {
    let id = args.shown("order_id");
    let Some(order) = world.db.at_mut(&["orders", &id]) else { return raise("Order not found") };
    change(order);
    Ok(Reply::Model(order.clone()))
}
