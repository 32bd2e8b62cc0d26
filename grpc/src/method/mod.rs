//! Methods by their names, and what the layer does with each.

mod name;
mod settings;

use self::name::MethodName;
pub(crate) use self::settings::{Settings, Treatment, is_grpc};

/// What happens to a call of a method to which clients send a stream of messages.
///
/// Such a call cannot be protected: it has begun before its last message is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ClientStreams {
    /// It reaches the handler as it comes, unprotected, also if it has a key.
    Pass,
    /// With a key it is refused at once (`UNIMPLEMENTED`, `client-stream`), since its client counts on being protected.
    /// Without one it reaches the handler if [`key_optional`](crate::GrpcLayer::key_optional) is set, and is refused as
    /// any other call otherwise.
    Refuse,
}
