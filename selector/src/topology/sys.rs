//! The few functions of libhwloc 2 that a snapshot needs.
//!
//! The library is looked for when it is first used, so that nothing of it is needed to build lmt,
//! and lmt runs where it is missing. Types are numbers, of which the known ones are asked for, and
//! the library's version is checked before anything else: hwloc 3 renumbers types.
#![allow(unsafe_code)]

use std::ffi::{CStr, c_char, c_int, c_uint, c_ulong, c_void};
use std::io;
use std::mem::{offset_of, transmute};
use std::ptr::NonNull;
use std::sync::OnceLock;

use super::error::WithoutHwloc;
use super::objects::{Object, Objects, Type};

/// The beginning of `struct hwloc_obj`, as far as it is read here. The same in
/// every hwloc 2, whose ABI this is; [`Library::get`] gives no other.
#[repr(C)]
struct RawObject {
    object_type: c_uint,
    subtype: *const c_char,
    os_index: c_uint,
    name: *const c_char,
    total_memory: u64,
    attr: *const RawCacheAttributes,
    depth: c_int,
    logical_index: c_uint,
    next_cousin: *const RawObject,
    prev_cousin: *const RawObject,
    parent: *const RawObject,
    sibling_rank: c_uint,
    next_sibling: *const RawObject,
    prev_sibling: *const RawObject,
    arity: c_uint,
    children: *const *const RawObject,
    first_child: *const RawObject,
    last_child: *const RawObject,
    symmetric_subtree: c_int,
    memory_arity: c_uint,
    memory_first_child: *const RawObject,
    io_arity: c_uint,
    io_first_child: *const RawObject,
    misc_arity: c_uint,
    misc_first_child: *const RawObject,
    cpuset: *const Bitmap,
    complete_cpuset: *const Bitmap,
}

// What offsetof() says of hwloc.h where pointers have 64 bits; the test
// `layout_is_that_of_the_header` asks the compiler again.
const _: () = assert!(offset_of!(RawObject, os_index) == 16);
const _: () = assert!(offset_of!(RawObject, attr) == 40);
const _: () = assert!(offset_of!(RawObject, first_child) == 120);
const _: () = assert!(offset_of!(RawObject, symmetric_subtree) == 136);
const _: () = assert!(offset_of!(RawObject, memory_first_child) == 144);
const _: () = assert!(offset_of!(RawObject, cpuset) == 184);
const _: () = assert!(offset_of!(RawObject, complete_cpuset) == 192);

/// `struct hwloc_cache_attr_s`, a member of `union hwloc_obj_attr_u`.
#[repr(C)]
struct RawCacheAttributes {
    size: u64,
    depth: c_uint,
    line_size: c_uint,
    associativity: c_int,
    cache_type: c_uint,
}

const _: () = assert!(offset_of!(RawCacheAttributes, size) == 0);
const _: () = assert!(size_of::<RawCacheAttributes>() == 24);

/// `struct hwloc_bitmap_s`, opaque.
#[repr(C)]
struct Bitmap {
    _opaque: [u8; 0],
}

/// Declares the functions by their names in hwloc.h, and how they are found.
macro_rules! functions {
    ($($name:ident($($argument:ty),*) $(-> $answer:ty)?;)*) => {
        /// Functions of the library, as long as the process lives.
        #[derive(Debug)]
        struct Functions {
            $($name: unsafe extern "C" fn($($argument),*) $(-> $answer)?,)*
        }

        impl Functions {
            /// All of them; `None` where one is missing.
            ///
            /// # Safety
            ///
            /// What `find` answers is the function of that name of hwloc 2, which stays loaded.
            #[cfg_attr(not(feature = "hwloc"), allow(dead_code))]
            unsafe fn of(find: impl Fn(&str) -> Option<NonNull<c_void>>) -> Option<Self> {
                Some(Self {
                    $($name: {
                        let found = find(concat!(stringify!($name), "\0"))?;
                        // SAFETY: a function of this type by this function's contract.
                        unsafe { transmute::<NonNull<c_void>, unsafe extern "C" fn($($argument),*) $(-> $answer)?>(found) }
                    },)*
                })
            }
        }
    };
}

// Each is that of hwloc.h or hwloc/bitmap.h of hwloc 2.0 to 2.12, with the enum types as the
// unsigned int that C gives them.
functions! {
    hwloc_topology_init(*mut *mut c_void) -> c_int;
    hwloc_topology_set_flags(*mut c_void, c_ulong) -> c_int;
    hwloc_topology_set_synthetic(*mut c_void, *const c_char) -> c_int;
    hwloc_topology_set_xmlbuffer(*mut c_void, *const c_char, c_int) -> c_int;
    hwloc_topology_load(*mut c_void) -> c_int;
    hwloc_topology_destroy(*mut c_void);
    hwloc_topology_is_thissystem(*mut c_void) -> c_int;
    hwloc_topology_get_allowed_cpuset(*mut c_void) -> *const Bitmap;
    hwloc_get_type_depth(*mut c_void, c_uint) -> c_int;
    hwloc_get_nbobjs_by_depth(*mut c_void, c_int) -> c_uint;
    hwloc_get_obj_by_depth(*mut c_void, c_int, c_uint) -> *const RawObject;
    hwloc_bitmap_weight(*const Bitmap) -> c_int;
    hwloc_bitmap_next(*const Bitmap, c_int) -> c_int;
}

/// hwloc 2, by the version of its ABI.
#[cfg(feature = "hwloc")]
const LIBRARY_NAME: &CStr = c"libhwloc.so.15";

/// hwloc 2, loaded.
#[derive(Debug)]
pub(super) struct Library {
    version: u32,
    functions: Functions,
}

impl Library {
    /// The library, looked for once; or why there is none.
    pub(super) fn get() -> Result<&'static Self, &'static WithoutHwloc> {
        static LIBRARY: OnceLock<Result<Library, WithoutHwloc>> = OnceLock::new();
        LIBRARY.get_or_init(Self::open).as_ref()
    }

    /// Lets hwloc load its plugins, which find its functions only where all libraries do. One of
    /// them reads the XML that hwloc's own parser does not. Called for machines that the user
    /// describes, since libraries loaded later could take these functions for those of their own hwloc.
    pub(super) fn admit_plugins(&self) {
        #[cfg(feature = "hwloc")]
        dynamic::make_global(LIBRARY_NAME);
    }

    #[cfg(not(feature = "hwloc"))]
    fn open() -> Result<Self, WithoutHwloc> {
        let reason = "this lmt was built without it".to_owned();
        Err(WithoutHwloc { reason, remedy: "build lmt with the feature hwloc" })
    }

    #[cfg(feature = "hwloc")]
    fn open() -> Result<Self, WithoutHwloc> {
        let missing = |reason| WithoutHwloc {
            reason,
            remedy: "install hwloc 2 (Debian and Ubuntu: libhwloc15; Fedora and RHEL: hwloc-libs)",
        };
        let (scope, version) = dynamic::version_of(LIBRARY_NAME).map_err(missing)?;
        if !is_supported(version) {
            let reason = format!("the hwloc that is loaded has interface {version:#010x}, which is another");
            return Err(missing(reason));
        }
        // SAFETY: it is hwloc 2 by its own word, and never unloaded.
        let functions = unsafe { Functions::of(|name| scope.symbol(name)) };
        let functions = functions.ok_or_else(|| missing("libhwloc.so.15 lacks a function".to_owned()))?;
        Ok(Self { version, functions })
    }
}

/// The versions of the interface that this file is written for: hwloc 2.
#[cfg_attr(not(feature = "hwloc"), allow(dead_code))]
fn is_supported(version: u32) -> bool {
    version >> 16 == 2
}

/// What the dynamic linker has.
#[cfg(feature = "hwloc")]
mod dynamic {
    use std::ffi::{CStr, c_uint, c_void};
    use std::mem::transmute;
    use std::ptr::NonNull;

    /// A library that is never unloaded, or all that this code and the program are linked with.
    pub(super) struct Scope(*mut c_void);

    impl Scope {
        /// What has a name, which ends in NUL.
        pub(super) fn symbol(&self, name: &str) -> Option<NonNull<c_void>> {
            let name = CStr::from_bytes_with_nul(name.as_bytes()).ok()?;
            // SAFETY: a handle of the dynamic linker's, and a string that ends in NUL.
            NonNull::new(unsafe { libc::dlsym(self.0, name.as_ptr()) })
        }
    }

    /// Where hwloc is, with the version of its interface as in 0x00020800 for 2.8; or why it is
    /// nowhere. One that this code or the program is linked with, as packages are that bring their
    /// own, comes first: were another loaded beside it, each would call functions of the other.
    pub(super) fn version_of(library: &CStr) -> Result<(Scope, u32), String> {
        const VERSION: &str = "hwloc_get_api_version\0";
        let mut scope = Scope(libc::RTLD_DEFAULT);
        if scope.symbol(VERSION).is_none() {
            // SAFETY: a string that ends in NUL. There is no other hwloc in scope whose functions
            // the library's could take for its own, so it does what it would do if it were linked.
            scope = Scope(unsafe { libc::dlopen(library.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) });
            if scope.0.is_null() {
                return Err(reason());
            }
        }
        let found =
            scope.symbol(VERSION).ok_or_else(|| format!("{} lacks a function", library.to_string_lossy()))?;
        // SAFETY: the function of this name has this type in every version of hwloc.
        let version = unsafe { transmute::<NonNull<c_void>, unsafe extern "C" fn() -> c_uint>(found) };
        // SAFETY: it can be called at any time (hwloc.h).
        let version = unsafe { version() };
        Ok((scope, version))
    }

    /// Lets all libraries that are loaded later find the functions of one that is loaded.
    pub(super) fn make_global(library: &CStr) {
        let flags = libc::RTLD_NOW | libc::RTLD_GLOBAL | libc::RTLD_NOLOAD;
        // SAFETY: a string that ends in NUL. Nothing is loaded, and the library is never unloaded.
        let _ = unsafe { libc::dlopen(library.as_ptr(), flags) };
    }

    /// Why a library could not be loaded.
    fn reason() -> String {
        // SAFETY: it takes nothing; what it gives is read before this thread calls dlopen again.
        let text = unsafe { libc::dlerror() };
        if text.is_null() {
            return "it cannot be loaded".to_owned();
        }
        // SAFETY: not null, so a string that ends in NUL and stays until then.
        unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned()
    }
}

/// What hwloc is to leave undone, by the version that knows how.
///
/// Bit 0 keeps what this process may not use (a neighbour outside our cpuset
/// shares a cache all the same); bit 6 (2.5) keeps hwloc from moving the calling
/// thread over all CPUs to ask each; bits 7 to 9 (2.8) leave out distances,
/// memory attributes and kinds of CPUs, which nobody here reads. Devices are
/// left out unless asked for.
fn flags(version: u32) -> c_ulong {
    const INCLUDE_DISALLOWED: c_ulong = 1 << 0;
    const DONT_CHANGE_BINDING: c_ulong = 1 << 6;
    const NO_DISTANCES_MEMATTRS_CPUKINDS: c_ulong = 7 << 7;
    match version {
        0x0002_0800.. => INCLUDE_DISALLOWED | DONT_CHANGE_BINDING | NO_DISTANCES_MEMATTRS_CPUKINDS,
        0x0002_0500.. => INCLUDE_DISALLOWED | DONT_CHANGE_BINDING,
        _ => INCLUDE_DISALLOWED,
    }
}

/// What a C function that answers -1 for failure said.
fn checked(answer: c_int) -> io::Result<()> {
    match answer {
        0.. => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// A topology that is owned here and destroyed once, and the library that made it.
struct Handle(NonNull<c_void>, &'static Functions);

impl Drop for Handle {
    fn drop(&mut self) {
        // SAFETY: the pointer came from hwloc_topology_init, this is its only
        // owner, and no object of it outlives the borrow of `Loaded`.
        unsafe { (self.1.hwloc_topology_destroy)(self.0.as_ptr()) }
    }
}

/// A topology whose source can still be chosen.
pub(super) struct Unloaded(Handle);

impl Unloaded {
    /// A topology of the running machine, or of what hwloc's variables say.
    pub(super) fn new(library: &'static Library) -> io::Result<Self> {
        let Library { version, functions } = library;
        let mut pointer = std::ptr::null_mut();
        // SAFETY: `pointer` is writable for the one pointer that is stored.
        checked(unsafe { (functions.hwloc_topology_init)(&mut pointer) })?;
        let handle = Handle(NonNull::new(pointer).ok_or(io::ErrorKind::OutOfMemory)?, functions);
        // SAFETY: the handle is an initialized topology.
        checked(unsafe { (functions.hwloc_topology_set_flags)(handle.0.as_ptr(), flags(*version)) })?;
        Ok(Self(handle))
    }

    /// Describes the machine by hwloc's synthetic notation instead.
    pub(super) fn set_synthetic(&mut self, description: &CStr) -> io::Result<()> {
        // SAFETY: an initialized topology not yet loaded; the string ends in
        // NUL and is read during the call only (hwloc keeps a copy).
        checked(unsafe { (self.0.1.hwloc_topology_set_synthetic)(self.0.0.as_ptr(), description.as_ptr()) })
    }

    /// Describes the machine by hwloc's XML instead.
    pub(super) fn set_xml(&mut self, xml: &CStr) -> io::Result<()> {
        let with_nul = xml.to_bytes_with_nul();
        let bytes = c_int::try_from(with_nul.len()).map_err(|_| io::ErrorKind::FileTooLarge)?;
        // SAFETY: an initialized topology not yet loaded; the buffer has that
        // many bytes, the last a NUL, and is parsed or copied during the call.
        checked(unsafe {
            (self.0.1.hwloc_topology_set_xmlbuffer)(self.0.0.as_ptr(), with_nul.as_ptr().cast(), bytes)
        })
    }

    /// Reads the machine.
    pub(super) fn load(self) -> io::Result<Loaded> {
        // SAFETY: an initialized topology not yet loaded. On failure it stays
        // one, which the handle destroys.
        checked(unsafe { (self.0.1.hwloc_topology_load)(self.0.0.as_ptr()) })?;
        Ok(Loaded(self.0))
    }
}

/// A topology that can be read.
pub(super) struct Loaded(Handle);

impl Objects for Loaded {
    fn is_this_system(&self) -> bool {
        // SAFETY: a loaded topology.
        unsafe { (self.0.1.hwloc_topology_is_thissystem)(self.0.0.as_ptr()) == 1 }
    }

    fn allowed(&self) -> Option<Vec<u32>> {
        // SAFETY: a loaded topology.
        let bitmap = unsafe { (self.0.1.hwloc_topology_get_allowed_cpuset)(self.0.0.as_ptr()) };
        // SAFETY: null or a set that lives as long as the topology, which is
        // borrowed and which nothing here changes.
        unsafe { members(self.0.1, bitmap) }
    }

    fn objects(&self, object_type: Type) -> Vec<Object> {
        let (topology, functions) = (self.0.0.as_ptr(), self.0.1);
        // SAFETY: a loaded topology; a number that it does not know is answered
        // with HWLOC_TYPE_DEPTH_UNKNOWN.
        let depth = unsafe { (functions.hwloc_get_type_depth)(topology, object_type.0) };
        // SAFETY: a loaded topology; a depth that it does not have (such as -1)
        // is answered with 0.
        let count = unsafe { (functions.hwloc_get_nbobjs_by_depth)(topology, depth) };
        let object = |index| {
            // SAFETY: a loaded topology; beyond the level's end it answers null.
            let raw = unsafe { (functions.hwloc_get_obj_by_depth)(topology, depth, index) };
            // SAFETY: null or an object that lives as long as the topology,
            // which is borrowed and which nothing here changes.
            unsafe { copy(functions, raw) }
        };
        (0..count).filter_map(object).filter(|(found, _)| *found == object_type).map(|(_, o)| o).collect()
    }
}

/// Copies an object and its type; `None` for null.
///
/// # Safety
///
/// `raw` is null or an object of a loaded topology of hwloc 2 that lives and
/// does not change during the call.
unsafe fn copy(functions: &Functions, raw: *const RawObject) -> Option<(Type, Object)> {
    // SAFETY: null, or valid for the fields declared, by this function's
    // contract; their offsets are those of hwloc.h.
    let raw = unsafe { raw.as_ref() }?;
    let object_type = Type(raw.object_type);
    let is_cache = Type::CACHES.iter().any(|(_, cache)| *cache == object_type);
    // SAFETY: null, or the union of attributes of an object whose type says
    // that its member is that of caches; nothing is read through it otherwise.
    let attributes = if is_cache { unsafe { raw.attr.as_ref() } } else { None };
    // SAFETY: null or a set of this object, which lives and does not change.
    let cpus = unsafe { members(functions, raw.cpuset) }.unwrap_or_default();
    // SAFETY: as the line before.
    let complete_cpus = unsafe { members(functions, raw.complete_cpuset) }.unwrap_or_default();
    let object = Object {
        os_index: (raw.os_index != c_uint::MAX).then_some(raw.os_index),
        cpus,
        complete_cpus,
        cache_bytes: attributes.map_or(0, |a| a.size),
    };
    Some((object_type, object))
}

/// The members of a set, ascending; `None` for null and for an infinite set,
/// which is how hwloc says "not known" and "all".
///
/// # Safety
///
/// `bitmap` is null or a set of hwloc that lives and does not change during the
/// call.
unsafe fn members(functions: &Functions, bitmap: *const Bitmap) -> Option<Vec<u32>> {
    if bitmap.is_null() {
        return None;
    }
    // SAFETY: not null, so a set by this function's contract.
    let weight = unsafe { (functions.hwloc_bitmap_weight)(bitmap) };
    let mut members = Vec::with_capacity(usize::try_from(weight).ok()?);
    let mut last = -1;
    for _ in 0..weight {
        // SAFETY: as above; -1 or a member is what it continues from.
        last = unsafe { (functions.hwloc_bitmap_next)(bitmap, last) };
        members.extend(u32::try_from(last));
    }
    Some(members)
}

#[cfg(test)]
#[path = "sys_tests.rs"]
mod tests;
