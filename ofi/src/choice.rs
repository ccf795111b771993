//! Whether the user has asked for this provider. Merely lying in the folder of
//! `FI_PROVIDER_PATH` changes nothing.

use crate::NAME;

/// Our own variable: 1 or on, 0 or off.
const VARIABLE: &str = "LMT_FI";
/// Lists of providers: libfabric's own, and what Intel MPI makes it of.
const LISTS: [&str; 2] = ["FI_PROVIDER", "I_MPI_OFI_PROVIDER"];

/// Of atomic operations: 1 or on, 0 or off.
const ATOMICS: &str = "LMT_FI_ATOMIC";
/// Set by Open MPI's launcher.
const OPEN_MPI: &str = "OMPI_COMM_WORLD_SIZE";

/// Whether a list of names, or of those that are not meant (`^`), means this one.
pub fn names(list: &str, name: &str) -> bool {
    let (list, others) = match list.strip_prefix('^') {
        Some(rest) => (rest, true),
        None => (list, false),
    };
    let listed = list.split([',', ';']).any(|one| one.trim().eq_ignore_ascii_case(name));
    listed != others
}

/// Whether a list asks for this provider by name: one of those that are not meant
/// does not.
fn asks(list: &str) -> bool {
    !list.starts_with('^') && names(list, NAME)
}

/// What a variable's value says, if that is yes or no.
fn said(value: Option<String>) -> Option<bool> {
    match value.as_deref() {
        Some("1" | "on" | "yes" | "true") => Some(true),
        Some("0" | "off" | "no" | "false") => Some(false),
        _ => None,
    }
}

/// Whether these variables ask for it; an explicit no in ours counts the most.
fn is_wanted_by(variable: impl Fn(&str) -> Option<String>) -> bool {
    if let Some(said) = said(variable(VARIABLE)) {
        return said;
    }
    LISTS.iter().any(|name| variable(name).is_some_and(|list| asks(&list)))
}

/// Whether the environment asks for it.
pub fn is_wanted() -> bool {
    is_wanted_by(|name| std::env::var(name).ok())
}

/// Whether these variables let atomic operations be offered to who asks for them.
/// Open MPI asks, and does all that concerns windows by them then, which takes ten
/// times as long as its own way on one machine.
fn has_atomics_by(variable: impl Fn(&str) -> Option<String>) -> bool {
    said(variable(ATOMICS)).unwrap_or_else(|| variable(OPEN_MPI).is_none())
}

/// Whether the environment lets atomic operations be offered.
pub fn has_atomics() -> bool {
    has_atomics_by(|name| std::env::var(name).ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn among(variables: &[(&str, &str)], name: &str) -> Option<String> {
        variables.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned())
    }

    fn wanted(variables: &[(&str, &str)]) -> bool {
        is_wanted_by(|name| among(variables, name))
    }

    #[test]
    fn open_mpi_gets_atomic_operations_only_if_the_user_says_so() {
        let has = |variables: &[(&str, &str)]| has_atomics_by(|name| among(variables, name));
        let in_open_mpi = ("OMPI_COMM_WORLD_SIZE", "2");
        assert!(has(&[]) && !has(&[("LMT_FI_ATOMIC", "0")]));
        assert!(!has(&[in_open_mpi]) && has(&[in_open_mpi, ("LMT_FI_ATOMIC", "1")]));
    }

    #[test]
    fn it_is_taken_only_when_asked_for() {
        assert!(!wanted(&[]));
        assert!(!wanted(&[("FI_PROVIDER", "shm;tcp")]));
        assert!(!wanted(&[("FI_PROVIDER", "^tcp")]), "others are meant, and this one is not named");
        assert!(wanted(&[("FI_PROVIDER", "tcp,lmt")]));
        assert!(wanted(&[("I_MPI_OFI_PROVIDER", "lmt")]));
        assert!(wanted(&[("LMT_FI", "1")]) && wanted(&[("LMT_FI", "on")]));
        assert!(!wanted(&[("LMT_FI", "off"), ("FI_PROVIDER", "lmt")]));
    }

    #[test]
    fn lists_name_what_is_meant_or_what_is_not() {
        assert!(names("lmt", "lmt") && names("tcp; lmt", "lmt") && !names("tcp", "lmt"));
        assert!(names("^tcp", "lmt") && !names("^tcp,lmt", "lmt"));
    }
}
