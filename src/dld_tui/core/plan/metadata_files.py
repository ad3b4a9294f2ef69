"""TREx's metadata files, and what they say of the device, the model and the times."""

from __future__ import annotations

from collections.abc import Mapping

from dld_tui.core.errors import InputError
from dld_tui.core.plan.json_text import parsed
from dld_tui.core.plan.values import first, objects_of, text_of
from dld_tui.core.types import JSON

CONFIGURATIONS = ("build_cfg", "plan_cfg")
"""What TREx's archives hold of the builder's configuration and of the engine, as text values."""
_DEVICE_KEYS = ("device_information", "device", "Device Information")
_NAME_KEYS = ("Selected Device", "Name", "name")


def read_metadata(text: str, where: str, role: str = "") -> dict[str, JSON]:
    """Return what a metadata file says, by TREx's names.

    Raises:
        InputError: It is not JSON, or not metadata.
    """
    document = parsed(text, where)
    if isinstance(document, list):
        devices = [item for item in objects_of(document) if "Name" in item or "name" in item]
        if devices:
            return {"device_information": devices[0]}
    if isinstance(document, dict):
        if role in CONFIGURATIONS:
            return {role: document}
        if role == "build" and "build_options" not in document:
            return {"build": document}
        return document
    raise InputError("is not metadata of an engine", where=where)


def io_modes(metadata: Mapping[str, JSON]) -> dict[str, str]:
    """Return ``input`` or ``output`` for the bindings that an archive tells of."""
    plan = metadata.get("plan_cfg")
    tensors = plan.get("io_tensors") if isinstance(plan, dict) else None
    found = {}
    for name, tensor in tensors.items() if isinstance(tensors, dict) else ():
        word = text_of(tensor.get("mode")).lower() if isinstance(tensor, dict) else ""
        if "input" in word or "output" in word:
            found[name] = "input" if "input" in word else "output"
    return found


def device_of(metadata: Mapping[str, JSON]) -> Mapping[str, JSON]:
    """Return what is known of the device; empty when nothing is."""
    build = metadata.get("build")
    for source in (metadata, build if isinstance(build, dict) else {}):
        found = first(source, *_DEVICE_KEYS)
        if isinstance(found, dict) and found:
            return found
        if isinstance(found, str) and found:
            return {"Name": found}
    return {}


def device_name(device: Mapping[str, JSON]) -> str:
    """Return the device's name; empty when it is not known. Foreign text."""
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
            found = text_of(source.get("model"))
            if found:
                return found
    return ""
