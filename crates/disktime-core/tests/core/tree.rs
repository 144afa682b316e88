//! The ordered tree against a BTreeMap.

use std::collections::BTreeMap;

use disktime_core::tree::Tree;
use proptest::prelude::*;

use crate::cases;

#[derive(Clone, Debug)]
enum Op {
    Add(usize, u64),
    Del(usize),
    Move(usize, u64),
    At(u64),
}

fn op(nodes: usize) -> impl Strategy<Value = Op> {
    // Few distinct keys, so that many are equal; as offsets from a base that may wrap.
    let key = || prop_oneof![0u64..24, 0u64..1 << 40];
    prop_oneof![
        4 => (0..nodes, key()).prop_map(|(node, key)| Op::Add(node, key)),
        2 => (0..nodes).prop_map(Op::Del),
        4 => (0..nodes, key()).prop_map(|(node, key)| Op::Move(node, key)),
        1 => key().prop_map(Op::At),
    ]
}

proptest! {
    #![proptest_config(cases(128))]

    /// Nodes of equal key keep the order in which they came or were moved.
    #[test]
    fn tree_does_what_a_map_does(
        base in prop::sample::select(vec![0u64, 1 << 32, u64::MAX - 10, u64::MAX - (1 << 39), (1 << 63) - 5]),
        ops in prop::collection::vec(op(40), 1..400),
    ) {
        let mut tree = Tree::new(40);
        let mut model: BTreeMap<(u64, u64), usize> = BTreeMap::new();
        let mut places: Vec<Option<(u64, u64)>> = vec![None; 40];
        let mut serial = 0;
        for op in &ops {
            serial += 1;
            match *op {
                Op::Add(node, key) if places[node].is_none() => {
                    tree.add(node, base.wrapping_add(key));
                    places[node] = Some((key, serial));
                    model.insert((key, serial), node);
                }
                Op::Del(node) => if let Some(place) = places[node].take() {
                    tree.del(node);
                    model.remove(&place);
                },
                Op::Move(node, key) => if let Some(place) = places[node] {
                    tree.set_key(node, base.wrapping_add(key));
                    if place.0 != key {
                        model.remove(&place);
                        model.insert((key, serial), node);
                        places[node] = Some((key, serial));
                    }
                },
                Op::At(key) => {
                    let want = model.range((key, 0)..).next().map(|(_, &node)| node);
                    prop_assert_eq!(tree.at(base.wrapping_add(key)), want);
                }
                Op::Add(..) => {}
            }
            let want: Vec<usize> = model.values().copied().collect();
            prop_assert_eq!(tree.first(), want.first().copied());
            let mut node = tree.first();
            let mut forth = Vec::new();
            while let Some(at) = node {
                forth.push(at);
                node = tree.next(at);
            }
            prop_assert_eq!(&forth, &want);
            let mut node = want.last().copied();
            let mut back = Vec::new();
            while let Some(at) = node {
                back.push(at);
                node = tree.prev(at);
            }
            back.reverse();
            prop_assert_eq!(&back, &want);
        }
    }
}

/// Keys that come in order, which make a plain search tree a list.
#[test]
fn tree_stays_low_whatever_the_order_of_keys() {
    const NODES: usize = 10_000;
    let orders: [fn(usize) -> u64; 3] = [
        |i| i as u64,
        |i| (NODES - i) as u64,
        |i| (i as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 2,
    ];
    for order in orders {
        let mut tree = Tree::new(NODES);
        for node in 0..NODES {
            tree.add(node, order(node));
        }
        let height = tree.height();
        crate::bed::report(&format!("{NODES} nodes: height {height}"));
        assert!(height <= 45, "height {height}");
        // Half of them gone, and the rest moved to the end one after the other.
        for node in (0..NODES).step_by(2) {
            tree.del(node);
        }
        for node in (1..NODES).step_by(2) {
            tree.set_key(node, (1 << 62) + node as u64);
        }
        assert!(tree.height() <= 45, "height {}", tree.height());
    }
}
