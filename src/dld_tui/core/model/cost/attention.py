"""The work of attention, in each of its operators."""

from __future__ import annotations

from dld_tui.core.model.cost.call_shapes import (
    Work,
    shape_in,
    shape_out,
    whole,
)
from dld_tui.core.model.shapes.call import Call
from dld_tui.core.model.shapes.size import Count, symbol

SOFTMAX = 5
"""Operations an element: maximum, difference, exp, sum, quotient."""


def _pairs(rows: Count, seen: Count, heads: Count, key: Count, value: Count, more: int = 0) -> Work:
    """Return the work of scores and weighted sums.

    Args:
        rows: Positions that ask, of the whole batch.
        seen: Positions that each of them looks at.
        heads: How many heads ask.
        key: Elements of a key of one head.
        value: Elements of a value of one head.
        more: Operations per score besides its scale and softmax.
    """
    scores = rows * seen * heads
    return scores * (key + value), scores * (SOFTMAX + 1 + more)


def _is_softcapped(call: Call) -> bool:
    cap = call.attribute("softcap")
    return cap is not None and cap.f != 0


def _per_score(call: Call, bias: int) -> int:
    """Return the operations of a cap, ``softcap * tanh(score / softcap)``, and of a bias or mask.

    Args:
        call: Of attention.
        bias: The index of the bias.
    """
    return 3 * _is_softcapped(call) + call.has(bias)


def attention(call: Call) -> Work:
    """Return the work of Attention, of ai.onnx or of com.microsoft."""
    if len(shape_in(call, 1)) != 2:  # ai.onnx has keys where com.microsoft has weights
        return _plain_attention(call)
    batch, rows, depth = shape_in(call, 0)
    columns = shape_in(call, 1)[-1]
    heads = call.number("num_heads", 1)
    listed = call.numbers("qkv_hidden_sizes")
    key, value = (listed[1], listed[2]) if listed else (whole(columns) // 3,) * 2
    seen: Count = rows
    if call.has(4):  # a shared buffer has the longest sequence, this one included
        past = shape_in(call, 4)[-2]
        seen = past if call.number("past_present_share_buffer", 0) else rows + past
    macs, operations = _pairs(batch * rows, seen, heads, key // heads, value // heads)
    scores = batch * rows * columns
    return macs + scores * depth, operations + (scores if call.has(2) else 0)


def _window(seen: Count, most: int) -> Count:
    """Return the positions that attention with a local window covers."""
    if isinstance(seen, int):
        return min(seen, most)
    return symbol(f"min({seen}, {most})")


def _plain_attention(call: Call) -> Work:
    query, key, value = shape_in(call, 0), shape_in(call, 1), shape_in(call, 2)
    past = shape_in(call, 4)[2] if call.has(4) else 0
    more = _per_score(call, 3)
    left = call.number("left_window_size", -1)
    right = 0 if call.number("is_causal", 0) else call.number("right_window_size", -1)

    def seen(count: Count) -> Count:
        return _window(count, left + right + 1) if min(left, right) >= 0 else count

    if len(query) == 4:
        batch, heads, rows, width = query
        return _pairs(batch * rows, seen(key[2] + past), heads, width, value[3], more)
    heads, groups = call.number("q_num_heads", 0), call.number("kv_num_heads", 0)
    width, deep = whole(query[2]) // heads, whole(value[2]) // groups
    return _pairs(query[0] * query[1], seen(key[1] + past), heads, width, deep, more)


def flexible_attention(call: Call) -> Work:
    """Return the work of FlexAttention without its subgraphs, which change the scores."""
    batch, heads, rows, width = shape_in(call, 0)
    return _pairs(batch * rows, shape_in(call, 1)[2], heads, width, shape_in(call, 2)[3])


def multi_head_attention(call: Call) -> Work:
    """Return the work of MultiHeadAttention."""
    query, heads = shape_in(call, 0), call.number("num_heads", 1)
    past = shape_in(call, 6)[2] if call.has(6) else 0
    if len(query) == 5:  # queries, keys and values in one
        return _pairs(query[0] * query[1], query[1] + past, heads, query[4], query[4])
    key, width = shape_in(call, 1), whole(query[2]) // heads
    if len(key) == 4 or not call.has(2):  # of another sequence, or keys and values in one
        return _pairs(query[0] * query[1], key[2 if len(key) == 4 else 1], heads, width, width)
    deep = whole(shape_in(call, 2)[2]) // heads
    # A shared buffer has the longest sequence, this one included.
    seen = past if call.has(8) and call.has(6) else key[1] + past
    return _pairs(query[0] * query[1], seen, heads, width, deep)


def decoder_attention(call: Call) -> Work:
    """Return the work of DecoderMaskedMultiHeadAttention: of one position and its past."""
    query, heads = shape_in(call, 0), call.number("num_heads", 1)
    if not call.has(1):  # queries, keys and values in one
        width = whole(query[2]) // 3 // heads
        deep = width
    else:
        width = whole(query[2]) // heads
        deep = width if len(shape_in(call, 1)) == 4 else whole(shape_in(call, 2)[2]) // heads
    if call.has(1) and len(shape_in(call, 1)) == 4:  # of another sequence
        seen = shape_in(call, 1)[2]
    elif call.has(5):
        shared = call.number("past_present_share_buffer", 0)
        seen = shape_in(call, 5)[2] + (0 if shared else query[1])
    else:
        seen = query[1]
    return _pairs(query[0] * query[1], seen, heads, width, deep)


def packed_attention(call: Call) -> Work:
    """Return the work of PackedAttention: positions of all sequences without padding."""
    tokens, depth = shape_in(call, 0)
    columns, heads = shape_in(call, 1)[-1], call.number("num_heads", 1)
    listed = call.numbers("qkv_hidden_sizes")
    key, value = (listed[1], listed[2]) if listed else (whole(columns) // 3,) * 2
    macs, operations = _pairs(tokens, shape_in(call, 3)[1], heads, key // heads, value // heads)
    projected = tokens * columns
    return macs + projected * depth, operations + (projected if call.has(2) else 0)


def packed_multi_head_attention(call: Call) -> Work:
    """Return the work of PackedMultiHeadAttention."""
    query, heads = shape_in(call, 0), call.number("num_heads", 1)
    longest = shape_in(call, 4)[1]
    if len(query) == 4:
        return _pairs(query[0], longest, heads, query[3], query[3])
    width, deep = whole(query[1]) // heads, whole(shape_in(call, 2)[1]) // heads
    return _pairs(query[0], longest, heads, width, deep)


def linear_attention(call: Call) -> Work:
    """Return the work of a recurrent state per head that each position updates and reads."""
    query, key, value = shape_in(call, 0), shape_in(call, 1), shape_in(call, 2)
    heads, groups = call.number("q_num_heads", 0), call.number("kv_num_heads", 0)
    width, deep = whole(key[2]) // groups, whole(value[2]) // groups
    rule = call.text("update_rule", "gated_delta")
    tokens, state = query[0] * query[1], width * deep
    updates = 2 if "delta" in rule else 1  # what the state has of the key, and what comes in
    operations = groups * (2 * deep if "delta" in rule else 0) + heads * deep
    if "gated" in rule:
        operations += groups * state + whole(shape_in(call, 4)[2])
    return tokens * ((groups * updates + heads) * state), tokens * operations


def grouped_query_attention(call: Call) -> Work:
    """Return the work of GroupQueryAttention, with the rotation that it may do."""
    query, heads = shape_in(call, 0), call.number("num_heads", 1)
    packed = heads if call.has(1) else heads + 2 * call.number("kv_num_heads", 0)
    width = whole(query[2]) // packed
    if len(call.results) > 1 and call.results[1].is_known:
        seen = shape_out(call, 1)[2]
    else:
        seen = query[1] + (shape_in(call, 3)[2] if call.has(3) else 0)
    window = call.number("local_window_size", -1)
    if window > 0:
        seen = _window(seen, window)
    turned: Count = 0
    if call.number("do_rotary", 0):
        turned = query[0] * query[1] * ((heads + call.number("kv_num_heads", 0)) * width * 3)
    more = _per_score(call, 10)
    macs, operations = _pairs(query[0] * query[1], seen, heads, width, width, more)
    return macs, operations + turned
