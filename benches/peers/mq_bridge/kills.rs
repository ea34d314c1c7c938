//! What is handled twice when the process is killed at full load and started again.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use peers::Outcome;
use peers::footprint::median;
use peers::job::Job;
use peers::race::Runner;
use peers::topic::{Broker, fresh};

use crate::CONTENDERS;
use crate::support::{on_disk, setting};

/// The contenders that remember, by their places in [`CONTENDERS`].
const KILLED: [usize; 3] = [0, 1, 3];
/// Each of the two runs, with the session of the dead member between them.
const RUN_LIMIT: Duration = Duration::from_secs(300);
const LOOK_EVERY: Duration = Duration::from_millis(1);

/// What two runs came to, with a kill between them.
struct Kill {
    handled_before: u64,
    twice: u64,
    never: u64,
}

pub(crate) fn run(broker: &Broker, topic: &str, records: u64) -> Outcome<()> {
    let rounds = setting("BENCH_KILLS", 3)?;
    let mut kills: [Vec<Kill>; KILLED.len()] = Default::default();
    for round in 0..rounds {
        for (kills, index) in kills.iter_mut().zip(KILLED) {
            rustix::fs::sync();
            let kill = kill_once(broker, topic, records, index)?;
            let (name, twice, never) = (CONTENDERS[index], kill.twice, kill.never);
            eprintln!("kill {}: {name}: {twice} twice, {never} never", round + 1);
            kills.push(kill);
        }
    }
    println!("{}", table(records, rounds, &kills));
    Ok(())
}

fn kill_once(broker: &Broker, topic: &str, records: u64, index: usize) -> Outcome<Kill> {
    let directory = on_disk()?;
    let [before, after] = ["before", "after"].map(|name| directory.path().join(name));
    let mut job = Job {
        task: index.to_string(),
        bootstrap: broker.bootstrap().to_owned(),
        topic: topic.to_owned(),
        group: fresh("mq-bridge-kill")?,
        to: String::new(),
        directory: directory.path().to_owned(),
        warm_up: 1,
        handled: Some(before.clone()),
    };
    let mut first = Runner::start(&mut job.command()?)?;
    first.wait_begun()?;
    let deadline = Instant::now() + RUN_LIMIT;
    // The trace is as long as the highest number that was handled.
    while fs::metadata(&before)?.len() < records / 2 {
        first.alive()?;
        if Instant::now() > deadline {
            return Err("half of the records were not handled in time".into());
        }
        std::thread::sleep(LOOK_EVERY);
    }
    first.kill()?;
    job.handled = Some(after.clone());
    let watch = broker.watch(&job.group, topic)?;
    let mut second = Runner::start(&mut job.command()?)?;
    watch.wait_for(records, RUN_LIMIT, || second.alive())?;
    second.stop()?;
    compare(&before, &after, records)
}

fn compare(before: &Path, after: &Path, records: u64) -> Outcome<Kill> {
    let traces = [fs::read(before)?, fs::read(after)?];
    let handled = |trace: &[u8], number: usize| trace.get(number).is_some_and(|byte| *byte != 0);
    let mut kill = Kill {
        handled_before: 0,
        twice: 0,
        never: 0,
    };
    for number in 0..usize::try_from(records)? {
        match traces.each_ref().map(|trace| handled(trace, number)) {
            [true, again] => {
                kill.handled_before += 1;
                kill.twice += u64::from(again);
            }
            [false, true] => {}
            [false, false] => kill.never += 1,
        }
    }
    Ok(kill)
}

fn table(records: u64, rounds: usize, kills: &[Vec<Kill>]) -> String {
    let mut out = format!(
        "### Killed at full load: {records} records, SIGKILL when half are handled, {rounds} kills\n\n\
         | | records handled twice, median | fewest to most | handled before the kill, median | never handled |\n\
         | --- | ---: | ---: | ---: | ---: |\n"
    );
    for (kills, index) in kills.iter().zip(KILLED) {
        let mut twice: Vec<_> = kills.iter().map(|kill| kill.twice).collect();
        twice.sort_unstable();
        let before: Vec<_> = kills.iter().map(|kill| kill.handled_before).collect();
        let never: u64 = kills.iter().map(|kill| kill.never).sum();
        let [fewest, most] = [twice.first(), twice.last()].map(|end| end.copied().unwrap_or(0));
        out.push_str(&format!(
            "| {} | {} | {fewest} to {most} | {} | {never} |\n",
            CONTENDERS[index],
            median(&twice),
            median(&before),
        ));
    }
    out
}
