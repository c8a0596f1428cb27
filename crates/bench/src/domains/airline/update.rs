//! Changing a reservation.

use super::{reservation, reserved, seat_price, user};
use crate::{
    Args, Failure, Reply, Value, World,
    domains::{
        airline::shapes::{FLIGHT_INFO, PASSENGER, PAYMENT},
        common::{Records, lookup},
    },
    python::{self, add, compare, multiply, subtract},
    raise,
};

/// Changes the bags; each additional one that is not free costs 50.
pub(super) fn baggages(world: &mut World, args: &Args) -> Result<Reply, Failure> {
    let held = reservation(world, &args["reservation_id"])?.clone();
    let user_id = held["user_id"].clone();
    user(world, &user_id)?;
    let more = subtract(&args["nonfree_baggages"], &held["nonfree_baggages"])?;
    let more = if compare(">", &more, &0.into())?.is_gt() { more } else { 0.into() };
    let price = multiply(&50.into(), &more)?;
    let payment = pay(world, &user_id, &args["payment_id"], &price)?;
    change(world, args, |reservation| {
        append_payment(reservation, payment);
        reservation.set("total_baggages", &args["total_baggages"]);
        reservation.set("nonfree_baggages", &args["nonfree_baggages"]);
    })
}

/// Changes flights and cabin; the difference is paid or refunded.
pub(super) fn flights(world: &mut World, args: &Args) -> Result<Reply, Failure> {
    let infos = Records::read(&args["flights"], &FLIGHT_INFO)?;
    let held = reservation(world, &args["reservation_id"])?.clone();
    let user_id = held["user_id"].clone();
    user(world, &user_id)?;
    let cabin = &args["cabin"];
    let travellers = held["passengers"].items().len();
    let mut price = Value::Int(0);
    let mut flights = Vec::new();
    for info in infos.with("flight_number")? {
        let kept = held["flights"].items().iter().find(|flight| {
            flight["flight_number"].equals(&info["flight_number"])
                && flight["date"].equals(&info["date"])
                && cabin.equals(&held["cabin"])
        });
        let flight = match kept {
            Some(flight) => flight.clone(),
            None => {
                let seat = seat_price(world, info, cabin, travellers)?;
                reserved(world, info, seat)?
            }
        };
        price = add(&price, &multiply(&flight["price"], &travellers.into())?)?;
        flights.push(flight);
    }
    let mut paid = Value::Int(0);
    for flight in held["flights"].items() {
        paid = add(&paid, &flight["price"])?;
    }
    price = subtract(&price, &multiply(&paid, &travellers.into())?)?;
    let payment = pay(world, &user_id, &args["payment_id"], &price)?;
    change(world, args, |reservation| {
        append_payment(reservation, payment);
        reservation.set("flights", flights);
        reservation.set("cabin", cabin);
    })
}

/// Changes who travels; as many as before.
pub(super) fn passengers(world: &mut World, args: &Args) -> Result<Reply, Failure> {
    let passengers = Records::read(&args["passengers"], &PASSENGER)?;
    let held = reservation(world, &args["reservation_id"])?;
    if passengers.items.len() != held["passengers"].items().len() {
        return raise("Number of passengers does not match");
    }
    change(world, args, |reservation| reservation.set("passengers", &passengers.given))
}

/// Takes a price from a payment method; a negative one is a refund. Nothing is due at 0.
fn pay(
    world: &mut World,
    user_id: &Value,
    payment_id: &Value,
    price: &Value,
) -> Result<Option<Value>, Failure> {
    let user_id = python::str_of(user_id);
    let methods = world.db.at(&["users", &user_id, "payment_methods"]);
    let Some(method) = methods.and_then(|methods| lookup(methods, payment_id)) else {
        return raise("Payment method not found");
    };
    if method["source"] == "certificate" {
        return raise("Certificate cannot be used to update reservation");
    }
    if method["source"] == "gift_card" {
        if compare("<", &method["amount"], price)?.is_lt() {
            return raise("Gift card balance is not enough");
        }
        let rest = subtract(&method["amount"], price)?;
        let place = ["users", &user_id, "payment_methods", &python::str_of(payment_id)];
        if let Some(method) = world.db.at_mut(&place) {
            method.set("amount", rest);
        }
    }
    if price.equals(&0.into()) {
        return Ok(None);
    }
    PAYMENT.make([("payment_id", payment_id.clone()), ("amount", price.clone())]).map(Some)
}

fn append_payment(reservation: &mut Value, payment: Option<Value>) {
    if let (Some(payment), Some(history)) = (payment, reservation.get_mut("payment_history")) {
        history.push(payment);
    }
}

fn change(
    world: &mut World,
    args: &Args,
    change: impl FnOnce(&mut Value),
) -> Result<Reply, Failure> {
    let id = args.shown("reservation_id");
    let Some(reservation) = world.db.at_mut(&["reservations", &id]) else {
        return raise(format!("Reservation {id} not found"));
    };
    change(reservation);
    Ok(Reply::Model(reservation.clone()))
}
