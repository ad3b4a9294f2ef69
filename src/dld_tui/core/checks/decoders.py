"""Checks of decoders: heads, caches, int4 weights, masks, and missing fusions.

The ids of these rules begin with ``decoder:``; docs/reference/checks.md explains each.
Sizes that are not known fit everything. Fusions are looked for in models with a cache alone.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace

from dld_tui.core import fmt
from dld_tui.core.checks.findings import DECODER_RULES, Finding, name_of
from dld_tui.core.checks.rewrites import ATTENTION, NORM, ROTARY, fitting_rule
from dld_tui.core.model.document.document import Document
from dld_tui.core.model.document.node import Node
from dld_tui.core.model.document.scope import Scope
from dld_tui.core.model.inputs.roles import CachePair, cache_pairs, words_of
from dld_tui.core.model.tensors.value_types import ValueType
from dld_tui.core.reach import reached

_NUMBER = re.compile(r"\d+")
_HALVES = ("key", "value", "k", "v")
_FEW_LAYERS = 0.25
"""Layers that differ from the others are worth a word up to this share: some models mix kinds."""
SCALED_EXPERTS = (
    "normalize_routing_weights is 0, but ONNX Runtime 1.31's CPU kernel of QMoE normalizes all the"
    " same, unlike that of MoE"
)
"""About nodes of which :func:`scales_experts` is true."""


def decoder_findings(document: Document) -> list[Finding]:
    """Return all findings on decoders: none for a model that is none."""
    main = document.main
    findings: list[Finding] = []
    for op_type, rule in _BY_OPERATOR.items():
        for scope in document.scopes():
            for node in scope.nodes_of_type(op_type):
                findings += rule(node)
    pairs = cache_pairs(document)
    if pairs:
        findings += [*_caches(main, pairs), *_unused_past(main, pairs), *_mask(main, pairs)]
        findings += _fusions(main)
    return findings


def _finding(rule: str, message: str, node: Node) -> Finding:
    return Finding(DECODER_RULES[rule], rule, message, node.scope, node)


def _about_value(rule: str, message: str, scope: Scope, value: str) -> Finding:
    return Finding(DECODER_RULES[rule], rule, message, scope, None, value)


def _type(node: Node, at: int) -> ValueType | None:
    name = node.inputs[at] if at < len(node.inputs) else ""
    return node.scope.value_type(name) if name else None


def _sizes(node: Node, at: int, rank: int) -> list[int | None]:
    """Return the sizes of an input; None where one is unknown or the rank differs."""
    known = _type(node, at)
    dims = known.dims if known is not None else None
    if dims is None or len(dims) != rank:
        return [None] * rank
    return [dim if isinstance(dim, int) and dim >= 0 else None for dim in dims]


def _grouped(node: Node) -> Iterator[Finding]:
    """Check heads, sizes and the shape of the lengths of GroupQueryAttention."""
    if node.domain != "com.microsoft":
        return
    heads, groups = node.integer("num_heads", 0), node.integer("kv_num_heads", 0)
    if heads < 1 or groups < 1 or heads % groups:
        yield _finding(
            "decoder:heads", f"{heads} heads cannot share {groups} heads of keys and values", node
        )
        return
    size = None
    for at, label in ((3, "past key"), (4, "past value")):
        _, cached, _, width = _sizes(node, at, 4)
        if cached is not None and cached != groups:
            yield _finding(
                "decoder:heads", f"its {label} has {cached} heads, the node has {groups}", node
            )
        if width is not None and node.integer("kv_cache_bit_width", 0) == 4:
            width *= 2  # two elements of a key or value are one byte of the cache
        size = size or width
    packed = not (len(node.inputs) > 1 and node.inputs[1])
    wanted = [("query", 0, heads + 2 * groups if packed else heads)]
    wanted += [] if packed else [("key", 1, groups), ("value", 2, groups)]
    wide = set() if size is None else {size}
    for label, at, count in wanted:
        width = _sizes(node, at, 3)[2]
        if width is None:
            continue
        wide.add(width // count)
        if width % count or (size is not None and width != count * size):
            of = f"heads of {size}" if size is not None else "heads"
            yield _finding("decoder:heads", f"its {label} of {width} is not {count} {of}", node)
    yield from _head_size(node, wide.pop() if len(wide) == 1 else None)
    known = _type(node, 5)  # that they are int32 is a matter of the operator's types: input-type
    if known is not None and known.dims is not None and len(known.dims) not in (1, 2):
        text = f"its lengths of sequences have {len(known.dims)} dimensions, not one a sequence"
        yield _finding("decoder:lengths", text, node)


def _head_size(node: Node, size: int | None) -> Iterator[Finding]:
    """Check what ONNX Runtime asks of the heads of GroupQueryAttention, whatever their number."""
    turns = all(node.inputs[7:9]) and len(node.inputs) > 8  # even with do_rotary = 0
    multiple, why = (16, " where there are tables of cos and sin") if turns else (8, "")
    if size is not None and size % multiple:
        text = f"its heads are {size} wide, ONNX Runtime takes multiples of {multiple}{why}"
        yield _finding("decoder:head-size", text, node)
    elif turns:
        yield from _unlike_tables(node, 7)
        width = _width(node, 7)
        if width is not None and (width % 8 or (size is not None and width > size // 2)):
            most = "" if size is None else f" up to {size // 2}"
            text = f"its tables of cos are {width} wide, ONNX Runtime takes multiples of 8{most}"
            yield _finding("decoder:rotary-table", text, node)


def _width(node: Node, at: int) -> int | None:
    """Return the last size of an input."""
    known = _type(node, at)
    last = known.dims[-1] if known is not None and known.dims else None
    return last if isinstance(last, int) else None


def _unlike_tables(node: Node, at: int) -> Iterator[Finding]:
    """Check that the table of sin has the shape of that of cos, the input before it."""
    cos, sin = _type(node, at), _type(node, at + 1)
    if cos is None or sin is None or not cos.dims or not sin.dims:
        return
    sizes = list(zip(cos.dims, sin.dims, strict=False))
    if len(cos.dims) != len(sin.dims) or any(
        isinstance(first, int) and isinstance(second, int) and first != second
        for first, second in sizes
    ):
        text = "its tables of cos and sin have different shapes"
        yield _finding("decoder:rotary-table", text, node)


def _rotary(node: Node) -> Iterator[Finding]:
    """Check the tables of cos and sin of RotaryEmbedding against the size of a head."""
    if node.domain not in ("", "com.microsoft"):
        return
    at = 2 if node.domain else 1
    heads, part = node.integer("num_heads", 0), node.integer("rotary_embedding_dim", 0)
    if node.domain and part and heads < 1:
        text = "it has rotary_embedding_dim without num_heads"
        yield _finding("decoder:rotary-table", text, node)
        return
    yield from _unlike_tables(node, at)
    known, table = _type(node, 0), _width(node, at)
    rank = len(known.dims) if known is not None and known.dims else 0
    width = _width(node, 0)
    if width is None or table is None or rank not in (3, 4):
        return
    if rank == 3 and heads < 1:  # then ONNX Runtime takes the tables for half a head
        if node.domain and (table < 1 or width % (2 * table)):
            text = (
                f"its input of {width} is not a multiple of heads of {2 * table}, twice its tables"
            )
            yield _finding("decoder:rotary-table", text, node)
        return
    if rank == 3 and width % heads:
        yield _finding("decoder:heads", f"its input of {width} is not {heads} heads", node)
        return
    size = width // heads if rank == 3 else width
    wanted = (part or size) // 2
    if part > size:
        text = f"its rotary_embedding_dim of {part} is more than a head of {size}"
    elif table == wanted:
        return
    elif node.domain and table == size // 2:
        text = (
            f"its tables of cos are {table} wide, not {wanted}: ONNX Runtime takes them, and reads"
            " wrong numbers"
        )
    else:
        text = f"its tables of cos are {table} wide, not {wanted}"
    yield _finding("decoder:rotary-table", text, node)


def _multi_head(node: Node) -> Iterator[Finding]:
    """Check the heads of MultiHeadAttention with three dimensions."""
    heads = node.integer("num_heads", 0)
    if node.domain != "com.microsoft" or heads < 1:
        return
    for at, label in enumerate(("query", "key", "value")):
        width = _sizes(node, at, 3)[2]
        if width is not None and width % heads:
            yield _finding("decoder:heads", f"its {label} of {width} is not {heads} heads", node)


def _projected(node: Node) -> Iterator[Finding]:
    """Check the heads of Attention of com.microsoft, whose weights make query, key and value."""
    if not (len(node.inputs) > 2 and node.inputs[2]):
        text = "it has no bias: ONNX Runtime 1.31 crashes in its CPU kernel, zeros would do"
        yield _finding("decoder:no-bias", text, node)
    heads, width = node.integer("num_heads", 0), _sizes(node, 1, 2)[1]
    given = node.attribute("qkv_hidden_sizes")
    listed = given.value if given is not None else None
    sizes = listed if isinstance(listed, (list, tuple)) and listed else [(width or 0) // 3] * 3
    for label, size in zip(("query", "key", "value"), sizes, strict=False):
        if heads > 0 and isinstance(size, int) and size % heads:
            yield _finding("decoder:heads", f"its {label} of {size} is not {heads} heads", node)
            return


def _attention(node: Node) -> Iterator[Finding]:
    """Check the heads of Attention: that of com.microsoft, that of ai.onnx in three dimensions."""
    if node.domain == "com.microsoft":
        yield from _projected(node)
        return
    heads, groups = node.integer("q_num_heads", 0), node.integer("kv_num_heads", 0)
    if node.domain or not (heads and groups):
        return
    if heads % groups:
        text = f"{heads} heads cannot share {groups} heads of keys and values"
        yield _finding("decoder:heads", text, node)
        return
    query, key = _sizes(node, 0, 3)[2], _sizes(node, 1, 3)[2]
    for label, width, count in (("query", query, heads), ("key", key, groups)):
        if width is not None and width % count:
            yield _finding("decoder:heads", f"its {label} of {width} is not {count} heads", node)
    if query is not None and key is not None and query // heads != key // groups:
        text = f"heads of its query are {query // heads} wide, those of its key {key // groups}"
        yield _finding("decoder:heads", text, node)


def _weights(node: Node) -> Iterator[Finding]:
    """Check packed weights, scales and zero points against each other and the attributes."""
    from dld_tui.core.model.document.packed_weights import misfits  # lazy: it needs numpy

    if node.op_type == "MatMulNBits" and node.domain == "com.microsoft":
        yield from _block_kernel(node)
    for text in misfits(node):
        yield _finding("decoder:block-sizes", text, node)


def _block_kernel(node: Node) -> Iterator[Finding]:
    """Check what the CPU kernel of MatMulNBits does not do as its operator says."""
    bits, zeros = node.integer("bits", 4), _type(node, 3)
    has_index = len(node.inputs) > 4 and bool(node.inputs[4])
    is_packed = zeros is not None and zeros.dtype == "uint8"
    text = ""
    if bits == 8 and has_index:
        text = "g_idx with 8 bits, which ONNX Runtime 1.31 refuses on the CPU"
    elif bits == 8 and zeros is not None and zeros.dtype and not is_packed:
        text = f"{zeros.dtype} zero points with 8 bits, which ONNX Runtime 1.31 refuses on the CPU"
    elif bits == 2 and has_index:
        text = "g_idx with 2 bits: ONNX Runtime 1.31 computes wrong numbers on the CPU"
    elif bits == 4 and has_index and is_packed:
        text = "g_idx beside packed zero points, which ONNX Runtime 1.31 then ignores on the CPU"
    if text:
        yield _finding("decoder:block-kernel", f"it has {text}", node)


def _mixture_kernel(node: Node) -> Iterator[Finding]:
    """Check for an input that the CPU kernel of MoE overwrites before it reads it.

    Its output takes the memory of the input where nothing else reads that afterwards.
    """
    scope, name = node.scope, node.inputs[0]
    if node.integer("normalize_routing_weights", 0):
        return
    if node.domain != "com.microsoft" or scope.producer(name) is None or name in scope.outputs:
        return
    before = reached(  # what runs before it, and itself
        [node],
        lambda user: [producer for value in user.inputs if (producer := scope.producer(value))],
    )
    if all(user in before for user in scope.consumers(name)):
        text = (
            "nothing reads its input afterwards, and normalize_routing_weights is 0: ONNX Runtime"
            " 1.31's CPU kernel then overwrites the input first, and leaves out the experts"
        )
        yield _finding("decoder:moe-kernel", text, node)


def _packed_experts(node: Node) -> Iterator[Finding]:
    yield from _weights(node)
    if scales_experts(node):
        yield _finding("decoder:moe-kernel", SCALED_EXPERTS, node)


def scales_experts(node: Node) -> bool:
    """Return whether the CPU kernel of a QMoE normalizes the weights of experts unasked."""
    return node.domain == "com.microsoft" and not node.integer("normalize_routing_weights", 0)


_BY_OPERATOR: dict[str, Callable[[Node], Iterator[Finding]]] = {
    "GroupQueryAttention": _grouped,
    "MultiHeadAttention": _multi_head,
    "Attention": _attention,
    "RotaryEmbedding": _rotary,
    "MatMulNBits": _weights,
    "GatherBlockQuantized": _weights,
    "QMoE": _packed_experts,
    "MoE": _mixture_kernel,
}


def _caches(main: Scope, pairs: list[CachePair]) -> Iterator[Finding]:
    """Find pairs of two layers, and layers whose caches are unlike those of the others."""
    kinds: dict[str, tuple[str, object]] = {}
    for pair in pairs:
        past_numbers, present_numbers = _NUMBER.findall(pair.past), _NUMBER.findall(pair.present)
        if (
            past_numbers
            and present_numbers
            and past_numbers[-1:] != present_numbers[-1:]
            and len(past_numbers) == len(present_numbers)
        ):
            text = f"it comes back as {name_of(pair.present)}, which is of another layer"
            yield _about_value("decoder:cache-pair", text, main, pair.past)
        past_half, present_half = _half_of(pair.past), _half_of(pair.present)
        if past_half and present_half and past_half[0] != present_half[0]:
            text = f"it comes back as {name_of(pair.present)}: keys and values change places"
            yield _about_value("decoder:cache-pair", text, main, pair.past)
        known = main.value_type(pair.past)
        dims = known.dims if known is not None else None
        fixed = tuple(dim for dim in dims or () if isinstance(dim, int))
        kinds[pair.past] = (
            past_half,
            (known.dtype if known is not None else "", len(dims or ()), fixed),
        )
    for part in dict.fromkeys(kind[0] for kind in kinds.values()):
        same = {name: kind for name, kind in kinds.items() if kind[0] == part}
        (usual, most), *_ = Counter(same.values()).most_common(1)
        odd = [name for name, kind in same.items() if kind != usual]
        if odd and len(same) > 2 and len(odd) <= _FEW_LAYERS * len(same) and most > 1:
            text = f"its type and sizes are other ones than those of {most} caches of other layers"
            for name in odd:
                yield _about_value("decoder:cache-alike", text, main, name)


def _half_of(name: str) -> str:
    """Return the last word of a name that says key or value; empty where none does."""
    return next((word for word in reversed(words_of(name)) if word in _HALVES), "")


def _unused_past(main: Scope, pairs: list[CachePair]) -> Iterator[Finding]:
    for pair in pairs:
        if not main.consumers(pair.past):
            text = "no node uses it: the cached tokens are ignored"
            yield _about_value("decoder:unused-past", text, main, pair.past)


def _mask(main: Scope, pairs: list[CachePair]) -> Iterator[Finding]:
    """Find a mask as long as the new tokens alone, where there are cached ones."""
    rows = [name for name in main.inputs if {"ids", "tokens"} & set(words_of(name))]
    lengths = {
        known.dims[1]
        for name in rows
        if not {"position", "type"} & set(words_of(name))
        if (known := main.value_type(name)) is not None and known.dims and len(known.dims) == 2
    }
    totals = set()
    for pair in pairs:
        known = main.value_type(pair.past)
        dims = known.dims if known is not None else None
        totals.add(dims[pair.axis] if dims is not None else None)
    for name in main.inputs:
        words = set(words_of(name))
        known = main.value_type(name)
        if "mask" not in words or words & {"encoder", "cross", "head"} or known is None:
            continue
        last = known.dims[-1] if known.dims and len(known.dims) == 2 else None
        if isinstance(last, str) and last and last in lengths and last not in totals:
            text = f"it is as long as the new tokens ({name_of(last)}); the cached ones count, too"
            yield _about_value("decoder:mask-length", text, main, name)


def _fusions(main: Scope) -> Iterator[Finding]:
    document = main.document
    assert isinstance(document, Document)
    for rule, unfused, text, names in (
        ("decoder:attention-not-fused", _plain_attentions(main),
         "attention of single operators ({count}): Attention of opset 23 or GroupQueryAttention"
         " does it at once, with the cache", ATTENTION),
        ("decoder:norm-not-fused", _plain_norms(main),
         "RMS normalization of single operators ({count}): RMSNormalization of opset 23 or"
         " SimplifiedLayerNormalization does it at once", NORM),
        ("decoder:rotary-not-fused", _plain_rotations(main),
         "rotary embedding of single operators ({count}): RotaryEmbedding of opset 23, or"
         " do_rotary of GroupQueryAttention, does it at once", ROTARY),
    ):  # fmt: skip
        nodes = list(unfused)
        if nodes:
            message = text.format(count=fmt.plural(len(nodes), "place"))
            finding = _finding(rule, message, nodes[0])
            yield replace(finding, rules=fitting_rule(document, *names))


def _only(main: Scope, name: str, *op_types: str) -> Node | None:
    """Return the reader of a value that has one of some types."""
    return next((node for node in main.consumers(name) if node.op_type in op_types), None)


def _plain_attentions(main: Scope) -> Iterator[Node]:
    for node in main.nodes_of_type("Softmax"):
        before = _source(main, node)
        for _ in range(6):
            if before is None or before.op_type not in ("Mul", "Div", "Add", "Where", "Cast"):
                break
            before = _source(main, before)
        after = _only(main, node.outputs[0], "MatMul", "Cast", "Dropout", "Where")
        for _ in range(3):
            if after is None or after.op_type == "MatMul":
                break
            after = _only(main, after.outputs[0], "MatMul", "Cast", "Dropout", "Where")
        if before is not None and before.op_type == "MatMul" and after is not None:
            yield node


def _source(main: Scope, node: Node) -> Node | None:
    return main.producer(node.inputs[0]) if node.inputs else None


def _plain_norms(main: Scope) -> Iterator[Node]:
    for node in main.nodes_of_type("ReduceMean"):
        square = main.producer(node.inputs[0]) if node.inputs else None
        is_square = square is not None and (
            square.op_type == "Pow" or (square.op_type == "Mul" and len(set(square.inputs)) == 1)
        )
        if square is None or not is_square:
            continue
        source = main.producer(square.inputs[0])
        if source is not None and source.op_type == "Sub":  # of LayerNormalization
            continue
        added = _only(main, node.outputs[0], "Add")
        root = None if added is None else _only(main, added.outputs[0], "Sqrt", "Pow")
        if root is not None:
            yield node


def _passing(main: Scope, node: Node, op_type: str, between: str) -> Node | None:
    """Return the node that uses a node's output, with or without one operator between them."""
    reader = _only(main, node.outputs[0], op_type, between)
    is_between = reader is not None and reader.op_type == between
    return _only(main, reader.outputs[0], op_type) if reader is not None and is_between else reader


def _plain_rotations(main: Scope) -> Iterator[Node]:
    for node in main.nodes_of_type("Neg"):
        half = main.producer(node.inputs[0]) if node.inputs else None
        if half is None or half.op_type not in ("Slice", "Split"):
            continue
        # Pairs of neighbours are stacked and made flat again.
        joined = _passing(main, node, "Concat", "Unsqueeze")
        turned = None if joined is None else _passing(main, joined, "Mul", "Reshape")
        if turned is not None and _only(main, turned.outputs[0], "Add") is not None:
            yield node
