"""What the name of a TensorRT layer says of its work: the profile has nothing else."""

from __future__ import annotations

import re

from dld_tui.core.operators.categories import category_of
from dld_tui.core.report.groups import UNKNOWN

_FORMS = (
    (re.compile(r"Reformatting CopyNode|\breformatter \d+$|copy$"), "Reformat"),
    (re.compile(r"^\{ForeignNode\["), "ForeignNode"),
    (re.compile(r"^\[trainStation", re.IGNORECASE), "TrainStation"),
    (re.compile(r"^__myl|_myl\d+_\d+$"), "Myelin"),
)
_SEPARATORS = re.compile(r" \+ | \|\| |[(){}\[\],;|]")
_ENDING = re.compile(r"(?:[_:]+(?:\d+|output|input))+$")
_MOST = 4
_LONGEST = 4000


def layer_type(name: str) -> str:
    """Return a type, e.g. ``Conv + Relu``: the ONNX operators in the name, or the layer's form."""
    name = name[:_LONGEST]
    for form, title in _FORMS:
        if form.search(name):
            return title
    found: dict[str, None] = {}
    for part in _SEPARATORS.split(name):
        word = _ENDING.sub("", part.strip().rpartition("/")[2])
        if word and category_of(word) != "custom":
            found[word] = None
    words = list(found)
    return " + ".join(words[:_MOST]) + (" + …" if len(words) > _MOST else "") if words else UNKNOWN
