"""Attention of ai.onnx and com.microsoft, with and without caches."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from dld_tui.core.model.shapes.call import Call
from dld_tui.core.model.shapes.rules.convolution import state
from dld_tui.core.model.shapes.size import UNKNOWN, Size
from dld_tui.core.model.shapes.value import NOTHING, Dims, Value

_BATCH = "query, key, value and cache have one batch"
_HEADS = "the cache has the heads of key and value"
_WIDTH = "the cache has the size of a head"
_LONG = "the length of the cache is that of the tokens before"


def _share(width: Size, heads: int, of: int) -> Size:
    """Return how wide some of the heads are that stand in one row."""
    return width // of * heads if heads and of else UNKNOWN


def _heads_of(c: Call, cache: Dims, width: Size, heads: int) -> None:
    """Demand that a cache of heads, length and head size fits what is added to it."""
    if heads and len(cache) == 3:
        c.demands.equal(cache[0], heads, _HEADS)
        c.demands.equal(cache[2], _share(width, 1, heads), _WIDTH)


def _of_rank(dims: Dims | None, rank: int) -> Dims | None:
    return dims if dims is not None and len(dims) == rank else None


def _attention(c: Call) -> Sequence[Value]:
    """Attention of ai.onnx: query, key, value, mask, past key and value; 3 or 4 dimensions."""
    query, key, value = c.dims(0), c.dims(1), c.dims(2)
    if query is None or key is None or value is None:
        return [NOTHING] * 4
    heads, own = c.number("q_num_heads", 0), c.number("kv_num_heads", 0)
    at = 1 if len(query) == 3 else 2
    c.demands.equal(query[0], key[0], _BATCH)
    c.demands.equal(key[at], value[at], "key and value are equally long")
    if len(query) == 3:
        parts = [(key[0], own or UNKNOWN, key[1], _share(key[2], 1, own)),
                 (value[0], own or UNKNOWN, value[1], _share(value[2], 1, own))]  # fmt: skip
    else:
        parts, heads = [key, value], 0
    total = key[at]
    past = _of_rank(c.dims(4), 4)
    if past is not None:
        c.demands.equal(query[0], past[0], _BATCH)
        c.demands.equal(past[1], parts[0][1], _HEADS)
        c.demands.equal(past[3], parts[0][3], _WIDTH)
        total = total + past[2]
    elif c.has(4):
        total = UNKNOWN
    mask = c.dims(3)
    if mask:
        if c.version < 24:
            c.demands.joined(mask[-1], total)
        else:  # what the mask does not reach is hidden
            c.demands.at_least(total, mask[-1], "the mask is no longer than what it hides")
        if len(mask) > 1:
            c.demands.joined(mask[-2], query[at])
    present = [Value((part[0], part[1], total, part[3])) for part in parts]
    width = heads * parts[1][3] if heads else value[-1]
    if len(query) == 3:
        out: Dims = (*query[:2], width if heads else UNKNOWN)
        scores = (query[0], heads or UNKNOWN, query[1], total)
    else:
        out, scores = (*query[:3], value[3]), (*query[:3], total)
    return [Value(out), *present, Value(scores)]


def _scattered_heads(c: Call) -> Sequence[Value]:
    """LinearAttention: packed query, key and value, past state."""
    query, key, value = c.dims(0), c.dims(1), c.dims(2)
    heads, groups = c.number("q_num_heads", 0), c.number("kv_num_heads", 0)
    if query is None or key is None or value is None or not (heads and groups):
        return [NOTHING, NOTHING]
    sizes = [item[-1] // groups for item in (key, value)]
    return [
        Value((*query[:2], max(heads, groups) * sizes[1])),
        state((query[0], groups, *sizes), c),
    ]


def _rotary_standard(c: Call) -> Sequence[Value]:
    table = c.dims(1)
    if table is not None and len(table) == 2:
        c.demands.bound(c.input(3), table[0])
    return [Value(c.dims())]


def _flexible(c: Call) -> Sequence[Value]:
    """FlexAttention: query, key and value of four dimensions, scores changed by subgraphs."""
    query, value = _of_rank(c.dims(0), 4), _of_rank(c.dims(2), 4)
    if query is None:
        return [NOTHING]
    return [Value((*query[:3], UNKNOWN if value is None else value[3]))]


PREVIEW: dict[str, Callable[[Call], Sequence[Value]]] = {"FlexAttention": _flexible}
"""By operator of ai.onnx.preview."""

STANDARD: dict[str, Callable[[Call], Sequence[Value]]] = {
    "Attention": _attention, "RotaryEmbedding": _rotary_standard,
    "LinearAttention": _scattered_heads,
}  # fmt: skip
"""By operator of ai.onnx."""


def _grouped(c: Call) -> Sequence[Value]:
    """GroupQueryAttention: query, key, value, past key and value, lengths, total, cos and sin."""
    query, past, total = _of_rank(c.dims(0), 3), _of_rank(c.dims(3), 4), c.element(6)
    heads, groups = c.number("num_heads", 0), c.number("kv_num_heads", 0)
    windowed = bool(c.number("sliding_window_cache", 0))
    length = query[1] if query is not None else UNKNOWN
    if past is not None:
        if windowed:
            c.demands.at_least(past[2], c.number("local_window_size", 0), _LONG)
        else:
            c.demands.equal(total, length + past[2], _LONG)
        if query is not None:
            c.demands.equal(query[0], past[0], _BATCH)
        if heads and groups:
            size = UNKNOWN
            if query is not None:
                size = _share(query[2], 1, heads if c.has(1) else heads + 2 * groups)
            if c.number("kv_cache_bit_width", 0) == 4:
                size = (size + 1) // 2  # two elements are one byte of the cache
            c.demands.equal(past[1], groups, _HEADS)
            c.demands.equal(past[3], size, _WIDTH)
    rows = c.dims(7)
    if rows:
        c.demands.at_least(rows[0], total, "there is an angle for each token")
    present: Dims | None = None
    if past is not None:
        present = past if windowed else (*past[:2], total, past[3])
    out = None
    if query is not None:
        width = query[2] if c.has(1) else _share(query[2], heads, heads + 2 * groups)
        out = (*query[:2], width)
    return [Value(out), Value(present), Value(present)]


def _projected(c: Call) -> Sequence[Value]:
    """Attention of com.microsoft, and QAttention: past is the fifth or the ninth input."""
    dims, weights = _of_rank(c.dims(0), 3), _of_rank(c.dims(1), 2)
    if dims is None:
        return [NOTHING, NOTHING]
    width: Size = UNKNOWN
    if weights is not None:
        c.demands.equal(dims[2], weights[0], "the weights have the features of the data")
        width = weights[1] // 3
    listed = c.numbers("qkv_hidden_sizes")
    if listed is not None and len(listed) == 3:
        width = listed[2]
    past_at = 8 if c.operator == "QAttention" else 4
    past, heads = _of_rank(c.dims(past_at), 5), c.number("num_heads", 0)
    present: Dims | None = None
    if past is not None:
        c.demands.equal(past[1], dims[0], _BATCH)
        _heads_of(c, past[2:], width, heads)
        total = past[3] if c.number("past_present_share_buffer", 0) else past[3] + dims[1]
        present = (*past[:3], total, past[4])
    elif not c.has(past_at):  # what is made of these tokens alone
        present = (2, dims[0], heads or UNKNOWN, dims[1], _share(width, 1, heads))
    return [Value((*dims[:2], width)), Value(present)]


def _sparse(c: Call) -> Sequence[Value]:
    """SparseAttention: query, key, value, or all in one; past key and value of full length."""
    query = _of_rank(c.dims(0), 3)
    heads, groups = c.number("num_heads", 0), c.number("kv_num_heads", 0)
    out = None
    if query is not None:
        width = query[2] if c.has(1) else _share(query[2], heads, heads + 2 * groups)
        out = (*query[:2], width)
    return [Value(out), Value(c.dims(3)), Value(c.dims(4))]


def _multi_head(c: Call) -> Sequence[Value]:
    """MultiHeadAttention: query, key, value, three that change no shape, past key and value."""
    query, key, value = c.dims(0), c.dims(1), c.dims(2)
    if query is None:
        return [NOTHING] * 4
    width: Size = UNKNOWN
    heads, total_keys = c.number("num_heads", 0), UNKNOWN
    for packed in (query, key, value):  # one of five dimensions has the values, too
        if packed is not None and len(packed) == 5:
            width = packed[2] * packed[4]
    if value is not None:
        width = value[2] if len(value) == 3 else value[1] * value[3] if len(value) == 4 else width
    results = []
    for new, at in ((key, 6), (value, 7)):
        past = _of_rank(c.dims(at), 4)
        own = _of_rank(new, 3)
        if len(c.inputs) > 8 and c.has(8):  # the cache has its full length
            results.append(NOTHING)
        elif past is not None and own is not None:
            _heads_of(c, past[1:], own[2], heads)
            results.append(Value((*past[:2], past[2] + own[1], past[3])))
        elif own is not None and not c.has(at):
            results.append(Value((own[0], heads or UNKNOWN, own[1], _share(own[2], 1, heads))))
        elif new is not None and len(new) == 4 and not c.has(at):
            results.append(Value(new))
        else:
            results.append(NOTHING)
    if results[0].dims is not None:
        total_keys = results[0].dims[2]
    scores = Value((query[0], heads or UNKNOWN, query[1], total_keys))
    return [Value((*query[:2], width)), *results, scores]


def _decoder_masked(c: Call) -> Sequence[Value]:
    """DecoderMaskedMultiHeadAttention: one new token, a cache that may have its full length."""
    query, value = _of_rank(c.dims(0), 3), c.dims(2)
    if query is None:
        return [NOTHING] * 4
    width: Size = UNKNOWN
    if value is not None:
        width = value[2] if len(value) == 3 else value[1] * value[3]
    added = 0 if c.number("past_present_share_buffer", 0) else 1
    presents = [
        NOTHING if past is None else Value((*past[:2], past[2] + added, past[3]))
        for past in (_of_rank(c.dims(at), 4) for at in (5, 6))
    ]
    return [Value((*query[:2], width)), *presents, NOTHING]


def _rotary(c: Call) -> Sequence[Value]:
    index, table = c.input(1), c.dims(2)
    if table is not None and len(table) == 2:
        c.demands.bound(index, table[0])
    return [Value(c.dims())]


CONTRIB: dict[str, Callable[[Call], Sequence[Value]]] = {
    "GroupQueryAttention": _grouped, "Attention": _projected, "QAttention": _projected,
    "SparseAttention": _sparse, "MultiHeadAttention": _multi_head,
    "DecoderMaskedMultiHeadAttention": _decoder_masked, "LinearAttention": _scattered_heads,
    "RotaryEmbedding": _rotary,
}  # fmt: skip
"""By operator of com.microsoft."""
