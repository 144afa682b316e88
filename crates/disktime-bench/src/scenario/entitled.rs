//! What weights promise.

use std::collections::{BTreeMap, BTreeSet};

use crate::plan::{self, Class};

/// What the weights promise: each group's share while exactly the groups in `busy` ask for more
/// than they get. Of siblings (and a group's own processes beside its child groups, which weigh
/// 100) only those of the best class that asks get anything.
#[must_use]
pub fn entitled(groups: &[plan::Group], busy: &BTreeSet<usize>) -> Vec<f64> {
    const OWN_WEIGHT: u32 = 100;
    let mut shares = vec![0.0; groups.len()];
    let below = |path: &str, group: &plan::Group| {
        group.path == path
            || group
                .path
                .strip_prefix(path)
                .is_some_and(|r| r.starts_with('/'))
    };
    // What each group divides: given by its parent, which comes before it.
    let mut given = BTreeMap::from([(String::new(), 1.0)]);
    let mut parents = vec![String::new()];
    parents.extend(groups.iter().map(|g| g.path.clone()));
    for parent in parents {
        let Some(&all) = given.get(&parent) else {
            continue;
        };
        let mut asking: Vec<(Option<usize>, u32, Class)> = groups
            .iter()
            .enumerate()
            .filter(|(_, g)| {
                g.path.rsplit_once('/').map_or("", |(above, _)| above) == parent
                    && busy.iter().any(|&b| below(&g.path, &groups[b]))
            })
            .map(|(i, g)| (Some(i), g.weight, g.class))
            .collect();
        let own = groups
            .iter()
            .position(|g| g.path == parent)
            .filter(|i| busy.contains(i));
        if own.is_some() {
            asking.push((None, OWN_WEIGHT, Class::Be));
        }
        let Some(best) = asking.iter().map(|a| a.2).min() else {
            continue;
        };
        let sum: u32 = asking.iter().filter(|a| a.2 == best).map(|a| a.1).sum();
        for (index, weight, class) in asking {
            let part = match class == best {
                true => all * f64::from(weight) / f64::from(sum),
                false => 0.0,
            };
            match (index, own) {
                (Some(index), _) => {
                    given.insert(groups[index].path.clone(), part);
                }
                (None, Some(own)) => shares[own] = part,
                (None, None) => {}
            }
        }
    }
    shares
}

#[cfg(test)]
mod tests {
    use super::*;

    fn group(path: &str, weight: u32, class: Class) -> plan::Group {
        let name = path.rsplit('/').next().unwrap().to_owned();
        plan::Group {
            name,
            path: path.to_owned(),
            weight,
            on_device: false,
            class,
            memory: None,
        }
    }

    fn promised(groups: &[plan::Group], busy: &[usize]) -> Vec<f64> {
        let shares = entitled(groups, &busy.iter().copied().collect());
        shares.iter().map(|s| (s * 1e6).round() / 1e6).collect()
    }

    #[test]
    fn weights_promise_shares_down_the_tree() {
        use Class::{Be, Idle, Rt};
        let tree = [
            group("A", 200, Be),
            group("A/A1", 100, Be),
            group("A/A2", 300, Be),
            group("B", 100, Be),
        ];
        assert_eq!(promised(&tree, &[1, 2, 3]), [0.0, 0.166667, 0.5, 0.333333]);
        assert_eq!(promised(&tree, &[1, 3]), [0.0, 0.666667, 0.0, 0.333333]);
        // A's own processes stand beside A1 with a weight of 100.
        assert_eq!(
            promised(&tree, &[0, 1, 3]),
            [0.333333, 0.333333, 0.0, 0.333333]
        );
        assert_eq!(promised(&tree, &[]), [0.0; 4]);

        let flat = [
            group("ab", 40, Be),
            group("abc", 20, Be),
            group("a", 10, Be),
        ];
        assert_eq!(promised(&flat, &[0, 1, 2]), [0.571429, 0.285714, 0.142857]);
        assert_eq!(promised(&flat, &[0, 2]), [0.8, 0.0, 0.2]);

        let classes = [
            group("r", 10, Rt),
            group("b", 500, Be),
            group("i", 500, Idle),
        ];
        assert_eq!(promised(&classes, &[0, 1, 2]), [1.0, 0.0, 0.0]);
        assert_eq!(promised(&classes, &[1, 2]), [0.0, 1.0, 0.0]);
    }
}
