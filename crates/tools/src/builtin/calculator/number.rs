//! The calculator's numbers: fractions that are exact, and floating point where nothing else can
//! hold the value.

use std::fmt;

use num_bigint::BigInt;
use num_rational::BigRational;
use num_traits::{One, Pow, Signed, ToPrimitive, Zero};

/// Exact numbers stay below this size, so that no expression takes long or fills the memory.
const MOST_BITS: u64 = 4096;
/// A fraction with at most this many decimals is written out; a longer one is rounded.
const MOST_DECIMALS: usize = 40;
/// How many digits of a rounded number are shown. A double has 15 that can be trusted.
const DIGITS: usize = 15;

#[derive(Clone, Debug)]
pub(super) enum Number {
    Exact(BigRational),
    Approx(f64),
}

type Outcome = Result<Number, String>;

impl Number {
    pub(super) fn integer(value: impl Into<BigInt>) -> Self {
        Self::Exact(BigRational::from_integer(value.into()))
    }

    /// An exact result, or its nearest double if it has grown too large to carry on exactly.
    pub(super) fn exact(value: BigRational) -> Outcome {
        if value.numer().bits() + value.denom().bits() <= MOST_BITS {
            return Ok(Self::Exact(value));
        }
        Self::approx(value.to_f64().unwrap_or(f64::INFINITY))
    }

    pub(super) fn approx(value: f64) -> Outcome {
        if value.is_finite() {
            Ok(Self::Approx(value))
        } else {
            Err("the result is too large".to_owned())
        }
    }

    pub(super) fn to_f64(&self) -> f64 {
        match self {
            Self::Exact(value) => value.to_f64().unwrap_or(f64::NAN),
            Self::Approx(value) => *value,
        }
    }

    /// The whole number that this is exactly.
    pub(super) fn as_integer(&self) -> Option<&BigInt> {
        match self {
            Self::Exact(value) if value.is_integer() => Some(value.numer()),
            _ => None,
        }
    }

    fn is_zero(&self) -> bool {
        match self {
            Self::Exact(value) => value.is_zero(),
            Self::Approx(value) => *value == 0.0,
        }
    }

    fn combine(
        &self,
        other: &Self,
        exactly: impl Fn(&BigRational, &BigRational) -> BigRational,
        nearly: impl Fn(f64, f64) -> f64,
    ) -> Outcome {
        match (self, other) {
            (Self::Exact(a), Self::Exact(b)) => Self::exact(exactly(a, b)),
            _ => Self::approx(nearly(self.to_f64(), other.to_f64())),
        }
    }

    pub(super) fn add(&self, other: &Self) -> Outcome {
        self.combine(other, |a, b| a + b, |a, b| a + b)
    }

    pub(super) fn subtract(&self, other: &Self) -> Outcome {
        self.combine(other, |a, b| a - b, |a, b| a - b)
    }

    pub(super) fn multiply(&self, other: &Self) -> Outcome {
        self.combine(other, |a, b| a * b, |a, b| a * b)
    }

    pub(super) fn divide(&self, other: &Self) -> Outcome {
        if other.is_zero() {
            return Err("division by zero".to_owned());
        }
        self.combine(other, |a, b| a / b, |a, b| a / b)
    }

    /// What is left after division; it has the sign of the divisor.
    pub(super) fn remainder(&self, other: &Self) -> Outcome {
        if other.is_zero() {
            return Err("division by zero".to_owned());
        }
        self.combine(other, |a, b| a - b * (a / b).floor(), |a, b| a - b * (a / b).floor())
    }

    pub(super) fn negate(&self) -> Self {
        match self {
            Self::Exact(value) => Self::Exact(-value),
            Self::Approx(value) => Self::Approx(-value),
        }
    }

    pub(super) fn absolute(&self) -> Self {
        match self {
            Self::Exact(value) => Self::Exact(value.abs()),
            Self::Approx(value) => Self::Approx(value.abs()),
        }
    }

    pub(super) fn power(&self, exponent: &Self) -> Outcome {
        if let (Self::Exact(base), Some(exponent)) = (self, exponent.as_integer()) {
            if base.is_zero() && exponent.is_negative() {
                return Err("division by zero".to_owned());
            }
            // Only 0, 1 and -1 do not grow, so any exponent is fine for them.
            if base.is_integer() && base.numer().bits() <= 1 {
                let odd = exponent.bit(0);
                return Ok(match (base.is_zero(), exponent.is_zero()) {
                    (true, false) => self.clone(),
                    _ if base.is_negative() && odd => self.clone(),
                    _ => Self::integer(1),
                });
            }
            let bits = base.numer().bits() + base.denom().bits();
            let small = exponent.to_i32().filter(|e| {
                bits.saturating_mul(u64::from(e.unsigned_abs())) <= MOST_BITS.saturating_mul(2)
            });
            if let Some(exponent) = small {
                return Self::exact(Pow::pow(base, exponent));
            }
        }
        if let Self::Exact(fraction) = exponent
            && *fraction == BigRational::new(BigInt::one(), BigInt::from(2))
            && let Some(root) = self.exact_root(2)
        {
            return Ok(root);
        }
        let value = self.to_f64().powf(exponent.to_f64());
        if value.is_nan() {
            return Err(format!("({self})^({exponent}) has no real value"));
        }
        Self::approx(value)
    }

    /// The root, if it is a fraction: 0.5 for the square root of 0.25.
    pub(super) fn exact_root(&self, degree: u32) -> Option<Self> {
        let Self::Exact(value) = self else { return None };
        if value.is_negative() && degree.is_multiple_of(2) {
            return None;
        }
        let root = BigRational::new(value.numer().nth_root(degree), value.denom().nth_root(degree));
        let power = i32::try_from(degree).ok()?;
        (Pow::pow(&root, power) == *value).then_some(Self::Exact(root))
    }

    /// A function that makes a whole number of any.
    pub(super) fn to_whole(
        &self,
        exactly: impl Fn(&BigRational) -> BigRational,
        nearly: impl Fn(f64) -> f64,
    ) -> Outcome {
        match self {
            Self::Exact(value) => Self::exact(exactly(value)),
            Self::Approx(value) => {
                let whole = nearly(*value);
                match BigRational::from_float(whole) {
                    Some(exact) if whole.abs() < 9e15 => Self::exact(exact),
                    _ => Self::approx(whole),
                }
            }
        }
    }

    pub(super) fn is_less(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Exact(a), Self::Exact(b)) => a < b,
            _ => self.to_f64() < other.to_f64(),
        }
    }
}

impl fmt::Display for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exact(value) => match exact_decimal(value) {
                Some(text) => f.write_str(&text),
                None => write!(f, "≈ {}", rounded_fraction(value)),
            },
            Self::Approx(value) => write!(f, "≈ {}", rounded(*value)),
        }
    }
}

/// The fraction as a decimal that ends, if there is a short one.
fn exact_decimal(value: &BigRational) -> Option<String> {
    if value.is_integer() {
        return Some(value.numer().to_string());
    }
    let mut rest = value.denom().clone();
    let mut count = |prime: u32| {
        let prime = BigInt::from(prime);
        let mut times = 0usize;
        while (&rest % &prime).is_zero() && times <= MOST_DECIMALS {
            rest /= &prime;
            times += 1;
        }
        times
    };
    let decimals = count(2).max(count(5));
    if !rest.is_one() || decimals > MOST_DECIMALS {
        return None;
    }
    let scaled = value * BigRational::from_integer(Pow::pow(BigInt::from(10), decimals));
    Some(with_point(&scaled.to_integer(), decimals))
}

/// The digits with a point before the last `decimals` of them.
fn with_point(scaled: &BigInt, decimals: usize) -> String {
    let sign = if scaled.is_negative() { "-" } else { "" };
    let digits = format!("{:0>width$}", scaled.abs().to_string(), width = decimals + 1);
    let (whole, fraction) = digits.split_at(digits.len() - decimals);
    format!("{sign}{whole}.{fraction}")
}

/// A fraction to [`DIGITS`] digits. It may be out of a double's range, so it is divided by a power
/// of ten first.
fn rounded_fraction(value: &BigRational) -> String {
    if let Some(double) = value.to_f64()
        && double.is_finite()
        && double.abs() > f64::MIN_POSITIVE
    {
        return rounded(double);
    }
    // The number of decimal digits, from the bits, is right to within one.
    let bits = i64::try_from(value.numer().bits()).unwrap_or(0)
        - i64::try_from(value.denom().bits()).unwrap_or(0);
    let exponent = i32::try_from(bits * 30103 / 100_000).unwrap_or(0);
    let scale: BigRational = Pow::pow(&BigRational::from_integer(BigInt::from(10)), exponent);
    let mantissa = (value / scale).to_f64().unwrap_or(f64::NAN);
    scientific(mantissa, exponent)
}

fn rounded(value: f64) -> String {
    scientific(value, 0)
}

/// `value · 10^shift` to [`DIGITS`] digits, written plainly while that is short.
fn scientific(value: f64, shift: i32) -> String {
    if value == 0.0 {
        return "0".to_owned();
    }
    let text = format!("{:.*e}", DIGITS - 1, value.abs());
    let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let exponent = exponent.parse::<i32>().unwrap_or(0) + shift;
    let digits: String = mantissa.chars().filter(char::is_ascii_digit).collect();
    let digits = digits.trim_end_matches('0');
    let sign = if value < 0.0 { "-" } else { "" };
    let body = match exponent {
        0..=20 => {
            let whole = usize::try_from(exponent).unwrap_or(0) + 1;
            if digits.len() <= whole {
                format!("{digits:0<whole$}")
            } else {
                let (front, back) = digits.split_at(whole);
                format!("{front}.{back}")
            }
        }
        -6..=-1 => {
            let zeros = "0".repeat(usize::try_from(-exponent - 1).unwrap_or(0));
            format!("0.{zeros}{digits}")
        }
        _ => {
            let (front, back) = digits.split_at(digits.len().min(1));
            let point = if back.is_empty() { "" } else { "." };
            format!("{front}{point}{back}e{exponent}")
        }
    };
    format!("{sign}{body}")
}
