//! The components of the programs and of the wheels, as CycloneDX documents. Each is made from the list that
//! its program or library contains.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::making::Release;
use super::places;
use super::platform::PROGRAMS;
use crate::repository::{Done, files_below};

/// Writes a document for each platform, and for each wheel of the release.
pub fn write(release: &Release) -> Done {
    release.each(|platform| {
        PROGRAMS.into_iter().try_for_each(|(_, program)| {
            let name = release.name(platform).replacen(PROGRAMS[0].1, program, 1);
            write_one(release, &release.built(platform).join(program), &name)
        })
    })?;
    let failed = |error: std::io::Error| format!("{}: {error}", release.out.display());
    let files = fs::read_dir(&release.out).map_err(failed)?.flatten().map(|entry| entry.path());
    let mut wheels: Vec<PathBuf> = files.filter(|file| has_extension(file, "whl")).collect();
    wheels.sort();
    wheels.iter().try_for_each(|wheel| write_wheel(release, wheel))
}

/// Writes the document of the library in a wheel.
fn write_wheel(release: &Release, wheel: &Path) -> Done {
    let folder = release.target.join("release-components");
    let failed = |error: std::io::Error| format!("{}: {error}", folder.display());
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).map_err(failed)?;
    places::unpack(&release.repository, wheel, &folder)?;
    let libraries = files_below(&folder)?.into_iter().filter(|file| has_extension(file, "so"));
    let [library] = <[PathBuf; 1]>::try_from(libraries.collect::<Vec<_>>())
        .map_err(|libraries| format!("{} has {} libraries, not one", wheel.display(), libraries.len()))?;
    write_one(release, &library, &wheel.file_stem().unwrap_or_default().to_string_lossy())?;
    fs::remove_dir_all(&folder).map_err(failed)
}

fn has_extension(file: &Path, extension: &str) -> bool {
    file.extension().is_some_and(|own| own == extension)
}

/// Writes the document of a program or library with the list of its components.
fn write_one(release: &Release, program: &Path, name: &str) -> Done {
    let text = release.repository.output(&release.tools.cyclonedx, &[&*program.to_string_lossy()])?;
    let document: Value = serde_json::from_str(&text).map_err(|error| format!("the list: {error}"))?;
    let components = document["components"].as_array().map_or(0, Vec::len);
    println!("{name}: {components} components");
    if document["bomFormat"] != "CycloneDX" || components == 0 {
        return Err(format!("{} contains no list of its components", program.display()));
    }
    let path = release.out.join(format!("{name}.cdx.json"));
    fs::write(&path, format!("{document:#}\n")).map_err(|error| format!("{}: {error}", path.display()))
}
