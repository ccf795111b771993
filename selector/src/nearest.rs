//! The word that was probably meant.

/// How much of a word must be there for the whole to be meant.
const LEAST_BEGINNING: usize = 3;

/// The one of `known` nearest to `word`, if it is near enough to be a slip, or
/// else the first that begins with it.
///
/// ```
/// assert_eq!(lmt_selector::nearest::nearest("pingpon", ["bw", "pingpong"]), Some("pingpong"));
/// assert_eq!(lmt_selector::nearest::nearest("ping", ["bw", "pingpong"]), Some("pingpong"));
/// assert_eq!(lmt_selector::nearest::nearest("zebra", ["bw", "pingpong"]), None);
/// ```
pub fn nearest<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let word = word.to_lowercase();
    let allowed = 1 + word.chars().count() / 3;
    let known: Vec<&str> = known.into_iter().collect();
    let near = known.iter().map(|candidate| (edits(&word, candidate), *candidate));
    let nearest = near.filter(|&(edits, _)| edits <= allowed).min().map(|(_, candidate)| candidate);
    let is_beginning = |candidate: &str| word.len() >= LEAST_BEGINNING && candidate.starts_with(&word);
    nearest.or_else(|| known.into_iter().find(|candidate| is_beginning(candidate)))
}

/// One sentence on a word that is not known: what was meant, and what there is.
pub fn unknown(what: &str, word: &str, known: &[&str]) -> String {
    let meant = nearest(word, known.iter().copied())
        .map(|near| format!("did you mean '{near}'? "))
        .unwrap_or_default();
    format!("unknown {what} '{word}'; {meant}known are {}", known.join(", "))
}

/// Insertions, deletions, replacements and swaps of neighbours that turn one
/// word into the other (the optimal string alignment distance).
fn edits(from: &str, to: &str) -> usize {
    let (from, to): (Vec<char>, Vec<char>) = (from.chars().collect(), to.chars().collect());
    let mut table = vec![vec![0usize; to.len() + 1]; from.len() + 1];
    for row in 0..=from.len() {
        for column in 0..=to.len() {
            table[row][column] = if row == 0 || column == 0 {
                row + column
            } else {
                let replaced = usize::from(from[row - 1] != to[column - 1]);
                let mut least = (table[row - 1][column - 1] + replaced)
                    .min(table[row - 1][column] + 1)
                    .min(table[row][column - 1] + 1);
                let swapped = row > 1
                    && column > 1
                    && from[row - 1] == to[column - 2]
                    && from[row - 2] == to[column - 1];
                if swapped {
                    least = least.min(table[row - 2][column - 2] + 1);
                }
                least
            };
        }
    }
    table[from.len()][to.len()]
}
