//! The public keys of the issuer in SQL.

use callbook_domain::token::PublicKey;
use sqlx::PgConnection;
use time::OffsetDateTime;

/// How far a key came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    /// Published, and signs nothing yet.
    Next,
    /// Signs.
    Active,
    /// Signs no more; its tokens are good until they end.
    Retiring,
    /// Its last token has ended, or it never signed.
    Gone,
}

impl State {
    fn as_str(self) -> &'static str {
        match self {
            State::Next => "next",
            State::Active => "active",
            State::Retiring => "retiring",
            State::Gone => "gone",
        }
    }

    fn parse(text: &str) -> Option<State> {
        [State::Next, State::Active, State::Retiring, State::Gone].into_iter().find(|state| state.as_str() == text)
    }
}

/// A public key that is not gone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Published {
    /// Its thumbprint.
    pub(crate) kid: String,
    /// It.
    pub(crate) public: PublicKey,
    /// How far it came.
    pub(crate) state: State,
}

/// The keys whose signatures are believed or soon will be, the one that signs first.
pub(crate) async fn published(connection: &mut PgConnection, now: OffsetDateTime) -> sqlx::Result<Vec<Published>> {
    let found = sqlx::query!(
        r#"select kid, public_key, state from issuer_key k where state in ('next', 'active') or (state = 'retiring'
           and exists (select from token t where t.kid = k.kid and t.expires_at > $1)) order by state, since desc, kid"#,
        now
    )
    .fetch_all(connection)
    .await?;
    let read = |kid: String, bytes: Vec<u8>, state: &str| {
        let public = PublicKey::from_bytes(&bytes.try_into().ok()?)?;
        Some(Published { kid, public, state: State::parse(state)? })
    };
    let broken = || sqlx::Error::Decode("issuer_key".into());
    found.into_iter().map(|key| read(key.kid, key.public_key, &key.state).ok_or_else(broken)).collect()
}

/// The key that signs.
pub(crate) async fn active(connection: &mut PgConnection) -> sqlx::Result<Option<String>> {
    sqlx::query_scalar!("select kid from issuer_key where state = 'active' order by since desc limit 1")
        .fetch_optional(connection)
        .await
}

/// Whether there is, or was, such a key.
pub(crate) async fn is_known(connection: &mut PgConnection, kid: &str) -> sqlx::Result<bool> {
    let found = sqlx::query_scalar!("select true from issuer_key where kid = $1", kid);
    Ok(found.fetch_optional(connection).await?.is_some())
}

/// Publishes a key in this state, or brings it there.
pub(crate) async fn publish(
    connection: &mut PgConnection,
    key: &PublicKey,
    state: State,
    now: OffsetDateTime,
) -> sqlx::Result<()> {
    sqlx::query!(
        "insert into issuer_key (kid, public_key, state, created_at, since) values ($1, $2, $3, $4, $4)
         on conflict (kid) do update set state = $3, since = $4",
        key.thumbprint(),
        &key.to_bytes()[..],
        state.as_str(),
        now
    )
    .execute(connection)
    .await?;
    Ok(())
}

/// Lets the key that signs sign no more; its name.
pub(crate) async fn retire(connection: &mut PgConnection, now: OffsetDateTime) -> sqlx::Result<Vec<String>> {
    sqlx::query_scalar!(
        "update issuer_key set state = 'retiring', since = $1 where state = 'active' returning kid",
        now
    )
    .fetch_all(connection)
    .await
}

/// Takes away what is published as the next key.
pub(crate) async fn drop_next(connection: &mut PgConnection, now: OffsetDateTime) -> sqlx::Result<()> {
    sqlx::query!("update issuer_key set state = 'gone', since = $1 where state = 'next'", now)
        .execute(connection)
        .await?;
    Ok(())
}

/// Lets keys go whose last token has ended.
pub(crate) async fn settle(connection: &mut PgConnection, now: OffsetDateTime) -> sqlx::Result<()> {
    sqlx::query!(
        "update issuer_key k set state = 'gone', since = $1 where state = 'retiring'
         and not exists (select from token t where t.kid = k.kid and t.expires_at > $1)",
        now
    )
    .execute(connection)
    .await?;
    Ok(())
}
