//! Whether the user has asked for this provider. Merely lying in the folder of
//! `FI_PROVIDER_PATH` changes nothing.

use crate::NAME;

/// Our own variable: 1 or on, 0 or off.
const VARIABLE: &str = "LMT_FI";
/// Lists of providers: libfabric's own, and what Intel MPI makes it of.
const LISTS: [&str; 2] = ["FI_PROVIDER", "I_MPI_OFI_PROVIDER"];

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

/// Whether these variables ask for it; an explicit no in ours counts the most.
fn is_wanted_by(variable: impl Fn(&str) -> Option<String>) -> bool {
    match variable(VARIABLE).as_deref() {
        Some("1" | "on" | "yes" | "true") => return true,
        Some("0" | "off" | "no" | "false") => return false,
        _ => {}
    }
    LISTS.iter().any(|name| variable(name).is_some_and(|list| asks(&list)))
}

/// Whether the environment asks for it.
pub fn is_wanted() -> bool {
    is_wanted_by(|name| std::env::var(name).ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wanted(variables: &[(&str, &str)]) -> bool {
        is_wanted_by(|name| {
            variables.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned())
        })
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
