"""ONNX models as text: protobuf text, JSON, and the syntax of ``onnx.parser``.

Such a file is read as the binary model that it stands for. Text is small: what is larger than
:data:`MOST_TEXT` is refused, as its reading would take minutes.
"""

from __future__ import annotations

import os
import re
import tempfile
from pathlib import Path

from google.protobuf.message import Message

from dld_tui.core import fmt
from dld_tui.core.errors import CorruptFileError, InputError, SaveError
from dld_tui.core.files import protos as onnx
from dld_tui.core.files.blobs import spill_folder
from dld_tui.core.files.external import dense_tensors, is_external
from dld_tui.core.files.recognise import FileKind, recognise
from dld_tui.core.files.source import Source
from dld_tui.core.types import TextEnum

MOST_TEXT = 32 << 20
"""Bytes of a text that is read or written."""
_COMMENTS = re.compile(rb"(?:\s*#[^\n]*\n)*\s*")
_MOST_LEVELS = 200
"""Of brackets: the parser of onnx recurses on the stack of the process."""


class TextFormat(TextEnum):
    """How a model is written as text."""

    PROTOBUF = "protobuf text"
    JSON = "JSON"
    ONNX = "ONNX text"


_SUFFIXES = {
    **dict.fromkeys((".textproto", ".txtpb", ".prototxt", ".pbtxt"), TextFormat.PROTOBUF),
    **dict.fromkeys((".json", ".onnxjson"), TextFormat.JSON),
    **dict.fromkeys((".onnxtxt", ".onnxtext"), TextFormat.ONNX),
}
"""Those of ``onnx.serialization``."""


def format_of(path: Path) -> TextFormat | None:
    """Return the format that the name of a file asks for, None for the binary one."""
    return _SUFFIXES.get(path.suffix.lower())


def is_text(path: Path) -> bool:
    """Return whether a file is a model as text; False where it cannot be read."""
    try:
        return recognise(path) is FileKind.ONNX_TEXT
    except InputError:
        return False


def open_text(path: Path) -> tuple[Source, TextFormat]:
    """Open a model as text; what is read of it is the binary model.

    Raises:
        InputError: It cannot be read, is too large, or is not such a text.
    """
    source = Source.open(path)
    try:
        if source.size > MOST_TEXT:
            raise InputError(
                f"a model as text of {fmt.size(source.size)}: at most {fmt.size(MOST_TEXT)} are"
                " read",
                where=str(path), hint="Save it in binary form: onnx.save(model, 'model.onnx')",
            )  # fmt: skip
        text = source.read(0, source.size)
        start = _COMMENTS.sub(b"", text.removeprefix(b"\xef\xbb\xbf"), 1)[:1]
        kind = {b"{": TextFormat.JSON, b"<": TextFormat.ONNX}.get(start, TextFormat.PROTOBUF)
        try:
            binary = parsed(text, kind)
        except ValueError as error:
            raise CorruptFileError(f"not {kind.value}: {error}", where=str(path)) from None
        return as_source(binary, source), kind
    finally:
        source.close()


def as_source(binary: bytes, text: Source) -> Source:
    """Return an open file with a binary model that has the path and the identity of a text."""
    with tempfile.TemporaryFile(dir=spill_folder()) as file:
        file.write(binary)
        source = Source(text.path, os.dup(file.fileno()), text.identity)
    source.size = len(binary)
    return source


def parsed(text: bytes, kind: TextFormat) -> bytes:
    """Return the binary model that a text stands for.

    Raises:
        ValueError: It is no such text; says why in one line.
    """
    try:
        if kind is TextFormat.ONNX:
            return _parsed_onnx(text)
        model = onnx.ModelProto()
        if kind is TextFormat.JSON:
            from google.protobuf import json_format

            json_format.Parse(text.decode("utf-8-sig"), model)
        else:
            from google.protobuf import text_format

            text_format.Parse(text.decode("utf-8-sig"), model)
        binary: bytes = model.SerializeToString()
        onnx.ModelProto.FromString(binary)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    except Exception as error:  # the parsers' errors have no common class  # noqa: BLE001
        raise ValueError(" ".join(str(error).split())[:300] or type(error).__name__) from None
    return binary


def _parsed_onnx(text: bytes) -> bytes:
    from onnx import parser

    level = 0
    for bracket in re.finditer(rb"[{}()\[\]]", text):
        level = level + 1 if bracket[0] in b"{([" else max(level - 1, 0)
        if level > _MOST_LEVELS:
            raise RecursionError
    try:
        model = parser.parse_model(text.decode("utf-8-sig"))
    except parser.ParseError as error:
        why = error.args[0] if error.args else ""
        raise ValueError(why.decode(errors="replace") if isinstance(why, bytes) else why) from None
    binary: bytes = model.SerializeToString()
    return binary


def printed(binary: bytes, kind: TextFormat, target: Path) -> bytes:
    """Return a binary model as text, from which :func:`parsed` makes the same model.

    Args:
        binary: The model.
        kind: The format.
        target: Where it goes, for messages.

    Raises:
        SaveError: It is too large, or the format does not hold all of it.
    """
    hint = "Save it as .onnx" if kind is not TextFormat.ONNX else "Save it as .textproto or .onnx"
    if len(binary) > MOST_TEXT:
        raise SaveError(
            f"a model of {fmt.size(len(binary))} is too large for text", where=str(target),
            hint="Save it as .onnx",
        )  # fmt: skip
    model = onnx.ModelProto.FromString(binary)
    try:
        text = _text(model, kind).encode()
        again = onnx.ModelProto.FromString(parsed(text, kind))
    except (ValueError, RecursionError) as error:
        raise SaveError(
            f"{kind.value} does not hold this model: {error}", where=str(target), hint=hint
        ) from None
    if len(text) > MOST_TEXT:
        raise SaveError(
            f"the text is {fmt.size(len(text))}, more than {fmt.size(MOST_TEXT)}",
            where=str(target), hint="Save it as .onnx",
        )  # fmt: skip
    if _plain(again) != _plain(model):
        raise SaveError(
            f"{kind.value} does not hold all of this model, such as documentation or metadata",
            where=str(target), hint=hint,
        )  # fmt: skip
    return text


def _text(model: onnx.ModelProto, kind: TextFormat) -> str:
    if kind is TextFormat.JSON:
        from google.protobuf import json_format

        return json_format.MessageToJson(model, preserving_proto_field_name=True) + "\n"
    if kind is TextFormat.PROTOBUF:
        from google.protobuf import text_format

        return text_format.MessageToString(model)
    from onnx import ModelProto, printer

    return str(printer.to_text(ModelProto.FromString(model.SerializeToString()))) + "\n"


def _plain(model: onnx.ModelProto) -> bytes:
    """Return a model with its values in one form, and without what says nothing."""
    from onnx import TensorProto, numpy_helper

    copy = onnx.ModelProto.FromString(model.SerializeToString())
    for tensor in dense_tensors(copy):
        if not is_external(tensor) and tensor.data_type != TensorProto.STRING:
            values = numpy_helper.to_array(TensorProto.FromString(tensor.SerializeToString()))
            tensor.ParseFromString(numpy_helper.from_array(values, tensor.name).SerializeToString())
    _drop_empty(copy)
    return bytes(copy.SerializeToString(deterministic=True))


def _drop_empty(message: Message) -> None:
    for field, value in message.ListFields():
        if value in ("", b""):
            message.ClearField(field.name)
        elif field.message_type is not None:
            for part in [value] if isinstance(value, Message) else value:
                _drop_empty(part)
