use std::{collections::BTreeMap, fmt::Write};

use super::choices::Choices;

/// A JSON value as it is compared: numbers by their decimal value, objects whatever the order of their members.
#[derive(Clone, Debug, PartialEq)]
pub enum Json {
    Null,
    Bool(bool),
    Number(Number),
    String(String),
    Array(Vec<Json>),
    Object(BTreeMap<String, Json>),
}

/// `digits` has no zeros at either end, or is `0` with nothing else.
#[derive(Clone, Debug, PartialEq)]
pub struct Number {
    negative: bool,
    digits: String,
    exponent: i64,
}

const NAMES: &[&str] = &["a", "b", "id", "0", "1", "", "x/y", "é~", "\u{1f600}\""];
const TEXTS: &[&str] =
    &["", "a", "7", "é", "\u{1f600}", "\"", "\\", "/", "\n", "\0", "\u{7f}", "\u{2028}", "b\u{e000}"];
const MOST: usize = 5;

impl Json {
    pub fn draw(choices: &mut Choices<'_>, depth: usize) -> Self {
        match choices.below(if depth == 0 { 4 } else { 8 }) {
            0 => Self::Null,
            1 => Self::Bool(choices.flip()),
            2 => Self::Number(Number::draw(choices)),
            3 => Self::String((0..choices.below(4)).map(|_| choices.one_of(TEXTS)).collect()),
            4 | 5 => Self::Array((0..choices.below(MOST)).map(|_| Self::draw(choices, depth - 1)).collect()),
            _ => Self::Object(
                (0..choices.below(MOST))
                    .map(|_| (choices.one_of(NAMES).to_owned(), Self::draw(choices, depth - 1)))
                    .collect(),
            ),
        }
    }

    /// Makes it another value, by one change somewhere.
    pub fn change(&mut self, choices: &mut Choices<'_>) {
        match self {
            Self::Array(elements) if !elements.is_empty() && choices.below(4) > 0 => {
                let at = choices.below(elements.len());
                elements[at].change(choices);
            }
            Self::Object(members) if !members.is_empty() && choices.below(4) > 0 => {
                let at = choices.below(members.len());
                members.values_mut().nth(at).expect("a member").change(choices);
            }
            Self::Null => *self = Self::Bool(false),
            Self::Bool(value) => *value = !*value,
            Self::Number(number) => number.change(),
            Self::String(text) => text.push('x'),
            Self::Array(elements) => elements.push(Self::Null),
            Self::Object(members) => {
                let name = choices.one_of(NAMES);
                if members.remove(name).is_none() {
                    members.insert(name.to_owned(), Self::Null);
                }
            }
        }
    }

    pub fn find(&self, way: &[&str]) -> Option<&Self> {
        let Some((step, rest)) = way.split_first() else { return Some(self) };
        match self {
            Self::Array(elements) => elements.get(step.parse::<usize>().ok()?)?.find(rest),
            Self::Object(members) => members.get(*step)?.find(rest),
            _ => None,
        }
    }

    /// What is left without the parts that these ways lead to. An element leaves its place behind.
    pub fn without(&self, ways: &[&[&str]]) -> Self {
        if ways.contains(&&[][..]) {
            return Self::Null;
        }
        let ways_through =
            |name: &str| -> Vec<&[&str]> { ways.iter().filter(|way| way[0] == name).map(|way| &way[1..]).collect() };
        match self {
            Self::Array(elements) => Self::Array(
                elements.iter().enumerate().map(|(at, value)| value.without(&ways_through(&at.to_string()))).collect(),
            ),
            Self::Object(members) => Self::Object(
                members
                    .iter()
                    .filter(|(name, _)| !ways.contains(&&[&***name][..]))
                    .map(|(name, value)| (name.clone(), value.without(&ways_through(name))))
                    .collect(),
            ),
            other => other.clone(),
        }
    }

    /// One of its many spellings.
    pub fn spell(&self, choices: &mut Choices<'_>) -> String {
        let mut out = String::new();
        self.put(choices, &mut out);
        out
    }

    fn put(&self, choices: &mut Choices<'_>, out: &mut String) {
        blank(choices, out);
        match self {
            Self::Null => out.push_str("null"),
            Self::Bool(value) => out.push_str(if *value { "true" } else { "false" }),
            Self::Number(number) => number.put(choices, out),
            Self::String(text) => put_string(text, choices, out),
            Self::Array(elements) => {
                out.push('[');
                for (at, element) in elements.iter().enumerate() {
                    out.push_str(if at == 0 { "" } else { "," });
                    element.put(choices, out);
                }
                out.push(']');
            }
            Self::Object(members) => {
                let mut members: Vec<_> = members.iter().collect();
                let first = choices.below(members.len().max(1));
                members.rotate_left(first);
                if choices.flip() {
                    members.reverse();
                }
                out.push('{');
                for (at, (name, value)) in members.into_iter().enumerate() {
                    out.push_str(if at == 0 { "" } else { "," });
                    blank(choices, out);
                    put_string(name, choices, out);
                    blank(choices, out);
                    out.push(':');
                    value.put(choices, out);
                }
                blank(choices, out);
                out.push('}');
            }
        }
        blank(choices, out);
    }
}

fn blank(choices: &mut Choices<'_>, out: &mut String) {
    out.push_str(choices.one_of(&["", "", "", " ", "\n", "\t", "\r\n  "]));
}

fn put_string(text: &str, choices: &mut Choices<'_>, out: &mut String) {
    out.push('"');
    for character in text.chars() {
        match (character, choices.below(3)) {
            (_, 1) => put_escape(character, |out, unit| write!(out, "\\u{unit:04x}"), out),
            (_, 2) => put_escape(character, |out, unit| write!(out, "\\u{unit:04X}"), out),
            ('"' | '\\' | '/', _) => out.extend(['\\', character]),
            ('\n', _) => out.push_str("\\n"),
            ('\0'..='\u{1f}', _) => put_escape(character, |out, unit| write!(out, "\\u{unit:04x}"), out),
            _ => out.push(character),
        }
    }
    out.push('"');
}

fn put_escape(character: char, put: impl Fn(&mut String, u16) -> std::fmt::Result, out: &mut String) {
    for unit in character.encode_utf16(&mut [0; 2]) {
        put(out, *unit).expect("a string takes anything");
    }
}

impl Number {
    fn draw(choices: &mut Choices<'_>) -> Self {
        let length = choices.one_of(&[0, 1, 2, 3, 16, 17, 18, 25]);
        let digits: String =
            (0..length).map(|_| char::from(b'0' + choices.one_of(&[0, 1, 2, 3, 4, 5, 6, 7, 8, 9]))).collect();
        let digits = digits.trim_matches('0').to_owned();
        if digits.is_empty() {
            return Self { negative: false, digits: "0".into(), exponent: 0 };
        }
        Self { negative: choices.flip(), digits, exponent: choices.one_of(&[0, 0, 1, -1, 2, -2, -17, 22, 400, -400]) }
    }

    /// The smallest step away from what a shorter reading would take it for.
    fn change(&mut self) {
        if self.digits == "0" {
            self.digits = "1".into();
        } else {
            self.digits.push('1');
            self.exponent -= 1;
        }
    }

    fn put(&self, choices: &mut Choices<'_>, out: &mut String) {
        let zero = self.digits == "0";
        if self.negative || (zero && choices.flip()) {
            out.push('-');
        }
        let digits = format!("{}{}", self.digits, "0".repeat(if zero { 0 } else { choices.below(4) }));
        let (whole, fraction) = digits.split_at(if zero { 1 } else { choices.below(digits.len() + 1) });
        let zeros = if zero { 0 } else { i64::try_from(digits.len() - self.digits.len()).expect("a few") };
        let exponent = self.exponent - zeros + i64::try_from(fraction.len()).expect("a few");
        out.push_str(if whole.is_empty() { "0" } else { whole });
        if !fraction.is_empty() || choices.flip() {
            out.push('.');
            out.push_str(fraction);
            out.push_str(if fraction.is_empty() || choices.flip() { "0" } else { "" });
        }
        if exponent != 0 || choices.flip() {
            out.push(choices.one_of(&['e', 'E']));
            let sign = if exponent < 0 { "-" } else { choices.one_of(&["", "+"]) };
            let zeros = choices.one_of(&["", "0", "00"]);
            write!(out, "{sign}{zeros}{}", exponent.unsigned_abs()).expect("a string takes anything");
        }
    }
}
