use super::*;

const LONG: Duration = Duration::from_secs(60);

fn ends_in_a_panic(run: impl FnOnce() + std::panic::UnwindSafe) -> bool {
    std::panic::catch_unwind(run).is_err()
}

#[test]
fn what_holds_once_holds_whether_it_is_quiet_or_not() {
    for quiet in [false, true] {
        let mut measured = 0;
        holds_by(3, LONG, || quiet, &mut || {
            measured += 1;
            if measured == 3 { Ok(()) } else { Err("not yet".to_owned()) }
        });
        assert_eq!(measured, 3);
    }
}

#[test]
fn what_never_holds_at_quiet_moments_fails() {
    assert!(ends_in_a_panic(|| holds_by(3, LONG, || true, &mut || Err("never".to_owned()))));
}

#[test]
fn what_fails_beside_other_programs_proves_nothing() {
    let mut measured = 0;
    holds_by(3, Duration::from_millis(5), || false, &mut || {
        measured += 1;
        thread::sleep(Duration::from_millis(1));
        Err("upset".to_owned())
    });
    assert!(measured > 0);
}

#[test]
fn a_core_that_is_shared_is_not_quiet() {
    let done = std::sync::atomic::AtomicBool::new(false);
    let others = 4 * thread::available_parallelism().map_or(1, std::num::NonZero::get);
    thread::scope(|scope| {
        for _ in 0..others {
            // Relaxed: nothing else is communicated.
            scope.spawn(|| {
                while !done.load(std::sync::atomic::Ordering::Relaxed) {
                    std::hint::spin_loop();
                }
            });
        }
        let quiet = (0..20).filter(|_| is_quiescent()).count();
        done.store(true, std::sync::atomic::Ordering::Relaxed);
        assert!(quiet < 20, "it is always quiet");
    });
}

#[test]
fn what_this_process_and_its_children_do_is_nobody_elses() {
    let load = Load::begin();
    let spin = "i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done";
    assert!(std::process::Command::new("sh").args(["-c", spin]).status().unwrap().success());
    let own = own_time().saturating_sub(load.own);
    assert!(own > Duration::from_millis(50), "{own:?}");
    let all = busy_time().saturating_sub(load.busy);
    assert!(all + Duration::from_millis(100) > own, "{all:?} in all, {own:?} its own");
}

#[test]
fn cores_on_which_this_process_may_not_run_do_not_count() {
    let cpus = ["cpu1".to_owned()];
    assert_eq!(busy_ticks("cpu1 1 2 4 8 16 32 64 128 256 512", &cpus), 1 + 2 + 4 + 32 + 64 + 128);
    for line in ["cpu  1 2 4 8 16 32 64 128", "cpu10 1 2 4 8 16 32 64 128", "intr 5", ""] {
        assert_eq!(busy_ticks(line, &cpus), 0, "{line}");
    }
}

#[test]
fn what_others_do_is_seen() {
    let load = Load::begin();
    // A child that is not waited for yet counts as another's.
    let mut child = std::process::Command::new("sh").args(["-c", "while :; do :; done"]).spawn().unwrap();
    thread::sleep(Duration::from_millis(400));
    let share = load.of_others();
    child.kill().and_then(|()| child.wait()).unwrap();
    assert!(share > 0.1, "{share}");
}

#[test]
fn what_takes_far_too_long_fails_on_a_busy_machine_too() {
    let (bound, load) = (Duration::from_millis(10), Load::begin());
    load.took_less("nothing", Duration::from_millis(9), bound);
    assert!(ends_in_a_panic(|| load.took_less("this", Duration::from_millis(100), bound)));
}
