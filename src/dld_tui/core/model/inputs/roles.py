"""Roles of inputs and their dimensions, by names and positions, and sizes that suit them.

Of decoders: which inputs are the cache, and the outputs that they come back from. The operators
that read the past and write the present say so first, then names, then types.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from dld_tui.core.dataclass import dataclass
from dld_tui.core.model.inputs.shapes import InputSpec, is_fixed
from dld_tui.core.model.tensors.value_types import PLACEHOLDERS, ValueType
from dld_tui.core.types import FLOATS

if TYPE_CHECKING:
    from dld_tui.core.model.document.document import Document
    from dld_tui.core.model.document.node import Node
    from dld_tui.core.model.document.scope import Scope


_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")


def words_of(name: str) -> tuple[str, ...]:
    """Return the words of a name in lower case, as ``past``, ``key``, ``values``, ``0``."""
    return tuple(word.lower() for word in _WORD.findall(name))


@dataclass(frozen=True)
class Role:
    """What a dimension stands for."""

    name: str
    """For people, as ``height and width``."""
    sizes: tuple[int, ...]
    """Sizes to try, the most usual one first."""


BATCH = Role("batch", (1, 2, 4, 8))
TOKENS = Role("sequence length", (128, 64, 77, 256, 512, 32, 16, 8, 4, 2, 1))
PROMPT = Role("sequence length", (77, 64, 128, 256, 512, 16, 1))
TARGET = Role("target sequence length", (16, 8, 32, 64, 1))
CONTEXT = Role("length of the encoder's result", (128, 77, 1500, 64, 256, 512, 16, 1))
PAST = Role("past length", (0, 127, 128, 64, 16, 1))
TOTAL = Role("total length", (128, 64, 256, 512, 16, 1))
CAPACITY = Role("cache length", (256, 128, 512, 1024, 2048, 64, 16, 1))
"""Of a cache that new elements are written into: it does not grow."""
SIDE = Role("height and width", (224, 256, 640, 320, 384, 448, 512, 299, 416, 128, 96, 64, 48,
                                 32, 28, 112, 160, 192, 288, 336, 480, 600, 800, 1024, 16,
                                 8))  # fmt: skip
DETECTED = Role("height and width", (640, 320, 416, 512, 608, 800, 1024, *SIDE.sizes))
LATENT = Role("height and width", (64, 32, 128, 96, 16, 8))
LINE = Role("width of a line of text", (320, 100, 128, 160, 256, 640, 96, 64))
SAMPLES = Role("samples", (16000, 16384, 8000, 4096, 1024, 512, 48000, 22050, 44100, 32000, 43844,
                           1600, 480, 160, 256))  # fmt: skip
CHUNK = Role("samples of a chunk", (512, 1536, 1024, 256, 768, 480, 160, 320, 16000))
FRAMES = Role("frames", (100, 128, 200, 300, 400, 1000, 3000, 98, 64, 32, 16, 8, 1))
WINDOW = Role("frames", (3000, 1500, 1000, 300, 100))
VIDEO = Role("frames of a video", (16, 8, 32, 4, 1))
DEPTH = Role("depth", (32, 64, 16, 96, 128, 8))
CHANNELS = Role("channels", (3, 1, 4, 64, 2, 8, 16, 32))
FEATURES = Role("features", (80, 128, 64, 256, 512, 768, 16, 32, 40, 1024, 8, 4, 3, 2, 1))
BEAMS = Role("beams", (1, 4, 2, 5))
RANK = Role("rank", (16, 8, 4, 32, 64, 1))
PATCHES = Role("patches", (256, 64, 1024, 16, 4))
IMAGES = Role("images", (1, 2, 4))
HEADS = Role("heads", (8, 4, 2, 16, 32, 1, 12))
HEAD_SIZE = Role("head size", (64, 128, 96, 80, 32, 256, 16, 8))
COUNT = Role("count", (8, 4, 16, 1, 2, 32, 100))
STEPS = Role("steps", (1, 2, 4))
UNKNOWN = Role("size", (16, 8, 32, 64, 1, 128, 224, 512, 2, 4))

_BY_WORD: tuple[tuple[frozenset[str], Role], ...] = (
    (frozenset({"past", "kv"}), PAST),
    (frozenset({"total"}), TOTAL),
    (frozenset({"batch", "bs", "bsz", "batchsize", "n", "b"}), BATCH),
    (frozenset({"beam", "beams"}), BEAMS),
    (frozenset({"lora", "rank"}), RANK),
    (frozenset({"patch", "patches"}), PATCHES),
    (frozenset({"images"}), IMAGES),
    (frozenset({"height", "width", "h", "w", "rows", "cols", "columns", "imgsz"}), SIDE),
    (frozenset({"sample", "samples", "audio", "waveform", "wav"}), SAMPLES),
    (frozenset({"frame", "frames", "mel", "feats"}), FRAMES),
    (frozenset({"sequence", "seq", "seqlen", "token", "tokens", "length", "len", "text", "prompt",
                "phoneme", "phonemes", "words", "characters", "chars", "l"}), TOKENS),
    (frozenset({"time", "t", "timesteps"}), FRAMES),
    (frozenset({"channel", "channels", "c"}), CHANNELS),
    (frozenset({"feature", "features", "dim", "hidden", "embed", "embedding", "f"}), FEATURES),
    (frozenset({"steps", "step"}), STEPS),
    (frozenset({"depth", "d"}), DEPTH),
    (frozenset({"num", "count", "points", "boxes", "rois", "labels", "classes", "objects",
                "nodes", "edges", "regions", "proposals", "k", "m"}), COUNT),
)  # fmt: skip
"""Words in the names of dimensions; the first row that holds one of them counts."""

SPECTRUM_WORDS = frozenset({"features", "mel", "fbank", "spectrogram", "feats"})
AUDIO_WORDS = frozenset({"audio", "waveform", "wav", "speech", "pcm", "signal", "samples"})
_IMAGE_WORDS = frozenset({"image", "images", "img", "imgs", "pixel", "pixels", "picture", "rgb"})
_DETECTOR_INPUTS = frozenset({"images", "orig", "yolo", "detector"})
_DETECTOR_OUTPUTS = frozenset({"boxes", "bboxes", "box", "bbox", "dets", "det", "detections",
                               "detection", "scores", "loc", "labels", "num"})  # fmt: skip
TOKEN_WORDS = frozenset({"ids", "tokens", "codes"})
CACHE_WORDS = frozenset({"past", "cache", "caches", "kv", "mems"})
_STATE_WORDS = frozenset({"state", "states", "h", "c", "hn", "cn", "hx", "cx", "hidden", "cell",
                          "rnn", "lstm", "gru", "memory"})  # fmt: skip
_ACTIVATIONS = frozenset({"encoder", "decoder", "last", "states"})


@dataclass(frozen=True)
class ModelTraits:
    """Traits of the whole model that help to tell what its inputs are."""

    words: frozenset[str]
    """All words in the names of inputs."""
    output_words: frozenset[str]
    operators: frozenset[str]

    @property
    def is_detector(self) -> bool:
        """Whether it finds things in images."""
        return "NonMaxSuppression" in self.operators or bool(
            self.output_words & _DETECTOR_OUTPUTS or self.words & _DETECTOR_INPUTS
        )

    @property
    def is_streaming(self) -> bool:
        """Whether it takes audio in chunks, with a state from one to the next."""
        return bool(self.words & {"sr"} or "state" in self.words)

    @property
    def is_diffusion(self) -> bool:
        """Whether it takes latents and a step of time."""
        return bool(self.words & {"timestep", "timesteps"})

    @property
    def is_latent(self) -> bool:
        """Whether its images are latents, as those of a diffusion model or its decoder."""
        return self.is_diffusion or bool(self.words & {"latent", "latents"})


def named_role(name: str, traits: ModelTraits) -> Role | None:
    """Return the role that the name of a dimension indicates, or None.

    Names such as ``s0``, ``unk__12`` and ``DynamicDimension.1`` are counters of exporters.
    """
    words = {word for word in words_of(name) if not word.isdigit()}
    if words & {"unk", "unknown", "dynamic", "dynamicdimension", "axes", "none"}:
        if not {"batch", "sequence", "seq", "height", "width"} & words:
            return None
        words -= {"dynamic", "axes"}
    if re.fullmatch(r"[su]\d+|p2o.*|d(im)?_?\d+|dim|\?+", name, re.IGNORECASE):
        return None
    if "encoder" in words and {"sequence", "seq", "length"} & words:
        return CONTEXT
    if "decoder" in words and {"sequence", "seq", "length"} & words and "past" not in words:
        return TARGET
    for known, role in _BY_WORD:
        if words & known:
            return _in_context(role, traits)
    if words & {"imagewidth", "imageheight"}:
        return _in_context(SIDE, traits)
    return None


def _in_context(role: Role, traits: ModelTraits) -> Role:
    if role is SIDE:
        if traits.is_latent:
            return LATENT
        return DETECTED if traits.is_detector else SIDE
    if role is SAMPLES and traits.is_streaming:
        return CHUNK
    if role is TOKENS and traits.is_latent:
        return PROMPT
    return role


def placed_role(spec: InputSpec, axis: int, traits: ModelTraits) -> tuple[Role, str]:
    """Return the role of a nameless dimension by its position, and the reason."""
    dims = spec.dims or ()
    words = set(words_of(spec.name))
    rank = len(dims)
    if words & CACHE_WORDS and rank >= 3 and axis > 0 and spec.dtype in CACHE_TYPES:
        return PAST, f"the name {spec.name}"
    if axis == 0 and rank >= 1 and not (rank == 1 and words & {"timestep"}):
        if rank == 3 and is_fixed(dims[1]) and dims[1] == 1:
            return _audio_or_tokens(spec, words, traits)
        if rank == 3 and not is_fixed(dims[1]) and named_role(str(dims[1]), traits) is BATCH:
            return TOKENS, "its position before the batch"
        if rank == 2 and "ids" in words and spec.dtype in FLOATS:  # places of what is attended to
            return TOKENS, f"the name {spec.name}"
        return BATCH, "its first dimension"
    if rank >= 4:
        return _in_space(spec, axis, traits)
    if spec.dtype not in FLOATS:
        return (TOKENS, "integers in rows") if rank == 2 else (COUNT, "its position")
    if words & SPECTRUM_WORDS:
        return (WINDOW if words & {"features"} and dims[1] in (80, 128) else FRAMES), (
            f"the name {spec.name}"
        )
    if rank == 3 and {"encoder", "hidden"} <= words:
        return (CONTEXT, f"the name {spec.name}") if axis == 1 else (FEATURES, "its last dimension")
    if rank == 3:
        if axis == 2 and not is_fixed(dims[1]):
            return FEATURES, "its last dimension"
        if axis == 2 and dims[1] in (1, 2) and not words & {"points", "boxes"}:
            return _audio_or_tokens(spec, words, traits)
        if words & AUDIO_WORDS and axis == 1 and dims[2] == 1:
            return _audio_or_tokens(spec, words, traits)
        return (TOKENS if axis == 1 else FRAMES), "its position"
    return _audio_or_tokens(spec, words, traits) if rank == 2 else (COUNT, "its position")


def _audio_or_tokens(spec: InputSpec, words: set[str], traits: ModelTraits) -> tuple[Role, str]:
    if traits.is_streaming:
        return CHUNK, "an audio model with a state"
    if is_audio(spec):
        return SAMPLES, f"the name {spec.name}"
    if len(spec.dims or ()) == 3:
        return SAMPLES, "one channel"
    return FEATURES, "its last dimension"


def _in_space(spec: InputSpec, axis: int, traits: ModelTraits) -> tuple[Role, str]:
    dims = spec.dims or ()
    rank = len(dims)
    is_last = is_fixed(dims[-1]) and dims[-1] in (1, 3, 4) and not is_fixed(dims[1])
    channel = rank - 1 if is_last else 1
    if axis == channel:
        return CHANNELS, "its position"
    spatial = [at for at in range(1, rank) if at != channel]
    if rank == 5 and axis == spatial[0]:
        is_video = bool(set(words_of(spec.name)) & {"video", "frames", "clip", "pixel", "values"})
        return (VIDEO if is_video else DEPTH), "its position"
    if rank == 5:
        return Role(SIDE.name, (112, 224, *LATENT.sizes)), "its position"
    words = set(words_of(spec.name))
    height = dims[spatial[0]]
    is_low = isinstance(height, int) and is_fixed(height) and height <= 64
    if is_low and axis == spatial[-1] and dims[channel] in (1, 3):
        return LINE, f"a height of {height}"
    if traits.is_latent:
        return LATENT, "a diffusion model"
    if "images" in words:
        return DETECTED, f"the name {spec.name}"
    if traits.is_detector:
        return DETECTED, "a detector"
    return SIDE, f"the name {spec.name}" if words & _IMAGE_WORDS else "its position"


def is_token_ids(spec: InputSpec) -> bool:
    """Return whether an input holds tokens by its name and type."""
    return spec.dtype in ("int64", "int32") and bool(TOKEN_WORDS & set(words_of(spec.name)))


def is_self_mask(words: Collection[str]) -> bool:
    """Return whether an input of these words masks what its own tokens attend to."""
    return "mask" in words and not {"encoder", "cross", "head"} & {*words}


def is_audio(spec: InputSpec) -> bool:
    """Return whether an input is sound by its name; ``input_values`` is what speech models take."""
    words = words_of(spec.name)
    return bool(set(words) & AUDIO_WORDS) or words == ("input", "values")


def is_state(spec: InputSpec) -> bool:
    """Return whether an input carries the state of a recurrent network."""
    words = set(words_of(spec.name))
    if spec.dtype not in FLOATS or not spec.dims or (words & _ACTIVATIONS and "hidden" in words):
        return False
    return bool(words & _STATE_WORDS) and len(spec.dims) in (2, 3, 4)


def terms_of(name: str) -> tuple[dict[str, int], int] | None:
    """Return (factors by symbol, constant) of ``past_sequence_length + 1``; None for a plain name.

    Exporters write such sums as the names of dimensions.
    """
    if not re.search(r"[+*-]", name) or name in PLACEHOLDERS:
        return None
    try:
        return _terms(ast.parse(name.strip(), mode="eval").body)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def _terms(node: ast.expr) -> tuple[dict[str, int], int]:
    if isinstance(node, ast.Name):
        return {node.id: 1}, 0
    if isinstance(node, ast.Constant) and isinstance(node.value, int):
        return {}, node.value
    if isinstance(node, ast.BinOp):
        (left, left_constant), (right, right_constant) = _terms(node.left), _terms(node.right)
        if isinstance(node.op, (ast.Add, ast.Sub)):
            sign = 1 if isinstance(node.op, ast.Add) else -1
            sums = dict(left)
            for symbol, factor in right.items():
                sums[symbol] = sums.get(symbol, 0) + sign * factor
            return sums, left_constant + sign * right_constant
        if isinstance(node.op, ast.Mult) and not (left and right):
            factor, symbols = (left_constant, right) if not left else (right_constant, left)
            return {
                symbol: factor * n for symbol, n in symbols.items()
            }, left_constant * right_constant
    raise ValueError("not a sum")


_OPERATORS = {
    "GroupQueryAttention": {3: 1, 4: 2},
    "Attention": {4: 1, 5: 2},
    "MultiHeadAttention": {6: 1, 7: 2},
    "DecoderMaskedMultiHeadAttention": {5: 1, 6: 2},
    "DecoderMaskedSelfAttention": {4: 1},
    "SparseAttention": {3: 1, 4: 2},
    "TensorScatter": {0: 0},
}
"""Where an operator takes the past, and where it gives the present."""
_WRITES_IN_PLACE = ("SparseAttention", "TensorScatter")
"""Operators whose present is always as long as the past."""
_SHARED = "past_present_share_buffer"
_STATE_OPERATORS = {
    "CausalConvWithState": {3: 1},
    "LinearAttention": {3: 1},
    "GatedDeltaNet": {6: 1},
    "LSTM": {5: 1, 6: 2},
    "GRU": {5: 1},
    "RNN": {5: 1},
}
"""The same of states, which keep their size."""
_STATES_OF = frozenset({"conv", "ssm", "recurrent", "state", "states"})
_HALVES = frozenset({"key", "value", "keys", "values", "k", "v", "kv"})
_VIEWS = ("Identity", "Cast", "Transpose")
_RENAMED = (
    ("past_key_values", "present"), ("past_key_values", "present_key_values"), ("past", "present"),
    ("_in", "_out"), ("in_", "out_"), ("cache", "new_cache"), ("cache", "cache_out"),
    ("cache", "updated_cache"), ("state", "stateN"),
)  # fmt: skip
_NEXT = ("new", "next", "out", "output", "present", "updated", "final")
"""Words before or behind the name of a state that name the next one."""
CACHE_TYPES = ("float32", "float16", "bfloat16", "float8e4m3fn", "int8", "uint8")


@dataclass(frozen=True)
class CachePair:
    """An input with a decoder's cache, and the output with the new tokens added."""

    past: str
    present: str
    axis: int
    """Along which they grow."""
    window: int = 0
    """The fewest elements along that axis where attention keeps a window alone: neither the past
    nor the present grows. 0 for a cache that grows."""
    in_place: bool = False
    """Whether new elements are written into free places, so that past and present have the same
    length: a fixed one, or any that the caller chooses."""


@dataclass(frozen=True)
class StatePair:
    """An input that holds a state of a fixed size, and the output with the next one."""

    past: str
    present: str


def state_pairs(document: Document) -> list[StatePair]:
    """Return the states of convolutions and recurrences, in the order of the inputs.

    A state is as large after a run as before, and no dimension but one, the batch, is open.
    """
    main = document.main
    outputs = dict.fromkeys(main.outputs)
    cache_inputs = {pair.past for pair in cache_pairs(document)}
    pairs = []
    for name in main.inputs:
        if name in cache_inputs or main.is_weight(name):
            continue
        known = main.value_type(name)
        dims = known.dims if known is not None else None
        if known is None or not dims or len(dims) < 2 or known.dtype not in CACHE_TYPES:
            continue
        match = _by_operator(main, name, outputs, _STATE_OPERATORS)
        present = match[0] if match is not None else _renamed_state(name, outputs)
        if present is not None and _keeps_size(known, main.value_type(present)):
            pairs.append(StatePair(name, present))
            del outputs[present]
    return pairs


def _renamed_state(name: str, outputs: dict[str, None]) -> str | None:
    present = _by_name(name, outputs)
    if present is not None:
        return present[0]
    options = (
        *(f"{word}_{name}" for word in _NEXT), *(f"{name}_{word}" for word in _NEXT),
    )  # fmt: skip
    return next((option for option in options if option in outputs), None)


def _keeps_size(before: ValueType, after: ValueType | None) -> bool:
    """Return whether two types are the same, and leave one dimension open at most."""
    dims = before.dims or ()
    if after is None or after.dtype not in ("", before.dtype):
        return False
    if after.dims is not None and _kind(after)[1:] != _kind(before)[1:]:
        return False
    pairs = zip(dims, after.dims or dims, strict=True)
    if any(isinstance(a, str) and isinstance(b, str) and a != b for a, b in pairs):
        return False  # such as past and total
    return sum(not is_fixed(dim) for dim in dims) <= 1


def cache_pairs(document: Document) -> list[CachePair]:
    """Return the pairs of a model, in the order of its inputs; none where it has no cache."""
    main = document.main
    outputs = dict.fromkeys(main.outputs)
    pairs: dict[str, CachePair] = {}
    unpaired: list[tuple[str, ValueType]] = []
    for name in main.inputs:
        known = main.value_type(name)
        if main.is_weight(name) or known is None or len(known.dims or ()) not in (3, 4, 5):
            continue
        if known.dtype not in CACHE_TYPES or known.container:
            continue
        if _by_operator(main, name, outputs, _STATE_OPERATORS):
            continue
        present = _by_operator(main, name, outputs) or _by_name(name, outputs)
        pair = None if present is None else _pair(main, name, *present)
        if pair is not None and (window := _window_of(main, name)):
            pair = replace(pair, window=window)
        elif pair is not None and _is_in_place(main, pair):
            pair = replace(pair, in_place=True)
        if pair is None:
            unpaired.append((name, known))
        elif pair.present in outputs:
            pairs[name] = pair
            del outputs[pair.present]
    pairs |= {typed_pair.past: typed_pair for typed_pair in _by_type(main, unpaired, [*outputs])}
    return [pairs[name] for name in main.inputs if name in pairs]


def _by_operator(
    main: Scope,
    name: str,
    outputs: dict[str, None],
    operators: Mapping[str, Mapping[int, int]] = _OPERATORS,
) -> tuple[str, int | None] | None:
    """Return what an operator or, of caches, a Concat makes of a past, and along which axis."""
    views = _VIEWS if operators is _OPERATORS else (*_VIEWS, "Squeeze", "Unsqueeze")
    for value in _seen_through(main, name, views):
        for node in main.consumers(value):
            axis = None
            if node.op_type == "Concat" and operators is _OPERATORS:
                output, axis = node.outputs[0], _axis(node)
                if not main.consumers(output) and not CACHE_WORDS & set(words_of(name)):
                    continue  # nothing attends to it
            else:
                places = operators.get(node.op_type, {})
                used = (
                    places[at]
                    for at, result in enumerate(node.inputs)
                    if result == value and at in places
                )
                at = next(used, len(node.outputs))
                output = node.outputs[at] if at < len(node.outputs) else ""
                if operators is _OPERATORS and output and writes_in_place(node):
                    axis = _axis(node) if node.op_type == "TensorScatter" else -2
                    axis = -2 if axis is None else axis
            for result in _seen_through(main, output, views) if output else ():
                if result in outputs:
                    return result, axis
    return None


def writes_in_place(node: Node) -> bool:
    """Return whether an operator writes into the cache that it reads, which keeps its length."""
    flag = node.attribute(_SHARED)
    return node.op_type in _WRITES_IN_PLACE or (flag is not None and flag.value == 1)


def _is_in_place(main: Scope, pair: CachePair) -> bool:
    before, after = main.value_type(pair.past), main.value_type(pair.present)
    lengths = [
        # A present that is declared with fewer dimensions tells no length.
        known.dims[pair.axis] if known and known.dims and pair.axis < len(known.dims) else None
        for known in (before, after)
    ]
    if is_fixed(lengths[0]) and lengths[0] == lengths[1]:
        return True
    users = [
        node for value in _seen_through(main, pair.past, _VIEWS) for node in main.consumers(value)
    ]
    if any(map(writes_in_place, users)):
        return True
    # Exporters may give one name to a past and a longer present: the operator decides.
    scatters = ("ScatterElements", "ScatterND")
    return lengths[0] == lengths[1] and any(node.op_type in scatters for node in users)


def _window_of(main: Scope, past: str) -> int:
    """Return the window of an attention whose cache holds no more than that; 0 for all others."""
    for node in main.consumers(past):
        flag, window = node.attribute("sliding_window_cache"), node.attribute("local_window_size")
        if flag is not None and flag.value == 1 and window is not None:
            return window.value if isinstance(window.value, int) and window.value > 0 else 0
    return 0


def _axis(node: Node) -> int | None:
    attribute = node.attribute("axis")
    return attribute.value if attribute is not None and isinstance(attribute.value, int) else None


def _seen_through(main: Scope, name: str, views: tuple[str, ...]) -> Iterator[str]:
    """Yield a value, and its transposed or converted forms, to a depth of 3."""
    level = [name]
    for _ in range(3):
        yield from level
        users = [node for value in level for node in main.consumers(value)]
        level = [node.outputs[0] for node in users if node.op_type in views]


def _by_name(name: str, outputs: dict[str, None]) -> tuple[str, None] | None:
    for before, after in _RENAMED:
        if before in name and name.replace(before, after, 1) in outputs:
            return name.replace(before, after, 1), None
    return None


def _pair(main: Scope, past: str, present: str, axis: int | None = None) -> CachePair | None:
    """Return a pair with matching shapes; None for one that does not grow, such as a state."""
    before, after = main.value_type(past), main.value_type(present)
    dims = None if before is None else before.dims
    if (
        before is None
        or dims is None
        or (after is not None and after.dtype not in ("", before.dtype))
    ):
        return None
    grown = None if after is None else after.dims
    if grown is None or len(grown) != len(dims):
        grown = (None,) * len(dims)
    growing = [
        at for at in range(1, len(dims))
        if dims[at] != grown[at] or not (is_fixed(dims[at]) or isinstance(dims[at], str))
    ]  # fmt: skip
    if any(
        is_fixed(dims[at]) and is_fixed(grown[at]) and dims[at] != grown[at] for at in growing[1:]
    ):
        return None
    growing = [at for at in growing if not (is_fixed(dims[at]) and not is_fixed(grown[at]))]
    if axis is not None:
        axis %= len(dims)
        return CachePair(past, present, axis) if axis in growing or not growing else None
    if growing:
        return CachePair(past, present, len(dims) - 2 if len(dims) - 2 in growing else growing[0])
    words = set(words_of(past))
    is_cache = bool(CACHE_WORDS & words) and (bool(_HALVES & words) and not _STATES_OF & words)
    if not is_cache or len(dims) < 3:
        return None
    return CachePair(past, present, _written_axis(main, past, len(dims)))


def _written_axis(main: Scope, past: str, rank: int) -> int:
    """Return the axis along which new elements are written into a cache of a fixed size."""
    for node in main.consumers(past):
        if node.op_type in ("TensorScatter", "ScatterElements"):
            axis = _axis(node)
            default = -2 if node.op_type == "TensorScatter" else 0
            return (default if axis is None else axis) % rank
        if node.op_type == "ScatterND" and rank == 3:
            return 0
    return rank - 2


def _by_type(
    main: Scope, left: list[tuple[str, ValueType]], outputs: list[str]
) -> Iterator[CachePair]:
    """Pair the rest by types, in their order, where both sides have equally many of a type."""
    kinds: dict[tuple[object, ...], list[str]] = {}
    for name, known in left:
        if len(known.dims or ()) == 4 and set(words_of(name)) & (
            CACHE_WORDS | {"key", "value", "k", "v"}
        ):
            kinds.setdefault(_kind(known), []).append(name)
    given: dict[tuple[object, ...], list[str]] = {}
    for name in outputs:
        value_type = main.value_type(name)
        if value_type is not None:
            given.setdefault(_kind(value_type), []).append(name)
    for kind, names in kinds.items():
        if len(given.get(kind, ())) == len(names):
            for past, present in zip(names, given[kind], strict=True):
                pair = _pair(main, past, present)
                if pair is not None:
                    yield replace(pair, in_place=_is_in_place(main, pair))


def _kind(known: ValueType) -> tuple[object, ...]:
    return (known.dtype, *((dim if is_fixed(dim) else None) for dim in known.dims or ()))
