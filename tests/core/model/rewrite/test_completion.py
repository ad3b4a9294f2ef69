"""What the word that is being typed may go on with."""

from __future__ import annotations

import pytest

from dld_tui.core.model.document.document import Document
from dld_tui.core.model.rewrite.query import Completion
from tests.support.models import parse

MODEL = """
<ir_version: 10, opset_import: ["" : 18, "com.microsoft" : 1]>
g (float[1, 1, 4, 4] x, float[1, 1, 1, 1] w) => (float[1, 1, P, Q] y)
{
    [stem] a = Conv <group = 1> (x, w)
    [block_one] b = Conv (a, w)
    [block_two] c = Concat <axis = 0> (b, b)
    y = com.microsoft.FastGelu(c)
}
"""


@pytest.mark.parametrize(
    ("text", "whole"),
    [
        ("Con", "Conv"),  # the more frequent one
        ("Conc", "Concat"),
        ("con", "contains"),  # of the same case
        ("Conv", None),
        ("Conv wh", "Conv where"),
        ("Conv where gr", "Conv where group"),
        ("dil", "dilations"),  # not set, but the operator has it
        ("Conv where in[1].sh", "Conv where in[1].shape"),
        ("x where x.con", "x where x.constant"),
        ("Conv where lea", "Conv where leading("),
        ("has ax", "has axis"),
        ("@gr", "@group"),
        ("name = bl", "name = block_one"),
        ("name contains 'block_t", "name contains 'block_two"),
        ("name = block_twoo", None),
        ("Relu(Co", "Relu(Conv"),
        ("Relu(com.micro", "Relu(com.microsoft.FastGelu"),
        ("gel", "gelu"),
        ("group > 1 and ", None),
        ("zzz", None),
        ("", None),
    ],
)
def test_last_word_is_completed(text: str, whole: str | None) -> None:
    document = Document(parse(MODEL))
    assert Completion(document.main.nodes, ["gelu"]).complete(text) == whole
