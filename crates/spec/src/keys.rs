//! The names of the fields of a struct, as serde reads them.
//!
//! A JSON Schema has them, too, but takes a hundred thousand times as long to make, and each command that
//! reads a scenario needs the keys of two dozen tables.

use serde::de::value::Error;
use serde::de::{DeserializeOwned, Deserializer, Error as _, Visitor};
use serde::forward_to_deserialize_any;

/// The names of the fields of a struct that derives `Deserialize`. It has none if serde reads it as a map,
/// as it does with `#[serde(flatten)]`.
pub fn keys<T: DeserializeOwned>() -> &'static [&'static str] {
    let mut names: &'static [&'static str] = &[];
    // The reader asks for a struct by the names of its fields, and gets an error in place of one.
    let _ = T::deserialize(Asked(&mut names));
    names
}

/// Keeps the names that a reader asks for.
struct Asked<'a>(&'a mut &'static [&'static str]);

impl<'de> Deserializer<'de> for Asked<'_> {
    type Error = Error;

    fn deserialize_any<V: Visitor<'de>>(self, _: V) -> Result<V::Value, Error> {
        Err(Error::custom("there is no value"))
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        fields: &'static [&'static str],
        _: V,
    ) -> Result<V::Value, Error> {
        *self.0 = fields;
        Err(Error::custom("there is no value"))
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option unit
        unit_struct newtype_struct seq tuple tuple_struct map enum identifier ignored_any
    }
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    use super::keys;

    #[test]
    fn keys_are_those_that_are_read() {
        #[derive(Deserialize)]
        #[serde(rename_all = "kebab-case", default)]
        #[derive(Default)]
        struct Some {
            one_two: u8,
            #[serde(rename = "four")]
            three: Option<String>,
        }
        let some: Some = serde_json::from_str(r#"{ "one-two": 2, "four": "five" }"#).unwrap();
        assert_eq!((some.one_two, some.three.as_deref()), (2, Some("five")));
        assert_eq!(keys::<Some>(), ["one-two", "four"]);
        assert!(keys::<Vec<u8>>().is_empty());
    }
}
