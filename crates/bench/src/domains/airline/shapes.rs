//! The shapes of the airline's data.

use crate::schema::{Default, Model, Type, field};

pub(super) const TRIP: Type = Type::Literal(&["round_trip", "one_way"]);
pub(super) const CABIN: Type = Type::Literal(CABINS);
pub(super) const INSURANCE: Type = Type::Literal(&["yes", "no"]);

const CABINS: &[&str] = &["business", "economy", "basic_economy"];
const BY_CABIN: Type = Type::Keyed(CABINS, &Type::Int);

pub(super) static FLIGHT_DB: Model = Model::strict(
    "FlightDB",
    &[
        field("flights", Type::Dict(&Type::Model(&FLIGHT))),
        field("users", Type::Dict(&Type::Model(&USER))),
        field("reservations", Type::Dict(&Type::Model(&RESERVATION))),
    ],
);

static FLIGHT: Model = Model::new(
    "Flight",
    &[
        field("flight_number", Type::Str),
        field("origin", Type::Str),
        field("destination", Type::Str),
        field("scheduled_departure_time_est", Type::Str),
        field("scheduled_arrival_time_est", Type::Str),
        field("dates", Type::Dict(&FLIGHT_DATE)),
    ],
);

const FLIGHT_DATE: Type = Type::Union(&[
    Type::Model(&AVAILABLE),
    Type::Model(&LANDED),
    Type::Model(&CANCELLED),
    Type::Model(&DELAYED),
    Type::Model(&FLYING),
    Type::Model(&ON_TIME),
]);

static AVAILABLE: Model = Model::new(
    "FlightDateStatusAvailable",
    &[
        field("status", Type::Literal(&["available"])),
        field("available_seats", BY_CABIN),
        field("prices", BY_CABIN),
    ],
);

static LANDED: Model = Model::new(
    "FlightDateStatusLanded",
    &[
        field("status", Type::Literal(&["landed"])),
        field("actual_departure_time_est", Type::Str),
        field("actual_arrival_time_est", Type::Str),
    ],
);

static CANCELLED: Model =
    Model::new("FlightDateStatusCancelled", &[field("status", Type::Literal(&["cancelled"]))]);

static DELAYED: Model = Model::new(
    "FlightDateStatusDelayed",
    &[
        field("status", Type::Literal(&["delayed"])),
        field("estimated_departure_time_est", Type::Str),
        field("estimated_arrival_time_est", Type::Str),
    ],
);

static FLYING: Model = Model::new(
    "FlightDataStatusFlying",
    &[
        field("status", Type::Literal(&["flying"])),
        field("actual_departure_time_est", Type::Str),
        field("estimated_arrival_time_est", Type::Str),
    ],
);

static ON_TIME: Model = Model::new(
    "FlightDataStatusOnTime",
    &[
        field("status", Type::Literal(&["on time"])),
        field("estimated_departure_time_est", Type::Str),
        field("estimated_arrival_time_est", Type::Str),
    ],
);

static USER: Model = Model::new(
    "User",
    &[
        field("user_id", Type::Str),
        field("name", Type::Model(&NAME)),
        field("address", Type::Model(&ADDRESS)),
        field("email", Type::Str),
        field("dob", Type::Str),
        field("payment_methods", Type::Dict(&PAYMENT_METHOD)),
        field("saved_passengers", Type::List(&Type::Model(&PASSENGER))),
        field("membership", Type::Literal(&["gold", "silver", "regular"])),
        field("reservations", Type::List(&Type::Str)),
    ],
);

static NAME: Model =
    Model::new("Name", &[field("first_name", Type::Str), field("last_name", Type::Str)]);

static ADDRESS: Model = Model::new(
    "Address",
    &[
        field("address1", Type::Str),
        field("address2", Type::Optional(&Type::Str)).or(Default::None),
        field("city", Type::Str),
        field("country", Type::Str),
        field("state", Type::Str),
        field("zip", Type::Str),
    ],
);

const PAYMENT_METHOD: Type =
    Type::Union(&[Type::Model(&CREDIT_CARD), Type::Model(&GIFT_CARD), Type::Model(&CERTIFICATE)]);

static CREDIT_CARD: Model = Model::new(
    "CreditCard",
    &[
        field("source", Type::Literal(&["credit_card"])),
        field("id", Type::Str),
        field("brand", Type::Str),
        field("last_four", Type::Str),
    ],
);

static GIFT_CARD: Model = Model::new(
    "GiftCard",
    &[
        field("source", Type::Literal(&["gift_card"])),
        field("id", Type::Str),
        field("amount", Type::Float),
    ],
);

pub(super) static CERTIFICATE: Model = Model::new(
    "Certificate",
    &[
        field("source", Type::Literal(&["certificate"])),
        field("id", Type::Str),
        field("amount", Type::Float),
    ],
);

pub(super) static PASSENGER: Model = Model::new(
    "Passenger",
    &[
        field("first_name", Type::Str).about("Their first name"),
        field("last_name", Type::Str).about("Their last name"),
        field("dob", Type::Str).about("When they were born, as YYYY-MM-DD"),
    ],
);

pub(super) static PAYMENT: Model = Model::new(
    "Payment",
    &[
        field("payment_id", Type::Str).about("The payment method"),
        field("amount", Type::Int).about("How much it pays, in dollars"),
    ],
);

pub(super) static FLIGHT_INFO: Model = Model::new(
    "FlightInfo",
    &[
        field("flight_number", Type::Str).about("The flight, such as 'HAT001'"),
        field("date", Type::Str).about("The day, as YYYY-MM-DD"),
    ],
);

pub(super) static RESERVATION: Model = Model::new(
    "Reservation",
    &[
        field("reservation_id", Type::Str),
        field("user_id", Type::Str),
        field("origin", Type::Str),
        field("destination", Type::Str),
        field("flight_type", TRIP),
        field("cabin", CABIN),
        field("flights", Type::List(&Type::Model(&RESERVATION_FLIGHT))),
        field("passengers", Type::List(&Type::Model(&PASSENGER))),
        field("payment_history", Type::List(&Type::Model(&PAYMENT))),
        field("created_at", Type::Str),
        field("total_baggages", Type::Int),
        field("nonfree_baggages", Type::Int),
        field("insurance", INSURANCE),
        field("status", Type::Optional(&Type::Literal(&["cancelled"]))).or(Default::None),
    ],
);

pub(super) static RESERVATION_FLIGHT: Model = Model::new(
    "ReservationFlight",
    &[
        field("flight_number", Type::Str),
        field("origin", Type::Str),
        field("destination", Type::Str),
        field("date", Type::Str),
        field("price", Type::Int),
    ],
);
