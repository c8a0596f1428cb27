//! The shapes of the shop's data.

use crate::schema::{Default, Model, Type, field};

pub(super) static RETAIL_DB: Model = Model::strict(
    "RetailDB",
    &[
        field("products", Type::Dict(&Type::Model(&PRODUCT))),
        field("users", Type::Dict(&Type::Model(&USER))),
        field("orders", Type::Dict(&Type::Model(&ORDER))),
    ],
);

static PRODUCT: Model = Model::new(
    "Product",
    &[
        field("name", Type::Str),
        field("product_id", Type::Str),
        field("variants", Type::Dict(&Type::Model(&VARIANT))),
    ],
);

static VARIANT: Model = Model::new(
    "Variant",
    &[
        field("item_id", Type::Str),
        field("options", Type::Dict(&Type::Str)),
        field("available", Type::Bool),
        field("price", Type::Float),
    ],
);

static USER: Model = Model::new(
    "User",
    &[
        field("user_id", Type::Str),
        field("name", Type::Model(&USER_NAME)),
        field("address", Type::Model(&USER_ADDRESS)),
        field("email", Type::Str),
        field("payment_methods", Type::Dict(&PAYMENT_METHOD)),
        field("orders", Type::List(&Type::Str)),
    ],
);

static USER_NAME: Model =
    Model::new("UserName", &[field("first_name", Type::Str), field("last_name", Type::Str)]);

pub(super) static USER_ADDRESS: Model = Model::new(
    "UserAddress",
    &[
        field("address1", Type::Str),
        field("address2", Type::Str),
        field("city", Type::Str),
        field("country", Type::Str),
        field("state", Type::Str),
        field("zip", Type::Str),
    ],
);

const PAYMENT_METHOD: Type =
    Type::Union(&[Type::Model(&CREDIT_CARD), Type::Model(&GIFT_CARD), Type::Model(&PAYPAL)]);

static CREDIT_CARD: Model = Model::new(
    "CreditCard",
    &[
        field("source", Type::Literal(&["credit_card"])),
        field("id", Type::Str),
        field("brand", Type::Str),
        field("last_four", Type::Str),
    ],
);

static GIFT_CARD: Model = Model::new(
    "GiftCard",
    &[
        field("source", Type::Literal(&["gift_card"])),
        field("id", Type::Str),
        field("balance", Type::Float),
    ],
);

static PAYPAL: Model =
    Model::new("Paypal", &[field("source", Type::Literal(&["paypal"])), field("id", Type::Str)]);

static ORDER: Model = Model::new(
    "Order",
    &[
        field("order_id", Type::Str),
        field("user_id", Type::Str),
        field("address", Type::Model(&USER_ADDRESS)),
        field("items", Type::List(&Type::Model(&ORDER_ITEM))),
        field("status", ORDER_STATUS),
        field("fulfillments", Type::List(&Type::Model(&FULFILLMENT))),
        field("payment_history", Type::List(&Type::Model(&ORDER_PAYMENT))),
        field("cancel_reason", Type::Optional(&CANCEL_REASON)).or(Default::None),
        field("exchange_items", OPTIONAL_IDS).or(Default::None),
        field("exchange_new_items", OPTIONAL_IDS).or(Default::None),
        field("exchange_payment_method_id", Type::Optional(&Type::Str)).or(Default::None),
        field("exchange_price_difference", Type::Optional(&Type::Float)).or(Default::None),
        field("return_items", OPTIONAL_IDS).or(Default::None),
        field("return_payment_method_id", Type::Optional(&Type::Str)).or(Default::None),
    ],
);

const OPTIONAL_IDS: Type = Type::Optional(&Type::List(&Type::Str));
const CANCEL_REASON: Type = Type::Literal(&["no longer needed", "ordered by mistake"]);
const ORDER_STATUS: Type = Type::Literal(&[
    "processed",
    "pending",
    "pending (item modified)",
    "delivered",
    "cancelled",
    "exchange requested",
    "return requested",
]);

static ORDER_ITEM: Model = Model::new(
    "OrderItem",
    &[
        field("name", Type::Str),
        field("product_id", Type::Str),
        field("item_id", Type::Str),
        field("price", Type::Float),
        field("options", Type::Dict(&Type::Str)),
    ],
);

static FULFILLMENT: Model = Model::new(
    "OrderFullfilment",
    &[field("tracking_id", Type::List(&Type::Str)), field("item_ids", Type::List(&Type::Str))],
);

pub(super) static ORDER_PAYMENT: Model = Model::new(
    "OrderPayment",
    &[
        field("transaction_type", Type::Literal(&["payment", "refund"])),
        field("amount", Type::Float),
        field("payment_method_id", Type::Str),
    ],
);
