//! Memory for messages as 32-bit numbers in the machine's byte order.

/// A number as it lies in a message.
pub type Word = [u8; 4];

/// The numbers in a buffer; bytes behind the last whole one are left out.
pub fn words(bytes: &[u8]) -> &[Word] {
    bytes.as_chunks().0
}

/// The same, to be written.
pub fn words_mut(bytes: &mut [u8]) -> &mut [Word] {
    bytes.as_chunks_mut().0
}

/// Numbers as a message has them.
pub fn to_words(numbers: &[u32]) -> Vec<Word> {
    numbers.iter().map(|number| number.to_ne_bytes()).collect()
}

/// What a message says.
pub fn from_words(words: &[Word]) -> Vec<u32> {
    words.iter().map(|word| u32::from_ne_bytes(*word)).collect()
}
