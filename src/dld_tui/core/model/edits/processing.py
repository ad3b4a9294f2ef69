"""Nodes before an input and behind an output: pre-processing of images, and post-processing."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from dld_tui.core.dataclass import dataclass
from dld_tui.core.errors import EditError
from dld_tui.core.model.document.edit_registry import edit
from dld_tui.core.model.document.opset_imports import imports_of
from dld_tui.core.model.document.transactions import SetLinks, Transaction
from dld_tui.core.model.edits.initializers import add_initializer
from dld_tui.core.model.edits.inputs_outputs import add_output, remove_output, set_value_type
from dld_tui.core.model.edits.links import with_item
from dld_tui.core.model.edits.metadata import permute_profiles
from dld_tui.core.model.edits.nodes import add_node, free_node_name
from dld_tui.core.model.edits.renaming import free_name, rename_before_output, rename_everywhere
from dld_tui.core.model.edits.terminals import LAYOUTS
from dld_tui.core.model.operators.registry import schema_for
from dld_tui.core.model.tensors.value_types import ValueType, dtype_number, type_of_value
from dld_tui.core.text import quoted
from dld_tui.core.types import FLOATS, JSON

if TYPE_CHECKING:
    from dld_tui.core.model.document.document import Document

NORMALIZATIONS: dict[str, tuple[float, tuple[float, ...], tuple[float, ...]]] = {
    "keep": (1.0, (), ()),
    "unit": (1 / 255, (), ()),
    "signed": (1 / 127.5, (1.0,), ()),
    "imagenet": (1 / 255, (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)),
}
"""Scale, mean and deviation: as it is; 0 to 255 become 0 to 1, or -1 to 1, or as for ImageNet."""
STEPS = ("softmax", "argmax", "top-k", "nms")
_DETECTIONS = ("boxes", "scores", "classes", "batches")
"""What nms makes."""
_CHANNELS = (1, 3, 4)
_SIZES, _AXES = 11, 18
"""The opsets since which Resize takes sizes, and sizes of some axes only."""


class _Chain:
    """Nodes that are added one behind the other."""

    def __init__(self, document: Document, transaction: Transaction, name: str) -> None:
        self.document, self.transaction, self.name = document, transaction, name
        self.home = document.main
        self.opset = imports_of(self.home).get("", 0)

    def need(self, opset: int, what: str) -> None:
        """Refuse an opset that is too old.

        Raises:
            EditError: It is.
        """
        if self.opset < opset:
            raise EditError(
                f"{what} needs opset {opset}, and the model has {self.opset}",
                hint=f"Convert it first (dld convert opset --to {opset})",
            )

    def constant(
        self, about: str, values: Sequence[float], dims: Sequence[int] | None = None,
        dtype: str = "int64",
    ) -> str:  # fmt: skip
        """Add an initializer and return its name."""
        name = free_name(self.home, f"{self.name}_{about}")
        add_initializer.run(
            self.document, self.transaction, scope=[], name=name, dtype=dtype,
            dims=list(dims if dims is not None else [len(values)]),
            fill={"kind": "values", "values": list(values)},
        )  # fmt: skip
        return name

    def add(
        self,
        op_type: str,
        about: str,
        *inputs: str,
        outputs: Sequence[str] = (),
        **attributes: JSON,
    ) -> str:
        """Add a node and return its first output, which is named after what it is about."""
        names = list(outputs) or [free_name(self.home, f"{self.name}_{about}")]
        kinds = {int: "int", float: "float", str: "string", list: "ints"}
        add_node.run(
            self.document, self.transaction, scope=[], op_type=op_type, inputs=list(inputs),
            outputs=names, name=free_node_name(self.home, f"{self.name}_{about}"),
            attributes={
                key: {"kind": kinds[type(value)], "value": value}
                for key, value in attributes.items()
            },
        )  # fmt: skip
        return names[0]


@edit
def prepend_processing(
    document: Document,
    transaction: Transaction,
    *,
    input: str = "",
    dtype: str = "",
    layout: str = "",
    resize: Sequence[int] = (),
    antialias: bool = False,
    crop: Sequence[int] = (),
    reverse: bool = False,
    normalize: str = "keep",
    scale: float | None = None,
    mean: Sequence[float] = (),
    deviation: Sequence[float] = (),
) -> str:
    """Process the values of an input before the graph gets them; the input keeps its name.

    The order is: to the layout and type of the graph, resize, crop, reverse the channels,
    ``(x * scale - mean) / deviation``.

    Args:
        input: Of the main graph; by default the only one that can be processed.
        dtype: The new element type of the input, such as ``uint8``; by default as it is.
        layout: ``nhwc`` or ``nchw`` of the new input, where that is not the graph's.
        resize: Height and width (bilinear); one number is that of the shorter side.
        antialias: Smooth where that shrinks, as Pillow and torchvision do.
        crop: Height and width of the centre; one number is both.
        reverse: Reverse the channels: BGR to RGB and back.
        normalize: ``unit``, ``signed`` or ``imagenet``: default of the three below.
        scale: A factor.
        mean: One number, or one for each channel, after scaling.
        deviation: In the same way.

    Raises:
        EditError: There is no such input, or it cannot be processed so.
    """
    prepend_into(
        document, transaction, input=input, dtype=dtype, layout=layout, resize=resize,
        antialias=antialias, crop=crop, reverse=reverse, normalize=normalize, scale=scale,
        mean=mean, deviation=deviation,
    )  # fmt: skip
    return f"process input {quoted(input or document.main.inputs[0])}"


@dataclass(frozen=True)
class Processed:
    """An input and what nodes make of it, or an output and what nodes make new ones of."""

    name: str
    inner: str
    """The value that the graph had under this name before."""
    line: str
    """What changed. Untrusted text."""


def prepend_into(
    document: Document,
    transaction: Transaction,
    *,
    input: str,
    dtype: str,
    layout: str,
    resize: Sequence[int],
    antialias: bool,
    crop: Sequence[int],
    reverse: bool,
    normalize: str,
    scale: float | None,
    mean: Sequence[float],
    deviation: Sequence[float],
) -> Processed:
    """Do what :func:`prepend_processing` does.

    Raises:
        EditError: See there.
    """
    if normalize not in NORMALIZATIONS:
        raise EditError(f"normalize is {normalize!r}; choose one of {', '.join(NORMALIZATIONS)}")
    usual = NORMALIZATIONS[normalize]
    factor = usual[0] if scale is None else scale
    means, deviations = list(mean or usual[1]), list(deviation or usual[2])
    if not factor or not all(deviations):
        raise EditError("a scale or deviation of 0 leaves no values")
    name, known = _processable(document, input)
    image = _Image(known, name)
    chain = _Chain(document, transaction, name)
    home, kind = document.main, known.dtype or ""
    uses = home.users(name)
    dims = list(known.dims) if known.dims is not None else None
    new_type = dtype or kind
    if dtype and not dtype_number(dtype):
        raise EditError(f"there is no element type {dtype!r}")
    value = name
    given = dims
    if layout not in ("", "nhwc", "nchw"):
        raise EditError(f"layout is {layout!r}; choose nhwc or nchw")
    if layout and image.channel != {"nhwc": 3, "nchw": 1}[layout]:
        rank = image.rank
        axes = LAYOUTS[layout](rank)
        back = [axes.index(axis) for axis in range(rank)]
        value = chain.add("Transpose", "transpose", value, perm=list[JSON](back))
        assert dims is not None
        given = [dims[axis] for axis in axes]
        permute_profiles(document, transaction, name, axes)
    if new_type != kind:
        value = chain.add("Cast", f"to_{kind}", value, to=dtype_number(kind))
    if antialias and not resize:
        raise EditError("antialiasing is a part of resizing", hint="Give a size")
    if resize or crop:
        value, sizes = _resized(chain, value, image, list(resize), antialias, list(crop))
        _require_size(image, sizes)
        assert given is not None
        for axis, word in zip(
            image.axes_in(layout or image.layout), ("height", "width"), strict=True
        ):
            given[axis] = f"{name}_{word}"
    if reverse:
        channels = image.count
        indices = chain.constant("reversed", list(range(channels))[::-1])
        value = chain.add("Gather", "bgr", value, indices, axis=image.channel)
    if factor != 1 or means or deviations:
        if kind not in FLOATS:
            raise EditError(
                f"{image.shown} has no floating point numbers to scale",
                hint="Change its type first, or choose only layout, size or channels",
            )
        chain.need(7, "arithmetic with constants")  # before, broadcasting is an attribute
    if factor != 1:
        value = chain.add("Mul", "scaled", value, chain.constant("scale", [factor], [], kind))
    for op_type, about, numbers in (("Sub", "mean", means), ("Div", "deviation", deviations)):
        if numbers:
            constant = chain.constant(about, numbers, image.broadcast(numbers, about), kind)
            value = chain.add(op_type, f"{about}_out", value, constant)
    if value == name:
        raise EditError("nothing is to be done", hint="Choose a type, layout, size or values")
    for use in uses:
        links = with_item(use.node.inputs, use.index, value)
        transaction.do(SetLinks(use.node.scope, use.node, "input", links))
    after = ValueType(new_type, None if given is None else tuple(given))
    set_value_type.run(document, transaction, scope=[], value=name, dtype=new_type, dims=given)
    return Processed(name, value, f"input {name}: {known.text} → {after.text}")


def _processable(document: Document, wanted: str) -> tuple[str, ValueType]:
    home = document.main
    numeric = {
        name: known
        for name in home.inputs
        if not home.is_weight(name) and (known := home.value_type(name)) is not None
        and not known.container and known.dtype not in (None, "string", "bool")
    }  # fmt: skip
    if wanted:
        if wanted not in home.inputs:
            listed = ", ".join(map(quoted, home.inputs[:8]))
            raise EditError(f"there is no input {quoted(wanted)}", hint=f"There are {listed}")
        if wanted not in numeric or wanted in home.outputs:
            raise EditError(f"{quoted(wanted)} is no input of numbers")
        return wanted, numeric[wanted]
    numeric = {name: known for name, known in numeric.items() if name not in home.outputs}
    floats = {name: known for name, known in numeric.items() if known.dtype in FLOATS}
    fitting = floats or {
        name: known for name, known in numeric.items() if len(known.dims or ()) == 4
    }
    if not fitting:
        raise EditError("no input has floating point numbers or four dimensions")
    if len(fitting) != 1:
        listed = ", ".join(map(quoted, list(fitting)[:8]))
        raise EditError("which input?", hint=f"There are {listed}")
    return next(iter(fitting.items()))


class _Image:
    """Where an input has its channels, height and width."""

    def __init__(self, known: ValueType, name: str) -> None:
        self.dims, self.shown = known.dims, f"input {quoted(name)} ({known.text})"
        dims = known.dims or ()
        self.rank = len(dims)
        last = self.rank >= 3 and dims[-1] in _CHANNELS and dims[1] not in _CHANNELS
        self.layout = "nhwc" if last else "nchw"

    def _require(self) -> None:
        if self.rank != 4:
            raise EditError(f"{self.shown} is no image: it needs four dimensions")

    @property
    def channel(self) -> int:
        self._require()
        return 3 if self.layout == "nhwc" else 1

    @property
    def axes(self) -> tuple[int, int]:
        self._require()
        return self.axes_in(self.layout)

    @staticmethod
    def axes_in(layout: str) -> tuple[int, int]:
        return (1, 2) if layout == "nhwc" else (2, 3)

    @property
    def count(self) -> int:
        """How many channels there are."""
        assert self.dims is not None or self.rank == 0
        count = self.dims[self.channel] if self.dims else None
        if not isinstance(count, int):
            raise EditError(f"the number of channels of {self.shown} is unknown")
        return count

    def broadcast(self, numbers: Sequence[float], about: str) -> list[int]:
        """Return the shape of numbers, one for all or for each channel."""
        if len(numbers) == 1:
            return []
        if len(numbers) != self.count:
            raise EditError(f"{about} has {len(numbers)} numbers for {self.count} channels")
        return [len(numbers), *[1] * (self.rank - 1 - self.channel)]


def _resized(
    chain: _Chain, value: str, image: _Image, resize: list[int], antialias: bool, crop: list[int]
) -> tuple[str, list[int | None]]:
    for about, numbers in (("resize", resize), ("crop", crop)):
        if len(numbers) > 2 or any(number < 1 for number in numbers):
            raise EditError(f"{about} takes a height and a width of 1 or more, or one number")
    axes, sizes = image.axes, list[int | None](resize if len(resize) == 2 else [None, None])
    if resize:
        chain.need(_SIZES if len(resize) == 2 else _AXES, "resizing" if len(resize) == 2
                   else "resizing the shorter side")  # fmt: skip
        if antialias:
            chain.need(_AXES, "resizing with antialiasing")
        if chain.opset >= _AXES:
            wanted = chain.constant("size", resize * (2 if len(resize) == 1 else 1))
            # Only pixels of the image count at its edges, as in Pillow.
            smooth: dict[str, JSON] = {"antialias": 1, "exclude_outside": 1} if antialias else {}
            value = chain.add(
                "Resize", "resized", value, "", "", wanted, mode="linear", axes=list[JSON](axes),
                keep_aspect_ratio_policy="stretch" if len(resize) == 2 else "not_smaller",
                outputs=(), **smooth,
            )  # fmt: skip
        else:
            value = _resized_whole(chain, value, axes, resize)
    if crop:
        size = crop * (2 if len(crop) == 1 else 1)
        if None in sizes:
            chain.need(_AXES, "cropping images of any size")
            value = chain.add(
                "CenterCropPad", "cropped", value, chain.constant("crop", size),
                axes=list[JSON](axes),
            )  # fmt: skip
        else:
            chain.need(10, "cropping")
            rests = [int(have or 0) - want for have, want in zip(sizes, size, strict=True)]
            if min(rests) < 0:
                raise EditError(f"crop {size[0]}x{size[1]} is larger than the resized image")
            begins = [rest // 2 for rest in rests]
            ends = [begin + want for begin, want in zip(begins, size, strict=True)]
            value = chain.add(
                "Slice", "cropped", value, chain.constant("crop_begin", begins),
                chain.constant("crop_end", ends), chain.constant("crop_axes", axes),
            )  # fmt: skip
        sizes = list[int | None](size)
    return value, sizes


def _resized_whole(chain: _Chain, value: str, axes: tuple[int, int], resize: list[int]) -> str:
    """Resize by the sizes of all axes, which the older operator takes."""
    shape = chain.add("Shape", "shape", value)
    size = chain.constant("size", resize)
    parts = []
    for about, begin, end in (("outer", 0, axes[0]), ("inner", axes[1] + 1, 4)):
        if begin < end:
            parts.append(
                chain.add(
                    "Slice", f"{about}_sizes", shape, chain.constant(f"{about}_begin", [begin]),
                    chain.constant(f"{about}_end", [end]),
                )
            )  # fmt: skip
    sizes = chain.add("Concat", "sizes", parts[0], size, *parts[1:], axis=0)
    empty = chain.constant("roi", [], [0], "float32")
    scales = chain.constant("scales", [], [0], "float32")
    return chain.add("Resize", "resized", value, empty, scales, sizes, mode="linear")


def _require_size(image: _Image, sizes: Sequence[int | None]) -> None:
    dims = image.dims or ()
    wanted = [dims[axis] for axis in image.axes]
    for have, want in zip(sizes, wanted, strict=True):
        if isinstance(have, int) and isinstance(want, int) and have != want:
            raise EditError(
                f"{sizes[0]}x{sizes[1]} does not fit {image.shown}, of {wanted[0]}x{wanted[1]}"
            )


@edit
def append_processing(
    document: Document,
    transaction: Transaction,
    *,
    step: str,
    output: str = "",
    scores: str = "",
    axis: int = -1,
    k: int = 5,
    keep: bool = False,
    centres: bool = True,
    objectness: bool = False,
    iou: float = 0.45,
    threshold: float = 0.25,
    most: int = 300,
) -> str:
    """Make new outputs of an output.

    ``softmax`` and ``argmax`` keep the name of the output. ``top-k`` makes NAME_values and
    NAME_indices, ``nms`` of a detector boxes, scores, classes and batches, one row for each; names
    that other values have get a number.

    Args:
        step: ``softmax``, ``argmax``, ``top-k`` or ``nms``.
        output: Of the main graph; by default the only one. For nms the boxes, or all: of shape
            [batch, 4 + classes, boxes], or [batch, boxes, 4 + classes].
        scores: For nms, the output with scores of shape [batch, boxes, classes] or
            [batch, classes, boxes], where they are apart.
        axis: Of the first three.
        k: How many of the largest values.
        keep: Keep the output itself, too, which then has its name.
        centres: Boxes are x, y of the centre, width, height; else two corners.
        objectness: The value behind the box is a factor of its scores.
        iou: Boxes with a larger overlap are one.
        threshold: Scores below are left out.
        most: The most boxes of a class.

    Raises:
        EditError: There is no such output, or its shape does not fit.
    """
    append_into(
        document, transaction, step=step, output=output, scores=scores, axis=axis, k=k, keep=keep,
        centres=centres, objectness=objectness, iou=iou, threshold=threshold, most=most,
    )  # fmt: skip
    return f"append {step}"


def append_into(
    document: Document,
    transaction: Transaction,
    *,
    step: str,
    output: str,
    scores: str,
    axis: int,
    k: int,
    keep: bool,
    centres: bool,
    objectness: bool,
    iou: float,
    threshold: float,
    most: int,
) -> list[Processed]:
    """Do what :func:`append_processing` does.

    Raises:
        EditError: See there.
    """
    document.need_types()
    if step not in STEPS:
        raise EditError(f"step is {step!r}; choose one of {', '.join(STEPS)}")
    outputs = _chosen_outputs(document, output, scores)
    name, known = next(iter(outputs.items()))
    chain = _Chain(document, transaction, name)
    rank = len(known.dims) if known.dims is not None else None
    _require_type(chain, step, name, known)
    inner = {one: one for one in outputs}
    if step in ("softmax", "argmax"):
        _require_axis(name, known, axis)
        if step == "softmax" and axis not in (-1, (rank or 0) - 1):
            chain.need(13, "softmax of another axis than the last")
        target = free_name(document.main, f"{name}_{step}") if keep else name
        if not keep:
            inner[name] = rename_before_output(transaction, document.main, name)
        if step == "softmax":
            chain.add("Softmax", step, inner[name], outputs=[target], axis=axis)
            after = known
        else:
            chain.add("ArgMax", step, inner[name], outputs=[target], axis=axis, keepdims=0)
            after = ValueType("int64", _without(known.dims, axis))
        if keep:
            _declare(document, transaction, target, after)
        else:
            dims = None if after.dims is None else list(after.dims)
            set_value_type.run(
                document, transaction, scope=[], value=name, dtype=after.dtype, dims=dims
            )
        return [Processed(one, inner[one], f"{step} of output {one}") for one in outputs]
    if step == "top-k":
        _require_top(name, known, axis, k)
    else:
        _require_boxes(outputs, objectness=objectness)
    for one in () if keep else outputs:
        while one in document.main.outputs:
            remove_output.run(document, transaction, scope=[], name=one)
        if one in _DETECTIONS:
            inner[one] = free_name(document.main, f"{one}_inner")
            rename_everywhere(transaction, document.main, one, inner[one])
    if step == "top-k":
        _top_k(chain, inner[name], known, axis, k)
    else:
        taken = {inner[one]: known for one, known in outputs.items()}
        _suppress(chain, taken, centres=centres, objectness=objectness, iou=iou,
                  threshold=threshold, most=most)  # fmt: skip
    return [Processed(one, inner[one], f"{step} of output {one}") for one in outputs]


def _chosen_outputs(document: Document, output: str, scores: str) -> dict[str, ValueType]:
    home = document.main
    every = [*dict.fromkeys(home.outputs)]
    names = [output] if output else every
    listed = ", ".join(map(quoted, every[:8]))
    if len(names) != 1:
        raise EditError("which output?", hint=f"There are {listed}")
    chosen: dict[str, ValueType] = {}
    for name in (*names, *([scores] if scores else ())):
        if name not in home.outputs:
            raise EditError(f"there is no output {quoted(name)}", hint=f"There are {listed}")
        known = home.value_type(name)
        if known is None or known.container or known.dtype is None:
            raise EditError(f"the type of output {quoted(name)} is unknown")
        if home.producer(name) is None:
            raise EditError(f"no node makes the output {quoted(name)}")
        chosen[name] = known
    return chosen


def _require_type(chain: _Chain, step: str, name: str, known: ValueType) -> None:
    op_type = {"softmax": "Softmax", "argmax": "ArgMax", "top-k": "TopK"}.get(step, "")
    schema = schema_for(op_type, "", chain.opset) if op_type else None
    taken = schema.input(0) if schema is not None else None
    if taken is not None and type_of_value(known) not in taken.types:
        raise EditError(f"output {quoted(name)} is {known.text}, which {op_type} does not take")


def _require_axis(name: str, known: ValueType, axis: int) -> None:
    if known.dims is not None and not -len(known.dims) <= axis < len(known.dims):
        raise EditError(f"output {quoted(name)} has no axis {axis}: it is {known.text}")


def _without(
    dims: tuple[int | str | None, ...] | None, axis: int
) -> tuple[int | str | None, ...] | None:
    if dims is None:
        return None
    gone = axis % len(dims)
    return tuple(dim for at, dim in enumerate(dims) if at != gone)


def _declare(document: Document, transaction: Transaction, name: str, known: ValueType) -> None:
    dims = None if known.dims is None else list(known.dims)
    add_output.run(document, transaction, scope=[], name=name, dtype=known.dtype, dims=dims)


def _require_top(name: str, known: ValueType, axis: int, k: int) -> None:
    _require_axis(name, known, axis)
    size = known.dims[axis] if known.dims is not None else None
    if k < 1 or (isinstance(size, int) and k > size):
        raise EditError(f"k is {k}, and axis {axis} of output {quoted(name)} has {size}")


def _top_k(chain: _Chain, value: str, known: ValueType, axis: int, k: int) -> None:
    chain.need(10, "top-k")
    outputs = [free_name(chain.home, f"{chain.name}_{about}") for about in ("values", "indices")]
    chain.add("TopK", "top_k", value, chain.constant("k", [k]), outputs=outputs, axis=axis)
    dims = None
    if known.dims is not None:
        at = axis % len(known.dims)
        dims = (*known.dims[:at], k, *known.dims[at + 1 :])
    for one, dtype in zip(outputs, (known.dtype, "int64"), strict=True):
        _declare(chain.document, chain.transaction, one, ValueType(dtype, dims))


def _suppress(
    chain: _Chain,
    outputs: dict[str, ValueType],
    *,
    centres: bool,
    objectness: bool,
    iou: float,
    threshold: float,
    most: int,
) -> None:
    """Add a NonMaxSuppression and what makes its operands and outputs."""
    chain.need(12, "nms of a detector")
    detections = [free_name(chain.home, name) for name in _DETECTIONS]
    boxes, scores = _boxes_and_scores(chain, outputs, objectness=objectness)
    picked = chain.add(
        "NonMaxSuppression", "picked", boxes, scores, chain.constant("most", [most]),
        chain.constant("iou", [iou], dtype="float32"),
        chain.constant("threshold", [threshold], dtype="float32"), center_point_box=int(centres),
    )  # fmt: skip
    box = chain.add("Gather", "picked_box", picked, chain.constant("columns", [0, 2]), axis=1)
    chain.add("GatherND", "boxes", boxes, box, outputs=detections[:1])
    chain.add("GatherND", "scores", scores, picked, outputs=detections[1:2])
    for name, about, column in ((detections[2], "classes", 1), (detections[3], "batches", 0)):
        index = chain.constant(f"{about}_column", [column], [])
        chain.add("Gather", about, picked, index, outputs=[name], axis=1)
    types = (ValueType("float32", ("picked", 4)), ValueType("float32", ("picked",)),
             ValueType("int64", ("picked",)), ValueType("int64", ("picked",)))  # fmt: skip
    for name, known in zip(detections, types, strict=True):
        _declare(chain.document, chain.transaction, name, known)


def _require_boxes(outputs: Mapping[str, ValueType], *, objectness: bool) -> None:
    for name, known in outputs.items():
        if known.dims is None or len(known.dims) != 3 or known.dtype != "float32":
            raise EditError(f"output {quoted(name)} is {known.text}; nms takes float32 of 3 axes")
    name, known = next(iter(outputs.items()))
    _, second, third = known.dims or (None, None, None)
    if len(outputs) == 2 and not (third == 4 or third is None or isinstance(third, str)):
        raise EditError(f"boxes are {known.text}; the last axis must be 4")
    if len(outputs) == 1 and not isinstance(second, int) and not isinstance(third, int):
        raise EditError(f"which axis of output {quoted(name)} has the boxes is unknown")
    values = min(size for size in (second, third, math.inf) if not isinstance(size, str | None))
    if len(outputs) == 1 and values < 5 + objectness:
        raise EditError(f"output {quoted(name)} is {known.text}: no scores are behind the boxes")


def _boxes_and_scores(
    chain: _Chain, outputs: dict[str, ValueType], *, objectness: bool
) -> tuple[str, str]:
    """Return [batch, boxes, 4] and [batch, classes, boxes]."""
    names, shapes = list(outputs), [known.dims or () for known in outputs.values()]
    if len(names) == 2:
        scores = names[1]
        if shapes[1][2] != shapes[0][1]:
            scores = chain.add("Transpose", "class_scores", scores, perm=[0, 2, 1])
        return names[0], scores
    rows = names[0]
    _, second, third = shapes[0]
    # Attributes of a box are fewer than boxes.
    if isinstance(second, int) and not (isinstance(third, int) and third < second):
        rows = chain.add("Transpose", "rows", rows, perm=[0, 2, 1])
    first = 5 if objectness else 4
    last = chain.constant("last_axis", [2])
    boxes = chain.add(
        "Slice", "all_boxes", rows, chain.constant("box_begin", [0]),
        chain.constant("box_end", [4]), last,
    )  # fmt: skip
    scores = chain.add(
        "Slice", "all_scores", rows, chain.constant("score_begin", [first]),
        chain.constant("score_end", [2**31 - 1]), last,
    )  # fmt: skip
    if objectness:
        factor = chain.add(
            "Slice", "objectness", rows, chain.constant("object_begin", [4]),
            chain.constant("object_end", [5]), last,
        )  # fmt: skip
        scores = chain.add("Mul", "box_scores", scores, factor)
    return boxes, chain.add("Transpose", "class_scores", scores, perm=[0, 2, 1])
