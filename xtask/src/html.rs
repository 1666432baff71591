//! The tags of a page.

/// An opening tag.
#[derive(Debug, PartialEq, Eq)]
pub struct Tag {
    /// In lower case.
    pub name: String,
    /// Names in lower case, and values without entities.
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
    let mut tags = Vec::new();
    let mut rest = page;
    while let Some((_, after)) = rest.split_once('<') {
        if let Some(comment) = after.strip_prefix("!--") {
            rest = comment.split_once("-->").map_or("", |(_, after)| after);
            continue;
        }
        if !after.starts_with(|c: char| c.is_ascii_alphabetic()) {
            rest = after;
            continue;
        }
        let (tag, after) = tag(after);
        rest = match tag.name.as_str() {
            "script" | "style" => {
                let end = format!("</{}", tag.name);
                after.split_once(end.as_str()).map_or("", |(_, after)| after)
            }
            _ => after,
        };
        tags.push(tag);
    }
    tags
}

/// Parses a tag from its name on. Returns the text after it as well.
fn tag(text: &str) -> (Tag, &str) {
    let end = text.find(|c: char| c.is_whitespace() || c == '>' || c == '/').unwrap_or(text.len());
    let mut tag = Tag { name: text[..end].to_ascii_lowercase(), attributes: Vec::new() };
    let mut rest = &text[end..];
    loop {
        rest = rest.trim_start_matches(|c: char| c.is_whitespace() || c == '/');
        if let Some(after) = rest.strip_prefix('>') {
            return (tag, after);
        }
        let end = rest.find(|c: char| c.is_whitespace() || "=>/".contains(c)).unwrap_or(rest.len());
        if end == 0 {
            return (tag, rest);
        }
        let name = rest[..end].to_ascii_lowercase();
        rest = rest[end..].trim_start();
        let value = match rest.strip_prefix('=') {
            None => "",
            Some(after) => {
                let after = after.trim_start();
                let (value, after) = value(after);
                rest = after;
                value
            }
        };
        tag.attributes.push((name, plain(value)));
    }
}

/// The value of an attribute, with or without quotes, and the text after it.
fn value(text: &str) -> (&str, &str) {
    for quote in ['"', '\''] {
        if let Some(inner) = text.strip_prefix(quote) {
            return inner.split_once(quote).unwrap_or((inner, ""));
        }
    }
    text.split_at(text.find(|c: char| c.is_whitespace() || c == '>').unwrap_or(text.len()))
}

/// Replaces the entities that mdBook and browsers write.
pub fn plain(text: &str) -> String {
    let entities = [("&lt;", "<"), ("&gt;", ">"), ("&quot;", "\""), ("&#x27;", "'"), ("&#39;", "'")];
    let text = entities.iter().fold(text.to_owned(), |text, (entity, plain)| text.replace(entity, plain));
    text.replace("&amp;", "&")
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
        let expected = ["p", "a href=x?a&b#c id=y", "img src=a>b.svg alt=", "script src=s.js", "br", "em"];
        assert_eq!(found, expected);
        assert_eq!(tags(page)[1].get("id"), Some("y"));
    }
}
