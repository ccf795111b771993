//! Where MPIs are looked for.

use std::path::{Path, PathBuf};

/// Where MPIs are looked for.
#[derive(Clone, Copy, Debug)]
pub struct Search<'a> {
    /// Folders of MPIs that were named.
    pub folders: &'a [PathBuf],
    /// Where fetched ones are kept, if that was named.
    pub cache: Option<&'a Path>,
    /// Whether those that are not there are fetched.
    pub fetch: bool,
}
