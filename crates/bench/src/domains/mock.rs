//! `mock`: a list of tasks and an inbox, to try things out.

use crate::{
    Args, DataDir, DataError, Domain, Failure, Reply, TaskSet, Tool, Toolkit, Value, World, python,
    raise,
    schema::{Default, Field, Model, Type, field},
    toolkit::{generic, internal, read, write},
    world::{Database, UserDatabase, section},
};

/// Loads the domain.
pub(super) fn load(data: &DataDir, _variant: Option<&str>) -> Result<Domain, DataError> {
    let db = data.database("mock", "db.json", &MOCK_DB)?;
    // Data from before there was an inbox has no file for it.
    let user_db = match data.file("mock", "user_db.json").exists() {
        true => data.database("mock", "user_db.json", &MOCK_USER_DB)?,
        false => {
            let empty = Value::dict([("notifications", Value::empty_dict())]);
            Database { value: MOCK_USER_DB.read(&empty)?, model: &MOCK_USER_DB }
        }
    };
    Ok(Domain {
        user: Some(Toolkit::new("MockUserTools", USER_TOOLS)),
        user_db: UserDatabase::Own(user_db),
        solo_policy: Some(data.text("mock", "policy_solo.md")?),
        ..Domain::new(
            "mock",
            Toolkit::new("MockTools", AGENT_TOOLS),
            db,
            data.text("mock", "policy.md")?,
        )
    })
}

/// Loads its tasks.
pub(super) fn tasks(data: &DataDir) -> Result<TaskSet, DataError> {
    data.tasks("mock", "tasks.json")
}

static AGENT_TOOLS: &[Tool] = &[
    write(
        "create_task",
        "Add a task to a user's list.",
        &[
            field("user_id", Type::Str).about("Whose list it is"),
            field("title", Type::Str).about("What the task is called"),
            field("description", Type::Str).or(Default::None).about("More about it, if needed"),
        ],
        create_task,
    ),
    read("get_users", "List every user with the ids of their tasks.", &[], |world, _| {
        records(&world.db, "users")
    }),
    write(
        "update_task_status",
        "Set the status of a task.",
        &[TASK_ID, field("status", TASK_STATUS).about("The status it gets")],
        update_task_status,
    ),
    internal(
        "assert_number_of_tasks",
        &[field("user_id", Type::Str), field("expected_number", Type::Int)],
        |world, args| {
            let user = record(&world.db, "users", "User", &args["user_id"])?;
            Ok(Value::from(user["tasks"].items().len()).equals(&args["expected_number"]).into())
        },
    ),
    internal(
        "assert_task_status",
        &[TASK_ID, field("expected_status", TASK_STATUS)],
        |world, args| {
            let task = record(&world.db, "tasks", "Task", &args["task_id"])?;
            Ok(task["status"].equals(&args["expected_status"]).into())
        },
    ),
    generic(
        "transfer_to_human_agents",
        "Hand the conversation over to a person, with a summary of what the user needs. Do so only \
         when the user asks for a person, or when the policy and your tools do not let you help.",
        &[field("summary", Type::Str).about("What the user needs")],
        |_, _| Ok("Transfer successful".into()),
    ),
];

static USER_TOOLS: &[Tool] = &[
    read("check_notifications", "Look at everything in your inbox.", &[], |world, _| {
        records(world.user_db(), "notifications")
    }),
    write(
        "dismiss_notification",
        "Mark a notification as read.",
        &[field("notification_id", Type::Str).about("Which notification")],
        dismiss_notification,
    ),
    internal(
        "add_notification",
        &[
            field("notification_id", Type::Str),
            field("message", Type::Str),
            field("task_id", Type::Optional(&Type::Str)).or(Default::None),
        ],
        add_notification,
    ),
    internal(
        "assert_notification_status",
        &[field("notification_id", Type::Str), field("expected_status", Type::Str)],
        |world, args| {
            let id = &args["notification_id"];
            let notification = record(world.user_db(), "notifications", "Notification", id)?;
            Ok(notification["status"].equals(&args["expected_status"]).into())
        },
    ),
];

const TASK_ID: Field = field("task_id", Type::Str).about("Which task");
const TASK_STATUS: Type = Type::Literal(&["pending", "completed"]);

static MOCK_DB: Model = Model::strict(
    "MockDB",
    &[
        field("tasks", Type::Dict(&Type::Model(&TASK))),
        field("users", Type::Dict(&Type::Model(&USER))),
    ],
);

static TASK: Model = Model::new(
    "Task",
    &[
        field("task_id", Type::Str),
        field("title", Type::Str),
        field("description", Type::Optional(&Type::Str)).or(Default::None),
        field("status", TASK_STATUS),
    ],
);

static USER: Model = Model::new(
    "User",
    &[
        field("user_id", Type::Str),
        field("name", Type::Str),
        field("tasks", Type::List(&Type::Str)),
    ],
);

static MOCK_USER_DB: Model = Model::strict(
    "MockUserDB",
    &[field("notifications", Type::Dict(&Type::Model(&NOTIFICATION))).or(Default::Dict)],
);

static NOTIFICATION: Model = Model::strict(
    "Notification",
    &[
        field("notification_id", Type::Str),
        field("message", Type::Str),
        field("status", Type::Literal(&["unread", "read"])).or(Default::Str("unread")),
        field("task_id", Type::Optional(&Type::Str)).or(Default::None),
    ],
);

fn create_task(world: &mut World, args: &Args) -> Result<Reply, Failure> {
    let user_id = &args["user_id"];
    record(&world.db, "users", "User", user_id)?;
    let id = format!("task_{}", world.db["tasks"].entries().len() + 1);
    let task = TASK.make([
        ("task_id", id.as_str().into()),
        ("title", args["title"].clone()),
        ("description", args["description"].clone()),
        ("status", "pending".into()),
    ])?;
    if let Some(tasks) = world.db.get_mut("tasks") {
        tasks.set(id.clone(), task.clone());
    }
    let user = user_id.as_str().unwrap_or_default();
    if let Some(tasks) = world.db.at_mut(&["users", user, "tasks"]) {
        tasks.push(id);
    }
    Ok(Reply::Model(task))
}

fn update_task_status(world: &mut World, args: &Args) -> Result<Reply, Failure> {
    record(&world.db, "tasks", "Task", &args["task_id"])?;
    let id = args["task_id"].as_str().unwrap_or_default();
    let Some(task) = world.db.at_mut(&["tasks", id]) else {
        return raise(format!("Task {id} not found"));
    };
    // The status is taken as it comes: the reference does not check what it assigns.
    task.set("status", &args["status"]);
    Ok(Reply::Model(task.clone()))
}

fn dismiss_notification(world: &mut World, args: &Args) -> Result<Reply, Failure> {
    record(world.user_db(), "notifications", "Notification", &args["notification_id"])?;
    let id = args.shown("notification_id");
    if let Some(notification) = world.user_db_mut().at_mut(&["notifications", &id]) {
        notification.set("status", "read");
    }
    Ok(format!("Notification {id} dismissed").into())
}

fn add_notification(world: &mut World, args: &Args) -> Result<Reply, Failure> {
    let notification = NOTIFICATION.make([
        ("notification_id", args["notification_id"].clone()),
        ("message", args["message"].clone()),
        ("task_id", args["task_id"].clone()),
    ])?;
    section(world.user_db(), "MockDB", "notifications")?;
    if let Some(notifications) = world.user_db_mut().get_mut("notifications") {
        notifications.set(args.shown("notification_id"), notification.clone());
    }
    Ok(Reply::Model(notification))
}

fn records(database: &Value, name: &str) -> Result<Reply, Failure> {
    let section = section(database, "MockDB", name)?;
    let records = section.entries().iter().map(|(_, record)| Reply::Model(record.clone()));
    Ok(Reply::List(records.collect()))
}

fn record<'a>(
    database: &'a Value,
    name: &str,
    what: &str,
    id: &Value,
) -> Result<&'a Value, Failure> {
    let section = section(database, "MockDB", name)?;
    match id.as_str().and_then(|id| section.entry(id)) {
        Some(record) => Ok(record),
        None => raise(format!("{what} {} not found", python::str_of(id))),
    }
}
