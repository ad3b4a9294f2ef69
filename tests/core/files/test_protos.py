from __future__ import annotations

import subprocess
import sys

import onnx
import pytest

from dld_tui.core.files import protos
from dld_tui.core.files.external import element_bits


def test_messages_are_those_of_onnx() -> None:
    assert protos.ModelProto is onnx.ModelProto
    assert protos.TensorProto is onnx.TensorProto


@pytest.mark.parametrize("first", ["dld_tui.core.files.protos", "onnx"])
def test_the_order_of_imports_does_not_matter(first: str) -> None:
    code = (
        f"import sys, {first}\n"
        "loaded = 'numpy' in sys.modules\n"
        "import onnx.helper\nfrom dld_tui.core.files import protos\n"
        "assert onnx.helper.make_node('Relu', ['x'], ['y']).__class__ is protos.NodeProto\n"
        "print(loaded)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == str(first == "onnx")


def test_bits_of_elements_are_those_of_the_types_of_numpy() -> None:
    narrow = {"INT4": 4, "UINT4": 4, "FLOAT4E2M1": 4, "INT2": 2, "UINT2": 2}
    narrow |= {"FLOAT6E2M3": 6, "FLOAT6E3M2": 6}
    for name, number in onnx.TensorProto.DataType.items():
        if name in ("UNDEFINED", "STRING"):
            assert element_bits(number) is None
        elif name in narrow:
            assert element_bits(number) == narrow[name]
        else:
            dtype = onnx.helper.tensor_dtype_to_np_dtype(number)
            assert element_bits(number) == dtype.itemsize * 8, name
    assert element_bits(2**31 - 1) is None
