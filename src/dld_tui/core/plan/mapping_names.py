"""What names and metadata of an engine layer say of its ONNX nodes.

TensorRT makes the names of fused layers from those of the ONNX nodes: ``A + B`` (a chain), ``A ||
B`` (side by side), ``PWN(A, PWN(B))`` (pointwise work), ``{ForeignNode[FIRST...LAST]}`` (a part
of the graph). It adds copies (``Reformatting CopyNode for Input Tensor 0 to A``) and helpers that
stand for no node. Names of ONNX nodes may contain any of these separators, so the names of the
model, where it is known, decide: the longest one that fits counts.

The parser gives each layer that it adds a text ``[ONNX Layer: NODE | ...]``; a fused layer has
those of all its parts, between the control characters U+001E and U+001F (a log loses these).
After the bar follow what the node is in, the innermost first: calls of local functions, ``CALL
(FUNCTION)``, and branches, ``GRAPH (then_branch) | NODE (If)``; bodies of loops are not told. In
older versions that is ``Local Function: FUNCTION``, and lines of the node's documentation.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, TypeAlias

if TYPE_CHECKING:
    from dld_tui.core.document.document import Document
    from dld_tui.core.document.node import Node
    from dld_tui.core.plan.mapping_model import ModelNames

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
"""What is behind the name of an If where the layer of its results is named after it."""
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
    """Take off what says that a layer is a copy for another one, or which profile it is for.

    Args:
        name: As the engine has it.
        known: Whether a text is the name of an ONNX node: such a name is left alone.
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
    """Return what is in the brackets of each range, and the text with helpers in their places."""
    return [found["inner"] for found in _RANGE.finditer(text)], _RANGE.sub("ONNXTRT_range", text)


def ends_of(inner: str) -> list[tuple[str, str]]:
    """Return the ways to split what is in the brackets into the first and the last layer."""
    cuts = [found.start() for found in re.finditer(r"(?=\.\.\.)", inner)]
    return [(inner[:cut], inner[cut + 3 :]) for cut in cuts if inner[:cut] and inner[cut + 3 :]]


def listed_names(text: str, known: Callable[[str], bool] | None) -> list[str] | None:
    """Return the nodes of a part that runs on a DLA, ``{A,B,C}``; None for another name.

    A comma may be part of a name: with a model, parts are joined until they are one of its nodes.
    """
    found = _DLA_LIST.fullmatch(text)
    if found is None:
        return None
    parts = found["inner"].split(",")
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
    """It contains separators, and its parts are names, too."""


def split_name(
    text: str, known: Callable[[str], bool] | None = None, longest: int = 0
) -> list[Piece]:
    """Split the name of a fused layer into the names of its parts.

    Of the ways to split it, that with the fewest parts that nobody knows counts, and then that with
    the fewest parts, which are the longest names.

    Args:
        text: The name, without copies and ranges.
        known: Whether a text is the name of an ONNX node; None when there is no model to ask.
        longest: Length of the longest name that has characters of separators in it.
    """
    if known is not None and known(text):
        return [Piece(text, True, _is_doubtful(text, known))]
    separators = dict(_loose(text) if known is not None else _strict(text))
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
    """Tell whether a name with separators in it is a join of other names, too."""
    separators = dict(_strict(part))
    if not separators:
        return False
    starts = [0, *separators.values()]
    ends = [*separators, len(part)]
    inner = [part[start:end] for start, end in zip(starts, ends, strict=True) if start < end]
    return bool(inner) and all(map(known, inner))


def _strict(text: str) -> Iterator[tuple[int, int]]:
    """Yield where separators are; brackets and commas count where they belong to ``PWN(``."""
    around: list[str] = []
    for found in _TOKENS.finditer(text):
        kind = found.lastgroup or ""
        if kind in ("pwn", "open"):
            around.append(kind)
        closed = around.pop() if kind == "close" and around else ""
        inside = around[-1:] == ["pwn"]
        if kind in ("between", "pwn") or (kind == "comma" and inside) or closed == "pwn":
            yield found.span()


def _loose(text: str) -> Iterator[tuple[int, int]]:
    """Yield where separators may be, overlapping ones too: the names of the model decide."""
    helpers = [found.span() for found in _UNNAMED_LAYERS.finditer(text)]
    helpers.append((len(text), len(text)))
    at = 0
    for found in _ANYWHERE.finditer(text):
        while helpers[at][1] <= found.start() and at < len(helpers) - 1:
            at += 1
        if not helpers[at][0] <= found.start() < helpers[at][1]:
            yield found.span(1)


def may_be_split(name: str) -> bool:
    """Tell whether a name has characters in it that separators have, too."""
    return " " in name or "," in name or ")" in name or "PWN(" in name or "|" in name or "+" in name


def is_helper(text: str) -> bool:
    """Tell whether a part stands for no ONNX node: what TensorRT or its parser put in."""
    return _HELPER.fullmatch(text) is not None or _DLA_HELPER.fullmatch(text) is not None


def looks_like_tensor(text: str) -> bool:
    """Tell whether a part is the name of a tensor, as copies in place are called."""
    return _TENSOR.fullmatch(text) is not None


def looks_like_weights(text: str) -> bool:
    """Tell whether a part is probably the name of weights, which fused layers carry, too."""
    return _WEIGHTS.search(text) is not None


def is_myelin(text: str) -> bool:
    """Tell whether a name was made by the compiler of fused parts, so that it names no node."""
    return text.startswith("__my")


def softer(text: str) -> list[tuple[str, bool]]:
    """Return names that a part may have been made from, and whether it only stands beside them."""
    beside = _BESIDE.fullmatch(text)
    if beside is not None:
        return [(beside["of"], True)]
    found = []
    plain = _OF_NODE.sub("", text)
    if plain != text:
        found.append((plain, False))
    cloned = _CLONE.sub("", text)
    if cloned != text:
        found.append((cloned, False))
    compiled = _MYELIN.sub("", text)
    if compiled != text:
        found.append((compiled, False))
    # Layers of the same node get numbers behind its name.
    found.append((_NUMBERED.sub("", compiled), False))
    return [(name, aside) for name, aside in found if name and name != text]


LIMIT_BYTES = 4000
"""Longer texts are cut, at the end or in the middle."""
_OPENING = "[ONNX Layer: "
_SEPARATORS = re.compile(r"[\x1e\x1f]+|(?<=\])(?=\[ONNX Layer: )")
_CUT = " ... "
_CALL = re.compile(r"(?P<call>.*) \((?P<function>[^()]+)\)$", re.DOTALL)
_FUNCTION = "Local Function: "


@dataclass(frozen=True)
class Frame:
    """A call of a local function that a node is in, or a subgraph."""

    call: str
    """The node that calls, or the graph's name; empty when only the function is told."""
    function: str
    """The function; or the operator of the node; or the attribute that the graph is in."""


@dataclass(frozen=True)
class Entry:
    """One ONNX node of a metadata text. Foreign text."""

    name: str
    frames: tuple[Frame, ...] = ()
    """The calls around it, as they are listed."""
    whole: str = ""
    """All between the brackets: a name may contain a bar, too."""


@dataclass(frozen=True)
class Told:
    """What a metadata text says."""

    entries: tuple[Entry, ...]
    truncated: bool
    """The text was cut, so there may be more nodes."""


def read_metadata(text: str) -> Told:
    """Return the ONNX nodes that a metadata text names, each once, in its order."""
    if _OPENING not in text:
        return Told((), False)
    truncated = len(text.encode("utf-8", "surrogatepass")) >= LIMIT_BYTES
    found: dict[Entry, None] = {}
    for piece in _pieces(text, truncated):
        if not piece.startswith(_OPENING):
            continue
        if not piece.endswith("]"):
            truncated = True
            continue
        found[_entry(piece[len(_OPENING) : -1])] = None
    return Told(tuple(found), truncated)


def _pieces(text: str, long: bool) -> list[str]:
    # A text that was cut in its middle has dots there, at half of the limit.
    middle = text.find(_CUT, LIMIT_BYTES // 4) if long else -1
    parts = [text] if middle < 0 else [text[:middle], text[middle + len(_CUT) :]]
    return [piece for part in parts for piece in _SEPARATORS.split(part)]


def _entry(inner: str) -> Entry:
    name, *rest = inner.split(" | ")
    frames = []
    for part in rest:
        if part.startswith(_FUNCTION):
            frames.append(Frame("", part[len(_FUNCTION) :]))
        elif (found := _CALL.match(part)) is not None:
            frames.append(Frame(found["call"], found["function"]))
    return Entry(name, tuple(frames), inner)


NODE_OF = "node_of_"
"""What the parser calls a node without a name, followed by its first output."""


@dataclass(frozen=True)
class NodeRef:
    """An ONNX node that a layer computes. Foreign text."""

    name: str
    """`Node.name`; for a node without one, ``node_of_`` and its first output."""
    scope: tuple[str, ...] = ()
    """`Scope.path` of the graph, subgraph or function body that holds it."""
    op_type: str = ""
    """Empty when the model is not known."""
    ref: str = ""
    """`Node.ref` in its scope; the name when the model is not known."""
    calls: tuple[str, ...] = ()
    """The nodes that call the local functions it is in, the outermost first."""
    node: Node | None = field(default=None, compare=False, repr=False)
    """The node itself, when the model is known."""

    @property
    def label(self) -> str:
        """The name after the calls or the scope that it is in."""
        return " › ".join((*(self.calls or self.scope), self.name))


How: TypeAlias = Literal["metadata", "name", "range", "join", "myelin", "none"]
"""What the nodes of a layer were told from: its metadata; its name, that of one node; a range or a
join in its name; nothing, as its name was made by the compiler of fused parts, or means nothing."""

Sureness: TypeAlias = Literal["exact", "likely", "guess", "none"]
"""``exact``: named so. ``likely``: found by a rule, or some names are not in the model. ``guess``:
several nodes go by the name, or a range without a path. ``none``: no node is known."""


@dataclass(frozen=True)
class LayerNodes:
    """The ONNX nodes of one engine layer."""

    nodes: tuple[NodeRef, ...] = ()
    how: How = "none"
    confidence: Sureness = "none"
    inserted: bool = False
    """TensorRT put this layer in for the nodes: a copy to another format, type or device."""
    truncated: bool = False
    """The metadata was cut, so there may be more nodes."""
    missing: tuple[str, ...] = ()
    """Names that the model does not have. Foreign text."""


@dataclass(frozen=True)
class Found:
    """What a part of a layer's name stands for."""

    nodes: tuple[NodeRef, ...] = ()
    sure: bool = True
    """The name is exactly that of the node, and of no other."""
    aside: bool = False
    """It is not the node itself but what TensorRT put beside it."""
    explained: bool = True
    """False when nothing is known of this text."""


HELPER = Found()
UNKNOWN = Found(explained=False)


class TextNames:
    """Names without a model: each is taken for a node unless it is known to be none."""

    longest = 0
    document: Document | None = None

    def known(self, text: str) -> bool:
        """Tell whether a text is the name of a node: nobody knows."""
        return False

    def find(self, text: str) -> Found:
        """Return what a part of a layer's name stands for."""
        if is_helper(text) or looks_like_weights(text) or looks_like_tensor(text):
            return HELPER
        for name, aside in softer(text)[:1]:
            if aside:
                return HELPER if is_helper(name) else Found((NodeRef(name, ref=name),), False, True)
            if text[len(name) :].startswith(("_myl", "_OutputLayer", "_clone_")):
                return Found((NodeRef(name, ref=name),), False)
        return Found((NodeRef(text, ref=text),), False)

    def told(self, entry: Entry) -> Found:
        """Return the node that metadata names."""
        calls = tuple(frame.call for frame in reversed(entry.frames) if frame.call)
        return Found((NodeRef(entry.name, ref=entry.name, calls=calls),))

    def binding(self, name: str) -> Found:
        """Return the nodes at an input or output of the network: unknown."""
        return HELPER

    def between(self, first: str, last: str) -> tuple[tuple[NodeRef, ...], bool]:
        """Return the two ends of a range, as what is between them is not known."""
        ends = (self.find(first), self.find(last))
        return tuple(dict.fromkeys(ref for end in ends for ref in end.nodes)), False


def names_of(document: Document | None) -> TextNames | ModelNames:
    """Return the names to resolve the parts of layers with."""
    if document is None:
        return TextNames()
    from dld_tui.core.plan.mapping_model import ModelNames  # needs onnx, which names alone do not

    return ModelNames(document)
