//! Stores with one mistake each: the model, with the mistake made on the way to it or back.

mod claiming;
mod ending;
mod operator;
mod store;

use std::{
    collections::HashSet,
    pin::pin,
    sync::{Arc, Mutex},
    task::{Context, Poll, Waker},
    time::Duration,
};

use tower_idempotency::store::{Finished, RecordKey, State, StoreFuture, StoredRecord};

use super::model::Model;

const FOR_EVER: Duration = Duration::from_secs(1_000_000);

macro_rules! bugs {
    ($($bug:ident breaks $rule:ident,)*) => {
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(crate) enum Bug { $($bug),* }

        /// The mistakes, each with the rule that must find it.
        pub(crate) const BUGS: &[(Bug, &str)] = &[$((Bug::$bug, stringify!($rule))),*];
    };
}

bugs! {
    // Claims.
    AttemptsFromZero breaks a_free_key_is_granted,
    LeftIsTooLong breaks a_running_claim_is_not_granted_again,
    HolderIsUnknown breaks a_running_claim_is_not_granted_again,
    OwnClaimRefused breaks ones_own_second_claim_is_recognised,
    OwnLapsedClaimTakenOver breaks ones_own_second_claim_is_recognised,
    KeysJoined breaks other_keys_do_not_collide,
    KeysFolded breaks other_keys_do_not_collide,
    KeysCut breaks long_keys_and_all_scripts_are_kept,
    NamespacesMixed breaks namespaces_never_meet,
    FingerprintBeforeCaller breaks another_request_is_a_mismatch_while_the_first_runs,
    StateBeforeFingerprint breaks another_request_is_a_mismatch_while_the_first_runs,
    SchemeIgnored breaks another_request_is_a_mismatch_while_the_first_runs,
    ReplayIgnoresFingerprint breaks another_request_is_a_mismatch_once_the_first_has_settled,
    ReplayIgnoresCaller breaks another_request_is_a_mismatch_once_the_first_has_settled,
    NoteCut breaks a_large_note_is_kept_whole,
    ClaimChecksThenActs breaks of_many_claims_exactly_one_is_granted,
    ClaimInTwoSteps breaks a_claim_that_was_dropped_half_way_may_be_repeated,
    RunningEvicted breaks a_running_claim_survives_traffic_on_other_keys,
    DurationsOverflow breaks huge_durations_do_not_overflow,
    // Callers.
    ReleasedKeepsRequest breaks a_released_record_belongs_to_its_caller,
    ReleasedGoesToAnybody breaks a_released_record_belongs_to_its_caller,
    ReleasedOfNobodyIsClosed breaks a_released_record_of_nobody_is_free_for_anybody,
    ReleasedOfNobodyStaysSo breaks a_released_record_of_nobody_is_free_for_anybody,
    NewCallerUnsaid breaks a_released_record_of_nobody_is_free_for_anybody,
    ReleasedTokenGoesToAnybody breaks a_released_token_belongs_to_its_caller,
    OriginIsTheLastClaims breaks the_origin_is_the_first_claims,
    OriginUntold breaks the_origin_is_the_first_claims,
    OriginUntoldToDuplicates breaks the_origin_is_the_first_claims,
    OriginLost breaks the_origin_is_the_first_claims,
    TraceIsTheFirstClaims breaks the_trace_is_the_last_claims,
    TraceLost breaks the_trace_is_the_last_claims,
    // Secrets.
    SecretIgnored breaks a_record_is_compared_under_its_own_secret,
    SecretIsTheFirstClaims breaks the_secret_of_the_last_claim_is_kept,
    SecretLost breaks the_secret_of_the_last_claim_is_kept,
    MissingSecretIsNoRecord breaks a_secret_that_is_not_at_hand_is_no_match,
    OriginsSecretIgnored breaks a_secret_that_is_not_at_hand_is_no_match,
    // Leases.
    ZeroLeaseForEver breaks a_zero_lease_has_lapsed,
    LeaseForEver breaks a_lapsed_claim_is_taken_over,
    TakeoverResetsAttempt breaks a_takeover_raises_the_attempt,
    TakeoverUnsaid breaks a_takeover_raises_the_attempt,
    TakeoverKeepsNote breaks a_takeover_raises_the_attempt,
    TakeoverOfAnyRequest breaks a_takeover_is_for_the_same_request_only,
    RecordsAtMostOnceIgnored breaks at_most_once_is_never_taken_over,
    ClaimsAtMostOnceIgnored breaks at_most_once_is_never_taken_over,
    TakeoverChecksThenActs breaks of_many_takeovers_exactly_one_is_granted,
    LateRenewRefused breaks a_lapsed_claim_may_be_renewed_by_its_claimant,
    RenewKeepsLength breaks a_lapsed_claim_may_be_renewed_by_its_claimant,
    RenewByAnybody breaks renewing_by_another_claimant_changes_nothing,
    RenewRevives breaks renewing_by_another_claimant_changes_nothing,
    RenewCreates breaks renewing_an_unknown_key_creates_nothing,
    RenewDoesNothing breaks renewing_prolongs,
    HorizonBeforeLease breaks a_running_claim_is_there_past_its_horizon,
    HorizonIgnored breaks a_lapsed_claim_is_there_until_its_horizon,
    HorizonForEver breaks a_lapsed_claim_is_gone_after_its_horizon,
    // Endings.
    PayloadCut breaks a_settled_answer_is_replayed_byte_for_byte,
    PayloadAsText breaks a_settled_answer_is_replayed_byte_for_byte,
    EmptyIsTombstone breaks a_settled_answer_is_replayed_byte_for_byte,
    TombstoneIsEmpty breaks a_tombstone_stays_a_tombstone,
    NoteLost breaks what_was_claimed_survives_settling,
    CallerLost breaks what_was_claimed_survives_settling,
    AttemptLost breaks what_was_claimed_survives_settling,
    SettleByAnybody breaks settling_by_another_claimant_changes_nothing,
    SettleLate breaks a_late_finisher_hears_what_is_there,
    RefusalSaysNothing breaks settling_by_another_claimant_changes_nothing,
    ReleaseByAnybody breaks releasing_by_another_claimant_changes_nothing,
    SettleChecksThenActs breaks a_late_finisher_and_a_takeover_do_not_both_win,
    RenewChecksThenActs breaks a_late_finisher_and_a_takeover_do_not_both_win,
    EndsCheckThenAct breaks of_settling_and_releasing_at_once_exactly_one_is_done,
    LapsedSettleRefused breaks a_claimant_that_still_matches_may_end_a_lapsed_claim,
    LapsedReleaseRefused breaks a_claimant_that_still_matches_may_end_a_lapsed_claim,
    SettleTwiceRefused breaks repeating_ones_own_settling_says_so,
    SettleTwiceDone breaks repeating_ones_own_settling_says_so,
    ReleaseTwiceRefused breaks repeating_ones_own_releasing_says_so,
    SettleRevives breaks settling_after_releasing_changes_nothing,
    ReleaseRevives breaks releasing_after_settling_changes_nothing,
    SettleCreates breaks ending_an_unknown_key_creates_nothing,
    ReleaseForgets breaks a_released_key_keeps_its_attempts,
    ReleasedIsTakenOver breaks a_released_key_keeps_its_attempts,
    ReleasedChecksThenActs breaks of_many_claims_on_a_released_key_exactly_one_is_granted,
    ZeroRetentionForEver breaks a_retention_of_zero_is_over_at_once,
    ZeroKeepForEver breaks a_released_record_kept_for_zero_is_gone_at_once,
    RetentionForEver breaks a_settled_record_is_gone_after_its_retention,
    RetentionIgnored breaks a_settled_record_is_there_until_its_retention,
    KeepForEver breaks a_released_record_is_gone_after_its_time,
    // Undoing.
    UndoIsRelease breaks a_first_claim_that_is_undone_leaves_no_record,
    UndoForgets breaks a_later_claim_that_is_undone_leaves_what_was_before,
    UndoKeepsAttempt breaks a_later_claim_that_is_undone_leaves_what_was_before,
    UndoTwiceCounts breaks a_later_claim_that_is_undone_leaves_what_was_before,
    UndoTwiceRefused breaks a_later_claim_that_is_undone_leaves_what_was_before,
    UndoKeepsCaller breaks an_undone_claim_leaves_the_record_to_whom_it_belonged,
    UndoLosesCaller breaks an_undone_claim_leaves_the_record_to_whom_it_belonged,
    UndoneTakeoverRuns breaks an_undone_takeover_leaves_a_released_record,
    LapsedUndoRefused breaks a_lapsed_claim_may_be_undone_by_its_claimant,
    UndoByAnybody breaks undoing_by_another_claimant_changes_nothing,
    UndoRevives breaks undoing_what_has_ended_changes_nothing,
    ZeroUndoForEver breaks an_undone_record_kept_for_zero_is_gone_at_once,
    UndoForEver breaks an_undone_record_is_gone_after_its_time,
    UndoneTokenIsGone breaks an_undone_token_is_issued_again,
    UndoneTokenKeepsOrigin breaks an_undone_token_is_issued_again,
    LateCopyGranted breaks a_late_copy_of_a_released_claim_is_not_granted,
    // Waiting.
    UndoUnheard breaks a_change_wakes_those_who_wait,
    EarlierChangeMissed breaks a_change_before_waiting_counts,
    UnknownKeyWaitedFor breaks of_an_unknown_key_nobody_waits,
    TakeoverUnheard breaks a_change_wakes_those_who_wait,
    OneWakes breaks a_change_wakes_all_who_wait,
    OtherKeysWake breaks a_change_wakes_all_who_wait,
    DeadlineIgnored breaks waiting_ends_at_its_deadline,
    NobodyWaits breaks waiting_ends_at_its_deadline,
    RenewalWakes breaks a_renewal_wakes_nobody,
    LapseWakes breaks a_lapse_wakes_nobody,
    // Tokens.
    IssueOverwrites breaks a_token_is_issued_once,
    IssueChecksThenActs breaks of_many_issuings_exactly_one_is_done,
    TokenNeverSpent breaks a_token_is_claimed_once,
    TokenChecksThenActs breaks of_many_claims_on_a_token_exactly_one_is_granted,
    BindingIgnored breaks a_token_is_bound_to_purpose_and_principal,
    PrincipalFolded breaks a_token_is_bound_to_purpose_and_principal,
    PrincipalIgnored breaks a_token_is_bound_to_purpose_and_principal,
    StrangerSpends breaks a_token_is_bound_to_purpose_and_principal,
    UnboundClaimSpends breaks a_claim_without_a_binding_does_not_spend_a_token,
    NeverIssuedAccepted breaks a_token_that_was_never_issued_is_not_accepted,
    AnyRecordIsToken breaks a_key_that_was_not_issued_is_no_token,
    ReleasedTokenIsNone breaks a_released_token_is_issued_again,
    ReleasedTokenProlonged breaks a_released_token_keeps_its_first_expiry,
    ZeroLifeForEver breaks a_token_with_a_life_of_zero_is_gone_at_once,
    IssuedMayBeEnded breaks an_issued_token_is_not_ended_by_anybody,
    LifeForEver breaks a_token_expires,
    ClaimedTokenExpires breaks a_claimed_token_outlives_its_first_expiry,
    // Operators.
    NoLeaseShown breaks inspecting_shows_every_state,
    LeaseLeftIsTheLease breaks inspecting_shows_how_long_a_lease_has_lapsed,
    NoLapseShown breaks inspecting_shows_how_long_a_lease_has_lapsed,
    LapseStandsStill breaks inspecting_shows_how_long_a_lease_has_lapsed,
    AliveIsLapsed breaks inspecting_shows_every_state,
    NoTimeLeftShown breaks inspecting_shows_every_state,
    FirstPageOnly breaks listing_gives_every_record_in_pages,
    PagesSkip breaks listing_gives_every_record_in_pages,
    StateIgnored breaks listing_gives_every_record_in_pages,
    AbandonedUntold breaks abandoned_records_can_be_told,
    AbandonedUncounted breaks stats_count_by_state,
    ZeroHorizonForEver breaks what_has_expired_is_neither_listed_nor_counted,
    RunnerSettlesTwice breaks an_abandoned_record_is_settled_in_its_runners_place,
    RunnerReleasesTwice breaks an_abandoned_record_is_released_in_its_runners_place,
    AliveReconciled breaks what_is_not_abandoned_is_not_reconciled,
    UnseenReconciled breaks what_is_not_abandoned_is_not_reconciled,
    ForgettingSaysNothing breaks forgetting_removes_whatever_is_there,
    RunningNotForgotten breaks forgetting_removes_whatever_is_there,
    AbandonedPurged breaks purging_removes_nothing_that_is_alive,
    LimitIgnored breaks purging_removes_nothing_that_is_alive,
}

#[derive(Clone)]
pub(crate) struct Broken {
    model: Model,
    bug: Bug,
    /// Keys that somebody waits for.
    waited: Arc<Mutex<HashSet<RecordKey>>>,
}

impl Broken {
    pub(crate) fn new(bug: Bug) -> Self {
        Self { model: Model::new(), bug, waited: Arc::default() }
    }

    pub(crate) fn namespace(&self, namespace: &str) -> Self {
        let namespace = if self.bug == Bug::NamespacesMixed { "" } else { namespace };
        Self { model: self.model.namespace(namespace), ..self.clone() }
    }

    fn has(&self, bug: Bug) -> bool {
        self.bug == bug
    }

    /// What the store takes a key for.
    fn key(&self, key: &RecordKey) -> RecordKey {
        let (route, scope) = (key.route(), key.scope().unwrap_or_default());
        let taken = match self.bug {
            Bug::KeysJoined => RecordKey::new(&format!("{route}{scope}{}", key.key()), None, "key"),
            Bug::KeysFolded => {
                RecordKey::new(&route.to_lowercase(), key.scope().map(str::to_lowercase).as_deref(), key.key())
            }
            Bug::KeysCut => {
                let text: String = key.key().chars().take(60).collect();
                RecordKey::new(route, key.scope(), &text)
            }
            _ => return key.clone(),
        };
        taken.expect("a valid key stays valid")
    }

    fn row(&self, key: &RecordKey) -> Option<StoredRecord> {
        self.model.rows().get(key.as_bytes()).cloned()
    }

    fn state(&self, key: &RecordKey) -> Option<State> {
        self.row(key).map(|row| row.state)
    }

    fn has_lapsed(&self, key: &RecordKey) -> bool {
        self.row(key).is_some_and(|row| row.state == State::Running && row.lease_ends <= self.model.now())
    }

    fn edit(&self, key: &RecordKey, edit: impl FnOnce(&mut StoredRecord)) {
        if let Some(row) = self.model.rows().get_mut(key.as_bytes()) {
            edit(row);
        }
    }

    fn forget_row(&self, key: &RecordKey) -> bool {
        self.model.rows().remove(key.as_bytes()).is_some()
    }

    fn refuse(&self, key: &RecordKey) -> Finished {
        Finished::Refused(self.row(key).map(|row| Box::new(row.read(self.model.now()))))
    }
}

/// The answer of a verb that the model answers at once.
fn at_once<T: Unpin>(answer: StoreFuture<'_, T>) -> T {
    match pin!(answer).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(Ok(answer)) => answer,
        _ => unreachable!("the model answers at once"),
    }
}
