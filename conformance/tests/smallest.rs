//! The mechanism that the docs of `Lmt` show keeps what every mechanism must; and the page for
//! authors of mechanisms names all that they may write.

#[path = "../../lmt-core/docs/smallest_mechanism.rs"]
mod smallest;

lmt_conformance::suite!(procmem, smallest::ProcMem);

#[test]
fn the_page_names_every_method_of_the_trait_and_every_trait_beside_it() {
    let page = include_str!("../../docs/adding-a-mechanism.md");
    let method = |line: &'static str| line.strip_prefix("    fn ");
    let methods: Vec<_> =
        include_str!("../../lmt-core/src/mechanism/lmt.rs").lines().filter_map(method).collect();
    let one = |line: &'static str| line.strip_prefix("pub trait ");
    let traits: Vec<_> =
        include_str!("../../lmt-core/src/mechanism/optional.rs").lines().filter_map(one).collect();
    assert!(methods.len() >= 8 && traits.len() >= 6, "{methods:?} {traits:?}");
    for name in methods.iter().chain(&traits).filter_map(|rest| rest.split(['(', '<', ' ', ':']).next()) {
        // Those with a default that says nothing stand in a sentence, all others in a table.
        let is_there = match name {
            "hello" | "forget_peer" => page.contains(&format!("`{name}` ")),
            _ => page.contains(&format!("| `{name}` |")),
        };
        assert!(is_there, "docs/adding-a-mechanism.md does not name `{name}`");
    }
}
