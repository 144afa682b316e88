//! The command line.

use std::io::Write;
use std::path::PathBuf;

use disktime_model::{Model, Spec};

use crate::engine::{MAX_DEPTH, MAX_REGIONS};
use crate::{Error, Options, Region, serve};

/// Serves a disk model as a block device, through ublk
///
/// Prints the device's path once it is there, and removes it on Ctrl-C or SIGTERM. Data are kept in
/// memory.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "Examples:\n  disktime-modeldisk hdd --size 250G\n  \
                  disktime-modeldisk hdd --cache 64 --region 0:2048 --tally /run/tally.json\n  \
                  disktime-modeldisk servers --servers 8 --service-us 4000\n\n\
                  Exit status: 0 ok, 1 failed, 2 usage, 4 no ublk, 5 not permitted.")]
pub struct Args {
    /// wd2500js, st3250620as (or hdd), plain-ssd, sata-ssd, nvme, gp3, gp2, or servers
    #[arg(value_name = "MODEL", value_parser = name)]
    model: Name,
    /// Size, a whole number of MiB: 512M, 250G, 2T [default: the model's own]
    #[arg(long, value_name = "SIZE", value_parser = mib)]
    size: Option<u64>,
    /// Writes that the volatile cache of a rotating disk holds; 0 is no cache
    #[arg(long, value_name = "N", default_value_t = 0)]
    cache: u32,
    /// Everything takes so many times as long
    #[arg(long, value_name = "FACTOR", default_value_t = 1)]
    slower: u32,
    /// Requests served at a time, for the model servers
    #[arg(long, value_name = "K", value_parser = clap::value_parser!(u32).range(1..=i64::from(MAX_DEPTH)))]
    servers: Option<u32>,
    /// Microseconds that a request takes, for the model servers
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1_000_000_000))]
    service_us: Option<u64>,
    /// For models that throw dice
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Sectors whose true time is added up on its own, several times; :STRIDE:COUNT may be left out
    #[arg(long = "region", value_name = "FROM:LEN:STRIDE:COUNT")]
    regions: Vec<Region>,
    /// Write the tally to FILE, again every 50 ms while there is something new
    #[arg(long, value_name = "FILE")]
    tally: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug)]
enum Name {
    Servers,
    Known(Model),
}

fn name(text: &str) -> Result<Name, String> {
    match text {
        "servers" => Ok(Name::Servers),
        known => match known.parse() {
            Ok(model) => Ok(Name::Known(model)),
            Err(e) => Err(format!("{e}, servers")),
        },
    }
}

fn mib(text: &str) -> Result<u64, String> {
    let shift = match text.bytes().last() {
        Some(b'M') => 0,
        Some(b'G') => 10,
        Some(b'T') => 20,
        _ => return Err("write 512M, 250G or 2T".into()),
    };
    let number: u64 = text[..text.len() - 1]
        .parse()
        .map_err(|_| format!("{text:?} is no size: write 512M, 250G or 2T"))?;
    // Sectors are to fit into what kernels can address.
    match number.checked_mul(1 << shift) {
        Some(mib @ 1..=0x7fff_ffff) => Ok(mib),
        _ => Err("a disk has 1M to 2047T".into()),
    }
}

impl Args {
    /// What they ask for.
    pub fn options(&self) -> Result<Options, Error> {
        let model = match (self.model, self.servers, self.service_us) {
            (Name::Servers, Some(servers), Some(us)) => Model::Servers {
                servers,
                service_ns: us * 1000,
                rotational: false,
            },
            (Name::Servers, ..) => {
                return Err(Error::Options(
                    "the model servers needs --servers and --service-us".into(),
                ));
            }
            (Name::Known(model), None, None) => model,
            (Name::Known(model), ..) => {
                return Err(Error::Options(format!(
                    "--servers and --service-us are for the model servers, not for {model}"
                )));
            }
        };
        if self.regions.len() > MAX_REGIONS {
            return Err(Error::Options(format!(
                "there may be {MAX_REGIONS} regions at most"
            )));
        }
        Ok(Options {
            spec: Spec {
                model,
                size_mib: self.size,
                write_cache: self.cache,
                slower: self.slower,
                seed: self.seed,
            },
            regions: self.regions.clone(),
            tally: self.tally.clone(),
        })
    }

    /// Serves until asked to end. A failure is an [`Error`], which has a hint and an exit status.
    pub fn run(self) -> anyhow::Result<()> {
        let options = self.options()?;
        serve(&options, &mut |path| {
            eprintln!("serving {}; Ctrl-C removes it", options.spec);
            // Whoever started this may have stopped listening.
            let mut out = std::io::stdout().lock();
            let _ = writeln!(out, "{}", path.display()).and_then(|()| out.flush());
        })?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Debug, Parser)]
    struct Cli {
        #[command(flatten)]
        args: Args,
    }

    fn options(line: &str) -> Result<Options, String> {
        let words = std::iter::once("x").chain(line.split_whitespace());
        let cli = Cli::try_parse_from(words).map_err(|e| e.to_string())?;
        cli.args.options().map_err(|e| e.to_string())
    }

    #[test]
    fn a_line_says_all_of_a_disk() {
        let got = options(
            "hdd --size 250G --cache 64 --slower 2 --seed 7 --region 0:8 --region 9:8:16:2 --tally t",
        );
        let expected = Options {
            spec: Spec {
                model: Model::St3250620as,
                size_mib: Some(256_000),
                write_cache: 64,
                slower: 2,
                seed: 7,
            },
            regions: vec!["0:8:8:1".parse().unwrap(), "9:8:16:2".parse().unwrap()],
            tally: Some("t".into()),
        };
        assert_eq!(got.unwrap(), expected);
        let servers = options("servers --servers 8 --service-us 4000 --size 64M").unwrap();
        assert_eq!(servers.spec.capacity(), Some(2000.0));
    }

    #[test]
    fn what_cannot_be_is_refused_with_a_reason() {
        for (line, why) in [
            ("floppy", "servers"),
            ("servers --servers 8", "needs --servers and --service-us"),
            ("hdd --servers 8", "not for st3250620as"),
            ("servers --servers 2000 --service-us 1", "1..=1024"),
            ("hdd --size 5", "write 512M"),
            ("hdd --size G", "no size"),
            ("hdd --size 0G", "1M to 2047T"),
            ("hdd --size 99999999999999T", "1M to 2047T"),
            ("hdd --region 8:0", "without sectors"),
            ("", "MODEL"),
        ] {
            let error = options(line).unwrap_err();
            assert!(error.contains(why), "{line}: {error}");
        }
    }
}
