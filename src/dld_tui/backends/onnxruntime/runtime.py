"""The installed ONNX Runtime: its module, version and providers, and what its errors say.

Versions 1.23 to 1.31 work. Its errors become :class:`DldError`, with the node where the text names
one.

From 1.23 on it loads libraries of execution providers at run time: a library finds its devices when
it is registered, and a session gets one of them.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import io
import json
import re
import sys
from collections.abc import Generator, Iterable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from dld_tui.core.dataclass import dataclass
from dld_tui.core.errors import (
    ActivityError,
    DldError,
    InputError,
    UnavailableError,
    UsageError,
)
from dld_tui.core.events import result_of
from dld_tui.core.machine.health import BROKEN, GOOD, Check
from dld_tui.core.machine.jetson import lacks_gpu_wheels
from dld_tui.core.process.child import has_memory_limit, says_no_memory
from dld_tui.core.process.installation import install_hint
from dld_tui.core.text import visible

_INSTALL_JETPACK_6 = "Install NVIDIA's build for JetPack 6, as docs/guides/jetson.md says"
SUFFIX = "ExecutionProvider"
CUDA_PROVIDERS = ("CUDA", "Tensorrt", "NvTensorRTRTX")
"""Providers that work on a CUDA device: CUPTI records them, and they use CUDA memory."""
WARNING, FATAL = 2, 4
"""Severities of its log."""


@functools.cache
def load() -> Any:
    """Import ONNX Runtime and return its module.

    Raises:
        UnavailableError: It is not installed, or its libraries cannot be loaded.
    """
    try:
        module = importlib.import_module("onnxruntime")
    except ModuleNotFoundError as error:
        if error.name == "onnxruntime":
            raise UnavailableError(
                "ONNX Runtime is not installed", hint=install_hint("cpu")
            ) from None
        raise UnavailableError(
            f"ONNX Runtime cannot be loaded: {error}", hint=install_hint("cpu")
        ) from error
    except (ImportError, OSError) as error:
        raise UnavailableError(
            f"ONNX Runtime cannot be loaded: {error}", hint=install_hint("cpu")
        ) from error
    module.disable_telemetry_events()
    module.set_default_logger_severity(WARNING)
    return module


def version() -> str:
    """Return its version, e.g. ``1.31.1``."""
    return str(load().__version__)


def newest_opset() -> int:
    """Return the newest version of ai.onnx that both onnx and the installed ONNX Runtime know.

    Raises:
        UnavailableError: ONNX Runtime is missing.
    """
    import onnx
    from onnx import helper

    runtime = load()
    options = runtime.SessionOptions()
    options.log_severity_level = FATAL
    value = helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, [1])
    graph = helper.make_graph([], "newest", [value], [value])
    for version in range(onnx.defs.onnx_opset_version(), 1, -1):
        imports = [helper.make_opsetid("", version)]
        model = helper.make_model(graph, opset_imports=imports)
        model.ir_version = helper.find_min_ir_version_for(imports)
        with contextlib.suppress(Exception):  # ONNX Runtime's errors have no common class
            runtime.InferenceSession(
                model.SerializeToString(), options, providers=["CPUExecutionProvider"]
            )
            return version
    raise AssertionError("ONNX Runtime loads no model")


def providers() -> list[str]:
    """Return the execution providers that are installed, by their short names, e.g. ``CPU``."""
    return [name.removesuffix(SUFFIX) for name in load().get_available_providers()]


def find_provider(name: str) -> str:
    """Return the short name of an installed provider, given its short or full name in any case.

    Raises:
        UnavailableError: This ONNX Runtime does not have it.
    """
    wanted = name.removesuffix(SUFFIX).lower()
    installed = providers()
    for provider in installed:
        if provider.lower() == wanted:
            return provider
    hint = (
        _INSTALL_JETPACK_6
        if lacks_gpu_wheels()
        else f"{install_hint('gpu')} (in place of onnxruntime)"
    )
    raise UnavailableError(
        f"ONNX Runtime {version()} here has no {visible(name)} provider; it has"
        f" {', '.join(installed)}",
        hint=hint if wanted in ("cuda", "tensorrt") else None,
    )


def load_cuda_libraries(runtime: Any) -> None:
    """Load the CUDA libraries that are installed as Python packages."""
    preload = getattr(runtime, "preload_dlls", None)  # since 1.21
    if preload is not None:
        with contextlib.redirect_stdout(io.StringIO()):  # it prints what it does not find
            preload()


_INPUT_FAULTS = ("InvalidProtobuf", "NoSuchFile", "NoModel")
_LONGEST = 8_000
"""Characters of a message that are searched: names in it may be of any length."""
_OP = r"(?P<op>[^\s\"'(),]{1,200})"
_NODE_PATTERNS = tuple(
    re.compile(pattern, re.DOTALL)
    for pattern in (
        rf"while running {_OP} node\. Name:'(?P<node>.*?)' Status Message: (?P<why>.*)",
        rf'In Node, \("(?P<node>.*?)", {_OP}, "[^"]*", -?\d+\) : .*, Error (?P<why>.*)',
        rf"(?P<why>Could not find an implementation for {_OP}\(\d+\)"
        r" node with name '(?P<node>.*)')",
        rf"Node \((?P<node>.*?)\) Op \({_OP}\) (?P<why>.*)",
        rf"(?P<why>Type '[^']*' of (?:input|output) .*? of operator \({_OP}\)"
        r" in node \((?P<node>.*)\) is .*)",
        rf"(?P<why>Type parameter \(\w+\) of Optype \({_OP}\) bound to different types .*?)"
        r" in node \((?P<node>.*)\)",
        rf"(?<!\S)(?P<why>{_OP}\(-?\d+\) is not a registered function/op)",
    )
)
_INNER = _NODE_PATTERNS[0]
RAISE_LIMITS = "The setting inference_limit (DLD_INFERENCE_LIMIT) multiplies the limits"
_GPU_FAULTS = (
    "unspecified launch failure",
    "illegal memory access",
    "CUDA failure 46:",
    "CUDA failure 100:",
    "CUDA failure 214:",
    "CUDA failure 719:",
    "devices are busy or unavailable",
    "uncorrectable ECC error",
    "GPU is lost",
)
"""Messages of CUDA that ONNX Runtime passes on when the device fails during a run."""
_UNKNOWN_OPERATOR = ("No Op registered", "not a registered function/op")
_NO_KERNEL = "Could not find an implementation"
_PREFIX = re.compile(
    r"^\[ONNXRuntimeError\] : \d+ : [A-Z_]+ : "
    r"|Load model from .*? failed: ?"
    r"|This is an invalid model\. (?:Type Error: |Error: )?"
    r"|Exception during (?:initialization|loading): "
    r"|Fatal error: "
    r"|(?:/\S*/)?\w+\.(?:h|cc|cpp|cu):\d+ (?:operator\(\) )?",
    re.DOTALL,
)
_AFTER_SIGNATURE = re.compile(r"(?:::<lambda\(.*?\)>|\s*const\b|\s*\[with [^\]]*\])*\s+")
_CONDITION = re.compile(r"^[^'\"]{1,300}? was false\. (?=\S)", re.DOTALL)
"""Of a check in the source, where words follow."""
_INLINED = re.compile(r"_inlfunc_[^\s)'\",]*")
"""Names of tensors inside of operators that ONNX Runtime replaces by their definition."""
_ASIDES = re.compile(r" node with name '.*?'|(?<=\S) in node \(\)")


@contextlib.contextmanager
def errors_of(model: Path, doing: str) -> Generator[None]:
    """Turn exceptions of ONNX Runtime into a DldError; `doing` is ``load`` or ``run``.

    Raises:
        InputError: The file cannot be read as a model.
        ActivityError: Any other failure.
    """
    try:
        yield
    except DldError:
        raise
    except MemoryError as error:  # at a limit, or in Python code that copies values
        hint = _memory_hint()
        raise ActivityError("out of memory", where=str(model), hint=hint) from error
    # The seam: its errors share no base class, and some are plain RuntimeError or ValueError.
    except Exception as error:
        raise error_from(error, model, doing, version()) from error


def error_from(error: Exception, model: Path, doing: str, version: str) -> DldError:
    """Return the error to show for an exception of ONNX Runtime.

    Args:
        error: Of any class; the name of the class tells an unreadable file from other faults.
        model: The file to name.
        doing: ``load`` or ``run``.
        version: Of ONNX Runtime.
    """
    full = str(error).strip()[:_LONGEST]
    where, why = str(model), full
    for pattern in _NODE_PATTERNS:
        if match := pattern.search(full):
            groups = match.groupdict()
            why = groups["why"]
            while inner := _INNER.search(why):  # of a node of a subgraph
                why = inner["why"]
            node = f"node {groups['node']!r}" if groups.get("node") else "a node"
            where = f"{model}: {node} ({visible(groups['op'])})"
            break
    message = _short(why)
    details = f"{type(error).__name__}: {full}"
    if type(error).__name__ in _INPUT_FAULTS:
        return InputError(f"ONNX Runtime cannot read it: {message}", where=where, details=details)
    return ActivityError(
        f"ONNX Runtime {version} cannot {doing} it: {message}",
        where=where,
        hint=_hint(full),
        details=details,
    )


def find_fault(text: str) -> str:
    """Return what is wrong, of a message of ONNX Runtime: without the node, files and functions."""
    full = text.strip()[:_LONGEST]
    for pattern in _NODE_PATTERNS:
        if match := pattern.search(full):
            return _short(match["why"])
    return _short(full)


def named_node(text: str) -> str:
    """Return the node that a message of ONNX Runtime names, or else its operator, or nothing."""
    full = text.strip()[:_LONGEST]
    for pattern in _NODE_PATTERNS:
        if match := pattern.search(full):
            groups = match.groupdict()
            return groups.get("node") or groups["op"]
    return ""


def _short(text: str, limit: int = 300) -> str:
    """Return a message without the names of source files and functions."""
    for _ in range(4):
        text = _PREFIX.sub("", text, count=1).strip()
        text = _without_signature(text)
    text = _CONDITION.sub("", text)
    text = _ASIDES.sub("", _INLINED.sub("inner tensor", text))
    text = visible(" ".join(text.split())).rstrip(". ")
    return text if len(text) <= limit else text[:limit] + "…"


def _memory_hint() -> str:
    """Return what to do where no more memory was got: at a limit of this process, if it has one."""
    text = "It needs more memory than there is"
    return f"{text}, or than its limit. {RAISE_LIMITS}" if has_memory_limit() else text


def _hint(text: str) -> str | None:
    if says_no_memory(text):
        return _memory_hint()
    if any(sign in text for sign in _GPU_FAULTS):
        return "The GPU failed or is gone: look at nvidia-smi and at the kernel's log (dmesg)"
    if any(sign in text for sign in _UNKNOWN_OPERATOR):
        return "The operator is not part of ONNX Runtime; it may need a custom operator library"
    if _NO_KERNEL in text:
        return "This provider has no kernel for these types, or not in this version of the operator"
    return None


def _without_signature(text: str) -> str:
    """Return a message without the C++ function that it begins with."""
    begin = text.find("(")
    if begin < 0 or "::" not in text[:begin] or ". " in text[:begin]:
        return text
    depth = 0
    for at in range(begin, len(text)):
        depth += {"(": 1, ")": -1}.get(text[at], 0)
        if depth == 0:
            match = _AFTER_SIGNATURE.match(text, at + 1)
            return text[match.end() :] if match else text
    return text


_LIMIT_S = 60.0
_TOLD = ("version", "ov_device", "Description")
"""The metadata of a device that are shown, of all that providers report."""


@dataclass(frozen=True)
class ProviderDevice:
    """A device that a provider can use. Texts are foreign."""

    provider: str
    """Short name."""
    kind: str
    """``CPU``, ``GPU`` or ``NPU``."""
    vendor: str
    about: str
    """What the provider says of it."""

    @property
    def text(self) -> str:
        """For people; free of untrusted text."""
        about = f" ({visible(self.about)})" if self.about else ""
        return f"{visible(self.provider)}: {visible(self.vendor)} {visible(self.kind)}{about}"


def register(libraries: Iterable[Path]) -> None:
    """Load provider libraries, each once per process.

    Raises:
        UnavailableError: ONNX Runtime is too old, or a library finds no device here.
        InputError: A file does not exist, or is no such library.
    """
    for library in libraries:
        _register(library.absolute())


@functools.cache
def _register(library: Path) -> None:
    runtime = load()
    if not hasattr(runtime, "register_execution_provider_library"):
        raise UnavailableError(
            f"ONNX Runtime {version()} cannot load provider libraries",
            hint="ONNX Runtime 1.23 and later can",
        )
    if not library.is_file():
        raise InputError("the provider library does not exist", where=str(library))
    before = len(runtime.get_ep_devices())
    try:
        runtime.register_execution_provider_library(_registered_name(library), str(library))
    # The seam: ONNX Runtime's errors share no base class.
    except Exception as error:
        raise InputError(
            f"is not a provider library for ONNX Runtime {version()}: {visible(str(error))[:300]}",
            where=str(library),
        ) from error
    if len(runtime.get_ep_devices()) == before:
        raise UnavailableError(
            "the provider library finds no usable device here", where=str(library)
        )


_LIBRARY_NAME = re.compile(r"providers_([a-z]+)")


def _registered_name(library: Path) -> str:
    """Return the name to register a library by: that of QNN has it as the name of its provider."""
    match = _LIBRARY_NAME.search(library.name)
    return str(library) if match is None else f"{match[1].upper()}{SUFFIX}"


def devices() -> list[tuple[ProviderDevice, Any]]:
    """Return the devices of all providers that are registered, as data and as ONNX Runtime's."""
    handles: list[Any] = getattr(load(), "get_ep_devices", list)()
    return [(_described(device), device) for device in handles]


def _described(device: Any) -> ProviderDevice:
    options = {**device.ep_metadata, **device.device.metadata}
    about = [options[key] for key in _TOLD if options.get(key)]
    return ProviderDevice(
        device.ep_name.removesuffix(SUFFIX), device.device.type.name, device.device.vendor,
        ", ".join(about),
    )  # fmt: skip


def add_providers(
    options: Any, names: Sequence[str], number: int, own: dict[str, dict[str, str]]
) -> None:
    """Add providers of libraries, and others, to a session.

    Args:
        options: ``SessionOptions``.
        names: Short names, in order of preference.
        number: Of the device among those of its provider.
        own: Options of providers by short name.

    Raises:
        UsageError: A provider has no device of this number.
    """
    known = devices()
    for name in names:
        mine = [device for about, device in known if about.provider == name]
        if not mine:
            options.add_provider(name + SUFFIX, own.get(name, {}))
        elif number < len(mine) or name != names[0]:
            device = mine[number if name == names[0] else 0]
            options.add_provider_for_devices([device], own.get(name, {}))
        else:
            listed = "; ".join(
                f"{at} {about.text}"
                for at, about in enumerate(about for about, _ in known if about.provider == name)
            )
            raise UsageError(f"{name} has no device {number}", hint=f"There are {listed}")


def library_checks(libraries: Iterable[str]) -> Iterable[Check]:
    """Return a check per library for ``dld doctor``: its devices, or its problem.

    Each is loaded in a separate process.
    """
    from dld_tui.backends.processes import run_tool

    for library in libraries:
        end = result_of(run_tool(__name__, [library], _LIMIT_S))
        name = Path(library).name
        try:
            answer = json.loads(end.output.strip().splitlines()[-1])
        except (ValueError, IndexError):
            how = "took too long" if end.timed_out else f"crashed: {end.crashed or end.status}"
            yield Check("Providers", name, BROKEN, how)
            continue
        if "problem" in answer:
            yield Check("Providers", name, BROKEN, answer["problem"], answer["hint"])
        for at, device in enumerate(answer.get("devices", ())):
            text = f"device {at}, {ProviderDevice(**device).text}"
            yield Check("Providers", name if at == 0 else "", GOOD, text)


def main() -> None:
    """Print the devices of the library ``sys.argv[1]``, or its problem, as JSON."""
    before = len(devices())
    try:
        register([Path(sys.argv[1])])
        answer: dict[str, Any] = {"devices": [asdict(about) for about, _ in devices()[before:]]}
    except DldError as error:
        answer = {"problem": error.message, "hint": error.hint or ""}
    sys.stdout.write(f"\n{json.dumps(answer)}\n")
