//! The commands of `giveway-net` and their flags: one file for each.

pub mod control;
mod ether_types;
pub mod kernel;
pub mod live;
pub mod reserve;
pub mod reserving;

/// A command of `giveway-net`.
#[derive(clap::Subcommand)]
#[expect(missing_docs, reason = "it would be shown in place of the description of the flags")]
pub enum NetCommand {
    // Boxed, since its flags are much larger than those of other commands.
    Live(Box<live::Args>),
    Control(control::Args),
    Kernel(kernel::Args),
    Reserve(Box<reserve::Args>),
}

/// The names of the commands of `giveway-net`.
pub const NAMES: [&str; 4] = ["live", "control", "kernel", "reserve"];

#[cfg(test)]
mod tests {
    use clap::{Command, Subcommand as _};

    use super::*;

    #[test]
    fn all_commands_have_their_names_in_the_list() {
        let all = NetCommand::augment_subcommands(Command::new("giveway"));
        let names: Vec<&str> = all.get_subcommands().map(Command::get_name).collect();
        assert_eq!(names, NAMES);
    }
}
