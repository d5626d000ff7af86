//! `content`: blocks for a model to see, hear or follow, as the Model Context Protocol has them.

use callbook_domain::arguments::Argument;
use callbook_domain::content;
use callbook_domain::json::{self, JsonKind};
use callbook_domain::outcome::Output;

use super::{Given, refused};

/// A list of its arguments, each a block, a list of blocks, or text that becomes a block of text.
pub(super) fn content(arguments: &[Argument]) -> Given {
    let mut blocks: Vec<String> = Vec::new();
    for argument in arguments {
        let text = argument.as_text();
        let kind = if json::check(text).is_ok() { json::kind(text) } else { JsonKind::String };
        match kind {
            JsonKind::Object => blocks.push(text.trim().to_owned()),
            JsonKind::Array => {
                let items =
                    json::list(text).map_err(|problem| refused(format!("the blocks are no list: {problem}")))?;
                blocks.extend(items.iter().map(|item| item.get().to_owned()));
            }
            JsonKind::String | JsonKind::Number | JsonKind::Boolean | JsonKind::Null => {
                blocks.push(format!("{{\"type\":\"text\",\"text\":{}}}", json::quote(text)));
            }
        }
    }
    for block in &blocks {
        content::check(block).map_err(|bad| refused(bad.to_string()))?;
    }
    let list = format!("[{}]", blocks.join(","));
    Ok(Output { bytes: list.into_bytes(), media_type: content::MEDIA_TYPE.to_owned(), truncated: false })
}

#[cfg(test)]
mod tests {
    use callbook_domain::outcome::Outcome;

    use super::*;

    fn given(texts: &[&str]) -> Result<Output, String> {
        let arguments: Vec<Argument> = texts.iter().map(|text| Argument::untyped(*text)).collect();
        content(&arguments).map_err(|failure| failure.message)
    }

    #[test]
    fn blocks_lists_of_blocks_and_texts_become_one_list() {
        let output = given(&[
            "Look: \"here\"",
            r#" {"type":"image","data":"aGk=","mimeType":"image/png","annotations":{"priority":1.10}} "#,
            r#"[{"type":"text","text":"a"},{"type":"text","text":"b"}]"#,
            "12",
        ]);
        let output = output.unwrap();
        assert_eq!(output.media_type, "application/vnd.callbook.content+json");
        assert_eq!(
            output.as_json().unwrap(),
            "[{\"type\":\"text\",\"text\":\"Look: \\\"here\\\"\"},\
             {\"type\":\"image\",\"data\":\"aGk=\",\"mimeType\":\"image/png\",\"annotations\":{\"priority\":1.10}},\
             {\"type\":\"text\",\"text\":\"a\"},{\"type\":\"text\",\"text\":\"b\"},{\"type\":\"text\",\"text\":\"12\"}]"
        );
        assert_eq!(Outcome::Ok(output, None).render(), "Look: \"here\"\n[image image/png]\na\nb\n12");
        assert_eq!(given(&[]).unwrap().as_json(), Some("[]"));
        assert_eq!(given(&["{\"type\":\"x\"}"]).unwrap_err(), content::BadBlock::Type.to_string());
        assert_eq!(given(&["[1]"]).unwrap_err(), content::BadBlock::NotObject.to_string());
    }
}
