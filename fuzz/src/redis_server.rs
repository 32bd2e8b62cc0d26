//! As much of Redis as a store needs for one record, which may be anything.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use redis::{Arg, Cmd, Pipeline, RedisFuture, Value, aio::ConnectionLike};

/// What stands under the one name there is.
#[derive(Clone, Debug, Default)]
pub struct Kept {
    pub value: Option<Vec<u8>>,
    /// What `PTTL` says.
    pub left: i64,
    /// What `PEXPIRETIME` says.
    pub expires: i64,
    /// The transaction that is being asked for looks at the head alone.
    pub glanced: bool,
}

#[derive(Clone, Default)]
pub struct Server(Arc<Mutex<Kept>>);

impl Server {
    pub fn kept(&self) -> MutexGuard<'_, Kept> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn answer(&self, command: &Cmd) -> Value {
        let words: Vec<&[u8]> = command
            .args_iter()
            .map(|word| match word {
                Arg::Simple(word) => word,
                other => panic!("{other:?} is no word"),
            })
            .collect();
        let mut kept = self.kept();
        let value = || kept.value.clone().map_or(Value::Nil, Value::BulkString);
        match *words {
            [b"INFO"] => text(b"redis_version:7.0.0\r\n"),
            [b"MULTI"] => Value::Okay,
            // A glance asks for the head, a page for all of it.
            [b"EXEC"] if kept.glanced => {
                kept.glanced = false;
                Value::Array(vec![head(&kept), Value::Int(kept.left)])
            }
            [b"EXEC"] => Value::Array(vec![value(), Value::Int(kept.left), Value::Int(kept.expires)]),
            [b"GET", _] => value(),
            [b"PTTL", _] => Value::Int(kept.left),
            [b"PEXPIRETIME", _] => Value::Int(kept.expires),
            [b"GETRANGE", _, b"0", b"106"] => {
                kept.glanced = true;
                head(&kept)
            }
            [b"SCAN", ..] => {
                let names = if kept.value.is_some() { vec![text(&self::name())] } else { Vec::new() };
                Value::Array(vec![text(b"0"), Value::Array(names)])
            }
            [b"SET", _, new, b"NX", ref more @ ..] => {
                let found = value();
                // What is read in its last moment is gone in the next.
                let ends = kept.value.is_some() && kept.left <= 0 && kept.left != -1;
                if ends {
                    kept.value = None;
                } else if kept.value.is_none() {
                    kept.value = Some(new.to_vec());
                    kept.left = number(more.last());
                }
                match (more, &found) {
                    ([b"GET", ..], _) => found,
                    (_, Value::Nil) => Value::Okay,
                    _ => Value::Nil,
                }
            }
            // A claim that takes over, by its script.
            [b"EVALSHA", _, b"1", _, seen, front, times, rare, span, _] if seen.len() == 22 => {
                let ends = kept.left <= 0 && kept.left != -1;
                let Some(before) = kept.value.take().filter(|_| !ends) else { return Value::Int(0) };
                assert_eq!(&before[..22], seen);
                let expiry: &[u8] = if before[24] & 1 == 0 { &[] } else { &before[107..115] };
                kept.value = Some([front, &before[79..87], times, expiry, rare].concat());
                kept.left = number(Some(&span));
                Value::Int(1)
            }
            // Whatever ends a claim: it is not the one that runs.
            [b"EVALSHA", ..] => match value() {
                Value::Nil => Value::Nil,
                value => Value::Array(vec![value, Value::Int(kept.left), Value::Int(kept.expires)]),
            },
            _ => panic!(
                "{:?} is not known",
                words.iter().map(|word| word.escape_ascii().to_string()).collect::<Vec<_>>()
            ),
        }
    }
}

/// The name of the record.
fn name() -> Vec<u8> {
    [b"idem{}:", super::redis_record::key().as_bytes()].concat()
}

fn head(kept: &Kept) -> Value {
    let value = kept.value.as_deref().unwrap_or_default();
    text(&value[..value.len().min(107)])
}

fn text(text: &[u8]) -> Value {
    Value::BulkString(text.to_vec())
}

fn number(word: Option<&&[u8]>) -> i64 {
    word.and_then(|word| std::str::from_utf8(word).ok()?.parse().ok()).expect("a number")
}

impl ConnectionLike for Server {
    fn req_packed_command<'a>(&'a mut self, command: &'a Cmd) -> RedisFuture<'a, Value> {
        Box::pin(async move { Ok(self.answer(command)) })
    }

    fn req_packed_commands<'a>(
        &'a mut self,
        pipeline: &'a Pipeline,
        skip: usize,
        keep: usize,
    ) -> RedisFuture<'a, Vec<Value>> {
        Box::pin(
            async move { Ok(pipeline.cmd_iter().map(|command| self.answer(command)).skip(skip).take(keep).collect()) },
        )
    }

    fn get_db(&self) -> i64 {
        0
    }
}
