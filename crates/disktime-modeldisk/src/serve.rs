//! The engine behind a ublk device.
//!
//! One queue, and one thread that serves it: it alone has the data, the model and the books. The
//! caller's thread makes the device, waits for a signal and removes the device. A third writes the
//! tally file, which may take long and may even be on the disk that is served.

use std::fs::{self, OpenOptions};
use std::io::ErrorKind;
use std::os::fd::AsFd;
use std::path::Path;
use std::sync::mpsc::{self, Receiver, SyncSender};
use std::thread;

use io_uring::types::{SubmitArgs, Timespec};
use libublk::ctrl::{UblkCtrl, UblkCtrlBuilder};
use libublk::helpers::IoBuf;
use libublk::io::{BufDesc, BufDescList, UblkDev, UblkIOCtx, UblkQueue, with_task_io_ring};
use libublk::sys;
use libublk::uring_async::ublk_reap_io_events_with_update_queue;
use libublk::{UblkError, UblkFlags, UblkIORes};
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::eventfd::EventFd;
use nix::sys::signal::{SigSet, SigmaskHow, Signal};
use nix::sys::signalfd::SignalFd;
use nix::time::{ClockId, clock_gettime};

use crate::engine::{Done, Engine, Io, Kind, MAX_DEPTH, MAX_REGIONS};
use crate::tally::Book;
use crate::{Error, Options};

const CONTROL: &str = "/dev/ublk-control";
/// The most that one request moves. Each tag has a buffer of this size, of which only what was used
/// once takes memory.
const MAX_IO_BYTES: u32 = 1 << 20;
/// Pages of the memory behind, so that the kernel prefers to write whole ones.
const PAGE_SHIFT: u8 = 12;
/// Often enough to look at shares as they change, seldom enough not to be felt.
const TALLY_EVERY_NS: u64 = 50_000_000;

/// Serves a disk until SIGINT or SIGTERM, then removes it. `ready` is called with the device's path
/// once it can be used.
///
/// Other ends than by these leave traces: killed with a full queue, the requests in it fail half a
/// minute later, and the control device stays.
///
/// Blocks these two signals in the calling thread meanwhile; threads that exist already must do so
/// themselves.
pub fn serve(options: &Options, ready: &mut dyn FnMut(&Path)) -> Result<(), Error> {
    if options.regions.len() > MAX_REGIONS {
        return Err(Error::Options(format!(
            "there may be {MAX_REGIONS} regions at most"
        )));
    }
    // Only for what it says of itself: the one that serves is made in its thread.
    let disk = options.spec.make().map_err(Error::Options)?;
    check_driver()?;
    if let Some(path) = &options.tally {
        let tally = Book::new(options.regions.len()).tally(monotonic_ns());
        tally.write(path).map_err(|why| Error::Tally {
            path: path.clone(),
            why,
        })?;
    }
    let signals = Signals::block()?;

    let ctrl = UblkCtrlBuilder::default()
        .name("disktime-model")
        .nr_queues(1)
        .depth(disk.slots().clamp(1, MAX_DEPTH) as u16)
        .io_buf_bytes(MAX_IO_BYTES)
        .dev_flags(UblkFlags::UBLK_DEV_F_ADD_DEV)
        .build()
        .map_err(Error::device("add"))?;
    let params = params(options, &*disk);
    let fill = |dev: &mut UblkDev| {
        dev.tgt.dev_size = disk.sectors() << 9;
        dev.tgt.params = params;
        Ok(())
    };
    let served = UblkDev::new(ctrl.get_name(), fill, &ctrl)
        .map_err(Error::device("open"))
        .and_then(|dev| run(options, &ctrl, &dev, &signals, ready));
    // Without waiting until nobody has the device open, where the kernel can.
    let removed = ctrl
        .del_dev_async()
        .or_else(|_| ctrl.del_dev())
        .map_err(Error::device("remove"));
    served.and(removed.map(drop))
}

fn check_driver() -> Result<(), Error> {
    let Err(e) = OpenOptions::new().read(true).write(true).open(CONTROL) else {
        return Ok(());
    };
    Err(match e.kind() {
        ErrorKind::PermissionDenied => Error::NotPermitted(e),
        ErrorKind::NotFound => {
            let release = nix::sys::utsname::uname()
                .map(|name| name.release().to_string_lossy().into_owned())
                .unwrap_or_default();
            // Where nothing is known of modules, loading it is worth a try.
            let modules = fs::read_to_string(format!("/lib/modules/{release}/modules.dep"));
            match modules {
                Ok(list) if !list.contains("ublk_drv.ko") => Error::NoUblk(release),
                _ => Error::NotLoaded,
            }
        }
        _ => Error::Control(e),
    })
}

fn params(options: &Options, disk: &dyn disktime_model::Disk) -> sys::ublk_params {
    let mut attrs = 0;
    if disk.rotational() {
        attrs |= sys::UBLK_ATTR_ROTATIONAL;
    }
    if options.spec.volatile_cache() {
        attrs |= sys::UBLK_ATTR_VOLATILE_CACHE | sys::UBLK_ATTR_FUA;
    }
    let mut params = sys::ublk_params {
        types: sys::UBLK_PARAM_TYPE_BASIC,
        basic: sys::ublk_param_basic {
            attrs,
            logical_bs_shift: 9,
            physical_bs_shift: PAGE_SHIFT,
            io_min_shift: PAGE_SHIFT,
            io_opt_shift: PAGE_SHIFT,
            max_sectors: MAX_IO_BYTES >> 9,
            dev_sectors: disk.sectors(),
            ..Default::default()
        },
        ..Default::default()
    };
    // Rotating disks know no discard, and have to write zeroes like anything else.
    if !disk.rotational() {
        params.types |= sys::UBLK_PARAM_TYPE_DISCARD;
        params.discard = sys::ublk_param_discard {
            discard_granularity: 1 << PAGE_SHIFT,
            max_discard_sectors: u32::MAX >> 9,
            max_write_zeroes_sectors: u32::MAX >> 9,
            max_discard_segments: 1,
            ..Default::default()
        };
    }
    params
}

/// The part of the caller's thread while there is a device.
fn run(
    options: &Options,
    ctrl: &UblkCtrl,
    dev: &UblkDev,
    signals: &Signals,
    ready: &mut dyn FnMut(&Path),
) -> Result<(), Error> {
    let ended = EventFd::new().map_err(Error::Signals)?;
    thread::scope(|scope| {
        let (publish, published) = mpsc::sync_channel(1);
        let publish = options.tally.clone().map(|path| {
            scope.spawn(move || write_tallies(&path, &published));
            publish
        });
        let (fetching, fetches) = mpsc::channel();
        let guard = Ended(&ended);
        let queue = scope.spawn(move || {
            let _guard = guard;
            let served = Server::new(options, dev, publish).and_then(|mut server| {
                let _ = fetching.send(());
                server.serve()
            });
            drop(fetching);
            served
        });

        let asked = if fetches.recv().is_ok() {
            ctrl.start_dev(dev)
                .map_err(Error::device("start"))
                .map(|_| ready(Path::new(&ctrl.get_bdev_path())))
                .and_then(|()| signals.wait_or(&ended))
        } else {
            Ok(false)
        };
        // Ends the queue too: the kernel gives back what it has not used.
        let stopped = ctrl.stop_dev().map_err(Error::device("stop"));
        // Not left to the scope, which does not wait until the thread has closed its ring.
        let served = match queue.join() {
            Ok(served) => served.map_err(Error::device("serve")),
            Err(panic) => std::panic::resume_unwind(panic),
        };
        let asked = asked?;
        served?;
        if !asked {
            return Err(Error::Stopped);
        }
        stopped.map(drop)
    })
}

/// Tells the caller's thread that the queue's has ended, however it did.
struct Ended<'a>(&'a EventFd);

impl Drop for Ended<'_> {
    fn drop(&mut self) {
        let _ = self.0.write(1);
    }
}

/// SIGINT and SIGTERM, to be waited for. Threads started meanwhile have them blocked too, so that
/// no system call of theirs is interrupted.
struct Signals {
    fd: SignalFd,
    before: SigSet,
}

impl Signals {
    fn block() -> Result<Self, Error> {
        let set = SigSet::from_iter([Signal::SIGINT, Signal::SIGTERM]);
        let fd = SignalFd::new(&set).map_err(Error::Signals)?;
        let before = set
            .thread_swap_mask(SigmaskHow::SIG_BLOCK)
            .map_err(Error::Signals)?;
        Ok(Signals { fd, before })
    }

    /// Whether a signal came, and not the end of the queue.
    fn wait_or(&self, ended: &EventFd) -> Result<bool, Error> {
        loop {
            let mut fds = [
                PollFd::new(self.fd.as_fd(), PollFlags::POLLIN),
                PollFd::new(ended.as_fd(), PollFlags::POLLIN),
            ];
            match poll(&mut fds, PollTimeout::NONE) {
                Err(Errno::EINTR) => continue,
                Err(e) => return Err(Error::Signals(e)),
                Ok(_) => {}
            }
            if fds[1].any() == Some(true) {
                return Ok(false);
            }
            if self.fd.read_signal().map_err(Error::Signals)?.is_some() {
                return Ok(true);
            }
        }
    }
}

impl Drop for Signals {
    fn drop(&mut self) {
        let _ = self.before.thread_set_mask();
    }
}

fn monotonic_ns() -> u64 {
    // It cannot fail for this clock.
    let now =
        clock_gettime(ClockId::CLOCK_MONOTONIC).unwrap_or(nix::sys::time::TimeSpec::new(0, 0));
    now.tv_sec() as u64 * 1_000_000_000 + now.tv_nsec() as u64
}

fn write_tallies(path: &Path, published: &Receiver<(u64, Book)>) {
    let mut complained = false;
    for (at_ns, book) in published {
        if let Err(e) = book.tally(at_ns).write(path)
            && !complained
        {
            eprintln!("warning: cannot write {}: {e}", path.display());
            complained = true;
        }
    }
}

/// The request that the kernel describes; `None` for what no disk of ours does.
fn io_of(sent: &sys::ublksrv_io_desc) -> Option<Io> {
    let kind = match sent.op_flags & 0xff {
        sys::UBLK_IO_OP_READ => Kind::Read,
        sys::UBLK_IO_OP_WRITE => Kind::Write {
            fua: sent.op_flags & sys::UBLK_IO_F_FUA != 0,
        },
        sys::UBLK_IO_OP_FLUSH => Kind::Flush,
        sys::UBLK_IO_OP_DISCARD | sys::UBLK_IO_OP_WRITE_ZEROES => Kind::Zero,
        _ => return None,
    };
    Some(Io {
        kind,
        sector: sent.start_sector,
        sectors: sent.nr_sectors,
    })
}

/// The queue's thread.
struct Server<'a> {
    queue: UblkQueue<'a>,
    engine: Engine,
    /// By tag.
    buffers: Vec<IoBuf<u8>>,
    /// Commands that wait in the kernel for a request.
    waiting: u32,
    start_ns: u64,
    publish: Option<SyncSender<(u64, Book)>>,
    /// When the book may be published next, if there is something new in it.
    publish_at: Option<u64>,
    published_at: u64,
}

impl<'a> Server<'a> {
    fn new(
        options: &Options,
        dev: &'a UblkDev,
        publish: Option<SyncSender<(u64, Book)>>,
    ) -> Result<Self, UblkError> {
        // The kernel may need this thread to free memory: it must not wait for itself.
        UblkCtrl::init_queue_thread();
        let disk = options.spec.make().map_err(|_| UblkError::InvalidVal)?;
        let engine = Engine::new(disk, options.regions.clone());
        let buffers = dev.alloc_queue_io_bufs();
        let queue = UblkQueue::new(0, dev)?
            .submit_fetch_commands_unified(BufDescList::Slices(Some(&buffers)))?;
        Ok(Server {
            waiting: queue.get_depth(),
            queue,
            engine,
            buffers,
            start_ns: monotonic_ns(),
            publish,
            publish_at: None,
            published_at: 0,
        })
    }

    fn now(&self) -> u64 {
        monotonic_ns() - self.start_ns
    }

    /// Until the device is stopped and all its commands are back.
    fn serve(&mut self) -> Result<(), UblkError> {
        let mut fetched = Vec::new();
        let mut done = Vec::new();
        while !(self.queue.is_stopping() && self.waiting == 0) {
            self.wait()?;
            self.reap(&mut fetched)?;
            let now = self.now();
            for tag in fetched.drain(..) {
                self.take(tag, now)?;
            }
            let news = self.engine.run(now, &mut done);
            if news && self.publish.is_some() && self.publish_at.is_none() {
                self.publish_at = Some(self.published_at + TALLY_EVERY_NS);
            }
            self.tell(&mut done)?;
            self.publish(false);
        }
        self.publish(true);
        Ok(())
    }

    /// Sends what there is to send and waits for a request or the time at which something is due.
    fn wait(&self) -> Result<(), UblkError> {
        let due = [self.engine.next_at(), self.publish_at];
        let due = due.into_iter().flatten().min();
        let sent = with_task_io_ring(|ring| {
            let Some(due) = due else {
                return ring.submit_and_wait(1);
            };
            let left = due.saturating_sub(self.now());
            if left == 0 {
                return ring.submit();
            }
            let left = Timespec::new()
                .sec(left / 1_000_000_000)
                .nsec((left % 1_000_000_000) as u32);
            let args = SubmitArgs::new().timespec(&left);
            ring.submitter().submit_with_args(1, &args)
        });
        match sent {
            // It is time; or there is something to reap first.
            Err(e) => match e.raw_os_error().map(Errno::from_raw) {
                Some(Errno::ETIME | Errno::EINTR | Errno::EBUSY | Errno::EAGAIN) => Ok(()),
                _ => Err(UblkError::IOError(e)),
            },
            Ok(_) => Ok(()),
        }
    }

    /// Collects the tags that have a request.
    fn reap(&mut self, fetched: &mut Vec<u16>) -> Result<(), UblkError> {
        let waiting = &mut self.waiting;
        let mut failed = None;
        ublk_reap_io_events_with_update_queue(&self.queue, false, None, |event| {
            *waiting -= 1;
            match event.result() {
                0 => fetched.push(UblkIOCtx::user_data_to_tag(event.user_data()) as u16),
                sys::UBLK_IO_RES_ABORT => {}
                errno => failed = Some(errno),
            }
        })?;
        failed.map_or(Ok(()), |errno| Err(UblkError::UringIOError(errno)))
    }

    fn take(&mut self, tag: u16, now: u64) -> Result<(), UblkError> {
        let Some(io) = io_of(self.queue.get_iod(tag)) else {
            return self.commit(tag, -(Errno::EOPNOTSUPP as i32));
        };
        let data = match io.kind {
            Kind::Write { .. } => self.buffers[usize::from(tag)].as_slice().get(..io.bytes()),
            _ => Some(&[][..]),
        };
        match data.map(|data| self.engine.submit(tag, io, data, now)) {
            Some(Ok(())) => Ok(()),
            // The kernel checks all that could be wrong.
            _ => self.commit(tag, -(Errno::EIO as i32)),
        }
    }

    /// Tells the kernel what is done, with the data of reads.
    fn tell(&mut self, done: &mut Vec<Done>) -> Result<(), UblkError> {
        if done.is_empty() {
            return Ok(());
        }
        for Done { tag, io, .. } in done.iter() {
            if io.kind == Kind::Read {
                let buffer = self.buffers[usize::from(*tag)].as_mut_slice();
                self.engine.read(io.sector, &mut buffer[..io.bytes()]);
            }
        }
        // As late as this, for it is the time that copying took too.
        let now = self.now();
        for done in done.drain(..) {
            self.engine.told(&done, now);
            self.commit(done.tag, done.io.bytes() as i32)?;
        }
        Ok(())
    }

    /// Gives the result of a request, and the tag for the next.
    fn commit(&mut self, tag: u16, result: i32) -> Result<(), UblkError> {
        if self.queue.is_stopping() {
            return Ok(());
        }
        let buffer = BufDesc::Slice(self.buffers[usize::from(tag)].as_slice());
        self.queue
            .complete_io_cmd_unified(tag, buffer, Ok(UblkIORes::Result(result)))?;
        self.waiting += 1;
        Ok(())
    }

    fn publish(&mut self, last: bool) {
        let now = self.now();
        if !last && self.publish_at.is_none_or(|at| now < at) {
            return;
        }
        self.publish_at = None;
        self.published_at = now;
        let Some(publish) = &self.publish else {
            return;
        };
        let book = (self.start_ns + now, self.engine.book().clone());
        if last {
            let _ = publish.send(book);
        } else if publish.try_send(book).is_err() {
            // The one before is not written yet.
            self.publish_at = Some(now + TALLY_EVERY_NS);
        }
    }
}

#[cfg(test)]
mod tests {
    use disktime_model::Spec;

    use super::*;

    #[test]
    fn requests_are_understood_with_their_flags() {
        let fua = |fua| Some(Kind::Write { fua });
        let noise = sys::UBLK_IO_F_META | sys::UBLK_IO_F_FAILFAST_DEV | sys::UBLK_IO_F_SWAP;
        for (op_flags, kind) in [
            (sys::UBLK_IO_OP_READ, Some(Kind::Read)),
            (sys::UBLK_IO_OP_WRITE, fua(false)),
            (sys::UBLK_IO_OP_WRITE | sys::UBLK_IO_F_FUA, fua(true)),
            (sys::UBLK_IO_OP_FLUSH, Some(Kind::Flush)),
            (sys::UBLK_IO_OP_DISCARD, Some(Kind::Zero)),
            (sys::UBLK_IO_OP_WRITE_ZEROES, Some(Kind::Zero)),
            (sys::UBLK_IO_OP_ZONE_APPEND, None),
        ] {
            for noise in [0, noise] {
                let io = io_of(&sys::ublksrv_io_desc {
                    op_flags: op_flags | noise,
                    nr_sectors: 7,
                    start_sector: 1 << 33,
                    addr: 0,
                });
                let expected = kind.map(|kind| Io {
                    kind,
                    sector: 1 << 33,
                    sectors: 7,
                });
                assert_eq!(io, expected, "{op_flags:x}");
            }
        }
    }

    #[test]
    fn the_device_says_what_the_model_is() {
        let attrs = |name: &str, write_cache| {
            let options = Options {
                spec: Spec {
                    write_cache,
                    size_mib: Some(1 << 20),
                    ..Spec::new(name.parse().unwrap())
                },
                regions: Vec::new(),
                tally: None,
            };
            let disk = options.spec.make().unwrap();
            let params = params(&options, &*disk);
            assert_eq!(params.basic.dev_sectors, 1 << 31);
            let discards = params.types & sys::UBLK_PARAM_TYPE_DISCARD != 0;
            (params.basic.attrs, discards)
        };
        let cached = sys::UBLK_ATTR_VOLATILE_CACHE | sys::UBLK_ATTR_FUA;
        assert_eq!(attrs("hdd", 0), (sys::UBLK_ATTR_ROTATIONAL, false));
        assert_eq!(attrs("hdd", 8), (sys::UBLK_ATTR_ROTATIONAL | cached, false));
        assert_eq!(attrs("sata-ssd", 0), (cached, true));
        assert_eq!(attrs("nvme", 0), (0, true));
    }
}
