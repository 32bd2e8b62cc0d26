use std::fmt::Write;

/// Returns whether a JSON number is written as an integer that is a key: no fraction, no exponent, no minus zero.
pub(super) fn is_integer(text: &str) -> bool {
    let digits = text.strip_prefix('-').unwrap_or(text);
    digits.bytes().all(|byte| byte.is_ascii_digit()) && text != "-0"
}

/// Returns the exact decimal value of a JSON number, in one form for all its spellings: sign, digits without zeros at
/// either end, and the power of ten that they are multiplied with. `None` if the exponent is absurd.
pub(super) fn canonical(text: &str) -> Option<String> {
    let (negative, text) = text.strip_prefix('-').map_or((false, text), |rest| (true, rest));
    let (mantissa, exponent) = text.split_once(['e', 'E']).unwrap_or((text, "0"));
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let digits = format!("{whole}{fraction}");
    let significant = digits.trim_start_matches('0');
    let digits = significant.trim_end_matches('0');
    if digits.is_empty() {
        return Some("0".to_owned());
    }
    let exponent = exponent.strip_prefix('+').unwrap_or(exponent).parse::<i64>().ok()?;
    let zeros = i64::try_from(significant.len() - digits.len()).ok()?;
    let exponent = exponent.checked_sub(i64::try_from(fraction.len()).ok()?)?.checked_add(zeros)?;
    let mut out = String::with_capacity(digits.len() + 8);
    let _ = write!(out, "{}{digits}e{exponent}", if negative { "-" } else { "" }); // into a string: it cannot fail
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_form_for_one_value() {
        for same in [
            &["1", "1.0", "1e0", "10e-1", "1.000E+0", "0.1e1", "0.0001e4"][..],
            &["120", "1.2e2", "12E+1", "120.000", "1200e-1"],
            &["0", "0.0", "0e5", "-0", "0.000e-99999999999999999999999"],
            &["-1.5", "-15e-1", "-0.15e1"],
        ] {
            for text in same {
                assert_eq!(canonical(text), canonical(same[0]), "{text}");
                assert!(canonical(text).is_some());
            }
        }
        for (a, b) in [
            ("9007199254740993", "9007199254740992"),
            ("0.1", "0.10000000000000000001"),
            ("1", "-1"),
            ("1", "10"),
            ("1e400", "1e401"),
            ("11e1", "1e11"),
        ] {
            assert_ne!(canonical(a), canonical(b), "{a} {b}");
        }
        assert_eq!(canonical("1e99999999999999999999"), None);
        assert_eq!(canonical("0.1e-9223372036854775808"), None);
    }

    #[test]
    fn integers() {
        assert!(["0", "7", "-7", "9007199254740993"].iter().all(|text| is_integer(text)));
        assert!(!["-0", "1.0", "1e3", "1E3"].iter().any(|text| is_integer(text)));
    }
}
