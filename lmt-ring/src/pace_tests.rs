use super::*;

const OWN: Duration = Duration::from_nanos(800);
const SLOW: Duration = Duration::from_nanos(6400);

fn returned(watch: &mut Watch, pace: &Pace, times: u32, took: Duration) {
    for _ in 0..times {
        watch.returned(pace, took);
    }
}

#[test]
fn slow_pieces_in_a_row_are_slow() {
    let (mut pace, mut watch) = (Pace::default(), Watch::default());
    watch.own(&mut pace, OWN);
    returned(&mut watch, &pace, SLOW_PIECES - 1, SLOW);
    assert!(!watch.is_slow(), "they may have been interrupted");
    watch.returned(&pace, OWN * 2);
    returned(&mut watch, &pace, SLOW_PIECES - 1, SLOW);
    assert!(!watch.is_slow(), "not in a row");
    watch.returned(&pace, SLOW);
    assert!(watch.is_slow());
}

#[test]
fn nothing_is_slow_before_anything_was_measured() {
    let (pace, mut watch) = (Pace::default(), Watch::default());
    returned(&mut watch, &pace, 10, SLOW);
    assert!(!watch.is_slow());
}

#[test]
fn each_message_measures_anew_if_it_can() {
    let mut pace = Pace::default();
    Watch::default().own(&mut pace, OWN);
    let mut watch = Watch::default();
    // This one's bytes come from memory.
    watch.own(&mut pace, SLOW);
    watch.own(&mut pace, SLOW * 2);
    returned(&mut watch, &pace, SLOW_PIECES, SLOW * 2);
    assert!(!watch.is_slow());
    // The next has no cells of its own, and believes the last that had.
    let mut watch = Watch::default();
    returned(&mut watch, &pace, SLOW_PIECES, SLOW * (SLOW_TIMES + 1));
    assert!(watch.is_slow());
}
