//! The components of the programs, as CycloneDX documents. Each is made from the list that its program
//! contains.

use std::fs;

use serde_json::Value;

use super::making::Release;
use super::platform::Platform;
use crate::repository::Done;

/// Writes a document for each platform.
pub fn write(release: &Release) -> Done {
    release.each(|platform| write_one(release, platform))
}

fn write_one(release: &Release, platform: &Platform) -> Done {
    let program = release.built(platform).join("giveway");
    let text = release.repository.output(&release.tools.cyclonedx, &[&*program.to_string_lossy()])?;
    let document: Value = serde_json::from_str(&text).map_err(|error| format!("the list: {error}"))?;
    let components = document["components"].as_array().map_or(0, Vec::len);
    println!("{components} components");
    if document["bomFormat"] != "CycloneDX" || components == 0 {
        return Err("the program contains no list of its components".to_owned());
    }
    let path = release.out.join(format!("{}.cdx.json", release.name(platform)));
    fs::write(&path, format!("{document:#}\n")).map_err(|error| format!("{}: {error}", path.display()))
}
