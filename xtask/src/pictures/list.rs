//! The list of the pictures.

use serde::Deserialize;

use crate::repository::Repository;

/// The file of the list.
pub const FILE: &str = "docs/pictures.toml";

/// The list, in the order of the gallery.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct List {
    #[serde(rename = "picture")]
    pub pictures: Vec<Picture>,
}

/// A picture and how it is made.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Picture {
    /// The name of its file, without extension.
    pub name: String,
    /// Heading in the gallery.
    pub title: String,
    /// The text for those who do not see it.
    pub alt: String,
    /// Commands, in a folder with the scenarios, the examples and the papers.
    pub commands: Vec<String>,
    /// The report with the figure.
    pub report: String,
    /// The beginning of the title of a figure, which is drawn as SVG.
    pub figure: Option<String>,
    /// Width and height of the top of the report, which is drawn as PNG.
    pub page: Option<(u32, u32)>,
}

impl Picture {
    /// The name of its file.
    pub fn file(&self) -> String {
        format!("{}.{}", self.name, if self.page.is_some() { "png" } else { "svg" })
    }
}

impl List {
    /// Reads the list of the repository.
    ///
    /// # Errors
    /// If it has an error.
    pub fn read(repository: &Repository) -> Result<List, String> {
        let text = std::fs::read_to_string(repository.root.join(FILE));
        List::parse(&text.map_err(|error| format!("{FILE}: {error}"))?)
    }

    fn parse(text: &str) -> Result<List, String> {
        let list: List = toml::from_str(text).map_err(|error| format!("{FILE}: {error}"))?;
        for (at, picture) in list.pictures.iter().enumerate() {
            let wrong = |why: &str| Err(format!("{FILE}: {} {why}", picture.name));
            if list.pictures[..at].iter().any(|earlier| earlier.name == picture.name) {
                return wrong("is listed twice");
            }
            if picture.figure.is_some() == picture.page.is_some() {
                return wrong("needs either `figure` or `page`");
            }
            if picture.commands.is_empty()
                || picture.commands.iter().any(|line| !line.starts_with("giveway "))
            {
                return wrong("needs commands that begin with `giveway`");
            }
        }
        Ok(list)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_picture_is_a_figure_or_a_page() {
        let picture = "[[picture]]\nname = \"a\"\ntitle = \"A\"\nalt = \"a\"\nreport = \"r\"\n";
        let parsed = |rest: &str| List::parse(&format!("{picture}{rest}"));
        let commands = "commands = [\"giveway run s\"]\n";
        let drawn = parsed(&format!("{commands}figure = \"F\"")).unwrap();
        let shot = parsed(&format!("{commands}page = [1200, 900]")).unwrap();
        assert_eq!((drawn.pictures[0].file(), shot.pictures[0].file()), ("a.svg".into(), "a.png".into()));
        for wrong in [
            commands.to_owned(),
            format!("{commands}figure = \"F\"\npage = [1, 2]"),
            format!("{commands}figure = \"F\"\n{picture}{commands}figure = \"F\""),
            "commands = []\nfigure = \"F\"".to_owned(),
            "commands = [\"rm -r x\"]\nfigure = \"F\"".to_owned(),
        ] {
            assert!(parsed(&wrong).is_err(), "{wrong}");
        }
    }
}
