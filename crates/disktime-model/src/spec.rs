//! A model by name: what a scenario file, a plan or a command line says of a disk.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::hdd::{self, Hdd};
use crate::net::{self, Net};
use crate::servers::{self, Inside, Servers, Service};
use crate::ssd::{self, Ssd};
use crate::{Disk, Event, Request};

/// A kind of disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Model {
    /// Equal servers, each of which takes the same time for any request.
    Servers {
        /// Requests served at a time, and slots.
        servers: u32,
        /// Time that a request takes.
        service_ns: u64,
        /// Whether it says that it turns.
        rotational: bool,
    },
    /// [`hdd::Params::wd2500js`].
    Wd2500js,
    /// [`hdd::Params::st3250620as`].
    St3250620as,
    /// [`ssd::Params::plain`].
    PlainSsd,
    /// [`ssd::Params::sata`].
    SataSsd,
    /// [`ssd::Params::nvme`].
    Nvme,
    /// [`net::Params::gp3`].
    Gp3,
    /// [`net::Params::gp2`].
    Gp2,
}

/// All models that have a name, and other names for them.
const NAMES: [(&str, Model); 8] = [
    ("wd2500js", Model::Wd2500js),
    ("st3250620as", Model::St3250620as),
    ("hdd", Model::St3250620as),
    ("plain-ssd", Model::PlainSsd),
    ("sata-ssd", Model::SataSsd),
    ("nvme", Model::Nvme),
    ("gp3", Model::Gp3),
    ("gp2", Model::Gp2),
];

impl FromStr for Model {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let found = NAMES.iter().find(|(name, _)| *name == text);
        found.map(|(_, model)| *model).ok_or_else(|| {
            let known: Vec<_> = NAMES.iter().map(|(name, _)| *name).collect();
            format!(
                "there is no model {text:?}, there are: {}",
                known.join(", ")
            )
        })
    }
}

impl fmt::Display for Model {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Self::Servers {
            servers,
            service_ns,
            rotational,
        } = self
        {
            let plural = if *servers == 1 { "" } else { "s" };
            let turns = if *rotational { ", rotational" } else { "" };
            let ms = *service_ns as f64 / 1e6;
            return write!(f, "{servers} server{plural} of {ms} ms{turns}");
        }
        let found = NAMES.iter().find(|(_, model)| model == self);
        f.pad(found.map_or("", |(name, _)| name))
    }
}

/// A model and how it departs from its data sheet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Spec {
    pub model: Model,
    /// Size in MiB; `None`: the model's own.
    pub size_mib: Option<u64>,
    /// How many writes the volatile cache of a rotating disk holds; 0 is none.
    pub write_cache: u32,
    /// Everything takes so many times as long: where the disk is served in real time by a machine
    /// that is too slow for it. At least 1.
    pub slower: u32,
    /// For models that throw dice.
    pub seed: u64,
}

impl Spec {
    /// The model as its data sheet has it.
    pub fn new(model: Model) -> Self {
        Spec {
            model,
            size_mib: None,
            write_cache: 0,
            slower: 1,
            seed: 1,
        }
    }

    /// Makes the disk; an error says in a sentence what cannot be.
    pub fn make(&self) -> Result<Box<dyn Disk>, String> {
        let said = |e: &dyn fmt::Display| e.to_string();
        let sectors = |own: u64| self.size_mib.map_or(own, |mib| mib << 11);
        if self.slower == 0 {
            return Err("a disk that takes no time is no model: slower is at least 1".into());
        }
        let rotating = matches!(self.model, Model::Wd2500js | Model::St3250620as);
        if self.write_cache > 0 && !rotating {
            return Err(format!(
                "{} has no write cache that could be set",
                self.model
            ));
        }
        let disk: Box<dyn Disk> = match self.model {
            Model::Servers {
                servers,
                service_ns,
                rotational,
            } => Box::new(
                Servers::new(servers::Params {
                    sectors: sectors(1 << 29),
                    servers,
                    slots: servers,
                    service: Service::constant(service_ns),
                    inside: Inside::Fifo,
                    rotational,
                    seed: self.seed,
                })
                .map_err(|e| said(&e))?,
            ),
            Model::Wd2500js | Model::St3250620as => {
                let own = match self.model {
                    Model::Wd2500js => hdd::Params::wd2500js(),
                    _ => hdd::Params::st3250620as(),
                };
                let params = hdd::Params {
                    sectors: sectors(own.sectors),
                    write_cache: self.write_cache,
                    high_water: self.write_cache.div_ceil(2),
                    ..own
                };
                Box::new(Hdd::new(params).map_err(|e| said(&e))?)
            }
            Model::PlainSsd | Model::SataSsd | Model::Nvme => {
                let own = match self.model {
                    Model::PlainSsd => ssd::Params::plain(),
                    Model::SataSsd => ssd::Params::sata(),
                    _ => ssd::Params::nvme(),
                };
                let params = ssd::Params {
                    sectors: sectors(own.sectors),
                    seed: self.seed,
                    ..own
                };
                Box::new(Ssd::new(params).map_err(|e| said(&e))?)
            }
            Model::Gp3 | Model::Gp2 => {
                let own = match self.model {
                    Model::Gp3 => net::Params::gp3(),
                    _ => net::Params::gp2(),
                };
                let params = net::Params {
                    sectors: sectors(own.sectors),
                    seed: self.seed,
                    ..own
                };
                Box::new(Net::new(params).map_err(|e| said(&e))?)
            }
        };
        Ok(match self.slower {
            1 => disk,
            factor => Box::new(Slower {
                disk,
                factor: factor.into(),
            }),
        })
    }

    /// Whether it says that moving from one place to another costs a seek.
    pub fn rotational(&self) -> bool {
        match self.model {
            Model::Servers { rotational, .. } => rotational,
            Model::Wd2500js | Model::St3250620as => true,
            _ => false,
        }
    }

    /// Whether a write may be complete and lost with the power, so that flushes are asked for.
    pub fn volatile_cache(&self) -> bool {
        self.write_cache > 0 || self.model == Model::SataSsd
    }

    /// Requests a second that it can do, where that is the same for all requests.
    pub fn capacity(&self) -> Option<f64> {
        match self.model {
            Model::Servers {
                servers,
                service_ns,
                ..
            } => Some(f64::from(servers) * 1e9 / (service_ns as f64 * f64::from(self.slower))),
            _ => None,
        }
    }
}

impl fmt::Display for Spec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.model)?;
        if self.write_cache > 0 {
            write!(f, ", write cache of {}", self.write_cache)?;
        }
        if self.slower > 1 {
            write!(f, ", {} times slower", self.slower)?;
        }
        Ok(())
    }
}

/// A disk whose clock runs slower: one of its nanoseconds is `factor` of the host's.
struct Slower {
    disk: Box<dyn Disk>,
    factor: u64,
}

impl Disk for Slower {
    fn sectors(&self) -> u64 {
        self.disk.sectors()
    }

    fn slots(&self) -> u32 {
        self.disk.slots()
    }

    fn rotational(&self) -> bool {
        self.disk.rotational()
    }

    fn parallelism(&self) -> u32 {
        self.disk.parallelism()
    }

    fn submit(&mut self, id: u64, request: Request, now: u64) {
        self.disk.submit(id, request, now / self.factor);
    }

    fn next_at(&self) -> Option<u64> {
        self.disk.next_at().map(|at| at * self.factor)
    }

    fn run(&mut self, until: u64, events: &mut Vec<Event>) {
        let first = events.len();
        self.disk.run(until / self.factor, events);
        for event in &mut events[first..] {
            match event {
                Event::Done { at, .. } => *at *= self.factor,
                Event::Took { at, time, .. } => {
                    *at *= self.factor;
                    *time *= self.factor;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Op;

    fn read(sector: u64) -> Request {
        Request {
            op: Op::Read,
            sector,
            sectors: 8,
            fua: false,
        }
    }

    fn all(disk: &mut dyn Disk) -> Vec<Event> {
        let mut events = Vec::new();
        while let Some(at) = disk.next_at() {
            disk.run(at, &mut events);
        }
        events
    }

    #[test]
    fn every_name_makes_a_disk_that_serves() {
        for (name, model) in NAMES {
            let spec = Spec::new(name.parse().unwrap());
            assert_eq!(spec.model, model);
            let mut disk = spec.make().unwrap();
            disk.submit(7, read(80), 0);
            let done = all(&mut *disk)
                .iter()
                .filter(|e| matches!(e, Event::Done { id: 7, .. }))
                .count();
            assert_eq!(done, 1, "{name}");
        }
        assert!("floppy".parse::<Model>().unwrap_err().contains("nvme"));
    }

    #[test]
    fn a_slower_disk_does_the_same_later() {
        let spec = Spec::new(Model::Nvme);
        let slow = Spec { slower: 50, ..spec };
        let (mut a, mut b) = (spec.make().unwrap(), slow.make().unwrap());
        for id in 0..20 {
            a.submit(id, read(id * 4000), 0);
            b.submit(id, read(id * 4000), 0);
        }
        let stretched: Vec<Event> = all(&mut *a)
            .into_iter()
            .map(|e| match e {
                Event::Done { id, at } => Event::Done { id, at: at * 50 },
                Event::Took { id, at, time } => Event::Took {
                    id,
                    at: at * 50,
                    time: time * 50,
                },
            })
            .collect();
        assert_eq!(all(&mut *b), stretched);
    }

    #[test]
    fn what_cannot_be_is_refused() {
        let spec = Spec::new(Model::Nvme);
        for bad in [
            Spec { slower: 0, ..spec },
            Spec {
                write_cache: 32,
                ..spec
            },
            Spec {
                size_mib: Some(0),
                ..spec
            },
        ] {
            assert!(bad.make().is_err(), "{bad:?}");
        }
    }

    #[test]
    fn the_write_cache_is_used() {
        let spec = Spec {
            write_cache: 32,
            ..Spec::new(Model::St3250620as)
        };
        let mut disk = spec.make().unwrap();
        disk.submit(
            1,
            Request {
                op: Op::Write,
                ..read(8_000_000)
            },
            0,
        );
        let events = all(&mut *disk);
        let done = events
            .iter()
            .find(|e| matches!(e, Event::Done { .. }))
            .unwrap();
        assert!(done.at() < 1_000_000, "{events:?}");
    }
}
