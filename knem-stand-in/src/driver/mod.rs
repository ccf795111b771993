//! The driver: what each system call on its device does.

mod context;
mod copies;
mod engine;
mod parameter;

use std::collections::HashMap;
use std::fs::File;
use std::sync::{Arc, Weak};

use nix::errno::Errno;
use nix::sys::memfd::{MFdFlags, memfd_create};

use crate::abi;
use crate::abi::Segment;
use crate::client::Client;
use crate::maps;
use crate::memory::{Copy, Memory};
use crate::options::{Mutant, Options};
use crate::sys::{Answer, Call};
use crate::worker::Worker;

use context::{Context, FileId, Region};
use parameter::Parameter;

/// The only path of the device.
const DEVICE: &[u8] = b"/dev/knem";

/// A path that is nowhere else, by which a process can tell that it is under a
/// stand-in, whatever the device does.
pub const MARK: &str = "/dev/knem-stand-in";

/// More segments than this are no memory for (the kernel's limit on one
/// allocation is 4 MiB).
const MAX_SEGMENTS: u32 = (4 << 20) / abi::SEGMENT_BYTES as u32;

/// What a call is answered with.
#[derive(Debug)]
pub enum Reply {
    Plain(Answer),
    /// A descriptor of this file.
    Opened {
        file: File,
        close_on_exec: bool,
    },
}

impl From<Result<(), Errno>> for Reply {
    fn from(result: Result<(), Errno>) -> Self {
        Self::Plain(match result {
            Ok(()) => Answer::Value(0),
            Err(errno) => Answer::Error(errno),
        })
    }
}

const CONTINUE: Reply = Reply::Plain(Answer::Continue);

/// All that the driver knows.
#[derive(Debug)]
pub struct Driver {
    options: Options,
    contexts: HashMap<FileId, Context>,
    next_number: u32,
    /// Memory that regions and asynchronous copies have pinned.
    pinned: Vec<Weak<Memory>>,
    worker: Worker,
    parameter: Parameter,
    /// What the DMA engine was given and not told to make.
    not_issued: Vec<Copy>,
}

impl Driver {
    pub fn new(options: Options) -> std::io::Result<Self> {
        let worker = Worker::start(options.delay)?;
        let parameter = Parameter::new(options.dmamin)?;
        // Any number but 0 will do for the first; this one is no small index.
        Ok(Self {
            options,
            contexts: HashMap::new(),
            next_number: 0x4b_0001,
            pinned: Vec::new(),
            worker,
            parameter,
            not_issued: Vec::new(),
        })
    }

    /// What `client` is to be answered.
    pub fn handle(&mut self, client: &Client<'_>) -> Reply {
        let Call { number, arguments, .. } = client.call;
        match number {
            libc::SYS_open => self.open(client, arguments[0], arguments[1]),
            libc::SYS_openat => self.open(client, arguments[1], arguments[2]),
            libc::SYS_openat2 => match client.read::<8>(arguments[2]) {
                // open_how begins with the flags.
                Ok(flags) => self.open(client, arguments[1], u64::from_ne_bytes(flags)),
                Err(_) => CONTINUE,
            },
            libc::SYS_ioctl => self.ioctl(client, arguments),
            libc::SYS_mmap => {
                let flags = arguments[3] as i32;
                if flags & libc::MAP_FIXED != 0 {
                    self.memory_goes(client, arguments[0], arguments[1]);
                }
                if flags & libc::MAP_ANONYMOUS == 0 { self.map(client, arguments) } else { CONTINUE }
            }
            libc::SYS_munmap | libc::SYS_mremap | libc::SYS_madvise => {
                self.memory_goes(client, arguments[0], arguments[1]);
                CONTINUE
            }
            libc::SYS_exit_group => {
                self.memory_goes(client, 0, u64::MAX);
                if self.options.is(Mutant::DiesWithOwner) {
                    self.regions_go(client);
                }
                CONTINUE
            }
            _ => CONTINUE,
        }
    }

    fn open(&mut self, client: &Client<'_>, path: u64, flags: u64) -> Reply {
        if client.names(path, MARK.as_bytes()) {
            return mark();
        }
        let is_there = self.options.open_error != Some(Errno::ENOENT);
        if is_there && client.names(path, parameter::PATH.as_bytes()) {
            return self.open_parameter(flags as i32);
        }
        if !client.names(path, DEVICE) {
            return CONTINUE;
        }
        if let Some(errno) = self.options.open_error {
            return Reply::Plain(Answer::Error(errno));
        }
        let flags = flags as i32;
        if !self.options.is(Mutant::DeadOwner) {
            self.contexts.retain(|_, context| context.is_open());
        }
        let number = self.next_number;
        let opened = client.identity().and_then(|who| Context::open(number, who.uid, flags));
        match opened.and_then(|(context, file)| Ok((context.id().ok_or(Errno::EIO)?, context, file))) {
            Ok((id, context, file)) => {
                self.next_number += 1;
                self.contexts.insert(id, context);
                Reply::Opened { file, close_on_exec: flags & libc::O_CLOEXEC != 0 }
            }
            Err(errno) => Reply::Plain(Answer::Error(errno)),
        }
    }

    fn open_parameter(&self, flags: i32) -> Reply {
        let hidden = self.options.is(Mutant::ParameterHidden);
        match if hidden { Err(Errno::ENOENT) } else { self.parameter.open(flags) } {
            Ok(file) => Reply::Opened { file, close_on_exec: flags & libc::O_CLOEXEC != 0 },
            Err(errno) => Reply::Plain(Answer::Error(errno)),
        }
    }

    /// The context behind a client's descriptor.
    fn context_of(&self, client: &Client<'_>, descriptor: u64) -> Option<FileId> {
        let id = context::file_id(&client.file(descriptor)?);
        self.contexts.contains_key(&id).then_some(id)
    }

    fn map(&mut self, client: &Client<'_>, arguments: [u64; 6]) -> Reply {
        let again = self.options.is(Mutant::SecondStatusArray);
        let found = self.context_of(client, arguments[4]);
        let Some(context) = found.and_then(|id| self.contexts.get_mut(&id)) else {
            return CONTINUE;
        };
        if context.status.is_some() && !again {
            return Reply::Plain(Answer::Error(Errno::EBUSY));
        }
        if context.status.is_none() && client.has_read(arguments[4]) {
            eprintln!(
                "knem-stand-in: a client has called read(2) on its descriptor before mapping its status \
                 array, which the real driver does not survive, so the mapping is refused"
            );
            return Reply::Plain(Answer::Error(Errno::EINVAL));
        }
        match context.map_status(arguments[5], arguments[1]) {
            // The kernel maps the file, which is now as long as it must be.
            Ok(()) => CONTINUE,
            Err(errno) => Reply::Plain(Answer::Error(errno)),
        }
    }

    /// Keeps what is pinned in this range, before the client's call takes it
    /// away.
    fn memory_goes(&mut self, client: &Client<'_>, address: u64, bytes: u64) {
        // Most calls concern nothing that is pinned, and end here, without a
        // look at who makes them.
        let concerned = |pin: &Weak<Memory>| pin.upgrade().is_some_and(|it| it.overlaps(address, bytes));
        if self.options.is(Mutant::NotPinned) || !self.pinned.iter().any(concerned) {
            return;
        }
        let Ok(identity) = client.identity() else {
            return;
        };
        let mut saved = HashMap::new();
        for memory in self.pinned.iter().filter_map(Weak::upgrade) {
            if memory.process == identity.process {
                memory.keep(address, bytes, &mut saved);
            }
        }
    }

    /// Ends the regions that a process has made.
    fn regions_go(&mut self, client: &Client<'_>) {
        let Ok(identity) = client.identity() else {
            return;
        };
        for place in self.contexts.values_mut().flat_map(|context| &mut context.regions) {
            place.take_if(|region| region.memory.process == identity.process);
        }
    }

    fn ioctl(&mut self, client: &Client<'_>, arguments: [u64; 6]) -> Reply {
        let Some(id) = self.context_of(client, arguments[0]) else {
            return CONTINUE;
        };
        if self.contexts[&id].read_only && !self.options.is(Mutant::ReadOnlyWorks) {
            return Reply::Plain(Answer::Error(Errno::EBADF));
        }
        // The kernel takes requests as 32-bit numbers.
        let (request, argument) = (arguments[1] as u32, arguments[2]);
        let destroy = if self.options.is(Mutant::WrongNumber) { 0x4008_4b22 } else { abi::DESTROY_REGION };
        Reply::from(match request {
            abi::GET_INFO => self.info(client, argument),
            abi::BIND_OFFLOAD => self.bind(client, argument),
            abi::CREATE_REGION => self.create(client, id, argument),
            request if request == destroy => self.destroy(client, id, argument),
            abi::COPY => self.region_copy(client, id, argument, false),
            abi::COPY_BOUNDED => self.region_copy(client, id, argument, true),
            abi::INLINE_COPY => self.inline_copy(client, id, argument, false),
            abi::INLINE_COPY_BOUNDED => self.inline_copy(client, id, argument, true),
            _ if self.options.is(Mutant::UnknownIsInvalid) => Err(Errno::EINVAL),
            _ => Err(Errno::ENOSYS),
        })
    }

    fn info(&self, client: &Client<'_>, argument: u64) -> Result<(), Errno> {
        let engine = self.options.dma || self.options.is(Mutant::EngineClaimed);
        let features = if engine { abi::FEATURE_DMA } else { 0 };
        let Options { ignored_flags, forced_flags, .. } = self.options;
        let (features, ignored, forced) = match self.options.mutant {
            Some(Mutant::InfoFlagsSwapped) => (features, forced_flags, ignored_flags),
            Some(Mutant::InfoFeaturesSwapped) => (ignored_flags, features, forced_flags),
            Some(Mutant::IgnoredUntold) => (features, 0, 0),
            _ => (features, ignored_flags, forced_flags),
        };
        let mut info = [0; abi::GET_INFO_BYTES];
        for (field, value) in info.chunks_exact_mut(4).zip([self.options.abi, features, ignored, forced]) {
            field.copy_from_slice(&value.to_ne_bytes());
        }
        let written = if self.options.is(Mutant::InfoShort) { 8 } else { info.len() };
        client.write(argument, &info[..written])
    }

    fn create(&mut self, client: &Client<'_>, id: FileId, argument: u64) -> Result<(), Errno> {
        let request: [u8; abi::CREATE_REGION_BYTES] = client.read(argument)?;
        let (array, count) = (abi::u64_at(&request, 0), abi::u32_at(&request, 8));
        let (flags, protection) = (abi::u32_at(&request, 12), abi::u32_at(&request, 16));
        self.check_flags(flags)?;
        let segments = match self.segments(client, array, count) {
            Err(Errno::EFAULT) if self.options.is(Mutant::BadArrayCreates) => Vec::new(),
            segments => segments?,
        };
        let process = client.identity()?.process;
        let areas = maps::areas(process);
        let write = protection & abi::PROTECTION_WRITE != 0;
        let there = segments.iter().all(|segment| maps::holds(&areas, *segment, write));
        if !there && !self.options.is(Mutant::BadMemoryCreates) {
            return Err(Errno::EFAULT);
        }
        let zeros: Vec<u64> = if write || !there {
            Vec::new()
        } else {
            segments.iter().flat_map(|segment| maps::untouched_pages(process, &areas, *segment)).collect()
        };
        let kept =
            if self.options.is(Mutant::FirstSegmentOnly) { segments.len().min(1) } else { segments.len() };
        let memory = self.pin(Memory::new(process, segments[..kept].to_vec()));
        if !self.options.is(Mutant::NotPinned) {
            memory.keep_zeros(zeros);
        }
        if self.options.is(Mutant::FrozenPages) && !write {
            memory.keep(0, u64::MAX, &mut HashMap::new());
        }
        let last_use = if flags & abi::FLAG_SINGLE_USE != 0 { context::SINGLE_USE } else { 0 };
        let region = Region { memory, protection, first_user: None };
        let recycle = !self.options.is(Mutant::CookieNotRecycled);
        let most = if self.options.is(Mutant::FewRegions) { 256 } else { usize::MAX };
        let context = self.contexts.get_mut(&id).ok_or(Errno::EINVAL)?;
        let cookie = context.insert(region, recycle, most) | last_use;
        client.write(argument + abi::CREATED_COOKIE_AT, &cookie.to_ne_bytes())
    }

    fn destroy(&mut self, client: &Client<'_>, id: FileId, argument: u64) -> Result<(), Errno> {
        let cookie = u64::from_ne_bytes(client.read(argument)?);
        // The client's own regions, by the upper half alone.
        let (number, index) = (context::number_of(cookie), context::index_of(cookie));
        let foreign = self.options.is(Mutant::ForeignDestroy);
        let mut contexts = self.contexts.iter_mut();
        let owner = contexts.find(|(at, it)| if foreign { it.number == number } else { **at == id });
        let (_, context) = owner.ok_or(Errno::EINVAL)?;
        let place = context.regions.get_mut(index).ok_or(Errno::EINVAL)?;
        let region = place.as_ref().ok_or(Errno::EINVAL)?;
        if self.options.is(Mutant::DestroyEndsCopies) {
            region.memory.end_copies();
        }
        if !self.options.is(Mutant::DestroyIgnored) {
            *place = None;
        }
        Ok(())
    }

    /// There is no thread to bind: the request is checked and forgotten.
    fn bind(&self, client: &Client<'_>, argument: u64) -> Result<(), Errno> {
        let request: [u8; abi::BIND_OFFLOAD_BYTES] = client.read(argument)?;
        let (flags, mask_bytes) = (abi::u32_at(&request, 0), abi::u32_at(&request, 4));
        if flags & abi::BIND_CURRENT != 0 && self.options.is(Mutant::BindRefused) {
            return Err(Errno::EINVAL);
        }
        if flags & abi::BIND_CUSTOM != 0 {
            // No machine has more processors than this has bits.
            let mut mask = vec![0; (mask_bytes as usize).min(4096)];
            client.fill(abi::u64_at(&request, 8), &mut mask)?;
        }
        Ok(())
    }

    /// An array of segments in the client's memory.
    fn segments(&self, client: &Client<'_>, array: u64, count: u32) -> Result<Vec<Segment>, Errno> {
        if count > MAX_SEGMENTS {
            let wrong = self.options.is(Mutant::LongArrayFaults);
            return Err(if wrong { Errno::EFAULT } else { Errno::ENOMEM });
        }
        let mut bytes = vec![0; count as usize * abi::SEGMENT_BYTES];
        client.fill(array, &mut bytes)?;
        let segment = |it: &[u8]| Segment { address: abi::u64_at(it, 0), bytes: abi::u64_at(it, 8) };
        Ok(bytes.chunks_exact(abi::SEGMENT_BYTES).map(segment).collect())
    }

    fn check_flags(&self, flags: u32) -> Result<(), Errno> {
        let unknown = flags >= 2 * abi::FLAG_SINGLE_USE;
        if unknown && self.options.is(Mutant::UnknownFlagsRefused) { Err(Errno::EINVAL) } else { Ok(()) }
    }

    fn pin(&mut self, memory: Memory) -> Arc<Memory> {
        let memory = Arc::new(memory);
        self.pinned.retain(|pin| pin.strong_count() > 0);
        self.pinned.push(Arc::downgrade(&memory));
        memory
    }
}

fn mark() -> Reply {
    match memfd_create(context::FILE_NAME, MFdFlags::MFD_CLOEXEC) {
        Ok(file) => Reply::Opened { file: file.into(), close_on_exec: true },
        Err(errno) => Reply::Plain(Answer::Error(errno)),
    }
}
