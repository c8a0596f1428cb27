//! `calculator`: arithmetic that a model should not do in its head.

use duologue_core::{Effect, Reach, Tool, ToolError, tool};
use schemars::JsonSchema;
use serde::Deserialize;

mod functions;
mod number;
mod parser;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Arguments {
    /// The expression, such as `(12.5 + 7) * 2^10 / sqrt(16)`.
    expression: String,
}

/// Evaluates an expression, exactly where that is possible.
pub(crate) fn calculator() -> impl Tool {
    let description = format!(
        "Evaluates an arithmetic expression. Operators: + - * / % ^ ! and parentheses; % is the \
         remainder, with the sign of the divisor. Functions: {}. Constants: {}. The result is \
         exact unless it begins with ≈.",
        functions::FUNCTIONS.join(", "),
        functions::CONSTANTS.join(", "),
    );
    tool("calculator", description, Effect::Pure, |arguments: Arguments, _| async move {
        parser::evaluate(&arguments.expression).map(|number| number.to_string()).map_err(ToolError)
    })
    .reach(Reach::Workspace)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::parser::evaluate;

    fn result(expression: &str) -> String {
        evaluate(expression).map_or_else(|error| format!("error: {error}"), |n| n.to_string())
    }

    #[test]
    fn integers_and_decimals_are_exact() {
        for (expression, expected) in [
            ("37*12", "444"),
            ("0.1 + 0.2", "0.3"),
            ("1/3*3", "1"),
            ("2^100", "1267650600228229401496703205376"),
            ("9007199254740993 + 0", "9007199254740993"),
            ("30!", "265252859812191058636308480000000"),
            ("1e3 - 1", "999"),
            ("2.50 * 4", "10"),
            ("1_000_000 / 8", "125000"),
            ("7/8", "0.875"),
            ("19.99 * 3", "59.97"),
            ("sqrt(16)", "4"),
            ("sqrt(0.25)", "0.5"),
            ("8^(1/3) > 0", "error: at character 9: unexpected \">\""),
        ] {
            assert_eq!(result(expression), expected, "{expression}");
        }
    }

    #[test]
    fn precedence_is_that_of_mathematics() {
        for (expression, expected) in [
            ("2 + 3 * 4", "14"),
            ("(2 + 3) * 4", "20"),
            ("-2^2", "-4"),
            ("(-2)^2", "4"),
            ("2^-1", "0.5"),
            ("2^3^2", "512"),
            ("2**3**2", "512"),
            ("10 - 4 - 3", "3"),
            ("100 / 10 / 5", "2"),
            ("-3!", "-6"),
            ("--5", "5"),
            ("-7 % 3", "2"),
            ("7 % -3", "-2"),
            ("7.5 % 2", "1.5"),
            ("6 × 7 ÷ 2 − 1", "20"),
        ] {
            assert_eq!(result(expression), expected, "{expression}");
        }
    }

    #[test]
    fn what_is_rounded_says_so() {
        for (expression, expected) in [
            ("1/3", "≈ 0.333333333333333"),
            ("2/3", "≈ 0.666666666666667"),
            ("sqrt(2)", "≈ 1.41421356237310"),
            ("pi", "≈ 3.14159265358979"),
            ("1e300 * 1e300 / 3", "≈ 3.33333333333333e599"),
            ("1.1^5000", "≈ 9.19233389907437e206"),
            ("ln(e)", "≈ 1"),
            ("sin(0)", "0"),
            ("10^400 / 7 % 1", "≈ 0.571428571428571"),
        ] {
            let got = result(expression);
            let trimmed = expected.trim_end_matches('0');
            assert!(got == expected || got == trimmed, "{expression}: {got}");
        }
    }

    #[test]
    fn functions_take_what_they_say() {
        for (expression, expected) in [
            ("max(1, 2.5, -3)", "2.5"),
            ("min(4)", "4"),
            ("sum(1, 2, 3, 4)", "10"),
            ("mean(1, 2, 6)", "3"),
            ("round(2.5)", "3"),
            ("round(-2.5)", "-3"),
            ("round(3.14159, 2)", "3.14"),
            ("round(1234, -2)", "1200"),
            ("floor(-1.5)", "-2"),
            ("ceil(1.2)", "2"),
            ("trunc(-1.7)", "-1"),
            ("floor(pi)", "3"),
            ("abs(-4)", "4"),
            ("gcd(12, 18)", "6"),
            ("lcm(4, 6)", "12"),
            ("log(1000)", "3"),
            ("log(8, 2)", "3"),
            ("log2(1024)", "10"),
            ("pow(2, 10)", "1024"),
            ("cbrt(27)", "3"),
            ("MAX(1, 2)", "2"),
            ("max()", "error: max takes at least 1 value, got 0"),
            ("sqrt(1, 2)", "error: sqrt takes 1 value, got 2"),
            ("gcd(1.5, 2)", "error: gcd takes whole numbers, got 1.5"),
        ] {
            assert_eq!(result(expression), expected, "{expression}");
        }
    }

    #[test]
    fn an_error_says_what_to_write_instead() {
        for (expression, expected) in [
            ("", "the expression is empty"),
            ("1 / 0", "division by zero"),
            ("5 % (2 - 2)", "division by zero"),
            ("0^-1", "division by zero"),
            ("sqrt(-1)", "sqrt(-1) has no real value"),
            ("(-8)^0.5", "(-8)^(0.5) has no real value"),
            ("(1 + 2", "at the end: expected \")\""),
            ("1 + ", "at the end: expected a number, a name or \"(\""),
            ("1,000 + 1", "at character 2: unexpected \",\"; write numbers without it, as 1000"),
            ("2(3)", "at character 2: unexpected \"(\"; write * to multiply"),
            ("2 pi", "at character 3: unexpected \"p\"; write * to multiply"),
            ("sqr(4)", "unknown function \"sqr\" (did you mean \"sqrt\"?)"),
            ("x + 1", "unknown name \"x\": there are no variables"),
            ("1e99999", "at character 1: the exponent is too large"),
            ("10^400 * pi", "the result is too large"),
            ("9^9^9", "the result is too large"),
            ("10000!", "the result is too large"),
            ("2.5!", "a factorial takes a whole number from 0 on, got 2.5"),
            ("1.2.3", "at character 4: unexpected \".\""),
        ] {
            assert_eq!(result(expression), format!("error: {expected}"), "{expression}");
        }
    }

    #[test]
    fn depth_and_length_are_bounded() {
        let deep = format!("{}1{}", "(".repeat(400), ")".repeat(400));
        assert_eq!(result(&deep), "error: the expression is nested too deeply");
        assert_eq!(result(&"-".repeat(900)), "error: the expression is nested too deeply");
        assert_eq!(result(&"2^".repeat(450)), "error: the expression is nested too deeply");
        let long = "1+".repeat(5000);
        assert!(result(&long).starts_with("error: the expression has 10000 characters"));
    }

    #[test]
    fn the_slowest_expressions_end_soon() {
        let begun = std::time::Instant::now();
        for (term, times, operator) in
            [("1/399!", 140, "+"), ("gcd(400!,3^2500)", 50, "+"), ("400!/401/403", 70, "-")]
        {
            let _ = result(&vec![term; times].join(operator));
        }
        assert!(begun.elapsed() < std::time::Duration::from_secs(5));
    }

    proptest! {
        #[test]
        fn no_text_makes_it_panic(text in "\\PC{0,80}") {
            let _ = result(&text);
        }

        #[test]
        fn no_row_of_tokens_makes_it_panic(
            tokens in prop::collection::vec(
                prop::sample::select(vec![
                    "1", "0", "2.5", "1e300", "9", "+", "-", "*", "/", "%", "^", "!", "(", ")",
                    ",", "sqrt(", "max(", "round(", "log(", "pi", "e", "gcd(", "cbrt(", " ",
                ]),
                0..40,
            ),
        ) {
            let _ = result(&tokens.concat());
        }

        #[test]
        fn whole_numbers_agree_with_the_machine(a in -1_000_000i64.., b in -1000i64..1000, c in 1i64..1000) {
            let a = i128::from(a);
            let (b, c) = (i128::from(b), i128::from(c));
            prop_assert_eq!(
                result(&format!("({a} + {b}) * {c} - ({b})")),
                ((a + b) * c - b).to_string()
            );
            prop_assert_eq!(result(&format!("({a}) % {c}")), a.rem_euclid(c).to_string());
            prop_assert_eq!(result(&format!("({a}) * {c} / {c}")), a.to_string());
        }

        #[test]
        fn decimals_come_back_as_they_were(whole in 0u64.., cents in 1u32..100) {
            let text = format!("{whole}.{cents:02}");
            prop_assert_eq!(result(&text), text.trim_end_matches('0'));
        }
    }
}
