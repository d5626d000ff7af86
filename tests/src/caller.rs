//! Calls over gRPC with a token.

use callbook_runtime::grpc::from_status;
use callbook_wire::executor::v1::arguments::Form;
use callbook_wire::executor::v1::executor_service_client::ExecutorServiceClient;
use callbook_wire::executor::v1::{Answer, Arguments, InvokeRequest};
use tonic::transport::Channel;

use crate::world::World;

/// A connection to the executors of a deployment.
#[derive(Clone)]
pub struct Line(ExecutorServiceClient<Channel>);

impl Line {
    /// A connection of its own.
    pub async fn to(world: &World) -> Line {
        Line(ExecutorServiceClient::new(world.channel().await))
    }

    /// Calls a row with pipe text; a refusal is its literal reason.
    pub async fn call(&self, token: &str, key: &str, body: &str) -> Result<Answer, String> {
        self.send(token, None, request(key, body)).await
    }

    /// The same with a holder's proof.
    pub async fn prove(&self, token: &str, proof: &str, key: &str, body: &str) -> Result<Answer, String> {
        self.send(token, Some(proof), request(key, body)).await
    }

    /// Sends any call.
    pub async fn send(&self, token: &str, proof: Option<&str>, request: InvokeRequest) -> Result<Answer, String> {
        let mut client = self.0.clone();
        let answer = client.invoke(with_token(token, proof, request)).await;
        answer.map(|answer| answer.into_inner().answer.unwrap()).map_err(|status| from_status(&status).error_text())
    }
}

/// A call of a row with pipe text.
pub fn request(key: &str, body: &str) -> InvokeRequest {
    let arguments = Some(Arguments { form: Some(Form::Body(body.to_owned())) });
    InvokeRequest { key: key.to_owned(), arguments, ..InvokeRequest::default() }
}

/// A message with a token and its holder's proof.
pub fn with_token<T>(token: &str, proof: Option<&str>, message: T) -> tonic::Request<T> {
    let mut request = tonic::Request::new(message);
    request.metadata_mut().insert("authorization", format!("Cap {token}").parse().unwrap());
    if let Some(proof) = proof {
        request.metadata_mut().insert("cap-proof", proof.parse().unwrap());
    }
    request
}
