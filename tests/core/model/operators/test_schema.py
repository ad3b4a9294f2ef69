"""Operator documentation as plain text."""

from __future__ import annotations

import pytest

from dld_tui.core.model.operators.registry import known_domains, newest_opset, operators
from dld_tui.core.model.operators.schema import first_sentence, inline, plain, wrapped


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


def test_paragraphs_are_joined_and_wrapped() -> None:
    assert plain("\nOne two\nthree.\n\nFour.\n") == "One two three.\n\nFour."
    assert wrapped("One two three.\n\nFour.", 8) == ["One two", "three.", "", "Four."]
    assert plain("one<br>two") == "one\n\ntwo"


def test_list_items_hang() -> None:
    text = "List:\n* first item\n  goes on\n* second\n\n1) numbered\n"
    assert wrapped(text, 14) == [
        "List:", "• first item", "  goes on", "• second", "", "1) numbered",
    ]  # fmt: skip


def test_a_sentence_at_the_margin_ends_a_list() -> None:
    assert plain("* Ht = x\nThis operator has optional inputs.").splitlines() == [
        "• Ht = x",
        "",
        "This operator has optional inputs.",
    ]


def test_code_is_never_wrapped() -> None:
    code = "Example:\n```\ndata = [\n    [1, 2, 3, 4, 5, 6, 7, 8],\n]\n```\nDone."
    assert wrapped(code, 12) == [
        "Example:", "", "  data = [", "      [1, 2, 3, 4, 5, 6, 7, 8],", "  ]", "", "Done.",
    ]  # fmt: skip
    assert wrapped("Text:\n\n    x = *a*\n\n    y\n\nEnd.", 40) == [
        "Text:", "", "  x = *a*", "", "  y", "", "End.",
    ]  # fmt: skip


def test_code_goes_on_while_lines_are_two_columns_in() -> None:
    assert wrapped("Text:\n\n\n    a\n\n  b\n c\nEnd.", 40) == [
        "Text:", "", "    a", "", "  b", "", "c End.",
    ]  # fmt: skip


def test_a_heading_ends_a_list() -> None:
    text = wrapped("* item\n# Part\n    x = 1\nEnd.", 40)
    assert text == ["• item", "", "Part", "", "  x = 1", "", "End."]


def test_code_under_a_list_item_is_indented_below_it() -> None:
    assert wrapped("* input:\n        for (;;)\n          x", 40) == [
        "• input:",
        "",
        "  for (;;)",
        "    x",
    ]


def test_tables_keep_their_rows() -> None:
    assert wrapped("T:\n| a | b |\n| - | - |\n", 6) == ["T:", "", "  | a | b |", "  | - | - |"]


def test_references_to_files_beside_the_page_are_cut() -> None:
    text = (
        "It broadcasts; for more details please check [the doc](Broadcasting.md).\n"
        "See [the doc](IR.md) for more details about the representation of optional arguments."
        " An empty string."
    )
    assert plain(text) == "It broadcasts. An empty string."


@pytest.mark.parametrize(
    ("markdown", "sentence"),
    [
        ("Does X. Does Y.", "Does X."),
        ("Pads, e.g. With 0. Then more.", "Pads, e.g. With 0."),
        ("```\ncode\n```\nText", "Text"),
        ("General product:\nhttps://example.org/x#3\n\nMore", "General product"),
        ("As in https://example.org. It is.", "As in."),
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


def test_a_line_has_room_for_a_word_whatever_the_width() -> None:
    assert wrapped("one two three four", 2) == ["one two", "three", "four"]
    assert wrapped("* one two three", 2) == ["• one two", "  three"]
