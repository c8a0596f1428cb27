//! The state of the phone, and the turns of it that tools and initial states share.

use super::{super::common::no_attribute, signal::search};
use crate::{
    Args, Failure, Reply, Value, World,
    python::{str_of, type_name},
    raise,
};

/// The phone.
pub(super) fn device(world: &World) -> &Value {
    &world.user_db()["device"]
}

/// Where the user is, and what the carrier told the phone.
pub(super) fn surroundings(world: &World) -> &Value {
    &world.user_db()["surroundings"]
}

/// Sets something on the phone.
pub(super) fn set(world: &mut World, field: &'static str, value: impl Into<Value>) {
    put(world, "device", field, value.into());
}

/// Sets something around it.
pub(super) fn sense(world: &mut World, field: &'static str, value: impl Into<Value>) {
    put(world, "surroundings", field, value.into());
}

/// One of the access point settings. Whatever was set instead of settings has none.
pub(super) fn apn<'a>(world: &'a World, field: &str) -> Result<&'a Value, Failure> {
    match &device(world)["active_apn_settings"] {
        settings @ Value::Dict(_) => Ok(&settings[field]),
        other => no_attribute(other, field),
    }
}

pub(super) fn set_apn(
    world: &mut World,
    field: &'static str,
    value: impl Into<Value>,
) -> Result<(), Failure> {
    apn(world, field)?;
    if let Some(settings) = world.user_db_mut().at_mut(&["device", "active_apn_settings"]) {
        settings.set(field, value);
    }
    Ok(())
}

/// What is already so is not written: what is not written stays shared.
pub(super) fn put(world: &mut World, section: &str, field: &'static str, value: Value) {
    if world.user_db()[section][field].same(&value) {
        return;
    }
    if let Some(section) = world.user_db_mut().get_mut(section) {
        section.set(field, value);
    }
}

pub(super) fn status_bar(world: &World) -> String {
    let device = device(world);
    let mut shown: Vec<String> = Vec::new();
    if device["airplane_mode"].truthy() {
        shown.push("✈️ Airplane Mode".into());
    } else {
        let signal = match device["network_signal_strength"].as_str() {
            Some("poor") => "📶¹ Poor",
            Some("fair") => "📶² Fair",
            Some("good") => "📶³ Good",
            Some("excellent") => "📶⁴ Excellent",
            _ => "📵 No Signal",
        };
        shown.push(signal.into());
        let technology = &device["network_technology_connected"];
        let connected = *technology != "none";
        if connected {
            shown.push(str_of(technology));
        }
        if connected && device["data_enabled"].truthy() {
            shown.push("📱 Data Enabled".into());
            if device["data_saver_mode"].truthy() {
                shown.push("🔽 Data Saver".into());
            }
        } else {
            shown.push("📵 Data Disabled".into());
        }
    }
    if device["wifi_enabled"].truthy() && device["wifi_connected"].truthy() {
        let ssid = &device["wifi_ssid"];
        shown.push(if ssid.truthy() {
            format!("📡 Connected to {}", str_of(ssid))
        } else {
            "📡 Enabled".into()
        });
    }
    if device["vpn_connected"].truthy() {
        shown.push("🔒 VPN Connected".into());
    }
    shown.push(format!("🔋 {}%", str_of(&device["battery_level"])));
    shown.join(" | ")
}

pub(super) fn with_bar(world: &World, message: &str) -> Reply {
    format!("{message}\nStatus Bar: {}", status_bar(world)).into()
}

pub(super) fn on_off(on: bool) -> &'static str {
    if on { "ON" } else { "OFF" }
}

pub(super) fn toggle_airplane_mode(world: &mut World) -> Result<bool, Failure> {
    let on = !device(world)["airplane_mode"].truthy();
    set(world, "airplane_mode", on);
    if on || device(world)["wifi_enabled"].truthy() {
        drop_wifi(world);
    }
    if on {
        disconnect_vpn(world);
    }
    search(world)?;
    Ok(on)
}

pub(super) fn drop_wifi(world: &mut World) {
    set(world, "wifi_connected", false);
    set(world, "wifi_ssid", Value::None);
    set(world, "wifi_signal_strength", "none");
}

/// The server that the phone connects to by default. In the reference it is one object for the
/// phone and the default, so that what breaks one breaks the other.
pub(super) const DEFAULT_VPN: &str = "default_vpn";
pub(super) const VPN_IS_DEFAULT: &str = "vpn_is_default";

pub(super) fn connect_vpn(world: &mut World) -> bool {
    if device(world)["vpn_connected"].truthy() {
        return false;
    }
    let details = world.scratch.entry(DEFAULT_VPN).cloned().unwrap_or_else(|| {
        Value::dict([
            ("server_address", "192.168.1.1".into()),
            ("protocol", "OpenVPN".into()),
            ("server_performance", "excellent".into()),
        ])
    });
    set(world, "vpn_connected", true);
    set(world, "vpn_details", details);
    world.scratch.set(VPN_IS_DEFAULT, true);
    true
}

pub(super) fn disconnect_vpn(world: &mut World) -> bool {
    if !device(world)["vpn_connected"].truthy() {
        return false;
    }
    set(world, "vpn_connected", false);
    set(world, "vpn_details", Value::None);
    world.scratch.set(VPN_IS_DEFAULT, false);
    true
}

/// An app by name; `None` where there is none.
pub(super) fn app(world: &World, name: &Value) -> Result<Option<Value>, Failure> {
    match name {
        Value::Str(name) => Ok(device(world)["app_statuses"].entry(name).cloned()),
        Value::List(_) | Value::Dict(_) => raise(format!("unhashable type: '{}'", type_name(name))),
        _ => Ok(None),
    }
}

/// The app, its name and the name of the permission that a call is about.
pub(super) fn permission(
    world: &World,
    args: &Args,
) -> Result<(Option<Value>, String, String), Failure> {
    let app = app(world, &args["app_name"])?;
    let Value::Str(permission) = &args["permission"] else {
        return no_attribute(&args["permission"], "lower");
    };
    Ok((app, args.shown("app_name"), permission.to_lowercase()))
}

pub(super) fn set_permission(world: &mut World, app: &str, permission: &str, allowed: bool) {
    let place = ["device", "app_statuses", app, "permissions", permission];
    if let Some(place) = world.user_db_mut().at_mut(&place) {
        *place = allowed.into();
    }
}
