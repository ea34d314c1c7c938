//! How a session may end.

use super::stage::World;
use crate::error::Error;
use crate::pipeline::Report;

/// Whether a session may have ended like this. Says whether the topic is another.
pub(super) fn judge(
    world: &World,
    result: &Result<Report, Error>,
    dead: bool,
    faulty: bool,
) -> Result<bool, String> {
    match result {
        Err(Error::Panicked) => return Err("a panic".to_owned()),
        _ if dead => return Ok(false),
        Err(Error::Store(error)) if !faulty || !error.to_string().contains("told to fail") => {
            return Err("a failure of the store that was not planned".to_owned());
        }
        Err(Error::Handler { .. }) if world.failures == 0 => {
            return Err("a failure of the handler that was not planned".to_owned());
        }
        Err(Error::Source(_)) if !world.source_failed => {
            return Err("a failure of the source that was not planned".to_owned());
        }
        Err(Error::TopicChanged { partition, .. }) => {
            let partition = usize::try_from(partition.partition()).unwrap();
            if !world.cluster.logs[partition].changed {
                return Err("the topic is what it was".to_owned());
            }
        }
        Ok(_) if faulty => return Err("a fault that nobody was told of".to_owned()),
        Ok(_) | Err(Error::Store(_) | Error::Handler { .. } | Error::Source(_)) => {}
        Err(_) => return Err("an unexpected end".to_owned()),
    }
    if let (false, Some(marks)) = (faulty, &world.marks) {
        world.history.ended_in_order(marks)?;
    }
    Ok(matches!(result, Err(Error::TopicChanged { .. })))
}
