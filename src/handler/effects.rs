//! What a handler leaves in the store, beside the mark.

use serde::Serialize;

use super::HandlerError;

/// The largest result in bytes: it must fit a commit record beside a thousand keys. Record where
/// the result can be found if it is larger.
pub(crate) const RESULT_BYTES_MAX: usize = 64 << 10;

/// Collects what is written in one piece with the record's mark: nothing of it exists before, and
/// all of it does as soon as a copy is recognised.
#[derive(Debug, Default)]
pub struct Effects {
    result: Option<Box<[u8]>>,
}

/// A result that cannot be recorded.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EffectError {
    /// It is too long.
    #[error("a result of {bytes} bytes was recorded, the limit is {RESULT_BYTES_MAX}")]
    TooLarge {
        /// Its length.
        bytes: usize,
    },
    /// It cannot be written as JSON.
    #[error("the result cannot be written as JSON: {0}")]
    Json(#[from] serde_json::Error),
}

impl Effects {
    /// Records a result, as JSON, for copies of the record to be answered with. The last one
    /// counts.
    ///
    /// # Errors
    /// [`EffectError`], as a [rejection](HandlerError::Reject): another attempt would give the
    /// same result.
    pub fn record<T: Serialize + ?Sized>(&mut self, result: &T) -> Result<(), HandlerError> {
        let json = serde_json::to_vec(result)
            .map_err(|error| HandlerError::reject(EffectError::Json(error)))?;
        self.record_bytes(json)
    }

    /// Records a result as it is.
    ///
    /// # Errors
    /// Above 64 KiB: [`EffectError::TooLarge`], as a [rejection](HandlerError::Reject).
    pub fn record_bytes(&mut self, result: impl Into<Box<[u8]>>) -> Result<(), HandlerError> {
        let result = result.into();
        if result.len() > RESULT_BYTES_MAX {
            let bytes = result.len();
            return Err(HandlerError::reject(EffectError::TooLarge { bytes }));
        }
        self.result = Some(result);
        Ok(())
    }

    pub(crate) fn into_result(self) -> Option<Box<[u8]>> {
        self.result
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_result_up_to_the_limit_is_kept_and_one_above_is_rejected() {
        let mut effects = Effects::default();
        effects.record_bytes(vec![1; RESULT_BYTES_MAX]).unwrap();
        let refused = effects
            .record_bytes(vec![1; RESULT_BYTES_MAX + 1])
            .unwrap_err();
        assert!(matches!(refused, HandlerError::Reject(_)), "{refused}");
        let kept = effects.into_result().unwrap();
        assert_eq!(kept.len(), RESULT_BYTES_MAX);
        let mut effects = Effects::default();
        effects.record("paid").unwrap();
        assert_eq!(effects.into_result().unwrap().as_ref(), b"\"paid\"");
    }
}
