//! How commands are read: JSON says what it says, in one way alone.

use axum::extract::rejection::JsonRejection;
use axum::response::Json;
use serde::de::{DeserializeOwned, Error, Unexpected};
use serde::{Deserialize, Deserializer};
use serde_json::Value;

/// The highest whole number that is one in every reader of JSON.
pub(crate) const LARGEST_WHOLE: u64 = (1 << 53) - 1;

/// Returns the command in a body, or a sentence that says what is wrong.
pub(crate) fn read<T: DeserializeOwned>(body: Result<Json<Value>, JsonRejection>) -> Result<T, String> {
    let Json(value) = body.map_err(|error| error.to_string())?;
    // A list would be taken for the fields in their order, and a number for the word of that place.
    if !value.is_object() {
        return Err("must be a JSON object".to_owned());
    }
    if value.get("order").is_some_and(Value::is_number) {
        return Err("order must be a word".to_owned());
    }
    serde_json::from_value(value).map_err(|error| error.to_string())
}

/// Reads a whole number, however it is written: 5 and 5.0 are one number in JSON.
pub(crate) fn whole<'de, D: Deserializer<'de>, T: TryFrom<u64>>(from: D) -> Result<T, D::Error> {
    let number = serde_json::Number::deserialize(from)?;
    let whole = number.as_u64().or_else(|| {
        let float = number.as_f64()?;
        ((0.0..=LARGEST_WHOLE as f64).contains(&float) && float.fract() == 0.0).then_some(float as u64)
    });
    let told = || {
        let seen = number.as_f64().map_or(Unexpected::Other("a number"), Unexpected::Float);
        D::Error::invalid_value(seen, &"a whole number in its range")
    };
    let whole = whole.filter(|whole| *whole <= LARGEST_WHOLE);
    whole.and_then(|whole| T::try_from(whole).ok()).ok_or_else(told)
}

/// Reads a whole number that may be left out.
pub(crate) fn whole_or_none<'de, D: Deserializer<'de>, T: TryFrom<u64>>(
    from: D,
) -> Result<Option<T>, D::Error> {
    struct Whole<T>(T);
    impl<'de, T: TryFrom<u64>> Deserialize<'de> for Whole<T> {
        fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
            whole(from).map(Whole)
        }
    }
    Ok(Option::<Whole<T>>::deserialize(from)?.map(|Whole(own)| own))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{LineRequest, OverrideRequest, PoolRequest};
    use serde_json::json;

    fn told<T: DeserializeOwned + std::fmt::Debug>(value: Value) -> String {
        read::<T>(Ok(Json(value))).unwrap_err()
    }

    #[test]
    fn a_whole_number_is_one_however_it_is_written() {
        let read = |value: Value| read::<OverrideRequest>(Ok(Json(value))).unwrap();
        assert_eq!(
            read(json!({ "for_s": 5.0, "limit": 7 })),
            read(json!({ "for_s": 5, "limit": 7.0, "release": null }))
        );
        for wrong in [json!(5.5), json!(-1), json!(1e30), json!("5"), json!(4_294_967_296u64)] {
            let told = told::<OverrideRequest>(json!({ "limit": wrong }));
            assert!(told.contains("number"), "{told}");
        }
    }

    #[test]
    fn neither_a_list_nor_the_number_of_a_word_is_a_command() {
        assert_eq!(told::<OverrideRequest>(json!([null, 5])), "must be a JSON object");
        assert_eq!(told::<LineRequest>(json!({ "order": 0 })), "order must be a word");
        assert_eq!(told::<PoolRequest>(json!({ "order": 0 })), "order must be a word");
    }
}
