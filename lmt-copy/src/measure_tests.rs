use super::*;
use crate::Plan;

fn of(routine: Routine, mean_ratio: f64, worst_ratio: f64) -> Measurement {
    let (distance, alignment) = (Distance::Near, Alignment::Same);
    Measurement { routine, distance, alignment, bytes: bounds(2), mean_ratio, worst_ratio }
}

#[test]
fn the_best_of_what_is_nowhere_worse_is_chosen() {
    let chosen = |found: &[Measurement]| {
        let mut copier = Copier::default();
        choose(&mut copier, 2, Distance::Near, found);
        copier.routine(Distance::Near, Alignment::Same, 10_000)
    };
    assert_eq!(chosen(&[]), Routine::Libc);
    assert_eq!(chosen(&[of(Routine::Portable, 0.96, 0.97)]), Routine::Libc, "too little");
    assert_eq!(chosen(&[of(Routine::Portable, 0.5, 1.01)]), Routine::Libc, "worse somewhere");
    assert_eq!(chosen(&[of(Routine::Portable, 0.9, 0.98)]), Routine::Libc, "may be worse elsewhere");
    assert_eq!(chosen(&[of(Routine::Portable, 0.9, 0.97)]), Routine::Portable);
    assert_eq!(chosen(&[of(Routine::Portable, 0.5, 1.0)]), Routine::Portable);
    let both = [of(Routine::Libc, 0.8, 0.9), of(Routine::Portable, 0.7, 0.9)];
    assert_eq!(chosen(&both), Routine::Portable);
}

#[test]
fn what_offsets_stand_for_is_what_they_are() {
    for alignment in Alignment::ALL {
        for (from_at, to_at) in offsets(alignment) {
            assert_eq!(Alignment::of(to_at, from_at), alignment, "{from_at}, {to_at}");
        }
    }
}

#[test]
#[cfg_attr(miri, ignore = "Miri's time says nothing")]
fn a_measurement_covers_all_that_is_here_and_its_table_can_be_written() {
    let effort = Effort { turns: 1, turn: Duration::ZERO, most_bytes: 2 << 20 };
    let (copier, measurements) = measure(effort);
    for alignment in Alignment::ALL {
        for class in 0..10 {
            let of_class =
                measurements.iter().filter(|m| m.alignment == alignment && m.bytes == bounds(class));
            let near = of_class.filter(|m| m.distance == Distance::Near);
            assert!(near.clone().any(|m| m.routine == Routine::Portable), "{alignment:?} {class}");
            assert!(near.clone().all(|m| m.worst_ratio.is_finite() && m.mean_ratio > 0.0), "{near:?}");
        }
    }
    assert!(measurements.iter().all(|m| m.bytes.0 < 2 << 20));
    assert!(measurements.iter().any(|m| m.distance == Distance::Away) || !Routine::Avx2.is_available());
    assert_eq!(copier.to_string().parse(), Ok(Plan::Table(Box::new(copier))));
}
