//! Reads an expression and evaluates it on the way, by recursive descent with a bounded depth.

use num_bigint::BigInt;
use num_rational::BigRational;
use num_traits::Pow;

use super::{functions, number::Number};

/// Longer expressions are refused. With the bound on numbers this bounds the time.
const LONGEST: usize = 1000;
/// Deeper nesting is refused, so that the stack holds.
const DEEPEST: u32 = 100;
/// The largest power of ten that a number may be written with.
const LARGEST_EXPONENT: u32 = 1000;

/// The value of an expression, or what is wrong with it.
pub(super) fn evaluate(expression: &str) -> Result<Number, String> {
    let length = expression.chars().count();
    if length > LONGEST {
        return Err(format!(
            "the expression has {length} characters; at most {LONGEST} are read: split it"
        ));
    }
    let mut parser = Parser { text: expression.chars().collect(), at: 0, depth: 0 };
    parser.skip_spaces();
    if parser.peek().is_none() {
        return Err("the expression is empty".to_owned());
    }
    let value = parser.sum()?;
    match parser.peek() {
        None => Ok(value),
        Some(found) => Err(parser.unexpected(found)),
    }
}

struct Parser {
    text: Vec<char>,
    at: usize,
    depth: u32,
}

type Outcome = Result<Number, String>;

impl Parser {
    fn peek(&self) -> Option<char> {
        self.text.get(self.at).copied()
    }

    /// Step over a character and the spaces behind it, if it is one of these.
    fn take(&mut self, wanted: &[char]) -> Option<char> {
        let found = self.peek().filter(|c| wanted.contains(c))?;
        self.at += 1;
        self.skip_spaces();
        Some(found)
    }

    fn skip_spaces(&mut self) {
        while self.peek().is_some_and(char::is_whitespace) {
            self.at += 1;
        }
    }

    fn sum(&mut self) -> Outcome {
        let mut value = self.product()?;
        while let Some(operator) = self.take(&['+', '-', '−']) {
            let next = self.product()?;
            value = match operator {
                '+' => value.add(&next)?,
                _ => value.subtract(&next)?,
            };
        }
        Ok(value)
    }

    fn product(&mut self) -> Outcome {
        let mut value = self.signed()?;
        // `**` is a power, and `power` has taken it already if it was one.
        while let Some(operator) = self.take(&['*', '×', '·', '/', '÷', '%']) {
            let next = self.signed()?;
            value = match operator {
                '/' | '÷' => value.divide(&next)?,
                '%' => value.remainder(&next)?,
                _ => value.multiply(&next)?,
            };
        }
        Ok(value)
    }

    fn signed(&mut self) -> Outcome {
        self.depth += 1;
        if self.depth > DEEPEST {
            return Err("the expression is nested too deeply".to_owned());
        }
        let value = match self.take(&['-', '−', '+']) {
            Some('+') => self.signed(),
            Some(_) => self.signed().map(|value| value.negate()),
            None => self.power(),
        };
        self.depth -= 1;
        value
    }

    fn power(&mut self) -> Outcome {
        let base = self.postfix()?;
        let doubled = self.peek() == Some('*') && self.text.get(self.at + 1) == Some(&'*');
        if doubled {
            self.at += 1;
            self.take(&['*']);
        }
        if doubled || self.take(&['^']).is_some() {
            let exponent = self.signed()?;
            return base.power(&exponent);
        }
        Ok(base)
    }

    fn postfix(&mut self) -> Outcome {
        let mut value = self.atom()?;
        while self.take(&['!']).is_some() {
            value = functions::factorial(&value)?;
        }
        Ok(value)
    }

    fn atom(&mut self) -> Outcome {
        match self.peek() {
            Some('(') => {
                self.take(&['(']);
                let value = self.sum()?;
                self.close()?;
                Ok(value)
            }
            Some(c) if c.is_ascii_digit() || c == '.' => self.number(),
            Some(c) if c.is_alphabetic() => self.name(),
            Some(found) => Err(format!(
                "at character {}: expected a number, a name or \"(\", found \"{found}\"",
                self.at + 1
            )),
            None => Err("at the end: expected a number, a name or \"(\"".to_owned()),
        }
    }

    fn close(&mut self) -> Result<(), String> {
        if self.take(&[')']).is_some() {
            return Ok(());
        }
        match self.peek() {
            Some(found) => Err(self.unexpected(found)),
            None => Err("at the end: expected \")\"".to_owned()),
        }
    }

    fn name(&mut self) -> Outcome {
        let mut name = String::new();
        while let Some(c) = self.peek().filter(|c| c.is_alphanumeric() || *c == '_') {
            name.extend(c.to_lowercase());
            self.at += 1;
        }
        self.skip_spaces();
        if self.take(&['(']).is_none() {
            return functions::constant(&name);
        }
        let mut values = Vec::new();
        if self.peek() != Some(')') {
            values.push(self.sum()?);
            while self.take(&[',']).is_some() {
                values.push(self.sum()?);
            }
        }
        self.close()?;
        functions::apply(&name, &values)
    }

    /// A number, exactly: its digits as an integer, shifted by its decimals and exponent.
    fn number(&mut self) -> Outcome {
        let begin = self.at;
        let mut digits = String::new();
        self.digits_into(&mut digits);
        let mut decimals = 0;
        if self.peek() == Some('.') {
            self.at += 1;
            decimals = self.digits_into(&mut digits);
        }
        if digits.is_empty() {
            return Err(format!("at character {}: expected a digit", begin + 1));
        }
        let exponent = self.exponent(begin)?;
        self.skip_spaces();
        let wrong = || format!("at character {}: this is no number", begin + 1);
        let mantissa: BigInt = digits.parse().map_err(|_| wrong())?;
        let shift = exponent - i32::try_from(decimals).map_err(|_| wrong())?;
        let scale: BigRational = Pow::pow(&BigRational::from_integer(BigInt::from(10)), shift);
        Number::exact(BigRational::from_integer(mantissa) * scale)
    }

    fn digits_into(&mut self, digits: &mut String) -> usize {
        let before = digits.len();
        while let Some(c) = self.peek().filter(|c| c.is_ascii_digit() || *c == '_') {
            if c != '_' {
                digits.push(c);
            }
            self.at += 1;
        }
        digits.len() - before
    }

    /// `e-3` behind a number. An `e` without digits is left alone.
    fn exponent(&mut self, begin: usize) -> Result<i32, String> {
        if !matches!(self.peek(), Some('e' | 'E')) {
            return Ok(0);
        }
        let sign = self.text.get(self.at + 1).copied().filter(|c| "+-".contains(*c));
        let first = self.at + 1 + usize::from(sign.is_some());
        if !self.text.get(first).is_some_and(char::is_ascii_digit) {
            return Ok(0);
        }
        self.at = first;
        let mut digits = String::new();
        self.digits_into(&mut digits);
        let size = digits
            .parse::<u32>()
            .ok()
            .filter(|size| *size <= LARGEST_EXPONENT)
            .ok_or_else(|| format!("at character {}: the exponent is too large", begin + 1))?;
        let size = i32::try_from(size).unwrap_or(0);
        Ok(if sign == Some('-') { -size } else { size })
    }

    fn unexpected(&self, found: char) -> String {
        let hint = match found {
            ',' => "; write numbers without it, as 1000",
            '(' => "; write * to multiply",
            c if c.is_alphanumeric() => "; write * to multiply",
            _ => "",
        };
        format!("at character {}: unexpected \"{found}\"{hint}", self.at + 1)
    }
}
