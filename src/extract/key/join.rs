//! The parts of a key, joined so that no two lists of parts make one key.

#[cfg(feature = "axum")]
use http::request::Parts;

#[cfg(feature = "axum")]
use crate::extract::route;
use crate::value::{KeyError, check_key};

/// Appends a part, preceded by its length.
pub(super) fn join(joined: &mut String, part: &str) -> Result<(), KeyError> {
    check_key(part)?;
    joined.extend([&*part.len().to_string(), ":", part, ","]);
    Ok(())
}

#[cfg(feature = "axum")]
pub(super) fn of_path(parts: &Parts, names: &[Box<str>]) -> Result<Option<String>, KeyError> {
    let Some(mut values) = route::path_parameters(parts, names)? else { return Ok(None) };
    if values.len() == 1 {
        return Ok(values.pop());
    }
    let mut joined = String::new();
    values.iter().try_for_each(|value| join(&mut joined, value))?;
    Ok(Some(joined))
}
