"""What is in the name of an engine's layer: names of nodes and tensors, ranges, copies, helpers."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from dld_tui.core.dataclass import dataclass

_PROFILE = re.compile(r"\s*\[profile \d+\]$")
_COPY = re.compile(r"Reformatting CopyNode for (?:Input|Output) Tensor \d+ to (?P<of>.+)", re.S)
_BINDING_COPY = re.compile(r"Reformatting CopyNode for Network (?:Input|Output) (?P<of>.+)", re.S)
_OLD_COPY = re.compile(r"(?P<of>.+) (?:(?:in|out)put reformatter \d+|copy)$", re.S)
_RANGE = re.compile(r"\{ForeignNode\[(?P<inner>.*?)\]\}(?:_myl[\d_]+)?", re.S)
_DLA_LIST = re.compile(r"\{(?!ForeignNode\[)(?P<inner>[^{}\[\]]+)\}")
_DLA_HELPER = re.compile(r"data to nvm|.+ (?:to|from) nvm|.+ (?:copy )?finish", re.S)
_TENSOR = re.compile(r"onnx::\w+|.+_output_\d+(?:_clone_\d+)?|.+_copy_(?:in|out)put(?:_\d+)?", re.S)
"""Names of tensors, which copies of them are called by."""
_UNNAMED = r"\(Unnamed Layer\* \d+\) \[\w+\]"
_HELPER = re.compile(
    rf"{_UNNAMED}(?:_{_UNNAMED})*(?:_output)?|ONNXTRT_\w+|.+_InputLayer|tmp_refittable_weight\w*|(?:__mye\w*|__myl\w*)|\[trainStation\d*\]"
)
_TOKENS = re.compile(
    rf"(?P<unnamed>{_UNNAMED}(?:_{_UNNAMED})*(?:_output)?)|"
    r"(?P<between> \+ | \|\| )|(?P<comma>, )|(?P<pwn>PWN\()|(?P<open>\()|(?P<close>\))"
)
_UNNAMED_LAYERS = re.compile(rf"{_UNNAMED}(?:_{_UNNAMED})*(?:_output)?")
_ANYWHERE = re.compile(r"(?=( \+ | \|\| |, |PWN\(|\)))")
_BESIDE = re.compile(
    r"(?:copied_)?(?:un)?(?:squeeze|reshape|shuffle)_(?:node_)?(?:after|before|between)_(?P<of>.+)",
    re.S,
)
_OF_NODE = re.compile(r"_OutputLayer$")
"""The suffix of an If in the name of the layer of its results."""
_MYELIN = re.compile(r"_myl\d+(?:_\d+)*$")
_CLONE = re.compile(r"_clone_\d+$")
"""A layer that does the work of a node once more, for another reader."""
_NUMBERED = re.compile(r"_\d+$")
_WEIGHTS = re.compile(r"\.(?:weight|bias)$|:\d+$")
_MOST_COPIES = 8
_MOST_COMMAS = 8
_LONGEST = 200_000


@dataclass(frozen=True)
class LayerName:
    """A layer's name without what TensorRT puts around it."""

    text: str
    inserted: bool
    """It is a copy for the layer that `text` names."""
    of_binding: bool = False
    """`text` is an input or output of the network, not a layer."""


def bare_name(name: str, known: Callable[[str], bool]) -> LayerName:
    """Remove the parts of a name that mark a copy for another layer, or a profile.

    Args:
        name: The name in the engine.
        known: Returns whether a text is the name of an ONNX node, which is left unchanged.
    """
    text = name[:_LONGEST].strip()
    inserted = False
    for _ in range(_MOST_COPIES):
        if known(text):
            break
        bare = _PROFILE.sub("", text)
        if bare != text:
            text = bare
            continue
        binding = _BINDING_COPY.fullmatch(text)
        if binding is not None:
            return LayerName(binding["of"], True, of_binding=True)
        copy = _COPY.fullmatch(text) or _OLD_COPY.fullmatch(text)
        if copy is None:
            break
        text, inserted = copy["of"], True
    return LayerName(text, inserted)


def ranges_of(text: str) -> tuple[list[str], str]:
    """Return the content of each range, and the text with placeholders in their place."""
    return [match["inner"] for match in _RANGE.finditer(text)], _RANGE.sub("ONNXTRT_range", text)


def ends_of(inner: str) -> list[tuple[str, str]]:
    """Return the ways to split the content of a range into the first and the last layer."""
    cuts = [match.start() for match in re.finditer(r"(?=\.\.\.)", inner)]
    return [(inner[:cut], inner[cut + 3 :]) for cut in cuts if inner[:cut] and inner[cut + 3 :]]


def listed_names(text: str, known: Callable[[str], bool] | None) -> list[str] | None:
    """Return the nodes of a part that runs on a DLA, ``{A,B,C}``; None for another name.

    A comma may be part of a name: with a model, parts are joined until they are one of its nodes.
    """
    match = _DLA_LIST.fullmatch(text)
    if match is None:
        return None
    parts = match["inner"].split(",")
    if known is None:
        return parts
    names: list[str] = []
    at = 0
    while at < len(parts):
        ends = range(min(len(parts), at + _MOST_COMMAS), at, -1)
        end = next((end for end in ends if known(",".join(parts[at:end]))), at + 1)
        names.append(",".join(parts[at:end]))
        at = end
    return names


@dataclass(frozen=True)
class Piece:
    """A part of a layer's name."""

    text: str
    known: bool
    """It is the name of a node of the model."""
    doubtful: bool = False
    """It contains separators, and its parts are names as well."""


def split_name(
    text: str, known: Callable[[str], bool] | None = None, longest: int = 0
) -> list[Piece]:
    """Split the name of a fused layer into the names of its parts.

    The split with the fewest unknown parts wins, and then that with the fewest parts, which are the
    longest names.

    Args:
        text: The name, without copies and ranges.
        known: Returns whether a text is the name of an ONNX node; None without a model.
        longest: Length of the longest name with characters of separators in it.
    """
    if known is not None and known(text):
        return [Piece(text, True, _is_doubtful(text, known))]
    separators = dict(
        _possible_separators(text) if known is not None else _certain_separators(text)
    )
    cuts = sorted({0, len(text), *separators, *separators.values()})
    number = {cut: at for at, cut in enumerate(cuts)}
    last = len(cuts) - 1
    best: list[tuple[int, int, int, bool]] = [(0, 0, last, False)] * (last + 1)
    for at in range(last - 1, -1, -1):
        cut = cuts[at]
        own = 0 if cut in separators else 1
        after = number[separators[cut]] if cut in separators else at + 1
        options = [(best[after][0] + own, best[after][1] + own, after, False)]
        if known is not None:
            for end in range(at + 1, last + 1):
                if end > at + 1 and cuts[end] - cut > longest:
                    break
                if known(text[cut : cuts[end]]):
                    options.append((best[end][0], best[end][1] + 1, end, True))
        best[at] = min(options, key=lambda way: (way[0], way[1], -way[2]))
    pieces: list[Piece] = []
    at = 0
    while at < last:
        _, _, end, is_name = best[at]
        part = text[cuts[at] : cuts[end]]
        if known is not None and is_name:
            pieces.append(Piece(part, True, _is_doubtful(part, known)))
        elif part.strip() and cuts[at] not in separators:
            pieces.append(Piece(part.strip(), False))
        at = end
    return pieces


def _is_doubtful(part: str, known: Callable[[str], bool]) -> bool:
    """Return whether a name with separators in it is also a join of other names."""
    separators = dict(_certain_separators(part))
    if not separators:
        return False
    starts = [0, *separators.values()]
    ends = [*separators, len(part)]
    inner = [part[start:end] for start, end in zip(starts, ends, strict=True) if start < end]
    return bool(inner) and all(map(known, inner))


def _certain_separators(text: str) -> Iterator[tuple[int, int]]:
    """Yield where separators are; brackets and commas count where they belong to ``PWN(``."""
    around: list[str] = []
    for match in _TOKENS.finditer(text):
        kind = match.lastgroup or ""
        if kind in ("pwn", "open"):
            around.append(kind)
        closed = around.pop() if kind == "close" and around else ""
        inside = around[-1:] == ["pwn"]
        if kind in ("between", "pwn") or (kind == "comma" and inside) or closed == "pwn":
            yield match.span()


def _possible_separators(text: str) -> Iterator[tuple[int, int]]:
    """Yield possible separators, including overlapping ones: the names of the model decide."""
    helpers = [match.span() for match in _UNNAMED_LAYERS.finditer(text)]
    helpers.append((len(text), len(text)))
    at = 0
    for match in _ANYWHERE.finditer(text):
        while helpers[at][1] <= match.start() and at < len(helpers) - 1:
            at += 1
        if not helpers[at][0] <= match.start() < helpers[at][1]:
            yield match.span(1)


def may_be_split(name: str) -> bool:
    """Return whether a name contains characters of separators."""
    return " " in name or "," in name or ")" in name or "PWN(" in name or "|" in name or "+" in name


def is_helper(text: str) -> bool:
    """Return whether a part is of TensorRT or its parser, and of no ONNX node."""
    return _HELPER.fullmatch(text) is not None or _DLA_HELPER.fullmatch(text) is not None


def looks_like_tensor(text: str) -> bool:
    """Return whether a part is the name of a tensor, as copies in place are called."""
    return _TENSOR.fullmatch(text) is not None


def looks_like_weights(text: str) -> bool:
    """Return whether a part is probably the name of weights, which fused layers contain, too."""
    return _WEIGHTS.search(text) is not None


def is_myelin(text: str) -> bool:
    """Return whether a name is from the compiler of fused parts, so that it names no node."""
    return text.startswith("__my")


def original_names(text: str) -> list[tuple[str, bool]]:
    """Return candidates for the original name of a part, and whether it is only next to them."""
    beside = _BESIDE.fullmatch(text)
    if beside is not None:
        return [(beside["of"], True)]
    names = []
    plain = _OF_NODE.sub("", text)
    if plain != text:
        names.append((plain, False))
    cloned = _CLONE.sub("", text)
    if cloned != text:
        names.append((cloned, False))
    compiled = _MYELIN.sub("", text)
    if compiled != text:
        names.append((compiled, False))
    # Layers of the same node get numbers behind its name.
    names.append((_NUMBERED.sub("", compiled), False))
    return [(name, is_beside) for name, is_beside in names if name and name != text]
