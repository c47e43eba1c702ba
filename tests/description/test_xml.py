"""XML documents: faults are refused or tolerated with a warning, and elements have the right line."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roboyard.description.xml import MAX_DEPTH, XmlNode, parse_xml
from roboyard.errors import DescriptionError

ENTITY_BOMB = "".join(f'<!ENTITY l{i} "{f"&l{i - 1};" * 10 if i else "lol"}">' for i in range(10))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (f"<?xml version='1.0'?><!DOCTYPE a [{ENTITY_BOMB}]><a>&l9;</a>", "declares entities"),
        ('<!DOCTYPE a [<!ENTITY x SYSTEM "file:///etc/passwd">]><a>&x;</a>', "declares entities"),
        ('<!DOCTYPE a [<!ENTITY % x SYSTEM "http://example.org/x.dtd"> %x;]><a/>', "declares entities"),
        ('<!DOCTYPE a SYSTEM "file:///etc/passwd"><a>&x;</a>', "undeclared entity"),
        ('<!DOCTYPE a [<!ATTLIST b x CDATA "long">]><a><b/><b/></a>', "attribute defaults"),
        ("<a>&x;</a>", "undefined entity"),
        ("<a>" * (MAX_DEPTH + 1) + "</a>" * (MAX_DEPTH + 1), "nested more than"),
        ("<a>" + "<b/>" * 400_000 + "</a>", "more than 300000 elements"),
        ("<a>" + "x" * 2**24 + "</a>", "characters"),
        ("<a><b></a></b>", "mismatched tag"),
        ("<a/><b/>", "junk after document element"),
        ("<a", "unclosed token"),
        ("<a x='1' x='2'/>", "duplicate attribute"),
        ("", "empty"),
        ("   \n ", "empty"),
        ("<!-- only a comment -->", "no element"),
        ("<a>\x01</a>", "invalid token"),
        ("<a>\ud800</a>", "characters that are not allowed in XML"),
        ("<!-- not closed", "unclosed token"),
    ],
)
def test_faulty_xml_is_refused(text: str, message: str) -> None:
    with pytest.raises(DescriptionError, match="<text>") as caught:
        parse_xml(text)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("text", "message", "line"),
    [
        ("<a>\n<!-- x -- y -->\n<b/></a>", "'--' inside a comment", 2),
        ("<a>\n<!-- x --->\n<b/></a>", "'--' inside a comment", 2),
        ("<!-- first -->\n<?xml version='1.0'?>\n<a><b/></a>", "XML declaration not at the start", 2),
        ("<a>\n<b gz:type='x'/></a>", "prefix 'gz:' is not declared", 2),
        ("<a>\n<x::b/><b/></a>", "'::' in the name 'x::b'", 2),
        ("<a>salt & pepper<b/></a>", "'&' that does not start an entity", 1),
    ],
)
def test_tolerated_xml_faults_cause_warnings(text: str, message: str, line: int) -> None:
    root, warnings = parse_xml(text, "f.sdf")
    assert root.child("b") is not None
    assert [(warning.message, warning.line, warning.file) for warning in warnings] == [(message, line, "f.sdf")]
    assert str(warnings[0]) == f"f.sdf:{line}: {message}"


def test_whitespace_before_the_xml_declaration_is_ignored() -> None:
    assert parse_xml("\n <?xml version='1.0'?><a/>")[1] == ()


def test_xml_text_of_every_kind_is_read() -> None:
    root, warnings = parse_xml("<a>1 &lt; 2 &amp; &#65;<b/><![CDATA[ <&-- ]]></a>")
    assert root.text == "1 < 2 & A <&-- "
    assert warnings == ()


def test_xml_encodings_are_read() -> None:
    for encoding in ("utf-8", "utf-8-sig", "utf-16", "iso-8859-1", "windows-1252"):
        name = "utf-16" if encoding == "utf-16" else encoding.removesuffix("-sig")
        data = f"<?xml version='1.0' encoding='{name}'?><a n='é'/>".encode(encoding)
        root, warnings = parse_xml(data, "f")
        assert root.get("n") == "é"
        assert warnings == ()
    root, warnings = parse_xml(b"<a n='\xe9'/>", "f")
    assert root.get("n") == "é"
    assert "Latin-1" in warnings[0].message
    for name in ("rot13", "zip", "unicode_escape", "nonsense"):
        with pytest.raises(DescriptionError, match="unknown encoding"):
            parse_xml(f"<?xml version='1.0' encoding='{name}'?><a/>".encode(), "f")
    with pytest.raises(DescriptionError, match="binary"):
        parse_xml(b"<a>\x00</a>", "f")


NAMES = st.sampled_from(["link", "joint", "a::b", "gz:c", "x-1"])
TEXTS = st.text("ab &<>'\"-\n", max_size=12)


@st.composite
def xml_trees(draw: st.DrawFn, depth: int = 3) -> XmlNode:
    children = draw(st.lists(xml_trees(depth - 1), max_size=3)) if depth else []
    attributes = draw(st.dictionaries(st.sampled_from(["name", "type", "gz:k"]), TEXTS, max_size=2))
    return XmlNode(draw(NAMES), attributes, "", 0, draw(TEXTS), children)


def write_xml(node: XmlNode) -> str:
    """Return the node as XML with additional comments and newlines."""

    def escape(text: str) -> str:
        text = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
        return text.replace('"', "&quot;").replace("\n", "&#10;")

    attributes = "".join(f'\n {key}="{escape(value)}"' for key, value in node.attributes.items())
    content = escape(node.text) + "<!-- - -->\n".join(write_xml(child) for child in node.children)
    return f"<{node.tag}{attributes}>{content}</{node.tag}>"


@given(xml_trees())
def test_written_xml_is_read_back_unchanged(tree: XmlNode) -> None:
    text = write_xml(tree)
    read = parse_xml(text)[0]
    for a, b in zip(tree.walk(), read.walk(), strict=True):
        assert (a.tag, a.attributes, len(a.children)) == (b.tag, b.attributes, len(b.children))
        assert b.text.replace("\n", "") == a.text.replace("\n", "")
        assert re.match(f"[^\n]*<{b.tag}", text.split("\n")[b.line - 1])  # its tag is on its line


def test_unclosed_xml_constructs_are_read_in_linear_time() -> None:
    """The parser must not search repeatedly for the end of a construct that is not closed."""
    for piece in ("<!--", "<![CDATA[", "<?xml ", "&"):
        with pytest.raises(DescriptionError):
            parse_xml("<a>" + piece * 1_000_000)
