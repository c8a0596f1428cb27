//! The user's side: what can be seen and set on the phone.

use super::{
    super::common::no_attribute,
    shapes::{APN_SETTINGS, MODE, MODES},
    signal::{can_send_mms, search, sim_status, speed},
    state::{
        apn, app, connect_vpn, device, disconnect_vpn, drop_wifi, on_off, permission, sense, set,
        set_apn, set_permission, status_bar, surroundings, toggle_airplane_mode, with_bar,
    },
};
use crate::{
    Args, Failure, Reply, Tool, Value, World,
    python::{repr, str_of},
    raise,
    schema::{Field, Type, field},
    toolkit::{read, write},
};

pub(super) const APP: Field = field("app_name", Type::Str).about("Which app, by its name");

pub(super) static TOOLS: &[Tool] = &[
    read(
        "check_status_bar",
        "Look at the bar at the top of your phone's screen: signal, network, mobile data, Wi-Fi, \
         VPN and battery.",
        &[],
        |world, _| Ok(format!("Status Bar: {}", status_bar(world)).into()),
    ),
    read(
        "check_network_status",
        "See how your phone is connected: airplane mode, SIM card, signal, kind of network, mobile \
         data, data roaming and Wi-Fi.",
        &[],
        check_network_status,
    ),
    read(
        "check_network_mode_preference",
        "See which kinds of network your phone prefers.",
        &[],
        |world, _| match &device(world)["network_mode_preference"] {
            Value::Str(mode) => Ok(format!("Network Mode Preference: {mode}").into()),
            other => no_attribute(other, "value"),
        },
    ),
    write(
        "set_network_mode_preference",
        "Choose which kinds of network your phone prefers. Newer ones are faster and may need more \
         battery.",
        &[field("mode", Type::Union(&[MODE, Type::Str])).about("What to prefer")],
        set_network_mode_preference,
    ),
    read(
        "run_speed_test",
        "Measure how fast your mobile internet is and what it is good for.",
        &[],
        run_speed_test,
    ),
    write(
        "toggle_airplane_mode",
        "Switch airplane mode on or off. While it is on nothing is connected.",
        &[],
        |world, _| {
            let on = toggle_airplane_mode(world)?;
            Ok(with_bar(world, &format!("Airplane Mode is now {}.", on_off(on))))
        },
    ),
    read(
        "check_sim_status",
        "See whether your SIM card works, is missing, or is locked by its PIN or PUK.",
        &[],
        |world, _| {
            Ok(match sim_status(world).as_str().unwrap_or_default() {
                "active" => "Your SIM card is active and working.".into(),
                "missing" => "No SIM card detected in the phone.".into(),
                "locked_pin" => "The SIM card is locked with a PIN code.".into(),
                "locked_puk" => "The SIM card is locked with a PUK code.".into(),
                other => format!("Unknown SIM status: {other}").into(),
            })
        },
    ),
    write("reseat_sim_card", "Take your SIM card out and put it back in.", &[], |world, _| {
        set(world, "sim_card_missing", false);
        search(world)?;
        if *sim_status(world) == "missing" {
            // A failed assertion has no text.
            return raise("");
        }
        Ok(with_bar(world, "SIM card re-seated successfully."))
    }),
    write("toggle_data", "Switch mobile data on or off.", &[], |world, _| {
        toggled(world, "data_enabled", "Mobile Data", Then::Search)
    }),
    write(
        "toggle_roaming",
        "Switch data roaming on or off: whether your phone uses data in foreign networks.",
        &[],
        |world, _| toggled(world, "roaming_enabled", "Data Roaming", Then::Search),
    ),
    read(
        "check_data_restriction_status",
        "See whether something on your phone limits its use of data.",
        &[],
        |world, _| {
            Ok(if device(world)["data_saver_mode"].truthy() {
                "Data Saver mode is ON (limits data usage).".into()
            } else {
                "Data Saver mode is OFF.".into()
            })
        },
    ),
    write(
        "toggle_data_saver_mode",
        "Switch Data Saver on or off. It uses less data and makes them slower.",
        &[],
        |world, _| toggled(world, "data_saver_mode", "Data Saver Mode", Then::Nothing),
    ),
    read(
        "check_apn_settings",
        "See the settings with which your phone reaches the carrier's data network: the access \
         point and where picture messages go.",
        &[],
        check_apn_settings,
    ),
    write(
        "set_apn_settings",
        "Set the access point settings of your phone.",
        &[field("apn_settings", Type::Union(&[Type::Model(&APN_SETTINGS), Type::Object]))
            .about("All settings; those left out get their defaults")],
        set_apn_settings,
    ),
    write(
        "reset_apn_settings",
        "Have the access point settings put back to their defaults at the next restart.",
        &[],
        |world, _| {
            set_apn(world, "reset_at_reboot", true)?;
            search(world)?;
            Ok(with_bar(world, "APN settings will reset at reboot."))
        },
    ),
    read(
        "check_wifi_status",
        "See whether Wi-Fi is on, and which network it is connected to.",
        &[],
        check_wifi_status,
    ),
    write("toggle_wifi", "Switch Wi-Fi on or off.", &[], toggle_wifi),
    read("check_wifi_calling_status", "See whether calls may go over Wi-Fi.", &[], |world, _| {
        let state = on_off(device(world)["wifi_calling_enabled"].truthy());
        Ok(format!("Wi-Fi Calling is currently turned {state}.").into())
    }),
    write("toggle_wifi_calling", "Switch calls over Wi-Fi on or off.", &[], |world, _| {
        toggled(world, "wifi_calling_enabled", "Wi-Fi Calling", Then::Nothing)
    }),
    read(
        "check_vpn_status",
        "See whether a VPN is connected, and through which server.",
        &[],
        check_vpn_status,
    ),
    write("connect_vpn", "Connect your VPN.", &[], |world, _| {
        Ok(if connect_vpn(world) {
            with_bar(world, "VPN connected successfully.")
        } else {
            "VPN already connected.".into()
        })
    }),
    write("disconnect_vpn", "Disconnect your VPN.", &[], |world, _| {
        let disconnected = disconnect_vpn(world);
        let no = "No active VPN connection to disconnect.";
        Ok(with_bar(world, if disconnected { "VPN disconnected successfully." } else { no }))
    }),
    read("check_installed_apps", "List the apps on your phone.", &[], |world, _| {
        let apps = device(world)["app_statuses"].entries().iter();
        let names: Vec<&str> = apps.map(|(name, _)| &**name).collect();
        Ok(format!("The following apps are installed on the phone: {}", names.join(", ")).into())
    }),
    read("check_app_status", "See what an app on your phone may do.", &[APP], check_app_status),
    read(
        "check_app_permissions",
        "List the permissions that an app on your phone has.",
        &[APP],
        check_app_permissions,
    ),
    write(
        "grant_app_permission",
        "Give an app on your phone a permission.",
        &[APP, field("permission", Type::Str).about("Which permission, in lower case")],
        grant_app_permission,
    ),
    read(
        "can_send_mms",
        "See whether your messaging app can send picture messages.",
        &[],
        |world, _| {
            let can = if can_send_mms(world)? { "can" } else { "cannot" };
            Ok(format!("Your messaging app {can} send MMS messages.").into())
        },
    ),
    write("reboot_device", "Restart your phone.", &[], reboot_device),
    read(
        "check_payment_request",
        "See whether the carrier asked you to pay a bill.",
        &[],
        |world, _| {
            let request = &surroundings(world)["payment_request"];
            if request.is_none() {
                return Ok("No payment request has been made.".into());
            }
            let (bill, due) = (str_of(&request["bill_id"]), str_of(&request["amount_due"]));
            Ok(format!("You have a payment request for bill {bill} of {due} USD.").into())
        },
    ),
    write("make_payment", "Pay the bill that you were asked to pay.", &[], |world, _| {
        let mut request = surroundings(world)["payment_request"].clone();
        if request.is_none() {
            return Ok("You do not have a payment request.".into());
        }
        let (bill, due) = (str_of(&request["bill_id"]), str_of(&request["amount_due"]));
        request.set("paid", true);
        sense(world, "payment_request", request);
        Ok(format!("Payment of {due} USD has been made for bill {bill}.").into())
    }),
];

/// What follows when a switch is turned.
enum Then {
    Search,
    Nothing,
}

fn toggled(
    world: &mut World,
    field: &'static str,
    name: &str,
    then: Then,
) -> Result<Reply, Failure> {
    let on = !device(world)[field].truthy();
    set(world, field, on);
    if let Then::Search = then {
        search(world)?;
    }
    Ok(with_bar(world, &format!("{name} is now {}.", on_off(on))))
}

fn check_network_status(world: &mut World, _: &Args) -> Result<Reply, Failure> {
    let device = device(world);
    let switch = |name: &str| on_off(device[name].truthy());
    let yes = |name: &str| if device[name].truthy() { "Yes" } else { "No" };
    let mut lines = vec![
        format!("Airplane Mode: {}", switch("airplane_mode")),
        format!("SIM Card Status: {}", str_of(sim_status(world))),
        format!("Cellular Connection: {}", str_of(&device["network_connection_status"])),
        format!("Cellular Signal: {}", str_of(&device["network_signal_strength"])),
        format!("Cellular Network Type: {}", str_of(&device["network_technology_connected"])),
        format!("Mobile Data Enabled: {}", yes("data_enabled")),
        format!("Data Roaming Enabled: {}", yes("roaming_enabled")),
        format!("Wi-Fi Radio: {}", switch("wifi_enabled")),
        format!("Wi-Fi Connected: {}", yes("wifi_connected")),
    ];
    if device["wifi_connected"].truthy() {
        lines.push(format!("Connected Wi-Fi Network: {}", str_of(&device["wifi_ssid"])));
    }
    Ok(lines.join("\n").into())
}

fn set_network_mode_preference(world: &mut World, args: &Args) -> Result<Reply, Failure> {
    let mode = &args["mode"];
    let known = mode.as_str().is_none_or(|mode| MODES.contains(&mode));
    if known {
        // Anything but a text is taken unseen.
        set(world, "network_mode_preference", mode);
        search(world)?;
    }
    match mode {
        Value::Str(mode) if known => {
            Ok(with_bar(world, &format!("Preferred Network Mode set to: {mode}")))
        }
        Value::Str(_) | Value::None => Ok(with_bar(
            world,
            &format!(
                "Failed to set network mode: '{}' is not a valid option. Please use one of: {}",
                str_of(mode),
                MODES.join(", ")
            ),
        )),
        other => no_attribute(other, "value"),
    }
}

fn run_speed_test(world: &mut World, _: &Args) -> Result<Reply, Failure> {
    let Some((speed, name)) = speed(world) else {
        return Ok("Speed test failed: No Connection.".into());
    };
    let advice = match name {
        "Very Poor" => "Connection is very slow. Basic web browsing might be difficult.",
        "Poor" => "Connection is slow. Web browsing may be sluggish, streaming difficult.",
        "Fair" => "Connection is okay for web browsing and some standard definition streaming.",
        "Good" => "Connection is good for most activities, including HD streaming.",
        _ => "Connection is very fast.",
    };
    Ok(format!("Speed Test Result: {speed:.2} Mbps ({name}). {advice}").into())
}

fn check_apn_settings(world: &mut World, _: &Args) -> Result<Reply, Failure> {
    let (name, url) = (str_of(apn(world, "apn_name")?), apn(world, "mmsc_url")?);
    let url = if url.truthy() { str_of(url) } else { "Not Set".to_owned() };
    Ok(format!(
        "Current APN Name: {name}\nMMSC URL (for picture messages): {url}\n\
         (These are technical settings, usually best left unchanged.)"
    )
    .into())
}

fn set_apn_settings(world: &mut World, args: &Args) -> Result<Reply, Failure> {
    let settings = match &args["apn_settings"] {
        given @ Value::Dict(_) => APN_SETTINGS.read(given)?,
        // Anything else is taken unseen, and found to be no settings afterwards.
        other => other.clone(),
    };
    set(world, "active_apn_settings", settings);
    let name = str_of(apn(world, "apn_name")?);
    search(world)?;
    Ok(with_bar(world, &format!("APN settings set to: {name}")))
}

fn check_wifi_status(world: &mut World, _: &Args) -> Result<Reply, Failure> {
    let device = device(world);
    Ok(if !device["wifi_enabled"].truthy() {
        "Wi-Fi is turned OFF.".into()
    } else if device["wifi_connected"].truthy() {
        let (ssid, signal) =
            (str_of(&device["wifi_ssid"]), str_of(&device["wifi_signal_strength"]));
        format!("Wi-Fi is ON and connected to '{ssid}'. Signal strength: {signal}.").into()
    } else {
        "Wi-Fi is ON but not connected to any network.".into()
    })
}

fn toggle_wifi(world: &mut World, _: &Args) -> Result<Reply, Failure> {
    if device(world)["airplane_mode"].truthy() {
        return Ok(with_bar(world, "Cannot change Wi-Fi settings while Airplane Mode is ON."));
    }
    let on = !device(world)["wifi_enabled"].truthy();
    set(world, "wifi_enabled", on);
    if !on {
        drop_wifi(world);
    }
    Ok(with_bar(world, &format!("Wi-Fi is now {}.", on_off(on))))
}

fn check_vpn_status(world: &mut World, _: &Args) -> Result<Reply, Failure> {
    let device = device(world);
    let details = &device["vpn_details"];
    Ok(if device["vpn_connected"].truthy() && details.is_none() {
        "VPN is ON and connected (no specific details available).".into()
    } else if device["vpn_connected"].truthy() {
        let performance = str_of(&details["server_performance"]);
        format!(
            "VPN is ON and connected. Details: {{'server_address': {}, 'protocol': {}, \
             'server_performance': <PerformanceLevel.{}: '{performance}'>}}",
            repr(&details["server_address"]),
            repr(&details["protocol"]),
            performance.to_uppercase(),
        )
        .into()
    } else if device["vpn_enabled_setting"].truthy() {
        "VPN is turned ON in settings, but currently not connected.".into()
    } else {
        "VPN is turned OFF.".into()
    })
}

fn allowed(app: &Value) -> Vec<String> {
    let permissions = app["permissions"].entries().iter();
    permissions.filter(|(_, allowed)| allowed.truthy()).map(|(name, _)| name.to_string()).collect()
}

fn check_app_status(world: &mut World, args: &Args) -> Result<Reply, Failure> {
    let name = args.shown("app_name");
    let Some(app) = app(world, &args["app_name"])? else {
        return Ok(format!("App '{name}' not found on this phone.").into());
    };
    let mut lines = vec![format!("Status for App: {name}")];
    let allowed = allowed(&app);
    if allowed.is_empty() {
        lines.push(" - Permissions: None granted.".into());
    } else {
        lines.push(" - Permissions Granted:".into());
        lines.extend(allowed.iter().map(|permission| format!("   - {permission}")));
    }
    Ok(lines.join("\n").into())
}

fn check_app_permissions(world: &mut World, args: &Args) -> Result<Reply, Failure> {
    let name = args.shown("app_name");
    let Some(app) = app(world, &args["app_name"])? else {
        return Ok(format!("App '{name}' not found on this phone.").into());
    };
    let allowed = allowed(&app);
    if allowed.is_empty() {
        return Ok(format!("App '{name}' currently has no permissions granted.").into());
    }
    Ok(format!("App '{name}' has permission for: {}.", allowed.join(", ")).into())
}

fn grant_app_permission(world: &mut World, args: &Args) -> Result<Reply, Failure> {
    let message = match permission(world, args)? {
        (None, name, _) => format!("Error. App '{name}' not found. Cannot grant permission."),
        (Some(app), name, permission) if app["permissions"].entry(&permission).is_none() => {
            let known = app["permissions"].entries().iter().map(|(name, _)| name.into());
            format!(
                "Error. Permission '{permission}' not tracked for app '{name}', available \
                 permissions: {}",
                repr(&Value::list(known))
            )
        }
        (Some(_), name, permission) => {
            set_permission(world, &name, &permission, true);
            format!("Success. Permission '{permission}' granted to app '{name}'.")
        }
    };
    Ok(with_bar(world, &message))
}

fn reboot_device(world: &mut World, _: &Args) -> Result<Reply, Failure> {
    let mut lines = Vec::new();
    if apn(world, "reset_at_reboot")?.truthy() {
        lines.push("Resetting APN settings...");
        set(world, "active_apn_settings", APN_SETTINGS.with_defaults()?);
    }
    lines.push("Restarting network services...");
    set(world, "network_connection_status", "searching");
    search(world)?;
    Ok(with_bar(world, &lines.join("\n")))
}
