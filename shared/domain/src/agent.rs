//! What a row of type `agent` says in `target`: a model, and what a run of it may take.

use crate::template::BadTemplate;

/// A model id with the row's own bounds, as in `gw:openai/gpt-4.1-mini?loop=5&cost=0.2`.
#[derive(Clone, Debug, PartialEq)]
pub struct ModelTarget {
    /// The model id: `gw:provider/model`, or a bare one that the operator's patterns lead to a provider.
    pub model: String,
    /// What a run may take.
    pub bounds: AgentBounds,
    /// How the model calls functions; absent is what the operator says of its provider.
    pub calls: Option<CallForm>,
}

/// What one run of an agent may take, with everything that it starts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AgentBounds {
    /// How often the model is asked. Option `loop`, 1 to 100, default 20.
    pub rounds: u32,
    /// How deep agents may stand in agents, the outermost being the first. Option `depth`, 1 to 8, default 3.
    pub depth: u8,
    /// What its model calls and those of the agents below it may cost together, in US dollars. Option `cost`, more than
    /// 0 and at most 1,000, default 1.
    pub cost_usd: f64,
    /// Tokens that go in and come out, of the agents below it too. Option `tokens`, 1 to 100,000,000, default 500,000.
    pub tokens: u64,
}

impl Default for AgentBounds {
    fn default() -> Self {
        AgentBounds { rounds: 20, depth: 3, cost_usd: 1.0, tokens: 500_000 }
    }
}

/// How a model calls functions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallForm {
    /// As the provider's wire form has it.
    Native,
    /// As `[KEY]body[/KEY]` in the model's own text.
    Tags,
}

impl CallForm {
    /// The form of this word.
    pub fn parse(word: &str) -> Option<CallForm> {
        match word {
            "native" => Some(CallForm::Native),
            "tags" => Some(CallForm::Tags),
            _ => None,
        }
    }
}

impl ModelTarget {
    /// Reads a target.
    ///
    /// # Errors
    /// No model, a `gw:` id that is not `gw:provider/model`, an unknown option, one that stands twice, a value out of
    /// its range.
    pub fn parse(target: &str) -> Result<ModelTarget, BadTemplate> {
        let (model, options) = target.trim().split_once('?').unwrap_or((target.trim(), ""));
        check_model(model)?;
        let mut parsed = ModelTarget { model: model.to_owned(), bounds: AgentBounds::default(), calls: None };
        let mut known: Vec<&str> = Vec::new();
        for option in options.split('&').filter(|option| !option.is_empty()) {
            let (name, value) = option.split_once('=').unwrap_or((option, ""));
            if known.contains(&name) {
                return Err(bad(format!("the option `{name}` stands twice")));
            }
            parsed.set(name, value)?;
            known.push(name);
        }
        Ok(parsed)
    }

    fn set(&mut self, name: &str, value: &str) -> Result<(), BadTemplate> {
        let bounds = &mut self.bounds;
        match name {
            "loop" => bounds.rounds = number(name, value, 1, 100)?,
            "depth" => bounds.depth = number(name, value, 1, 8)?,
            "tokens" => bounds.tokens = number(name, value, 1, 100_000_000)?,
            "cost" => {
                let cost = value.parse().ok().filter(|cost: &f64| *cost > 0.0 && *cost <= 1_000.0);
                bounds.cost_usd = cost.ok_or_else(|| bad("`cost` is US dollars, more than 0 and at most 1000"))?;
            }
            "calls" => {
                let form = CallForm::parse(value).ok_or_else(|| bad("`calls` is `native` or `tags`"))?;
                self.calls = Some(form);
            }
            _ => {
                return Err(bad(format!("no option is named `{name}`"))
                    .fix("the options of a model are loop, depth, cost, tokens and calls"));
            }
        }
        Ok(())
    }
}

fn check_model(model: &str) -> Result<(), BadTemplate> {
    if model.is_empty() {
        return Err(bad("an agent row names its model here"));
    }
    if model.chars().any(|c| c.is_whitespace() || c.is_control()) {
        return Err(bad("a model id has no spaces"));
    }
    match model.strip_prefix("gw:").map(|rest| rest.split_once('/')) {
        None => Ok(()),
        Some(Some((provider, name))) if !provider.is_empty() && !name.is_empty() => Ok(()),
        Some(_) => Err(bad("a model of a provider is written `gw:provider/model`")),
    }
}

fn number<N: std::str::FromStr + PartialOrd + std::fmt::Display>(
    name: &str,
    value: &str,
    least: N,
    most: N,
) -> Result<N, BadTemplate> {
    let number = value.parse().ok().filter(|number: &N| *number >= least && *number <= most);
    number.ok_or_else(|| bad(format!("`{name}` is a whole number from {least} to {most}")))
}

fn bad(why: impl Into<String>) -> BadTemplate {
    BadTemplate::new("target", why)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_target_is_a_model_with_bounds() {
        let plain = ModelTarget::parse(" grok-4.3 ").unwrap();
        assert_eq!((plain.model.as_str(), plain.bounds, plain.calls), ("grok-4.3", AgentBounds::default(), None));
        let whole = ModelTarget::parse("gw:openai/gpt-x?loop=5&cost=0.2&tokens=20000&depth=2&calls=tags").unwrap();
        assert_eq!(whole.model, "gw:openai/gpt-x");
        assert_eq!(whole.bounds, AgentBounds { rounds: 5, depth: 2, cost_usd: 0.2, tokens: 20_000 });
        assert_eq!(whole.calls, Some(CallForm::Tags));
        assert_eq!(ModelTarget::parse("gw:a/b/c").unwrap().model, "gw:a/b/c");
    }

    #[test]
    fn what_is_wrong_with_a_target_is_said() {
        for (target, why) in [
            ("", "an agent row names its model here"),
            ("?loop=2", "an agent row names its model here"),
            ("gpt 4", "a model id has no spaces"),
            ("gw:openai", "a model of a provider is written `gw:provider/model`"),
            ("gw:/x", "a model of a provider is written `gw:provider/model`"),
            ("m?loop=0", "`loop` is a whole number from 1 to 100"),
            ("m?loop=101", "`loop` is a whole number from 1 to 100"),
            ("m?depth=x", "`depth` is a whole number from 1 to 8"),
            ("m?cost=0", "`cost` is US dollars, more than 0 and at most 1000"),
            ("m?cost=NaN", "`cost` is US dollars, more than 0 and at most 1000"),
            ("m?cost=inf", "`cost` is US dollars, more than 0 and at most 1000"),
            ("m?calls=yes", "`calls` is `native` or `tags`"),
            ("m?temperature=1", "no option is named `temperature`"),
            ("m?loop=2&loop=3", "the option `loop` stands twice"),
        ] {
            assert_eq!(ModelTarget::parse(target).unwrap_err().why, why, "{target}");
        }
    }
}
