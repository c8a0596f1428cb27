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
    Ok(assemble(
        name,
        [database("db.toml", &TELECOM_DB)?, database("user_db.toml", &TELECOM_USER_DB)?],
        [policy("main_policy.md", support)?, policy("main_policy_solo.md", solo)?],
    ))
}

fn assemble(name: &str, [db, user_db]: [Database; 2], [policy, solo]: [String; 2]) -> Domain {
    Domain {
        user: Some(Toolkit {
            class: "TelecomUserTools",
            tools: phone::TOOLS.iter().chain(trouble::FUNCTIONS).collect(),
        }),
        user_db: UserDatabase::Own(user_db),
        solo_policy: Some(solo),
        sync,
        ..Domain::new(name, Toolkit::new("TelecomTools", carrier::TOOLS), db, policy)
    }
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

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::{Environment, Mode, Requestor, ToolCall, python::loads};

    /// A customer with one line of 5 GB and a bill to pay, and the phone of that line.
    fn environment() -> Environment {
        let db = loads(
            r#"{
                "plans": [{"plan_id": "P1", "name": "Small", "data_limit_gb": 5,
                    "price_per_month": 40, "data_refueling_price_per_gb": 2}],
                "customers": [{"customer_id": "C1", "full_name": "Ada", "email": "a@b.c",
                    "date_of_birth": "1990-01-01", "phone_number": "555", "line_ids": ["L1"],
                    "bill_ids": ["B1"],
                    "address": {"street": "1", "city": "2", "state": "3", "zip_code": "4"}}],
                "lines": [{"line_id": "L1", "phone_number": "555", "status": "Active",
                    "plan_id": "P1", "data_used_gb": 5.5}],
                "bills": [{"bill_id": "B1", "customer_id": "C1", "period_start": "2025-01-01",
                    "period_end": "2025-01-31", "issue_date": "2025-01-01", "total_due": 40,
                    "due_date": "2025-01-15", "status": "Overdue"}]
            }"#,
        );
        let user = loads(r#"{"surroundings": {"name": "Ada", "phone_number": "555"}}"#);
        let database = |model: &'static crate::schema::Model, value| Database {
            value: model.read(&value).unwrap(),
            model,
        };
        let databases =
            [database(&TELECOM_DB, db.unwrap()), database(&TELECOM_USER_DB, user.unwrap())];
        let domain = assemble("telecom", databases, [String::new(), String::new()]);
        Environment::new(&Arc::new(domain), Mode::Dialogue).unwrap()
    }

    fn call(environment: &mut Environment, requestor: Requestor, name: &str, args: &str) -> String {
        let arguments = loads(args).unwrap();
        let call = ToolCall { id: String::new(), name: name.to_owned(), arguments, requestor };
        environment.respond(&call).content.unwrap_or_default()
    }

    #[test]
    fn data_that_the_agent_adds_reach_the_phone_at_once() {
        let mut environment = environment();
        let test = call(&mut environment, Requestor::User, "run_speed_test", "{}");
        assert_eq!(test, "Speed test failed: No Connection.");
        let refuel = r#"{"customer_id": "C1", "line_id": "L1", "gb_amount": 2.0}"#;
        let added = call(&mut environment, Requestor::Assistant, "refuel_data", refuel);
        assert!(added.contains("for $4.00"), "{added}");
        let test = call(&mut environment, Requestor::User, "run_speed_test", "{}");
        assert!(test.starts_with("Speed Test Result: 220.00 Mbps (Excellent)."), "{test}");
    }

    #[test]
    fn a_payment_on_the_phone_pays_the_bill_at_the_carrier() {
        let mut environment = environment();
        let bill = r#"{"customer_id": "C1", "bill_id": "B1"}"#;
        call(&mut environment, Requestor::Assistant, "send_payment_request", bill);
        let asked = call(&mut environment, Requestor::User, "check_payment_request", "{}");
        assert_eq!(asked, "You have a payment request for bill B1 of 40.0 USD.");
        call(&mut environment, Requestor::User, "make_payment", "{}");
        assert_eq!(environment.world.db["bills"][0]["status"], "Paid");
        assert!(surroundings(&environment.world)["payment_request"].is_none());
    }

    #[test]
    fn a_broken_vpn_stays_broken_when_it_is_connected_again() {
        let mut environment = environment();
        let broken = crate::FunctionCall {
            env_type: Requestor::User,
            func_name: "break_vpn".to_owned(),
            arguments: Value::empty_dict(),
        };
        environment.call_function(&broken).unwrap();
        call(&mut environment, Requestor::User, "disconnect_vpn", "{}");
        call(&mut environment, Requestor::User, "connect_vpn", "{}");
        let status = call(&mut environment, Requestor::User, "check_vpn_status", "{}");
        assert!(status.contains("<PerformanceLevel.POOR: 'poor'>"), "{status}");
    }
}
