//! Status codes: which of them are final, and how the settings of [`tower_idempotency`] see them.
//!
//! | code | counts as | kept by default | [`Keep::FINAL`] |
//! | --- | --- | --- | --- |
//! | `OK` | 200 | yes | yes |
//! | `INVALID_ARGUMENT`, `FAILED_PRECONDITION`, `OUT_OF_RANGE` | 400 | no | yes |
//! | `NOT_FOUND` | 404 | no | yes |
//! | `ALREADY_EXISTS` | 409 | no | yes |
//! | `UNAUTHENTICATED` | 401: nothing began | no | no |
//! | `PERMISSION_DENIED` | 403 | no | no |
//! | `CANCELLED` | 408 | no | no |
//! | `ABORTED` | 423 | no | no |
//! | `RESOURCE_EXHAUSTED` | 429: nothing began | no | no |
//! | `UNKNOWN`, `INTERNAL`, `DATA_LOSS` | 500 | no | no |
//! | `UNIMPLEMENTED` | 501 | no | no |
//! | `UNAVAILABLE` | 503 | no | no |
//! | `DEADLINE_EXCEEDED` | 504 | no | no |
//!
//! An answer that is not kept releases its key, so that the next try runs. Everything that looks at the status of an
//! answer sees the number in this table: [`Keep`], records, events. The client does not: gRPC always answers 200.

use http::{HeaderMap, HeaderName, StatusCode};
use tonic::Code;
use tower_idempotency::Keep;

/// The status of a call, in the trailers, or in the head of an answer that has nothing else.
pub(crate) const GRPC_STATUS: HeaderName = HeaderName::from_static("grpc-status");

/// Keeps the answers with these codes, in place of a choice by the table above.
///
/// An answer whose code is not known when it has to be recorded, a stream, counts as `OK`.
///
/// ```
/// use tonic::Code;
/// use tower_idempotency::{MemoryStore, Policy};
/// use tower_idempotency_grpc::{GrpcLayer, codes};
///
/// // A transfer that the account does not cover stays refused.
/// let keep = codes::keep([Code::Ok, Code::FailedPrecondition]);
/// let layer = GrpcLayer::new(MemoryStore::new()).policy(Policy::replay().keep(keep));
/// # drop(layer);
/// ```
pub fn keep(codes: impl IntoIterator<Item = Code>) -> Keep {
    let codes: Vec<Code> = codes.into_iter().collect();
    Keep::when(move |answer| {
        let told = answer.trailers().and_then(of).or_else(|| of(answer.headers()));
        let code = told.unwrap_or(if answer.status().is_success() { Code::Ok } else { Code::Unknown });
        codes.contains(&code)
    })
}

/// Returns the code that these fields state.
pub(crate) fn of(fields: &HeaderMap) -> Option<Code> {
    fields.get(&GRPC_STATUS).map(|value| Code::from_bytes(value.as_bytes()))
}

/// Returns the status of HTTP as which an answer counts.
pub(crate) fn counts_as(code: Code) -> StatusCode {
    match code {
        Code::Ok => StatusCode::OK,
        Code::InvalidArgument | Code::FailedPrecondition | Code::OutOfRange => StatusCode::BAD_REQUEST,
        Code::Unauthenticated => StatusCode::UNAUTHORIZED,
        Code::PermissionDenied => StatusCode::FORBIDDEN,
        Code::NotFound => StatusCode::NOT_FOUND,
        Code::Cancelled => StatusCode::REQUEST_TIMEOUT,
        Code::AlreadyExists => StatusCode::CONFLICT,
        Code::Aborted => StatusCode::LOCKED,
        Code::ResourceExhausted => StatusCode::TOO_MANY_REQUESTS,
        Code::Unknown | Code::Internal | Code::DataLoss => StatusCode::INTERNAL_SERVER_ERROR,
        Code::Unimplemented => StatusCode::NOT_IMPLEMENTED,
        Code::Unavailable => StatusCode::SERVICE_UNAVAILABLE,
        Code::DeadlineExceeded => StatusCode::GATEWAY_TIMEOUT,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_code_counts_as_the_table_says() {
        let table = include_str!("codes.rs").lines().filter_map(|line| line.strip_prefix("//! | `"));
        let mut listed = 0;
        for line in table {
            let mut cells = format!("`{line}");
            cells.retain(|c| c != '`');
            let cells: Vec<_> = cells.split('|').map(str::trim).collect();
            for name in cells[0].split(", ") {
                let code = (0..17).map(Code::from_i32).find(|code| name_of(*code) == name).unwrap();
                assert!(cells[1].starts_with(counts_as(code).as_str()), "{name}");
                listed += 1;
            }
        }
        assert_eq!(listed, 17);
    }

    /// `NotFound` is `NOT_FOUND`.
    fn name_of(code: Code) -> String {
        let mut name = String::new();
        for letter in format!("{code:?}").chars() {
            if letter.is_ascii_uppercase() && !name.is_empty() {
                name.push('_');
            }
            name.push(letter.to_ascii_uppercase());
        }
        name
    }
}
