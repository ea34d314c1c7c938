//! The frame decoder by itself.

use idempotent_consumer::testkit::{ApiKey, FRAME_BYTES_MAX, FrameDecoder, FrameError};
use proptest::prelude::*;

use crate::support::{framed, request};

proptest! {
    #[test]
    fn frames_come_out_unchanged_in_whatever_pieces_the_bytes_arrive(
        payloads in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..300), 0..20),
        piece_bytes in 1_usize..400,
    ) {
        let stream: Vec<u8> = payloads.iter().flat_map(|payload| framed(payload)).collect();
        let mut decoder = FrameDecoder::default();
        let mut out = Vec::new();
        for piece in stream.chunks(piece_bytes) {
            decoder.extend(piece);
            while let Some(frame) = decoder.next_frame().unwrap() {
                out.push(frame);
            }
        }
        prop_assert_eq!(decoder.unfinished_bytes(), 0);
        prop_assert_eq!(out.len(), payloads.len());
        for (frame, payload) in out.iter().zip(&payloads) {
            prop_assert_eq!(frame.payload(), payload.as_slice());
            prop_assert_eq!(frame.size_bytes(), payload.len());
            prop_assert_eq!(frame.as_bytes(), framed(payload));
        }
    }

    #[test]
    fn any_bytes_at_all_give_frames_an_error_or_a_wait_for_more(
        bytes in prop::collection::vec(any::<u8>(), 0..200),
    ) {
        let mut decoder = FrameDecoder::with_limit(64);
        decoder.extend(&bytes);
        let mut taken_bytes = 0;
        while let Ok(Some(frame)) = decoder.next_frame() {
            prop_assert!(frame.size_bytes() <= 64);
            let _ = (frame.request_header(), frame.reply_correlation_id());
            taken_bytes += frame.as_bytes().len();
        }
        prop_assert_eq!(taken_bytes + decoder.unfinished_bytes(), bytes.len());
    }
}

#[test]
fn a_negative_size_is_an_error_that_stays() {
    let mut decoder = FrameDecoder::default();
    decoder.extend(&(-1_i32).to_be_bytes());
    let negative = FrameError::Negative { size_bytes: -1 };
    assert_eq!(decoder.next_frame(), Err(negative.clone()));
    decoder.extend(&framed(b"whole"));
    assert_eq!(decoder.next_frame(), Err(negative));
}

#[test]
fn the_limit_itself_passes_and_one_byte_more_is_an_error() {
    let mut decoder = FrameDecoder::with_limit(10);
    decoder.extend(&framed(&[7; 10]));
    assert_eq!(decoder.next_frame().unwrap().unwrap().size_bytes(), 10);
    decoder.extend(&framed(&[7; 11]));
    assert_eq!(
        decoder.next_frame(),
        Err(FrameError::TooLarge {
            size_bytes: 11,
            limit_bytes: 10
        })
    );
}

#[test]
fn a_size_above_the_default_limit_is_refused_from_its_four_bytes() {
    let mut decoder = FrameDecoder::default();
    let announced = i32::try_from(FRAME_BYTES_MAX + 1).unwrap();
    decoder.extend(&announced.to_be_bytes());
    assert!(decoder.next_frame().is_err());
}

#[test]
fn a_request_header_is_read_from_the_first_eight_bytes_of_the_payload() {
    let mut decoder = FrameDecoder::default();
    decoder.extend(&request(ApiKey::OFFSET_COMMIT, -2, 3));
    let header = decoder.next_frame().unwrap().unwrap().request_header();
    let header = header.unwrap();
    assert_eq!(header.api_key, ApiKey(8));
    assert_eq!(header.api_version, 7);
    assert_eq!(header.correlation_id, -2);
}

#[test]
fn a_payload_shorter_than_a_header_has_none() {
    let mut decoder = FrameDecoder::default();
    decoder.extend(&framed(&[0; 7]));
    decoder.extend(&framed(&[0; 3]));
    assert_eq!(
        decoder.next_frame().unwrap().unwrap().request_header(),
        None
    );
    let shorter = decoder.next_frame().unwrap().unwrap();
    assert_eq!(shorter.reply_correlation_id(), None);
}
