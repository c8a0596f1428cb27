//! `bike_shop`: a domain of our own, small and embedded. It works on a machine without any data.

use std::sync::Arc;

use crate::{
    Args, DataDir, DataError, Domain, Failure, Reply, Task, TaskSet, Tool, Toolkit, Value, World,
    domains::common::{TRANSFER, lookup},
    python, raise,
    schema::{Default, Field, Model, Type, field},
    toolkit::{internal, read, write},
    world::{Database, UserDatabase},
};

/// Loads the domain; the data directory is not needed.
pub(super) fn load(_: &DataDir, _variant: Option<&str>) -> Result<Domain, DataError> {
    let database = |text: &str, model: &'static Model| -> Result<Database, DataError> {
        Ok(Database { value: model.read(&embedded(text)?)?, model })
    };
    let db = database(include_str!("bike_shop/db.json"), &SHOP)?;
    let user_db = database(include_str!("bike_shop/user_db.json"), &OWN_BIKE)?;
    let policy = include_str!("bike_shop/policy.md").to_owned();
    Ok(Domain {
        user: Some(Toolkit::new("BikeOwnerTools", USER_TOOLS)),
        user_db: UserDatabase::Own(user_db),
        solo_policy: Some(include_str!("bike_shop/policy_solo.md").to_owned()),
        ..Domain::new("bike_shop", Toolkit::new("BikeShopTools", AGENT_TOOLS), db, policy)
    })
}

/// Loads its tasks.
pub(super) fn tasks(_: &DataDir) -> Result<TaskSet, DataError> {
    let tasks: Vec<Task> = embedded(include_str!("bike_shop/tasks.json"))?;
    let ids = tasks.iter().map(|task| task.id.clone()).collect();
    Ok(TaskSet {
        tasks: tasks.into_iter().map(Arc::new).collect(),
        splits: vec![("base".to_owned(), ids)],
    })
}

fn embedded<T: serde::de::DeserializeOwned>(text: &str) -> Result<T, DataError> {
    serde_json::from_str(text).map_err(|error| DataError::Malformed {
        path: "bike_shop (embedded)".into(),
        reason: error.to_string(),
    })
}

/// How many repairs a day has room for.
const ROOM: usize = 3;
/// How many parts of a kind may be set aside for one customer.
const MOST_ASIDE: i64 = 2;

static AGENT_TOOLS: &[Tool] = &[
    read(
        "find_customer",
        "Find a customer by phone number, with their bikes and repairs.",
        &[field("phone", Type::Str).about("The phone number, such as '555-0100'.")],
        find_customer,
    ),
    read(
        "get_day",
        "See which repairs a day has and how many more it has room for.",
        &[DAY],
        get_day,
    ),
    write(
        "book_repair",
        "Book a repair for a bike. Returns the repair with its price.",
        &[BIKE_ID, field("kind", KIND).about("What is to be done."), DAY],
        book_repair,
    ),
    write("move_repair", "Move a booked repair to another day.", &[REPAIR_ID, DAY], move_repair),
    write("cancel_repair", "Cancel a booked repair.", &[REPAIR_ID], cancel_repair),
    read(
        "get_part",
        "Look a part up: its price and how many are in stock.",
        &[PART_ID],
        |world, args| Ok(Reply::Model(record(&world.db, "parts", &args["part_id"])?.clone())),
    ),
    write(
        "set_part_aside",
        "Set parts aside for a customer.",
        &[
            field("customer_id", Type::Str).about("For whom."),
            PART_ID,
            field("count", Type::Int).about("How many."),
        ],
        set_part_aside,
    ),
    TRANSFER,
    internal("assert_repairs_of", &[BIKE_ID, field("expected", Type::Int)], |world, args| {
        let repairs = world.db["repairs"].entries().iter();
        let of_bike = repairs
            .filter(|(_, r)| r["bike_id"].equals(&args["bike_id"]) && r["status"] != "cancelled");
        Ok(Value::from(of_bike.count()).equals(&args["expected"]).into())
    }),
];

static USER_TOOLS: &[Tool] = &[
    read("check_tyre", "Feel how much air is in the tyre of your bike.", &[], |world, _| {
        let bar = python::str_of(&world.user_db()["tyre_pressure_bar"]);
        Ok(format!("The tyre has {bar} bar.").into())
    }),
    write("pump_tyre", "Pump up the tyre of your bike.", &[], pump_tyre),
    read("check_chain", "Look at the chain of your bike.", &[], |world, _| {
        let chain = python::str_of(&world.user_db()["chain"]);
        Ok(format!("The chain is {chain}.").into())
    }),
    write("oil_chain", "Oil the chain of your bike.", &[], |world, _| {
        world.user_db_mut().set("chain", "oiled");
        Ok("The chain is oiled and makes no noise.".into())
    }),
    internal(
        "set_bike",
        &[
            BIKE_ID,
            field("tyre_pressure_bar", Type::Float).or(Default::Float(3.5)),
            field("tyre_holds_air", Type::Bool).or(Default::Bool(true)),
            field("chain", CHAIN).or(Default::Str("oiled")),
        ],
        |world, args| {
            let names = ["bike_id", "tyre_pressure_bar", "tyre_holds_air", "chain"];
            let bike = OWN_BIKE.make(names.map(|name| (name, args[name].clone())))?;
            *world.user_db_mut() = bike.clone();
            Ok(Reply::Model(bike))
        },
    ),
    internal("assert_tyre_ok", &[], |world, _| {
        let pressure = world.user_db()["tyre_pressure_bar"].as_f64().unwrap_or_default();
        Ok((pressure >= 2.0).into())
    }),
];

const DAY: Field = field("day", Type::Str).about("The day, as YYYY-MM-DD.");
const BIKE_ID: Field = field("bike_id", Type::Str).about("The bike, such as 'b1'.");
const REPAIR_ID: Field = field("repair_id", Type::Str).about("The repair, such as 'r1'.");
const PART_ID: Field = field("part_id", Type::Str).about("The part, such as 'bell'.");
const KIND: Type = Type::Literal(&["tune_up", "brakes", "tyre", "wheel"]);
const CHAIN: Type = Type::Literal(&["dry", "oiled"]);

static SHOP: Model = Model::strict(
    "BikeShop",
    &[
        field("customers", Type::Dict(&Type::Model(&CUSTOMER))),
        field("bikes", Type::Dict(&Type::Model(&BIKE))),
        field("repairs", Type::Dict(&Type::Model(&REPAIR))),
        field("parts", Type::Dict(&Type::Model(&PART))),
    ],
);

static CUSTOMER: Model = Model::new(
    "Customer",
    &[
        field("customer_id", Type::Str),
        field("name", Type::Str),
        field("phone", Type::Str),
        field("is_member", Type::Bool),
        field("bike_ids", Type::List(&Type::Str)),
    ],
);

static BIKE: Model = Model::new(
    "Bike",
    &[
        field("bike_id", Type::Str),
        field("owner_id", Type::Str),
        field("model", Type::Str),
        field("colour", Type::Str),
    ],
);

static REPAIR: Model = Model::new(
    "Repair",
    &[
        field("repair_id", Type::Str),
        field("bike_id", Type::Str),
        field("kind", KIND),
        field("day", Type::Date),
        field("price", Type::Float),
        field("status", Type::Literal(&["booked", "in_progress", "cancelled"])),
    ],
);

static PART: Model = Model::new(
    "Part",
    &[
        field("part_id", Type::Str),
        field("name", Type::Str),
        field("price", Type::Float),
        field("in_stock", Type::Int),
        field("set_aside", Type::Dict(&Type::Int)),
    ],
);

static OWN_BIKE: Model = Model::strict(
    "OwnBike",
    &[
        field("bike_id", Type::Str),
        field("tyre_pressure_bar", Type::Float),
        field("tyre_holds_air", Type::Bool),
        field("chain", CHAIN),
    ],
);

fn find_customer(world: &mut World, args: &Args) -> Result<Reply, Failure> {
    let customers = world.db["customers"].entries();
    let found = customers.iter().find(|(_, c)| c["phone"].equals(&args["phone"]));
    let Some((_, customer)) = found else {
        return raise(format!("nobody has the phone number {}", args.shown("phone")));
    };
    let owned = |bike: &Value| bike["owner_id"].equals(&customer["customer_id"]);
    let bikes: Vec<Reply> = world.db["bikes"]
        .entries()
        .iter()
        .filter(|(_, bike)| owned(bike))
        .map(|(_, bike)| Reply::Model(bike.clone()))
        .collect();
    let repairs: Vec<Reply> = world.db["repairs"]
        .entries()
        .iter()
        .filter(|(_, r)| lookup(&world.db["bikes"], &r["bike_id"]).is_some_and(owned))
        .map(|(_, repair)| Reply::Model(repair.clone()))
        .collect();
    Ok(Reply::Dict(vec![
        ("customer", Reply::Model(customer.clone())),
        ("bikes", Reply::List(bikes)),
        ("repairs", Reply::List(repairs)),
    ]))
}

fn get_day(world: &mut World, args: &Args) -> Result<Reply, Failure> {
    let repairs: Vec<Reply> =
        repairs_on(world, &args["day"]).map(|repair| Reply::Model(repair.clone())).collect();
    let room = Value::from(ROOM.saturating_sub(repairs.len()));
    Ok(Reply::Dict(vec![("repairs", Reply::List(repairs)), ("room_for", Reply::Model(room))]))
}

fn book_repair(world: &mut World, args: &Args) -> Result<Reply, Failure> {
    let bike = record(&world.db, "bikes", &args["bike_id"])?;
    let owner = record(&world.db, "customers", &bike["owner_id"])?;
    let price = match args["kind"].as_str() {
        Some("tune_up") => 60.0,
        Some("brakes") => 45.0,
        Some("tyre") => 25.0,
        Some("wheel") => 80.0,
        _ => return raise(format!("there is no repair {}", args.shown("kind"))),
    };
    let reduced = owner["is_member"].truthy() && args["kind"] != "tyre";
    let price = if reduced { price - 10.0 } else { price };
    check_room(world, &args["day"])?;
    let id = format!("r{}", world.db["repairs"].entries().len() + 1);
    let repair = REPAIR.make([
        ("repair_id", id.as_str().into()),
        ("bike_id", args["bike_id"].clone()),
        ("kind", args["kind"].clone()),
        ("day", args["day"].clone()),
        ("price", price.into()),
        ("status", "booked".into()),
    ])?;
    if let Some(repairs) = world.db.get_mut("repairs") {
        repairs.set(id, repair.clone());
    }
    Ok(Reply::Model(repair))
}

fn move_repair(world: &mut World, args: &Args) -> Result<Reply, Failure> {
    let mut repair = booked(world, &args["repair_id"])?.clone();
    check_room(world, &args["day"])?;
    repair.set("day", &args["day"]);
    let repair = REPAIR.read(&repair)?;
    store(world, "repairs", &args["repair_id"], &repair);
    Ok(Reply::Model(repair))
}

fn cancel_repair(world: &mut World, args: &Args) -> Result<Reply, Failure> {
    let mut repair = booked(world, &args["repair_id"])?.clone();
    repair.set("status", "cancelled");
    store(world, "repairs", &args["repair_id"], &repair);
    Ok(Reply::Model(repair))
}

fn set_part_aside(world: &mut World, args: &Args) -> Result<Reply, Failure> {
    record(&world.db, "customers", &args["customer_id"])?;
    let mut part = record(&world.db, "parts", &args["part_id"])?.clone();
    let count = args["count"].as_i64().filter(|count| *count > 0);
    let Some(count) = count else { return raise("the count must be a whole number above 0") };
    let customer = args.shown("customer_id");
    let aside = part["set_aside"][customer.as_str()].as_i64().unwrap_or(0) + count;
    if aside > MOST_ASIDE {
        return raise(format!("{MOST_ASIDE} of a kind can be set aside for a customer at most"));
    }
    let left = part["in_stock"].as_i64().unwrap_or(0) - count;
    if left < 0 {
        return raise(format!("only {} are in stock", python::str_of(&part["in_stock"])));
    }
    part.set("in_stock", left);
    if let Some(list) = part.get_mut("set_aside") {
        list.set(customer, aside);
    }
    store(world, "parts", &args["part_id"], &part);
    Ok(Reply::Model(part))
}

fn pump_tyre(world: &mut World, _: &Args) -> Result<Reply, Failure> {
    if !world.user_db()["tyre_holds_air"].truthy() {
        return Ok("You pump, but the air hisses out again.".into());
    }
    world.user_db_mut().set("tyre_pressure_bar", 3.5);
    Ok("The tyre is hard.".into())
}

fn repairs_on<'a>(world: &'a World, day: &Value) -> impl Iterator<Item = &'a Value> {
    let day = day.clone();
    let repairs = world.db["repairs"].entries().iter();
    repairs
        .map(|(_, repair)| repair)
        .filter(move |repair| repair["day"].equals(&day) && repair["status"] != "cancelled")
}

fn check_room(world: &World, day: &Value) -> Result<(), Failure> {
    if repairs_on(world, day).count() >= ROOM {
        return raise(format!("{} is full", python::str_of(day)));
    }
    Ok(())
}

fn booked<'a>(world: &'a World, id: &Value) -> Result<&'a Value, Failure> {
    let repair = record(&world.db, "repairs", id)?;
    if repair["status"] != "booked" {
        let status = python::str_of(&repair["status"]);
        return raise(format!("the repair is {status} and cannot be changed"));
    }
    Ok(repair)
}

fn record<'a>(database: &'a Value, section: &str, id: &Value) -> Result<&'a Value, Failure> {
    match lookup(&database[section], id) {
        Some(record) => Ok(record),
        None => raise(format!("there is no {} in {section}", python::str_of(id))),
    }
}

fn store(world: &mut World, section: &str, id: &Value, record: &Value) {
    if let Some(place) = world.db.at_mut(&[section, &python::str_of(id)]) {
        *place = record.clone();
    }
}
