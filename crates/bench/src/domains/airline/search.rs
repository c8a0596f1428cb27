//! Looking for flights.

use crate::{Args, Failure, Reply, Value, World, domains::common::lookup};

/// The airports and their cities.
pub(super) fn airports() -> Reply {
    const AIRPORTS: [(&str, &str); 20] = [
        ("SFO", "San Francisco"),
        ("JFK", "New York"),
        ("LAX", "Los Angeles"),
        ("ORD", "Chicago"),
        ("DFW", "Dallas"),
        ("DEN", "Denver"),
        ("SEA", "Seattle"),
        ("ATL", "Atlanta"),
        ("MIA", "Miami"),
        ("BOS", "Boston"),
        ("PHX", "Phoenix"),
        ("IAH", "Houston"),
        ("LAS", "Las Vegas"),
        ("MCO", "Orlando"),
        ("EWR", "Newark"),
        ("CLT", "Charlotte"),
        ("MSP", "Minneapolis"),
        ("DTW", "Detroit"),
        ("PHL", "Philadelphia"),
        ("LGA", "LaGuardia"),
    ];
    let airport = |(iata, city): &(&str, &str)| {
        Reply::Model(Value::dict([("iata", (*iata).into()), ("city", (*city).into())]))
    };
    Reply::List(AIRPORTS.iter().map(airport).collect())
}

/// Flights without a stop.
pub(super) fn direct(world: &mut World, args: &Args) -> Result<Reply, Failure> {
    let query = Query {
        origin: &args["origin"],
        destination: &args["destination"],
        date: &args["date"],
        leave_after: None,
    };
    Ok(Reply::List(query.flights(world).into_iter().map(Reply::Model).collect()))
}

/// Connections with one stop.
pub(super) fn one_stop(world: &mut World, args: &Args) -> Result<Reply, Failure> {
    let date = &args["date"];
    let first_legs =
        Query { origin: &args["origin"], destination: &Value::None, date, leave_after: None };
    let mut connections = Vec::new();
    for mut first in first_legs.flights(world) {
        first.set("date", date);
        let arrival = first["scheduled_arrival_time_est"].as_str().unwrap_or_default().to_owned();
        let date = if arrival.contains("+1") { next_day(date) } else { date.clone() };
        let second_legs = Query {
            origin: &first["destination"].clone(),
            destination: &args["destination"],
            date: &date,
            leave_after: Some(&arrival),
        };
        for mut second in second_legs.flights(world) {
            second.set("date", &date);
            connections.push(Reply::List(vec![Reply::Model(first.clone()), Reply::Model(second)]));
        }
    }
    Ok(Reply::List(connections))
}

/// What is looked for. `None` as an airport is any airport.
struct Query<'a> {
    origin: &'a Value,
    destination: &'a Value,
    date: &'a Value,
    leave_after: Option<&'a str>,
}

impl Query<'_> {
    fn flights(&self, world: &World) -> Vec<Value> {
        let flights = world.db["flights"].entries().iter();
        flights.filter_map(|(_, flight)| self.offer(flight)).collect()
    }

    fn offer(&self, flight: &Value) -> Option<Value> {
        let wanted = |wanted: &Value, actual: &Value| wanted.is_none() || actual.equals(wanted);
        if !wanted(self.origin, &flight["origin"])
            || !wanted(self.destination, &flight["destination"])
        {
            return None;
        }
        let instance = lookup(&flight["dates"], self.date)?;
        if instance["status"] != "available" {
            return None;
        }
        // Times are compared as texts, a "+1" at their end included.
        let departure = flight["scheduled_departure_time_est"].as_str().unwrap_or_default();
        if self.leave_after.is_some_and(|time| departure < time) {
            return None;
        }
        Some(Value::dict([
            ("flight_number", flight["flight_number"].clone()),
            ("origin", flight["origin"].clone()),
            ("destination", flight["destination"].clone()),
            ("status", "available".into()),
            ("scheduled_departure_time_est", departure.into()),
            ("scheduled_arrival_time_est", flight["scheduled_arrival_time_est"].clone()),
            ("date", Value::None),
            ("available_seats", instance["available_seats"].clone()),
            ("prices", instance["prices"].clone()),
        ]))
    }
}

/// The day after, always in May 2024 and without a leading zero: so the reference finds no flight
/// on the second to the ninth.
fn next_day(date: &Value) -> Value {
    let date = date.as_str().unwrap_or_default();
    let day = date.get(date.len().saturating_sub(2)..).and_then(|day| day.parse::<u32>().ok());
    day.map_or(Value::None, |day| format!("2024-05-{}", day + 1).into())
}
