//! A parsed document: a tree of elements and texts. It owns every name and text, as a DOM does.

use quick_xml::XmlVersion;
use quick_xml::events::{BytesStart, Event};
use quick_xml::reader::Reader;

/// One element with its attributes and contents.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Element {
    pub(crate) name: String,
    pub(crate) attributes: Vec<(String, String)>,
    pub(crate) children: Vec<Node>,
}

/// What an element can hold.
#[derive(Debug, PartialEq)]
pub(crate) enum Node {
    Element(Element),
    Text(String),
}

impl Element {
    /// Returns the elements directly inside.
    pub(crate) fn elements(&self) -> impl Iterator<Item = &Element> {
        self.children.iter().filter_map(|child| match child {
            Node::Element(element) => Some(element),
            Node::Text(_) => None,
        })
    }

    /// Returns the attribute's value, or nothing.
    pub(crate) fn attribute(&self, name: &str) -> Option<&str> {
        self.attributes.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    /// Returns the text of the first element `name` directly inside, or nothing.
    pub(crate) fn text_of(&self, name: &str) -> Option<&str> {
        self.elements().find(|element| element.name == name)?.children.iter().find_map(|child| match child {
            Node::Text(text) => Some(text.as_str()),
            Node::Element(_) => None,
        })
    }

    /// Returns how often `word` occurs in the texts inside, at any depth.
    pub(crate) fn occurrences(&self, word: &str) -> usize {
        let inside = |child: &Node| match child {
            Node::Element(element) => element.occurrences(word),
            Node::Text(text) => text.matches(word).count(),
        };
        self.children.iter().map(inside).sum()
    }
}

/// Returns the root element of the document, texts in lower case so that they can be searched.
pub(crate) fn parse(xml: &str) -> Result<Element, quick_xml::Error> {
    let mut reader = Reader::from_str(xml);
    // The document itself is the outermost element, so that the loop has a place for the root.
    let mut open = vec![Element::default()];
    loop {
        match reader.read_event()? {
            Event::Start(start) => open.push(element(&start)?),
            Event::Empty(start) => append(&mut open, Node::Element(element(&start)?)),
            Event::End(_) => {
                let closed = open.pop().expect("the reader refuses an end without its start");
                append(&mut open, Node::Element(closed));
            }
            Event::Text(text) => {
                let text = text.xml_content(XmlVersion::Implicit1_0);
                if !text.trim().is_empty() {
                    append(&mut open, Node::Text(text.to_lowercase()));
                }
            }
            Event::Eof => break,
            _ => {}
        }
    }
    let document = open.pop().unwrap_or_default();
    document
        .children
        .into_iter()
        .find_map(|child| match child {
            Node::Element(root) => Some(root),
            Node::Text(_) => None,
        })
        .ok_or_else(|| quick_xml::Error::from(std::io::Error::from(std::io::ErrorKind::UnexpectedEof)))
}

fn element(start: &BytesStart<'_>) -> Result<Element, quick_xml::Error> {
    let mut attributes = Vec::new();
    for attribute in start.attributes() {
        let attribute = attribute?;
        let value = attribute.normalized_value(XmlVersion::Implicit1_0)?;
        attributes.push((attribute.key.as_ref().to_owned(), value.into_owned()));
    }
    Ok(Element { name: start.name().as_ref().to_owned(), attributes, children: Vec::new() })
}

fn append(open: &mut [Element], node: Node) {
    if let Some(parent) = open.last_mut() {
        parent.children.push(node);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_document_becomes_a_tree_that_can_be_searched() {
        let root = parse("<?xml version=\"1.0\"?>\n<shelf id=\"3\"><item id=\"&lt;1\"><name>Red Lantern</name><sold/></item></shelf>")
            .unwrap();
        assert_eq!((root.name.as_str(), root.attribute("id")), ("shelf", Some("3")));
        let item = root.elements().next().unwrap();
        assert_eq!(item.attribute("id"), Some("<1"));
        assert_eq!(item.text_of("name"), Some("red lantern"));
        assert_eq!(root.occurrences("lantern"), 1);
        assert_eq!(root.occurrences("n"), 2);
    }

    #[test]
    fn what_is_no_document_is_an_error() {
        assert!(parse("").is_err());
        assert!(parse("<shelf></item>").is_err());
    }
}
