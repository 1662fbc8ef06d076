//! Other copies of this addon in the process (two versions in `node_modules`), which would be two lots:
//! an unlock in one would never wake a waiter of the other. All copies work with the one that was loaded first.
//!
//! Everything that differs between operating systems stands here: how to list the loaded libraries, in the order of
//! loading, how to look up a symbol in one of them, and how to keep this one.

use std::path::PathBuf;

/// The protocol that two copies must have in common to share a lot: the words, the binding's functions and their meanings.
/// To be raised with each change of any of them.
pub const PROTOCOL: u32 = 16;

/// By this symbol a copy is known.
#[unsafe(no_mangle)]
pub extern "C" fn sablock_protocol() -> u32 {
    PROTOCOL
}

const SYMBOL: &std::ffi::CStr = c"sablock_protocol";

/// A loaded copy.
pub struct Copy {
    /// Its file.
    pub path: PathBuf,
    /// The result of its [`sablock_protocol`].
    pub protocol: u32,
    /// Whether it is this one.
    pub is_this: bool,
}

/// The copy that was loaded first; `None` if this system does not tell.
pub fn first() -> Option<Copy> {
    system::libraries().into_iter().find_map(|path| {
        if path.extension().is_none_or(|extension| extension != "node") {
            return None;
        }
        let symbol = system::symbol(&path)?;
        let is_this = std::ptr::eq(symbol, sablock_protocol as *const std::ffi::c_void);
        // SAFETY: a symbol of this name is the function above, in whatever copy.
        let protocol = unsafe { std::mem::transmute::<*mut std::ffi::c_void, extern "C" fn() -> u32>(symbol) };
        Some(Copy { path, protocol: protocol(), is_this })
    })
}

/// Keeps this library in the process for ever. Node.js unloads it with the last environment that has loaded it, and the agents' ids
/// and the queues live in its statics.
pub fn pin() {
    system::pin(sablock_protocol as *const std::ffi::c_void);
}

#[cfg(unix)]
mod unix {
    use std::ffi::{CString, c_void};
    use std::mem::MaybeUninit;
    use std::os::unix::ffi::OsStrExt;
    use std::path::Path;

    /// The library of this address stays.
    pub fn pin(address: *const c_void) {
        let mut info = MaybeUninit::<libc::Dl_info>::uninit();
        // SAFETY: `info` lives, and is written unless the call returns 0; the name in it ends in NUL, and is that of a library that
        // is loaded, so that nothing is run. The handle is never given back.
        unsafe {
            if libc::dladdr(address, info.as_mut_ptr()) != 0 {
                libc::dlopen(info.assume_init().dli_fname, libc::RTLD_LAZY | libc::RTLD_NOLOAD);
            }
        }
    }

    /// The address of the copy's symbol in a library that is already loaded.
    pub fn symbol(path: &Path) -> Option<*mut c_void> {
        let path = CString::new(path.as_os_str().as_bytes()).ok()?;
        // SAFETY: the strings end in NUL; with RTLD_NOLOAD nothing is run. The handle is given back at once: Node,
        // or the pin that each copy takes, keeps the library.
        unsafe {
            let handle = libc::dlopen(path.as_ptr(), libc::RTLD_LAZY | libc::RTLD_NOLOAD);
            if handle.is_null() {
                return None;
            }
            let symbol = libc::dlsym(handle, super::SYMBOL.as_ptr());
            libc::dlclose(handle);
            (!symbol.is_null()).then_some(symbol)
        }
    }
}

#[cfg(all(unix, not(target_vendor = "apple")))]
mod system {
    use std::ffi::{CStr, OsStr, c_int, c_void};
    use std::os::unix::ffi::OsStrExt;
    use std::path::PathBuf;

    pub use super::unix::{pin, symbol};

    /// The files of the loaded libraries.
    pub fn libraries() -> Vec<PathBuf> {
        unsafe extern "C" fn note(info: *mut libc::dl_phdr_info, _: libc::size_t, paths: *mut c_void) -> c_int {
            // SAFETY: `info` is valid during the callback, its name ends in NUL or is null; `paths` is the vector below.
            unsafe {
                let name = (*info).dlpi_name;
                if !name.is_null() {
                    let name = OsStr::from_bytes(CStr::from_ptr(name).to_bytes());
                    (*paths.cast::<Vec<PathBuf>>()).push(name.into());
                }
            }
            0
        }
        let mut paths: Vec<PathBuf> = Vec::new();
        // SAFETY: the callback gets the vector for the time of the call, and does not unwind (allocation aborts).
        unsafe { libc::dl_iterate_phdr(Some(note), (&raw mut paths).cast()) };
        paths
    }
}

#[cfg(target_vendor = "apple")]
mod system {
    use std::ffi::{CStr, OsStr};
    use std::os::unix::ffi::OsStrExt;
    use std::path::PathBuf;

    pub use super::unix::{pin, symbol};

    /// The files of the loaded libraries.
    #[expect(
        deprecated,
        reason = "libc refers to a crate of the whole Mach interface, of which this is all that is used"
    )]
    pub fn libraries() -> Vec<PathBuf> {
        // SAFETY: the functions take any index, and return null for one that is out of range by now.
        let name = |index| unsafe {
            let name = libc::_dyld_get_image_name(index);
            (!name.is_null()).then(|| OsStr::from_bytes(CStr::from_ptr(name).to_bytes()).into())
        };
        // SAFETY: takes nothing.
        (0..unsafe { libc::_dyld_image_count() }).filter_map(name).collect()
    }
}

#[cfg(windows)]
mod system {
    use std::ffi::{OsString, c_void};
    use std::os::windows::ffi::{OsStrExt, OsStringExt};
    use std::path::{Path, PathBuf};

    use windows_sys::Win32::Foundation::HMODULE;
    use windows_sys::Win32::System::LibraryLoader::{
        GET_MODULE_HANDLE_EX_FLAG_FROM_ADDRESS, GET_MODULE_HANDLE_EX_FLAG_PIN, GetModuleFileNameW, GetModuleHandleExW,
        GetModuleHandleW, GetProcAddress,
    };
    use windows_sys::Win32::System::ProcessStatus::K32EnumProcessModules;
    use windows_sys::Win32::System::Threading::GetCurrentProcess;

    /// The files of the loaded libraries.
    pub fn libraries() -> Vec<PathBuf> {
        let mut modules: Vec<HMODULE> = vec![std::ptr::null_mut(); 4096];
        let mut needed = 0;
        let bytes = (modules.len() * size_of::<HMODULE>()) as u32;
        // SAFETY: the buffer has `bytes` bytes, and `needed` lives.
        if unsafe { K32EnumProcessModules(GetCurrentProcess(), modules.as_mut_ptr(), bytes, &mut needed) } == 0 {
            return Vec::new();
        }
        modules.truncate(needed as usize / size_of::<HMODULE>());
        // The longest path there is: one that were cut off would not be found again.
        let mut buffer = vec![0_u16; 1 << 15];
        let name = |module| {
            // SAFETY: the buffer has the length that is given.
            let length = unsafe { GetModuleFileNameW(module, buffer.as_mut_ptr(), buffer.len() as u32) };
            OsString::from_wide(&buffer[..length as usize]).into()
        };
        modules.into_iter().map(name).collect()
    }

    /// The library of this address stays.
    pub fn pin(address: *const c_void) {
        let mut module = std::ptr::null_mut();
        let flags = GET_MODULE_HANDLE_EX_FLAG_FROM_ADDRESS | GET_MODULE_HANDLE_EX_FLAG_PIN;
        // SAFETY: with these flags it takes an address in a library in the place of a name.
        unsafe { GetModuleHandleExW(flags, address.cast(), &mut module) };
    }

    /// The address of the copy's symbol in a library that is already loaded.
    pub fn symbol(path: &Path) -> Option<*mut c_void> {
        let name: Vec<u16> = path.as_os_str().encode_wide().chain([0]).collect();
        // SAFETY: the strings end in NUL; the handle is not owned.
        unsafe {
            let module = GetModuleHandleW(name.as_ptr());
            if module.is_null() {
                return None;
            }
            GetProcAddress(module, super::SYMBOL.as_ptr().cast()).map(|symbol| symbol as *mut c_void)
        }
    }
}
