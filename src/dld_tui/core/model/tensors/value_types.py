"""Types of values: element type, shape, and their spellings."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cache, lru_cache
from typing import Protocol, TypeAlias

from dld_tui.core import fmt
from dld_tui.core.dataclass import dataclass
from dld_tui.core.errors import UsageError
from dld_tui.core.files import protos as onnx
from dld_tui.core.files.proto_fields import set_text, text_of
from dld_tui.core.text import common_prefix, visible
from dld_tui.core.types import DTYPES, SHORT_WORDS, dtype_spelled

Dims: TypeAlias = tuple[int | str | None, ...]
"""Dimensions: numbers, names of symbolic ones, None where nothing is known."""
PLACEHOLDERS = frozenset({"", "?", "-1", "*", "None", "none", "unknown"})
"""What exporters write as the name of a dimension without one: two of them need not be equal."""
GENERATED = re.compile(r"unk__(\d+)")
"""What onnx calls dimensions that it does not know."""


@lru_cache(maxsize=256)
def dtype_name(data_type: int) -> str:
    """Return the name of a ``TensorProto.DataType``: ``float32``; ``type 99`` if unknown."""
    try:
        name = onnx.TensorProto.DataType.Name(data_type).lower()
    except ValueError:
        return f"type {data_type}"
    return dtype_spelled(name)


_NUMBERS = {dtype_name(number): number for number in onnx.TensorProto.DataType.values()}


def dtype_number(name: str) -> int | None:
    """Return the ``TensorProto.DataType`` of an element type, or None.

    All spellings of :data:`~dld_tui.core.types.DTYPES` are known, in any case.
    """
    return _NUMBERS.get(dtype_spelled(name))


@dataclass(frozen=True, slots=True)
class ValueType:
    """What is known of a value's type."""

    dtype: str | None
    """Element type such as ``float32``; None when unknown."""
    dims: Dims | None
    """None when even the rank is unknown."""
    container: str = ""
    """``sequence``, ``optional``, ``map``, ``sparse``, ``opaque``; empty for a plain tensor."""

    @property
    def text(self) -> str:
        """Return e.g. ``float32[N, 3, 224, 224]`` or ``sequence(int64[?])``. Untrusted text."""
        return self._text(self.dtype or "?", fmt.shape(self.dims))

    @property
    def short(self) -> str:
        """Return for example ``f32[N,3,224,224]``. Untrusted text."""
        dtype = SHORT_WORDS.get(self.dtype or "?", self.dtype or "?")
        return self._text(dtype, fmt.shape(self.dims).replace(", ", ","))

    def _text(self, dtype: str, dims: str) -> str:
        if self.container == "opaque":
            return "opaque"
        inner = dtype if dims == "[]" else dtype + dims
        return f"{self.container}({inner})" if self.container else inner


def value_type_of(proto: onnx.TypeProto) -> ValueType | None:
    """Return the type a TypeProto describes, or None when it says nothing."""
    kind = proto.WhichOneof("value")
    if kind is None:
        return None
    if kind == "tensor_type":
        return _tensor_type(proto.tensor_type, "")
    if kind == "sparse_tensor_type":
        return _tensor_type(proto.sparse_tensor_type, "sparse")
    if kind in ("sequence_type", "optional_type"):
        inner = value_type_of(getattr(proto, kind).elem_type)
        container = kind.partition("_")[0]
        if inner is None:
            return ValueType(None, None, container)
        if inner.container:
            container = f"{container}({inner.container}"
            return ValueType(inner.dtype, inner.dims, container + ")")
        return ValueType(inner.dtype, inner.dims, container)
    if kind == "map_type":
        inner = value_type_of(proto.map_type.value_type)
        key = dtype_name(proto.map_type.key_type)
        value = inner.text if inner else "?"
        return ValueType(f"{key} → {value}", (), "map")
    return ValueType(None, None, "opaque")


def dim_of(dim: onnx.TensorShapeProto.Dimension) -> int | str | None:
    """Return a declared dimension: a size, a name, or None where it says neither.

    A negative size is none, as onnx and ONNX Runtime take it; 0 is 0.
    """
    if dim.HasField("dim_value"):
        return dim.dim_value if dim.dim_value >= 0 else None
    return text_of(dim.dim_param) or None


def _tensor_type(
    proto: onnx.TypeProto.Tensor | onnx.TypeProto.SparseTensor, container: str
) -> ValueType:
    dims: Dims | None = None
    if proto.HasField("shape"):
        dims = tuple(map(dim_of, proto.shape.dim))
    return ValueType(dtype_name(proto.elem_type) if proto.elem_type else None, dims, container)


def type_proto_of(value_type: ValueType) -> onnx.TypeProto | None:
    """Return the TypeProto of a type, or None where the type says too little for one."""
    number = dtype_number(value_type.dtype or "")
    if not number:
        return None
    proto = onnx.TypeProto()
    tensor: onnx.TypeProto.Tensor | onnx.TypeProto.SparseTensor
    if value_type.container == "":
        tensor = proto.tensor_type
    elif value_type.container == "sparse":
        tensor = proto.sparse_tensor_type
    elif value_type.container == "sequence":
        tensor = proto.sequence_type.elem_type.tensor_type
    elif value_type.container == "optional":
        tensor = proto.optional_type.elem_type.tensor_type
    else:
        return None
    tensor.elem_type = number
    if value_type.dims is None:
        return proto
    tensor.shape.SetInParent()
    for dim in value_type.dims:
        entry = tensor.shape.dim.add()
        if isinstance(dim, int):
            entry.dim_value = dim
        elif dim:
            set_text(entry, "dim_param", dim)
    return proto


_T = onnx.TensorProto
_CONTAINERS = {"sequence": "seq", "optional": "optional"}
_TENSOR = re.compile(r"(sparse_)?tensor\((\w+)\)")
_MOST_NAMED = 6


@cache
def tensor_type(data_type: int) -> str | None:
    """Return the schemas' name of a tensor of a ``TensorProto.DataType``; None for unknown."""
    if data_type == _T.UNDEFINED:
        return None
    try:
        return f"tensor({_T.DataType.Name(data_type).lower()})"
    except ValueError:
        return None


def castable(type_name: str | None) -> str | None:
    """Return the element type of a tensor that Cast takes and gives: numbers and bool."""
    match = _TENSOR.fullmatch(type_name or "")
    number = dtype_number(match[2]) if match is not None and not match[1] else None
    if number is None or number in (_T.STRING, _T.COMPLEX64, _T.COMPLEX128):
        return None
    return dtype_name(number)


def type_of_proto(proto: onnx.TypeProto) -> str | None:
    """Return the schemas' name of a declared type, None when it does not say enough."""
    kind = proto.WhichOneof("value")
    if kind == "tensor_type":
        return tensor_type(proto.tensor_type.elem_type)
    if kind == "sparse_tensor_type":
        plain = tensor_type(proto.sparse_tensor_type.elem_type)
        return None if plain is None else f"sparse_{plain}"
    if kind in ("sequence_type", "optional_type"):
        inner = type_of_proto(getattr(proto, kind).elem_type)
        return None if inner is None else f"{_CONTAINERS[kind.partition('_')[0]]}({inner})"
    if kind == "map_type":
        key = tensor_type(proto.map_type.key_type)
        inner = type_of_proto(proto.map_type.value_type)
        return None if key is None or inner is None else f"map({key[7:-1]},{inner})"
    return None


@lru_cache(maxsize=1024)
def type_of_value(value: ValueType | None) -> str | None:
    """Return the known type of a value in the schemas' notation; None when incomplete."""
    number = dtype_number(value.dtype) if value is not None and value.dtype else None
    name = tensor_type(number) if number is not None else None
    if value is None or name is None or not value.container:
        return name
    for container in reversed(value.container.rstrip(")").split("(")):
        if container == "sparse":
            name = f"sparse_{name}"
        elif container in _CONTAINERS:
            name = f"{_CONTAINERS[container]}({name})"
        else:
            return None
    return name


def dtype_of(type_name: str) -> str | None:
    """Return the element type of a plain tensor, e.g. ``float32``; None of anything else."""
    match = _TENSOR.fullmatch(type_name)
    return shown(type_name) if match is not None and not match.group(1) else None


def shown(type_name: str) -> str:
    """Return a schema's type for people: ``float32`` for ``tensor(float)``."""
    return _TENSOR.sub(_shown, type_name)


def types_text(types: Sequence[str], most: int = _MOST_NAMED) -> str:
    """Return accepted types for people, the first of many."""
    return fmt.listed(types, most, shown) or "any type"


def _shown(match: re.Match[str]) -> str:
    sparse, name = match.groups()
    dtype = DTYPES.get(name, name)
    return f"sparse({dtype})" if sparse else dtype


_TYPE = re.compile(r"\s*(?P<dtype>[A-Za-z][\w]*)\s*(?:\[(?P<dims>.*)\])?\s*\Z", re.DOTALL)
_HINT = "Write for example float32[N, 3, 224, 224]; ? for an unknown dimension"


def parse_type(text: str) -> ValueType | None:
    """Return the type that a text means; None for an empty text.

    ``float32[N, 3, ?]`` has a symbolic, a fixed and an unknown dimension, ``float32`` is a scalar,
    and the rank of ``float32[...]`` is unknown. Short names such as ``f32`` are taken, too.

    Raises:
        UsageError: It is no type.
    """
    if not text.strip():
        return None
    match = _TYPE.match(text)
    if match is None:
        raise UsageError("not a type", hint=_HINT)
    name = match["dtype"]
    number = dtype_number(name)
    if not number:
        raise UsageError(f"there is no element type {name!r}", hint=_HINT)
    return ValueType(dtype_name(number), _dims(match["dims"]))


def _dims(text: str | None) -> Dims | None:
    if text is None or not text.strip():
        return ()
    if text.strip() in ("...", "…"):
        return None
    return tuple(_dim(part.strip()) for part in text.split(","))


def _dim(part: str) -> int | str | None:
    if not part:
        raise UsageError("a dimension is missing between two commas", hint=_HINT)
    if part in ("?", "-1"):
        return None
    if re.fullmatch(r"\d+", part, re.ASCII):
        number = int(part)
        if number >= 2**63:
            raise UsageError(f"dimension {part} is out of range")
        return number
    if part[0].isdigit() or part[0] in "-+" or "[" in part or "]" in part:
        raise UsageError(f"{part!r} is not a dimension", hint=_HINT)
    return part


def format_type(value_type: ValueType | None) -> str:
    """Return the text that :func:`parse_type` reads; empty for None and for non-tensors."""
    if value_type is None or value_type.container or value_type.dtype is None:
        return ""
    return value_type.text.replace("…", "...")


_LONGEST_DIMENSION = 4
"""The longest name of a dimension that needs no alias."""
_LEAST_COMMON = 6
"""The longest shared prefix of names in a legend that is repeated."""
_UNKNOWN = re.compile(r"unk__\d+")
"""Names that shape inference gives to unknown dimensions."""
_WORD = re.compile(r"[A-Za-z_][\w.]*")


def dimension_aliases(names: Iterable[str]) -> dict[str, str]:
    """Return short names of dimensions with long ones: ``S`` for ``sequence_length``.

    Names of one letter, with a number where letters are taken; sums such as ``past + 1`` have the
    aliases of what is in them.
    """
    words = dict.fromkeys(word for name in names for word in _WORD.findall(name))
    taken = {word for word in words if len(word) <= _LONGEST_DIMENSION}
    aliases: dict[str, str] = {}
    for word in words:
        if len(word) <= _LONGEST_DIMENSION:
            continue
        letter = next(iter(word.lstrip("_")), "D").upper()
        numbers = (f"{letter}{number}" if number > 1 else letter for number in range(1, 1000))
        alias = next((number for number in numbers if number not in taken), word)
        taken.add(alias)
        aliases[word] = alias
    return aliases


class _Typed(Protocol):
    """A scope."""

    @property
    def inputs(self) -> Iterable[str]: ...

    @property
    def outputs(self) -> Iterable[str]: ...

    def value_type(self, name: str) -> ValueType | None: ...


def aliases_in(scope: _Typed) -> dict[str, str]:
    """Return the short names of the long dimensions of a graph's inputs and outputs.

    Both are untrusted text.
    """
    known = (scope.value_type(name) for name in (*scope.inputs, *scope.outputs))
    dims = (dim for value_type in known if value_type is not None for dim in value_type.dims or ())
    return dimension_aliases(dim for dim in dims if isinstance(dim, str))


def alias_legend(aliases: Mapping[str, str]) -> str:
    """Return the legend of aliases, as ``B batch  S sequence``; fit for a terminal.

    A long prefix shared with the name before, up to a separator, is abbreviated.
    """
    parts, before = [], ""
    for name, alias in aliases.items():
        common = common_prefix((before, name))
        cut = 1 + max(map(common.rfind, "._/"))
        rest = f"…{name[cut:]}" if cut > _LEAST_COMMON else name
        parts.append(f"{alias} {rest}")
        before = name
    return visible("  ".join(parts))


def with_aliases(shape: str, aliases: Mapping[str, str]) -> str:
    """Return the text of a type with aliases of its dimensions, and ``?`` for unknown ones."""
    start = shape.find("[")
    if start < 0:
        return shape

    def alias(match: re.Match[str]) -> str:
        word = match[0]
        return "?" if _UNKNOWN.fullmatch(word) else aliases.get(word, word)

    return shape[:start] + _WORD.sub(alias, shape[start:])
