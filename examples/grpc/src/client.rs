//! A client that repeats a call until it knows how it ended.

use std::time::Duration;

use tokio::time::{Instant, sleep};
use tonic::{Code, Request, Response, Status, transport::Channel};
use tonic_types::StatusExt;

use crate::{
    api::transfers_client::TransfersClient,
    messages::{Receipt, Transfer},
};

/// A transfer that was made, as its client learned it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Made {
    /// What the server has answered.
    pub receipt: Receipt,
    /// Whether the answer was that of an earlier try.
    pub is_replay: bool,
    /// How many tries it took.
    pub tries: u32,
}

/// Makes a transfer. The key names it: it is the same for each try, also for those after the program was restarted.
///
/// # Errors
///
/// Returns the status if no try can change it, or the last one when `patience` is over. Then the transfer may have been
/// made, and the same call with the same key finds it out later.
pub async fn create(channel: &Channel, key: &str, transfer: &Transfer, patience: Duration) -> Result<Made, Status> {
    let until = Instant::now() + patience;
    let mut pause = Duration::from_millis(20);
    let mut tries = 0;
    loop {
        tries += 1;
        let left = until.saturating_duration_since(Instant::now());
        let status = match once(channel, key, transfer, left).await {
            Ok(response) => {
                let is_replay = response.metadata().contains_key("idempotent-replayed");
                return Ok(Made { receipt: response.into_inner(), is_replay, tries });
            }
            Err(status) => status,
        };
        let told = status.get_details_retry_info().and_then(|info| info.retry_delay);
        let wait = told.unwrap_or(pause);
        if is_final(&status) || Instant::now() + wait >= until {
            return Err(status);
        }
        sleep(wait).await;
        pause = (pause * 2).min(Duration::from_secs(1));
    }
}

/// Sends the call once.
async fn once(
    channel: &Channel,
    key: &str,
    transfer: &Transfer,
    deadline: Duration,
) -> Result<Response<Receipt>, Status> {
    let malformed = |_| Status::invalid_argument("the key is no text");
    let mut request = Request::new(transfer.clone());
    request.metadata_mut().insert("idempotency-key", key.parse().map_err(malformed)?);
    request.metadata_mut().insert("authorization", "Bearer ann".parse().map_err(malformed)?);
    request.set_timeout(deadline);
    TransfersClient::new(channel.clone()).create(request).await
}

/// Returns whether no try can change this. Everything else may be the network's: with a key, a retry does no harm.
fn is_final(status: &Status) -> bool {
    matches!(
        status.code(),
        Code::InvalidArgument
            | Code::NotFound
            | Code::AlreadyExists
            | Code::PermissionDenied
            | Code::FailedPrecondition
            | Code::OutOfRange
            | Code::Unimplemented
            | Code::Unauthenticated
            | Code::DataLoss
    )
}
