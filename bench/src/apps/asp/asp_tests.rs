use super::*;

#[test]
fn every_row_has_the_owner_whose_part_it_is_in() {
    for (vertices, ranks) in [(10, 1), (10, 3), (10, 10), (3, 5), (1, 2)] {
        let new = |rank| Paths::new(vertices, rank, ranks, Memory::Private, false, false).unwrap();
        let parts: Vec<Paths> = (0..ranks).map(new).collect();
        for row in 0..vertices {
            let owner = parts[0].owner(row);
            assert!(parts[owner as usize].own.contains(&row.into()), "{vertices} {ranks} {row}");
        }
    }
}
