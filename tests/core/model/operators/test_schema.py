"""Operator documentation as plain text."""

from __future__ import annotations

import pytest

from dld_tui.core.model.operators.registry import known_domains, newest_opset, operators
from dld_tui.core.model.operators.schema import blocks, first_sentence, inline, wrapped
from tests.support.recorded import Recorded


@pytest.mark.parametrize(
    ("markdown", "text"),
    [
        ("a **bold** and *slanted* word", "a bold and slanted word"),
        ("`axis` of `W[iofc]`", "axis of W[iofc]"),
        ("A' * B' + beta * C", "A' * B' + beta * C"),
        ("f(Xt*(Wz^T) + Ht-1*(Rz^T) + Wbz)", "f(Xt*(Wz^T) + Ht-1*(Rz^T) + Wbz)"),
        ("2**3 and x_1_2", "2**3 and x_1_2"),
        ("[paper](https://arxiv.org/abs/1)", "paper (https://arxiv.org/abs/1)"),
        ("see [the doc](IR.md)", "see the doc"),
        ("a [b, c] (d)", "a [b, c] (d)"),
        (r"\"sizes\" \[x\] \< 3", '"sizes" [x] < 3'),
        ("one <i>two</i> Tensor<T> &lt;3", "one two Tensor<T> <3"),
    ],
)
def test_markup_is_cut_and_formulas_stay(markdown: str, text: str) -> None:
    assert inline(markdown) == text


TEXTS = {
    "paragraphs": "\nOne two\nthree four-five.\n\nFour.<br>Five.\n",
    "lists": """List:
* first item
  goes on
* second

1) numbered

   more of it
   - inner
     goes on as well
   back
 outside

* Ht = x
This operator has optional inputs.
1. one
lower case goes on
""",
    "fences": """Example:

```
data = [
    [1, 2, 3, 4, 5, 6, 7, 8],  \t

]
```
* Done
~~~
* x
""",
    "indented": """Text:

    x = *a*

    y

End.


    a

  b
 c
End.
\tx
""",
    "headings": """* item
# Part #
    x = 1
End.
## Other
  text
* item
# Last
goes on
""",
    "code in lists": """* input:
        for (;;)
          x
    * deep
  z
""",
    "tables": "T:\n| a | b |\n| - | - |\n\n+--+\n",
    "dead references": """
It broadcasts; for more details please check [the doc](Broadcasting.md).
See [the doc](IR.md) for more details about the representation of optional arguments. Empty.
""",
}


def test_documentation_becomes_lines(recorded: Recorded) -> None:
    made = {}
    for title, markdown in TEXTS.items():
        told = [
            f"{block.bullet!r} {block.indent} {block.preformatted:d} {block.after_blank:d}"
            f" {block.text!r}"
            for block in blocks(markdown)
        ]
        lines = [f"{width}: {'|'.join(wrapped(markdown, width))}" for width in (None, 14, 2)]
        made[title] = "\n".join([*markdown.splitlines(), *told, *lines])
    recorded("documentation", made)


@pytest.mark.parametrize(
    ("markdown", "sentence"),
    [
        ("Does X. Does Y.", "Does X."),
        ("Pads, e.g. With 0. Then more.", "Pads, e.g. With 0."),
        ("```\ncode\n```\nText", "Text"),
        ("General product:\nhttps://example.org/x#3\n\nMore", "General product"),
        ("As in https://example.org. It is.", "As in."),
        ("One. Two. Three.", "One."),
        ("", ""),
    ],
)
def test_the_summary_is_the_first_sentence(markdown: str, sentence: str) -> None:
    assert first_sentence(markdown) == sentence


def test_a_long_summary_is_cut_at_a_word() -> None:
    assert first_sentence("word " * 100, limit=20) == "word word word …"


def test_all_documentation_fits_the_width_but_for_code() -> None:
    imports = {domain: newest_opset(domain) or 1 for domain in known_domains()}
    for schema in operators(imports):
        lines = schema.doc_lines(60)
        assert [line for line in lines if len(line) > 60 and not line.startswith("  ")] == []
        assert "<br" not in schema.doc
