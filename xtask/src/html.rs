//! The tags and the text of a page, which html5gum reads as browsers do.

use html5gum::{DefaultEmitter, HtmlString, StringReader, Token, Tokenizer};

/// An opening tag.
#[derive(Debug, PartialEq, Eq)]
pub struct Tag {
    /// In lower case.
    pub name: String,
    /// Names in lower case and sorted, and values without entities.
    pub attributes: Vec<(String, String)>,
}

impl Tag {
    /// The value of an attribute.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.attributes.iter().find(|(own, _)| own == name).map(|(_, value)| value.as_str())
    }
}

/// All opening tags of a page, in their order. The text of scripts, styles and comments has none.
pub fn tags(page: &str) -> Vec<Tag> {
    let tags = tokens(page).filter_map(|token| match token {
        Ok(Token::StartTag(tag)) => Some(tag),
        _ => None,
    });
    tags.map(|tag| Tag {
        name: string(&tag.name),
        attributes: tag.attributes.iter().map(|(name, value)| (string(name), string(value))).collect(),
    })
    .collect()
}

/// The text of a part of a page, without entities.
pub fn plain(text: &str) -> String {
    let texts = tokens(text).filter_map(|token| match token {
        Ok(Token::String(text)) => Some(string(&text)),
        _ => None,
    });
    texts.collect()
}

fn tokens(page: &str) -> Tokenizer<StringReader<'_>, DefaultEmitter<()>> {
    let mut emitter = DefaultEmitter::default();
    // After the opening tag of a script begins text.
    emitter.naively_switch_states(true);
    Tokenizer::new_with_emitter(page, emitter)
}

fn string(text: &HtmlString) -> String {
    String::from_utf8_lossy(text).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_are_read_with_their_attributes() {
        let page = "<!-- <a href=none> --><p>1 < 2</p><A HREF='x?a&amp;b#c' id = y >z</A><img src=\"a>b.svg\" alt/>\
                    <script src=s.js>if (a <b) '<i>'</script><br/><em";
        let found: Vec<String> = tags(page)
            .iter()
            .map(|tag| {
                let attributes = tag.attributes.iter().map(|(name, value)| format!(" {name}={value}"));
                format!("{}{}", tag.name, attributes.collect::<String>())
            })
            .collect();
        assert_eq!(found, ["p", "a href=x?a&b#c id=y", "img alt= src=a>b.svg", "script src=s.js", "br"]);
        assert_eq!(tags(page)[1].get("id"), Some("y"));
    }

    #[test]
    fn text_has_no_entities() {
        assert_eq!(plain("&lt;svg a=&quot;1&quot;&gt;&#x27;&amp;amp;&#39;"), "<svg a=\"1\">'&amp;'");
    }
}
