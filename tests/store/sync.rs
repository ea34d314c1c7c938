//! What a durability costs in system calls, and what it therefore promises.

use crate::trace::traced;

// C078
#[test]
fn under_power_every_commit_is_synced_before_it_is_acknowledged() {
    if let Some(traced) = traced("commit-power") {
        assert!(traced.commits >= 100, "{}", traced.commits);
        assert_eq!(traced.written_out, traced.commits);
        assert_eq!(traced.synced, traced.commits);
        assert_eq!(traced.syncs, traced.commits, "one is enough");
    }
}

#[test]
fn under_process_every_commit_is_written_out_and_none_is_synced() {
    if let Some(traced) = traced("commit-process") {
        assert!(traced.commits >= 100, "{}", traced.commits);
        assert_eq!(traced.written_out, traced.commits);
        assert_eq!(traced.syncs, 0);
    }
}
