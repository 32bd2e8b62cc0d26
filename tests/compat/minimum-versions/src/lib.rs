//! Nothing: that the dependencies compile is what is looked at.
