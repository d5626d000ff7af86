//! Answers that come in pages.

use clap::Args;
use reqwest::RequestBuilder;

use super::gateway::Gateway;
use super::screen::{Form, Screen};
use super::trouble::Trouble;
use super::{Ended, Verdict};

/// Which part of a long answer.
#[derive(Clone, Debug, Args)]
pub struct Paging {
    /// Entries at most; absent: all, and with -o json one page
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    limit: Option<u32>,
    /// Goes on where an earlier page ended
    #[arg(long)]
    cursor: Option<String>,
}

/// One page, ready to be read.
#[derive(Debug)]
pub struct Page {
    /// The entries as text.
    pub text: String,
    /// How many they are.
    pub count: usize,
    /// Where the next page begins.
    pub next_cursor: Option<String>,
}

/// What a listing is asked for, and how a page of it is read.
pub struct Listing<'a, R> {
    /// The path.
    pub path: &'a [&'a str],
    /// The query without limit and cursor.
    pub query: Vec<(&'a str, String)>,
    /// The most entries of a page.
    pub most: u32,
    /// What there is to say where there is nothing.
    pub nothing: &'a str,
    /// Reads the body of a page.
    pub read: R,
}

impl Paging {
    /// Writes page after page, up to the limit. As JSON it is one page, as the server sent it.
    pub async fn walk<R>(&self, gateway: &Gateway, screen: &Screen, listing: Listing<'_, R>) -> Ended
    where
        R: Fn(&[u8]) -> serde_json::Result<Page>,
    {
        if screen.form != Form::Text {
            let answer = gateway.send(self.request(gateway, &listing, self.limit, self.cursor.clone())?).await?;
            return screen.json(&answer.body).map(|()| Verdict::Done);
        }
        let (mut cursor, mut left, mut is_first) = (self.cursor.clone(), self.limit, true);
        loop {
            let size = left.unwrap_or(listing.most).min(listing.most);
            let answer = gateway.send(self.request(gateway, &listing, Some(size), cursor)?).await?;
            let page = (listing.read)(&answer.body)
                .map_err(|error| Trouble::foreign(format!("the page cannot be read ({error})")))?;
            screen.text(&page.text)?;
            if is_first && page.count == 0 {
                screen.note(listing.nothing);
            }
            is_first = false;
            left = left.map(|left| left.saturating_sub(u32::try_from(page.count).unwrap_or(u32::MAX)));
            cursor = match page.next_cursor {
                None => return Ok(Verdict::Done),
                Some(next) if left == Some(0) || page.count == 0 => {
                    screen.note(&format!("more: --cursor {next}"));
                    return Ok(Verdict::Done);
                }
                next => next,
            };
        }
    }

    fn request<R>(
        &self,
        gateway: &Gateway,
        listing: &Listing<'_, R>,
        limit: Option<u32>,
        cursor: Option<String>,
    ) -> Result<RequestBuilder, Trouble> {
        let limit = limit.map(|limit| ("limit", limit.to_string()));
        let cursor = cursor.map(|cursor| ("cursor", cursor));
        let query: Vec<(&str, String)> = listing.query.iter().cloned().chain(limit).chain(cursor).collect();
        gateway.get(listing.path, &query)
    }
}

/// The pairs of a query that have a value.
pub fn given<'a>(pairs: impl IntoIterator<Item = (&'a str, Option<String>)>) -> Vec<(&'a str, String)> {
    pairs.into_iter().filter_map(|(name, value)| Some((name, value?))).collect()
}
