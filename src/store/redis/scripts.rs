//! The scripts of `lua/`, and how they are run.
//!
//! Each is sent by its digest, and with its text only if the server does not know it (after a restart or a failover).
//! The prelude is compiled into each of them, so there is no library to install and no version to agree on.
//!
//! A script sees one record and no other key, except for the draft of a large answer, which is in the same slot. So
//! every script runs on a cluster as it does on one server.

use std::sync::LazyLock;

use redis::{Cmd, Value};

use super::{
    command::{Argument, command},
    connection::{RetryOnDisconnect, Transport},
    error::CommandError,
};

/// A script that runs in the server as one atomic step.
pub(super) struct Script {
    /// The prelude and the script.
    text: &'static str,
    /// The digest by which the server knows the script, computed once.
    digest: LazyLock<String>,
}

macro_rules! scripts {
    ($($name:ident = $file:literal),+ $(,)?) => {
        $(pub(super) static $name: Script = Script {
            text: concat!(include_str!("lua/prelude.lua"), include_str!($file)),
            digest: LazyLock::new(|| redis::Script::new($name.text).get_hash().to_owned()),
        };)+
    };
}

scripts! {
    FORGET = "lua/forget.lua",
    READ = "lua/read.lua",
    RELEASE = "lua/release.lua",
    RENEW = "lua/renew.lua",
    SETTLE = "lua/settle.lua",
    SETTLE_DRAFT = "lua/settle_draft.lua",
    TAKEOVER = "lua/takeover.lua",
    WATCH = "lua/watch.lua",
}

impl Transport {
    /// Runs a script on one record. If the server does not know the script yet, its text is sent.
    pub(super) async fn script(
        &self,
        script: &'static Script,
        name: Argument<'_>,
        arguments: &[Argument<'_>],
        again: RetryOnDisconnect,
    ) -> Result<Value, CommandError> {
        match self.command(&script.evalsha(&[name], arguments), again).await {
            Err(error) if error.is_unknown_script() => self.eval(script, &[name], arguments, again).await,
            answer => answer,
        }
    }

    /// Runs a script that the server does not know yet, by sending its text.
    pub(super) async fn eval(
        &self,
        script: &'static Script,
        names: &[Argument<'_>],
        arguments: &[Argument<'_>],
        again: RetryOnDisconnect,
    ) -> Result<Value, CommandError> {
        self.command(&call(b"EVAL", script.text, names, arguments), again).await
    }
}

impl Script {
    /// Returns the command that runs the script on a server that knows it.
    pub(super) fn evalsha(&self, names: &[Argument<'_>], arguments: &[Argument<'_>]) -> Cmd {
        call(b"EVALSHA", &self.digest, names, arguments)
    }
}

/// Returns the command that runs a script, by its text or its digest.
fn call(verb: &[u8], script: &str, names: &[Argument<'_>], arguments: &[Argument<'_>]) -> Cmd {
    let before = [Argument::Bytes(verb), Argument::Bytes(script.as_bytes()), Argument::Number(names.len() as u64)];
    command(before.iter().chain(names).chain(arguments).copied())
}
