//! The provider itself (fi_provider(7)).
#![allow(unsafe_code)] // Called from C.

use std::ffi::{c_char, c_int};
use std::ptr;

use super::fabric;
use crate::abi::fabric::Info;
use crate::abi::provider::{Context, Provider};
use crate::abi::{Errno, flags};
use crate::border;
use crate::log::{self, Subsystem};
use crate::offer::{self, FI_VERSION, Hints, VERSION};
use crate::{NAME, choice, info, naming};

/// [`NAME`] as C has it.
const C_NAME: &std::ffi::CStr = c"lmt";

/// A place that libfabric's core writes to.
struct Given(std::cell::UnsafeCell<Provider>);

// SAFETY: this library never looks at it after it was made; libfabric's core,
// which is given its address, keeps its own order.
unsafe impl Sync for Given {}

static PROVIDER: Given = Given(std::cell::UnsafeCell::new(Provider {
    version: VERSION,
    fi_version: FI_VERSION,
    context: Context { internal: [ptr::null_mut(); 4] },
    name: C_NAME.as_ptr(),
    getinfo,
    fabric: fabric::open,
    cleanup,
}));

/// What libfabric calls when it has loaded this library: the provider, which
/// lives as long as the process.
#[unsafe(no_mangle)]
pub extern "C" fn fi_prov_ini() -> *mut Provider {
    PROVIDER.0.get()
}

unsafe extern "C" fn cleanup() {}

unsafe extern "C" fn getinfo(
    version: u32,
    node: *const c_char,
    service: *const c_char,
    flags: u64,
    hints: *const Info,
    out: *mut *mut Info,
) -> c_int {
    // SAFETY: libfabric's promise: null or an fi_info.
    let mut hints = unsafe { info::read(hints) };
    // SAFETY: libfabric's promise: null or a string.
    let node = unsafe { info::text(node) };
    // SAFETY: as above.
    let service = unsafe { info::text(service) };
    let named = hints.provider_name.as_deref().is_some_and(|list| choice::names(list, NAME));
    let offered = if !(named || choice::is_wanted()) {
        Err("not asked for: set FI_PROVIDER=lmt or LMT_FI=1 to use it".to_owned())
    } else if flags & flags::CORE_PROVIDERS_ONLY != 0 {
        Err("a provider is asked for that others are built on".to_owned())
    } else if hints.caps & flags::ATOMIC != 0 && !choice::has_atomics() {
        Err("atomic operations are asked for, which LMT_FI_ATOMIC=0 or Open MPI's launcher turns off; set LMT_FI_ATOMIC=1 to have them".to_owned())
    } else {
        name(&mut hints, node.as_deref(), service.as_deref(), flags & flags::SOURCE != 0)
            .and_then(|()| offer::offer(&hints))
    };
    let written = match offered {
        Ok(offer) => info::write(&offer, version),
        Err(sentence) => {
            log::info(Subsystem::Core, format_args!("nothing is offered: {sentence}"));
            Err(Errno::NODATA)
        }
    };
    // SAFETY: libfabric's promise: null or room for a pointer.
    border::int(written.and_then(|info| unsafe { border::write(out, info) }))
}

/// A node and a service name the address that an endpoint is to have, or one to talk to.
fn name(hints: &mut Hints, node: Option<&str>, service: Option<&str>, is_source: bool) -> Result<(), String> {
    let named = naming::address_of(node, service)?.map(Vec::from);
    match (is_source, named) {
        (true, None) => return Err("FI_SOURCE is given without a node or a service; name one".to_owned()),
        (true, named) => hints.source = named,
        (false, Some(named)) => hints.destination = Some(named),
        (false, None) => {}
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_is_the_same_on_both_sides() {
        assert_eq!(C_NAME.to_str(), Ok(NAME));
    }
}
