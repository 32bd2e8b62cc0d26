//! Numbers that a seed determines.

/// `SplitMix64`: small, and the same on every machine and in every version.
#[derive(Clone, Debug)]
pub(crate) struct Random(u64);

impl Random {
    /// Several sequences from one seed: each name has its own.
    pub(crate) fn new(seed: u64, name: &str) -> Self {
        let mut state = seed;
        for byte in name.bytes() {
            state = mix(state ^ u64::from(byte)).wrapping_add(0x9E37_79B9_7F4A_7C15);
        }
        Self(state)
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        mix(self.0)
    }

    /// A number below `end`.
    pub(crate) fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }

    pub(crate) fn between(&mut self, least: u64, most: u64) -> u64 {
        least + self.below(most - least + 1)
    }

    /// Whether something occurs that does so `percent` of the times.
    pub(crate) fn percent(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }

    pub(crate) fn index(&mut self, length: usize) -> usize {
        usize::try_from(self.below(length as u64)).unwrap_or_default()
    }

    pub(crate) fn shuffle<T>(&mut self, items: &mut [T]) {
        for n in (1..items.len()).rev() {
            items.swap(n, self.index(n + 1));
        }
    }
}

fn mix(mut value: u64) -> u64 {
    value = (value ^ (value >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    value = (value ^ (value >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    value ^ (value >> 31)
}

#[test]
fn a_seed_and_a_name_determine_the_numbers() {
    let draw = |seed, name| Random::new(seed, name).next();
    assert_eq!(draw(7, "a"), draw(7, "a"));
    assert_ne!(draw(7, "a"), draw(7, "b"));
    assert_ne!(draw(7, "a"), draw(8, "a"));
}
