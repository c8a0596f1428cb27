//! `duo config`: the configuration in effect.

use std::io::Write;

use crate::{cli::Config, config::docs_markdown, exit::Exit, failure::Done, house::House};

pub(crate) fn config(house: &House, args: Config) -> Done {
    let text = if args.reference {
        docs_markdown()
    } else if args.json {
        serde_json::to_string_pretty(&house.loaded.render_json())?
    } else {
        house.loaded.render_text()
    };
    writeln!(std::io::stdout(), "{}", text.trim_end())?;
    Ok(Exit::Completed)
}
