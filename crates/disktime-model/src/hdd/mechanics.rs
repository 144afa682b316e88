//! Where the sectors lie, and how long the head takes from one to another.
//!
//! Sectors are numbered along a track, then head by head through the cylinder, then cylinder by
//! cylinder inwards. Tracks of a zone hold equally many. Each track begins later on the circle than
//! the one before by the time it takes to switch to it (the skew), so that reading on loses this
//! time and not a revolution.
//!
//! Angles are times: an angle of `a` is under the head whenever `a = t mod revolution`. Sector `i`
//! of `n` on a track begins at `floor(i * revolution / n)` after the track's first, so that one
//! sector ends to the nanosecond where the next begins.

use super::{Invalid, Params, SECTOR_BYTES};

const SECOND: u64 = 1_000_000_000;

/// More would only be a long table of seek times: a disk of 20 TB has about half a million.
const MAX_CYLINDERS: u64 = 1 << 22;

/// See the module.
pub(super) struct Mechanics {
    revolution: u64,
    heads: u64,
    head_switch: u64,
    cylinder_switch: u64,
    write_settle: u64,
    /// From the outermost, where sector 0 is.
    zones: Vec<Zone>,
    /// Seek times by distance in cylinders; the first is 0.
    seeks: Vec<u32>,
}

struct Zone {
    first_sector: u64,
    first_cylinder: u64,
    /// Sectors on each track.
    per_track: u64,
}

/// Where a sector begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    cylinder: u64,
    head: u64,
    angle: u64,
}

/// A sector on its track.
struct OnTrack {
    cylinder: u64,
    head: u64,
    index: u64,
    per_track: u64,
}

impl Mechanics {
    pub(super) fn new(params: &Params) -> Result<Self, Invalid> {
        let revolution = 60 * SECOND / u64::from(params.rpm);
        let heads = u64::from(params.heads);
        let head_switch = params.head_switch_ns;
        let cylinder_switch = params.track_to_track_ns;

        // What the sheet calls the sustained rate includes the switches.
        let cylinder_ns = heads * revolution + (heads - 1) * head_switch + cylinder_switch;
        let per_track = |rate: u64| {
            let bytes = u128::from(rate) * u128::from(cylinder_ns);
            let unit = u128::from(SECTOR_BYTES * SECOND * heads);
            ((bytes + unit / 2) / unit) as u64
        };
        let outer = per_track(params.outer_rate);
        let inner = per_track(params.inner_rate);
        if inner == 0 || outer < inner || outer > revolution {
            return Err(Invalid::Rates);
        }

        let count = u64::from(params.zones);
        let tracks: Vec<u64> = (0..count)
            .map(|zone| outer - (outer - inner) * zone / (count - 1))
            .collect();
        let width = params.sectors.div_ceil(heads * tracks.iter().sum::<u64>());
        if width > MAX_CYLINDERS / count {
            return Err(Invalid::Cylinders);
        }
        let mut zones = Vec::with_capacity(tracks.len());
        let (mut first_sector, mut first_cylinder) = (0, 0);
        for per_track in tracks {
            zones.push(Zone {
                first_sector,
                first_cylinder,
                per_track,
            });
            first_sector += width * heads * per_track;
            first_cylinder += width;
        }

        Ok(Mechanics {
            revolution,
            heads,
            head_switch,
            cylinder_switch,
            write_settle: params.average_write_seek_ns - params.average_read_seek_ns,
            zones,
            seeks: seek_times(params, first_cylinder - 1).ok_or(Invalid::Seeks)?,
        })
    }

    pub(super) fn place(&self, sector: u64) -> Place {
        let on = self.on_track(sector);
        let per_cylinder = (self.heads - 1) * self.head_switch + self.cylinder_switch;
        let skew = on.cylinder * per_cylinder + on.head * self.head_switch;
        Place {
            cylinder: on.cylinder,
            head: on.head,
            angle: (skew + self.offset(on.index, on.per_track)) % self.revolution,
        }
    }

    /// Time from `ready` until `to` passes under the head, which is on the track of `from`.
    ///
    /// A write has to settle more accurately than a read. It need not after a switch to the next
    /// track: skews are laid out so that writing on does not lose a revolution either.
    pub(super) fn access(&self, from: Place, to: Place, write: bool, ready: u64) -> u64 {
        let distance = from.cylinder.abs_diff(to.cylinder);
        let mut seek = if distance > 0 {
            u64::from(self.seeks[distance as usize])
        } else if from.head != to.head {
            self.head_switch
        } else {
            0
        };
        if write && distance > 1 {
            seek += self.write_settle;
        }
        let angle = (ready + seek) % self.revolution;
        let wait = if to.angle < angle {
            to.angle + self.revolution - angle
        } else {
            to.angle - angle
        };
        seek + wait
    }

    /// Time in which `sectors` from `first` on pass under the head, with all switches among them.
    pub(super) fn transfer(&self, first: u64, sectors: u64) -> u64 {
        let (mut sector, mut rest, mut time) = (first, sectors, 0);
        loop {
            let on = self.on_track(sector);
            let here = rest.min(on.per_track - on.index);
            time += self.offset(on.index + here, on.per_track);
            time -= self.offset(on.index, on.per_track);
            rest -= here;
            if rest == 0 {
                return time;
            }
            time += self.switch_after(&on);
            sector += here;
        }
    }

    /// How many whole sectors from `first` on pass under the head in `time`: the inverse of
    /// [`Self::transfer`].
    pub(super) fn passed(&self, first: u64, mut time: u64) -> u64 {
        let mut sector = first;
        loop {
            let on = self.on_track(sector);
            let begin = self.offset(on.index, on.per_track);
            let whole = self.revolution - begin;
            if time < whole {
                // The last i with floor(i * revolution / n) <= begin + time.
                let index = ((begin + time + 1) * on.per_track - 1) / self.revolution;
                return sector + (index - on.index) - first;
            }
            sector += on.per_track - on.index;
            let next = whole + self.switch_after(&on);
            if time < next {
                return sector - first;
            }
            time -= next;
        }
    }

    fn on_track(&self, sector: u64) -> OnTrack {
        let inwards = self
            .zones
            .partition_point(|zone| zone.first_sector <= sector);
        let zone = &self.zones[inwards - 1];
        let track = (sector - zone.first_sector) / zone.per_track;
        OnTrack {
            cylinder: zone.first_cylinder + track / self.heads,
            head: track % self.heads,
            index: (sector - zone.first_sector) % zone.per_track,
            per_track: zone.per_track,
        }
    }

    fn offset(&self, index: u64, per_track: u64) -> u64 {
        index * self.revolution / per_track
    }

    fn switch_after(&self, on: &OnTrack) -> u64 {
        if on.head + 1 < self.heads {
            self.head_switch
        } else {
            self.cylinder_switch
        }
    }
}

/// Seek times for all distances up to the longest.
///
/// The arm speeds up half of the way and slows down the other half, so that a short seek takes time
/// like the root of its distance; on a long one it coasts at its greatest speed and each further
/// cylinder costs the same (Ruemmler and Wilkes 1994):
///
/// ```text
///   t(d) = a + b sqrt(d)                               for d <= c
///   t(d) = a + b sqrt(c) + (d - c) b / (2 sqrt(c))     beyond
/// ```
///
/// Without a kink at `c` there are three unknowns, and the sheet has three figures: track to track
/// is t(1), full stroke t(D), and the average is that over pairs of random cylinders, whose
/// distances x = d/D have density 2 (1 - x). With B = b sqrt(D), and x for c/D, full stroke gives
///
/// ```text
///   B = (t(D) - t(1)) / (sqrt(x) + (1 - x) / (2 sqrt(x)) - 1 / sqrt(D))
/// ```
///
/// and the integral of 2 (1 - x) t is a closed form that grows with x: from that of a straight line
/// to that of a root all the way. Bisection finds x; an average outside is refused with `None`.
///
/// Only roots and the four operations are used, which are exact alike on every machine.
fn seek_times(params: &Params, longest: u64) -> Option<Vec<u32>> {
    let first = params.track_to_track_ns as f64;
    let mean = params.average_read_seek_ns as f64;
    let full = params.full_stroke_ns as f64;
    let end = longest as f64;

    let scale = |x: f64| {
        let root = x.sqrt();
        (full - first) / (root + (1.0 - x) / (2.0 * root) - 1.0 / end.sqrt())
    };
    let mean_with = |x: f64| {
        let (root, rest, scale) = (x.sqrt(), 1.0 - x, scale(x));
        let start = first - scale / end.sqrt();
        let short = start * (1.0 - rest * rest) + scale * root * x * (4.0 / 3.0 - 4.0 / 5.0 * x);
        let knee = start + scale * root;
        let slope = scale / (2.0 * root);
        short + knee * rest * rest + slope * rest * rest * rest / 3.0
    };

    let (mut low, mut high) = (1.0 / end, 1.0);
    if !(mean_with(low)..=mean_with(high)).contains(&mean) {
        return None;
    }
    for _ in 0..60 {
        let middle = (low + high) / 2.0;
        if mean_with(middle) < mean {
            low = middle;
        } else {
            high = middle;
        }
    }

    let knee = low * end;
    let root = scale(low) / end.sqrt();
    let start = first - root;
    let slope = root / (2.0 * knee.sqrt());
    let time = |distance: u64| {
        let distance = distance as f64;
        let time = if distance <= knee {
            start + root * distance.sqrt()
        } else {
            start + root * knee.sqrt() + slope * (distance - knee)
        };
        time.round() as u32
    };
    let mut seeks: Vec<u32> = (0..=longest).map(time).collect();
    // No rounding here: it would make reading on to the next cylinder miss its skew.
    seeks[0] = 0;
    seeks[1] = params.track_to_track_ns as u32;
    Some(seeks)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn presets() -> [Params; 2] {
        [Params::wd2500js(), Params::st3250620as()]
    }

    /// Catches a wrong weight in the integral, or a curve that breaks at the knee.
    #[test]
    fn seeks_between_random_cylinders_take_the_average_of_the_sheet() {
        for params in presets() {
            let seeks = Mechanics::new(&params).unwrap().seeks;
            let cylinders = seeks.len() as u64;
            let pairs = u128::from(cylinders) * u128::from(cylinders);
            let sum: u128 = (1..cylinders)
                .map(|d| u128::from(2 * (cylinders - d)) * u128::from(seeks[d as usize]))
                .sum();
            let mean = (sum / pairs) as u64;
            let sheet = params.average_read_seek_ns;
            assert!(mean.abs_diff(sheet) < sheet / 1000, "{mean} for {sheet}");
            assert_eq!(u64::from(seeks[1]), params.track_to_track_ns);
            let full = u64::from(seeks[seeks.len() - 1]);
            assert!(full.abs_diff(params.full_stroke_ns) < 10, "{full}");
        }
    }

    /// Catches a fit that bends the wrong way: a longer seek never takes less, and the next
    /// cylinder never more than the one before added, but for rounding.
    #[test]
    fn seek_times_rise_ever_more_slowly() {
        for params in presets() {
            let seeks = Mechanics::new(&params).unwrap().seeks;
            let step = |d: usize| i64::from(seeks[d + 1]) - i64::from(seeks[d]);
            for d in 1..seeks.len() - 2 {
                assert!(step(d) >= 0, "at {d}");
                assert!(step(d + 1) <= step(d) + 2, "at {d}");
            }
        }
    }

    /// Catches sectors that lie twice or nowhere, also across tracks, cylinders and zones: each
    /// sector begins where the one before ended, plus the switch if there was one.
    #[test]
    fn each_sector_begins_where_the_last_one_ended() {
        for params in presets() {
            let mechanics = Mechanics::new(&params).unwrap();
            let zone = mechanics.zones[1].first_sector;
            for from in [0, zone - 3000, params.sectors / 2, params.sectors - 20_000] {
                let mut place = mechanics.place(from);
                let mut now = place.angle;
                for sector in from..from + 19_999 {
                    now += mechanics.transfer(sector, 1);
                    let next = mechanics.place(sector + 1);
                    let access = mechanics.access(place, next, false, now);
                    let switch = (next.cylinder, next.head) != (place.cylinder, place.head);
                    assert_eq!(access > 0, switch, "at {sector}");
                    assert!(access <= params.track_to_track_ns, "at {sector}");
                    now += access;
                    place = next;
                }
                let all = mechanics.transfer(from, 20_000);
                let last = mechanics.transfer(from + 19_999, 1);
                assert_eq!(all, now + last - mechanics.place(from).angle);
            }
        }
    }

    /// Catches an inverse that is a sector off, at any time and across switches.
    #[test]
    fn passed_is_the_inverse_of_transfer() {
        let mechanics = Mechanics::new(&Params::wd2500js()).unwrap();
        for first in [0, 1234, 7_000_001, 488_000_000] {
            for sectors in (1..4000).step_by(7) {
                let time = mechanics.transfer(first, sectors);
                assert_eq!(mechanics.passed(first, time), sectors);
                assert_eq!(mechanics.passed(first, time - 1), sectors - 1);
            }
        }
    }

    /// Catches a last zone that is too small for the disk, or far too large.
    #[test]
    fn disk_ends_in_the_last_cylinders_of_the_last_zone() {
        for params in presets() {
            let mechanics = Mechanics::new(&params).unwrap();
            let last = mechanics.place(params.sectors - 1).cylinder;
            let cylinders = mechanics.seeks.len() as u64;
            let spare = 2 * u64::from(params.zones);
            assert!((cylinders - spare..cylinders).contains(&last));
        }
    }
}
