//! `lmt pages`: man pages and shell completions, out of the command line itself.

use std::io;
use std::path::{Path, PathBuf};

use clap::{Args, Command};
use clap_complete::Shell;

use crate::error::BenchError;

/// The command's name, as files and completions have it.
const NAME: &str = "lmt";
/// Where man looks.
const MAN: &str = "share/man/man1";
/// Where shells look for what packages bring.
const COMPLETIONS: [(Shell, &str); 3] = [
    (Shell::Bash, "share/bash-completion/completions/lmt"),
    (Shell::Zsh, "share/zsh/site-functions/_lmt"),
    (Shell::Fish, "share/fish/vendor_completions.d/lmt.fish"),
];

/// `lmt pages`.
#[derive(Debug, Args)]
pub struct PagesArgs {
    /// Where share/man, share/bash-completion, share/zsh and share/fish are written, such as ~/.local.
    pub prefix: PathBuf,
}

/// `lmt pages`, of this command line.
///
/// # Errors
/// A file cannot be written.
pub fn run(args: &PagesArgs, command: Command) -> Result<(), BenchError> {
    write(&args.prefix, &shown(command)).map_err(|error| {
        let prefix = args.prefix.display();
        BenchError::Failure(format!(
            "the pages cannot be written below {prefix}: {error}; name a folder of yours"
        ))
    })
}

fn write(prefix: &Path, command: &Command) -> io::Result<()> {
    let man = prefix.join(MAN);
    std::fs::create_dir_all(&man)?;
    clap_mangen::generate_to(command.clone(), &man)?;
    for (shell, file) in COMPLETIONS {
        let file = prefix.join(file);
        std::fs::create_dir_all(file.parent().unwrap_or(prefix))?;
        let mut text = Vec::new();
        clap_complete::generate(shell, &mut command.clone(), NAME, &mut text);
        std::fs::write(file, text)?;
    }
    Ok(())
}

/// The command without what it starts itself by, which completions would offer.
fn shown(command: Command) -> Command {
    let about = command.get_about().cloned().unwrap_or_default();
    let of_users = command.get_subcommands().filter(|one| !one.is_hide_set()).cloned();
    Command::new(NAME)
        .about(about)
        .version(env!("CARGO_PKG_VERSION"))
        .subcommand_required(true)
        .subcommands(of_users.collect::<Vec<_>>())
}

#[cfg(test)]
#[path = "pages_tests.rs"]
mod tests;
