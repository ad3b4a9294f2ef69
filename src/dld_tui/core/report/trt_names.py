"""What the name of a TensorRT layer says of its work: the profile has nothing else."""

from __future__ import annotations

import re
from functools import lru_cache

from dld_tui.core.operators.categories import category_of, onnx_operators
from dld_tui.core.report.groups import UNKNOWN

DLA = "DLA"
MYELIN = "Myelin"
DLA_TRANSFER = "DLA transfer"
DLA_WAIT = "DLA wait"
_FORMS = (
    (re.compile(r"Reformatting CopyNode|\breformatter \d+$|copy$"), "Reformat"),
    (re.compile(r"^data to nvm$| (?:to|from) nvm$"), DLA_TRANSFER),
    (re.compile(r" (?:copy )?finish$"), DLA_WAIT),
    (re.compile(r"^\{(?!ForeignNode\[)[^{}\[\]]*\}$"), DLA),
    (re.compile(r"^\{ForeignNode\["), "ForeignNode"),
    (re.compile(r"^\[trainStation", re.IGNORECASE), "TrainStation"),
    (re.compile(r"^__my[le]"), MYELIN),
)
_COMPILED = re.compile(r"_myl\d+(?:_\d+)*$")
"""Behind the name of a node that Myelin computes alone."""
_SEPARATORS = re.compile(r" \+ | \|\| |[(){}\[\],;|]")
_ENDING = re.compile(r"(?:[_:-]+(?:\d+|output|input))+$")
_BESIDE = re.compile(
    r"(?:copied_)?(?P<of>unsqueeze|squeeze|reshape|shuffle|transpose)_(?:node_)?"
    r"(?:after|before|between)_"
)
"""What TensorRT puts beside a node."""
_UNNAMED = re.compile(r"\(Unnamed Layer\* \d+\) \[(?P<of>\w+)\]")
_MOST = 4
_LONGEST = 4000

# PyTorch and TensorFlow name nodes after operators of their own.
_WORDS = {name.lower(): name for name in onnx_operators()} | {
    **dict.fromkeys(("conv1d", "conv2d", "conv3d", "convolution"), "Conv"),
    **dict.fromkeys(("convtranspose2d", "deconv", "deconvolution"), "ConvTranspose"),
    **dict.fromkeys(("maxpool1d", "maxpool2d", "maxpool3d"), "MaxPool"),
    **dict.fromkeys(("avgpool", "avgpool1d", "avgpool2d", "avgpool3d"), "AveragePool"),
    **dict.fromkeys(("batchnorm", "batchnorm2d"), "BatchNormalization"),
    "linear": "Gemm", "layernorm": "LayerNormalization",
}  # fmt: skip


@lru_cache(maxsize=16_384)
def layer_type(name: str) -> str:
    """Return a type, e.g. ``Conv + Relu``: the ONNX operators in the name, or the layer's form."""
    name = name[:_LONGEST]
    for form, title in _FORMS:
        if form.search(name):
            return title
    found = dict.fromkeys(filter(None, map(_operator, _SEPARATORS.split(name))))
    if not found:  # nothing but what TensorRT put in
        beside = (*_BESIDE.finditer(name), *_UNNAMED.finditer(name))
        found = dict.fromkeys(one["of"].capitalize() for one in beside)
    words = list(found)
    if not words and _COMPILED.search(name):
        return MYELIN
    return " + ".join(words[:_MOST]) + (" + …" if len(words) > _MOST else "") if words else UNKNOWN


def _operator(part: str) -> str:
    """Return the operator that a part of a name is, but for its path and number; else nothing."""
    word = _ENDING.sub("", _COMPILED.sub("", part.strip()).rpartition("/")[2])
    if not word:
        return ""
    if category_of(word) != "custom":
        return word
    small = word.removeprefix("node_").lower()
    return _WORDS.get(small) or _WORDS.get(small.replace("_", ""), "")
