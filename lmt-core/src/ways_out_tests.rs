use std::time::Duration;

use super::*;

const BYTES: u64 = 8 << 20;

/// So many messages one by one, which take so long as `took` says of their way; how many of
/// the last ten went past the caches.
fn past(ways: &mut WaysOut, rule: Rule, messages: u32, took: impl Fn(bool) -> Duration) -> usize {
    let mut all = Vec::new();
    for _ in 0..messages {
        let is_past = ways.begin(BYTES, rule);
        std::thread::sleep(took(is_past));
        ways.end(BYTES, true);
        all.push(is_past);
    }
    all.iter().rev().take(10).filter(|is_past| **is_past).count()
}

#[test]
fn the_faster_way_is_found() {
    let took = |is_past, slow| Duration::from_micros(if is_past == slow { 3000 } else { 300 });
    for (rule, messages) in [(Rule::Past, 18), (Rule::Through, 32)] {
        let mut ways = WaysOut::new(BYTES);
        assert_eq!(past(&mut ways, rule, messages, |is_past| took(is_past, true)), 0, "{rule:?}");
        let mut ways = WaysOut::new(BYTES);
        assert_eq!(past(&mut ways, rule, messages, |is_past| took(is_past, false)), 10, "{rule:?}");
    }
}

#[test]
fn what_always_goes_one_way_goes_it_and_is_not_timed() {
    for past in [false, true] {
        let mut ways = WaysOut::new(BYTES);
        for _ in 0..1000 {
            assert_eq!(ways.begin(BYTES, Rule::Always { past }), past);
            assert!(ways.timed.is_none());
            ways.end(BYTES, true);
        }
    }
}

/// Several at once say nothing of one, nor does one that was given up.
#[test]
fn of_several_at_once_all_do_as_the_rule_says_and_none_is_timed() {
    for rule in [Rule::Past, Rule::Through] {
        let mut ways = WaysOut::new(BYTES);
        for _ in 0..1000 {
            let both = [ways.begin(BYTES, rule), ways.begin(BYTES, rule)];
            assert_eq!(both, [rule == Rule::Past; 2]);
            assert!(ways.timed.is_none());
            (0..2).for_each(|_| ways.end(BYTES, true));
            ways.begin(BYTES, rule);
            ways.end(BYTES, false);
        }
        assert_eq!(ways.incoming, 0);
    }
}

/// Past the caches is right for what is longer, too; through them is not.
#[test]
fn what_is_longer_begins_past_the_caches_where_that_was_faster() {
    for rule in [Rule::Past, Rule::Through] {
        let mut ways = WaysOut::new(2 * BYTES);
        past(&mut ways, rule, 32, |is_past| {
            Duration::from_micros(if is_past == (rule == Rule::Past) { 3000 } else { 300 })
        });
        assert_eq!(ways.begin(BYTES, rule), rule == Rule::Through);
        ways.end(BYTES, false);
        assert!(ways.begin(4 * BYTES, rule), "{rule:?}");
        ways.end(4 * BYTES, false);
    }
}
