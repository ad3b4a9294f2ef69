"""What kernels of attention and its caches refuse."""

from __future__ import annotations

from dld_tui.core.checks.calls import Call, Dims
from dld_tui.core.checks.kernels.shape_patterns import (
    axis_of,
    compared,
    in_range,
)
from dld_tui.core.checks.operands import (
    VALUE,
    Said,
    differ,
    dims_text,
    wrong,
)


def rotary(call: Call) -> Said:
    """Yield what is wrong with RotaryEmbedding."""
    x, heads = call.dims(0), call.attribute("num_heads", 0)
    dim = call.attribute("rotary_embedding_dim", 0)
    if x is None or len(x) not in (3, 4):
        if x is not None:
            yield wrong(f"The data is {dims_text(x)}, it must have 3 or 4 dimensions")
        return
    if len(x) == 3 and heads <= 0:
        yield VALUE, "Attribute num_heads must be positive for data of 3 dimensions"
        return
    hidden = x[-1] if len(x) == 4 or x[-1] is None else x[-1] // heads
    if len(x) == 3 and x[-1] is not None and x[-1] % heads:
        yield wrong(f"{x[-1]} elements cannot be shared by {heads} heads")
        return
    if dim > 0 and hidden is not None and dim > hidden:
        yield VALUE, f"Attribute rotary_embedding_dim is {dim}, a head has {hidden} elements"
        return
    half = dim // 2 if dim > 0 else None if hidden is None else hidden // 2
    known: dict[str, int | Dims] = {} if half is None else {"half": half}
    for name, size in (("batch", x[0]), ("length", x[-2] if len(x) == 4 else x[1])):
        if size is not None:
            known[name] = size
    cache = ["n", "half"] if call.has(3) else ["batch", "length", "half"]
    patterns = [[], cache, cache, ["batch", "length"] if call.has(3) else []]
    yield from compared([call.dims(index) for index in range(4)], patterns, known)


def attention(call: Call) -> Said:
    """Yield what is wrong with Attention."""
    q, k, v = (call.dims(index) for index in range(3))
    if q is None or k is None or v is None:
        return
    if not len(q) == len(k) == len(v) or 0 in (*q, *k, *v):
        yield wrong(f"{dims_text(q)}, {dims_text(k)} and {dims_text(v)} do not go together")
        return
    heads, kv_heads = call.attribute("q_num_heads", 0), call.attribute("kv_num_heads", 0)
    if len(q) == 4:
        pattern = [["B", "H", "Q", "D"], ["B", "G", "L", "D"], ["B", "G", "L", "E"]]
        heads, kv_heads = heads or q[1], kv_heads or k[1]
        width, value_width = q[3], v[3]
        known: dict[str, int | Dims] = {
            name: size for name, size in (("H", heads), ("G", kv_heads)) if size is not None
        }
    elif len(q) == 3:
        if heads < 1 or kv_heads < 1:
            yield VALUE, "q_num_heads and kv_num_heads are needed for data of 3 dimensions"
            return
        pattern = [["B", "Q", "_"], ["B", "L", "_"], ["B", "L", "_"]]
        known = {"H": heads, "G": kv_heads}
        for what, size, count in (("Q", q[2], heads), ("V", v[2], kv_heads)):
            if size is not None and size % count:
                yield wrong(f"{what} has {size} elements for {count} heads")
                return
        width = None if q[2] is None else q[2] // heads
        value_width = None if v[2] is None else v[2] // kv_heads
        if width is not None and differ(k[2], width * kv_heads):
            yield wrong(f"K has {k[2]} elements, {kv_heads} heads of {width} are needed")
            return
    else:
        yield wrong(f"Input 0 is {dims_text(q)}, it must have 3 or 4 dimensions")
        return
    if heads is not None and kv_heads and heads % kv_heads:
        yield wrong(f"{heads} heads of queries cannot share {kv_heads} heads of keys")
        return
    if width is not None:
        known["D"] = width
    if value_width is not None:
        known["E"] = value_width
    past = [["B", "G", "P", "D"], ["B", "G", "P", "E"]]
    found = [q, k, v, None, call.dims(4), call.dims(5)]
    problem = next(compared(found, [*pattern, [], *past], known), None)
    if problem is not None:
        yield problem
        return
    mask, length = call.dims(3), known.get("L")
    counts = call.value(6)
    if call.rank(6) not in (None, 1):
        yield wrong(f"Input 6 is {dims_text(call.dims(6) or ())}, it must have one dimension")
    if counts is not None and counts.size and isinstance(length, int):
        yield from in_range(call, 6, length + 1, negative=False)
    if mask is None or not isinstance(length, int):
        return
    before = known.get("P", None if call.has(4) else 0)
    total = length + before if isinstance(before, int) else None
    queries = known.get("Q")
    fits = 2 <= len(mask) <= 4 and not differ(
        mask[-2], queries if isinstance(queries, int) else None
    )
    if not fits or (call.version < 24 and differ(mask[-1], total)):
        yield wrong(f"The mask is {dims_text(mask)}, needed: [{queries}, {total or '?'}]")


def attention_numbers(call: Call) -> Said:
    """Yield numbers that Attention does not take."""
    scale, mode = call.attribute("scale"), call.attribute("qk_matmul_output_mode", 0)
    if isinstance(scale, float) and scale <= 0:
        yield VALUE, f"Attribute scale is {scale:g}, it must be positive"
    mode = (mode + (1 << 31)) % (1 << 32) - (1 << 31)  # only 32 bits are looked at
    if not -1 <= mode <= 3 and any(call.node.output[3:]):
        yield VALUE, f"Attribute qk_matmul_output_mode is {mode}, it takes 0 to 3"


def scattered(call: Call) -> Said:
    """Yield what is wrong with TensorScatter."""
    cache, update = call.dims(0), call.dims(1)
    if not cache or not update or len(cache) != len(update):
        return
    axis = axis_of(call, len(cache), -2)
    size = None if axis is None else cache[axis]
    taken = None if axis is None else update[axis]
    places = call.value(2)
    if size is not None and taken is not None and taken > size:
        yield wrong(f"An update of {taken} does not fit into a cache of {size}")
        return
    if places is None or not places.size:
        return
    if places.min() < 0:
        yield wrong(f"An update is written to {places.min()}")
    elif (
        call.attribute("mode", "linear") == "linear"
        and size is not None
        and taken is not None
        and int(places.max()) + taken > size
    ):
        yield wrong(f"{taken} elements from {places.max()} on do not fit into {size}")
