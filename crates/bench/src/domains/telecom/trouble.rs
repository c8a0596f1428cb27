//! What initial states do to the phone, and what tasks assert of it.

use super::{
    super::common::no_attribute,
    phone::APP,
    signal::{can_send_mms, data_working, search, speed},
    state::{
        DEFAULT_VPN, VPN_IS_DEFAULT, connect_vpn, device, on_off, permission, sense, set, set_apn,
        set_permission, surroundings, toggle_airplane_mode,
    },
};
use crate::{
    Args, Failure, Reply, Tool, Value, World,
    python::{compare, repr},
    raise,
    schema::{Default, Field, Type, field},
    toolkit::internal,
};

const EXPECTED: Field = field("expected_status", Type::Bool);

pub(super) static FUNCTIONS: &[Tool] = &[
    // What initial states set.
    internal(
        "set_user_info",
        &[field("name", Type::Str), field("phone_number", Type::Str)],
        |world, args| {
            sense(world, "name", &args["name"]);
            sense(world, "phone_number", &args["phone_number"]);
            Ok(Reply::Plain(Value::None))
        },
    ),
    internal("set_user_location", &[field("abroad", Type::Bool)], |world, args| {
        sense(world, "is_abroad", &args["abroad"]);
        Ok(Reply::Plain(Value::None))
    }),
    internal("simulate_network_search", &[], |world, _| {
        search(world)?;
        Ok(Reply::Plain(Value::None))
    }),
    internal("turn_airplane_mode_on", &[], |world, _| {
        // Switched off and on again where it was on: that is what drops the connections.
        if !toggle_airplane_mode(world)? {
            toggle_airplane_mode(world)?;
        }
        Ok("Airplane Mode is now ON.".into())
    }),
    internal("turn_airplane_mode_off", &[], |world, _| {
        if toggle_airplane_mode(world)? {
            toggle_airplane_mode(world)?;
        }
        Ok("Airplane Mode is now OFF.".into())
    }),
    internal("unseat_sim_card", &[], |world, _| {
        set(world, "sim_card_missing", true);
        search(world)?;
        Ok("SIM card un-seated successfully.".into())
    }),
    internal("lock_sim_card", &[field("mode", Type::Literal(&["pin", "puk"]))], |world, args| {
        match args["mode"].as_str() {
            Some("pin") => set(world, "sim_card_status", "locked_pin"),
            Some("puk") => set(world, "sim_card_status", "locked_puk"),
            _ => {}
        }
        search(world)?;
        Ok(format!("SIM card locked successfully in {} mode.", args.shown("mode")).into())
    }),
    internal("turn_data_on", &[], |world, _| {
        set(world, "data_enabled", true);
        Ok("Data connection restored.".into())
    }),
    internal("turn_data_off", &[], |world, _| {
        set(world, "data_enabled", false);
        search(world)?;
        Ok("Data connection broken.".into())
    }),
    internal("turn_roaming_on", &[], |world, _| {
        set(world, "roaming_enabled", true);
        search(world)?;
        Ok("Data Roaming is now ON.".into())
    }),
    internal("turn_roaming_off", &[], |world, _| {
        set(world, "roaming_enabled", false);
        search(world)?;
        Ok("Data Roaming is now OFF.".into())
    }),
    internal("turn_data_saver_mode_on", &[], |world, _| {
        set(world, "data_saver_mode", true);
        Ok("Data Saver Mode is now ON.".into())
    }),
    internal("turn_data_saver_mode_off", &[], |world, _| {
        set(world, "data_saver_mode", false);
        Ok("Data Saver Mode is now OFF.".into())
    }),
    internal("break_apn_settings", &[], |world, _| {
        set_apn(world, "apn_name", "broken")?;
        search(world)?;
        Ok("APN settings broken. Please call reset_apn_settings() to fix.".into())
    }),
    internal("break_apn_mms_setting", &[], |world, _| {
        set_apn(world, "mmsc_url", Value::None)?;
        Ok("APN MMS setting broken. Please call reset_apn_settings() to fix.".into())
    }),
    internal(
        "set_wifi_calling",
        &[field("enabled", Type::Bool), field("mms_over_wifi", Type::Bool).or(Default::None)],
        set_wifi_calling,
    ),
    internal("break_vpn", &[], break_vpn),
    internal(
        "remove_app_permission",
        &[APP, field("permission", Type::Str)],
        remove_app_permission,
    ),
    // What tasks assert.
    internal("assert_airplane_mode_status", &[EXPECTED], |world, args| {
        Ok(device(world)["airplane_mode"].equals(&args["expected_status"]).into())
    }),
    internal("assert_service_status", &[field("expected_status", Type::Str)], |world, args| {
        let expected = &args["expected_status"];
        let known = ["connected", "searching", "no_service", "emergency_only"];
        if !known.iter().any(|status| expected == status) {
            return raise(format!("{} is not a valid NetworkStatus", repr(expected)));
        }
        Ok(device(world)["network_connection_status"].equals(expected).into())
    }),
    internal("assert_mobile_data_status", &[EXPECTED], |world, args| {
        Ok(Value::from(data_working(world)).equals(&args["expected_status"]).into())
    }),
    internal("assert_mobile_roaming_status", &[EXPECTED], |world, args| {
        Ok(device(world)["roaming_enabled"].equals(&args["expected_status"]).into())
    }),
    internal("assert_mobile_data_saver_mode_status", &[EXPECTED], |world, args| {
        Ok(device(world)["data_saver_mode"].equals(&args["expected_status"]).into())
    }),
    internal(
        "assert_internet_speed",
        &[
            field("expected_speed", Type::Float),
            field("expected_desc", Type::Optional(&Type::Str)).or(Default::None),
        ],
        assert_internet_speed,
    ),
    internal("assert_internet_not_excellent", &[], |world, _| {
        Ok(speed(world).is_none_or(|(_, name)| name != "Excellent").into())
    }),
    internal("assert_can_send_mms", &[EXPECTED], |world, args| {
        Ok(Value::from(can_send_mms(world)?).equals(&args["expected_status"]).into())
    }),
    internal("assert_mobile_data_usage_exceeded", &[EXPECTED], |world, args| {
        let exceeded = &surroundings(world)["mobile_data_usage_exceeded"];
        Ok(exceeded.equals(&args["expected_status"]).into())
    }),
];

fn set_wifi_calling(world: &mut World, args: &Args) -> Result<Reply, Failure> {
    let was_on = device(world)["wifi_calling_enabled"].clone();
    if !was_on.equals(&args["enabled"]) {
        set(world, "wifi_calling_enabled", !was_on.truthy());
    }
    let mut message = format!("Wi-Fi Calling is now {}.", on_off(args["enabled"].truthy()));
    let over_wifi = &args["mms_over_wifi"];
    if !over_wifi.is_none() {
        set(world, "wifi_calling_mms_over_wifi", over_wifi);
        message += &format!("\nMMS over Wi-Fi is now {}.", on_off(over_wifi.truthy()));
    }
    Ok(message.into())
}

fn break_vpn(world: &mut World, _: &Args) -> Result<Reply, Failure> {
    connect_vpn(world);
    let mut details = device(world)["vpn_details"].clone();
    if details.is_none() {
        return no_attribute(&details, "server_performance");
    }
    details.set("server_performance", "poor");
    if world.scratch[VPN_IS_DEFAULT].truthy() {
        world.scratch.set(DEFAULT_VPN, details.clone());
    }
    set(world, "vpn_details", details);
    Ok("VPN connection broken.".into())
}

fn remove_app_permission(world: &mut World, args: &Args) -> Result<Reply, Failure> {
    let (removed, message) = match permission(world, args)? {
        (None, name, _) => (false, format!("App '{name}' not found. Cannot remove permission.")),
        (Some(app), name, permission) if app["permissions"].entry(&permission).is_none() => {
            (false, format!("Permission '{permission}' not tracked for app '{name}'."))
        }
        (Some(_), name, permission) => {
            set_permission(world, &name, &permission, false);
            (true, format!("Permission '{permission}' removed from app '{name}'."))
        }
    };
    Ok(Reply::Plain(Value::list([removed.into(), message.into()])))
}

fn assert_internet_speed(world: &mut World, args: &Args) -> Result<Reply, Failure> {
    let (speed, name) = speed(world).unwrap_or((0.0, "No Connection"));
    let fast = compare(">=", &speed.into(), &args["expected_speed"])?.is_ge();
    Ok(match &args["expected_desc"] {
        Value::None => fast,
        Value::Str(expected) => fast && name.to_lowercase() == expected.to_lowercase(),
        _ if !fast => false,
        other => return no_attribute(other, "lower"),
    }
    .into())
}
