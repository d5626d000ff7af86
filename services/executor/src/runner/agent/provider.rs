//! Which provider has a model, and what its tokens cost.

use std::collections::BTreeMap;

use callbook_domain::outcome::Failure;

use super::chat::Usage;
use crate::config::{Price, Provider};

/// A model of a provider.
#[derive(Clone, Copy, Debug)]
pub struct Chosen<'a> {
    /// The provider's name in the settings.
    pub name: &'a str,
    /// The provider.
    pub provider: &'a Provider,
    /// The model as the provider calls it.
    pub model: &'a str,
}

impl Chosen<'_> {
    /// US dollars for these tokens; nothing where the operator gave no price.
    pub fn cost(&self, usage: Usage) -> f64 {
        let price = best(self.provider.prices.iter().map(|(pattern, price)| (pattern.as_str(), price)), self.model);
        price.map_or(0.0, |price| cost(price, usage))
    }
}

#[expect(clippy::cast_precision_loss, reason = "counts of tokens are far below 2^53")]
fn cost(price: &Price, usage: Usage) -> f64 {
    (usage.input as f64 * price.input + usage.output as f64 * price.output) / 1_000_000.0
}

/// The provider of a model id. A pattern of some provider that fits the whole id decides, an exact one before a longer
/// one before a shorter one; else `gw:provider/model` names its provider itself.
///
/// # Errors
/// `agent:unknown_model`.
pub fn choose<'a>(model: &'a str, providers: &'a BTreeMap<String, Provider>) -> Result<Chosen<'a>, Failure> {
    let gateway = model.strip_prefix("gw:");
    let patterns = providers
        .iter()
        .flat_map(|(name, provider)| provider.models.iter().map(move |pattern| (pattern.as_str(), (name, provider))));
    if let Some((name, provider)) = best(patterns, model) {
        return Ok(Chosen { name, provider, model: gateway.unwrap_or(model) });
    }
    let named = gateway.and_then(|rest| rest.split_once('/'));
    let found = named.and_then(|(provider, model)| Some((providers.get_key_value(provider)?, model)));
    match found {
        Some(((name, provider), model)) => Ok(Chosen { name, provider, model }),
        None => Err(Failure::new("agent:unknown_model", format!("no provider is configured for `{model}`"))),
    }
}

/// What stands beside the pattern that fits best: the exact one, else the longest that ends in `*`; of equal ones the
/// first.
fn best<'p, T>(patterns: impl Iterator<Item = (&'p str, T)>, model: &str) -> Option<T> {
    let mut found: Option<(usize, T)> = None;
    for (pattern, value) in patterns {
        let weight = match pattern.strip_suffix('*') {
            Some(prefix) if model.starts_with(prefix) => prefix.len(),
            None if pattern == model => usize::MAX,
            Some(_) | None => continue,
        };
        if found.as_ref().is_none_or(|(best, _)| weight > *best) {
            found = Some((weight, value));
        }
    }
    found.map(|(_, value)| value)
}

#[cfg(test)]
mod tests {
    use callbook_domain::agent::CallForm;

    use super::*;
    use crate::config::WireForm;

    fn provider(models: &[&str], prices: &[(&str, f64, f64)]) -> Provider {
        Provider {
            base_url: "https://api.example.com/v1".parse().unwrap(),
            form: WireForm::OpenaiChat,
            secret: None,
            models: models.iter().map(|model| (*model).to_owned()).collect(),
            prices: prices
                .iter()
                .map(|(model, input, output)| ((*model).to_owned(), Price { input: *input, output: *output }))
                .collect(),
            calls: CallForm::Native,
        }
    }

    #[test]
    fn a_model_leads_to_the_provider_of_the_pattern_that_fits_best() {
        let providers = BTreeMap::from([
            ("anthropic".to_owned(), provider(&["claude*"], &[])),
            ("gateway".to_owned(), provider(&["gw:*", "gpt-4.1-mini"], &[])),
            ("openai".to_owned(), provider(&["gpt*", "o3", "gw:openai/gpt-5*"], &[])),
        ]);
        let chosen = |model: &'static str| {
            choose(model, &providers).map(|found| format!("{} {}", found.name, found.model)).map_err(|f| f.code)
        };
        assert_eq!(chosen("claude-sonnet-4.5").unwrap(), "anthropic claude-sonnet-4.5");
        assert_eq!(chosen("gpt-4.1").unwrap(), "openai gpt-4.1");
        assert_eq!(chosen("gpt-4.1-mini").unwrap(), "gateway gpt-4.1-mini", "an exact name wins");
        assert_eq!(chosen("gw:mistral/large").unwrap(), "gateway mistral/large");
        assert_eq!(chosen("gw:openai/gpt-5-mini").unwrap(), "openai openai/gpt-5-mini");
        for unknown in ["grok-4.3", "o3-mini", "Claude-1", ""] {
            assert_eq!(chosen(unknown).unwrap_err(), "agent:unknown_model", "{unknown}");
        }
    }

    #[test]
    fn a_gateway_id_names_its_provider_where_no_pattern_fits() {
        let providers = BTreeMap::from([("openai".to_owned(), provider(&["gpt*"], &[]))]);
        let found = choose("gw:openai/gpt-4.1-mini", &providers).unwrap();
        assert_eq!((found.name, found.model), ("openai", "gpt-4.1-mini"));
        assert!(choose("gw:other/gpt-4.1-mini", &providers).is_err());
    }

    #[test]
    fn tokens_cost_what_the_operator_says() {
        let priced = provider(&["m*"], &[("m*", 1.0, 2.0), ("m-large", 3.0, 15.0)]);
        let cost = |model: &str| {
            let chosen = Chosen { name: "p", provider: &priced, model };
            chosen.cost(Usage { input: 1_000_000, output: 100_000 })
        };
        assert!((cost("m-small") - 1.2).abs() < 1e-9 && (cost("m-large") - 4.5).abs() < 1e-9);
        assert!(cost("other").abs() < 1e-9);
    }
}
