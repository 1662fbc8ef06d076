//! Other processes, which lock what they are told to.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use std::{env, fs, process, thread};

use sablock::clients::{ClientLoop, Clients, Held, InFile, Names, Told};
use sablock::engine::clock::Clock;
use sablock::engine::{Caller, Engine, EventLoop, Failure, Limit, Patience};
use sablock::files::{
    Asker, Directory, FileFailure, FileHold, FileOutcome, FileRole, FileWait, Left, LockMode, LockName, NamedFile,
};

pub const LONG: Duration = Duration::from_secs(20);
pub const NOBODY: u32 = 65534;
pub const ASKER: Asker = Asker { thread: 0, wants_fence: false, is_part: false };

pub struct Scratch(pub PathBuf);

impl Scratch {
    pub fn new(test: &str) -> Self {
        // A process with the same number may have left one.
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_nanos();
        let path = env::temp_dir().join(format!("sablock-files-{test}-{}-{now}", process::id()));
        fs::create_dir(&path).unwrap();
        Self(path)
    }

    pub fn file(&self, name: &str, part: FileRole) -> PathBuf {
        self.0.join(LockName::new(&units(name)).file(part))
    }

    /// Returns the number of waits in the kernel for the lock of this name.
    pub fn waits_in_kernel(&self, name: &str) -> usize {
        use std::os::unix::fs::MetadataExt;
        let Ok(metadata) = fs::metadata(self.file(name, FileRole::Lock)) else { return 0 };
        let inode = format!(":{} ", metadata.ino());
        let locks = fs::read_to_string("/proc/locks").unwrap();
        locks.lines().filter(|line| line.contains("->") && line.contains(&inode)).count()
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // A thread whose wait was withdrawn may make its file again meanwhile.
        let _ = fs::remove_dir_all(&self.0);
    }
}

pub fn units(name: &str) -> Vec<u16> {
    name.encode_utf16().collect()
}

pub fn name(directory: &Path, name: &str) -> Arc<NamedFile> {
    NamedFile::get(&Arc::new(Directory::open(Some(directory)).unwrap()), &units(name))
}

fn engine() -> &'static Engine {
    static ENGINE: OnceLock<Engine> = OnceLock::new();
    ENGINE.get_or_init(|| Engine::new(64, 70_000, Patience::default(), Box::new(Clock::new(engine))))
}

/// Blocks a thread; `None` when the time is over.
pub fn block(
    name: &Arc<NamedFile>,
    mode: LockMode,
    limit: Limit,
    caller: &mut dyn Caller,
) -> Result<Option<FileOutcome>, Failure> {
    static NAMES: OnceLock<Names<'static>> = OnceLock::new();
    let names = NAMES.get_or_init(|| Names::new(engine()));
    let mut here = EventLoop::with_clients(engine(), engine().agents.add(1).unwrap(), Clients::new(names));
    let agent = Arc::clone(here.agent());
    let asked = ClientLoop::ask_outside_blocking(engine(), &agent, InFile::of(name, mode), ASKER, limit, caller);
    let outcome = asked.map(|answered| {
        let (number, told) = here.take_in(answered?);
        let Told::File(told) = told else { panic!("of another kind") };
        let hold = here.remove_held(number);
        Some(told.map(|()| match hold {
            Some(Held::File(hold)) => hold.take().unwrap(),
            _ => panic!("no file"),
        }))
    });
    here.end();
    outcome
}

pub fn lock(name: &Arc<NamedFile>, mode: LockMode) -> FileHold {
    let outcome = block(name, mode, Limit::after(LONG), &mut || true).unwrap();
    outcome.expect("an outcome in time").expect("it is locked")
}

pub fn wait(name: &Arc<NamedFile>, mode: LockMode) -> (FileWait, Receiver<FileOutcome>) {
    let (sender, outcome) = channel();
    let wait = FileWait::new(name, mode);
    wait.begin(ASKER, move |outcome| drop(sender.send(outcome)));
    (wait, outcome)
}

/// Takes a wait back.
pub fn withdraw(wait: &FileWait) -> bool {
    wait.withdraw(&Left::new(|| ()))
}

pub fn granted(outcome: &Receiver<FileOutcome>) -> FileHold {
    outcome.recv_timeout(LONG).expect("there is an outcome in time").expect("it is locked")
}

/// Waits until `is_so`.
pub fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let end = Instant::now() + LONG;
    while !is_so() {
        assert!(Instant::now() < end, "{what}");
        thread::sleep(Duration::from_millis(1));
    }
}

/// Another process that does what it is told on its standard input, a line at a time; see `child`.
pub struct Other {
    pub child: Child,
    input: ChildStdin,
    output: BufReader<process::ChildStdout>,
}

impl Other {
    pub fn start(directory: &Path) -> Self {
        Self::start_as(directory, |command| command)
    }

    /// As a user who owns nothing here, with a umask that takes everything away from others.
    pub fn start_as_nobody(directory: &Path) -> Self {
        use std::os::unix::process::CommandExt;
        Self::start_as(directory, |command| {
            // SAFETY: `umask` cannot fail, and may be called between `fork` and `exec`.
            unsafe {
                command.pre_exec(|| {
                    libc::umask(0o277);
                    Ok(())
                })
            };
            command.uid(NOBODY).gid(NOBODY)
        })
    }

    fn start_as(directory: &Path, change: impl Fn(&mut Command) -> &mut Command) -> Self {
        let mut command = Command::new(env::current_exe().unwrap());
        command.args(["--exact", "child", "--nocapture"]).env("SABLOCK_CHILD", directory);
        let mut child = change(&mut command).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let (input, output) = (child.stdin.take().unwrap(), BufReader::new(child.stdout.take().unwrap()));
        Self { child, input, output }
    }

    /// Has it begin to do something.
    pub fn begin(&mut self, order: &str) {
        writeln!(self.input, "{order}").unwrap();
    }

    /// Returns what it says next.
    pub fn said(&mut self) -> String {
        loop {
            let mut line = String::new();
            assert_ne!(self.output.read_line(&mut line).unwrap(), 0, "the child has ended");
            if let Some((_, said)) = line.trim().split_once("said ") {
                return said.to_owned();
            }
        }
    }

    pub fn run(&mut self, order: &str) -> String {
        self.begin(order);
        self.said()
    }

    /// The names of its threads.
    pub fn threads(&self) -> Vec<String> {
        let tasks = fs::read_dir(format!("/proc/{}/task", self.child.id())).unwrap();
        let names = tasks.filter_map(|task| fs::read_to_string(task.unwrap().path().join("comm")).ok());
        names.map(|name| name.trim().to_owned()).collect()
    }

    pub fn signal(&self, signal: i32) {
        // SAFETY: takes numbers; the child was not reaped, so its number is its own.
        assert_eq!(unsafe { libc::kill(self.child.id() as i32, signal) }, 0);
    }
}

impl Drop for Other {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Locks new names, one after the other.
pub fn race(directory: &Path) {
    for number in 0..1000 {
        lock(&name(directory, &format!("new {number}")), LockMode::Exclusive).release();
    }
}

/// Shares the name in so many threads again and again, for ever; the holds overlap with those of other children.
fn overlap(name: Arc<NamedFile>, threads: u32, hold: Duration) {
    for number in 0..threads {
        let name = Arc::clone(&name);
        thread::spawn(move || {
            thread::sleep(hold * number / threads);
            loop {
                let shared = lock(&name, LockMode::Shared);
                thread::sleep(hold);
                shared.release();
            }
        });
    }
}

/// The commands of the other processes: `lock NAME`, `queue NAME` as loops do, `share NAME`, `try NAME`, `available NAME`,
/// `available-shared NAME`, `loop-shared NAME`, `keep NAME` in memory, `release`.
pub fn child() {
    let Some(directory) = env::var_os("SABLOCK_CHILD").map(PathBuf::from) else { return };
    let (mut holds, mut kept) = (Vec::new(), Vec::new());
    for line in std::io::stdin().lines() {
        let line = line.unwrap();
        let (order, argument) = line.split_once(' ').unwrap_or((&line, ""));
        let name = name(&directory, argument);
        let said = match order {
            "lock" | "share" | "queue" | "try" | "available" | "available-shared" => {
                let mode = if order.contains("share") { LockMode::Shared } else { LockMode::Exclusive };
                let hold = match order {
                    "try" => name.try_lock(mode, ASKER).unwrap(),
                    "lock" | "share" => Some(lock(&name, mode)),
                    "queue" => Some(granted(&wait(&name, mode).1)),
                    _ => name.lock_if_available(mode, ASKER).unwrap(),
                };
                hold.map_or("taken", |hold| {
                    let said = if hold.is_abandoned() { "abandoned" } else { "locked" };
                    holds.push(hold);
                    said
                })
            }
            "keep" => {
                kept.push(name);
                "kept"
            }
            "race" => {
                race(&directory);
                "raced"
            }
            "full" => {
                // No file may grow, or be written at all, as if the disk were full.
                let nothing = libc::rlimit { rlim_cur: argument.parse().unwrap(), rlim_max: libc::RLIM_INFINITY };
                // SAFETY: the structure lives; a signal that is ignored runs nothing.
                unsafe {
                    libc::signal(libc::SIGXFSZ, libc::SIG_IGN);
                    assert_eq!(libc::setrlimit(libc::RLIMIT_FSIZE, &nothing), 0);
                }
                "full"
            }
            "no-threads" => {
                let none = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
                // SAFETY: the structure lives.
                assert_eq!(unsafe { libc::setrlimit(libc::RLIMIT_NPROC, &none) }, 0);
                "no-threads"
            }
            "cannot-wait" => {
                let soon = Limit::after(Duration::from_millis(100));
                match block(&name, LockMode::Exclusive, soon, &mut || true) {
                    Ok(Some(Err(FileFailure::NoThread(_)))) => "cannot",
                    waited => panic!("{waited:?}"),
                }
            }
            "fails" => match name.try_lock(LockMode::Exclusive, ASKER) {
                Err(FileFailure::System { verb: "write", .. }) => "failed",
                tried => panic!("{tried:?}"),
            },
            "refused" => match name.try_lock(LockMode::Exclusive, ASKER) {
                Err(FileFailure::System { error, .. }) if error.kind() == std::io::ErrorKind::PermissionDenied => {
                    "refused"
                }
                tried => panic!("{tried:?}"),
            },
            "loop-shared" => {
                overlap(name, 1, Duration::from_millis(10));
                "loops"
            }
            "loop-long" => {
                overlap(name, 3, Duration::from_millis(300));
                "loops"
            }
            _ => {
                holds.drain(..).for_each(|hold| drop(hold.release()));
                "released"
            }
        };
        println!("said {said}");
    }
}
