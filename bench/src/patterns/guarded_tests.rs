use super::*;

#[test]
fn the_bytes_lie_against_the_forbidden_page() {
    let page = usize::try_from(page_bytes()).unwrap();
    for bytes in [0, 1, 100, page, page + 1] {
        let mut front = Guarded::new(bytes, Against::Front).unwrap();
        front.as_mut_slice().fill(1);
        assert_eq!(front.as_mut_slice().as_ptr() as usize % page, 0);
        let mut back = Guarded::new(bytes, Against::Back).unwrap();
        back.as_mut_slice().fill(1);
        assert_eq!(back.as_mut_slice().as_ptr_range().end as usize % page, 0);
    }
}

#[test]
fn the_pages_around_are_forbidden() {
    let mut guarded = Guarded::new(10, Against::Back).unwrap();
    let end = guarded.as_mut_slice().as_ptr_range().end as usize;
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
    let forbidden = maps.lines().any(|line| line.starts_with(&format!("{end:x}-")) && line.contains("---p"));
    assert!(forbidden, "{end:x} is not the start of a forbidden page:\n{maps}");
}
