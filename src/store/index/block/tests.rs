use proptest::prelude::*;

use super::*;
use crate::key::Fingerprint;

const HERE: Number = Number { run: 7, block: 3 };

fn entries() -> impl Strategy<Value = Vec<Known>> {
    // Few halves, so that some are equal; and all of them.
    let half = prop_oneof![0_u64..4, any::<u64>()];
    let entry = (
        half.clone(),
        half,
        any::<i64>(),
        any::<u32>(),
        0_u32..1 << 28,
        0_u32..16,
    );
    let of_one_partition = (
        any::<u64>(),
        any::<u64>(),
        0_i64..9999,
        any::<u32>(),
        Just(5),
        Just(0),
    );
    let list = prop_oneof![
        prop::collection::vec(entry, 1..300),
        prop::collection::vec(of_one_partition, 1..300),
    ];
    list.prop_map(|list| {
        let mut list: Vec<_> = list
            .into_iter()
            .map(|(top, low, offset, digest, id, flags)| {
                Known::from_parts(top, low, offset, digest, id, flags)
            })
            .collect();
        list.sort_by_key(|known| known.fingerprint);
        list.dedup_by_key(|known| known.fingerprint);
        list
    })
}

/// The blocks that a list of entries fills, and how many are in each.
fn blocks(entries: &[Known]) -> Vec<(Vec<Known>, Buffer)> {
    let mut packer = Packer::default();
    let mut blocks = Vec::new();
    let mut inside = Vec::new();
    let mut finish = |packer: &mut Packer, inside: &mut Vec<Known>| {
        let mut buffer = EMPTY;
        buffer[..BLOCK_BYTES].copy_from_slice(&packer.finish(HERE).unwrap());
        blocks.push((std::mem::take(inside), buffer));
    };
    for entry in entries {
        if !packer.push(entry) {
            finish(&mut packer, &mut inside);
            assert!(packer.push(entry), "one always fits");
        }
        inside.push(*entry);
    }
    finish(&mut packer, &mut inside);
    assert!(packer.finish(HERE).is_none());
    blocks
}

proptest! {
    #[test]
    fn what_is_packed_comes_back_and_is_found(entries in entries(), other in any::<[u8; 16]>()) {
        for (packed, buffer) in blocks(&entries) {
            let block = Block::new(HERE, &buffer).unwrap();
            let mut unpacked = Vec::new();
            block.unpack(&mut unpacked);
            prop_assert_eq!(&unpacked, &packed);
            for entry in &packed {
                prop_assert_eq!(block.find(halves(&entry.fingerprint)), Some(*entry));
            }
            let other = halves(&Fingerprint(other));
            if !packed.iter().any(|entry| halves(&entry.fingerprint) == other) {
                prop_assert_eq!(block.find(other), None);
            }
        }
    }

    #[test]
    fn a_changed_byte_is_noticed(entries in entries(), at in 0..BLOCK_BYTES, bit in 0..8) {
        let (_, mut buffer) = blocks(&entries).swap_remove(0);
        buffer[at] ^= 1_u8 << bit;
        prop_assert!(Block::new(HERE, &buffer).is_none());
    }
}

#[test]
fn a_block_in_anothers_place_is_noticed() {
    let entry = Known::from_parts(1, 2, 3, 4, 5, 0);
    let (_, buffer) = blocks(&[entry]).swap_remove(0);
    assert!(Block::new(HERE, &buffer).is_some());
    assert!(Block::new(Number { block: 4, ..HERE }, &buffer).is_none());
    assert!(Block::new(Number { run: 8, ..HERE }, &buffer).is_none());
}

/// What docs/design.md says of the disk that a key takes.
#[test]
fn a_key_of_a_large_run_takes_less_than_21_bytes() {
    let mut packer = Packer::default();
    let mut entries = 0;
    // As dense as in a run of a hundred million keys.
    let mut top = 0;
    loop {
        top += (u64::MAX / 100_000_000) * (1 + entries % 3) / 2;
        let offset = i64::try_from(entries * 7_919_000 % 100_000_000).unwrap();
        if !packer.push(&Known::from_parts(top, !top, offset, 0x8000_0000, 3, 0)) {
            break;
        }
        entries += 1;
    }
    assert!(entries >= (BLOCK_BYTES / 21) as u64, "{entries} a block");
}
