use super::*;

#[test]
fn both_ways_find_the_same_paths() {
    for vertices in [1, 2, 3, 17, 100] {
        let all = all_paths(vertices);
        for (source, row) in all.chunks_exact(vertices as usize).enumerate() {
            assert_eq!(fault_of(vertices, source as u32, row), None, "{vertices}");
        }
    }
}

#[test]
fn a_wrong_path_is_named() {
    let mut row = paths_from(50, 7);
    row[31] += 1;
    assert!(fault_of(50, 7, &row).unwrap().contains("from vertex 7 to 31"));
    assert_ne!(digest(&row), digest(&paths_from(50, 7)));
}

/// The triangle inequality, and at most one path that is an edge of each vertex' own.
#[test]
fn paths_over_others_are_no_shorter() {
    const VERTICES: usize = 60;
    let all = all_paths(VERTICES as u32);
    let edges = rows(VERTICES as u32, 0..VERTICES as u64);
    assert!(all.iter().zip(&edges).all(|(path, edge)| path <= edge));
    assert!(all.iter().zip(&edges).any(|(path, edge)| path < edge));
    let length = |from: usize, to: usize| all[from * VERTICES + to];
    for (from, over, to) in (0..VERTICES.pow(3)).map(|i| (i % 60, i / 60 % 60, i / 3600)) {
        assert!(length(from, to) <= length(from, over) + length(over, to));
    }
    assert!((0..VERTICES).all(|vertex| length(vertex, vertex) == 0));
}

#[test]
fn parts_of_the_graph_join() {
    let whole = rows(40, 0..40);
    assert_eq!([rows(40, 0..13), rows(40, 13..14), rows(40, 14..40)].concat(), whole);
    let edges = whole.iter().filter(|&&edge| edge > 0 && edge < NO_PATH).count();
    assert!((100..300).contains(&edges), "{edges} of 1560");
    assert!(whole.iter().all(|&edge| edge <= 1000 || edge == NO_PATH));
}
