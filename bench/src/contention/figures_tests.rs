use super::*;

/// A machine whose formula is known gives its figures back.
#[test]
fn what_was_put_in_comes_out() {
    let (alpha, lock, beta_ns) = (0.5, 0.05, 0.1);
    let costs = Costs {
        byte_us: alpha + lock,
        copy_us: alpha + 256.0 * lock + beta_ns * 1048.576,
        own_us: 50.0,
        combine_us: 70.0,
        copy_bytes: 1 << 20,
        page_bytes: 4096,
    };
    let found = parameters(&costs, &[lock, 2.5 * lock], 0.08);
    let near = |one: f64, other: f64| (one - other).abs() < 1e-9;
    assert!(
        near(found.alpha_us, alpha) && near(found.lock_us, lock) && near(found.byte_ns, beta_ns),
        "{found:?}"
    );
    assert!(near(found.gamma.of(1), 1.0) && near(found.gamma.of(2), 2.5));
    assert_eq!((found.gamma.fit, found.cpus, found.page_bytes, found.line_us), (None, Some(2), 4096, 0.08));
    assert!(near(found.copy_ns, 50e3 / 1048576.0) && near(found.combine_ns, 70e3 / 1048576.0));
    found.check().unwrap();
}

#[test]
fn noise_makes_no_figure_negative() {
    let costs = Costs {
        byte_us: 0.1,
        copy_us: 1.0,
        own_us: 1.0,
        combine_us: 1.0,
        copy_bytes: 1 << 20,
        page_bytes: 4096,
    };
    let found = parameters(&costs, &[0.2, 0.1, 0.0], 0.1);
    assert_eq!((found.alpha_us, found.byte_ns, found.gamma.of(2)), (0.0, 0.0, 1.0));
    found.check().unwrap();
    parameters(&costs, &[0.0, 0.1], 0.1).check().unwrap();
}
