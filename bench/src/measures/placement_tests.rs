use std::sync::mpsc::channel;

use super::*;

#[test]
fn helpers_are_found_by_name_and_moved() {
    let ((stop, stopped), (start, started)) = (channel::<()>(), channel());
    let builder = std::thread::Builder::new().name("a (helper".into());
    // It has its name by the time at which it says something.
    let body = move || start.send(()).is_ok() && stopped.recv().is_err();
    let thread = builder.spawn(body).unwrap();
    started.recv().unwrap();
    let allowed = crate::environment::allowed_cpus().unwrap();
    let cpu = *allowed.last().unwrap();
    let found = || helpers().into_iter().find(|helper| helper.name == "a (helper");
    let helper = found().expect("it runs");
    let mut set = CpuSet::new();
    set.set(cpu).unwrap();
    sched_setaffinity(helper.id, &set).unwrap();
    assert!(describe(3).starts_with("rank 3 on "));
    assert!(describe(3).contains("thread a (helper on CPU "), "{}", describe(3));
    let set = nix::sched::sched_getaffinity(found().expect("it runs").id).unwrap();
    assert!((0..CpuSet::count()).all(|at| set.is_set(at).unwrap() == (at == cpu)));
    drop(stop);
    assert!(thread.join().unwrap());
}
