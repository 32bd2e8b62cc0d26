use std::fmt;

use serde::{
    Serialize, Serializer,
    ser::{
        self, SerializeMap, SerializeSeq, SerializeStruct, SerializeStructVariant, SerializeTuple,
        SerializeTupleStruct, SerializeTupleVariant,
    },
};

/// Returns whether all numbers in `value` are finite: JSON writes `null` for the others, without an error.
pub(crate) fn is_finite<T: Serialize + ?Sized>(value: &T) -> bool {
    value.serialize(Finite).is_ok()
}

/// A serializer that writes nothing, and fails at a number that is not finite.
struct Finite;

/// A number is not finite, or the value cannot be written.
#[derive(Debug)]
struct NotFinite;

impl fmt::Display for NotFinite {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a number is not finite")
    }
}

impl std::error::Error for NotFinite {}

impl ser::Error for NotFinite {
    fn custom<T: fmt::Display>(_: T) -> Self {
        Self
    }
}

type FiniteResult = Result<(), NotFinite>;

macro_rules! nothing {
    ($($name:ident($($argument:ty),*))*) => {
        $(fn $name(self, $(_: $argument),*) -> FiniteResult { Ok(()) })*
    };
}

impl Serializer for Finite {
    type Ok = ();
    type Error = NotFinite;
    type SerializeSeq = Self;
    type SerializeTuple = Self;
    type SerializeTupleStruct = Self;
    type SerializeTupleVariant = Self;
    type SerializeMap = Self;
    type SerializeStruct = Self;
    type SerializeStructVariant = Self;

    nothing! {
        serialize_bool(bool) serialize_char(char) serialize_str(&str) serialize_bytes(&[u8])
        serialize_i8(i8) serialize_i16(i16) serialize_i32(i32) serialize_i64(i64) serialize_i128(i128)
        serialize_u8(u8) serialize_u16(u16) serialize_u32(u32) serialize_u64(u64) serialize_u128(u128)
        serialize_none() serialize_unit() serialize_unit_struct(&'static str)
        serialize_unit_variant(&'static str, u32, &'static str)
    }

    fn serialize_f32(self, number: f32) -> FiniteResult {
        if number.is_finite() { Ok(()) } else { Err(NotFinite) }
    }

    fn serialize_f64(self, number: f64) -> FiniteResult {
        if number.is_finite() { Ok(()) } else { Err(NotFinite) }
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> FiniteResult {
        value.serialize(self)
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(self, _: &'static str, value: &T) -> FiniteResult {
        value.serialize(self)
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        _: u32,
        _: &'static str,
        value: &T,
    ) -> FiniteResult {
        value.serialize(self)
    }

    fn serialize_seq(self, _: Option<usize>) -> Result<Self, NotFinite> {
        Ok(self)
    }

    fn serialize_tuple(self, _: usize) -> Result<Self, NotFinite> {
        Ok(self)
    }

    fn serialize_tuple_struct(self, _: &'static str, _: usize) -> Result<Self, NotFinite> {
        Ok(self)
    }

    fn serialize_tuple_variant(self, _: &'static str, _: u32, _: &'static str, _: usize) -> Result<Self, NotFinite> {
        Ok(self)
    }

    fn serialize_map(self, _: Option<usize>) -> Result<Self, NotFinite> {
        Ok(self)
    }

    fn serialize_struct(self, _: &'static str, _: usize) -> Result<Self, NotFinite> {
        Ok(self)
    }

    fn serialize_struct_variant(self, _: &'static str, _: u32, _: &'static str, _: usize) -> Result<Self, NotFinite> {
        Ok(self)
    }
}

macro_rules! elements {
    ($($form:ident::$name:ident($($argument:ty),*))*) => {
        $(impl $form for Finite {
            type Ok = ();
            type Error = NotFinite;

            fn $name<T: Serialize + ?Sized>(&mut self, $(_: $argument,)* value: &T) -> FiniteResult {
                value.serialize(Finite)
            }

            fn end(self) -> FiniteResult {
                Ok(())
            }
        })*
    };
}

elements! {
    SerializeSeq::serialize_element()
    SerializeTuple::serialize_element()
    SerializeTupleStruct::serialize_field()
    SerializeTupleVariant::serialize_field()
    SerializeStruct::serialize_field(&'static str)
    SerializeStructVariant::serialize_field(&'static str)
}

impl SerializeMap for Finite {
    type Ok = ();
    type Error = NotFinite;

    /// JSON refuses such a key by itself.
    fn serialize_key<T: Serialize + ?Sized>(&mut self, _: &T) -> FiniteResult {
        Ok(())
    }

    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> FiniteResult {
        value.serialize(Finite)
    }

    fn end(self) -> FiniteResult {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[derive(Serialize)]
    enum Shape {
        Unit,
        Newtype(f64),
        Tuple(u8, f32),
        Struct { x: Option<f64> },
    }

    #[derive(Serialize)]
    struct Wrapper(Vec<Shape>);

    #[test]
    fn numbers_are_looked_for_wherever_they_are() {
        use Shape::{Newtype, Struct, Tuple, Unit};

        for (value, finite) in [
            (vec![], true),
            (vec![Unit, Newtype(1.0), Tuple(1, 2.0), Struct { x: Some(f64::MAX) }, Struct { x: None }], true),
            (vec![Unit, Newtype(f64::NAN)], false),
            (vec![Tuple(1, f32::INFINITY)], false),
            (vec![Struct { x: Some(f64::NEG_INFINITY) }], false),
        ] {
            assert_eq!(is_finite(&Wrapper(value)), finite);
        }
        assert!(is_finite(&BTreeMap::from([("a", (1, "b", true, 'c', ()))])));
        assert!(!is_finite(&BTreeMap::from([("a", Some([0.0, f64::NAN]))])));
    }
}
