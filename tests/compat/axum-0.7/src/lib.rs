//! Nothing: the tests are what is looked at.
