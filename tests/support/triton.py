"""Triton's ModelConfig, as far as it is written here, to read a configuration back."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory, text_format

OPTIONAL, REPEATED = 1, 3
INT32, INT64, BOOL, STRING, MESSAGE, ENUM = 5, 3, 8, 9, 11, 14
TYPES = "INVALID BOOL UINT8 UINT16 UINT32 UINT64 INT8 INT16 INT32 INT64 FP16 FP32 FP64 STRING BF16"
# Of Triton's model_config.proto: (field, number, type, repeated, name of its type).
MESSAGES: dict[str, list[tuple[str, int, int, bool, str]]] = {
    "Reshape": [("shape", 1, INT64, True, "")],
    "Input": [
        ("name", 1, STRING, False, ""), ("data_type", 2, ENUM, False, "DataType"),
        ("dims", 4, INT64, True, ""), ("reshape", 5, MESSAGE, False, "Reshape"),
        ("is_shape_tensor", 6, BOOL, False, ""), ("is_non_linear_format_io", 9, BOOL, False, ""),
    ],
    "Output": [
        ("name", 1, STRING, False, ""), ("data_type", 2, ENUM, False, "DataType"),
        ("dims", 3, INT64, True, ""), ("reshape", 5, MESSAGE, False, "Reshape"),
        ("is_shape_tensor", 6, BOOL, False, ""), ("is_non_linear_format_io", 7, BOOL, False, ""),
    ],
    "Group": [("kind", 4, ENUM, False, "Kind"), ("count", 2, INT32, False, "")],
    "ModelConfig": [
        ("name", 1, STRING, False, ""), ("platform", 2, STRING, False, ""),
        ("backend", 17, STRING, False, ""), ("max_batch_size", 4, INT32, False, ""),
        ("input", 5, MESSAGE, True, "Input"), ("output", 6, MESSAGE, True, "Output"),
        ("instance_group", 7, MESSAGE, True, "Group"),
    ],
}  # fmt: skip


def config_class() -> Any:
    file = descriptor_pb2.FileDescriptorProto(name="triton.proto", package="t", syntax="proto3")
    for name, values in (
        ("DataType", [f"TYPE_{one}" for one in TYPES.split()]),
        ("Kind", ["KIND_AUTO", "KIND_GPU", "KIND_CPU", "KIND_MODEL"]),
    ):
        kind = file.enum_type.add(name=name)
        for number, value in enumerate(values):
            kind.value.add(name=value, number=number)
    for name, fields in MESSAGES.items():
        message = file.message_type.add(name=name)
        for field, number, type_, repeated, other in fields:
            message.field.add(
                name=field, number=number, type=type_, label=REPEATED if repeated else OPTIONAL,
                type_name=f".t.{other}" if other else None,
            )  # fmt: skip
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("t.ModelConfig"))


CONFIG = config_class()


def parse(text: str) -> Any:
    return text_format.Parse(text, CONFIG())


def read(path: Path) -> Any:
    return parse(path.read_text())


def tensors(found: Any) -> list[tuple[str, str, list[int]]]:
    types = CONFIG.DESCRIPTOR.file.enum_types_by_name["DataType"].values_by_number
    return [(one.name, types[one.data_type].name, list(one.dims)) for one in found]
