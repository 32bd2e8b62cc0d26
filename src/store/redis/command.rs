//! Commands, each in one buffer: its arguments are written one behind another, and the parts of an argument are not put
//! together before.

use std::io::Write;

use redis::{Cmd, RedisWrite, ToRedisArgs};

/// An argument of a command; its verb is the first.
#[derive(Clone, Copy)]
pub(super) enum Argument<'a> {
    Bytes(&'a [u8]),
    /// One argument in several parts.
    Joined(&'a [&'a [u8]]),
    Number(u64),
}

impl Argument<'_> {
    /// Returns how many bytes it takes, or a few more.
    fn size(&self) -> usize {
        match self {
            Self::Bytes(bytes) => bytes.len(),
            Self::Joined(parts) => parts.iter().map(|part| part.len()).sum(),
            Self::Number(_) => 20,
        }
    }

    /// Returns its bytes.
    pub(super) fn to_vec(self) -> Vec<u8> {
        match self {
            Self::Bytes(bytes) => bytes.to_vec(),
            Self::Joined(parts) => parts.concat(),
            Self::Number(number) => number.to_string().into_bytes(),
        }
    }
}

impl ToRedisArgs for Argument<'_> {
    fn write_redis_args<W>(&self, out: &mut W)
    where
        W: ?Sized + RedisWrite,
    {
        match self {
            Self::Bytes(bytes) => out.write_arg(bytes),
            Self::Joined(parts) => {
                let mut argument = out.writer_for_next_arg();
                for part in *parts {
                    // A buffer in memory takes everything.
                    let _ = argument.write_all(part);
                }
            }
            Self::Number(number) => number.write_redis_args(out),
        }
    }
}

/// Returns the command of these arguments.
pub(super) fn command<'a>(arguments: impl Iterator<Item = Argument<'a>> + Clone) -> Cmd {
    let (count, size) = arguments.clone().fold((0, 0), |(count, size), argument| (count + 1, size + argument.size()));
    let mut command = Cmd::with_capacity(count, size);
    for argument in arguments {
        command.arg(argument);
    }
    command
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_argument_in_parts_is_sent_as_one() {
        let name: [&[u8]; 2] = [b"idem{}:", b"key"];
        let arguments = [Argument::Bytes(b"SET"), Argument::Joined(&name), Argument::Number(u64::MAX)];
        let whole = redis::cmd("SET").arg("idem{}:key").arg(u64::MAX).get_packed_command();
        assert_eq!(command(arguments.into_iter()).get_packed_command(), whole);
        assert_eq!(arguments[1].to_vec(), b"idem{}:key");
    }
}
