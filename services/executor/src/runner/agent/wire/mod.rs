//! What goes to a provider and what comes back, in the form that it speaks. Pure: no connection is made here.

mod anthropic_messages;
mod openai_chat;

use callbook_domain::outcome::Failure;
use url::Url;

use super::chat::{Chat, Reply};
use crate::config::WireForm;

/// The body of a request for the model's next answer.
pub fn encode(form: WireForm, model: &str, chat: &Chat) -> Vec<u8> {
    match form {
        WireForm::OpenaiChat => openai_chat::encode(model, chat),
        WireForm::AnthropicMessages => anthropic_messages::encode(model, chat),
    }
}

/// Reads the body of a successful answer.
///
/// # Errors
/// `agent:malformed` with what is missing or odd.
pub fn decode(form: WireForm, body: &[u8]) -> Result<Reply, Failure> {
    match form {
        WireForm::OpenaiChat => openai_chat::decode(body),
        WireForm::AnthropicMessages => anthropic_messages::decode(body),
    }
}

/// Where answers are asked for, below the provider's base URL.
pub fn address(form: WireForm, base_url: &Url) -> Url {
    let last: &[&str] = match form {
        WireForm::OpenaiChat => &["chat", "completions"],
        WireForm::AnthropicMessages => &["messages"],
    };
    let mut url = base_url.clone();
    if let Ok(mut path) = url.path_segments_mut() {
        path.pop_if_empty().extend(last);
    }
    url
}

/// Headers of the form beside the credential.
pub fn headers(form: WireForm) -> &'static [(&'static str, &'static str)] {
    match form {
        WireForm::OpenaiChat => &[],
        WireForm::AnthropicMessages => &[("anthropic-version", "2023-06-01")],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_stands_below_its_base() {
        let at = |form, base: &str| address(form, &base.parse().unwrap()).to_string();
        assert_eq!(at(WireForm::OpenaiChat, "https://api.x.ai/v1"), "https://api.x.ai/v1/chat/completions");
        assert_eq!(at(WireForm::OpenaiChat, "https://a/v1/?k=v"), "https://a/v1/chat/completions?k=v");
        assert_eq!(at(WireForm::AnthropicMessages, "https://a/"), "https://a/messages");
    }
}
