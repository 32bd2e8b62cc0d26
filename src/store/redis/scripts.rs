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

/// The bytes of a command for its verb and its numbers, beside its names and arguments, so that its buffer need not
/// grow.
pub(super) const COMMAND_OVERHEAD: usize = 40;

impl Transport {
    /// Runs a script on one record. If the server does not know the script yet, its text is sent.
    pub(super) async fn script(
        &self,
        script: &'static Script,
        name: &[u8],
        arguments: &[&[u8]],
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
        names: &[&[u8]],
        arguments: &[&[u8]],
        again: RetryOnDisconnect,
    ) -> Result<Value, CommandError> {
        self.command(&call("EVAL", script.text, names, arguments), again).await
    }
}

impl Script {
    /// Returns the command that runs the script on a server that knows it.
    pub(super) fn evalsha(&self, names: &[&[u8]], arguments: &[&[u8]]) -> Cmd {
        call("EVALSHA", &self.digest, names, arguments)
    }
}

/// Returns the command that runs a script, by its text or its digest.
fn call(verb: &str, script: &str, names: &[&[u8]], arguments: &[&[u8]]) -> Cmd {
    let words = || names.iter().chain(arguments);
    let length = script.len() + words().map(|word| word.len()).sum::<usize>();
    let mut command = Cmd::with_capacity(3 + names.len() + arguments.len(), length + COMMAND_OVERHEAD);
    command.arg(verb).arg(script).arg(names.len());
    for word in words() {
        command.arg(*word);
    }
    command
}
