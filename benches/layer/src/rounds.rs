//! Cases that take turns, so that whatever else the machine does falls on all alike.

/// Cases to compare.
#[derive(Default)]
pub struct Rounds<'a> {
    cases: Vec<Case<'a>>,
}

struct Case<'a> {
    name: &'static str,
    run: Box<dyn FnMut() -> f64 + 'a>,
    times: Vec<f64>,
}

/// A median and the quartiles around it.
#[derive(Clone, Copy, Debug)]
pub struct Figure {
    pub median: f64,
    pub quartiles: [f64; 2],
}

impl Figure {
    /// # Panics
    ///
    /// Panics if there are no values.
    pub fn of(values: impl IntoIterator<Item = f64>) -> Self {
        let mut sorted: Vec<_> = values.into_iter().collect();
        sorted.sort_by(f64::total_cmp);
        let at = |share: usize| sorted[(sorted.len() - 1) * share / 4];
        Self { median: at(2), quartiles: [at(1), at(3)] }
    }
}

impl<'a> Rounds<'a> {
    pub fn new() -> Self {
        Self::default()
    }

    /// `run` does a round of work and gives nanoseconds for one piece of it.
    #[must_use]
    pub fn case(mut self, name: &'static str, run: impl FnMut() -> f64 + 'a) -> Self {
        self.cases.push(Case { name, run: Box::new(run), times: Vec::new() });
        self
    }

    /// One round to warm up, and `rounds` that count. Who begins changes from round to round.
    #[must_use]
    pub fn run(mut self, rounds: usize) -> Self {
        for case in &mut self.cases {
            (case.run)();
        }
        let count = self.cases.len();
        for round in 0..rounds {
            for turn in 0..count {
                let case = &mut self.cases[(round + turn) % count];
                case.times.push((case.run)());
            }
        }
        self
    }

    pub fn names(&self) -> impl Iterator<Item = &'static str> {
        self.cases.iter().map(|case| case.name)
    }

    pub fn time(&self, name: &str) -> Figure {
        Figure::of(self.times(name).iter().copied())
    }

    /// The median of the rounds' ratios, which says more than the ratio of medians: a slow moment falls on both.
    pub fn ratio(&self, name: &str, base: &str) -> Figure {
        Figure::of(self.times(name).iter().zip(self.times(base)).map(|(time, base)| time / base))
    }

    /// What `name` takes longer than `base`, as multiples of `unit`.
    pub fn difference(&self, name: &str, base: &str, unit: &str) -> Figure {
        let times = self.times(name).iter().zip(self.times(base)).zip(self.times(unit));
        Figure::of(times.map(|((time, base), unit)| (time - base) / unit))
    }

    /// What `name` takes longer than `base`, in nanoseconds.
    pub fn excess(&self, name: &str, base: &str) -> Figure {
        Figure::of(self.times(name).iter().zip(self.times(base)).map(|(time, base)| time - base))
    }

    /// A table for people: nanoseconds, and the ratio to `base` with its quartiles.
    pub fn show(&self, title: &str, base: &str) {
        println!("{title:<44}{:>12}{:>9}{:>17}", "ns", "ratio", "quartiles");
        for name in self.names() {
            let Figure { median, quartiles: [low, high] } = self.ratio(name, base);
            println!("  {name:<42}{:>12.0}{median:>9.3}{low:>10.3} {high:.3}", self.time(name).median);
        }
    }

    fn times(&self, name: &str) -> &[f64] {
        match self.cases.iter().find(|case| case.name == name) {
            Some(case) => &case.times,
            None => panic!("no case is called {name}"),
        }
    }
}
