"""Nodes and constants that compute sizes, before the node of a model that needs them."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
import onnx
from onnx import helper, numpy_helper

from dld_tui.core.conversion.followed import Followed
from dld_tui.core.conversion.regrouping import Factor
from dld_tui.core.errors import ActivityError
from dld_tui.core.model.shapes.size import Polynomial
from dld_tui.core.text import visible

Values: TypeAlias = "np.ndarray[Any, Any]"
_SINCE_IR = 4
"""The version of the format from which an initializer need not be an input as well."""


class SizeNodes:
    """What is added to a model.

    Args:
        model: Gets the constants.
        names: Those that are taken.
        took: Told the name and the elements of each constant.
        added: Told each node.

    Attributes:
        before: The nodes that go before the one that is looked at.
        weights: The constants of the model.
        sources: By dimension an axis of an input that has its size.
    """

    def __init__(
        self,
        model: onnx.ModelProto,
        names: set[str],
        took: Callable[[str, Values], None],
        added: Callable[[onnx.NodeProto], None],
    ) -> None:
        self.before: list[onnx.NodeProto] = []
        self.weights = model.graph.initializer
        self.sources: dict[str, tuple[str, int]] = {}
        self._names, self._took, self._added = names, took, added
        self._ir = model.ir_version

    def computed(self, size: Polynomial, name: str, data: Followed) -> str:
        """Return a value with one element: a size, of those of a value or of the inputs.

        Raises:
            ActivityError: There are no such sizes.
        """
        for axis in data.changed:
            part = Factor(data.sizes[axis], data.dims[axis])
            times, rest = size % (part.size // part.content), size // (part.size // part.content)
            if isinstance(times, int) and times == 0 and isinstance(rest, int):
                return self.size_of(name, axis, rest, part.content)
        if len(size.terms) > 1 or any(one not in self.sources for one in next(iter(size.terms))):
            raise ActivityError(
                f"the dimension cannot be made dynamic: a shape needs {visible(str(size))}, which"
                " is not the size of an input"
            )
        (names, factor), *_ = size.terms.items()
        product = ""
        for one in names:
            source, axis = self.sources[one]
            other = self.size_of(source, axis, factor if not product else 1, 1)
            if product:
                both = self.name(f"{source}_size")
                self.add("Mul", [product, other], [both])
                other = both
            product = other
        return product

    def size_of(self, name: str, axis: int, times: int, over: int) -> str:
        """Return a value with one element: a size, times a whole number, over another."""
        shape, size = self.name(f"{name}_shape"), self.name(f"{name}_size")
        self.add("Shape", [name], [shape])
        self.add("Gather", [shape, self.constant(np.array([axis], np.int64))], [size], axis=0)
        common = math.gcd(times, over)
        for op_type, factor in (("Mul", times // common), ("Div", over // common)):
            if factor != 1:
                scaled = self.name(f"{name}_size")
                self.add(op_type, [size, self.constant(np.array([factor], np.int64))], [scaled])
                size = scaled
        return size

    def joined(self, entries: Sequence[int], pieces: Mapping[int, str], source: str) -> str:
        """Return a value of entries, some of them other values; others are those of a source."""
        parts: list[str] = []
        run: list[int] = []

        def flush() -> None:
            if run and source:
                part = self.name(f"{source}_part")
                self.add("Gather", [source, self.constant(np.array(run, np.int64))], [part],
                          axis=0)  # fmt: skip
                parts.append(part)
            elif run:
                parts.append(self.constant(np.array([entries[i] for i in run], np.int64)))
            run.clear()

        for place in range(len(entries)):
            if place in pieces:
                flush()
                parts.append(pieces[place])
            else:
                run.append(place)
        flush()
        shape = self.name("shape")
        self.add("Concat", parts, [shape], axis=0)
        return shape

    def constant(self, values: Values) -> str:
        """Return a new value with these elements."""
        name = self.name("size")
        tensor = numpy_helper.from_array(values, name)
        if self._ir >= _SINCE_IR:
            self.weights.append(tensor)
        else:  # initializers were inputs then
            tensor.name = ""
            self.before.append(helper.make_node("Constant", [], [name], name, value=tensor))
        self._took(name, values)
        return name

    def add(self, op_type: str, inputs: list[str], outputs: list[str], **about: Any) -> None:
        """Add a node; `about` are its attributes."""
        node = helper.make_node(op_type, inputs, outputs, outputs[0], **about)
        self.before.append(node)
        self._added(node)

    def name(self, base: str) -> str:
        """Return a name that nothing has, which stays taken."""
        number, name = 1, f"{base}_dld"
        while name in self._names:
            number += 1
            name = f"{base}_dld{number}"
        self._names.add(name)
        return name
