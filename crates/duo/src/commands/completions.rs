//! `duo completions` and `duo man`: what shells and readers of manuals get, from the definitions of
//! the command line.

use std::io::Write as _;

use clap::CommandFactory as _;

use crate::{
    cli::{Cli, Completions, Man},
    exit::Exit,
    failure::{Done, Failure},
};

/// Write a completion script to standard output.
pub(crate) fn completions(args: &Completions) -> Done {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "duo", &mut script);
    put(&script)
}

/// Write the manual: one page to standard output, or a page for each command into a folder.
pub(crate) fn man(args: &Man) -> Done {
    let Some(folder) = &args.folder else {
        let mut page = Vec::new();
        clap_mangen::Man::new(Cli::command()).render(&mut page).map_err(Failure::new)?;
        return put(&page);
    };
    std::fs::create_dir_all(folder)
        .and_then(|()| clap_mangen::generate_to(Cli::command(), folder))
        .map_err(|error| Failure::new(format!("{}: {error}", folder.display())))?;
    put(format!("The manual is in {}; read it with man -l\n", folder.display()).as_bytes())
}

/// To standard output; whoever closed it has read enough.
fn put(text: &[u8]) -> Done {
    match std::io::stdout().write_all(text) {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => Err(Failure::new(error)),
        _ => Ok(Exit::Completed),
    }
}
