"""The files of one engine: which belong together, archives (``.tea``), those that TREx writes."""

from __future__ import annotations

import json
import re
import zipfile
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import field
from pathlib import Path
from typing import Final

from dld_tui.core.codec import finite
from dld_tui.core.dataclass import dataclass
from dld_tui.core.errors import CorruptFileError, InputError
from dld_tui.core.files.writer import Output, save_errors, write_set
from dld_tui.core.foreign import first, objects_of, text_of
from dld_tui.core.tensorrt.plan.engine_plan import EnginePlan, EngineTensor
from dld_tui.core.tensorrt.plan.json_text import (
    LARGEST_BYTES,
    decoded,
    documents,
    parsed,
    read_text,
    require_size,
)
from dld_tui.core.types import ENGINE_SUFFIXES, JSON, Foreign

_HASH: Final = r"(?:\.[0-9a-f]{6,40})?"
_ENDING: Final = re.compile(
    r"^(?P<stem>.*?)[._-]?\b(?P<role>"
    r"build\.metadata|profile\.metadata|metadata|graph|profile|timing|times|trt|build|layers?"
    rf"|layer[_-]?info|exportLayerInfo|exportProfile|exportTimes)(?P<hash>{_HASH})\.(?:json|txt)$",
    re.IGNORECASE,
)
_CONFIGURATION: Final = re.compile(r"^(?P<role>build_cfg|plan_cfg)\.json$")
"""What TREx's archives have besides."""
_LOG: Final = re.compile(r"^(?P<stem>.*?)\.(?P<role>build|profile)\.log$")
_ROLES: Final = {
    "graph": "graph", "trt": "graph", "layer": "graph", "layers": "graph", "layerinfo": "graph",
    "layer_info": "graph", "layer-info": "graph", "exportlayerinfo": "graph",
    "profile": "profile", "exportprofile": "profile",
    "timing": "timing", "times": "timing", "exporttimes": "timing",
    "metadata": "metadata", "build.metadata": "build.metadata",
    "profile.metadata": "profile.metadata", "build": "build",
}  # fmt: skip
_MOST_FILES: Final = 20_000
"""A folder with more is not looked through."""


@dataclass(frozen=True)
class FileName:
    """A file's name taken apart."""

    stem: str
    role: str
    infix: str = ""
    """A hash that distinguishes several files of one role."""


@dataclass
class FileSet:
    """The files of an engine by role, each with all candidates, the likeliest first."""

    roles: dict[str, list[Path]] = field(default_factory=dict)

    def of(self, role: str) -> list[Path]:
        """Return the files of a role."""
        return self.roles.get(role, [])


def file_name(name: str) -> FileName | None:
    """Return the parts of a file's name; None for other files."""
    match = _ENDING.match(name)
    if match:
        role = _ROLES[match["role"].lower()]
        return FileName(match["stem"], role, match["hash"].removeprefix("."))
    configuration = _CONFIGURATION.match(name)
    if configuration:
        return FileName("", configuration["role"])
    log = _LOG.match(name)
    if log:
        return FileName(log["stem"], f"{log['role']}.log")
    return None


def find_set(path: Path) -> FileSet:
    """Return the files beside `path` that belong to the same engine, including itself."""
    own = file_name(path.name)
    stems = {own.stem} if own else {path.name}
    if path.suffix.lower() in ENGINE_SUFFIXES:
        stems.add(path.name.removesuffix(path.suffix))
    elif own and own.stem:
        # NAME.engine.graph.json and NAME.trt.json may lie together.
        stems |= {own.stem.removesuffix(".engine"), f"{own.stem}.engine"}
    return match_names(_names_beside(path), stems, own.infix if own else "", path.parent)


def _names_beside(path: Path) -> list[str]:
    names = []
    try:
        for place, entry in enumerate(path.parent.iterdir()):
            if place >= _MOST_FILES:
                return []
            names.append(entry.name)
    except OSError:
        return []
    return sorted(names)


def match_names(
    names: Sequence[str], stems: set[str] | None, infix: str = "", folder: Path | None = None
) -> FileSet:
    """Return files by role.

    Args:
        names: Names of files.
        stems: Allowed stems; None allows any.
        infix: The preferred hash where several files have a role.
        folder: The folder of the names.
    """
    file_set = FileSet()
    ranked = []
    for name in names:
        parts = file_name(name.rpartition("/")[2])
        if parts is None or (stems is not None and parts.stem not in stems):
            continue
        rank = 0 if parts.infix == infix else 1 if not parts.infix else 2
        ranked.append((rank, name, parts))
    for _, name, parts in sorted(ranked, key=lambda item: item[:2]):
        path = folder / name if folder is not None else Path(name)
        file_set.roles.setdefault(parts.role, []).append(path)
    return file_set


SEPARATOR = "!"
"""Between the archive's path and a member's name."""
_MOST_MEMBERS = 10_000
_BROKEN = (ValueError, RuntimeError, EOFError, NotImplementedError, zlib.error)
"""What reading a damaged or encrypted member raises."""


def archive_set(path: Path) -> FileSet:
    """Return the files in an archive by role, as ``ARCHIVE!MEMBER``.

    Raises:
        InputError: It cannot be read, or has no layer information.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            names = archive.namelist()[:_MOST_MEMBERS]
    except (OSError, zipfile.BadZipFile, ValueError, NotImplementedError) as error:
        raise CorruptFileError(f"not a complete ZIP archive: {error}", where=str(path)) from None
    file_set = match_names(sorted(names), None)
    if not file_set.of("graph"):
        raise InputError(
            "no layer information (graph.json) in the archive: not one of TREx", where=str(path)
        )
    for files in file_set.roles.values():
        files[:] = [Path(f"{path}{SEPARATOR}{file}") for file in files]
    return file_set


def text_of_file(path: Path) -> str:
    """Return the text of a file, or of a member of an archive (``ARCHIVE!MEMBER``).

    Raises:
        InputError: It cannot be read.
    """
    archive, separator, member = str(path).rpartition(SEPARATOR)
    if not separator or path.exists():
        return read_text(path)
    return decoded(_member(Path(archive), member, str(path)), str(path))


def _member(archive_path: Path, member: str, where: str) -> bytes:
    try:
        with zipfile.ZipFile(archive_path) as archive, archive.open(member) as file:
            # The sizes in an archive may be wrong: count the bytes read.
            data = file.read(LARGEST_BYTES + 1)
    except (OSError, zipfile.BadZipFile, KeyError, *_BROKEN) as error:
        raise CorruptFileError(f"cannot be read from the archive: {error}", where=where) from None
    require_size(len(data), where)
    return data


_BUILD = ("model_options", "build_options")
_PROFILE = ("performance_summary", "inference_options", "device_information")


def trex_paths(prefix: Path) -> dict[str, Path]:
    """Return where the files of a set go, by role: ``DIR/NAME`` and an ending."""
    endings = {
        "graph": ".graph.json", "profile": ".profile.json", "timing": ".timing.json",
        "build.metadata": ".build.metadata.json", "profile.metadata": ".profile.metadata.json",
    }  # fmt: skip
    return {role: prefix.with_name(prefix.name + ending) for role, ending in endings.items()}


def write_trex(plan: EnginePlan, prefix: Path, *, overwrite: bool = False) -> list[Path]:
    """Write the available parts of a plan as TREx's files and return their paths.

    Content read from a file of the same form is written unchanged; the rest is generated from the
    plan.

    Args:
        prefix: ``DIR/NAME``; the folder is created.
        overwrite: As of :class:`~dld_tui.core.files.writer.StagedFile`.

    Raises:
        InputError: A file that the plan was read from is missing.
        SaveError: A file cannot be written; existing ones are unchanged.
    """
    texts = {
        "graph": _graph(plan),
        "profile": _profile(plan),
        "timing": _timing(plan),
        "build.metadata": _metadata(plan.metadata, _BUILD),
        "profile.metadata": _metadata(plan.metadata, _PROFILE),
    }
    paths = trex_paths(prefix)
    outputs = []
    for role, text in texts.items():
        path = paths[role]
        if not text:
            continue
        outputs.append(Output(path, [text.encode()], overwrite))
    with save_errors(prefix.parent):
        prefix.parent.mkdir(parents=True, exist_ok=True)
    write_set(outputs)
    return [output.path for output in outputs]


def _graph(plan: EnginePlan) -> str:
    source = plan.files.get("graph")
    if source:
        text = text_of_file(Path(source))
        # Concatenated layers and lists are forms that TREx does not read.
        if text.lstrip().startswith("{"):
            parsed_documents, _ = documents(text, source)
            if (
                len(parsed_documents) == 1
                and isinstance(parsed_documents[0], dict)
                and "Layers" in parsed_documents[0]
            ):
                return text
    if not plan.all_layers:
        return ""
    layers: list[JSON] = [
        layer.name if plan.names_only else dict(layer.attributes) for layer in plan.all_layers
    ]
    bindings: list[JSON] = [tensor.name for tensor in plan.bindings or _ends(plan)]
    return _text({"Layers": layers, "Bindings": bindings})


def _ends(plan: EnginePlan) -> list[EngineTensor]:
    """Return what is read and not written, then what is written and not read."""
    read = {tensor.name: tensor for layer in plan.all_layers for tensor in layer.inputs}
    written = {tensor.name: tensor for layer in plan.all_layers for tensor in layer.outputs}
    inputs = [tensor for name, tensor in read.items() if name not in written]
    return inputs + [tensor for name, tensor in written.items() if name not in read]


def _profile(plan: EnginePlan) -> str:
    source = plan.files.get("profile")
    if source:
        return text_of_file(Path(source))
    if plan.log is not None and len(plan.log.profile) > 1:
        return _text(plan.log.profile)
    return ""  # no layer has a time then


def _timing(plan: EnginePlan) -> str:
    source = plan.files.get("timing")
    return text_of_file(Path(source)) if source else ""


def _metadata(metadata: Mapping[str, JSON], keys: tuple[str, ...]) -> str:
    content: dict[str, JSON] = {key: metadata[key] for key in keys if key in metadata}
    return _text(content) if content else ""


def _text(value: JSON) -> str:
    return json.dumps(finite(value), indent=1, allow_nan=False) + "\n"


CONFIGURATIONS = ("build_cfg", "plan_cfg")
"""What TREx's archives hold of the builder's configuration and of the engine, as text values."""
_DEVICE_KEYS = ("device_information", "device", "Device Information")
_NAME_KEYS = ("Selected Device", "Name", "name")


def read_metadata(text: str, where: str, role: str = "") -> Foreign:
    """Return the content of a metadata file, by TREx's names.

    Raises:
        InputError: It is not JSON, or not metadata.
    """
    document = parsed(text, where)
    if isinstance(document, list):
        devices = [item for item in objects_of(document) if "Name" in item or "name" in item]
        if devices:
            return {"device_information": dict(devices[0])}
    if isinstance(document, dict):
        if role in CONFIGURATIONS:
            return {role: document}
        if role == "build" and "build_options" not in document:
            return {"build": document}
        return document
    raise InputError("is not the metadata of an engine", where=where)


def io_modes(metadata: Mapping[str, JSON]) -> dict[str, str]:
    """Return ``input`` or ``output`` for the bindings in an archive."""
    plan = metadata.get("plan_cfg")
    tensors = plan.get("io_tensors") if isinstance(plan, dict) else None
    modes = {}
    for name, tensor in tensors.items() if isinstance(tensors, dict) else ():
        word = text_of(tensor.get("mode")).lower() if isinstance(tensor, dict) else ""
        if "input" in word or "output" in word:
            modes[name] = "input" if "input" in word else "output"
    return modes


def device_of(metadata: Mapping[str, JSON]) -> Mapping[str, JSON]:
    """Return what is known of the device; empty if unknown."""
    build = metadata.get("build")
    for source in (metadata, build if isinstance(build, dict) else {}):
        device = first(source, *_DEVICE_KEYS)
        if isinstance(device, dict) and device:
            return device
        if isinstance(device, str) and device:
            return {"Name": device}
    return {}


def device_name(device: Mapping[str, JSON]) -> str:
    """Return the device's name; empty when it is not known. Untrusted text."""
    return text_of(first(device, *_NAME_KEYS))


def model_of(metadata: Mapping[str, JSON]) -> str:
    """Return the path of the ONNX file that the engine was built from; empty when not known."""
    options = metadata.get("model_options")
    if isinstance(options, dict) and text_of(options.get("Model")):
        return text_of(options.get("Model"))
    build = metadata.get("build")
    if isinstance(build, dict):
        settings = build.get("settings")
        for source in (build, settings if isinstance(settings, dict) else {}):
            model = text_of(source.get("model"))
            if model:
                return model
    return ""
