//! What this package's contests share: keys, a topic, contenders in processes of their own, and
//! how much memory and disk they take.

pub mod footprint;
pub mod job;
pub mod keys;
pub mod ours;
pub mod race;
pub mod topic;

/// What anything here may end in: a contest that fails says why, and that is all.
pub type Outcome<T> = Result<T, Box<dyn std::error::Error>>;
