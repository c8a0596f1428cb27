//! `retail`: products, users and orders.

mod change;
mod lookup;
mod shapes;

use crate::{
    DataDir, DataError, Domain, TaskSet, Tool, Toolkit,
    domains::common::{CALCULATE, TRANSFER},
    schema::{Field, Type, field},
    toolkit::{read, write},
};
use shapes::RETAIL_DB;

/// Loads the domain.
pub(super) fn load(data: &DataDir, _variant: Option<&str>) -> Result<Domain, DataError> {
    let db = data.database("retail", "db.json", &RETAIL_DB)?;
    let policy = data.text("retail", "policy.md")?;
    Ok(Domain::new("retail", Toolkit::new("RetailTools", TOOLS), db, policy))
}

/// Loads its tasks.
pub(super) fn tasks(data: &DataDir) -> Result<TaskSet, DataError> {
    data.tasks("retail", "tasks.json")
}

static TOOLS: &[Tool] = &[
    CALCULATE,
    write(
        "cancel_pending_order",
        "Cancel an order that is still pending. Explain it to the user and get an explicit yes \
         first. The order becomes 'cancelled' and is refunded: to a gift card at once, to other \
         payment methods within 5 to 7 business days. Returns the order.",
        &[
            ORDER_ID,
            field("reason", Type::Str)
                .about("Why: either 'no longer needed' or 'ordered by mistake'."),
        ],
        change::cancel,
    ),
    write(
        "exchange_delivered_order_items",
        "Exchange items of a delivered order for others of the same product. An order can be \
         returned or exchanged only once. Explain it to the user and get an explicit yes first.",
        &[ORDER_ID, ITEM_IDS, NEW_ITEM_IDS, PAYMENT_METHOD_ID],
        change::exchange,
    ),
    read(
        "find_user_id_by_name_zip",
        "Find a user's id by name and zip code. Try the email first; use this when the email does \
         not lead to the user.",
        &[
            field("first_name", Type::Str).about("The first name, such as 'John'."),
            field("last_name", Type::Str).about("The last name, such as 'Doe'."),
            field("zip", Type::Str).about("The zip code, such as '12345'."),
        ],
        lookup::user_by_name,
    ),
    read(
        "find_user_id_by_email",
        "Find a user's id by email.",
        &[field("email", Type::Str).about("The email, such as 'something@example.com'.")],
        lookup::user_by_email,
    ),
    read("get_order_details", "Look an order up.", &[ORDER_ID], lookup::order_details),
    read(
        "get_product_details",
        "Look up which items there are of a product.",
        &[field("product_id", Type::Str)
            .about("The product, such as '6086499569'. An item has another id.")],
        lookup::product_details,
    ),
    read(
        "get_item_details",
        "Look an item up.",
        &[field("item_id", Type::Str)
            .about("The item, such as '6086499569'. A product has another id.")],
        lookup::item_details,
    ),
    read(
        "get_user_details",
        "Look a user up, with their orders.",
        &[USER_ID],
        lookup::user_details,
    ),
    read(
        "list_all_product_types",
        "List the names and ids of all products. Each comes as several items with ids and options \
         of their own.",
        &[],
        lookup::product_types,
    ),
    write(
        "modify_pending_order_address",
        "Change where a pending order is sent. Explain it to the user and get an explicit yes \
         first.",
        &[ORDER_ID, ADDRESS1, ADDRESS2, CITY, STATE, COUNTRY, ZIP],
        change::order_address,
    ),
    write(
        "modify_pending_order_items",
        "Change items of a pending order for others of the same product. This can be done only \
         once for an order. Explain it to the user and get an explicit yes first.",
        &[ORDER_ID, ITEM_IDS, NEW_ITEM_IDS, PAYMENT_METHOD_ID],
        change::order_items,
    ),
    write(
        "modify_pending_order_payment",
        "Change how a pending order is paid. Explain it to the user and get an explicit yes first.",
        &[ORDER_ID, PAYMENT_METHOD_ID],
        change::order_payment,
    ),
    write(
        "modify_user_address",
        "Change the address of a user. Explain it to the user and get an explicit yes first.",
        &[USER_ID, ADDRESS1, ADDRESS2, CITY, STATE, COUNTRY, ZIP],
        change::user_address,
    ),
    write(
        "return_delivered_order_items",
        "Take back items of a delivered order. The order becomes 'return requested' and the user \
         gets an email about how to send them. Explain it to the user and get an explicit yes \
         first.",
        &[ORDER_ID, ITEM_IDS, PAYMENT_METHOD_ID],
        change::return_items,
    ),
    TRANSFER,
];

const USER_ID: Field = field("user_id", Type::Str).about("The user, such as 'sara_doe_496'.");
const ORDER_ID: Field =
    field("order_id", Type::Str).about("The order, such as '#W0000000', with its '#'.");
const ITEM_IDS: Field = field("item_ids", Type::List(&Type::Str))
    .about("The items it is about, each such as '1008292230'. An item may occur several times.");
const NEW_ITEM_IDS: Field = field("new_item_ids", Type::List(&Type::Str))
    .about("What they become: item for item in the same order, each of the same product.");
const PAYMENT_METHOD_ID: Field = field("payment_method_id", Type::Str).about(
    "Where the difference is paid from or refunded to, such as 'gift_card_0000000': see the \
     user's or the order's details.",
);
const ADDRESS1: Field =
    field("address1", Type::Str).about("The first line of the address, such as '123 Main St'.");
const ADDRESS2: Field =
    field("address2", Type::Str).about("The second line, such as 'Apt 1', or ''.");
const CITY: Field = field("city", Type::Str).about("The city, such as 'San Francisco'.");
const STATE: Field = field("state", Type::Str).about("The state, such as 'CA'.");
const COUNTRY: Field = field("country", Type::Str).about("The country, such as 'USA'.");
const ZIP: Field = field("zip", Type::Str).about("The zip code, such as '12345'.");
