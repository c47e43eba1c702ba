"""XML: what is refused, what is tolerated, and that places are true."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roboyard.description.xml import MAX_DEPTH, XmlNode, parse_xml
from roboyard.errors import DescriptionError

LAUGHS = "".join(f'<!ENTITY l{i} "{f"&l{i - 1};" * 10 if i else "lol"}">' for i in range(10))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (f"<?xml version='1.0'?><!DOCTYPE a [{LAUGHS}]><a>&l9;</a>", "declares entities"),
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
        ("<a>\ud800</a>", "characters that XML cannot have"),
        ("<!-- not closed", "unclosed token"),
    ],
)
def test_faulty_xml_is_refused(text: str, said: str) -> None:
    with pytest.raises(DescriptionError, match="<text>") as caught:
        parse_xml(text)
    assert said in str(caught.value)


@pytest.mark.parametrize(
    ("text", "said", "line"),
    [
        ("<a>\n<!-- x -- y -->\n<b/></a>", "'--' inside a comment", 2),
        ("<a>\n<!-- x --->\n<b/></a>", "'--' inside a comment", 2),
        ("<!-- first -->\n<?xml version='1.0'?>\n<a><b/></a>", "XML declaration not at the start", 2),
        ("<a>\n<b gz:type='x'/></a>", "prefix 'gz:' is not declared", 2),
        ("<a>\n<x::b/><b/></a>", "'::' in the name 'x::b'", 2),
        ("<a>salt & pepper<b/></a>", "'&' that starts no entity", 1),
    ],
)
def test_tolerated_xml_faults_are_findings(text: str, said: str, line: int) -> None:
    root, findings = parse_xml(text, "f.sdf")
    assert root.child("b") is not None
    assert [(finding.message, finding.line, finding.file) for finding in findings] == [(said, line, "f.sdf")]
    assert str(findings[0]) == f"f.sdf:{line}: {said}"


def test_whitespace_before_the_xml_declaration_is_ignored() -> None:
    assert parse_xml("\n <?xml version='1.0'?><a/>")[1] == ()


def test_xml_text_of_every_kind_is_read() -> None:
    root, findings = parse_xml("<a>1 &lt; 2 &amp; &#65;<b/><![CDATA[ <&-- ]]></a>")
    assert root.text == "1 < 2 & A <&-- "
    assert findings == ()


def test_xml_encodings_are_read() -> None:
    for encoding in ("utf-8", "utf-8-sig", "utf-16", "iso-8859-1", "windows-1252"):
        name = "utf-16" if encoding == "utf-16" else encoding.removesuffix("-sig")
        data = f"<?xml version='1.0' encoding='{name}'?><a n='é'/>".encode(encoding)
        root, findings = parse_xml(data, "f")
        assert root.get("n") == "é"
        assert findings == ()
    root, findings = parse_xml(b"<a n='\xe9'/>", "f")
    assert root.get("n") == "é"
    assert "Latin-1" in findings[0].message
    for name in ("rot13", "zip", "unicode_escape", "nonsense"):
        with pytest.raises(DescriptionError, match="unknown encoding"):
            parse_xml(f"<?xml version='1.0' encoding='{name}'?><a/>".encode(), "f")
    with pytest.raises(DescriptionError, match="binary"):
        parse_xml(b"<a>\x00</a>", "f")


NAMES = st.sampled_from(["link", "joint", "a::b", "gz:c", "x-1"])
TEXTS = st.text("ab &<>'\"-\n", max_size=12)


@st.composite
def trees(draw: st.DrawFn, depth: int = 3) -> XmlNode:
    children = draw(st.lists(trees(depth - 1), max_size=3)) if depth else []
    attributes = draw(st.dictionaries(st.sampled_from(["name", "type", "gz:k"]), TEXTS, max_size=2))
    return XmlNode(draw(NAMES), attributes, "", 0, draw(TEXTS), children)


def written(node: XmlNode) -> str:
    """The node as XML, with comments and newlines strewn in."""

    def escaped(text: str) -> str:
        text = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
        return text.replace('"', "&quot;").replace("\n", "&#10;")

    attributes = "".join(f'\n {key}="{escaped(value)}"' for key, value in node.attributes.items())
    inside = escaped(node.text) + "<!-- - -->\n".join(written(child) for child in node.children)
    return f"<{node.tag}{attributes}>{inside}</{node.tag}>"


@given(trees())
def test_written_xml_is_read_back_unchanged(tree: XmlNode) -> None:
    text = written(tree)
    read = parse_xml(text)[0]
    for a, b in zip(tree.walk(), read.walk(), strict=True):
        assert (a.tag, a.attributes, len(a.children)) == (b.tag, b.attributes, len(b.children))
        assert b.text.replace("\n", "") == a.text.replace("\n", "")
        assert re.match(f"[^\n]*<{b.tag}", text.split("\n")[b.line - 1])  # its line holds its tag


def test_xml_reading_cost_grows_linearly() -> None:
    """Openings that never close must not be searched for again and again."""
    for piece in ("<!--", "<![CDATA[", "<?xml ", "&"):
        with pytest.raises(DescriptionError):
            parse_xml("<a>" + piece * 1_000_000)
