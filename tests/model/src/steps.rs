//! What can happen next.

use stateright::{Model, Property};

use crate::{
    config::{Broken, Config, Mode},
    process::look_back,
    properties,
    state::{Budget, Number, Phase, Request, Seen, State, Step, Verb},
    store::LEASE,
};

impl Model for Config {
    type State = State;
    type Action = Step;

    fn init_states(&self) -> Vec<State> {
        let left = Budget {
            crashes: self.crashes,
            losses: self.losses,
            copies: self.copies,
            late: self.late,
            failures: self.failures,
            failovers: u8::from(self.failover),
        };
        let request = Request { phase: Phase::New, renewals: self.renewals, renews: false };
        vec![State {
            now: 0,
            record: None,
            before: None,
            requests: vec![request; self.requests.len()],
            messages: Vec::new(),
            answers: Vec::new(),
            reconciles: None,
            left,
            seen: Seen::default(),
        }]
    }

    fn actions(&self, state: &State, steps: &mut Vec<Step>) {
        for (number, request) in (0..).zip(&state.requests) {
            of_request(state, number, request, steps);
        }
        for &message in &state.messages {
            steps.push(Step::Arrive(message));
            if state.left.copies > 0 {
                steps.push(Step::ArriveOnceMore(message));
            }
            if state.left.late > 0 {
                steps.push(Step::AnswerIsLate(message));
            }
            if state.left.losses > 0 {
                steps.extend([Step::AnswerIsLost(message), Step::Lose(message)]);
            }
        }
        steps.extend(state.answers.iter().map(|(message, _)| Step::Hear(*message)));
        if self.reconciler {
            let early = self.is(Broken::ReconcilesTooEarly);
            match (state.reconciles, state.holder()) {
                (None, Some((_, lapsed))) if lapsed || early => steps.push(Step::Reconcile),
                (Some(_), _) => steps.push(Step::Reconcile),
                _ => {}
            }
        }
        if state.left.failovers > 0 && state.record != state.before {
            steps.push(Step::FailOver);
        }
        if state.now < self.ticks {
            steps.push(Step::Tick);
        }
    }

    fn next_state(&self, state: &State, step: Step) -> Option<State> {
        let mut next = state.clone();
        self.take(&mut next, step);
        next.messages.sort_unstable();
        next.messages.dedup();
        look_back(&mut next);
        (next != *state).then_some(next)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        properties::all()
    }
}

impl Config {
    fn take(&self, state: &mut State, step: Step) {
        match step {
            Step::Send(number) => {
                state.phase(number, Phase::Claims { sent: state.now });
                state.send(number, Verb::Claim);
            }
            Step::Arrive(message) => {
                state.messages.retain(|other| *other != message);
                let reply = self.arrive(state, message);
                self.hear(state, message, reply);
            }
            Step::ArriveOnceMore(message) => {
                state.left.copies -= 1;
                let reply = self.arrive(state, message);
                self.hear(state, message, reply);
            }
            Step::AnswerIsLost(message) => {
                state.left.losses -= 1;
                state.messages.retain(|other| *other != message);
                self.arrive(state, message);
            }
            Step::AnswerIsLate(message) => {
                state.left.late -= 1;
                state.messages.retain(|other| *other != message);
                let reply = self.arrive(state, message);
                state.answers.push((message, reply));
            }
            Step::Hear(message) => {
                if let Some(at) = state.answers.iter().position(|(other, _)| *other == message) {
                    let (message, reply) = state.answers.remove(at);
                    self.hear(state, message, reply);
                }
            }
            Step::Lose(message) => {
                state.left.losses -= 1;
                state.messages.retain(|other| *other != message);
            }
            Step::GiveUp(number) => self.give_up(state, number),
            Step::Renew(number) => {
                state.requests[usize::from(number)].renewals -= 1;
                state.requests[usize::from(number)].renews = true;
                state.send(number, Verb::Renew);
            }
            Step::Look(number) => self.look(state, number),
            Step::Act(number) => self.act(state, number),
            Step::Finish(number) => self.end(state, number, false),
            Step::Fail(number) => {
                state.left.failures -= 1;
                self.end(state, number, true);
            }
            Step::Die(number) => {
                state.left.crashes -= 1;
                if self.mode == Mode::Transaction {
                    let acted = matches!(state.requests[usize::from(number)].phase, Phase::Runs { acted: true, .. });
                    if acted && self.is(Broken::RollbackKeepsTheEffect) {
                        state.seen.effects += 1;
                    }
                    // The database ends the transaction of a connection that is gone, unless it is committed.
                    state.messages.retain(|message| message.from != number);
                    state.roll_back(number);
                }
                state.phase(number, Phase::Died);
            }
            Step::Reconcile => self.reconcile(state),
            Step::FailOver => {
                state.left.failovers -= 1;
                state.record = state.before.clone();
                state.seen.forgotten = true;
            }
            Step::Tick => {
                state.now += 1;
                let now = state.now;
                state.seen.late_record |= state.requests.iter().any(|request| match request.phase {
                    Phase::Runs { since, acted: true, .. } | Phase::Ends { since, failed: false } => {
                        now >= since + LEASE
                    }
                    _ => false,
                });
            }
        }
    }
}

/// Adds what a request can do.
fn of_request(state: &State, number: Number, request: &Request, steps: &mut Vec<Step>) {
    let may_die = state.left.crashes > 0;
    match request.phase {
        Phase::New => steps.push(Step::Send(number)),
        Phase::Claims { .. } => steps.push(Step::GiveUp(number)),
        Phase::Runs { acted, .. } => {
            steps.push(if acted { Step::Finish(number) } else { Step::Look(number) });
            if !acted && state.left.failures > 0 {
                steps.push(Step::Fail(number));
            }
            if let Phase::Runs { cleared: true, acted: false, .. } = request.phase {
                steps.push(Step::Act(number));
            }
            if request.renewals > 0 && !request.renews {
                steps.push(Step::Renew(number));
            }
            if may_die {
                steps.push(Step::Die(number));
            }
        }
        Phase::Ends { .. } => {
            steps.push(Step::GiveUp(number));
            if may_die {
                steps.push(Step::Die(number));
            }
        }
        Phase::Answered(_) | Phase::Died => {}
    }
}
