//! Records `examples/home-uplink.pcapng` over real Linux TCP, on a test bed.
//!
//! `giveway testbed` runs the scenario that lies beside the capture. Its table, as JSON, has the measurements of
//! the applications: page load times, the completion time of the upload, delays of the calls.

use std::fs::File;

use crate::repository::{Done, Repository};
use crate::program::{Profile, build, program};

const FOLDER: &str = "examples";

/// Records it. Another folder than `examples` may be given.
pub fn record(repository: &Repository, rest: &[&str]) -> Done {
    let folder = match rest {
        [] => FOLDER,
        ["--into", folder] => folder,
        _ => return Err("write cargo xtask record-example [--into FOLDER]".to_owned()),
    };
    build(repository, Profile::Release)?;
    let program = program(repository, Profile::Release)?;
    let scenario = format!("{FOLDER}/home-uplink.toml");
    let capture = format!("{folder}/home-uplink.pcapng");
    let json = format!("{folder}/home-uplink.json");
    let measured = File::create(repository.root.join(&json)).map_err(|error| format!("{json}: {error}"))?;
    let mut command = repository.command(&program.display().to_string());
    // Its messages are for the reader, its table for the file.
    command.args(["testbed", &scenario, "--pcap", &capture, "--json"]).stdout(measured);
    match command.status() {
        Ok(status) if status.success() => {}
        Ok(status) => return Err(format!("giveway testbed {scenario}: {status}")),
        Err(error) => return Err(format!("{}: {error}", program.display())),
    }
    println!(
        "{capture} and {json} are written. Keep them if no message above says that the run is not to be trusted"
    );
    Ok(())
}
