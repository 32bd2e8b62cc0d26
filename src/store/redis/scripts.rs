use std::sync::LazyLock;

use redis::{Cmd, Value};

use super::{
    error::Trouble,
    line::{Again, Line},
};

/// A script that runs in the server as one atomic step.
pub(super) struct Script {
    text: &'static str,
    digest: LazyLock<String>,
}

macro_rules! scripts {
    ($($name:ident = $file:literal),+ $(,)?) => {
        $(pub(super) static $name: Script = Script {
            text: include_str!($file),
            digest: LazyLock::new(|| redis::Script::new($name.text).get_hash().to_owned()),
        };)+
    };
}

scripts! {
    FORGET = "lua/forget.lua",
    RELEASE = "lua/release.lua",
    RENEW = "lua/renew.lua",
    SETTLE = "lua/settle.lua",
    TAKEOVER = "lua/takeover.lua",
    WATCH = "lua/watch.lua",
}

impl Line {
    /// Runs a script on one record. A server that does not know it yet is given its text.
    pub(super) async fn script(
        &self,
        script: &'static Script,
        name: &[u8],
        arguments: &[&[u8]],
        again: Again,
    ) -> Result<Value, Trouble> {
        match self.command(&call("EVALSHA", &script.digest, name, arguments), again).await {
            Err(trouble) if trouble.is_unknown_script() => {
                self.command(&call("EVAL", script.text, name, arguments), again).await
            }
            answer => answer,
        }
    }
}

fn call(verb: &str, script: &str, name: &[u8], arguments: &[&[u8]]) -> Cmd {
    let mut command = redis::cmd(verb);
    command.arg(script).arg(1).arg(name);
    for argument in arguments {
        command.arg(*argument);
    }
    command
}
