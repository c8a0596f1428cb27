//! What the phone makes of its settings and of where it is: network, speed, picture messages.

use super::state::{apn, device, set, surroundings};
use crate::{Failure, Value, World, python};

/// Looks for a network and sets what the phone is connected to.
pub(super) fn search(world: &mut World) -> Result<(), Failure> {
    if sim_status(world) == "active" {
        let signal = |technology: &str| {
            let signals = &surroundings(world)["signal_strength"];
            signals.entry(technology).cloned().unwrap_or_else(|| "none".into())
        };
        let technology = match device(world)["network_mode_preference"].as_str() {
            Some("4g_5g_preferred") if signal("5G") != "none" => "5G",
            Some("3g_only") => "3G",
            Some("2g_only") => "2G",
            _ => "4G",
        };
        let signal = signal(technology);
        set(world, "network_connection_status", "connected");
        set(world, "network_technology_connected", technology);
        set(world, "network_signal_strength", signal);
    } else {
        lose(world);
    }
    if device(world)["airplane_mode"].truthy() {
        lose(world);
    }
    if *apn(world, "apn_name")? == "broken" {
        lose(world);
    }
    if !surroundings(world)["line_active"].truthy() {
        lose(world);
    }
    Ok(())
}

fn lose(world: &mut World) {
    set(world, "network_connection_status", "no_service");
    set(world, "network_technology_connected", "none");
    set(world, "network_signal_strength", "none");
}

/// The state of the SIM card, whether it is in its place or not.
pub(super) fn sim_status(world: &World) -> &Value {
    static MISSING: std::sync::LazyLock<Value> = std::sync::LazyLock::new(|| "missing".into());
    let device = device(world);
    if device["sim_card_missing"].truthy() { &MISSING } else { &device["sim_card_status"] }
}

/// Whether mobile data work.
pub(super) fn data_working(world: &World) -> bool {
    let (device, around) = (device(world), surroundings(world));
    let roams = device["roaming_enabled"].truthy() && around["roaming_allowed"].truthy();
    !device["airplane_mode"].truthy()
        && device["network_signal_strength"] != "none"
        && device["network_connection_status"] != "no_service"
        && (!around["is_abroad"].truthy() || roams)
        && device["data_enabled"].truthy()
        && !around["mobile_data_usage_exceeded"].truthy()
}

/// The speed in Mbps and what to call it; `None` without a connection.
pub(super) fn speed(world: &World) -> Option<(f64, &'static str)> {
    if !data_working(world) {
        return None;
    }
    let device = device(world);
    let slow_vpn =
        device["vpn_connected"].truthy() && device["vpn_details"]["server_performance"] == "poor";
    let mut share = if slow_vpn { 0.1 } else { 1.0 };
    if device["data_saver_mode"].truthy() {
        share *= 0.2;
    }
    let (least, most) = match device["network_technology_connected"].as_str() {
        Some("2G") => (0.1, 0.4),
        Some("3G") => (1.0, 5.0),
        Some("4G") => (10.0, 100.0),
        Some("5G") => (50.0, 500.0),
        _ => (0.0, 0.0),
    };
    let signal = match device["network_signal_strength"].as_str() {
        Some("poor") => 0.2,
        Some("fair") => 0.5,
        Some("good") => 0.8,
        Some("excellent") => 1.0,
        _ => 0.0,
    };
    let speed: f64 = python::round((least + most) / 2.0 * signal * share, 2);
    let name = match speed {
        speed if speed < 1.0 => "Very Poor",
        speed if speed < 5.0 => "Poor",
        speed if speed < 25.0 => "Fair",
        speed if speed < 100.0 => "Good",
        _ => "Excellent",
    };
    Some((speed, name))
}

/// Whether the messaging app can send picture messages.
pub(super) fn can_send_mms(world: &World) -> Result<bool, Failure> {
    let device = device(world);
    if !data_working(world)
        || device["network_technology_connected"] == "2G"
        // The carrier does not carry picture messages over Wi-Fi.
        || (device["wifi_calling_enabled"].truthy() && device["wifi_calling_mms_over_wifi"].truthy())
        || apn(world, "mmsc_url")?.is_none()
    {
        return Ok(false);
    }
    let permissions = &device["app_statuses"]["messaging"]["permissions"];
    Ok(permissions["storage"].truthy() && permissions["sms"].truthy())
}
