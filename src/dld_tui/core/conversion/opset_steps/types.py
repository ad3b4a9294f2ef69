"""Types of elements: casts, constants, quantization."""

from __future__ import annotations

import numpy as np
from onnx import TensorProto, numpy_helper

from dld_tui.core.conversion.opset_steps.step import OpsetStep, UnwritableError, int64_array
from dld_tui.core.files.proto_fields import text_of
from dld_tui.core.model.shapes.value import of_array
from dld_tui.core.model.tensors.value_types import dtype_number
from dld_tui.core.text import visible
from dld_tui.core.types import FLOATS


def cast_up(step: OpsetStep) -> None:
    """Write the type, which was a text, as its number."""
    name = str(step.take("to")).upper()
    if name not in list(TensorProto.DataType.keys()):
        raise UnwritableError(f"Cast to {visible(name)}, which is no type")
    step.put("to", TensorProto.DataType.Value(name))


def one_scale_down(step: OpsetStep) -> None:
    """Write scales of channels by the arithmetic that they stand for."""
    axis, shape = step.take("axis", 1), step.sizes(1)
    if shape is None:
        raise UnwritableError(
            f"the shape of the scale of {step.op_type} is not known: before opset 13 it is a scalar"
        )
    if shape == ():
        return
    if shape == (1,):
        for at in (1, 2):
            if step.input(at):
                scalar = step.constant(np.zeros(0, np.int64))
                step.put_input(at, step.add("Reshape", [step.input(at), scalar], ()))
        return
    rank = step.need_rank(f"{step.op_type} with scales of an axis, written before opset 13,")
    sizes = step.constant(int64_array([-1] + [1] * (rank - 1 - axis % rank)))
    as_float = TensorProto.FLOAT
    scale = step.add("Reshape", [step.input(1), sizes], dtype="float32")
    zero = step.input(2)
    zero_dtype = step.dtype(2) if zero else "uint8"
    if zero:
        zero = step.add("Cast", [zero], dtype="float32", to=as_float)
        zero = step.add("Reshape", [zero, sizes], dtype="float32")
    source = step.add("Cast", [step.input(0)], step.dims(step.input(0)), "float32", to=as_float)
    if step.op_type == "DequantizeLinear":
        if zero:
            source = step.add("Sub", [source, zero], dtype="float32")
        step.become("Mul", [source, scale])
        return
    if step.target < 11:
        raise UnwritableError("QuantizeLinear with scales of channels needs Round of opset 11")
    limits = {"uint8": (0, 255), "int8": (-128, 127)}.get(zero_dtype or "")
    if limits is None:
        raise UnwritableError(f"QuantizeLinear to {zero_dtype} cannot be written before opset 13")
    levels = step.add("Round", [step.add("Div", [source, scale], dtype="float32")], dtype="float32")
    if zero:
        levels = step.add("Add", [levels, zero], dtype="float32")
    ends = [step.constant(np.float32(limit)) for limit in limits]
    levels = step.add("Clip", [levels, *ends], dtype="float32")
    step.become("Cast", [levels], to=dtype_number(zero_dtype or "uint8"))


def blocks_down(step: OpsetStep) -> None:
    """Refuse blocks; give a zero point for the type of the output."""
    if step.take("block_size", 0):
        raise UnwritableError(f"{step.op_type} has no blocks before opset 21")
    output = step.take("output_dtype", 0)
    if step.op_type == "DequantizeLinear" or not output:
        return
    if not step.input(2):
        shape = step.sizes(1)
        if shape is None:
            raise UnwritableError("the shape of the scale of QuantizeLinear is not known")
        dtype = next((n for n in _QUANTIZED if dtype_number(n) == output), None)
        if dtype is None:
            raise UnwritableError("QuantizeLinear has no such output_dtype before opset 21")
        step.put_input(2, step.constant(np.zeros(shape), dtype))


_QUANTIZED = ("int8", "uint8", "int16", "uint16", "float8e4m3fn", "float8e5m2")


def precision_down(step: OpsetStep) -> None:
    """Drop what says the type of the scale once more."""
    name = "precision" if step.op_type == "QuantizeLinear" else "output_dtype"
    if step.get(name, 0) and step.get(name) == dtype_number(step.dtype(1) or ""):
        step.take(name)


def float8_only_down(step: OpsetStep) -> None:
    """Drop what only says how numbers become float8."""
    to = step.get("to", 0) if step.op_type == "Cast" else dtype_number(step.dtype(1) or "")
    name = TensorProto.DataType.Name(to) if to else "?"
    if "FLOAT8" not in name and name != "?":
        step.take("saturate")
        step.take("round_mode")


def constant_down(step: OpsetStep) -> None:
    """Write numbers and texts as a tensor."""
    (attribute,) = step.node.attribute
    name = text_of(attribute.name)
    value = step.take(name)
    if name == "sparse_value":
        raise UnwritableError("Constant has no sparse_value before opset 11")
    if name == "value":
        step.put(name, value)
        return
    if "string" in name:
        tensor = numpy_helper.from_array(np.array(value, object))
    else:
        kind = np.float32 if "float" in name else np.int64
        tensor = numpy_helper.from_array(np.asarray(value, kind))
    step.put("value", tensor)


def number_down(step: OpsetStep) -> None:
    """Cast what is no floating point number: there were no other constants before opset 9."""
    tensor = step.get("value")
    dtype = tensor.data_type
    if dtype in (TensorProto.FLOAT, TensorProto.FLOAT16, TensorProto.DOUBLE):
        return
    try:
        numbers = numpy_helper.to_array(tensor)
        doubles = numbers.astype(np.float64)
    except (TypeError, ValueError):
        raise UnwritableError("Constant is of floating point numbers before opset 9") from None
    if doubles.size and np.abs(doubles).max() >= 2**53:  # those above may be rounded to it
        raise UnwritableError("Constant is of floating point numbers before opset 9")
    step.put("value", numpy_helper.from_array(doubles))
    step.finish(0, "Cast", to=dtype)
    step.values.made[step.output(0)] = (of_array(doubles), "float64")


def sparse_down(step: OpsetStep) -> None:
    """Refuse sparse constants."""
    if step.has("sparse_value"):
        raise UnwritableError("Constant has no sparse_value before opset 11")


def exponent_down(step: OpsetStep) -> None:
    """Cast the exponent to the type of the base."""
    base, exponent = step.dtype(0), step.dtype(1)
    if base != exponent and base in FLOATS:
        number = dtype_number(base or "")
        step.put_input(1, step.add("Cast", [step.input(1)], dtype=base, to=number))
    elif base != exponent:
        raise UnwritableError("base and exponent of Pow have the same type before opset 12")
