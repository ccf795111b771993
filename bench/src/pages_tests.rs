use super::*;
use crate::cli;

/// A folder that goes at the end.
struct Folder(PathBuf);

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[test]
fn every_command_of_users_has_a_page_and_is_completed() {
    let folder = Folder(std::env::temp_dir().join(format!("lmt-pages-{}", std::process::id())));
    write(&folder.0, &shown(cli::command())).unwrap();
    let read = |name: &str| std::fs::read_to_string(folder.0.join(name)).unwrap();
    for command in cli::command().get_subcommands() {
        let (name, is_shown) = (command.get_name(), !command.is_hide_set());
        let page = folder.0.join(MAN).join(format!("lmt-{name}.1"));
        assert_eq!(page.is_file(), is_shown, "{name}");
        for (_, file) in COMPLETIONS {
            let has = read(file).contains(name);
            assert!(has || !is_shown, "{name} in {file}");
        }
    }
    let man = read("share/man/man1/lmt.1");
    assert!(man.contains("mpirun") && man.contains("doctor"), "{man}");
    assert!(!read(COMPLETIONS[0].1).contains(crate::group::RANK_COMMAND));
}

#[test]
fn a_folder_that_cannot_be_written_is_one_sentence() {
    let error = run(&PagesArgs { prefix: "/proc/self/nowhere".into() }, cli::command()).unwrap_err();
    let sentence = error.to_string();
    assert!(sentence.contains("/proc/self/nowhere") && !sentence.contains('\n'), "{sentence}");
}
