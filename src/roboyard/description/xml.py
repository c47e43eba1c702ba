"""Safe and tolerant XML parser: text becomes a tree of nodes with file and line.

Safe: size, depth and node count are bounded, entity declarations and external references are rejected, and files are
never downloaded. Tolerant like Gazebo's own parser: ``--`` inside comments, undeclared prefixes, ``a::b`` tags and an
XML declaration after a comment are accepted, each with a warning.

Expat ignores namespaces in names, exactly as URDF and SDF files are written, gives correct line numbers without a
limit, and calls back on every declaration before it takes effect.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from xml.parsers import expat

from roboyard.description.model import ReaderWarning, XmlElement
from roboyard.errors import DescriptionError

MAX_CHARACTERS = 16 * 2**20
MAX_DEPTH = 120
MAX_NODES = 300_000  # elements and attributes in total; a PR2 with every sensor has about 12,000

_TEXT_ENCODING = re.compile(
    r"(utf-?(8|16|32)|us-ascii|ascii|iso-?8859-?\d+|latin-?1|windows-\d+|cp\d+|gb\w+|shift_jis|euc-\w+|big5)", re.I
)
_SECTION_START = re.compile(r"<!--|<!\[CDATA\[|<\?xml\s")
_SECTION_END = {"<!--": "-->", "<![C": "]]>", "<?xm": "?>"}
_UNESCAPED_AMPERSAND = re.compile(r"&(?![A-Za-z_:][\w.:-]{0,63};|#\d{1,8};|#x[0-9A-Fa-f]{1,8};)")
_DECLARED_ENCODING = re.compile(rb"""<\?xml[^>]{0,200}?encoding\s*=\s*["']([A-Za-z0-9._-]{1,40})["']""")


@dataclass(slots=True)
class XmlNode:
    """Element: its tag as written (prefix included), attributes, children, own text, and location."""

    tag: str
    attributes: dict[str, str]
    file: str
    line: int
    text: str = ""
    children: list[XmlNode] = field(default_factory=list)

    @property
    def location(self) -> str:
        """``file:line`` for messages."""
        return f"{self.file}:{self.line}"

    def get(self, name: str, default: str = "") -> str:
        """Return the attribute, or `default`."""
        return self.attributes.get(name, default)

    def child(self, tag: str) -> XmlNode | None:
        """Return the first child with this tag, or None."""
        for node in self.children:
            if node.tag == tag:
                return node
        return None

    def children_with_tag(self, *tags: str) -> list[XmlNode]:
        """Return the children with one of these tags, in file order."""
        return [node for node in self.children if node.tag in tags]

    def walk(self) -> Iterator[XmlNode]:
        """Iterate over this node and all nodes below it, in file order."""
        stack = [self]
        while stack:
            node = stack.pop()
            yield node
            stack.extend(reversed(node.children))

    def freeze(self) -> XmlElement:
        """Return an immutable copy without this module's types, for plugins and unknown sensors."""
        return XmlElement(
            tag=self.tag,
            text=self.text.strip(),
            attributes=tuple(self.attributes.items()),
            children=tuple(child.freeze() for child in self.children),
            line=self.line,
            file=self.file,
        )


def decode_xml(data: bytes, source: str) -> tuple[str, tuple[ReaderWarning, ...]]:
    """Decode an XML file: byte-order mark, then declared encoding, then UTF-8, then Latin-1 with a warning.

    Raises:
        DescriptionError: The file is empty, too large, binary, or has an unknown encoding.
    """
    if not data.strip():
        raise DescriptionError("the file is empty", location=source, valid="a URDF, xacro, SDF or MJCF document")
    if len(data) > MAX_CHARACTERS:
        raise DescriptionError(f"the file has {len(data)} bytes", location=source, valid=f"at most {MAX_CHARACTERS}")
    encoding = "utf-8"
    for byte_order_mark, name in ((b"\xef\xbb\xbf", "utf-8-sig"), (b"\xff\xfe", "utf-16"), (b"\xfe\xff", "utf-16")):
        if data.startswith(byte_order_mark):
            encoding = name
            break
    else:
        declared = _DECLARED_ENCODING.search(data[:400])
        if declared:
            encoding = declared.group(1).decode("ascii")
            if not _TEXT_ENCODING.fullmatch(encoding):
                raise DescriptionError(f"unknown encoding {encoding!r}", location=f"{source}:1", valid="utf-8")
    if encoding.startswith("utf-8") and b"\x00" in data:
        raise DescriptionError("this is a binary file", location=source, valid="an XML file: URDF, xacro, SDF or MJCF")
    try:
        return data.decode(encoding), ()
    except (UnicodeDecodeError, LookupError):
        warning = ReaderWarning(f"not valid {encoding}: read as Latin-1", source, 1)
        return data.decode("latin-1"), (warning,)


def parse_xml(text: str | bytes, source: str = "<text>") -> tuple[XmlNode, tuple[ReaderWarning, ...]]:
    """Parse an XML text; return its root node, and warnings about tolerated faults.

    Args:
        text: The document.
        source: Name of the document in messages.

    Raises:
        DescriptionError: The text is not well formed, too large or too deep, or declares entities.
    """
    warnings: list[ReaderWarning] = []
    if isinstance(text, bytes):
        text, decode_warnings = decode_xml(text, source)
        warnings.extend(decode_warnings)
    if not text.strip():
        raise DescriptionError("the text is empty", location=source, valid="a URDF, xacro, SDF or MJCF document")
    if len(text) > MAX_CHARACTERS:
        raise DescriptionError(
            f"the text has {len(text)} characters", location=source, valid=f"at most {MAX_CHARACTERS}"
        )
    text = _blank_nonstandard_xml(text.removeprefix("\ufeff"), source, warnings)
    builder = _Builder(source, warnings)
    try:
        builder.parser.Parse(text, True)
    except expat.ExpatError as error:
        reason = expat.ErrorString(error.code)
        raise DescriptionError(f"not well-formed XML: {reason}", location=f"{source}:{error.lineno}") from None
    except (UnicodeError, ValueError):
        raise DescriptionError("the text has characters that are not allowed in XML", location=source) from None
    if builder.root is None:
        raise DescriptionError("the document has no element", location=source)
    builder.warn_nonstandard_names()
    return builder.root, tuple(warnings)


def _blank_nonstandard_xml(text: str, source: str, warnings: list[ReaderWarning]) -> str:
    """Replace what strict XML forbids and Gazebo accepts by blanks, without changing line numbers."""
    pieces: list[str] = []
    counted, line = 0, 1
    offset = 0

    def warn(message: str, position: int) -> None:
        nonlocal counted, line
        line += text.count("\n", counted, position)
        counted = position
        warnings.append(ReaderWarning(message, source, line))

    def escape_ampersands(start: int, end: int) -> str:
        part = text[start:end]
        ampersand = _UNESCAPED_AMPERSAND.search(part)
        if ampersand is None:
            return part
        warn("'&' that does not start an entity", start + ampersand.start())
        return _UNESCAPED_AMPERSAND.sub("&amp;", part)

    while (opening := _SECTION_START.search(text, offset)) is not None:
        start = opening.start()
        closing = _SECTION_END[opening.group()[:4]]
        end = text.find(closing, opening.end())
        if end < 0:
            break  # expat reports the unclosed construct
        end += len(closing)
        pieces.append(escape_ampersands(offset, start))
        section = text[start:end]
        if closing == "-->" and ("--" in section[4:-3] or section[4:-3].endswith("-")):
            warn("'--' inside a comment", start)
            section = "<!--" + "\n" * section.count("\n") + "-->"
        elif closing == "?>" and start > 0:
            if text[:start].strip():
                warn("XML declaration not at the start", start)
            section = "\n" * section.count("\n")
        pieces.append(section)
        offset = end
    pieces.append(escape_ampersands(offset, len(text)))
    return "".join(pieces)


class _Builder:
    """Callbacks for expat: build nodes, enforce limits, reject declarations."""

    def __init__(self, source: str, warnings: list[ReaderWarning]) -> None:
        self.root: XmlNode | None = None
        self._source = source
        self._warnings = warnings
        self._open_nodes: list[XmlNode] = []
        self._texts: list[list[str]] = []
        self._count = 0
        self._declared_prefixes = {"xml", "xmlns"}
        self._used_prefixes: dict[str, int] = {}
        self._double_colon: tuple[str, int] | None = None
        parser = expat.ParserCreate()
        parser.buffer_text = True
        parser.StartElementHandler = self._start
        parser.EndElementHandler = self._end
        parser.CharacterDataHandler = self._text
        parser.EntityDeclHandler = self._make_rejecting_handler("the document declares entities")
        parser.AttlistDeclHandler = self._make_rejecting_handler("the document declares attribute defaults")
        parser.SkippedEntityHandler = self._make_rejecting_handler("the document uses an undeclared entity")
        parser.ExternalEntityRefHandler = self._make_rejecting_handler("the document refers to an external entity")
        self.parser = parser

    def _make_rejecting_handler(self, problem: str) -> Callable[..., int]:
        def handler(*_: object) -> int:
            raise DescriptionError(
                f"{problem}, which is not allowed", location=self._location(), valid="plain XML without a DTD"
            )

        return handler

    def _location(self) -> str:
        return f"{self._source}:{self.parser.CurrentLineNumber}"

    def _start(self, tag: str, attributes: dict[str, str]) -> None:
        self._count += 1 + len(attributes)
        if self._count > MAX_NODES:
            raise DescriptionError(f"more than {MAX_NODES} elements and attributes", location=self._location())
        if len(self._open_nodes) >= MAX_DEPTH:
            raise DescriptionError(f"elements are nested more than {MAX_DEPTH} deep", location=self._location())
        line = self.parser.CurrentLineNumber
        node = XmlNode(tag, attributes, self._source, line)
        if ":" in tag:
            self._record_name(tag, line)
        for name in attributes:
            if ":" in name:
                if name.startswith("xmlns:"):
                    self._declared_prefixes.add(name[6:])
                else:
                    self._record_name(name, line)
        if self._open_nodes:
            self._open_nodes[-1].children.append(node)
        else:
            self.root = node
        self._open_nodes.append(node)
        self._texts.append([])

    def _record_name(self, name: str, line: int) -> None:
        if "::" in name:
            self._double_colon = self._double_colon or (name, line)
        else:
            self._used_prefixes.setdefault(name.partition(":")[0], line)

    def _text(self, text: str) -> None:
        self._texts[-1].append(text)

    def _end(self, _tag: str) -> None:
        self._open_nodes.pop().text = "".join(self._texts.pop())

    def warn_nonstandard_names(self) -> None:
        """Warn about names that strict XML with namespaces would reject, once per kind."""
        for prefix, line in self._used_prefixes.items():
            if prefix not in self._declared_prefixes:
                self._warnings.append(ReaderWarning(f"prefix '{prefix}:' is not declared", self._source, line))
        if self._double_colon:
            name, line = self._double_colon
            self._warnings.append(ReaderWarning(f"'::' in the name '{name}'", self._source, line))
