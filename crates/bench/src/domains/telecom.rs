//! `telecom` and `telecom-workflow`: a carrier's records on the agent's side, a phone in the user's
//! hand. Both domains are the same but for how the agent's rules tell how to solve problems.

mod carrier;
mod phone;
mod shapes;
mod signal;
mod state;
mod trouble;

use crate::{
    DataDir, DataError, Domain, Failure, TaskSet, Toolkit, Value, World,
    python::{add, compare},
    world::{Database, UserDatabase, section},
};
use carrier::{awaiting_payment, customer_by_phone, line_by_phone, record};
use shapes::{PAYMENT_REQUEST, TELECOM_DB, TELECOM_USER_DB};
use state::{sense, surroundings};

/// Loads the domain with the rules as a manual.
pub(super) fn load(data: &DataDir, _variant: Option<&str>) -> Result<Domain, DataError> {
    let manual = "tech_support_manual.md";
    domain(data, "telecom", manual, manual)
}

/// Loads the domain with the rules as a workflow.
pub(super) fn load_workflow(data: &DataDir, _variant: Option<&str>) -> Result<Domain, DataError> {
    domain(data, "telecom-workflow", "tech_support_workflow.md", "tech_support_workflow_solo.md")
}

/// Loads the tasks of both.
pub(super) fn tasks(data: &DataDir) -> Result<TaskSet, DataError> {
    data.tasks("telecom", "tasks.json")
}

fn domain(data: &DataDir, name: &str, support: &str, solo: &str) -> Result<Domain, DataError> {
    let database = |file, model: &'static crate::schema::Model| -> Result<Database, DataError> {
        Ok(Database { value: model.read(&data.toml("telecom", file)?)?, model })
    };
    let policy = |main, support| -> Result<String, DataError> {
        let (main, support) = (data.text("telecom", main)?, data.text("telecom", support)?);
        Ok(format!(
            "<main_policy>\n{main}\n</main_policy>\n\
             <tech_support_policy>\n{support}\n</tech_support_policy>"
        ))
    };
    Ok(Domain {
        user: Some(Toolkit {
            class: "TelecomUserTools",
            tools: phone::TOOLS.iter().chain(trouble::FUNCTIONS).collect(),
        }),
        user_db: UserDatabase::Own(database("user_db.toml", &TELECOM_USER_DB)?),
        solo_policy: Some(policy("main_policy_solo.md", solo)?),
        sync,
        ..Domain::new(
            name,
            Toolkit::new("TelecomTools", carrier::TOOLS),
            database("db.toml", &TELECOM_DB)?,
            policy("main_policy.md", support)?,
        )
    })
}

/// Tells the phone what the carrier knows of its line, and the carrier what the user paid.
fn sync(world: &mut World) -> Result<(), Failure> {
    section(world.user_db(), "TelecomDB", "surroundings")?;
    let number = surroundings(world)["phone_number"].clone();
    if number.is_none() {
        return Ok(());
    }
    let line = line_by_phone(&world.db, &number)?.clone();
    sense(world, "line_active", line["status"] == "Active");
    sense(world, "roaming_allowed", line["roaming_enabled"].truthy());

    let plan = record(&world.db, "plans", &line["plan_id"])?.1;
    let allowance = add(&plan["data_limit_gb"], &line["data_refueling_gb"])?;
    let exceeded = compare(">=", &line["data_used_gb"], &allowance)?.is_ge();
    sense(world, "mobile_data_usage_exceeded", exceeded);

    let request = surroundings(world)["payment_request"].clone();
    if request["paid"].truthy() {
        carrier::set_bill(world, &request["bill_id"], "Paid")?;
        sense(world, "payment_request", Value::None);
    } else if !request.is_none() {
        return Ok(());
    }
    let customer = customer_by_phone(&world.db, &number)?;
    if let Some(bill) = awaiting_payment(&world.db, customer)?.first() {
        let request = PAYMENT_REQUEST.make([
            ("bill_id", bill["bill_id"].clone()),
            ("amount_due", bill["total_due"].clone()),
        ])?;
        sense(world, "payment_request", request);
    }
    Ok(())
}
