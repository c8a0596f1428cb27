//! The names that the calculator knows.

use num_bigint::BigInt;
use num_integer::Integer;
use num_rational::BigRational;
use num_traits::{Pow, ToPrimitive, Zero};

use super::number::Number;
use crate::suggest::did_you_mean;

type Outcome = Result<Number, String>;

pub(super) const CONSTANTS: [&str; 3] = ["pi", "e", "tau"];

pub(super) const FUNCTIONS: [&str; 31] = [
    "sqrt",
    "cbrt",
    "abs",
    "floor",
    "ceil",
    "round",
    "trunc",
    "sign",
    "min",
    "max",
    "sum",
    "mean",
    "pow",
    "mod",
    "gcd",
    "lcm",
    "factorial",
    "exp",
    "ln",
    "log",
    "log2",
    "log10",
    "sin",
    "cos",
    "tan",
    "asin",
    "acos",
    "atan",
    "atan2",
    "radians",
    "degrees",
];

pub(super) fn constant(name: &str) -> Outcome {
    match name {
        "pi" | "π" => Ok(Number::Approx(std::f64::consts::PI)),
        "e" => Ok(Number::Approx(std::f64::consts::E)),
        "tau" | "τ" => Ok(Number::Approx(std::f64::consts::TAU)),
        _ if FUNCTIONS.contains(&name) => Err(format!("{name} needs its values: write {name}(…)")),
        _ => Err(format!(
            "unknown name \"{name}\"{}: there are no variables",
            did_you_mean(name, CONSTANTS)
        )),
    }
}

pub(super) fn apply(name: &str, values: &[Number]) -> Outcome {
    match (name, values) {
        ("sqrt", [x]) => root(x, 2, "sqrt", f64::sqrt),
        ("cbrt", [x]) => root(x, 3, "cbrt", f64::cbrt),
        ("abs", [x]) => Ok(x.absolute()),
        ("floor", [x]) => x.to_whole(BigRational::floor, f64::floor),
        ("ceil", [x]) => x.to_whole(BigRational::ceil, f64::ceil),
        ("trunc", [x]) => x.to_whole(BigRational::trunc, f64::trunc),
        ("round", [x]) => x.to_whole(BigRational::round, f64::round),
        ("round", [x, digits]) => round_to(x, digits),
        ("sign", [x]) => Ok(sign(x)),
        ("min", [first, rest @ ..]) => Ok(extreme(first, rest, Number::is_less)),
        ("max", [first, rest @ ..]) => Ok(extreme(first, rest, |a, b| b.is_less(a))),
        ("sum", [first, rest @ ..]) => sum(first, rest),
        ("mean", [first, rest @ ..]) => sum(first, rest)?.divide(&Number::integer(values.len())),
        ("pow", [base, exponent]) => base.power(exponent),
        ("mod", [a, b]) => a.remainder(b),
        ("gcd", [first, rest @ ..]) => whole_fold(name, first, rest, |a, b| a.gcd(b)),
        ("lcm", [first, rest @ ..]) => whole_fold(name, first, rest, |a, b| a.lcm(b)),
        ("factorial", [x]) => factorial(x),
        ("exp", [x]) => nearly("exp", x, f64::exp),
        ("ln", [x]) => nearly("ln", x, f64::ln),
        ("log" | "log10", [x]) => logarithm(x, &Number::integer(10)),
        ("log2", [x]) => logarithm(x, &Number::integer(2)),
        ("log", [x, base]) => logarithm(x, base),
        ("sin", [x]) => nearly("sin", x, f64::sin),
        ("cos", [x]) => nearly("cos", x, f64::cos),
        ("tan", [x]) => nearly("tan", x, f64::tan),
        ("asin", [x]) => nearly("asin", x, f64::asin),
        ("acos", [x]) => nearly("acos", x, f64::acos),
        ("atan", [x]) => nearly("atan", x, f64::atan),
        ("atan2", [y, x]) => Number::approx(y.to_f64().atan2(x.to_f64())),
        ("radians", [x]) => nearly("radians", x, f64::to_radians),
        ("degrees", [x]) => nearly("degrees", x, f64::to_degrees),
        _ => Err(wrong_use(name, values.len())),
    }
}

fn wrong_use(name: &str, count: usize) -> String {
    let takes = match name {
        "min" | "max" | "sum" | "mean" | "gcd" | "lcm" => "at least 1 value",
        "pow" | "mod" | "atan2" => "2 values",
        "round" | "log" => "1 or 2 values",
        _ if FUNCTIONS.contains(&name) => "1 value",
        _ => {
            let hint = did_you_mean(name, FUNCTIONS);
            return format!("unknown function \"{name}\"{hint}");
        }
    };
    format!("{name} takes {takes}, got {count}")
}

/// A function of floating point. Its value at 0 is exact where it is 0 or 1, which spares the
/// reader a needless ≈.
fn nearly(name: &str, x: &Number, function: impl Fn(f64) -> f64) -> Outcome {
    let value = function(x.to_f64());
    if value.is_nan() || (value.is_infinite() && name == "ln") {
        return Err(format!("{name}({x}) has no real value"));
    }
    let at_zero = x.as_integer().is_some_and(Zero::is_zero);
    if at_zero && (value == 0.0 || value == 1.0) {
        return Ok(Number::integer(u8::from(value == 1.0)));
    }
    Number::approx(value)
}

fn root(x: &Number, degree: u32, name: &str, function: impl Fn(f64) -> f64) -> Outcome {
    match x.exact_root(degree) {
        Some(root) => Ok(root),
        None => nearly(name, x, function),
    }
}

/// The exact exponent if there is a whole one, else floating point.
fn logarithm(x: &Number, base: &Number) -> Outcome {
    let value = x.to_f64().ln() / base.to_f64().ln();
    if !value.is_finite() {
        return Err(format!("log({x}, {base}) has no real value"));
    }
    let whole = Number::Approx(value).to_whole(BigRational::round, f64::round)?;
    if let (Number::Exact(x), Number::Exact(power)) = (x, base.power(&whole)?)
        && *x == power
    {
        return Ok(whole);
    }
    Number::approx(value)
}

fn round_to(x: &Number, digits: &Number) -> Outcome {
    let digits = digits
        .as_integer()
        .and_then(BigInt::to_i32)
        .filter(|digits| digits.abs() <= 300)
        .ok_or_else(|| format!("round takes a whole number of digits up to 300, got {digits}"))?;
    let scale: BigRational = Pow::pow(&BigRational::from_integer(BigInt::from(10)), digits);
    let exact = match x {
        Number::Exact(value) => value.clone(),
        // The nearest double to 2.675 is a little less; rounding that exactly is right.
        Number::Approx(value) => BigRational::from_float(*value)
            .ok_or_else(|| format!("round({x}) has no real value"))?,
    };
    Number::exact((exact * &scale).round() / scale)
}

fn sign(x: &Number) -> Number {
    let zero = Number::integer(0);
    if x.is_less(&zero) { Number::integer(-1) } else { Number::integer(u8::from(zero.is_less(x))) }
}

fn extreme(first: &Number, rest: &[Number], better: impl Fn(&Number, &Number) -> bool) -> Number {
    rest.iter().fold(first, |best, next| if better(next, best) { next } else { best }).clone()
}

fn sum(first: &Number, rest: &[Number]) -> Outcome {
    rest.iter().try_fold(first.clone(), |sum, next| sum.add(next))
}

fn whole_fold(
    name: &str,
    first: &Number,
    rest: &[Number],
    combine: impl Fn(&BigInt, &BigInt) -> BigInt,
) -> Outcome {
    let whole = |x: &Number| {
        x.as_integer().cloned().ok_or_else(|| format!("{name} takes whole numbers, got {x}"))
    };
    // Back through `exact` at every step, so that a long list cannot grow without bound.
    rest.iter().try_fold(Number::integer(whole(first)?), |all, next| {
        let combined = combine(&whole(&all)?, &whole(next)?);
        Number::exact(BigRational::from_integer(combined))
    })
}

pub(super) fn factorial(x: &Number) -> Outcome {
    let count = x
        .as_integer()
        .filter(|n| **n >= BigInt::zero())
        .ok_or_else(|| format!("a factorial takes a whole number from 0 on, got {x}"))?;
    // 1000! is far beyond what is kept exactly, and beyond a double too.
    let count = count
        .to_u32()
        .filter(|n| *n <= 1000)
        .ok_or_else(|| "the result is too large".to_owned())?;
    let product = (1..=count).fold(BigInt::from(1), |product, factor| product * factor);
    Number::exact(BigRational::from_integer(product))
}
