"""The signature and the documentation of one operator version."""

from __future__ import annotations

import re
import textwrap
from dataclasses import field
from functools import cached_property
from typing import TYPE_CHECKING, TypeAlias

from dld_tui.core.dataclass import dataclass
from dld_tui.core.model.operators.categories import category_of

if TYPE_CHECKING:
    from typing import Any

    import numpy as np

# Only the markdown that ONNX and ONNX Runtime use is known: paragraphs, lists, fenced and indented
# code, tables, emphasis, links and a few HTML tags. Formulas such as `a * b` and placeholders such
# as `<T>` stay as they are.

_FENCE = re.compile(r"\s*(```|~~~)")
_ITEM = re.compile(r"(\s*)([-*+]|\d{1,2}[.)])\s+(?=\S)")
_HEADING = re.compile(r"\s{0,3}#{1,6}\s+(.*?)\s*#*\Z")
_BREAK = re.compile(r"<br\s*/?>", re.IGNORECASE)
_TAG = re.compile(r"</?(?:a|b|code|dd|dl|dt|em|i|li|ol|p|pre|strong|sub|sup|tt|ul)\b[^>]*>", re.I)
_LINK = re.compile(r"\[([^\]]+)\]\(([^)\s]+)\)")
_CODE_SPAN = re.compile(r"(`+)(.+?)\1")
_EMPHASIS = re.compile(
    r"(?:(?<=[\s(\"'])|^)(\*{1,3}|__)(?=[^\s*])([^*]*?[^\s*])\1(?=[\s.,:;!?)\"'/]|$)"
)
_ESCAPE = re.compile(r"\\([\\`*_{}\[\]()#+.!<>|\"-])")
_SENTENCE_END = re.compile(r"(?<=[^.\s][.!?])(?<!e\.g\.)(?<!i\.e\.)\s+(?=[A-Z\"'(])")
_ADDRESS = re.compile(r"\s*\(?https?://\S+")
_DEAD_REFERENCES = (
    re.compile(r";\s*for more details please check \[the doc\]\([A-Za-z]+\.md\)"),
    re.compile(
        r"\s*See \[the doc\]\(IR\.md\) for more details about the representation of optional"
        r" arguments\."
    ),
)
"""Sentences that point at files beside the page that the text was written for."""

_CODE_INDENT = 4
_PARAGRAPH_STARTS = frozenset("*ABCDEFGHIJKLMNOPQRSTUVWXYZ")


@dataclass(frozen=True)
class Block:
    """A paragraph, a list item or a run of preformatted lines."""

    text: str
    """One line without breaks; lines with breaks when preformatted."""
    bullet: str = ""
    """What stands before a list item, e.g. ``•`` or ``1.``."""
    indent: int = 0
    """Columns to the left of the block."""
    preformatted: bool = False
    after_blank: bool = True
    """True when the text has an empty line before it."""


def blocks(markdown: str) -> list[Block]:
    """Return the parts of a markdown text, in order."""
    for pattern in _DEAD_REFERENCES:
        markdown = pattern.sub("", markdown)
    return _Reader().read(textwrap.dedent(_BREAK.sub("\n\n", markdown).expandtabs(4)).splitlines())


def plain(markdown: str) -> str:
    """Return markdown as plain text: one line a paragraph or item, an empty line between parts."""
    return "\n".join(wrapped(markdown, None))


def wrapped(markdown: str, width: int | None) -> list[str]:
    """Return markdown as plain lines of at most `width` columns; None does not wrap.

    Preformatted lines are never wrapped, because that would destroy what they show.
    """
    lines: list[str] = []
    for block in blocks(markdown):
        if lines and block.after_blank:
            lines.append("")
        lines.extend(_block_lines(block, width))
    return lines


def first_sentence(markdown: str, limit: int = 160) -> str:
    """Return the first sentence of the first paragraph, cut at a word near `limit` characters."""
    for block in blocks(markdown):
        if block.preformatted:
            continue
        sentence = _SENTENCE_END.split(_ADDRESS.sub(_full_stop, block.text), maxsplit=1)[0]
        return textwrap.shorten(sentence.rstrip(" :"), limit, placeholder=" …")
    return ""


def inline(markdown: str) -> str:
    """Return one paragraph's markdown without its markup."""
    parts: list[str] = []
    position = 0
    for span in _CODE_SPAN.finditer(markdown):
        parts.append(_prose(markdown[position : span.start()]))
        parts.append(span.group(2).strip())
        position = span.end()
    parts.append(_prose(markdown[position:]))
    return re.sub(r"\s+", " ", "".join(parts)).strip()


def _full_stop(address: re.Match[str]) -> str:
    return "." if address.group().endswith((".", ".)")) else ""


def _prose(text: str) -> str:
    text = _TAG.sub("", text)
    text = _LINK.sub(_link_text, text)
    text = _EMPHASIS.sub(r"\2", text)
    import html  # lazy: its table of entities is long

    return _ESCAPE.sub(r"\1", html.unescape(text))


def _link_text(match: re.Match[str]) -> str:
    title, address = match.groups()
    if not address.startswith(("http://", "https://")) or title == address:
        return title
    return f"{title} ({address})"


def _block_lines(block: Block, width: int | None) -> list[str]:
    margin = " " * block.indent
    if block.preformatted:
        return [(margin + line).rstrip() for line in block.text.split("\n")]
    head = f"{margin}{block.bullet} " if block.bullet else margin
    if width is None:
        return [head + block.text]
    return textwrap.wrap(
        block.text,
        max(width, len(head) + 8),
        initial_indent=head,
        subsequent_indent=" " * len(head),
        break_on_hyphens=False,
    )


class _Reader:
    """Collects lines into blocks."""

    def __init__(self) -> None:
        self.blocks: list[Block] = []
        self.lines: list[str] = []
        """Lines of the block that is being read."""
        self.content = 0
        """Column where the text of the current list item begins; 0 outside lists."""
        self.blank = False
        """True when the last line was empty."""
        self.start()

    def read(self, lines: list[str]) -> list[Block]:
        fenced = False
        for line in lines:
            if _FENCE.match(line):
                self.end()
                fenced = not fenced
                self.start(preformatted=fenced)
            elif fenced:
                self.lines.append(line.rstrip())
            else:
                self.line(line)
        self.end()
        return self.blocks

    def line(self, line: str) -> None:
        """Read one line outside a fence."""
        if not line.strip():
            self.blank = True
            if self.preformatted:
                self.lines.append("")
            return
        column = len(line) - len(line.lstrip())
        item = _ITEM.match(line)
        heading = _HEADING.match(line)
        if self._is_code(line, column, item is not None):
            if not self.preformatted:
                self.end()
                self.start(preformatted=True)
            self.lines.append(line.rstrip())
        elif heading:
            self.end()
            self.content = 0
            self.start()
            self.lines.append(heading.group(1))
            self.end()
        elif item:
            self.end()
            marker = item.group(2)
            self.start(bullet="•" if marker in "-*+" else marker, indent=column)
            self.content = item.end()
            self.lines.append(line[item.end() :])
        else:
            # The texts often end a list without an empty line, at the left margin.
            ends_list = self.content and column == 0 and line[0] in _PARAGRAPH_STARTS
            if self.blank or self.preformatted or ends_list or not self.lines:
                self.end()
                if column < self.content:
                    self.content = 0
                self.start(indent=self.content)
            self.lines.append(line.strip())
        self.blank = False

    def _is_code(self, line: str, column: int, is_item: bool) -> bool:
        if line.lstrip().startswith("|") or line.lstrip().startswith("+--"):
            return True
        if self.preformatted:
            return column >= self.content + 2
        deep = column >= self.content + _CODE_INDENT
        return deep and not (is_item and self.content)

    def start(self, *, bullet: str = "", indent: int = 0, preformatted: bool = False) -> None:
        """Begin a block."""
        self.bullet, self.indent, self.preformatted = bullet, indent, preformatted
        self.after_blank = self.blank or not bullet
        self.blank = False

    def end(self) -> None:
        """Close the block that is being read."""
        lines, self.lines = self.lines, []
        if self.preformatted:
            text = textwrap.dedent("\n".join(lines)).strip("\n").rstrip()
            indent = max(2, self.content)
        else:
            text, indent = inline(" ".join(lines)), self.indent
        if text:
            block = Block(text, self.bullet, indent, self.preformatted, self.after_blank)
            self.blocks.append(block)


AttributeValue: TypeAlias = (
    "int | float | bytes | list[int] | list[float] | list[bytes] | np.ndarray[Any, Any] | None"
)


@dataclass(frozen=True)
class Formal:
    """One formal input or output."""

    name: str
    description: str
    """Markdown, as the operator's authors wrote it."""
    types: tuple[str, ...]
    """Accepted types in ONNX notation, e.g. ``tensor(float)``, sorted."""
    type_name: str
    """The type constraint's name, e.g. ``T``; the type itself where there is only one."""
    option: str = "single"
    """``single``, ``optional`` or ``variadic``."""
    min_arity: int = 1
    """How many values a variadic one needs at least."""
    homogeneous: bool = True
    """True when all values of a variadic one have the same type."""


@dataclass(frozen=True)
class AttributeSchema:
    """One attribute that an operator knows."""

    name: str
    kind: str
    """``int``, ``floats``, ``graph`` …: the names of :attr:`..document.node.Attribute.kind`."""
    required: bool
    default: AttributeValue
    """The value when the attribute is left out, None when there is no fixed one."""
    description: str
    """Markdown, as the operator's authors wrote it."""


@dataclass(frozen=True)
class TypeConstraint:
    """The types that one name of a signature stands for."""

    name: str
    types: tuple[str, ...]
    description: str


@dataclass(frozen=True)
class OperatorSchema:
    """What an operator takes, gives and does, in one version of its operator set."""

    name: str
    domain: str
    """The operator set, ``""`` for ai.onnx."""
    since_version: int
    """The first opset version with this signature."""
    deprecated: bool
    inputs: tuple[Formal, ...]
    outputs: tuple[Formal, ...]
    attributes: tuple[AttributeSchema, ...]
    """Required ones first, then by name."""
    type_constraints: tuple[TypeConstraint, ...]
    markdown: str = field(repr=False)
    """The documentation as its authors wrote it."""
    min_inputs: int = 0
    max_inputs: int | None = None
    """None when there is no limit."""
    min_outputs: int = 0
    max_outputs: int | None = None
    """None when there is no limit."""

    @property
    def category(self) -> str:
        """One of :data:`~dld_tui.core.model.operators.categories.CATEGORIES`."""
        return category_of(self.name, self.domain)

    @cached_property
    def summary(self) -> str:
        """The first sentence of the documentation; empty where there is none."""
        return first_sentence(self.markdown)

    @cached_property
    def doc(self) -> str:
        """The documentation as plain text, one line a paragraph."""
        return plain(self.markdown)

    def attribute(self, name: str) -> AttributeSchema | None:
        """Return one attribute by name, or None."""
        return next((item for item in self.attributes if item.name == name), None)

    def input(self, index: int) -> Formal | None:
        """Return the formal of the actual input at `index`, None beyond the last one."""
        return _at(self.inputs, index)

    def output(self, index: int) -> Formal | None:
        """Return the formal of the actual output at `index`, None beyond the last one."""
        return _at(self.outputs, index)

    def doc_lines(self, width: int) -> list[str]:
        """Return the documentation wrapped to `width` columns; code is left as it is."""
        return wrapped(self.markdown, width)


def _at(formals: tuple[Formal, ...], index: int) -> Formal | None:
    if index < len(formals):
        return formals[index]
    return formals[-1] if formals and formals[-1].option == "variadic" else None
