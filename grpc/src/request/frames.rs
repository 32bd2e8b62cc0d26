/// How long the prefix of a message is, in bytes: whether it is compressed, and its length.
pub(crate) const PREFIX: usize = 5;

/// The place in a body up to which it was read, and what is known of its messages.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct FrameScan {
    prefix: [u8; PREFIX],
    /// How much of the prefix is there, in bytes.
    held: usize,
    /// How much of the message is to come, in bytes.
    left: usize,
    begun: u32,
    ended: u32,
    first: Option<FirstMessage>,
}

/// What the prefix of the first message says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FirstMessage {
    pub(crate) is_compressed: bool,
    /// In bytes, without the prefix.
    pub(crate) length: usize,
}

impl FrameScan {
    /// Goes on by these bytes.
    pub(crate) fn advance(&mut self, mut data: &[u8]) {
        while !data.is_empty() {
            let rest = if self.held < PREFIX { self.read_prefix(data) } else { self.skip_message(data) };
            if self.held == PREFIX && self.left == 0 {
                self.held = 0;
                self.ended = self.ended.saturating_add(1);
            }
            data = rest;
        }
    }

    fn read_prefix<'a>(&mut self, data: &'a [u8]) -> &'a [u8] {
        if self.held == 0 {
            self.begun = self.begun.saturating_add(1);
        }
        let (taken, rest) = data.split_at(data.len().min(PREFIX - self.held));
        self.prefix[self.held..self.held + taken.len()].copy_from_slice(taken);
        self.held += taken.len();
        if self.held == PREFIX {
            let [flag, length @ ..] = self.prefix;
            self.left = usize::try_from(u32::from_be_bytes(length)).unwrap_or(usize::MAX);
            self.first.get_or_insert(FirstMessage { is_compressed: flag == 1, length: self.left });
        }
        rest
    }

    fn skip_message<'a>(&mut self, data: &'a [u8]) -> &'a [u8] {
        let (taken, rest) = data.split_at(data.len().min(self.left));
        self.left -= taken.len();
        rest
    }

    /// Returns what the prefix of the first message says, once it is there.
    pub(crate) fn first(&self) -> Option<FirstMessage> {
        self.first
    }

    /// Returns whether a second message has begun.
    pub(crate) fn is_stream(&self) -> bool {
        self.begun > 1
    }

    /// Returns whether one message is there, and nothing else.
    pub(crate) fn is_one_message(&self) -> bool {
        self.begun == 1 && self.ended == 1
    }

    /// Returns whether the bytes so far end within a message.
    pub(crate) fn is_torn(&self) -> bool {
        self.begun > self.ended
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scan(chunks: &[&[u8]]) -> FrameScan {
        let mut scan = FrameScan::default();
        for chunk in chunks {
            scan.advance(chunk);
        }
        scan
    }

    #[test]
    fn wherever_the_bytes_are_cut() {
        let one = b"\0\0\0\0\x03abc";
        let two = [&one[..], b"\x01\0\0\0\x01x"].concat();
        for cut in 0..two.len() {
            let scan = scan(&[&two[..cut], &two[cut..]]);
            assert!(scan.is_stream() && !scan.is_torn() && !scan.is_one_message(), "{cut}");
        }
        for cut in 1..one.len() {
            let part = scan(&[&one[..cut]]);
            assert!(part.is_torn() && !part.is_one_message() && !part.is_stream(), "{cut}");
            let whole = scan(&[&one[..cut], &one[cut..]]);
            assert!(whole.is_one_message() && !whole.is_torn(), "{cut}");
            assert_eq!(whole.first(), Some(FirstMessage { is_compressed: false, length: 3 }));
        }
    }

    #[test]
    fn messages_of_nothing() {
        assert!(scan(&[b"\0\0\0\0\0"]).is_one_message());
        assert!(scan(&[b"\0\0\0\0\0\0"]).is_stream());
        let none = scan(&[b""]);
        assert!(!none.is_one_message() && !none.is_torn() && none.first().is_none());
    }

    #[test]
    fn a_compressed_message_says_so() {
        assert_eq!(scan(&[b"\x01\xff\xff\xff\xff"]).first().map(|first| first.is_compressed), Some(true));
    }
}
