use crate::{
    sql::{
        driver::{SqlDatabase, Value},
        store::{retry::unreadable, values::bytes},
    },
    value::StoreError,
};

use super::{
    logged::{LoggedMessage, MessageFilter},
    message::{IncomingMessage, route_column},
    table::MessageLog,
};

/// The most messages of one page, whatever the requested limit is.
const LONGEST_PAGE: usize = 1000;

impl<D: SqlDatabase> MessageLog<D> {
    /// Writes a message, which is committed when the call returns. A message whose id is there already changes nothing.
    ///
    /// Of the body, no more than [`body_limit`](Self::body_limit) is kept.
    ///
    /// # Errors
    ///
    /// Returns an error if the database returns one or cannot be reached.
    pub async fn write(&self, message: &IncomingMessage) -> Result<(), StoreError> {
        self.begin_purging();
        let is_cut = message.is_cut_at(self.body_limit);
        let headers = message.header_lines();
        let text = |text| Value::Text(Some(text));
        let values = [
            text(&message.id),
            text(route_column(&message.route)),
            Value::Bytes(message.key_digest.as_ref().map(|digest| &digest[..])),
            text(message.method_column()),
            text(message.path_column()),
            text(&headers),
            bytes(message.body_column(self.body_limit)),
            Value::Flag(is_cut),
        ];
        self.store.change(&self.statements.write, &values).await.map(drop)
    }

    /// Notes the status of the answer to a message, by its id. Returns whether it was noted: a message has one answer,
    /// and one that is not there has none.
    ///
    /// # Errors
    ///
    /// Returns an error if the database returns one or cannot be reached.
    pub async fn answered(&self, id: &str, status: u16) -> Result<bool, StoreError> {
        let values = [Value::Int(status.into()), Value::Text(Some(id))];
        Ok(self.store.change(&self.statements.answered, &values).await? > 0)
    }

    /// Returns a message by its id.
    ///
    /// # Errors
    ///
    /// Returns an error if the database returns one or cannot be reached.
    pub async fn get(&self, id: &str) -> Result<Option<LoggedMessage>, StoreError> {
        let rows = self.store.rows(&self.statements.get, &[Value::Text(Some(id))]).await?;
        rows.first().map(LoggedMessage::read::<D>).transpose().map_err(unreadable::<D>)
    }

    /// Returns the messages that the filter includes, in the order of their arrival: at most `limit`, and at most a
    /// thousand.
    ///
    /// The next page begins [after](MessageFilter::after) the last one of this page.
    ///
    /// # Errors
    ///
    /// Returns an error if the database returns one or cannot be reached.
    pub async fn list(&self, filter: &MessageFilter, limit: usize) -> Result<Vec<LoggedMessage>, StoreError> {
        let MessageFilter { key, route, from, until, after: (arrived, seq) } = filter;
        let route = Value::Text(Some(route.as_deref().map_or("", route_column)));
        // What arrived at the same millisecond as the last one is distinguished by its number.
        let from = Value::Int((*from).max(*arrived));
        let range = [from, Value::Int(*arrived), Value::Int(*seq), Value::Int(*until), route, route];
        let limit = Value::Int(i64::try_from(limit.clamp(1, LONGEST_PAGE)).unwrap_or(1));
        let rows = match key {
            Some(key) => {
                let values = [&[bytes(key)][..], &range, &[limit]].concat();
                self.store.rows(&self.statements.list_key, &values).await?
            }
            None => self.store.rows(&self.statements.list, &[&range[..], &[limit]].concat()).await?,
        };
        rows.iter().map(LoggedMessage::read::<D>).collect::<Result<_, _>>().map_err(unreadable::<D>)
    }
}
