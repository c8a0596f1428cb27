//! The shapes of the carrier's records and of the user's phone.

use crate::{
    Value,
    schema::{Default, Field, Model, Type, field},
};

const MAYBE_TEXT: Type = Type::Optional(&Type::Str);
const MAYBE_DATE: Type = Type::Optional(&Type::Date);
const MAYBE_TIME: Type = Type::Optional(&Type::DateTime);

pub(super) static TELECOM_DB: Model = Model::strict(
    "TelecomDB",
    &[
        field("plans", Type::List(&Type::Model(&PLAN))).or(Default::List),
        field("customers", Type::List(&Type::Model(&CUSTOMER))).or(Default::List),
        field("lines", Type::List(&Type::Model(&LINE))).or(Default::List),
        field("bills", Type::List(&Type::Model(&BILL))).or(Default::List),
        field("devices", Type::List(&Type::Model(&DEVICE))).or(Default::List),
    ],
);

static PLAN: Model = Model::strict(
    "Plan",
    &[
        field("plan_id", Type::Str),
        field("name", Type::Str),
        field("data_limit_gb", Type::Float),
        field("price_per_month", Type::Float),
        field("data_refueling_price_per_gb", Type::Float),
    ],
);

static CUSTOMER: Model = Model::strict(
    "Customer",
    &[
        field("customer_id", Type::Str),
        field("full_name", Type::Str),
        field("date_of_birth", Type::Str),
        field("email", Type::Str),
        field("phone_number", Type::Str),
        field("address", Type::Model(&ADDRESS)),
        field(
            "account_status",
            Type::Enum("AccountStatus", &["Active", "Suspended", "Pending Verification", "Closed"]),
        )
        .or(Default::Str("Pending Verification")),
        field("payment_methods", Type::List(&Type::Model(&PAYMENT_METHOD))).or(Default::List),
        field("line_ids", Type::List(&Type::Str)).or(Default::List),
        field("bill_ids", Type::List(&Type::Str)).or(Default::List),
        // The reference's default is a date where times are held, and shows as one.
        field("created_at", Type::DateTime).or(Default::Str("2025-01-01")),
        field("last_extension_date", MAYBE_DATE).or(Default::None),
        field("goodwill_credit_used_this_year", Type::Float).or(Default::Float(0.0)),
    ],
);

static ADDRESS: Model = Model::strict(
    "Address",
    &[
        field("street", Type::Str),
        field("city", Type::Str),
        field("state", Type::Str),
        field("zip_code", Type::Str),
    ],
);

static PAYMENT_METHOD: Model = Model::strict(
    "PaymentMethod",
    &[
        field(
            "method_type",
            Type::Enum("PaymentMethodType", &["Credit Card", "Debit Card", "PayPal"]),
        ),
        field("account_number_last_4", Type::Str),
        field("expiration_date", Type::Str),
    ],
);

static LINE: Model = Model::strict(
    "Line",
    &[
        field("line_id", Type::Str),
        field("phone_number", Type::Str),
        field(
            "status",
            Type::Enum("LineStatus", &["Active", "Suspended", "Pending Activation", "Closed"]),
        )
        .or(Default::Str("Pending Activation")),
        field("plan_id", Type::Str),
        field("device_id", MAYBE_TEXT).or(Default::None),
        field("data_used_gb", Type::Float).or(Default::Float(0.0)),
        field("data_refueling_gb", Type::Float).or(Default::Float(0.0)),
        field("roaming_enabled", Type::Bool).or(Default::Bool(false)),
        field("contract_end_date", MAYBE_DATE).or(Default::None),
        field("last_plan_change_date", MAYBE_DATE).or(Default::None),
        field("last_sim_replacement_date", MAYBE_DATE).or(Default::None),
        field("suspension_start_date", MAYBE_DATE).or(Default::None),
    ],
);

pub(super) static BILL: Model = Model::strict(
    "Bill",
    &[
        field("bill_id", Type::Str),
        field("customer_id", Type::Str),
        field("period_start", Type::Date),
        field("period_end", Type::Date),
        field("issue_date", Type::Date),
        field("total_due", Type::Float),
        field("due_date", Type::Date),
        field("line_items", Type::List(&Type::Model(&LINE_ITEM))).or(Default::List),
        field(
            "status",
            Type::Enum(
                "BillStatus",
                &["Draft", "Issued", "Awaiting Payment", "Paid", "Overdue", "Disputed"],
            ),
        )
        .or(Default::Str("Draft")),
    ],
);

pub(super) static LINE_ITEM: Model = Model::strict(
    "LineItem",
    &[
        field("description", Type::Str),
        field("amount", Type::Float),
        field("date", Type::Date),
        field("item_type", Type::Str),
    ],
);

static DEVICE: Model = Model::strict(
    "Device",
    &[
        field("device_id", Type::Str),
        field(
            "device_type",
            Type::Enum("DeviceType", &["phone", "router", "tablet", "watch", "other"]),
        ),
        field("model", Type::Str),
        field("imei", MAYBE_TEXT).or(Default::None),
        field("is_esim_capable", Type::Bool),
        field("activated", Type::Bool).or(Default::Bool(false)),
        field("activation_date", MAYBE_TIME).or(Default::None),
        field("last_esim_transfer_date", MAYBE_TIME).or(Default::None),
    ],
);

pub(super) static TELECOM_USER_DB: Model = Model::strict(
    "TelecomUserDB",
    &[
        field("device", Type::Model(&PHONE)).or(Default::Model),
        field("surroundings", Type::Model(&SURROUNDINGS)).or(Default::Model),
    ],
);

/// The ways in which a phone may prefer networks.
pub(super) const MODES: &[&str] = &["4g_5g_preferred", "4g_only", "3g_only", "2g_only"];
pub(super) const MODE: Type = Type::Enum("NetworkModePreference", MODES);
const TECHNOLOGIES: &[&str] = &["none", "2G", "3G", "4G", "5G"];
const SIGNAL: Type = Type::Enum("SignalStrength", &["none", "poor", "fair", "good", "excellent"]);

const fn switch(name: &'static str, on: bool) -> Field {
    field(name, Type::Bool).or(Default::Bool(on))
}

static PHONE: Model = Model::strict(
    "MockPhoneAttributes",
    &[
        field(
            "sim_card_status",
            Type::Enum("SimStatus", &["active", "missing", "locked_pin", "locked_puk"]),
        )
        .or(Default::Str("active")),
        switch("sim_card_missing", false),
        switch("airplane_mode", false),
        field("network_signal_strength", SIGNAL).or(Default::Str("good")),
        field("network_technology_connected", Type::Enum("NetworkTechnology", TECHNOLOGIES))
            .or(Default::Str("5G")),
        field(
            "network_connection_status",
            Type::Enum(
                "NetworkStatus",
                &["connected", "searching", "no_service", "emergency_only"],
            ),
        )
        .or(Default::Str("connected")),
        field("battery_level", Type::Int).or(Default::Int(80)),
        switch("data_enabled", true),
        switch("roaming_enabled", false),
        field("network_mode_preference", MODE).or(Default::Str("4g_5g_preferred")),
        field("active_apn_settings", Type::Model(&APN_SETTINGS)).or(Default::Model),
        switch("wifi_enabled", false),
        switch("wifi_connected", false),
        field("wifi_ssid", MAYBE_TEXT).or(Default::None),
        field("wifi_signal_strength", SIGNAL).or(Default::Str("none")),
        switch("wifi_calling_enabled", false),
        switch("wifi_calling_mms_over_wifi", false),
        switch("data_saver_mode", false),
        switch("vpn_enabled_setting", false),
        switch("vpn_connected", false),
        field("vpn_details", Type::Optional(&Type::Model(&VPN_DETAILS))).or(Default::None),
        field("app_statuses", Type::Dict(&Type::Model(&APP_STATUS))).or(Default::Made(apps)),
    ],
);

pub(super) static APN_SETTINGS: Model = Model::strict(
    "APNSettings",
    &[
        field("apn_name", Type::Enum("APNNames", &["internet", "broken"]))
            .or(Default::Str("internet"))
            .about("What the access point is called"),
        switch("reset_at_reboot", false).about("Whether the next restart puts the defaults back"),
        field("mms_apn", MAYBE_TEXT)
            .or(Default::Str("mms"))
            .about("The access point for picture messages"),
        field("mmsc_url", MAYBE_TEXT)
            .or(Default::Str("http://mms.carrier.com/mms/wapenc"))
            .about("Where picture messages are sent to"),
        field("mms_proxy", MAYBE_TEXT)
            .or(Default::None)
            .about("The proxy for picture messages, where one is needed"),
        field("mms_port", Type::Optional(&Type::Int))
            .or(Default::None)
            .about("The port of that proxy"),
    ],
);

static VPN_DETAILS: Model = Model::strict(
    "VpnDetails",
    &[
        field("server_address", MAYBE_TEXT).or(Default::None),
        field("protocol", MAYBE_TEXT).or(Default::None),
        field(
            "server_performance",
            Type::Enum("PerformanceLevel", &["unknown", "poor", "fair", "good", "excellent"]),
        )
        .or(Default::Str("unknown")),
    ],
);

static APP_STATUS: Model = Model::strict(
    "AppStatus",
    &[
        field("app_name", Type::Str),
        field("permissions", Type::Model(&PERMISSIONS)).or(Default::Model),
    ],
);

static PERMISSIONS: Model = Model::strict(
    "AppPermissions",
    &[
        switch("sms", false),
        switch("storage", false),
        switch("phone", false),
        switch("network", false),
    ],
);

static SURROUNDINGS: Model = Model::strict(
    "UserSurroundings",
    &[
        field("name", MAYBE_TEXT).or(Default::None),
        field("phone_number", MAYBE_TEXT).or(Default::None),
        switch("is_abroad", false),
        switch("roaming_allowed", false),
        field("signal_strength", Type::Keyed(TECHNOLOGIES, &SIGNAL)).or(Default::Made(|| {
            Value::dict([
                ("2G", "poor".into()),
                ("3G", "fair".into()),
                ("4G", "good".into()),
                ("5G", "excellent".into()),
            ])
        })),
        switch("mobile_data_usage_exceeded", false),
        switch("line_active", true),
        field("payment_request", Type::Optional(&Type::Model(&PAYMENT_REQUEST))).or(Default::None),
    ],
);

pub(super) static PAYMENT_REQUEST: Model = Model::strict(
    "PaymentRequest",
    &[field("bill_id", Type::Str), field("amount_due", Type::Float), switch("paid", false)],
);

fn apps() -> Value {
    let app = |name: &str, allowed: [bool; 4]| {
        let [sms, storage, phone, network] = allowed.map(Value::from);
        let permissions = Value::dict([
            ("sms", sms),
            ("storage", storage),
            ("phone", phone),
            ("network", network),
        ]);
        Value::dict([("app_name", name.into()), ("permissions", permissions)])
    };
    Value::dict([
        ("messaging", app("messaging", [true, true, true, false])),
        ("browser", app("browser", [false, true, false, true])),
    ])
}
