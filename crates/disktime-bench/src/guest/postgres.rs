//! A PostgreSQL for each job that is one: a server with a cluster of its own among the group's
//! files, and pgbench. Both run as a user, in the job's group.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::plan::{Job, MOUNTS, POSTGRES_USER, Run};

use super::command;

/// A cluster that was made once; all others are copies of it.
const TEMPLATE: &str = "/tmp/postgres";
/// Where the programs are, in a folder for their version.
const PROGRAMS: &str = "/usr/lib/postgresql";

/// Makes a cluster in $1 with pgbench's tables at scale $2. It need not be safe yet.
const MAKE: &str = "set -e
initdb -D \"$1\" --no-sync --locale=C -E UTF8 -A trust
postgres -F -D \"$1\" -k \"$1\" -c listen_addresses= -c jit=off >\"$1/log\" 2>&1 &
until pgbench -h \"$1\" -i -I dtGvp -s \"$2\" postgres; do
	kill -0 $! || exit 1
	sleep 0.1
done
kill -INT $!
wait";

/// Serves the cluster in $1, and has $2 clients use it; the ends of their transactions go to files
/// that begin with $3. What is read is in memory before. All ends when it is interrupted: pgbench,
/// whose server is gone then, writes down what it knows, as it would not if it were interrupted
/// itself.
const SERVE: &str = "trap 'kill -QUIT $server' INT
cat \"$1\"/base/*/* >/dev/null
postgres -D \"$1\" -k \"$1\" -c listen_addresses= -c jit=off -c shared_buffers=64MB &
server=$!
until pgbench -h \"$1\" -n -t 1 postgres >/dev/null 2>&1; do
	kill -0 $server || exit 1
	sleep 0.1
done
touch \"$3.ready\"
pgbench -h \"$1\" -n -c \"$2\" -T 86400 -l --log-prefix=\"$3\" postgres &
wait $!
kill -QUIT $server 2>/dev/null
wait";

/// What a shell is given to run a script with the programs at hand.
fn shell(script: &str, args: &[&str]) -> Result<Vec<String>> {
    let mut versions = fs::read_dir(PROGRAMS).context("there is no PostgreSQL")?;
    let version = versions.next().context("there is no PostgreSQL")??.path();
    let script = format!("PATH={}/bin:$PATH\n{script}", version.display());
    let words = ["/bin/sh", "-c", &script, "sh"].into_iter();
    Ok(words
        .chain(args.iter().copied())
        .map(str::to_owned)
        .collect())
}

fn cluster(run: &Run, job: &Job) -> PathBuf {
    let group = &run.groups[job.group].name;
    Path::new(MOUNTS).join(group).join(&job.name)
}

/// Gives the job its cluster.
pub(super) fn lay_out(run: &Run, job: &Job, scale: u32) -> Result<()> {
    let user = POSTGRES_USER.to_string();
    let template = format!("{TEMPLATE}-{scale}");
    if !Path::new(&template).exists() {
        // It wants its user to have a name.
        let users = fs::read_to_string("/etc/passwd")?;
        if !users.contains("postgres:") {
            let line = format!("{users}postgres:x:{user}:{user}::/tmp:/bin/sh\n");
            fs::write("/etc/passwd", line)?;
        }
        let ids = [format!("--reuid={user}"), format!("--regid={user}")];
        let made = format!("{template}.new");
        fs::create_dir(&made)?;
        command("chown", &[&user, &made])?;
        let mut words = vec![ids[0].clone(), ids[1].clone(), "--clear-groups".into()];
        words.extend(shell(MAKE, &[&made, &scale.to_string()])?);
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        command("/bin/setpriv", &words).context("making a cluster")?;
        fs::rename(&made, &template)?;
    }
    let to = cluster(run, job);
    command("cp", &["-a", &template, &to.to_string_lossy()])
}

/// What is there once the server serves, of a job with such a log.
pub(super) fn ready(log: &Path) -> PathBuf {
    PathBuf::from(format!("{}.ready", log.display()))
}

/// What becomes the server and its clients; `log` begins the names of their logs.
pub(super) fn serve(run: &Run, job: &Job, log: &Path) -> Result<Vec<String>> {
    let (cluster, log) = (cluster(run, job), log.to_string_lossy());
    let clients = job.depth.to_string();
    shell(SERVE, &[&cluster.to_string_lossy(), &clients, &log])
}
