"""Rules about the operands of single operators that shape inference does not have.

What they refuse, ONNX Runtime refuses when it creates a kernel or runs it: attribute values that no
runtime takes, channels, ranks and lengths that do not fit each other. Unknown dimensions fit.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from itertools import zip_longest
from typing import Any, TypeAlias

import numpy as np
from onnx import AttributeProto, helper

from dld_tui.core import fmt
from dld_tui.core.checks.calls import Call, Dims
from dld_tui.core.document.types.value_types import shown, tensor_type
from dld_tui.core.files.proto_fields import text_of
from dld_tui.core.text import clip, visible

VALUE, SHAPE = "attribute-value", "operand-shape"
Problems: TypeAlias = "Iterator[tuple[str, str]]"
"""Rules and messages."""


def wrong(message: str) -> tuple[str, str]:
    """Return a finding about shapes."""
    return SHAPE, message


def dims_text(dims: Dims) -> str:
    """Return dimensions as people write them."""
    return fmt.shape(dims)


def differ(first: int | None, second: int | None) -> bool:
    """Return whether two dimensions are known and not equal."""
    return first is not None and second is not None and first != second


def vector(call: Call, index: int, label: str, size: int | None) -> Problems:
    """Yield what keeps an input from being a vector of a size."""
    dims = call.dims(index)
    if dims is None:
        return
    if len(dims) != 1:
        yield wrong(f"{label} is {dims_text(dims)}, it must have one dimension")
    elif differ(dims[0], size):
        yield wrong(f"{label} has {dims[0]} elements, {size} are needed")


def axis_attribute(call: Call, rank: int | None, default: int, extra: int = 0) -> Problems:
    """Yield where the attribute axis is outside of a rank."""
    axis = call.attribute("axis", default)
    if rank is not None and isinstance(axis, int) and not -rank - extra <= axis < rank + extra:
        yield VALUE, f"Attribute axis is {axis}, the input has {fmt.plural(rank, 'dimension')}"


def sizes_text(sizes: Iterable[int]) -> str:
    """Return sizes as people write them."""
    return f"[{', '.join(map(str, sizes))}]"


def like(call: Call, index: int, label: str, wanted: Dims) -> Problems:
    """Yield where an input has not the wanted dimensions."""
    dims = call.dims(index)
    if dims is None:
        return
    if len(dims) != len(wanted) or any(differ(a, b) for a, b in zip(dims, wanted, strict=True)):
        yield wrong(f"{label} is {dims_text(dims)}, it must be {dims_text(wanted)}")


def recurrent(gates: int, *, quantized: bool = False) -> Any:
    """Return the rule for recurrent operators with so many gates."""

    def check(call: Call) -> Problems:
        hidden = call.attribute("hidden_size")
        if hidden is not None and hidden < 1:
            yield VALUE, f"Attribute hidden_size is {hidden}, it must be positive"
            return
        if call.attribute("layout", 0) not in (0, 1):
            yield VALUE, f"Attribute layout is {call.attribute('layout')}, it takes 0 and 1"
            return
        if call.attribute("layout", 0):
            yield "runtime-operator", "ONNX Runtime does not compute with layout 1"
            return
        if hidden is None:
            return
        ways = 2 if call.attribute("direction", "forward") == "bidirectional" else 1
        batch, rows = call.dim(0, 1), gates * hidden
        columns = call.dim(0, 2)
        weights = {
            "W": (1, (ways, columns, rows) if quantized else (ways, rows, columns)),
            "R": (2, (ways, hidden, rows) if quantized else (ways, rows, hidden)),
            "B": (3, (ways, 2 * rows)),
            "initial_h": (5, (ways, batch, hidden)),
        }
        if gates == 4:
            weights["initial_c"] = (6, (ways, batch, hidden))
            weights["P"] = (7, (ways, 3 * hidden))
        for label, (index, wanted) in weights.items():
            yield from like(call, index, f"Input {label}", wanted)
        if call.rank(0) not in (None, 3):
            yield wrong(f"The data is {dims_text(call.dims(0) or ())}, it must have 3 dimensions")
        if quantized:
            for index, label in (
                (8, "W_scale"),
                (9, "W_zero_point"),
                (10, "R_scale"),
                (11, "R_zero_point"),
            ):
                dims = call.dims(index)
                if dims is not None and None not in dims and dims not in ((ways,), (ways, rows)):
                    yield wrong(
                        f"Input {label} is {dims_text(dims)}, needed: [{ways}] or [{ways}, {rows}]"
                    )

    return check


# --- trees and the like -------------------------------------------------------------------------


def scaler(call: Call) -> Problems:
    """Yield what is wrong with Scaler."""
    features = call.dim(0, -1)
    for name in ("offset", "scale"):
        values = call.attribute(name)
        if values is None:
            yield VALUE, f"Attribute {name} is needed"
        elif features is not None and len(values) not in (1, features):
            yield wrong(f"Attribute {name} has {len(values)} values for {features} features")


def linear_classifier(call: Call) -> Problems:
    """Yield what is wrong with LinearClassifier."""
    labels = call.attribute("classlabels_ints") or call.attribute("classlabels_strings")
    factors, classes = call.attribute("coefficients") or (), len(call.attribute("intercepts") or ())
    features = call.dim(0, -1)
    if not labels:
        yield VALUE, "Attribute classlabels_ints or classlabels_strings is needed"
    elif not classes or len(factors) % classes or (classes > 1 and len(labels) < classes):
        yield (
            VALUE,
            f"{len(labels)} labels and {len(factors)} coefficients for {classes} intercepts",
        )
    elif features is not None and len(factors) < classes * features:
        yield wrong(f"{len(factors)} coefficients for {features} features and {classes} classes")


def linear_regressor(call: Call) -> Problems:
    """Yield what is wrong with LinearRegressor."""
    factors, targets = call.attribute("coefficients") or (), call.attribute("targets", 1)
    features = call.dim(0, -1)
    if targets < 1:
        yield VALUE, f"Attribute targets is {targets}, it must be positive"
    elif features is not None and len(factors) < targets * features:
        yield wrong(f"{len(factors)} coefficients for {features} features and {targets} targets")


def zip_map(call: Call) -> Problems:
    """Yield labels that are too many or too few."""
    labels = call.attribute("classlabels_int64s") or call.attribute("classlabels_strings")
    size = call.dim(0, -1)
    if labels and size is not None and len(labels) != size:
        yield wrong(f"{len(labels)} labels for {size} values")


_RESHAPES = frozenset({"Reshape", "Squeeze", "Unsqueeze"})


def reshape(call: Call) -> Problems:
    """Yield where a shape does not fit the data."""
    dims, rank = call.dims(0), call.rank(1)
    if rank is not None and rank != 1:
        before, after = call.neighbours()
        # ONNX Runtime joins these, and folds what it knows: no kernel sees the shape then.
        if call.value(1) is not None and (
            before & _RESHAPES or after & {*_RESHAPES, "Shape", "Size"}
        ):
            return
        yield wrong(f"The shape is {dims_text(call.dims(1) or ())}, it must have one dimension")
        return
    value = call.value(1) if call.version >= 5 else call.attribute("shape")
    if value is None or dims is None:
        return
    wanted = [int(size) for size in np.asarray(value).ravel()]
    keep = call.attribute("allowzero", 0) != 1
    if sum(size == -1 for size in wanted) > 1 or any(size < -1 for size in wanted):
        yield wrong(f"The shape {sizes_text(wanted)} is invalid")
        return
    # Inference takes every other number of 32 bits for 1, the kernel for 0.
    if call.attribute("allowzero", 0) % (1 << 32) and -1 in wanted and 0 in wanted:
        yield wrong(
            f"The shape {sizes_text(wanted)} has both 0 and -1, which allowzero does not allow"
        )
        return
    left, known, kept_zero = list(dims), [], False
    for axis, size in enumerate(wanted):
        if size == 0 and keep:
            if axis >= len(dims):
                yield wrong(
                    f"The shape {sizes_text(wanted)} keeps dimension {axis} of {dims_text(dims)}"
                )
                return
            kept_zero = kept_zero or dims[axis] in (0, None)
            left[axis] = 1
        elif size != -1:
            known.append(size)
    fixed = [dim for dim in left if dim is not None]
    have, need = math.prod(fixed), math.prod(known)
    free = len(fixed) < len(left)
    if kept_zero and 0 in dims:
        if -1 in wanted and any(size == 0 == dims[axis] for axis, size in enumerate(wanted)):
            yield wrong(f"The shape {sizes_text(wanted)} keeps a 0 of {dims_text(dims)} beside -1")
        return  # else nothing is reshaped to nothing
    zero = have == 0 or need == 0
    if -1 in wanted:
        bad = not zero and not free and have % need != 0
    else:
        bad = (have != need) if not free else (not zero and need % have != 0)
    if bad:
        yield wrong(f"{dims_text(dims)} cannot be reshaped to {sizes_text(wanted)}")


_MOST_TILED = 1 << 32
"""The most bytes of the output of Tile."""


def tile(call: Call) -> Problems:
    """Yield repeats of Tile that are no vector or too many."""
    yield from one_dimension(1)(call)
    dims, repeats = call.dims(0), call.value(1)
    if dims is None or None in dims or repeats is None or repeats.shape != (len(dims),):
        return
    count = math.prod(int(a or 0) * int(b) for a, b in zip(dims, repeats, strict=True))
    if count > _MOST_TILED or repeats.min() < 0:
        yield wrong(f"{dims_text(dims)} cannot be repeated {sizes_text(repeats.tolist())} times")


def one_dimension(*indexes: int) -> Any:
    """Return the rule that inputs are vectors."""

    def check(call: Call) -> Problems:
        for index in indexes:
            dims = call.dims(index)
            if dims is not None and len(dims) != 1:
                yield wrong(f"Input {index} is {dims_text(dims)}, it must have one dimension")

    return check


def expand(call: Call) -> Problems:
    """Yield a shape of Expand that is none; known ones need not be vectors."""
    value = call.value(1)
    if value is not None and value.size and value.min() < 0:
        yield wrong(f"The shape {sizes_text(value.ravel().tolist())} is none")
    if call.value(1) is None or call.version < 13:
        yield from one_dimension(1)(call)


def slices(call: Call) -> Problems:
    """Yield what is wrong with Slice."""
    if call.version < 10:
        return
    yield from one_dimension(1, 2, 3, 4)(call)
    sizes = {call.dim(index, 0) for index in (1, 2, 3, 4) if call.rank(index) == 1} - {None}
    if len(sizes) > 1:
        yield wrong(
            f"Starts, ends, axes and steps have {sizes_text(sorted(filter(None, sizes)))} values"
        )
    steps, axes, rank = call.value(4), call.value(3), call.rank(0)
    if steps is not None and bool((np.asarray(steps) == 0).any()):
        yield wrong("A step is 0")
    if axes is None or rank is None or axes.dtype.kind not in "iu":
        return
    places = [int(axis) for axis in axes.ravel()]
    if any(not -rank <= axis < rank for axis in places):
        yield wrong(f"The axes {sizes_text(places)} are outside of {fmt.plural(rank, 'dimension')}")
    elif len({axis % rank for axis in places}) < len(places):
        yield wrong(f"The axes {sizes_text(places)} name a dimension twice")


def _squeeze_axes(call: Call) -> Problems:
    if call.version >= 13:
        dims = call.dims(1)
        if dims is not None and len(dims) > 1:
            yield wrong(f"The axes are {dims_text(dims)}, they must have one dimension")


def _axes(call: Call) -> list[int] | None:
    """Return the axes of Squeeze and Unsqueeze; None where they are not known."""
    axes = call.attribute("axes") if call.version < 13 else call.value(1)
    return None if axes is None else [int(axis) for axis in np.asarray(axes).ravel()]


def squeeze(call: Call) -> Problems:
    """Yield what is wrong with Squeeze."""
    yield from _squeeze_axes(call)
    if len(call.node.input) > 1 and not call.has(1):
        yield "missing-input", "Input 1 (axes) is left out, ONNX Runtime takes one input or two"
    dims, axes = call.dims(0), _axes(call)
    for axis in axes or () if dims is not None else ():
        if dims is None or not -len(dims) <= axis < len(dims):
            yield wrong(f"Axis {axis} is outside of {dims_text(dims or ())}")
        elif dims[axis] not in (1, None):
            yield wrong(f"Dimension {axis} of {dims_text(dims)} is not 1")


def unsqueeze(call: Call) -> Problems:
    """Yield what is wrong with Unsqueeze."""
    yield from _squeeze_axes(call)
    rank, axes = call.rank(0), _axes(call)
    if rank is None or axes is None:
        return
    full = rank + len(axes)
    if any(not -full <= axis < full for axis in axes):
        yield wrong(f"The axes {sizes_text(axes)} are outside of {full} dimensions")
    elif len({axis % full for axis in axes}) < len(axes):
        yield wrong(f"The axes {sizes_text(axes)} name a dimension twice")


def one_axis(default: int) -> Any:
    """Return the rule that an axis is one of the data."""

    def check(call: Call) -> Problems:
        yield from axis_attribute(call, call.rank(0), default)

    return check


def transpose(call: Call) -> Problems:
    """Yield what is wrong with Transpose."""
    perm, rank = call.attribute("perm"), call.rank(0)
    if perm is None:
        return
    if sorted(perm) != list(range(len(perm))):
        yield VALUE, f"Attribute perm is {list(perm)}, which is not a permutation of the dimensions"
    elif rank is not None and len(perm) != rank:
        yield (
            VALUE,
            f"Attribute perm is {list(perm)}, the input has {fmt.plural(rank, 'dimension')}",
        )


def concat(call: Call) -> Problems:
    """Yield what is wrong with Concat."""
    known = [
        dims for index in range(len(call.node.input)) if (dims := call.dims(index)) is not None
    ]
    if not known:
        return
    rank = len(known[0])
    if any(len(dims) != rank for dims in known):
        yield wrong(f"The ranks of {', '.join(dims_text(dims) for dims in known[:6])} differ")
        return
    axis = call.attribute("axis", 1)
    if not -rank <= axis < rank:
        yield VALUE, f"Attribute axis is {axis}, the inputs have {fmt.plural(rank, 'dimension')}"
        return
    for other in range(rank):
        sizes = {dims[other] for dims in known} - {None}
        if other != axis % rank and len(sizes) > 1:
            texts = ", ".join(dims_text(dims) for dims in known[:6])
            yield wrong(f"{texts} differ in dimension {other}, they are joined in {axis % rank}")
            return


def clip_limits(call: Call) -> Problems:
    """Yield limits that are no scalars."""
    for index, label in ((1, "min"), (2, "max")):
        dims = call.dims(index)
        if dims not in (None, (), (1,), (None,)):
            yield wrong(f"Input {label} is {dims_text(dims or ())}, it must be a scalar")


def gather(call: Call) -> Problems:
    """Yield where an index is outside."""
    rank = call.rank(0)
    yield from axis_attribute(call, rank, 0)
    axis = call.attribute("axis", 0)
    if rank is None or not -rank <= axis < rank:
        return
    size, indices = call.dim(0, axis), call.value(1)
    if size is not None and indices is not None and indices.dtype.kind == "i" and indices.size:
        least, most = int(indices.min()), int(indices.max())
        if least < -size or most >= size:
            worst = most if most >= size else least
            yield wrong(f"Index {worst} is outside of dimension {axis}, which has {size} elements")


def cast_type(call: Call) -> Problems:
    """Yield a type that is none."""
    to = call.attribute("to")
    if isinstance(to, int):
        try:
            helper.tensor_dtype_to_np_dtype(to)
        except (KeyError, ValueError):
            yield VALUE, f"Attribute to is {to}, which is not an element type"


def broadcast(call: Call) -> Problems:
    """Yield where operands cannot be broadcast."""
    if call.version and call.version < 7 and not call.domain:
        return
    dims = [call.dims(index) for index in range(len(call.node.input))]
    known = [dim for dim in dims if dim is not None]
    for axis in range(1, max(map(len, known), default=0) + 1):
        sizes = {shape[-axis] for shape in known if len(shape) >= axis} - {None, 1}
        if len(sizes) > 1:
            texts = " and ".join(map(dims_text, known[:4]))
            yield wrong(f"{texts} cannot be broadcast to each other")
            return


def matmul(first: int, second: int) -> Any:
    """Return the rule for a product of two inputs."""

    def check(call: Call) -> Problems:
        a, b = call.dims(first), call.dims(second)
        if not a or not b:
            return
        inner = b[-2] if len(b) > 1 else b[0]
        if differ(a[-1], inner):
            yield wrong(
                f"{dims_text(a)} and {dims_text(b)} cannot be multiplied: {a[-1]} is not {inner}"
            )
        batches = list(zip_longest(reversed(a[:-2]), reversed(b[:-2]), fillvalue=1))
        many = any(right != 1 for _, right in batches)
        if ((0, 1) in batches and many) or (1, 0) in batches:
            yield wrong(f"The batches of {dims_text(a)} and {dims_text(b)} cannot be broadcast")

    return check


def resize(call: Call) -> Problems:
    """Yield what is wrong with Resize."""
    rank = call.rank(0)
    if call.version < 11 or rank is None:
        return
    axes = call.attribute("axes")
    count = len(axes) if axes else rank
    for index, label in ((2, "scales"), (3, "sizes")):
        dims = call.dims(index)
        if dims is None or dims == (0,):
            continue
        if call.value(index) is None and label == "sizes":
            yield from vector(call, index, f"Input {label}", count)
        elif None not in dims and math.prod(dim or 0 for dim in dims) != count:
            yield wrong(f"Input {label} is {dims_text(dims)}, {count} elements are needed")


# --- convolutions and pools ---------------------------------------------------------------------


def convolution(data: int, weight: int, bias: int | None, *, transposed: bool = False) -> Any:
    """Return the rule for convolutions with these inputs."""

    def check(call: Call) -> Problems:
        group = call.attribute("group", 1)
        if group < 1:
            yield VALUE, f"Attribute group is {group}, it must be positive"
            return
        x, w = call.dims(data), call.dims(weight)
        if w is None:
            return
        if x is not None and len(x) != len(w):
            yield wrong(
                f"The data is {dims_text(x)} and the weight {dims_text(w)}: their ranks differ"
            )
            return
        if len(w) < 3:
            yield wrong(f"The weight is {dims_text(w)}, it must have 3 dimensions or more")
            return
        kernel = call.attribute("kernel_shape")
        if kernel and (
            len(kernel) != len(w) - 2
            or any(differ(int(a), b) for a, b in zip(kernel, w[2:], strict=True))
        ):
            yield wrong(f"kernel_shape is {list(kernel)} and the weight {dims_text(w)}")
        yield from _window(call, len(w) - 2, w[2:])
        channels = x[1] if x is not None else None
        taken = w[0] if transposed else None if w[1] is None else w[1] * group
        if differ(channels, taken):
            yield wrong(f"The data has {channels} channels, the weight takes {taken}")
        output_channels = None if w[1 if transposed else 0] is None else w[1 if transposed else 0]
        if output_channels is not None and transposed:
            output_channels *= group
        elif output_channels is not None and output_channels % group:
            yield wrong(f"{output_channels} output channels are not a multiple of group {group}")
        if bias is not None:
            yield from vector(call, bias, "The bias", output_channels)
        if x is not None and not transposed:
            yield from _room(call, x[2:], w[2:])

    return check


def _window(call: Call, spatial: int, kernel: Dims | None) -> Problems:
    for name, count in (("strides", spatial), ("dilations", spatial), ("pads", 2 * spatial)):
        values = call.attribute(name)
        if not values:
            continue
        if len(values) != count:
            yield VALUE, f"Attribute {name} has {len(values)} values, {count} are needed"
        elif name != "pads" and any(value <= 0 for value in values):
            yield VALUE, f"Attribute {name} is {list(values)}, all must be positive"
    del kernel


def _room(call: Call, sizes: Dims, kernel: Dims, *, least: int = 1) -> Problems:
    """Yield where a window does not fit into the padded data, `least` times along an axis."""
    if call.attribute("auto_pad", "NOTSET") not in ("NOTSET", "VALID"):
        if least > 0 and 0 in sizes:
            yield wrong(f"The data is empty, it has {sizes_text(size or 0 for size in sizes)}")
        return
    count = len(sizes)
    pads = call.attribute("pads") or [0] * 2 * count
    dilations = call.attribute("dilations") or [1] * count
    strides = call.attribute("strides") or [1] * count
    if call.attribute("auto_pad", "NOTSET") == "VALID":
        pads = [0] * 2 * count
    if len(pads) != 2 * count or {len(dilations), len(strides), len(kernel)} != {count}:
        return
    for axis in range(count):
        size, window = sizes[axis], kernel[axis]
        if size is None or window is None:
            continue
        padded = size + pads[axis] + pads[axis + count]
        spare = padded - dilations[axis] * (window - 1) - 1
        # ONNX Runtime's pools divide towards 0, and give nothing out where that makes 0.
        divided = spare / max(strides[axis], 1)
        steps = math.ceil(divided) if call.attribute("ceil_mode", 0) else int(divided)
        if spare < 0 and (least > 0 or steps + 1 < least):
            yield wrong(f"A window of {window} does not fit into {padded} padded elements")
            return


def pool(call: Call) -> Problems:
    """Yield what is wrong with a pool."""
    x, kernel = call.dims(0), call.attribute("kernel_shape")
    if x is None or not kernel:
        return
    if len(kernel) != len(x) - 2:
        yield wrong(f"kernel_shape is {list(kernel)} and the data {dims_text(x)}")
        return
    yield from _window(call, len(kernel), None)
    pads = call.attribute("pads") or []
    if len(pads) == 2 * len(kernel):
        for axis, size in enumerate(kernel):
            if max(pads[axis], pads[axis + len(kernel)]) >= size:
                yield (
                    VALUE,
                    f"Attribute pads is {list(pads)}, less than the window {size} is needed",
                )
                break
    yield from _room(call, x[2:], tuple(kernel), least=0)


def global_pool(call: Call) -> Problems:
    """Yield what is wrong with a pool over all."""
    x = call.dims(0)
    if x is not None and len(x) < 3:
        yield wrong(f"The data is {dims_text(x)}, it must have 3 dimensions or more")


# --- normalization ------------------------------------------------------------------------------


def batch_norm(call: Call) -> Problems:
    """Yield what is wrong with BatchNormalization."""
    channels = call.dim(0, 1)
    rank = call.rank(0)
    if rank == 1:
        channels = 1
    for index, label in enumerate(("scale", "B", "mean", "var"), 1):
        yield from vector(call, index, f"Input {label}", channels)


def instance_norm(call: Call) -> Problems:
    """Yield what is wrong with InstanceNormalization."""
    for index, label in ((1, "scale"), (2, "B")):
        yield from vector(call, index, f"Input {label}", call.dim(0, 1))


def layer_norm(call: Call) -> Problems:
    """Yield what is wrong with LayerNormalization."""
    x = call.dims(0)
    yield from axis_attribute(call, None if x is None else len(x), -1)
    if x is None:
        return
    for index, label in ((1, "Scale"), (2, "Bias")):
        dims = call.dims(index)
        if dims is not None and (len(dims) > len(x) or not _broadcasts_to(dims, x)):
            yield wrong(f"{label} is {dims_text(dims)} and does not fit the data {dims_text(x)}")


def _broadcasts_to(dims: Dims, wanted: Dims) -> bool:
    tail = wanted[len(wanted) - len(dims) :]
    return all(a is None or b is None or a in (1, b) for a, b in zip(dims, tail, strict=True))


_AUTO_PAD = ("NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID")
_DIRECTION = ("forward", "reverse", "bidirectional")
_REDUCTION = ("none", "mean", "sum")
_SCATTER = ("none", "add", "mul", "min", "max")
_TRANSFORM = ("NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT")
_TREE = {"post_transform": _TRANSFORM, "aggregate_function": ("SUM", "AVERAGE", "MIN", "MAX")}
_COORDINATES = (
    "half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "align_corners", "asymmetric",
    "tf_crop_and_resize", "tf_half_pixel_for_nn",
)  # fmt: skip
_ROUNDING = ("round_prefer_floor", "round_prefer_ceil", "floor", "ceil")
_WORDS: dict[tuple[str, str], dict[str, tuple[str, ...]]] = {
    **{
        ("", name): {"auto_pad": _AUTO_PAD}
        for name in ("Conv", "ConvTranspose", "ConvInteger", "QLinearConv", "DeformConv")
    },
    **{("", name): {"auto_pad": _AUTO_PAD} for name in ("MaxPool", "AveragePool", "LpPool")},
    **{("", name): {"direction": _DIRECTION} for name in ("LSTM", "GRU", "RNN")},
    ("com.microsoft", "DynamicQuantizeLSTM"): {"direction": _DIRECTION},
    ("", "Pad"): {"mode": ("constant", "reflect", "edge", "wrap")},
    ("", "Resize"): {
        "mode": ("nearest", "linear", "cubic"),
        "coordinate_transformation_mode": _COORDINATES,
        "nearest_mode": _ROUNDING,
        "keep_aspect_ratio_policy": ("stretch", "not_larger", "not_smaller"),
    },
    ("", "Upsample"): {"mode": ("nearest", "linear", "bilinear")},
    ("", "DepthToSpace"): {"mode": ("DCR", "CRD")},
    ("", "Gelu"): {"approximate": ("none", "tanh")},
    ("", "ScatterND"): {"reduction": _SCATTER},
    ("", "ScatterElements"): {"reduction": _SCATTER},
    ("", "GridSample"): {
        "mode": ("linear", "cubic", "nearest", "bilinear", "bicubic"),
        "padding_mode": ("zeros", "border", "reflection"),
    },
    ("", "RoiAlign"): {
        "mode": ("avg", "max"),
        "coordinate_transformation_mode": ("half_pixel", "output_half_pixel"),
    },
    ("", "BitShift"): {"direction": ("LEFT", "RIGHT")},
    ("", "NegativeLogLikelihoodLoss"): {"reduction": _REDUCTION},
    ("", "SoftmaxCrossEntropyLoss"): {"reduction": _REDUCTION},
    ("", "TensorScatter"): {"mode": ("linear", "circular")},
    ("", "TfIdfVectorizer"): {"mode": ("TF", "IDF", "TFIDF")},
    ("", "StringNormalizer"): {"case_change_action": ("LOWER", "UPPER", "NONE")},
    ("ai.onnx.ml", "Normalizer"): {"norm": ("MAX", "L1", "L2")},
    ("ai.onnx.ml", "LinearClassifier"): {"post_transform": _TRANSFORM},
    ("ai.onnx.ml", "LinearRegressor"): {"post_transform": _TRANSFORM},
    ("ai.onnx.ml", "SVMClassifier"): {"post_transform": _TRANSFORM},
    ("ai.onnx.ml", "SVMRegressor"): {"post_transform": _TRANSFORM},
    ("ai.onnx.ml", "TreeEnsembleClassifier"): _TREE,
    ("ai.onnx.ml", "TreeEnsembleRegressor"): _TREE,
}
"""The texts that attributes may have, by operator."""


def attribute_words(op_type: str, domain: str, attribute: str) -> tuple[str, ...]:
    """Return the texts that an attribute may have; none where any text will do."""
    return _WORDS.get((domain, op_type), {}).get(attribute, ())


def check_operands(call: Call) -> Problems:
    """Yield what is wrong with the attributes and operands of a call."""
    key = (call.domain, call.op_type)
    for name, words in _WORDS.get(key, {}).items():
        text = call.attribute(name)
        # ONNX Runtime takes these for the default.
        is_default = name == "reduction" or (name in ("auto_pad", "nearest_mode") and text == "")
        if isinstance(text, str) and text not in words and not is_default:
            shown = clip(visible(text), 40)
            yield VALUE, f"Attribute {name} is {shown!r}, it takes {', '.join(words)}"
    rule = _RULES.get(key)
    if rule is not None:
        yield from rule(call)


def has_right_types(call: Call) -> bool:
    """Return whether the attributes of a call are of the types that its operator takes."""
    from dld_tui.core.operators.registry import schema_for

    schema = schema_for(call.op_type, call.domain, call.version) if call.version else None
    if schema is None:
        return False
    kinds = {attribute.name: attribute.kind.upper() for attribute in schema.attributes}
    return all(
        proto.ref_attr_name
        or AttributeProto.AttributeType.Name(proto.type) == kinds.get(text_of(proto.name))
        for proto in call.node.attribute
    )


def check_signature(call: Call) -> Problems:
    """Yield operands of a call whose inferred types its operator does not take."""
    from dld_tui.core.operators.registry import schema_for

    schema = schema_for(call.op_type, call.domain, call.version) if call.version else None
    if schema is None:
        return
    bound: dict[str, str] = {}
    variables = {constraint.name for constraint in schema.type_constraints}
    for index, name in enumerate(call.node.input):
        if not schema.inputs:
            return
        formal = schema.inputs[min(index, len(schema.inputs) - 1)]
        if index >= len(schema.inputs) and formal.option != "variadic":
            return
        if not name:
            if formal.option == "single":
                yield "missing-input", f"Input {index} ({formal.name}) is left out"
            continue
        operand = call.input(index)
        known = tensor_type(operand.dtype) if operand.kind == "tensor_type" else None
        if known is None:
            continue
        if known not in formal.types:
            yield "input-type", f"Input {index} is {shown(known)}, it does not take that"
        elif formal.type_name in variables and formal.homogeneous:
            first = bound.setdefault(formal.type_name, known)
            if first != known:
                yield "type-conflict", f"Input {index} is {shown(known)}, another {shown(first)}"


def _needs_input(call: Call) -> Problems:
    for index, name in enumerate(call.node.input):
        if not name:
            yield wrong(f"Input {index} is left out")
            return


def _joined(*rules: Callable[[Call], Problems]) -> Callable[[Call], Problems]:
    def check(call: Call) -> Problems:
        for rule in rules:
            yield from rule(call)

    return check


_BROADCAST = [
    "Add",
    "Sub",
    "Mul",
    "Div",
    "Pow",
    "Mod",
    "And",
    "Or",
    "Xor",
    "Equal",
    "Less",
    "Greater",
    "LessOrEqual",
    "GreaterOrEqual",
    "BitwiseAnd",
    "BitwiseOr",
    "BitwiseXor",
    "BitShift",
    "PRelu",
    "Where",
]
_MANY = ("Sum", "Max", "Min", "Mean")
_MS = "com.microsoft"
_RULES: dict[tuple[str, str], Callable[[Call], Problems]] = {
    **{("", name): broadcast for name in _BROADCAST},
    **{("", name): _joined(_needs_input, broadcast) for name in _MANY},
    ("", "Conv"): convolution(0, 1, 2),
    ("", "ConvInteger"): convolution(0, 1, None),
    ("", "QLinearConv"): convolution(0, 3, 8),
    ("", "ConvTranspose"): convolution(0, 1, 2, transposed=True),
    (_MS, "FusedConv"): convolution(0, 1, 2),
    ("", "MaxPool"): pool,
    ("", "AveragePool"): pool,
    ("", "LpPool"): pool,
    ("", "GlobalAveragePool"): global_pool,
    ("", "GlobalMaxPool"): global_pool,
    ("", "BatchNormalization"): batch_norm,
    ("", "InstanceNormalization"): instance_norm,
    ("", "LayerNormalization"): layer_norm,
    ("", "RMSNormalization"): layer_norm,
    ("", "Reshape"): reshape,
    ("", "Expand"): expand,
    ("", "Tile"): tile,
    ("", "ConstantOfShape"): one_dimension(0),
    ("", "Slice"): slices,
    ("", "Squeeze"): squeeze,
    ("", "Unsqueeze"): unsqueeze,
    ("", "LpNormalization"): one_axis(-1),
    ("", "ArgMax"): one_axis(0),
    ("", "ArgMin"): one_axis(0),
    ("", "GatherElements"): one_axis(0),
    ("", "ScatterElements"): one_axis(0),
    ("", "Scatter"): one_axis(0),
    ("", "DFT"): one_axis(1),
    ("", "Split"): one_axis(0),
    ("", "Transpose"): transpose,
    ("", "Concat"): _joined(_needs_input, concat),
    ("", "Clip"): clip_limits,
    ("", "Gather"): gather,
    ("", "Cast"): cast_type,
    ("", "MatMul"): matmul(0, 1),
    ("", "MatMulInteger"): matmul(0, 1),
    ("", "QLinearMatMul"): matmul(0, 3),
    (_MS, "MatMulIntegerToFloat"): matmul(0, 1),
    ("", "Resize"): resize,
    ("", "LSTM"): recurrent(4),
    ("", "GRU"): recurrent(3),
    ("", "RNN"): recurrent(1),
    (_MS, "DynamicQuantizeLSTM"): recurrent(4, quantized=True),
    ("ai.onnx.ml", "Scaler"): scaler,
    ("ai.onnx.ml", "LinearClassifier"): linear_classifier,
    ("ai.onnx.ml", "LinearRegressor"): linear_regressor,
    ("ai.onnx.ml", "ZipMap"): zip_map,
}
