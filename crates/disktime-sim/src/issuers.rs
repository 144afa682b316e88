//! Who makes requests, and through which of the core's queues.

use disktime_core::{Class, Device, GroupId, Nanos, Order, QueueId, Weight};

use crate::cache::Cache;
use crate::load::{Group, Mix};
use crate::observe::Op;
use crate::process::{Kind, Process};
use crate::setup::{Invalid, Setup};

/// Who makes requests: first the processes, then the flushers.
pub(crate) struct Issuer {
    pub queue: QueueId,
    /// Index of its group; that after the last is the root.
    pub group: usize,
    /// It sleeps for a tag, to have this.
    pub asleep: Option<Ask>,
}

/// A request, and what it is for.
#[derive(Clone, Copy)]
pub(crate) struct Ask {
    pub op: Op,
    pub kind: Kind,
    pub issuer: u32,
}

/// Whose limits hold for a group: its own or the nearest above; `None`: the machine's.
fn limited(groups: &[Group], mut group: usize) -> Option<usize> {
    loop {
        if groups[group].dirty.is_some() {
            return Some(group);
        }
        group = groups[group].parent?;
    }
}

pub(crate) type Populace = (Vec<Process>, Vec<Issuer>, Cache, Vec<Option<usize>>);

/// Makes the processes and flushers, and the core's queues for them.
pub(crate) fn populate(
    setup: &Setup,
    core: &mut Device,
    groups: &[GroupId],
) -> Result<Populace, Invalid> {
    let zero = Nanos(0);
    let by_process = core.tunables().order == Order::Cfq;
    let mut cache = Cache::new(setup.dirty);
    let mut shared: Vec<Option<QueueId>> = vec![None; groups.len()];
    // By group that has limits, and the machine's.
    let mut domains: Vec<Option<usize>> = vec![None; groups.len() + 1];
    let (mut procs, mut issuers, mut flushers) = (Vec::new(), Vec::new(), Vec::new());
    let whose = |group| limited(&setup.groups, group).unwrap_or(groups.len());
    for (index, spec) in setup.procs.iter().enumerate() {
        let group = groups[spec.group];
        let queue = match shared[spec.group] {
            Some(queue) if !by_process => queue,
            _ if by_process => core.add_queue(group, true, spec.weight, spec.class, zero)?,
            _ => core.add_queue(group, true, Weight::default(), Class::Be, zero)?,
        };
        shared[spec.group] = Some(queue);
        issuers.push(Issuer {
            queue,
            group: spec.group,
            asleep: None,
        });
        let mut file = None;
        if spec.buffered && spec.mix != Mix::Read {
            let owner = whose(spec.group);
            let domain = *domains[owner].get_or_insert_with(|| {
                flushers.push(owner);
                let limits = setup.groups.get(owner).and_then(|group| group.dirty);
                cache.add_domain(limits.unwrap_or(setup.dirty))
            });
            file = Some(cache.add_file(domain, index));
        }
        procs.push(Process::new(*spec, file));
    }
    for owner in flushers {
        let group = groups.get(owner).copied().unwrap_or(core.root());
        let weight = Weight::default();
        issuers.push(Issuer {
            queue: core.add_queue(group, false, weight, Class::Writeback, zero)?,
            group: owner,
            asleep: None,
        });
    }
    let domains = (0..groups.len())
        .map(|group| domains[whose(group)])
        .collect();
    Ok((procs, issuers, cache, domains))
}
