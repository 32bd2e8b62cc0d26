use std::collections::HashMap;

/// How many failed topics are remembered while none of their messages is being sent.
const REMEMBERED: usize = 1000;

/// Counts the messages of each topic that are being sent, so that a destination that does not answer takes only a part
/// of a relay.
pub(super) struct Topics {
    most: usize,
    topics: HashMap<String, Topic>,
}

#[derive(Default)]
struct Topic {
    on_their_way: usize,
    /// Its last message was not sent: one message at a time is tried until one is sent.
    failing: bool,
}

impl Topics {
    /// Bounds the messages of each topic that are sent at the same time to `most`.
    pub(super) fn new(most: usize) -> Self {
        Self { most, topics: HashMap::new() }
    }

    pub(super) fn departed(&mut self, topic: &str) {
        match self.topics.get_mut(topic) {
            Some(known) => known.on_their_way += 1,
            None => drop(self.topics.insert(topic.to_owned(), Topic { on_their_way: 1, failing: false })),
        }
    }

    /// Notes that a message has finished. `failed` is `None` if it is unknown whether the destination answers.
    pub(super) fn landed(&mut self, topic: &str, failed: Option<bool>) {
        let Some(known) = self.topics.get_mut(topic) else { return };
        known.on_their_way = known.on_their_way.saturating_sub(1);
        known.failing = failed.unwrap_or(known.failing);
        if known.on_their_way == 0 && !known.failing {
            self.topics.remove(topic);
        }
        if self.topics.len() > REMEMBERED {
            self.topics.retain(|_, topic| topic.on_their_way > 0);
        }
    }

    /// Returns how many messages may be leased at once, whatever their topics are, except the full ones.
    pub(super) fn room(&self) -> usize {
        let rooms = self.topics.values().map(|topic| self.left(topic)).filter(|&left| left > 0);
        rooms.min().unwrap_or(self.most).min(self.most)
    }

    /// Returns the topics of which no more messages may be leased.
    pub(super) fn full(&self) -> Vec<&str> {
        self.topics.iter().filter(|(_, topic)| self.left(topic) == 0).map(|(name, _)| name.as_str()).collect()
    }

    fn left(&self, topic: &Topic) -> usize {
        let most = if topic.failing { 1 } else { self.most };
        most.saturating_sub(topic.on_their_way)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_topic_is_full_at_its_bound() {
        let mut topics = Topics::new(2);
        assert_eq!((topics.room(), topics.full()), (2, vec![]));
        topics.departed("a");
        assert_eq!((topics.room(), topics.full()), (1, vec![]));
        topics.departed("a");
        assert_eq!((topics.room(), topics.full()), (2, vec!["a"]), "others may have two");
        topics.landed("a", Some(false));
        topics.landed("a", Some(false));
        assert!(topics.topics.is_empty());
    }

    #[test]
    fn a_topic_that_fails_is_tried_with_one_message_at_a_time() {
        let mut topics = Topics::new(2);
        topics.departed("a");
        topics.landed("a", Some(true));
        assert_eq!((topics.room(), topics.full()), (1, vec![]));
        topics.departed("a");
        assert_eq!(topics.full(), ["a"]);
        topics.landed("a", None);
        assert_eq!(topics.room(), 1, "nothing has shown that it answers");
        topics.departed("a");
        topics.landed("a", Some(false));
        assert_eq!(topics.room(), 2);
    }

    #[test]
    fn topics_that_failed_are_not_remembered_without_bound() {
        let mut topics = Topics::new(2);
        topics.departed("on its way");
        for n in 0..3 * REMEMBERED {
            topics.departed(&n.to_string());
            topics.landed(&n.to_string(), Some(true));
        }
        assert!(topics.topics.len() <= REMEMBERED + 1 && topics.topics.contains_key("on its way"));
    }
}
