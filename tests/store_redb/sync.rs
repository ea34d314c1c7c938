//! What a durability costs in system calls: on Linux redb has one kind of commit alone.

use crate::trace::traced;

// C078
#[test]
fn every_commit_is_synced_once_before_it_is_acknowledged_under_power_and_under_process() {
    for role in ["commit-power", "commit-process"] {
        let Some(traced) = traced(role) else {
            return;
        };
        assert!(traced.commits >= 100, "{}", traced.commits);
        assert_eq!(traced.synced, traced.commits, "{role}");
        assert_eq!(traced.syncs, traced.commits, "{role}: one is enough");
    }
}
