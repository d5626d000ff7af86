//! A conversation with a model, whatever wire form carries it.

use std::ops::AddAssign;

use callbook_domain::outcome::Failure;

/// All that a model is given for its next answer.
#[derive(Clone, Debug, Default)]
pub struct Chat {
    /// The operator's text: prompt blocks, template and our rules.
    pub system: String,
    /// What was said so far, oldest first.
    pub messages: Vec<Message>,
    /// The functions that it may call natively.
    pub functions: &'static [FunctionSpec],
    /// The most tokens of its answer.
    pub max_tokens: u64,
}

/// One message of a conversation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Message {
    /// What the model is given: data, or results of tags.
    User(String),
    /// What the model said.
    Model {
        /// Its words.
        text: String,
        /// Its native calls.
        calls: Vec<FunctionCall>,
    },
    /// What its native calls gave, in their order.
    Results(Vec<FunctionResult>),
}

/// A function as the model is told of it.
#[derive(Clone, Copy, Debug)]
pub struct FunctionSpec {
    /// Its name.
    pub name: &'static str,
    /// What it does.
    pub description: &'static str,
    /// The JSON Schema of its arguments.
    pub parameters: &'static str,
}

/// A native call, its arguments as the model wrote them: they need not be JSON.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FunctionCall {
    /// The provider's name for this call.
    pub id: String,
    /// The function.
    pub name: String,
    /// JSON text of its arguments.
    pub arguments: String,
}

/// What a native call gave.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FunctionResult {
    /// The call's id.
    pub id: String,
    /// A data block.
    pub text: String,
    /// It did not succeed.
    pub failed: bool,
}

/// A model's answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reply {
    /// Its words.
    pub text: String,
    /// Its native calls.
    pub calls: Vec<FunctionCall>,
    /// Why it ended.
    pub finish: Finish,
    /// What it took.
    pub usage: Usage,
}

/// Why an answer ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Finish {
    /// The model was done, or wants its calls run.
    Done,
    /// It reached the most tokens of an answer.
    Length,
    /// The model or its provider refuses.
    Refused,
}

/// Tokens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// That went in, cached ones too.
    pub input: u64,
    /// That came out.
    pub output: u64,
}

impl Usage {
    /// Both.
    pub fn total(self) -> u64 {
        self.input.saturating_add(self.output)
    }
}

impl AddAssign for Usage {
    fn add_assign(&mut self, other: Usage) {
        self.input = self.input.saturating_add(other.input);
        self.output = self.output.saturating_add(other.output);
    }
}

/// An answer that is none.
pub fn malformed(why: impl Into<String>) -> Failure {
    Failure::new("agent:malformed", format!("the provider's answer cannot be read: {}", why.into()))
}
