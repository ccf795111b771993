//! What kind of driver the stand-in is, and in what it may be wrong.

use std::str::FromStr;
use std::time::Duration;

use nix::errno::Errno;

/// What kind of driver to be.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Options {
    /// The fault to have.
    pub mutant: Option<Mutant>,
    /// Whether there is a DMA engine.
    pub dma: bool,
    /// Whether a copy by DMA over several segments that ends in a small piece
    /// reports success when the processor has copied the small pieces, as the
    /// real driver does; the rest comes with the next copy by DMA, into what
    /// stands at its addresses then.
    pub loses_small_tails: bool,
    /// What the module's parameter `dmamin` is at first: the longest piece that
    /// is small. A client can read and write it where the module's would be.
    /// `None` where it cannot be read.
    pub dmamin: Option<u32>,
    /// Flags of copies without effect, as the module can be loaded to have it.
    pub ignored_flags: u32,
    /// Flags that every copy has, likewise. They win over the ignored ones.
    pub forced_flags: u32,
    /// The error of every open, as if the module were absent (`ENOENT`) or its
    /// device not this user's (`EACCES`).
    pub open_error: Option<Errno>,
    /// The version of the binary interface.
    pub abi: u32,
    /// How long an asynchronous copy is pending before it is made.
    pub delay: Duration,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            mutant: None,
            dma: false,
            loses_small_tails: false,
            dmamin: Some(1024),
            ignored_flags: 0,
            forced_flags: 0,
            open_error: None,
            abi: crate::abi::VERSION,
            delay: Duration::from_millis(2),
        }
    }
}

impl Options {
    /// With a DMA engine, or without.
    pub fn dma(mut self, dma: bool) -> Self {
        self.dma = dma;
        self
    }

    /// With a DMA engine that is late where a copy ends in a small piece.
    pub fn loses_small_tails(mut self) -> Self {
        self.dma = true;
        self.loses_small_tails = true;
        self
    }

    /// Loaded with this `dmamin`; `None` where it cannot be read, and is 1024.
    pub fn dmamin(mut self, bytes: Option<u32>) -> Self {
        self.dmamin = bytes;
        self
    }

    /// Loaded to ignore these flags of copies.
    pub fn ignored_flags(mut self, flags: u32) -> Self {
        self.ignored_flags = flags;
        self
    }

    /// Loaded to have every copy made with these flags.
    pub fn forced_flags(mut self, flags: u32) -> Self {
        self.forced_flags = flags;
        self
    }

    /// With this fault.
    pub fn mutant(mut self, mutant: Mutant) -> Self {
        self.mutant = Some(mutant);
        self
    }

    /// Nobody can open the device.
    pub fn open_error(mut self, errno: Errno) -> Self {
        self.open_error = Some(errno);
        self
    }

    /// With this version of the binary interface.
    pub fn abi(mut self, version: u32) -> Self {
        self.abi = version;
        self
    }

    pub(crate) fn is(&self, mutant: Mutant) -> bool {
        self.mutant == Some(mutant)
    }
}

/// No mutant has this name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no mutant is called {0}; knem-stand-in --help lists them")]
pub struct UnknownMutant(String);

macro_rules! mutants {
    ($($variant:ident $name:literal $what:literal;)+) => {
        /// One fault that a test of a client must notice.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[non_exhaustive]
        pub enum Mutant {
            $(#[doc = $what] $variant,)+
        }

        impl Mutant {
            /// All of them.
            pub const ALL: &[Self] = &[$(Self::$variant),+];

            /// Its name on the command line.
            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)+
                }
            }

            /// What is wrong.
            pub fn what(self) -> &'static str {
                match self {
                    $(Self::$variant => $what,)+
                }
            }
        }
    };
}

mutants! {
    WrongNumber "wrong-number" "destroying has the number that its direction bits should give it";
    EngineClaimed "engine-claimed" "the features say that there is an engine where there is none";
    SwappedFields "swapped-fields" "a region copy's offsets are taken from each other's place";
    ProtectionUnchecked "protection-unchecked" "regions are read and written whatever their protection";
    ProtectionReversed "protection-reversed" "a region for reading can only be written, and the other way round";
    ShortCopy "short-copy" "the last byte of a copy of more than one is not copied";
    FirstSegmentOnly "first-segment-only" "segments behind a region's first are forgotten";
    OffsetIgnored "offset-ignored" "an inline copy begins at the region's beginning";
    BoundIgnored "bound-ignored" "a bounded copy copies as much as an unbounded one";
    WriteInverted "write-inverted" "an inline copy goes the wrong way";
    RegionCopyReversed "region-copy-reversed" "a region copy goes from destination to source";
    SingleUseKept "single-use-kept" "a region for one use can be used again";
    SingleUseLostByRefusal "single-use-lost-by-refusal" "a copy that the protection forbids consumes single use";
    DestroyIgnored "destroy-ignored" "destroying succeeds and destroys nothing";
    ForeignDestroy "foreign-destroy" "any descriptor can destroy a region";
    CookieNotRecycled "cookie-not-recycled" "every region has a cookie of its own";
    DeadOwner "dead-owner" "copies of regions whose owner has ended succeed, and copy nothing";
    OtherUser "other-user" "another user can use a region";
    ZeroCookie "zero-cookie" "copies of the cookie 0 succeed, and copy nothing";
    EndIsAnError "end-is-an-error" "a copy that reaches a region's end is EINVAL";
    BadMemoryCreates "bad-memory-creates" "regions can be made of memory that is not there";
    LongArrayFaults "long-array-faults" "an oversized array of segments is EFAULT";
    UnknownIsInvalid "unknown-is-invalid" "an unknown request is EINVAL";
    ReadOnlyWorks "read-only-works" "a descriptor opened for reading only works";
    BadBufferFaults "bad-buffer-faults" "a synchronous read into bad memory is EFAULT";
    BadSourceSucceeds "bad-source-succeeds" "a write from bad memory returns 0";
    StatusNotWritten "status-not-written" "the slot of an asynchronous copy stays as it was";
    StatusNextSlot "status-next-slot" "the status is written to the slot behind the right one";
    StatusSwapped "status-swapped" "success is 2 and failure is 1";
    CurrentStatusNotWritten "current-status-not-written" "the current status of a copy stays as it was";
    StatusNotNeeded "status-not-needed" "asynchronous copies without a status array are accepted";
    IndexUnchecked "index-unchecked" "slots past the end of the status array are accepted";
    SecondStatusArray "second-status-array" "the status array can be mapped again";
    DmaWithoutChannel "dma-without-channel" "DMA is accepted where there is no engine";
    NotPinned "not-pinned" "a region follows its owner's address space instead of the pages";
    UnknownFlagsRefused "unknown-flags-refused" "flags that the driver does not know are EINVAL";
    DiesWithOwner "dies-with-owner" "a region ends with the process that made it, whoever has its descriptor";
    DiesWithDescriptor "dies-with-descriptor" "a region ends with its owner's descriptor, though the status array is mapped";
    DestroyEndsCopies "destroy-ends-copies" "destroying a region has the copies that are in flight fail";
    AsyncBadBufferPends "async-bad-buffer-pends" "bad memory of an asynchronous copy is found when it is made";
    AsyncWriteReversed "async-write-reversed" "an asynchronous write reads";
    PinLocalCopiesNothing "pin-local-copies-nothing" "a copy with PINLOCAL succeeds and copies nothing";
    PinLocalIgnored "pin-local-ignored" "PINLOCAL pins nothing, and GET_INFO does not say so";
    FirstComer "first-comer" "a region serves only the process that has used it first";
    FewRegions "few-regions" "a descriptor's 257th region takes the first one's place";
    BindRefused "bind-refused" "binding the offload thread to the current processors is EINVAL";
    BadArrayCreates "bad-array-creates" "an array of segments that is not there counts as an empty one";
    FrozenPages "frozen-pages" "a region for reading stays as it was when it was made";
    DmaBadBufferFails "dma-bad-buffer-fails" "a read by DMA into bad memory returns 0 with status failed";
    DmaLosesPages "dma-loses-pages" "what DMA has left out where a copy ends in a small piece never comes";
    DmaAlwaysLate "dma-always-late" "DMA over several segments is late whatever the last piece";
    ParameterHidden "parameter-hidden" "the module's parameter dmamin cannot be read";
    TailLostWithoutDma "tail-lost-without-dma" "with an engine, all copies lose a small last piece";
    InfoFlagsSwapped "info-flags-swapped" "GET_INFO has the ignored flags and the forced ones in each other's place";
    InfoFeaturesSwapped "info-features-swapped" "GET_INFO has the features and the ignored flags in each other's place";
    InfoShort "info-short" "GET_INFO writes the version and the features alone";
    IgnoredUntold "ignored-untold" "GET_INFO does not tell which flags are ignored or forced";
}

impl FromStr for Mutant {
    type Err = UnknownMutant;

    fn from_str(name: &str) -> Result<Self, UnknownMutant> {
        let found = Self::ALL.iter().copied().find(|mutant| mutant.name() == name);
        found.ok_or_else(|| UnknownMutant(name.to_owned()))
    }
}
