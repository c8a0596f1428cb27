//! The `calculate` tool: Python's arithmetic over digits, `+ - * / ** // ( ) .` and spaces.

use super::number::{float_repr, round};
use crate::{Failure, raise};

/// The letters of an expression.
pub const CALCULATED: &str = "0123456789+-*/(). ";

/// Evaluates an expression and rounds it to two places, as the reference's tool does.
pub fn calculate(expression: &str) -> Result<String, Failure> {
    if !expression.chars().all(|letter| CALCULATED.contains(letter)) {
        return raise("Invalid characters in expression");
    }
    let tokens = tokens(expression)?;
    let mut parser = Parser { tokens: &tokens, at: 0, depth: 0 };
    let value = parser.sum()?;
    if parser.at < tokens.len() {
        return parser.syntax_error();
    }
    Ok(float_repr(round(value.to_float()?, 2)))
}

/// Python nests at most this deep; deeper input must not exhaust our stack either.
const MAX_DEPTH: usize = 100;

#[derive(Clone, Copy, Debug, PartialEq)]
enum Token {
    Number(Number),
    Plus,
    Minus,
    Times,
    Over,
    Floor,
    Power,
    Open,
    Close,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Number {
    Whole(i128),
    Float(f64),
}

use Number::{Float, Whole};

impl Number {
    #[allow(clippy::cast_precision_loss)]
    fn to_float(self) -> Result<f64, Failure> {
        match self {
            Float(number) => Ok(number),
            Whole(number) => Ok(number as f64),
        }
    }
}

struct Parser<'a> {
    tokens: &'a [Token],
    at: usize,
    depth: usize,
}

impl Parser<'_> {
    fn peek(&self) -> Option<Token> {
        self.tokens.get(self.at).copied()
    }

    fn take(&mut self, token: Token) -> bool {
        let found = self.peek() == Some(token);
        self.at += usize::from(found);
        found
    }

    fn syntax_error<T>(&self) -> Result<T, Failure> {
        let open = self.tokens.iter().filter(|token| **token == Token::Open).count();
        let close = self.tokens.iter().filter(|token| **token == Token::Close).count();
        if open > close && self.peek().is_none() {
            return raise("'(' was never closed (<string>, line 1)");
        }
        if close > open && self.peek() == Some(Token::Close) {
            return raise("unmatched ')' (<string>, line 1)");
        }
        raise("invalid syntax (<string>, line 1)")
    }

    fn sum(&mut self) -> Result<Number, Failure> {
        let mut left = self.product()?;
        loop {
            if self.take(Token::Plus) {
                left = combine(left, self.product()?, i128::checked_add, |a, b| a + b)?;
            } else if self.take(Token::Minus) {
                left = combine(left, self.product()?, i128::checked_sub, |a, b| a - b)?;
            } else {
                return Ok(left);
            }
        }
    }

    fn product(&mut self) -> Result<Number, Failure> {
        let mut left = self.signed()?;
        loop {
            if self.take(Token::Times) {
                left = combine(left, self.signed()?, i128::checked_mul, |a, b| a * b)?;
            } else if self.take(Token::Over) {
                left = over(left, self.signed()?)?;
            } else if self.take(Token::Floor) {
                left = floor_over(left, self.signed()?)?;
            } else {
                return Ok(left);
            }
        }
    }

    fn signed(&mut self) -> Result<Number, Failure> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return raise("too many nested parentheses (<string>, line 1)");
        }
        let value = if self.take(Token::Plus) {
            self.signed()
        } else if self.take(Token::Minus) {
            combine(Whole(0), self.signed()?, i128::checked_sub, |_, b| -b)
        } else {
            self.power()
        };
        self.depth -= 1;
        value
    }

    fn power(&mut self) -> Result<Number, Failure> {
        let base = self.atom()?;
        if self.take(Token::Power) { raised(base, self.signed()?) } else { Ok(base) }
    }

    fn atom(&mut self) -> Result<Number, Failure> {
        let value = match self.peek() {
            Some(Token::Number(number)) => {
                self.at += 1;
                number
            }
            Some(Token::Open) => {
                self.at += 1;
                if self.take(Token::Close) {
                    return raise(
                        "float() argument must be a string or a real number, not 'tuple'",
                    );
                }
                let inner = self.sum()?;
                if !self.take(Token::Close) {
                    return self.syntax_error();
                }
                inner
            }
            _ => return self.syntax_error(),
        };
        if self.peek() == Some(Token::Open) {
            let kind = if matches!(value, Whole(_)) { "int" } else { "float" };
            return raise(format!("'{kind}' object is not callable"));
        }
        Ok(value)
    }
}

fn tokens(expression: &str) -> Result<Vec<Token>, Failure> {
    let mut tokens = Vec::new();
    let mut rest = expression.trim_start_matches(' ');
    while let Some(letter) = rest.chars().next() {
        let (token, length) = match letter {
            ' ' => {
                rest = rest.get(1..).unwrap_or_default();
                continue;
            }
            '+' => (Token::Plus, 1),
            '-' => (Token::Minus, 1),
            '(' => (Token::Open, 1),
            ')' => (Token::Close, 1),
            '*' if rest.starts_with("**") => (Token::Power, 2),
            '*' => (Token::Times, 1),
            '/' if rest.starts_with("//") => (Token::Floor, 2),
            '/' => (Token::Over, 1),
            _ => number(rest)?,
        };
        tokens.push(token);
        rest = rest.get(length..).unwrap_or_default();
    }
    Ok(tokens)
}

fn number(text: &str) -> Result<(Token, usize), Failure> {
    let whole = text.bytes().take_while(u8::is_ascii_digit).count();
    let after = text.get(whole..).unwrap_or_default();
    if let Some(fraction) = after.strip_prefix('.') {
        let digits = fraction.bytes().take_while(u8::is_ascii_digit).count();
        let length = whole + 1 + digits;
        if whole + digits == 0 {
            return raise("invalid syntax (<string>, line 1)");
        }
        let text = text.get(..length).unwrap_or_default();
        let padded = format!("0{text}0");
        return Ok((Token::Number(Float(padded.parse().unwrap_or(f64::INFINITY))), length));
    }
    let digits = text.get(..whole).unwrap_or_default();
    if digits.len() > 1 && digits.starts_with('0') && digits.bytes().any(|digit| digit != b'0') {
        return raise(
            "leading zeros in decimal integer literals are not permitted; use an 0o prefix for \
             octal integers (<string>, line 1)",
        );
    }
    let number = digits.parse().map_or_else(|_| Float(digits.parse().unwrap_or(f64::MAX)), Whole);
    Ok((Token::Number(number), whole))
}

fn combine(
    a: Number,
    b: Number,
    whole: fn(i128, i128) -> Option<i128>,
    float: fn(f64, f64) -> f64,
) -> Result<Number, Failure> {
    if let (Whole(a), Whole(b)) = (a, b)
        && let Some(result) = whole(a, b)
    {
        return Ok(Whole(result));
    }
    Ok(Float(float(a.to_float()?, b.to_float()?)))
}

fn over(a: Number, b: Number) -> Result<Number, Failure> {
    match (a, b) {
        (Whole(_), Whole(0)) => raise("division by zero"),
        (_, Whole(0)) => raise("float division by zero"),
        (_, Float(0.0)) => raise("float division by zero"),
        _ => Ok(Float(a.to_float()? / b.to_float()?)),
    }
}

fn floor_over(a: Number, b: Number) -> Result<Number, Failure> {
    match (a, b) {
        (Whole(_), Whole(0)) => raise("integer division or modulo by zero"),
        (Whole(a), Whole(b)) => {
            let quotient = a / b;
            Ok(Whole(quotient - i128::from(a % b != 0 && (a < 0) != (b < 0))))
        }
        (_, Whole(0)) | (_, Float(0.0)) => raise("float floor division by zero"),
        _ => {
            let (a, b) = (a.to_float()?, b.to_float()?);
            let mut rest = a % b;
            if rest != 0.0 && (rest < 0.0) != (b < 0.0) {
                rest += b;
            }
            Ok(Float(((a - rest) / b).round()))
        }
    }
}

fn raised(base: Number, exponent: Number) -> Result<Number, Failure> {
    if let (Whole(base), Whole(exponent)) = (base, exponent)
        && let Ok(exponent) = u32::try_from(exponent)
        && let Some(result) = base.checked_pow(exponent)
    {
        return Ok(Whole(result));
    }
    let (floats, power) = (base.to_float()?, exponent.to_float()?);
    if floats == 0.0 && power < 0.0 {
        return raise("0.0 cannot be raised to a negative power");
    }
    if floats < 0.0 && power.fract() != 0.0 {
        return raise("float() argument must be a string or a real number, not 'complex'");
    }
    let result = floats.powf(power);
    if result.is_infinite() {
        return match (base, exponent) {
            (Whole(_), Whole(_)) => raise("int too large to convert to float"),
            _ => raise("(34, 'Numerical result out of range')"),
        };
    }
    Ok(Float(result))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arithmetic_is_pythons() {
        for (expression, result) in [
            ("2 + 2", "4.0"),
            ("1 + 2 * 3 - 4 / 5", "6.2"),
            ("2 ** 3 ** 2", "512.0"),
            ("-2 ** 2", "-4.0"),
            ("7 // -2", "-4.0"),
            ("7.5 // 2", "3.0"),
            ("(1.5 + .5) * 10.", "20.0"),
            ("100 / 3", "33.33"),
            ("2.675", "2.67"),
            ("10 ** 20", "1e+20"),
            ("--5", "5.0"),
        ] {
            assert_eq!(calculate(expression).unwrap(), result, "{expression}");
        }
    }

    #[test]
    fn mistakes_are_told_as_python_tells_them() {
        for (expression, message) in [
            ("1 / 0", "division by zero"),
            ("1 +", "invalid syntax (<string>, line 1)"),
            ("(1 + 2", "'(' was never closed (<string>, line 1)"),
            ("1 + 2)", "unmatched ')' (<string>, line 1)"),
            ("a + 1", "Invalid characters in expression"),
            ("2(3)", "'int' object is not callable"),
        ] {
            assert_eq!(calculate(expression).unwrap_err().to_string(), message, "{expression}");
        }
    }
}
