//! Strings in a library's file, such as the names of the libraries that it needs.

/// Whether a string begins so, or ends so: of two of which one is the other's end a linker
/// writes only the longer.
pub fn has_string(content: &[u8], part: &str) -> bool {
    let part = part.as_bytes();
    content.split(|byte| *byte == 0).any(|string| string.starts_with(part) || string.ends_with(part))
}
