//! The body of an answer: received piece by piece, decoded, and cut at its bounds.

use std::fmt;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use async_compression::tokio::bufread::{BrotliDecoder, GzipDecoder, ZlibDecoder};
use bytes::{BufMut, Bytes, BytesMut};
use futures::stream::{self, Stream};
use reqwest::Response;
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncReadExt};
use tokio::time::timeout;
use tokio_util::io::StreamReader;

use super::address::Origin;
use super::answer::Coding;
use super::failure::{Failed, Phase};
use super::send::Limits;

/// Room for one step of decoding; what a bomb can gain before it is seen.
const STEP: usize = 16 << 10;
/// Below this a high ratio is only a short and regular text.
const RATIO_FROM: u64 = 64 << 10;

/// A body, whole or cut.
pub(super) struct Body {
    pub(super) bytes: Bytes,
    pub(super) truncated: bool,
    pub(super) wire_bytes: u64,
}

/// Reads a body. Fails when it breaks off, stalls or is not in the coding that its head says; an empty body has no
/// coding, whatever the head says.
pub(super) async fn read(response: Response, coding: Coding, limits: &Limits, origin: &Origin) -> Result<Body, Failed> {
    let wire = Arc::new(AtomicU64::new(0));
    let pieces = pieces(response, limits.idle, origin.clone(), Arc::clone(&wire));
    let mut received = StreamReader::new(Box::pin(pieces));
    let empty = received.fill_buf().await.map_err(|error| failed(error, origin))?.is_empty();
    if empty {
        return Ok(Body { bytes: Bytes::new(), truncated: false, wire_bytes: 0 });
    }
    let mut decoded: Pin<Box<dyn AsyncRead + Send>> = match coding {
        Coding::Identity => Box::pin(received),
        Coding::Gzip => {
            let mut decoder = GzipDecoder::new(received);
            // One stream after the other is one text; stopping after the first would lose the rest in silence.
            decoder.multiple_members(true);
            Box::pin(decoder)
        }
        Coding::Zlib => Box::pin(ZlibDecoder::new(received)),
        Coding::Brotli => Box::pin(BrotliDecoder::new(received)),
        Coding::Unknown => {
            return Err(Failed::after(Phase::Decode, format!("{origin} uses a content-encoding that is not known")));
        }
    };
    let (bytes, truncated) = fill(&mut decoded, &wire, limits).await.map_err(|error| failed(error, origin))?;
    Ok(Body { bytes, truncated, wire_bytes: wire.load(Ordering::Relaxed) })
}

async fn fill(
    decoded: &mut Pin<Box<dyn AsyncRead + Send>>,
    wire: &AtomicU64,
    limits: &Limits,
) -> io::Result<(Bytes, bool)> {
    let mut out = BytesMut::new();
    while decoded.read_buf(&mut (&mut out).limit(STEP)).await? > 0 {
        if out.len() > limits.max_bytes {
            out.truncate(limits.max_bytes);
            return Ok((out.freeze(), true));
        }
        let (long, short) = (out.len() as u64, wire.load(Ordering::Relaxed));
        if long > RATIO_FROM && long > short.saturating_mul(limits.max_ratio) {
            return Ok((out.freeze(), true));
        }
    }
    Ok((out.freeze(), false))
}

/// The pieces as they arrive. The first one that does not come in time, or breaks off, ends the stream.
fn pieces(
    response: Response,
    idle: Duration,
    origin: Origin,
    wire: Arc<AtomicU64>,
) -> impl Stream<Item = io::Result<Bytes>> {
    stream::try_unfold(response, move |mut response| {
        let (origin, wire) = (origin.clone(), Arc::clone(&wire));
        async move {
            match timeout(idle, response.chunk()).await {
                Ok(Ok(Some(piece))) => {
                    wire.fetch_add(piece.len() as u64, Ordering::Relaxed);
                    Ok(Some((piece, response)))
                }
                Ok(Ok(None)) => Ok(None),
                Ok(Err(error)) => Err(io::Error::other(Ended(Failed::of_body(&error, &origin)))),
                Err(_) => {
                    let message = format!("the answer of {origin} stood still for {} ms", idle.as_millis());
                    Err(io::Error::other(Ended(Failed::after(Phase::Timeout, message))))
                }
            }
        }
    })
}

/// Carries our failure through the decoder, which only knows I/O errors.
#[derive(Debug)]
struct Ended(Failed);

impl fmt::Display for Ended {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl std::error::Error for Ended {}

/// Our own failure, or else the decoder's.
fn failed(error: io::Error, origin: &Origin) -> Failed {
    match error.get_ref().and_then(|inner| inner.downcast_ref::<Ended>()) {
        Some(Ended(failed)) => failed.clone(),
        None => Failed::after(Phase::Decode, format!("the answer of {origin} is not in its content-encoding")),
    }
}
