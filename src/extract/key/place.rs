use super::extractor::{KeyExtractor, KeySource};

impl KeyExtractor {
    /// Returns whether the key may be a string of RFC 9651 that consists of blanks.
    pub(crate) fn may_be_quoted(&self) -> bool {
        match &self.0 {
            KeySource::Header { .. } | KeySource::Content => true,
            KeySource::First(of) => of.iter().all(Self::may_be_quoted),
            _ => false,
        }
    }

    /// Returns where the key belongs, for a client that left it out; `None` if the client need not know, or has nothing
    /// to send.
    pub(crate) fn place(&self) -> Option<String> {
        Some(match &self.0 {
            KeySource::Header { name, .. } => format!("the header `{}`", as_written(name.as_str())),
            KeySource::Query(name) => format!("the query parameter `{name}`"),
            #[cfg(feature = "axum")]
            KeySource::Path(names) => match &**names {
                [name] => format!("the path parameter `{name}`"),
                names => format!("the path parameters `{}`", names.join("`, `")),
            },
            #[cfg(feature = "json")]
            KeySource::Json(pointer) => format!("the JSON body at {pointer:?}"),
            #[cfg(feature = "form")]
            KeySource::Form(name) => format!("the form field `{name}`"),
            KeySource::Field(name) => format!("the form field `{name}`"),
            #[cfg(feature = "xml")]
            KeySource::Xml(name) => format!("the XML element `{name}`"),
            KeySource::All(parts) => joined(parts, " and ")?,
            KeySource::First(of) => joined(of, " or ")?,
            KeySource::Closure(_) | KeySource::Body(_) | KeySource::Content => return None,
        })
    }
}

fn joined(of: &[KeyExtractor], word: &str) -> Option<String> {
    let places: Option<Vec<_>> = of.iter().map(KeyExtractor::place).collect();
    places.filter(|places| !places.is_empty()).map(|places| places.join(word))
}

/// Returns a header's name as documents write it: `Idempotency-Key`.
fn as_written(name: &str) -> String {
    let mut starts = true;
    let written = name.chars().map(|character| {
        let written = if starts { character.to_ascii_uppercase() } else { character };
        starts = character == '-';
        written
    });
    written.collect()
}

#[cfg(test)]
mod tests {
    use super::super::{all, content, first, from_fn, header, query};

    #[test]
    fn places_by_name() {
        assert_eq!(header("idempotency-key").place().unwrap(), "the header `Idempotency-Key`");
        let both = all([header("X-Terminal"), query("receipt")]);
        assert_eq!(both.place().unwrap(), "the header `X-Terminal` and the query parameter `receipt`");
        assert_eq!(
            first([query("a"), query("b")]).place().unwrap(),
            "the query parameter `a` or the query parameter `b`"
        );
        assert_eq!(content().place(), None);
        assert_eq!(all([query("a"), from_fn(|_| Ok(None))]).place(), None);
    }
}
