//! Python's arithmetic on values: whole numbers stay whole, other types are a `TypeError`.

use std::cmp::Ordering;

use super::text::type_name;
use crate::{Failure, Value, raise};

/// `a + b`.
pub fn add(a: &Value, b: &Value) -> Result<Value, Failure> {
    if let (Value::Str(a), Value::Str(b)) = (a, b) {
        return Ok(format!("{a}{b}").into());
    }
    arithmetic("+", a, b, i64::checked_add, |a, b| a + b)
}

/// `a - b`.
pub fn subtract(a: &Value, b: &Value) -> Result<Value, Failure> {
    arithmetic("-", a, b, i64::checked_sub, |a, b| a - b)
}

/// `a * b`, for numbers.
pub fn multiply(a: &Value, b: &Value) -> Result<Value, Failure> {
    arithmetic("*", a, b, i64::checked_mul, |a, b| a * b)
}

/// `a / b`, which is always a float.
pub fn divide(a: &Value, b: &Value) -> Result<Value, Failure> {
    match (a.as_f64(), b.as_f64()) {
        (Some(_), Some(0.0)) if matches!((a, b), (Value::Float(_), _) | (_, Value::Float(_))) => {
            raise("float division by zero")
        }
        (Some(_), Some(0.0)) => raise("division by zero"),
        (Some(a), Some(b)) => Ok(Value::Float(a / b)),
        _ => unsupported("/", a, b),
    }
}

/// `-a`.
pub fn negate(a: &Value) -> Result<Value, Failure> {
    match a {
        Value::Float(number) => Ok(Value::Float(-number)),
        other => match other.as_i64() {
            Some(number) => subtract(&Value::Int(0), &Value::Int(number)),
            None => raise(format!("bad operand type for unary -: '{}'", type_name(other))),
        },
    }
}

/// How `a` compares to `b`; `operator` is named in the error for types without an order.
pub fn compare(operator: &str, a: &Value, b: &Value) -> Result<Ordering, Failure> {
    let order = match (a, b) {
        (Value::Str(a), Value::Str(b)) => Some(a.cmp(b)),
        _ => match (a.as_i64(), b.as_i64()) {
            (Some(a), Some(b)) => Some(a.cmp(&b)),
            _ => match (a.as_f64(), b.as_f64()) {
                (Some(a), Some(b)) => a.partial_cmp(&b),
                _ => None,
            },
        },
    };
    match order {
        Some(order) => Ok(order),
        None => raise(format!(
            "'{operator}' not supported between instances of '{}' and '{}'",
            type_name(a),
            type_name(b)
        )),
    }
}

/// `round(number, digits)`: to the nearest decimal of the exact value, ties to even.
pub fn round(number: f64, digits: usize) -> f64 {
    if !number.is_finite() {
        return number;
    }
    // Formatting rounds the exact binary value, which is what Python does too.
    format!("{number:.digits$}").parse().unwrap_or(number)
}

/// Python's `repr` of a float: the shortest text that reads back the same.
pub fn float_repr(number: f64) -> String {
    if number.is_nan() {
        return "nan".to_owned();
    }
    if number.is_infinite() {
        return if number > 0.0 { "inf" } else { "-inf" }.to_owned();
    }
    let scientific = format!("{number:e}");
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if (-4..16).contains(&exponent) {
        let plain = format!("{number}");
        return if plain.contains('.') { plain } else { format!("{plain}.0") };
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{mantissa}e{sign}{:02}", exponent.abs())
}

fn arithmetic(
    operator: &str,
    a: &Value,
    b: &Value,
    whole: fn(i64, i64) -> Option<i64>,
    float: fn(f64, f64) -> f64,
) -> Result<Value, Failure> {
    if let (Some(a), Some(b)) = (a.as_i64(), b.as_i64())
        && let Some(result) = whole(a, b)
    {
        return Ok(Value::Int(result));
    }
    match (a.as_f64(), b.as_f64()) {
        (Some(a), Some(b)) => Ok(Value::Float(float(a, b))),
        _ => unsupported(operator, a, b),
    }
}

fn unsupported(operator: &str, a: &Value, b: &Value) -> Result<Value, Failure> {
    raise(format!(
        "unsupported operand type(s) for {operator}: '{}' and '{}'",
        type_name(a),
        type_name(b)
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn floats_are_written_as_python_writes_them() {
        for (number, text) in [
            (65.0, "65.0"),
            (0.1 + 0.2, "0.30000000000000004"),
            (1e16, "1e+16"),
            (123_456_789_012_345_680.0, "1.2345678901234568e+17"),
            (1e-5, "1e-05"),
            (0.0001, "0.0001"),
            (-0.0, "-0.0"),
            (1e100, "1e+100"),
        ] {
            assert_eq!(float_repr(number), text);
        }
    }

    #[test]
    fn rounding_goes_by_the_exact_value_and_ties_to_even() {
        for (number, rounded) in [(2.675, 2.67), (0.125, 0.12), (0.375, 0.38), (1.005, 1.0)] {
            assert_eq!(round(number, 2), rounded, "{number}");
        }
    }

    #[test]
    fn whole_numbers_stay_whole_until_a_float_joins_in() {
        assert!(add(&1.into(), &2.into()).unwrap().same(&3.into()));
        assert!(add(&1.into(), &2.0.into()).unwrap().same(&3.0.into()));
        assert_eq!(
            add(&1.into(), &"a".into()).unwrap_err().to_string(),
            "unsupported operand type(s) for +: 'int' and 'str'"
        );
    }
}
