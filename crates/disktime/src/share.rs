//! The entitled share: what the weights promise, given who asks.
//!
//! The device's busy time in a window is the whole, 1. A group *contends* where more was asked than it could get at
//! once: it had requests queued when it was looked at, or its requests waited in the scheduler, in sum, for at least a
//! tenth of the busy time. A contending group would take all that is offered. Any other group asked for what it got,
//! and is promised that and no more: what it leaves goes to the others, as in the scheduler itself.
//!
//! At each level of the tree a group's own requests form a leaf beside its child groups. The classes are served in
//! order: RT is given what it asks for, BE divides the rest, IDLE what is left then. Within a class the amount is
//! divided in proportion to weight; those who asked for less than their part keep what they asked for, and the
//! remainder is divided again among the others, by weight, until nobody asks for less (weighted max-min).

use std::collections::BTreeMap;

use disktime_sys::{Class, Weight};

/// One group in a window.
#[derive(Debug, Clone)]
pub struct Asker {
    /// The path from the cgroup root.
    pub path: String,
    /// Its part of the busy time.
    pub got: f64,
    /// Whether it would have taken more.
    pub contends: bool,
}

/// The settings of a cgroup on the device.
pub type Settings = (Weight, Class);

struct Node {
    settings: Settings,
    asker: Option<usize>,
    children: Vec<usize>,
}

struct Tree<'a> {
    nodes: Vec<Node>,
    askers: &'a [Asker],
}

/// Each asker's entitled share, in the order given. `settings` gives a cgroup's weight and class by its path; the root's
/// are those of its own leaf, since it has no siblings.
pub fn entitled(askers: &[Asker], settings: impl Fn(&str) -> Settings) -> Vec<f64> {
    let top = Node {
        settings: settings("/"),
        asker: None,
        children: Vec::new(),
    };
    let mut tree = Tree {
        nodes: vec![top],
        askers,
    };
    let mut by_path = BTreeMap::from([(String::new(), 0)]);
    for (n, asker) in askers.iter().enumerate() {
        let mut at = 0;
        let mut path = String::new();
        for part in asker.path.split('/').filter(|part| !part.is_empty()) {
            path.push('/');
            path.push_str(part);
            let parent = at;
            at = *by_path.entry(path.clone()).or_insert_with(|| {
                tree.nodes.push(Node {
                    settings: settings(&path),
                    asker: None,
                    children: Vec::new(),
                });
                let new = tree.nodes.len() - 1;
                tree.nodes[parent].children.push(new);
                new
            });
        }
        tree.nodes[at].asker = Some(n);
    }
    let mut out = vec![0.0; askers.len()];
    tree.divide(0, 1.0, &mut out);
    out
}

impl Tree<'_> {
    fn own_demand(&self, node: &Node) -> f64 {
        match node.asker.map(|n| &self.askers[n]) {
            Some(asker) if asker.contends => f64::INFINITY,
            Some(asker) => asker.got,
            None => 0.0,
        }
    }

    fn demand(&self, node: usize) -> f64 {
        let node = &self.nodes[node];
        self.own_demand(node)
            + node
                .children
                .iter()
                .map(|child| self.demand(*child))
                .sum::<f64>()
    }

    fn divide(&self, at: usize, whole: f64, out: &mut [f64]) {
        let node = &self.nodes[at];
        let leaf = if at == 0 {
            node.settings
        } else {
            (Weight::default(), Class::Be)
        };
        let mut left = whole;
        for class in Class::ALL {
            // (weight, demand, child; none for the leaf)
            let mut asking: Vec<(f64, f64, Option<usize>)> = Vec::new();
            if leaf.1 == class {
                asking.push((f64::from(leaf.0.get()), self.own_demand(node), None));
            }
            for child in &node.children {
                let (weight, its_class) = self.nodes[*child].settings;
                if its_class == class {
                    asking.push((f64::from(weight.get()), self.demand(*child), Some(*child)));
                }
            }
            asking.retain(|(_, demand, _)| *demand > 0.0);
            let mut give = |child: Option<usize>, amount: f64| match (child, node.asker) {
                (Some(child), _) => self.divide(child, amount, out),
                (None, Some(n)) => out[n] = amount,
                (None, None) => {}
            };
            // By demand for each unit of weight: whoever is content is so before those behind.
            asking.sort_by(|a, b| (a.1 / a.0).total_cmp(&(b.1 / b.0)));
            let mut weights: f64 = asking.iter().map(|(weight, ..)| weight).sum();
            for (weight, demand, child) in asking {
                let part = (left * weight / weights).min(demand);
                give(child, part);
                left -= part;
                weights -= weight;
            }
            left = left.max(0.0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asker(path: &str, got: f64, contends: bool) -> Asker {
        Asker {
            path: path.into(),
            got,
            contends,
        }
    }

    /// Settings by path, weight 100 and BE elsewhere.
    fn with(table: &[(&str, u32, Class)]) -> impl Fn(&str) -> Settings {
        let table: BTreeMap<String, Settings> = table
            .iter()
            .map(|(path, weight, class)| {
                (
                    (*path).to_owned(),
                    (Weight::new(*weight).expect("weight"), *class),
                )
            })
            .collect();
        move |path| table.get(path).copied().unwrap_or_default()
    }

    fn close(got: &[f64], want: &[f64]) {
        assert_eq!(got.len(), want.len());
        for (got, want) in got.iter().zip(want) {
            assert!((got - want).abs() < 1e-9, "{got} is not {want}");
        }
    }

    #[test]
    fn weights_divide_among_those_who_contend() {
        let settings = with(&[
            ("/a", 40, Class::Be),
            ("/b", 20, Class::Be),
            ("/c", 10, Class::Be),
        ]);
        let all = [
            asker("/a", 0.5, true),
            asker("/b", 0.3, true),
            asker("/c", 0.2, true),
        ];
        close(
            &entitled(&all, &settings),
            &[4.0 / 7.0, 2.0 / 7.0, 1.0 / 7.0],
        );
        let silent = [
            asker("/a", 0.8, true),
            asker("/b", 0.0, false),
            asker("/c", 0.2, true),
        ];
        close(&entitled(&silent, &settings), &[0.8, 0.0, 0.2]);
    }

    #[test]
    fn a_light_group_is_promised_what_it_asked_for() {
        let settings = with(&[("/a", 300, Class::Be)]);
        let all = [
            asker("/", 0.02, false),
            asker("/a", 0.7, true),
            asker("/b", 0.28, true),
        ];
        close(&entitled(&all, settings), &[0.02, 0.98 * 0.75, 0.98 * 0.25]);
    }

    #[test]
    fn a_group_that_asks_above_its_part_is_held_to_it() {
        // It does not contend by the window's measure, but its got share is above what it may claim.
        let all = [asker("/a", 0.9, false), asker("/b", 0.1, true)];
        close(&entitled(&all, with(&[])), &[0.5, 0.5]);
    }

    #[test]
    fn the_tree_divides_level_by_level() {
        let settings = with(&[
            ("/A", 200, Class::Be),
            ("/A/1", 100, Class::Be),
            ("/A/2", 300, Class::Be),
        ]);
        let all = [
            asker("/A/1", 0.1, true),
            asker("/A/2", 0.5, true),
            asker("/B", 0.4, true),
        ];
        close(&entitled(&all, &settings), &[1.0 / 6.0, 0.5, 1.0 / 3.0]);
        let silent = [asker("/A/1", 0.6, true), asker("/B", 0.4, true)];
        close(&entitled(&silent, &settings), &[2.0 / 3.0, 1.0 / 3.0]);
    }

    #[test]
    fn a_groups_own_requests_stand_beside_its_children() {
        let settings = with(&[("/", 300, Class::Be), ("/a", 100, Class::Be)]);
        let all = [
            asker("/", 0.5, true),
            asker("/a", 0.2, true),
            asker("/a/x", 0.3, true),
        ];
        close(&entitled(&all, settings), &[0.75, 0.125, 0.125]);
    }

    #[test]
    fn a_higher_class_is_served_first() {
        let settings = with(&[("/rt", 1, Class::Rt), ("/idle", 10_000, Class::Idle)]);
        let all = |rt| {
            [
                asker("/rt", 0.3, rt),
                asker("/be", 0.6, true),
                asker("/idle", 0.1, true),
            ]
        };
        close(&entitled(&all(true), &settings), &[1.0, 0.0, 0.0]);
        close(&entitled(&all(false), &settings), &[0.3, 0.7, 0.0]);
    }

    #[test]
    fn a_disk_that_nobody_fights_for_gives_what_was_asked() {
        let all = [asker("/a", 0.25, false), asker("/b", 0.75, false)];
        close(&entitled(&all, with(&[])), &[0.25, 0.75]);
    }
}
