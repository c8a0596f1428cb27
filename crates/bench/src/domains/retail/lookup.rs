//! Finding users, orders, products and items.

use crate::{
    Args, Dict, Failure, Reply, Value, World,
    domains::common::{lookup, no_attribute},
    python::{Layout, dumps},
    raise,
};

pub(super) fn order<'a>(world: &'a World, id: &Value) -> Result<&'a Value, Failure> {
    found(lookup(&world.db["orders"], id), "Order not found")
}

pub(super) fn user<'a>(world: &'a World, id: &Value) -> Result<&'a Value, Failure> {
    found(lookup(&world.db["users"], id), "User not found")
}

fn product<'a>(world: &'a World, id: &Value) -> Result<&'a Value, Failure> {
    found(lookup(&world.db["products"], id), "Product not found")
}

/// One variant of a product.
pub(super) fn variant<'a>(
    world: &'a World,
    product_id: &Value,
    id: &Value,
) -> Result<&'a Value, Failure> {
    found(lookup(&product(world, product_id)?["variants"], id), "Variant not found")
}

/// A payment method of a user.
pub(super) fn payment_method<'a>(
    world: &'a World,
    user_id: &Value,
    id: &Value,
) -> Result<&'a Value, Failure> {
    found(lookup(&user(world, user_id)?["payment_methods"], id), "Payment method not found")
}

pub(super) fn order_details(world: &mut World, args: &Args) -> Result<Reply, Failure> {
    Ok(Reply::Model(order(world, &args["order_id"])?.clone()))
}

pub(super) fn user_details(world: &mut World, args: &Args) -> Result<Reply, Failure> {
    Ok(Reply::Model(user(world, &args["user_id"])?.clone()))
}

pub(super) fn product_details(world: &mut World, args: &Args) -> Result<Reply, Failure> {
    Ok(Reply::Model(product(world, &args["product_id"])?.clone()))
}

pub(super) fn item_details(world: &mut World, args: &Args) -> Result<Reply, Failure> {
    let products = world.db["products"].entries().iter();
    let item =
        products.filter_map(|(_, product)| lookup(&product["variants"], &args["item_id"])).next();
    Ok(Reply::Model(found(item, "Item not found")?.clone()))
}

pub(super) fn product_types(world: &mut World, _: &Args) -> Result<Reply, Failure> {
    let products = world.db["products"].entries().iter();
    let ids: Dict = products
        .map(|(_, product)| {
            let name = product["name"].as_str().unwrap_or_default().to_owned();
            (name, product["product_id"].clone())
        })
        .collect();
    Ok(dumps(&ids.into(), Layout::Sorted).into())
}

pub(super) fn user_by_name(world: &mut World, args: &Args) -> Result<Reply, Failure> {
    let first_name = lower(&args["first_name"])?;
    for (id, user) in world.db["users"].entries() {
        if lower(&user["name"]["first_name"])? == first_name
            && lower(&user["name"]["last_name"])? == lower(&args["last_name"])?
            && user["address"]["zip"].equals(&args["zip"])
        {
            return Ok(Reply::Plain(id.into()));
        }
    }
    raise("User not found")
}

pub(super) fn user_by_email(world: &mut World, args: &Args) -> Result<Reply, Failure> {
    let email = lower(&args["email"])?;
    for (id, user) in world.db["users"].entries() {
        if lower(&user["email"])? == email {
            return Ok(Reply::Plain(id.into()));
        }
    }
    raise("User not found")
}

fn lower(value: &Value) -> Result<String, Failure> {
    match value {
        Value::Str(text) => Ok(text.to_lowercase()),
        other => no_attribute(other, "lower"),
    }
}

fn found<'a>(record: Option<&'a Value>, otherwise: &str) -> Result<&'a Value, Failure> {
    match record {
        Some(record) => Ok(record),
        None => raise(otherwise),
    }
}
