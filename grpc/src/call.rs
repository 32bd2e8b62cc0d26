//! A call on its way: what its steps tell each other, in the extensions of its request.

use std::{
    fmt,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicU8, Ordering},
    },
};

use http::{HeaderMap, HeaderName, HeaderValue};

use crate::{
    method::{Settings, is_grpc},
    request::Encoding,
};

/// The coding of the messages of a request.
pub(crate) const GRPC_ENCODING: HeaderName = HeaderName::from_static("grpc-encoding");
/// The codings that the client takes.
pub(crate) const GRPC_ACCEPT_ENCODING: HeaderName = HeaderName::from_static("grpc-accept-encoding");

/// Nothing of the body was read.
const UNREAD: u8 = 0;
/// The body was read, or is being read, for its key and its content.
const READ: u8 = 1;
/// The call is not protected: its body goes to the handler as it comes.
const PASSES: u8 = 2;

/// Marks a request that the layer leaves alone.
#[derive(Clone)]
pub(crate) struct LeftAlone;

/// A call that is protected if it has a key.
pub(crate) struct Call {
    pub(crate) settings: Arc<Settings>,
    pub(crate) encoding: Encoding,
    /// The method is known to answer with a stream.
    pub(crate) answers_stream: bool,
    /// Why the call is refused before anything of it is read.
    pub(crate) refused: Option<Trouble>,
    /// The fields that were taken out of the head.
    taken: Vec<(HeaderName, HeaderValue)>,
    body: AtomicU8,
    trouble: OnceLock<Trouble>,
}

/// Why a request cannot be read as one message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Trouble {
    /// It is a stream of messages.
    Stream,
    /// Its message is longer than the limit.
    TooLarge,
    /// Its message is compressed in a way that is not known here.
    UnknownEncoding,
    /// Its message is not what its head says.
    Malformed,
    /// It ends within a message.
    Torn,
    /// It is one of gRPC-Web, whose messages have another form.
    Web,
}

impl Call {
    /// Creates the call of a request, and takes out of its head what the protected call has not.
    ///
    /// A message reaches the handler decompressed, and an answer is not compressed, since a retry need not accept what
    /// the first try did.
    pub(crate) fn new(settings: Arc<Settings>, path: &str, headers: &mut HeaderMap) -> Self {
        let encoding = Encoding::of(headers.get(GRPC_ENCODING));
        let answers_stream = settings.answers_stream(path);
        let refused = if is_grpc(headers) {
            settings.refuses_stream(path).then_some(Trouble::Stream)
        } else {
            Some(Trouble::Web)
        };
        let taken = [GRPC_ENCODING, GRPC_ACCEPT_ENCODING].into_iter();
        let taken = taken.filter_map(|name| headers.remove(&name).map(|value| (name, value))).collect();
        let (body, trouble) = (AtomicU8::new(UNREAD), OnceLock::new());
        Self { settings, encoding, answers_stream, refused, taken, body, trouble }
    }

    /// Notes that the body is read.
    pub(crate) fn read(&self) {
        let _ = self.body.compare_exchange(UNREAD, READ, Ordering::AcqRel, Ordering::Acquire);
    }

    /// Returns whether the body goes to the handler as it comes.
    pub(crate) fn passes(&self) -> bool {
        self.body.load(Ordering::Acquire) == PASSES
    }

    /// Lets the call pass as it came, if nothing of it was read.
    pub(crate) fn pass(&self, headers: &mut HeaderMap) {
        if self.body.compare_exchange(UNREAD, PASSES, Ordering::AcqRel, Ordering::Acquire).is_ok() {
            headers.extend(self.taken.iter().cloned());
        }
    }

    /// Notes why the request cannot be read.
    pub(crate) fn fail(&self, trouble: Trouble) {
        let _ = self.trouble.set(trouble);
    }

    /// Returns why the request could not be read.
    pub(crate) fn trouble(&self) -> Option<Trouble> {
        self.trouble.get().copied()
    }
}

impl fmt::Display for Trouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Stream => "the request is a stream of messages",
            Self::TooLarge => "the message is longer than the limit",
            Self::UnknownEncoding => "the compression of the message is not known",
            Self::Malformed => "the message cannot be decompressed",
            Self::Torn => "the request ends within a message",
            Self::Web => "the request is one of gRPC-Web",
        })
    }
}

impl std::error::Error for Trouble {}
