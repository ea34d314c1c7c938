//! The proxy's frame parser: whatever a client or a broker sends, in whatever pieces it comes.
#![no_main]

use idempotent_consumer::testkit::{Frame, FrameDecoder, FrameError};
use libfuzzer_sys::fuzz_target;

/// Small, so that inputs reach it.
const LIMIT_BYTES: usize = 600;

/// What a stream came to: its frames, the error that ended it, the bytes that are left.
type End = (Vec<Frame>, Option<FrameError>, usize);

fn decode<'a>(pieces: impl Iterator<Item = &'a [u8]>) -> End {
    let mut decoder = FrameDecoder::with_limit(LIMIT_BYTES);
    let (mut frames, mut error) = (Vec::new(), None);
    for piece in pieces {
        decoder.extend(piece);
        loop {
            match decoder.next_frame() {
                Ok(Some(frame)) => frames.push(frame),
                Ok(None) => break,
                Err(said) => {
                    assert!(error.is_none_or(|before| before == said), "an error ended");
                    error = Some(said);
                    break;
                }
            }
        }
    }
    (frames, error, decoder.unfinished_bytes())
}

fuzz_target!(|input: &[u8]| {
    let Some((piece_bytes, stream)) = input.split_first() else {
        return;
    };
    let whole = decode(std::iter::once(stream));
    let (frames, _, unfinished_bytes) = &whole;
    let mut taken_bytes = 0;
    for frame in frames {
        let bytes = frame.as_bytes();
        assert_eq!(
            stream.get(taken_bytes..taken_bytes + bytes.len()),
            Some(bytes)
        );
        assert!(frame.size_bytes() <= LIMIT_BYTES);
        assert_eq!(frame.request_header().is_some(), frame.size_bytes() >= 8);
        assert_eq!(
            frame.reply_correlation_id().is_some(),
            frame.size_bytes() >= 4
        );
        taken_bytes += bytes.len();
    }
    assert_eq!(taken_bytes + unfinished_bytes, stream.len());
    let pieces = stream.chunks(usize::from(*piece_bytes).max(1));
    assert_eq!(decode(pieces), whole, "the pieces make a difference");
});
