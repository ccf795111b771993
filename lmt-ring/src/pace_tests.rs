use super::*;

const FRESH: Duration = Duration::from_nanos(800);
const SLOW: Duration = Duration::from_nanos(6400);

fn note(watch: &mut Watch, pieces: u32, took: Duration, came_back: bool) {
    for _ in 0..pieces {
        watch.note(1, took, came_back);
    }
}

#[test]
fn slow_pieces_in_a_row_are_slow() {
    let mut watch = Watch::default();
    note(&mut watch, LEAST_FRESH_PIECES, FRESH, false);
    note(&mut watch, SLOW_PIECES - 1, SLOW, true);
    assert!(!watch.is_slow(), "they may have been interrupted");
    watch.note(1, FRESH * 2, true);
    note(&mut watch, SLOW_PIECES - 1, SLOW, true);
    assert!(!watch.is_slow(), "not in a row");
    watch.note(1, SLOW, true);
    assert!(watch.is_slow());
}

#[test]
fn a_message_whose_bytes_come_from_memory_is_measured_by_itself() {
    let mut watch = Watch::default();
    note(&mut watch, LEAST_FRESH_PIECES, FRESH * 3, false);
    note(&mut watch, 100, FRESH * 3 * SLOW_TIMES, true);
    assert!(!watch.is_slow());
}

#[test]
fn without_fresh_cells_a_fixed_time_tells() {
    let mut watch = Watch::default();
    note(&mut watch, LEAST_FRESH_PIECES - 1, FRESH, false);
    note(&mut watch, 100, SLOW_PIECE, true);
    assert!(!watch.is_slow());
    note(&mut watch, SLOW_PIECES, SLOW, true);
    assert!(watch.is_slow());
}

#[test]
fn longer_pieces_count_for_as_many() {
    let mut watch = Watch::default();
    watch.note(LEAST_FRESH_PIECES, FRESH * LEAST_FRESH_PIECES, false);
    watch.note(2, FRESH * 2 * SLOW_TIMES, true);
    assert!(!watch.is_slow(), "it is as long");
    for _ in 0..SLOW_PIECES / 2 {
        assert!(!watch.is_slow());
        watch.note(2, SLOW * 2, true);
    }
    assert!(watch.is_slow());
}
