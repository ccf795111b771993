//! The engine behind KNEM: its DMA flags (nemesis-lmt, sections 3.3 and 3.4;
//! knem-jpdc, sections 3.4 and 4), and messages by it.
//!
//! The rule for small tails (the DMA engine gets no copy whose last piece is
//! small) is kept by the driver's safe type, below this.

mod diagnostics;
mod dma;
mod mechanism;
mod shared;

pub use dma::{How, KnemDma, KnemJob};
pub use mechanism::{OffloadKnem, OffloadKnemPeer, OffloadKnemTransfer};
pub use shared::Shared;
