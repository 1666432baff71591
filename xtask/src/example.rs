//! Records `examples/home-uplink.pcapng` over real Linux TCP, on a test bed.
//!
//! `giveway testbed` runs the scenario in the same folder as the capture. Its JSON output contains the
//! measurements of the applications: page load times, the completion time of the upload, and the delays of
//! the calls.

use std::fs::File;

use crate::program::{Profile, build, program};
use crate::repository::{Done, Repository};

const FOLDER: &str = "examples";

/// Records the example into the folder `examples`, or with `--into FOLDER` into another one.
pub fn record(repository: &Repository, rest: &[&str]) -> Done {
    let folder = match rest {
        [] => FOLDER,
        ["--into", folder] => folder,
        _ => return Err("usage: cargo xtask record-example [--into FOLDER]".to_owned()),
    };
    build(repository, Profile::Release)?;
    let program = program(repository, Profile::Release)?;
    let scenario = format!("{FOLDER}/home-uplink.toml");
    let capture = format!("{folder}/home-uplink.pcapng");
    let json = format!("{folder}/home-uplink.json");
    let measured = File::create(repository.root.join(&json)).map_err(|error| format!("{json}: {error}"))?;
    let mut command = repository.command(&program.display().to_string());
    // Messages go to the terminal, the JSON output to the file.
    command.args(["testbed", &scenario, "--pcap", &capture, "--json"]).stdout(measured);
    match command.status() {
        Ok(status) if status.success() => {}
        Ok(status) => return Err(format!("giveway testbed {scenario}: {status}")),
        Err(error) => return Err(format!("{}: {error}", program.display())),
    }
    println!(
        "wrote {capture} and {json}; discard them if a message above reports late wake-ups or missed packets"
    );
    Ok(())
}
