//! `airline`: flights, users and reservations.

mod search;
mod shapes;
mod update;

use crate::{
    Args, DataDir, DataError, Domain, Failure, Reply, TaskSet, Tool, Toolkit, Value, World,
    domains::common::{CALCULATE, Records, TRANSFER, lookup},
    python::{self, add, compare, multiply, subtract},
    raise,
    schema::{Field, Type, field},
    toolkit::{read, write},
};
use shapes::{
    CABIN, CERTIFICATE, FLIGHT_DB, FLIGHT_INFO, INSURANCE, PASSENGER, PAYMENT, RESERVATION,
    RESERVATION_FLIGHT, TRIP,
};

/// Loads the domain.
pub(super) fn load(data: &DataDir, _variant: Option<&str>) -> Result<Domain, DataError> {
    let db = data.database("airline", "db.json", &FLIGHT_DB)?;
    let policy = data.text("airline", "policy.md")?;
    Ok(Domain::new("airline", Toolkit::new("AirlineTools", TOOLS), db, policy))
}

/// Loads its tasks.
pub(super) fn tasks(data: &DataDir) -> Result<TaskSet, DataError> {
    data.tasks("airline", "tasks.json")
}

/// When everything happens.
const NOW: &str = "2024-05-15T15:00:00";

static TOOLS: &[Tool] = &[
    write(
        "book_reservation",
        "Book a trip.",
        &[
            USER_ID,
            field("origin", Type::Str).about("Where the trip starts, as an IATA code like 'SFO'."),
            field("destination", Type::Str).about("Where it ends, as an IATA code like 'JFK'."),
            field("flight_type", TRIP).about("'one_way' or 'round_trip'."),
            field("cabin", CABIN).about("'basic_economy', 'economy' or 'business'."),
            FLIGHTS.about("The flights, one object each."),
            PASSENGERS,
            field("payment_methods", Type::List(&Type::Union(&[Type::Model(&PAYMENT), OBJECT])))
                .about("How it is paid, one object for each payment method."),
            field("total_baggages", Type::Int).about("How many bags are taken along."),
            field("nonfree_baggages", Type::Int).about("How many of the bags are paid for."),
            field("insurance", INSURANCE).about("Whether the trip is insured."),
        ],
        book_reservation,
    ),
    CALCULATE,
    write("cancel_reservation", "Cancel a reservation as a whole.", &[RESERVATION_ID], cancel),
    read("get_reservation_details", "Look a reservation up.", &[RESERVATION_ID], |world, args| {
        Ok(Reply::Model(reservation(world, &args["reservation_id"])?.clone()))
    }),
    read(
        "get_user_details",
        "Look a user up, with their reservations.",
        &[USER_ID],
        |world, args| Ok(Reply::Model(user(world, &args["user_id"])?.clone())),
    ),
    read("list_all_airports", "List the airports and their cities.", &[], |_, _| {
        Ok(search::airports())
    }),
    read(
        "search_direct_flight",
        "Find flights without a stop between two airports on a day.",
        &[ORIGIN, DESTINATION, DATE],
        search::direct,
    ),
    read(
        "search_onestop_flight",
        "Find connections with one stop between two airports on a day.",
        &[ORIGIN, DESTINATION, DATE],
        search::one_stop,
    ),
    write(
        "send_certificate",
        "Give a user a travel certificate. Take care: this gives money away.",
        &[USER_ID, field("amount", Type::Int).about("Its worth.")],
        send_certificate,
    ),
    TRANSFER,
    write(
        "update_reservation_baggages",
        "Change the bags of a reservation.",
        &[
            RESERVATION_ID,
            field("total_baggages", Type::Int).about("How many bags there are then in total."),
            field("nonfree_baggages", Type::Int).about("How many of them are paid for."),
            PAYMENT_ID,
        ],
        update::baggages,
    ),
    write(
        "update_reservation_flights",
        "Change the flights or the cabin of a reservation.",
        &[
            RESERVATION_ID,
            field("cabin", CABIN).about("The cabin after the change."),
            FLIGHTS.about(
                "All flights of the reservation after the change, one object each; those that \
                 stay the same too.",
            ),
            PAYMENT_ID,
        ],
        update::flights,
    ),
    write(
        "update_reservation_passengers",
        "Change who travels on a reservation.",
        &[RESERVATION_ID, PASSENGERS],
        update::passengers,
    ),
    read(
        "get_flight_status",
        "Look up how a flight is doing on a day.",
        &[
            field("flight_number", Type::Str).about("The flight."),
            field("date", Type::Str).about("The day."),
        ],
        |world, args| {
            let instance = instance(world, &args["flight_number"], &args["date"])?;
            Ok(Reply::Plain(instance["status"].clone()))
        },
    ),
];

const OBJECT: Type = Type::Object;
const USER_ID: Field = field("user_id", Type::Str).about("The user, such as 'sara_doe_496'.");
const RESERVATION_ID: Field =
    field("reservation_id", Type::Str).about("The reservation, such as 'ZFA04Y'.");
const PAYMENT_ID: Field = field("payment_id", Type::Str)
    .about("A payment method of the user's profile, such as 'credit_card_7815826'.");
const ORIGIN: Field = field("origin", Type::Str).about("The airport to leave from, like 'JFK'.");
const DESTINATION: Field =
    field("destination", Type::Str).about("The airport to go to, like 'LAX'.");
const DATE: Field = field("date", Type::Str).about("The day, as YYYY-MM-DD.");
const FLIGHT_INFOS: Type = Type::List(&Type::Union(&[Type::Model(&FLIGHT_INFO), OBJECT]));
const FLIGHTS: Field = field("flights", FLIGHT_INFOS);
const PASSENGER_LIST: Type = Type::List(&Type::Union(&[Type::Model(&PASSENGER), OBJECT]));
const PASSENGERS: Field =
    field("passengers", PASSENGER_LIST).about("Who travels, one object each.");

fn user<'a>(world: &'a World, id: &Value) -> Result<&'a Value, Failure> {
    found(lookup(&world.db["users"], id), "User", id)
}

fn reservation<'a>(world: &'a World, id: &Value) -> Result<&'a Value, Failure> {
    found(lookup(&world.db["reservations"], id), "Reservation", id)
}

fn flight<'a>(world: &'a World, number: &Value) -> Result<&'a Value, Failure> {
    found(lookup(&world.db["flights"], number), "Flight", number)
}

/// A flight on a day.
fn instance<'a>(world: &'a World, number: &Value, date: &Value) -> Result<&'a Value, Failure> {
    match lookup(&flight(world, number)?["dates"], date) {
        Some(instance) => Ok(instance),
        None => raise(format!(
            "Flight {} not found on date {}",
            python::str_of(number),
            python::str_of(date)
        )),
    }
}

fn found<'a>(record: Option<&'a Value>, what: &str, id: &Value) -> Result<&'a Value, Failure> {
    match record {
        Some(record) => Ok(record),
        None => raise(format!("{what} {} not found", python::str_of(id))),
    }
}

/// A seat's price on a flight that is open for booking and has enough of them.
fn seat_price(
    world: &World,
    info: &Value,
    cabin: &Value,
    passengers: usize,
) -> Result<Value, Failure> {
    let number = &info["flight_number"];
    let instance = instance(world, number, &info["date"])?;
    if instance["status"] != "available" {
        return raise(format!(
            "Flight {} not available on date {}",
            python::str_of(number),
            python::str_of(&info["date"])
        ));
    }
    let in_cabin = |seats: &Value| match lookup(seats, cabin) {
        Some(seats) => Ok(seats.clone()),
        // Python's `KeyError` shows the key.
        None => raise(python::repr(cabin)),
    };
    let seats = in_cabin(&instance["available_seats"])?;
    if compare("<", &seats, &passengers.into())?.is_lt() {
        return raise(format!("Not enough seats on flight {}", python::str_of(number)));
    }
    in_cabin(&instance["prices"])
}

/// A flight as a reservation holds it.
fn reserved(world: &World, info: &Value, price: Value) -> Result<Value, Failure> {
    let flight = flight(world, &info["flight_number"])?;
    RESERVATION_FLIGHT.make([
        ("flight_number", info["flight_number"].clone()),
        ("origin", flight["origin"].clone()),
        ("destination", flight["destination"].clone()),
        ("date", info["date"].clone()),
        ("price", price),
    ])
}

fn book_reservation(world: &mut World, args: &Args) -> Result<Reply, Failure> {
    let flights = Records::read(&args["flights"], &FLIGHT_INFO)?;
    let passengers = Records::read(&args["passengers"], &PASSENGER)?;
    let payments = Records::read(&args["payment_methods"], &PAYMENT)?;
    let user_id = &args["user_id"];
    user(world, user_id)?;
    let id = ["HATHAT", "HATHAU", "HATHAV"]
        .into_iter()
        .find(|id| world.db["reservations"].entry(id).is_none());
    let Some(id) = id else { return raise("Too many reservations") };
    let mut reservation = RESERVATION.make([
        ("reservation_id", id.into()),
        ("user_id", user_id.clone()),
        ("origin", args["origin"].clone()),
        ("destination", args["destination"].clone()),
        ("flight_type", args["flight_type"].clone()),
        ("cabin", args["cabin"].clone()),
        ("flights", Value::list([])),
        ("passengers", passengers.given.clone()),
        ("payment_history", payments.given.clone()),
        ("created_at", NOW.into()),
        ("total_baggages", args["total_baggages"].clone()),
        ("nonfree_baggages", args["nonfree_baggages"].clone()),
        ("insurance", args["insurance"].clone()),
    ])?;

    let travellers = passengers.items.len();
    let mut price = Value::Int(0);
    for info in flights.with("flight_number")? {
        let seat = seat_price(world, info, &args["cabin"], travellers)?;
        price = add(&price, &multiply(&seat, &travellers.into())?)?;
        let flight = reserved(world, info, seat)?;
        if let Some(flights) = reservation.get_mut("flights") {
            flights.push(flight);
        }
    }
    if args["insurance"] == "yes" {
        price = add(&price, &Value::from(30 * travellers))?;
    }
    price = add(&price, &multiply(&50.into(), &args["nonfree_baggages"])?)?;
    check_payments(world, user_id, &payments.items, &price)?;

    for payment in &payments.items {
        deduct(world, user_id, payment)?;
    }
    for info in &flights.items {
        take_seats(world, info, &args["cabin"], travellers)?;
    }
    if let Some(reservations) = world.db.get_mut("reservations") {
        reservations.set(id, reservation.clone());
    }
    if let Some(ids) = world.db.at_mut(&["users", &args.shown("user_id"), "reservations"]) {
        ids.push(id);
    }
    Ok(Reply::Model(reservation))
}

fn check_payments(
    world: &World,
    user_id: &Value,
    payments: &[Value],
    price: &Value,
) -> Result<(), Failure> {
    let methods = &user(world, user_id)?["payment_methods"];
    let mut paid = Value::Int(0);
    for payment in payments {
        let id = &payment["payment_id"];
        let Some(method) = lookup(methods, id) else {
            return raise(format!("Payment method {} not found", python::str_of(id)));
        };
        if method["source"] != "credit_card"
            && compare("<", &method["amount"], &payment["amount"])?.is_lt()
        {
            return raise(format!("Not enough balance in payment method {}", python::str_of(id)));
        }
        paid = add(&paid, &payment["amount"])?;
    }
    if !paid.equals(price) {
        return raise(format!(
            "Payment amount does not add up, total price is {}, but paid {}",
            python::str_of(price),
            python::str_of(&paid)
        ));
    }
    Ok(())
}

/// Takes a payment from its method: gift cards lose the amount, certificates are used up.
fn deduct(world: &mut World, user_id: &Value, payment: &Value) -> Result<(), Failure> {
    let user = python::str_of(user_id);
    let id = python::str_of(&payment["payment_id"]);
    let Some(methods) = world.db.at_mut(&["users", &user, "payment_methods"]) else {
        return raise(format!("User {user} not found"));
    };
    match methods.entry(&id) {
        // A certificate that pays twice is gone the second time.
        None => return raise(python::repr(&payment["payment_id"])),
        Some(method) if method["source"] == "gift_card" => {
            let rest = subtract(&method["amount"], &payment["amount"])?;
            if let Some(method) = methods.get_mut(&id) {
                method.set("amount", rest);
            }
        }
        Some(method) if method["source"] == "certificate" => {
            methods.remove(&id);
        }
        Some(_) => {}
    }
    Ok(())
}

fn take_seats(world: &mut World, info: &Value, cabin: &Value, count: usize) -> Result<(), Failure> {
    let (number, date) = (python::str_of(&info["flight_number"]), python::str_of(&info["date"]));
    let cabin = python::str_of(cabin);
    let place = ["flights", &number, "dates", &date, "available_seats", &cabin];
    if let Some(seats) = world.db.at_mut(&place) {
        *seats = subtract(seats, &count.into())?;
    }
    Ok(())
}

fn cancel(world: &mut World, args: &Args) -> Result<Reply, Failure> {
    reservation(world, &args["reservation_id"])?;
    let id = args.shown("reservation_id");
    let Some(reservation) = world.db.at_mut(&["reservations", &id]) else {
        return raise(format!("Reservation {id} not found"));
    };
    let mut refunds = Vec::new();
    for payment in reservation["payment_history"].items() {
        refunds.push(PAYMENT.make([
            ("payment_id", payment["payment_id"].clone()),
            ("amount", python::negate(&payment["amount"])?),
        ])?);
    }
    if let Some(history) = reservation.get_mut("payment_history") {
        refunds.into_iter().for_each(|refund| history.push(refund));
    }
    reservation.set("status", "cancelled");
    Ok(Reply::Model(reservation.clone()))
}

fn send_certificate(world: &mut World, args: &Args) -> Result<Reply, Failure> {
    user(world, &args["user_id"])?;
    let user_id = args.shown("user_id");
    let Some(methods) = world.db.at_mut(&["users", &user_id, "payment_methods"]) else {
        return raise(format!("User {user_id} not found"));
    };
    for id in ["certificate_3221322", "certificate_3221323", "certificate_3221324"] {
        if methods.entry(id).is_none() {
            methods.set(
                id,
                CERTIFICATE.make([
                    ("source", "certificate".into()),
                    ("id", id.into()),
                    ("amount", args["amount"].clone()),
                ])?,
            );
            let amount = args.shown("amount");
            return Ok(
                format!("Certificate {id} added to user {user_id} with amount {amount}.").into()
            );
        }
    }
    raise("Too many certificates")
}
