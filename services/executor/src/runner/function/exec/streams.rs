//! What goes into a program and what comes out of it.

use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};

/// Room for one step of reading.
const STEP: usize = 16 * 1024;

/// Reads to the end, or until one byte more than `most` has come: then the pipe is left alone and the kept bytes are
/// cut. Gives whether that happened. What was read before the future is dropped stays in `kept`.
pub(super) async fn keep(mut from: impl AsyncRead + Unpin, kept: &mut Vec<u8>, most: usize) -> bool {
    while kept.len() <= most {
        kept.reserve(STEP);
        match from.read_buf(kept).await {
            Ok(0) | Err(_) => return false,
            Ok(_) => {}
        }
    }
    kept.truncate(most);
    true
}

/// Reads to the end, keeps the first `most` bytes and lets the rest go by, so that a program which complains a lot does
/// not stand still.
pub(super) async fn sift(mut from: impl AsyncRead + Unpin, kept: &mut Vec<u8>, most: usize) {
    let mut step = vec![0; STEP];
    while let Ok(read) = from.read(&mut step).await {
        if read == 0 {
            return;
        }
        let room = most.saturating_sub(kept.len()).min(read);
        kept.extend_from_slice(&step[..room]);
    }
}

/// Writes all and closes. A program that does not read to the end does as it likes.
pub(super) async fn feed(mut to: impl AsyncWrite + Unpin, bytes: &[u8]) {
    let _ = to.write_all(bytes).await;
    let _ = to.shutdown().await;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn what_is_kept_is_bounded_and_what_complains_is_read_to_its_end() {
        let long = vec![7u8; 50_000];
        let mut kept = Vec::new();
        assert!(keep(long.as_slice(), &mut kept, 20_000).await);
        assert_eq!(kept, long[..20_000]);
        let mut whole = Vec::new();
        assert!(!keep(long.as_slice(), &mut whole, 50_000).await);
        assert_eq!(whole, long);
        let mut errors = Vec::new();
        sift(long.as_slice(), &mut errors, 20_000).await;
        assert_eq!(errors, long[..20_000]);
    }
}
