//! A store in a few lines.

use std::path::Path;

use idempotent_consumer::store::{Gaps, Inspection, PartitionState};

pub(super) fn text(directory: &Path, store: &Inspection) -> String {
    let nobody = "(no consumer has used it yet)";
    let owner = store.owner.as_ref();
    let mut text = format!(
        "store:   {}\nengine:  {}\ngroup:   {}\nrecipe:  {}\nscope:   {}\ncluster: {}\nkeys:    {}\n",
        directory.display(),
        store.engine,
        owner.map_or(nobody, |owner| &owner.group),
        owner.map_or(nobody, |owner| &owner.recipe),
        owner.map_or(nobody, |owner| &owner.scope),
        store.cluster_id.as_deref().unwrap_or("(not known yet)"),
        store.keys,
    );
    text.extend(store.partitions.iter().map(partition));
    text
}

fn partition(one: &PartitionState) -> String {
    let name = &one.partition;
    let (Some(floor), Some(head)) = (one.floor, one.head) else {
        return format!("{name}: nothing done\n");
    };
    let doubt = if one.in_doubt {
        "; its last owner did not end in order"
    } else {
        ""
    };
    let but_for = [(true, "forgotten, to be handled"), (false, "not finished")];
    let but_for = but_for.map(|(forgotten, what)| match offsets(&one.gaps, forgotten) {
        none if none.is_empty() => none,
        some => format!("  but for {some}: {what}\n"),
    });
    format!(
        "{name}: done from offset {floor} up to {}{doubt}\n",
        head.next
    ) + &but_for.concat()
}

/// The gaps of one kind in words: `offset 4, offsets 7 to 9`.
pub(super) fn offsets(gaps: &Gaps, forgotten: bool) -> String {
    let gaps = gaps.iter().filter(|gap| gap.forgotten == forgotten);
    let words = gaps.map(|gap| match gap.to - gap.from {
        1 => format!("offset {}", gap.from),
        _ => format!("offsets {} to {}", gap.from, gap.to - 1),
    });
    words.collect::<Vec<_>>().join(", ")
}
