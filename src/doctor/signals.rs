//! Signals on which the report is printed: those that end the program, and the one that asks for it. The main thread may be blocked,
//! so the handler only notes that one has come, and goes on with what was there before; the watchdog prints.

pub use system::{arm, asks, disarm, go_on, take};

#[cfg(unix)]
mod system {
    use std::ffi::c_int;
    use std::mem::{self, MaybeUninit};
    use std::ptr;
    use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicU64, Ordering};

    /// The signal that asks for a report, and does nothing else.
    const ASKS: c_int = libc::SIGUSR2;

    struct WatchedSignal {
        signal: c_int,
        has_come: AtomicBool,
        /// When it came, nothing that returns was there to act on it: it would have ended the process.
        ends: AtomicBool,
        /// The action that was there before; it stays, since a handler may still be reading it.
        former: AtomicPtr<libc::sigaction>,
        /// The moment at which it last came from somebody else than the forwarder.
        came_at: AtomicU64,
    }

    const fn watched(signal: c_int) -> WatchedSignal {
        let [has_come, ends] = [const { AtomicBool::new(false) }; 2];
        WatchedSignal { signal, has_come, ends, former: AtomicPtr::new(ptr::null_mut()), came_at: AtomicU64::new(0) }
    }

    /// The process that forwards its signals to this one, `sablock doctor`; 0: none.
    static FORWARDER: AtomicU32 = AtomicU32::new(0);

    /// The forwarder of a group's signal sends it again after this process had it, within this time in milliseconds.
    const FORWARDED_WITHIN: u64 = 1000;

    /// Milliseconds of a clock that only goes forwards.
    fn moment() -> u64 {
        let mut time = MaybeUninit::<libc::timespec>::uninit();
        // SAFETY: it writes the time, if it says so; a handler may call it.
        let time = unsafe {
            if libc::clock_gettime(libc::CLOCK_MONOTONIC, time.as_mut_ptr()) != 0 {
                return 0;
            }
            time.assume_init()
        };
        time.tv_sec as u64 * 1000 + time.tv_nsec as u64 / 1_000_000
    }

    /// Whether this process had the signal already, which was sent to its whole group.
    fn is_repeated(watched: &WatchedSignal, info: *const libc::siginfo_t) -> bool {
        // SAFETY: the handler was installed with SA_SIGINFO. What a sender's signal has in this place, others have another value in.
        let sender = unsafe { info.as_ref().map_or(0, |info| info.si_pid()) };
        let (now, forwarder) = (moment(), FORWARDER.load(Ordering::Relaxed));
        if forwarder == 0 || sender as u32 != forwarder {
            watched.came_at.store(now, Ordering::Relaxed);
            return false;
        }
        let last = watched.came_at.swap(0, Ordering::Relaxed);
        last != 0 && now.saturating_sub(last) < FORWARDED_WITHIN
    }

    static WATCHED: [WatchedSignal; 3] = [watched(libc::SIGINT), watched(libc::SIGTERM), watched(ASKS)];

    /// The handler that came before, if it is a function that returns: Node's own ends the process, once.
    fn returning(action: &libc::sigaction) -> Option<usize> {
        let is_function = action.sa_sigaction != libc::SIG_DFL && action.sa_sigaction != libc::SIG_IGN;
        (is_function && action.sa_flags & libc::SA_RESETHAND == 0).then_some(action.sa_sigaction)
    }

    extern "C" fn handle(signal: c_int, info: *mut libc::siginfo_t, context: *mut libc::c_void) {
        let Some(watched) = WATCHED.iter().find(|watched| watched.signal == signal) else { return };
        if is_repeated(watched, info) {
            return;
        }
        // Acquire: pairs with the store of `arm`. SAFETY: what was stored there is never freed.
        let former = unsafe { watched.former.load(Ordering::Acquire).as_ref() };
        let function = former.and_then(returning);
        if function.is_none() {
            watched.ends.store(true, Ordering::Relaxed);
        }
        // The program's own listener is who is asked then. Release: pairs with the swap of `take`.
        if !(signal == ASKS && function.is_some()) {
            watched.has_come.store(true, Ordering::Release);
        }
        let (Some(former), Some(function)) = (former, function) else { return };
        // SAFETY: the function of a handler that the system would have called now, with the arguments that its flags ask for.
        unsafe {
            if former.sa_flags & libc::SA_SIGINFO == 0 {
                mem::transmute::<usize, extern "C" fn(c_int)>(function)(signal);
            } else {
                type WithInfo = extern "C" fn(c_int, *mut libc::siginfo_t, *mut libc::c_void);
                mem::transmute::<usize, WithInfo>(function)(signal, info, context);
            }
        }
    }

    fn current(signal: c_int) -> Option<libc::sigaction> {
        let mut action = MaybeUninit::uninit();
        // SAFETY: it only reads, and has written `action` if it says so.
        unsafe { (libc::sigaction(signal, ptr::null(), action.as_mut_ptr()) == 0).then(|| action.assume_init()) }
    }

    fn is_ours(action: &libc::sigaction) -> bool {
        action.sa_sigaction == handle as *const () as usize
    }

    /// Puts the handler in front of whatever is there now; again, if that has changed. What is ignored stays so.
    pub fn arm(may_ask: bool, forwarder: u32) {
        FORWARDER.store(forwarder, Ordering::Relaxed);
        for watched in WATCHED.iter().filter(|watched| may_ask || watched.signal != ASKS) {
            let Some(former) = current(watched.signal) else { continue };
            if is_ours(&former) || former.sa_sigaction == libc::SIG_IGN {
                continue;
            }
            let mut action = former;
            action.sa_sigaction = handle as *const () as usize;
            action.sa_flags = (former.sa_flags & !libc::SA_RESETHAND) | libc::SA_SIGINFO | libc::SA_RESTART;
            watched.former.store(Box::into_raw(Box::new(former)), Ordering::Release);
            // SAFETY: the handler does nothing but atomic operations, and what the one before it does.
            unsafe { libc::sigaction(watched.signal, &action, ptr::null_mut()) };
        }
    }

    fn restore(watched: &WatchedSignal) {
        // SAFETY: what was stored there is never freed, and came from the system.
        let Some(former) = (unsafe { watched.former.load(Ordering::Acquire).as_ref() }) else { return };
        if current(watched.signal).is_some_and(|action| is_ours(&action)) {
            // SAFETY: as it was before.
            unsafe { libc::sigaction(watched.signal, former, ptr::null_mut()) };
        }
    }

    /// All is as before.
    pub fn disarm() {
        WATCHED.iter().for_each(restore);
    }

    /// The signals that have come since the last call.
    pub fn take() -> Vec<i32> {
        let has_come = |watched: &&WatchedSignal| watched.has_come.swap(false, Ordering::Acquire);
        WATCHED.iter().filter(has_come).map(|watched| watched.signal).collect()
    }

    /// Whether it asks for a report.
    pub fn asks(signal: i32) -> bool {
        signal == ASKS
    }

    /// Does what the signal would have done without the handler, if nobody has done it yet: it ends the process. A listener that
    /// was called may have gone since, as one of `process.once()` has.
    pub fn go_on(signal: i32) {
        let Some(watched) = WATCHED.iter().find(|watched| watched.signal == signal && signal != ASKS) else { return };
        // Relaxed: what `take` has seen comes after it.
        if !watched.ends.swap(false, Ordering::Relaxed) {
            return;
        }
        // SAFETY: as in `restore`.
        let former = unsafe { watched.former.load(Ordering::Acquire).as_ref() };
        if former.is_some_and(|former| returning(former).is_none()) {
            restore(watched);
            // SAFETY: a signal of this process to itself.
            unsafe { libc::kill(libc::getpid(), signal) };
        }
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        /// As it comes with a signal that this process has sent.
        #[cfg(all(target_os = "linux", target_pointer_width = "64"))]
        fn sent_by(sender: u32) -> libc::siginfo_t {
            // SAFETY: numbers only, of which zeros are some; the sender's stands behind four of 32 bits.
            unsafe {
                let mut info = MaybeUninit::<libc::siginfo_t>::zeroed();
                info.as_mut_ptr().cast::<u32>().add(4).write(sender);
                info.assume_init()
            }
        }

        #[cfg(all(target_os = "linux", target_pointer_width = "64"))]
        #[test]
        fn the_forwarder_repeats_a_signal_once_and_soon_after_it_came_from_somebody_else() {
            const OTHER: u32 = 7;
            const FORWARDS: u32 = 8;
            let [signal, another] = [watched(libc::SIGINT), watched(libc::SIGTERM)];
            let is_repeated = |watched: &WatchedSignal, sender| super::is_repeated(watched, &sent_by(sender));
            FORWARDER.store(0, Ordering::Relaxed);
            assert!(!is_repeated(&signal, 0) && !is_repeated(&signal, 0), "nobody forwards");
            signal.came_at.store(0, Ordering::Relaxed);
            FORWARDER.store(FORWARDS, Ordering::Relaxed);
            assert!(!is_repeated(&signal, FORWARDS), "it is the first");
            assert!(!is_repeated(&signal, FORWARDS), "one that was forwarded is no reason to leave out the next");
            for _ in 0..2 {
                assert!(!is_repeated(&signal, OTHER), "anybody may send it again");
            }
            assert!(!is_repeated(&another, FORWARDS), "that was another signal");
            assert!(is_repeated(&signal, FORWARDS));
            assert!(!is_repeated(&signal, FORWARDS), "it was repeated already");
            signal.came_at.store(moment() - FORWARDED_WITHIN, Ordering::Relaxed);
            assert!(!is_repeated(&signal, FORWARDS), "so late it is one of its own");
            signal.came_at.store(moment(), Ordering::Relaxed);
            assert!(is_repeated(&signal, FORWARDS));
            FORWARDER.store(0, Ordering::Relaxed);
        }

        #[test]
        fn a_handler_returns_if_it_is_a_function_that_stays_after_its_first_call() {
            // SAFETY: numbers only, of which zeros are some.
            let action = |handler, flags| unsafe {
                let mut action = MaybeUninit::<libc::sigaction>::zeroed().assume_init();
                (action.sa_sigaction, action.sa_flags) = (handler, flags);
                action
            };
            let function = handle as *const () as usize;
            assert_eq!(returning(&action(function, libc::SA_RESTART)), Some(function));
            assert_eq!(returning(&action(function, libc::SA_SIGINFO)), Some(function));
            assert_eq!(returning(&action(function, libc::SA_RESETHAND)), None);
            for none in [libc::SIG_DFL, libc::SIG_IGN] {
                assert_eq!(returning(&action(none, 0)), None);
            }
        }
    }
}

#[cfg(windows)]
mod system {
    use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
    use std::thread;
    use std::time::{Duration, Instant};

    use windows_sys::Win32::System::Console::SetConsoleCtrlHandler;
    use windows_sys::core::BOOL;

    const NOTHING: u8 = 0;
    const CAME: u8 = 1;
    const TAKEN: u8 = 2;

    static STATE: AtomicU8 = AtomicU8::new(NOTHING);
    static IS_ARMED: AtomicBool = AtomicBool::new(false);
    /// If the watchdog does not print in this time, the process ends without a report. The system itself ends a process 5 s after
    /// its console was closed.
    const TIME_TO_PRINT: Duration = Duration::from_secs(2);

    /// The system calls it in a thread of its own.
    unsafe extern "system" fn handle(_kind: u32) -> BOOL {
        STATE.store(CAME, Ordering::Release);
        let end = Instant::now() + TIME_TO_PRINT;
        while STATE.load(Ordering::Acquire) != NOTHING && Instant::now() < end {
            thread::sleep(Duration::from_millis(1));
        }
        // The next handler is asked.
        0
    }

    /// Ctrl-C, Ctrl-Break, and the end of the console or of the session.
    pub fn arm(_may_ask: bool, _forwarder: u32) {
        if !IS_ARMED.swap(true, Ordering::AcqRel) {
            // SAFETY: the handler is never unloaded, as the addon is not.
            unsafe { SetConsoleCtrlHandler(Some(handle), 1) };
        }
    }

    /// All is as before.
    pub fn disarm() {
        if IS_ARMED.swap(false, Ordering::AcqRel) {
            // SAFETY: added by `arm`.
            unsafe { SetConsoleCtrlHandler(Some(handle), 0) };
        }
    }

    /// The signals that have come since the last call.
    pub fn take() -> Vec<i32> {
        let has_come = STATE.compare_exchange(CAME, TAKEN, Ordering::AcqRel, Ordering::Acquire).is_ok();
        if has_come { vec![0] } else { Vec::new() }
    }

    /// None does.
    pub fn asks(_signal: i32) -> bool {
        false
    }

    /// The next handler does what would have been done, now that all is printed.
    pub fn go_on(_signal: i32) {
        let _ = STATE.compare_exchange(TAKEN, NOTHING, Ordering::AcqRel, Ordering::Acquire);
    }

    #[cfg(test)]
    mod tests {
        use std::process::Command;
        use std::{env, mem};

        use windows_sys::Win32::Foundation::STATUS_CONTROL_C_EXIT;
        use windows_sys::Win32::System::Console::CTRL_BREAK_EVENT;
        use windows_sys::Win32::System::LibraryLoader::{GetModuleHandleA, GetProcAddress};

        use super::*;

        const IS_CHILD: &str = "SABLOCK_IS_INTERRUPTED";
        /// Longer than anything here takes.
        const LONG: Duration = Duration::from_secs(60);
        /// As what Wine ends such a process, where Windows says that it was interrupted.
        const WINE: i32 = 0;

        #[test]
        fn whoever_interrupts_a_console_gets_the_report_and_then_the_end_that_there_is_without_it() {
            if env::var_os(IS_CHILD).is_some() {
                be_interrupted();
            }
            let name = thread::current().name().unwrap().to_owned();
            let arguments = ["--exact", &name, "--nocapture"];
            let child = Command::new(env::current_exe().unwrap()).args(arguments).env(IS_CHILD, "1").output().unwrap();
            let output = String::from_utf8_lossy(&child.stdout);
            assert!(output.contains("the report"), "{output}");
            assert!([STATUS_CONTROL_C_EXIT, WINE].contains(&child.status.code().unwrap()), "{:?}", child.status);
        }

        /// Plays the watchdog, whose report takes a while.
        fn be_interrupted() -> ! {
            arm(false, 0);
            thread::spawn(interrupt);
            let end = Instant::now() + LONG;
            let came = loop {
                let came = take();
                if !came.is_empty() || Instant::now() > end {
                    break came;
                }
                thread::sleep(Duration::from_millis(1));
            };
            thread::sleep(TIME_TO_PRINT / 4);
            println!("the report");
            came.into_iter().for_each(go_on);
            thread::sleep(LONG);
            panic!("nobody has ended the process");
        }

        type ThreadRoutine = unsafe extern "system" fn(usize) -> u32;

        /// As the console does it: it runs this function of the system in a thread of the process, which asks the handlers. (Wine has
        /// no console without a screen.)
        fn interrupt() {
            // SAFETY: the library is always there, and the function takes what threads take.
            unsafe {
                let system = GetModuleHandleA(c"kernelbase.dll".as_ptr().cast());
                let routine = GetProcAddress(system, c"CtrlRoutine".as_ptr().cast()).unwrap();
                let routine = mem::transmute::<unsafe extern "system" fn() -> isize, ThreadRoutine>(routine);
                routine(CTRL_BREAK_EVENT as usize);
            }
        }
    }
}
