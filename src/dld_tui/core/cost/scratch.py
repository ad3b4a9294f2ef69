"""The memory that kernels of ONNX Runtime's CPU provider ask for while they run, and give back.

By the shapes of a node, as ONNX Runtime 1.31 allocates it: the sources are named at the rules.
Each allocation is rounded up as its arena does. What is not known, such as the intermediates of
Einsum, is not guessed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from dld_tui.core.cost.operators import Call, Shape, UnknownShape

ALIGNED = 256
"""Arenas give multiples of so many bytes."""
_FLOAT = 4
_POINTER = 8


def aligned(size: int) -> int:
    """Return the bytes that an arena gives for so many."""
    return -(-size // ALIGNED) * ALIGNED


@dataclass(frozen=True)
class Processor:
    """What decides how much some kernels ask for."""

    threads: int = 1
    """That an operator may use."""
    cache_bytes: int = 0
    """Of the second level, a core; 0 where it is not known: then attention is not blocked."""


@dataclass(frozen=True)
class KernelCall:
    """A call whose shapes are all numbers, and what it runs on."""

    call: Call
    dtypes: Sequence[str]
    """Of the inputs; empty where one is not known or left out."""
    outputs: Sequence[str]
    """Their names; empty where one is left out."""
    processor: Processor

    def read(self, at: int) -> tuple[int, ...]:
        """Return the shape of an input.

        Raises:
            UnknownShape: It is not known in numbers.
        """
        return _numbers(self.call.read(at))

    def written(self) -> tuple[int, ...]:
        """Return the shape of the first output.

        Raises:
            UnknownShape: It is not known in numbers.
        """
        return _numbers(self.call.made())

    def is_one_of(self, at: int, *dtypes: str) -> bool:
        """Tell whether an input has one of some types."""
        return at < len(self.dtypes) and self.dtypes[at] in dtypes

    def has_output(self, at: int) -> bool:
        """Tell whether an output is asked for."""
        return at < len(self.outputs) and bool(self.outputs[at])


def _numbers(shape: Shape) -> tuple[int, ...]:
    sizes = tuple(size for size in shape if isinstance(size, int))
    if len(sizes) < len(shape):
        raise UnknownShape
    return sizes


def scratch_bytes(kernel: KernelCall) -> int | None:
    """Return the most bytes that a kernel asks for beside its outputs; None: not known."""
    call = kernel.call
    key = (call.domain, call.op_type)
    if call.op_type in _UNKNOWN or (call.domain and key not in _RULES and key not in _NONE):
        return None
    rule = _RULES.get(key)
    if rule is None:
        return 0
    try:
        return rule(kernel)
    except (UnknownShape, IndexError, TypeError, ValueError, ZeroDivisionError):
        return None


def _floats(*counts: int) -> int:
    return sum(aligned(_FLOAT * count) for count in counts if count)


# --- recurrent layers: core/providers/cpu/rnn ----------------------------------------------------


def _directions(call: Call) -> list[bool]:
    """Return for each direction whether it goes backwards."""
    direction = call.text("direction", "forward")
    return [False, True] if direction == "bidirectional" else [direction == "reverse"]


def _sequence(kernel: KernelCall) -> tuple[int, int, int, int]:
    """Return the length, the batch, the input size and the hidden size."""
    length, batch, size = kernel.read(0)
    return length, batch, size, kernel.call.number("hidden_size")


def _lstm(kernel: KernelCall, *, packed: bool = False) -> int:
    call = kernel.call
    length, batch, size, hidden = _sequence(kernel)
    bias, rows = call.has(3), batch * hidden
    ways = _directions(call)
    # Both directions live to the end.
    total = sum(_floats(rows * len(ways)) for at in (1, 2) if not kernel.has_output(at))
    for backwards in ways:
        total += _floats(hidden, hidden, rows, rows, rows, 4 * rows * length)
        total += 4 * _floats(hidden) if bias else 0
        total += 0 if call.has(4) else aligned(4 * batch)
        if backwards:
            total += _floats(length * batch * size, length * rows)
        if packed:
            total += aligned(max(length * batch * size, rows)) + _floats(4 * rows)
    return total


def _gru(kernel: KernelCall) -> int:
    call = kernel.call
    length, batch, size, hidden = _sequence(kernel)
    rows, linear = batch * hidden, bool(call.number("linear_before_reset"))
    ways = _directions(call)
    total = 0 if kernel.has_output(1) else _floats(rows * len(ways))
    for backwards in ways:
        total += _floats(rows, rows, 3 * rows * length, rows if linear else 0)
        total += (4 if linear else 3) * _floats(rows) if call.has(3) else 0
        total += 0 if call.has(4) else aligned(4 * batch)
        if backwards:
            total += _floats(length * batch * size, length * rows)
    return total


def _rnn(kernel: KernelCall) -> int:
    length, batch, _, hidden = _sequence(kernel)
    return _floats(length * batch * hidden)


# --- convolutions: core/mlas/lib/convolve.cpp, core/providers/cpu --------------------------------

_CONV_BUFFER = 128 * 128
"""Elements a thread, of a convolution that is expanded in segments."""
_THREAD_WORK = 64 * 1024
"""Multiply-accumulates for which another thread is worth it."""


def _is_pointwise(kernel: KernelCall, sides: Sequence[int]) -> bool:
    call = kernel.call
    return (
        math.prod(sides) == 1
        and all(one == 1 for one in call.attribute("strides") or ())
        and not any(call.attribute("pads") or ())
        and call.text("auto_pad", "NOTSET") in ("NOTSET", "VALID")
    )


def _convolution(kernel: KernelCall) -> int:
    weights, written = kernel.read(1), kernel.written()
    if _is_pointwise(kernel, weights[2:]):
        return 0
    depth, places = math.prod(weights[1:]), math.prod(written[2:])
    filters = weights[0] // kernel.call.number("group", 1)
    if filters > places:
        return _floats(depth * places)
    work = filters * places * depth
    threads = min(work // _THREAD_WORK + 1, kernel.processor.threads)
    stride = -(-places // threads)
    if threads > 1:
        stride = -(-stride // 16) * 16
        if stride >= places:
            threads = 1
        elif stride * (threads - 1) >= places:
            threads -= 1
    return _floats(threads * _CONV_BUFFER)


def _transposed(kernel: KernelCall) -> int:
    return _floats(math.prod(kernel.read(1)[1:]) * math.prod(kernel.read(0)[2:]))


_SAMPLES = 8
"""Places that a deformed convolution samples at once."""


def _deformed(kernel: KernelCall) -> int:
    places = math.prod(kernel.written()[2:])
    weights = kernel.read(1)
    sampled = -(-places // _SAMPLES) * _SAMPLES * math.prod(weights[2:])
    # The expanded input, and of each sample where its four neighbours are and how they count.
    return _floats(math.prod(weights[1:]) * places, 8 * sampled)


def _integer_convolution(kernel: KernelCall) -> int:
    weights = kernel.read(1)
    if _is_pointwise(kernel, weights[2:]):
        return 0
    return aligned(math.prod(weights[1:]) * math.prod(kernel.written()[2:]))


_AT_ONCE, _FEWEST = 4, 16
"""Channels that kernels for symmetric weights take at once, and the fewest that they make."""


def _quantized_convolution(kernel: KernelCall) -> int:
    call = kernel.call
    weights = kernel.read(3)
    last = bool(call.number("channels_last"))
    x, y = ((s[0], s[-1], *s[1:-1]) if last else s for s in (kernel.read(0), kernel.written()))
    group, channels, filters = call.number("group", 1), x[1], weights[0]
    inputs, outputs = math.prod(x[1:]), math.prod(y[1:])
    places, sides = math.prod(y[2:]), math.prod(weights[2:])
    is_depthwise = weights[1] == 1 and filters == group
    fits = (
        group % _FEWEST == 0
        if is_depthwise
        else group == 1 and filters >= _FEWEST and not (channels % _AT_ONCE or filters % _AT_ONCE)
    )
    is_symmetric = fits and kernel.is_one_of(3, "int8")
    total = 0 if last else aligned(inputs) + aligned(outputs)
    total += 0 if is_symmetric else aligned(4 * outputs)
    if is_depthwise or (is_symmetric and not _is_pointwise(kernel, weights[2:])):
        total += aligned(_POINTER * sides * places)  # where the inputs of each place are
    elif not _is_pointwise(kernel, weights[2:]):
        total += aligned(math.prod(weights[1:]) * places)
    return total


# --- products ------------------------------------------------------------------------------------


def _quantized_rows(kernel: KernelCall) -> int:
    return aligned(math.prod(kernel.read(0)))


def _int32_output(kernel: KernelCall) -> int:
    return aligned(4 * math.prod(kernel.written()))


_INT8_LEVEL = 4
_SUMS_AT_ONCE = 16
"""Columns whose sums of blocks are together."""
_BLOCK_EXTRA = 8
"""Bytes beside the elements of a block of eight bits: its scale and its sum."""


def _few_bits(kernel: KernelCall) -> int | None:
    call = kernel.call
    bits, block = call.number("bits", 4), call.number("block_size", 32)
    width, columns = call.number("K"), call.number("N")
    if call.has(4) or bits not in (4, 8) or not kernel.is_one_of(0, "float32"):
        return None
    if call.number("accuracy_level") == _INT8_LEVEL:
        rows = math.prod(kernel.read(0)[:-1])
        return aligned(rows * -(-width // block) * (block + _BLOCK_EXTRA))
    return _floats(width * columns) if bits == 8 else 0


def block_sums(call: Call) -> int:
    """Return the bytes of scales and sums of blocks that a MatMulNBits packs with its weights.

    As ``MlasQNBitGemmPackQuantBDataSize`` for products of integers on x86.
    """
    if call.number("accuracy_level") != _INT8_LEVEL or call.number("bits", 4) not in (4, 8):
        return 0
    columns, block = call.number("N"), call.number("block_size", 32)
    padded = -(-columns // _SUMS_AT_ONCE) * _SUMS_AT_ONCE
    return _FLOAT * -(-call.number("K") // block) * (columns + padded)


# --- attention: contrib_ops/cpu/bert, core/providers/cpu/llm -------------------------------------


def _blocked(kernel: KernelCall, rows: int, seen: int, key: int, value: int) -> int | None:
    """Return what blocked attention asks for; None where the cache is not known."""
    cache = kernel.processor.cache_bytes
    if not cache:
        return None
    keys = max(cache // (_FLOAT * 4 * (key + value)), 1)
    queries = min(keys, key + value, rows)
    keys = min(keys, seen)
    return aligned(kernel.processor.threads * queries * (2 + keys + value) * _FLOAT)


def _fused_attention(kernel: KernelCall) -> int:
    call = kernel.call
    batch, rows, _ = kernel.read(0)
    heads = call.number("num_heads", 1)
    listed = call.attribute("qkv_hidden_sizes")
    key, value = (listed[1], listed[2]) if listed else (kernel.read(1)[1] // 3,) * 2
    seen = rows + (kernel.read(4)[3] if call.has(4) else 0)
    total = _floats(batch * rows * (2 * key + value), batch * heads * rows * seen)
    total += _floats(batch * rows * value) + ALIGNED
    if call.number("unidirectional"):
        total += _floats(batch * rows * seen)
    elif call.has(3):
        total += _floats(batch * seen)
    return total


def _multi_head(kernel: KernelCall) -> int:
    call = kernel.call
    batch, rows, hidden = kernel.read(0)
    heads = call.number("num_heads", 1)
    key_shape, query = kernel.read(1), batch * rows * hidden
    is_other = len(key_shape) == 4  # of another sequence, split into heads
    past = kernel.read(6)[2] if call.has(6) else 0
    if is_other:
        seen, value, copies = key_shape[2], kernel.read(2)[1] * kernel.read(2)[3], _floats(query)
    else:
        seen, value = key_shape[1], kernel.read(2)[2]
        copies = _floats(query, batch * seen * hidden, batch * seen * value)
    plain = not (is_other or any(call.has(at) for at in (4, 5, 6)))
    asks = any(kernel.has_output(at) for at in (1, 2))
    block = None
    if plain and not asks and not call.number("unidirectional"):
        block = _blocked(kernel, rows, seen, hidden // heads, value // heads)
    if block is not None:
        # With a bias the last of the copies is made in two steps.
        added = _floats(batch * seen * value) + 2 * ALIGNED if call.has(3) else 0
        return copies + max(block, added)
    seen += past
    total = copies + _floats(batch * heads * rows * seen, batch * rows * value) + ALIGNED
    total += _floats(batch * seen) if call.has(4) else 0
    return total + (_floats(batch * rows * seen) if call.number("unidirectional") else 0)


def _plain_attention(kernel: KernelCall) -> int:
    call = kernel.call
    query, key = kernel.read(0), kernel.read(1)
    if len(query) == 4:
        batch, heads, rows, _ = query
        seen = key[2]
    else:
        batch, rows, _ = query
        heads, seen = call.number("q_num_heads"), key[1]
    seen += kernel.read(4)[2] if call.has(4) else 0
    total = _floats(batch * heads * rows * seen)
    if call.number("is_causal") or kernel.is_one_of(3, "bool"):
        mask = kernel.read(3) if call.has(3) else (rows, seen)
        total += _floats(math.prod(mask))
    return total


def _grouped(kernel: KernelCall) -> int | None:
    call = kernel.call
    if not kernel.is_one_of(0, "float32"):
        return None
    batch, rows, hidden = kernel.read(0)
    heads, groups = call.number("num_heads", 1), call.number("kv_num_heads", 1)
    width = hidden // (heads if call.has(1) else heads + 2 * groups)
    query, key = batch * rows * heads * width, batch * rows * groups * width
    seen = rows + (kernel.read(3)[2] if call.has(3) else 0)
    if kernel.has_output(1):
        seen = _numbers(call.made(1))[2]
    total = _floats(query, key, key)
    if call.number("do_rotary"):
        total += _floats(query, key) if call.has(1) else _floats(query + 2 * key)
    scored = call.attribute("softcap") or call.number("smooth_softmax") == 1 or call.has(11)
    block = None if scored else _blocked(kernel, rows, seen, width, width)
    return total + (_floats(batch * heads * rows * seen) if block is None else block)


# --- the others ----------------------------------------------------------------------------------

_SINCE_AXIS = 13
"""The version of Softmax and the like since which they turn an inner axis to the end."""


def _softmax(kernel: KernelCall) -> int:
    call, shape = kernel.call, kernel.read(0)
    axis = call.number("axis", -1) % len(shape)
    if call.opset < _SINCE_AXIS or axis == len(shape) - 1:
        return 0
    return 2 * _floats(math.prod(shape))


def _response_normalization(kernel: KernelCall) -> int:
    shape = kernel.read(0)
    channels = shape[1] + kernel.call.number("size") - 1
    return _floats(math.prod(shape), channels * math.prod(shape[2:]))


def _biased_gelu(kernel: KernelCall) -> int:
    return _floats(math.prod(kernel.read(0))) if kernel.call.has(1) else 0


def _several(kernel: KernelCall) -> int:
    """Return what Sum and the like ask for: of more than two operands each result but the last."""
    shapes = [kernel.read(at) for at in range(len(kernel.call.inputs))]
    bits = 8 if kernel.is_one_of(0, "float64", "int64", "uint64") else _FLOAT
    return aligned(bits * math.prod(_broadcast(*shapes))) if len(shapes) > 2 else 0


_BYTES = {"float64": 8, "int64": 8, "float16": 2, "bool": 1, "uint8": 1, "int8": 1}


def _where(kernel: KernelCall) -> int:
    size = _BYTES.get(kernel.dtypes[1] if len(kernel.dtypes) > 1 else "", _FLOAT)
    condition = kernel.read(0)
    parts = (_broadcast(condition, kernel.read(at)) for at in (1, 2))
    return sum(aligned(size * math.prod(part)) for part in parts)


def _broadcast(*shapes: Sequence[int]) -> list[int]:
    rank = max(map(len, shapes))
    full = [[*[1] * (rank - len(shape)), *shape] for shape in shapes]
    return [next((size for size in sizes if size != 1), 1) for sizes in zip(*full, strict=True)]


def _dequantized_input(kernel: KernelCall) -> int:
    return _floats(math.prod(kernel.read(0)))


_Rule = Callable[[KernelCall], "int | None"]
_MS, _BLOCKED = "com.microsoft", "com.microsoft.nchwc"
_RULES: Mapping[tuple[str, str], _Rule] = {
    ("", "LSTM"): _lstm,
    (_MS, "DynamicQuantizeLSTM"): lambda kernel: _lstm(kernel, packed=True),
    ("", "GRU"): _gru,
    ("", "RNN"): _rnn,
    ("", "Conv"): _convolution,
    (_MS, "FusedConv"): _convolution,
    ("", "ConvTranspose"): _transposed,
    ("", "DeformConv"): _deformed,
    ("", "ConvInteger"): _integer_convolution,
    ("", "QLinearConv"): _quantized_convolution,
    (_MS, "QLinearConv"): _quantized_convolution,
    (_MS, "DynamicQuantizeMatMul"): _quantized_rows,
    ("", "QLinearMatMul"): _int32_output,
    (_MS, "QGemm"): _int32_output,
    (_MS, "MatMulNBits"): _few_bits,
    (_MS, "Attention"): _fused_attention,
    (_MS, "MultiHeadAttention"): _multi_head,
    ("", "Attention"): _plain_attention,
    (_MS, "GroupQueryAttention"): _grouped,
    ("", "Softmax"): _softmax,
    ("", "LogSoftmax"): _softmax,
    ("", "Hardmax"): _softmax,
    ("", "LRN"): _response_normalization,
    (_MS, "BiasGelu"): _biased_gelu,
    (_MS, "FastGelu"): _biased_gelu,
    ("", "Sum"): _several,
    ("", "Mean"): _several,
    ("", "Max"): _several,
    ("", "Min"): _several,
    ("", "Where"): _where,
    (_MS, "QLinearAveragePool"): _dequantized_input,
}
_NONE = frozenset(
    {(_MS, name) for name in (
        "FusedGemm", "FusedMatMul", "FusedMatMulActivation", "Gelu", "QuickGelu", "BiasAdd",
        "GatherBlockQuantized", "MatMulIntegerToFloat", "QLinearAdd", "QLinearMul", "QLinearConcat",
        "QLinearSigmoid", "QLinearLeakyRelu", "QLinearGlobalAveragePool", "QLinearSoftmax",
        "RotaryEmbedding", "SkipLayerNormalization", "SkipSimplifiedLayerNormalization",
        "SimplifiedLayerNormalization", "EmbedLayerNormalization", "QuantizeLinear",
        "DequantizeLinear", "DynamicQuantizeLinear", "TransposeMatMul", "NhwcMaxPool", "Pad",
        "ExpandDims",
    )}
    | {(_BLOCKED, name) for name in (
        "Conv", "MaxPool", "AveragePool", "GlobalMaxPool", "GlobalAveragePool", "ReorderInput",
        "ReorderOutput", "Upsample",
    )}
)  # fmt: skip
"""Operators of ONNX Runtime that ask for nothing, as those of ai.onnx that have no rule."""
_UNKNOWN = frozenset({"Einsum", "DFT", "STFT", "MoE", "QMoE", "LinearAttention"})
