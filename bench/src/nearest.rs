//! The word that was probably meant.

/// The one of `known` nearest to `word`, if it is near enough to be a slip.
///
/// ```
/// assert_eq!(lmt_bench::nearest::nearest("pingpon", ["bw", "pingpong"]), Some("pingpong"));
/// assert_eq!(lmt_bench::nearest::nearest("zebra", ["bw", "pingpong"]), None);
/// ```
pub fn nearest<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let word = word.to_lowercase();
    let allowed = 1 + word.chars().count() / 3;
    known
        .into_iter()
        .map(|candidate| (edits(&word, candidate), candidate))
        .filter(|&(edits, _)| edits <= allowed)
        .min()
        .map(|(_, candidate)| candidate)
}

/// One sentence on a word that is not known: what was meant, and what there is.
pub fn unknown(what: &str, word: &str, known: &[&str]) -> String {
    let meant =
        nearest(word, known.iter().copied()).map(|near| format!("did you mean '{near}'? ")).unwrap_or_default();
    format!("unknown {what} '{word}'; {meant}known are {}", known.join(", "))
}

/// Insertions, deletions and replacements that turn one word into the other
/// (Levenshtein's distance).
fn edits(from: &str, to: &str) -> usize {
    let to: Vec<char> = to.chars().collect();
    let mut row: Vec<usize> = (0..=to.len()).collect();
    for (line, letter) in from.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = line + 1;
        for (column, other) in to.iter().enumerate() {
            let replaced = diagonal + usize::from(letter != *other);
            diagonal = row[column + 1];
            row[column + 1] = replaced.min(diagonal + 1).min(row[column] + 1);
        }
    }
    row[to.len()]
}
