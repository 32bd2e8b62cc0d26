/// A method, or all methods of a service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct MethodName {
    service: Box<str>,
    method: Option<Box<str>>,
}

impl MethodName {
    /// Reads `package.Service/Method` or `package.Service`, also with a slash in front, as in a path.
    ///
    /// # Panics
    ///
    /// Panics if it is neither.
    #[track_caller]
    pub(crate) fn parse(name: &str) -> Self {
        let bare = name.strip_prefix('/').unwrap_or(name);
        let (service, method) = match bare.split_once('/') {
            Some((service, method)) => (service, Some(method)),
            None => (bare, None),
        };
        let is_word = |word: &str| !word.is_empty() && !word.contains(['/', '*', ' ']);
        assert!(
            is_word(service) && method.is_none_or(is_word),
            "{name:?} is neither `package.Service/Method` nor `package.Service`"
        );
        Self { service: service.into(), method: method.map(Into::into) }
    }

    /// Returns whether this is the path of the method, or of a method of the service.
    pub(crate) fn covers(&self, path: &str) -> bool {
        let path = path.strip_prefix('/').unwrap_or(path);
        let Some((service, method)) = path.split_once('/') else { return false };
        service == &*self.service && self.method.as_deref().is_none_or(|own| own == method)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn methods_and_services() {
        let covers = |name: &str, path: &str| MethodName::parse(name).covers(path);
        for name in ["bank.v1.Transfers/Create", "/bank.v1.Transfers/Create", "bank.v1.Transfers"] {
            assert!(covers(name, "/bank.v1.Transfers/Create"), "{name}");
            assert!(!covers(name, "/bank.v1.Transfer/Create"), "{name}");
            assert!(!covers(name, "/bank.v1.Transfers"), "{name}");
        }
        assert!(!covers("bank.v1.Transfers/Create", "/bank.v1.Transfers/CreateAll"));
        assert!(covers("bank.v1.Transfers", "/bank.v1.Transfers/List"));
    }

    #[test]
    fn a_name_that_is_neither_is_told_at_once() {
        for name in ["", "/", "a/", "/a/b/c", "a/*", "*"] {
            assert!(std::panic::catch_unwind(|| MethodName::parse(name)).is_err(), "{name}");
        }
    }
}
