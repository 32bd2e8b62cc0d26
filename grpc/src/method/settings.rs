use std::time::Duration;

use http::{HeaderMap, header::CONTENT_TYPE, request::Parts};

use super::{ClientStreams, MethodName};

/// What tonic and other implementations take at most by default, in bytes.
const MESSAGE_LIMIT: usize = 4 * 1024 * 1024;

/// What a layer does with calls, beside what its core does.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    /// The methods that are protected, if not all are.
    only: Option<Vec<MethodName>>,
    skipped: Vec<MethodName>,
    client_streams: Vec<(ClientStreams, MethodName)>,
    server_streams: Vec<MethodName>,
    /// How long a message of a request may be, in bytes.
    pub(crate) request_limit: usize,
    /// How long an answer may be to be kept, in bytes.
    pub(crate) response_limit: usize,
    /// How long the end of a request may come after its message.
    pub(crate) end_timeout: Duration,
    /// How long the end of an answer may come after its head.
    pub(crate) stream_after: Duration,
}

/// What happens to a request.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Treatment {
    /// It reaches the handler untouched.
    Alone,
    /// It is protected if it has a key.
    Protected,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            only: None,
            skipped: Vec::new(),
            client_streams: Vec::new(),
            server_streams: Vec::new(),
            request_limit: MESSAGE_LIMIT,
            response_limit: MESSAGE_LIMIT,
            end_timeout: Duration::from_secs(10),
            stream_after: Duration::from_secs(1),
        }
    }
}

impl Settings {
    #[track_caller]
    pub(crate) fn add_only<'a>(&mut self, names: impl IntoIterator<Item = &'a str>) {
        let only = self.only.get_or_insert_default();
        only.extend(names.into_iter().map(MethodName::parse));
    }

    #[track_caller]
    pub(crate) fn add_skipped<'a>(&mut self, names: impl IntoIterator<Item = &'a str>) {
        self.skipped.extend(names.into_iter().map(MethodName::parse));
    }

    #[track_caller]
    pub(crate) fn add_client_streams<'a>(&mut self, what: ClientStreams, names: impl IntoIterator<Item = &'a str>) {
        self.client_streams.extend(names.into_iter().map(|name| (what, MethodName::parse(name))));
    }

    #[track_caller]
    pub(crate) fn add_server_streams<'a>(&mut self, names: impl IntoIterator<Item = &'a str>) {
        self.server_streams.extend(names.into_iter().map(MethodName::parse));
    }

    /// Returns what happens to a request.
    pub(crate) fn treatment(&self, parts: &Parts) -> Treatment {
        let path = parts.uri.path();
        let covered = |names: &[MethodName]| names.iter().any(|name| name.covers(path));
        let alone = !(is_grpc(&parts.headers) || is_grpc_web(&parts.headers))
            || covered(&self.skipped)
            || self.only.as_deref().is_some_and(|only| !covered(only))
            || self.has_stream(ClientStreams::Pass, path);
        if alone { Treatment::Alone } else { Treatment::Protected }
    }

    /// Returns whether a call of the method is refused because its client sends a stream.
    pub(crate) fn refuses_stream(&self, path: &str) -> bool {
        self.has_stream(ClientStreams::Refuse, path)
    }

    /// Returns whether the method is known to answer with a stream.
    pub(crate) fn answers_stream(&self, path: &str) -> bool {
        self.server_streams.iter().any(|name| name.covers(path))
    }

    /// The last word about a method counts.
    fn has_stream(&self, what: ClientStreams, path: &str) -> bool {
        self.client_streams.iter().rev().find(|(_, name)| name.covers(path)).is_some_and(|(said, _)| *said == what)
    }
}

/// Returns whether these are the fields of a message of gRPC, and not of gRPC-Web, whose framing is another.
pub(crate) fn is_grpc(headers: &HeaderMap) -> bool {
    is_of(headers, b"application/grpc")
}

/// Returns whether these are the fields of a message of gRPC-Web, as bytes or as text.
fn is_grpc_web(headers: &HeaderMap) -> bool {
    is_of(headers, b"application/grpc-web") || is_of(headers, b"application/grpc-web-text")
}

/// Returns whether the content is of this type, with or without a suffix.
fn is_of(headers: &HeaderMap, media_type: &[u8]) -> bool {
    let content_type = headers.get(CONTENT_TYPE).map_or(&b""[..], |value| value.as_bytes());
    content_type.strip_prefix(media_type).is_some_and(|rest| matches!(rest.first(), None | Some(b'+' | b';')))
}

#[cfg(test)]
mod tests {
    use http::Request;

    use super::*;

    fn treatment(settings: &Settings, path: &str, content_type: &str) -> Treatment {
        let request = Request::post(path).header(CONTENT_TYPE, content_type).body(()).unwrap();
        settings.treatment(&request.into_parts().0)
    }

    #[test]
    fn what_is_no_grpc_is_left_alone() {
        let settings = Settings::default();
        let web = ["application/grpc-web", "application/grpc-web+proto", "application/grpc-web-text+proto"];
        for protected in web.into_iter().chain(["application/grpc", "application/grpc+proto", "application/grpc;a=b"]) {
            assert_eq!(treatment(&settings, "/a.B/C", protected), Treatment::Protected, "{protected}");
        }
        for other in ["", "application/json", "application/grpcs"] {
            assert_eq!(treatment(&settings, "/a.B/C", other), Treatment::Alone, "{other}");
        }
    }

    #[test]
    fn methods_are_chosen_by_name() {
        let mut settings = Settings::default();
        settings.add_skipped(["a.B/Read"]);
        settings.add_only(["a.B"]);
        settings.add_client_streams(ClientStreams::Pass, ["a.B/Upload"]);
        let is_protected = |path: &str| treatment(&settings, path, "application/grpc") == Treatment::Protected;
        assert!(is_protected("/a.B/Write"));
        for other in ["/a.B/Read", "/a.B/Upload", "/a.C/Write"] {
            assert!(!is_protected(other), "{other}");
        }
    }

    #[test]
    fn the_last_word_about_a_stream_counts() {
        let mut settings = Settings::default();
        settings.add_client_streams(ClientStreams::Pass, ["a.B"]);
        settings.add_client_streams(ClientStreams::Refuse, ["a.B/Upload"]);
        assert!(settings.refuses_stream("/a.B/Upload") && !settings.refuses_stream("/a.B/Other"));
        assert_eq!(treatment(&settings, "/a.B/Upload", "application/grpc"), Treatment::Protected);
        assert_eq!(treatment(&settings, "/a.B/Other", "application/grpc"), Treatment::Alone);
    }
}
