/// Names of a route's parameters, for [`path`](super::path): one name, or an array or a slice of names.
pub trait PathParameters: sealed::PathParameters {}

impl<T: sealed::PathParameters> PathParameters for T {}

mod sealed {
    pub trait PathParameters {
        fn names(self) -> Vec<Box<str>>;
    }

    impl PathParameters for &str {
        fn names(self) -> Vec<Box<str>> {
            vec![self.into()]
        }
    }

    impl PathParameters for &[&str] {
        fn names(self) -> Vec<Box<str>> {
            self.iter().map(|name| (*name).into()).collect()
        }
    }

    impl<const N: usize> PathParameters for [&str; N] {
        fn names(self) -> Vec<Box<str>> {
            self.as_slice().names()
        }
    }
}
