"""Operator documentation from markdown to plain text for a terminal.

Only the markdown that ONNX and ONNX Runtime use is known: paragraphs, lists, fenced and indented
code, tables, emphasis, links and a few HTML tags. Formulas such as ``a * b`` and placeholders such
as ``<T>`` stay as they are.
"""

from __future__ import annotations

import re
import textwrap
from dataclasses import dataclass

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
        self.bullet = ""
        self.indent = 0
        self.content = 0
        """Column where the text of the current list item begins; 0 outside lists."""
        self.preformatted = False
        self.blank = False
        """True when the last line was empty."""
        self.after_blank = True

    def read(self, lines: list[str]) -> list[Block]:
        fenced = False
        for line in lines:
            if _FENCE.match(line):
                self.end()
                fenced = not fenced
                self.start(preformatted=fenced)
                if not fenced:
                    self.preformatted = False
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
            if self.preformatted and self.lines:
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
            self.blank = True
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
                self.start(indent=self.content if self.content else 0)
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
        self.bullet, self.preformatted = "", False
