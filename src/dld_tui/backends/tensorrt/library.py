"""Finds and loads a TensorRT library, and collects its features.

A process uses one library. The other TensorRT modules name it ``trt``, which is the module that was
chosen last, whatever it is called::

    if TYPE_CHECKING:
        import tensorrt as trt
    else:
        from dld_tui.backends.tensorrt.library import trt

What is not in every library is asked for by ``library.capabilities`` first.
"""

from __future__ import annotations

import contextlib
import ctypes
import importlib
import json
import re
import sys
from collections.abc import Generator, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from dld_tui.backends.machine.jetson import Jetson, system_tensorrt
from dld_tui.backends.processes import ToolEnd, run_tool
from dld_tui.core.codec import decode, encode
from dld_tui.core.dataclass import dataclass
from dld_tui.core.errors import ActivityError, UnavailableError
from dld_tui.core.files.temporary import temporary_folder
from dld_tui.core.machine.health import BROKEN, GOOD, MISSING, Check
from dld_tui.core.process.installation import install_command
from dld_tui.core.tensorrt.capabilities import (
    AUTO,
    MODULES,
    NOT_INSTALLED,
    STRONG,
    TITLES,
    WEAK,
    LibraryCapabilities,
)
from dld_tui.core.text import visible

_EXTRAS = {"tensorrt": "tensorrt", "tensorrt_rtx": "rtx"}
_ASKED = (
    "Builder", "BuilderFlag", "ComputeCapability", "DataType", "EngineCapability",
    "ExecutionContextAllocationStrategy", "HardwareCompatibilityLevel", "IAlgorithmSelector",
    "IBuilderConfig",
    "ICudaEngine", "IExecutionContext", "IInt8Calibrator", "IInt8EntropyCalibrator",
    "IInt8EntropyCalibrator2", "IInt8LegacyCalibrator", "IInt8MinMaxCalibrator", "ILayer",
    "INetworkDefinition", "IOptimizationProfile", "IPluginRegistry", "IProfiler",
    "IProgressMonitor", "IRuntimeConfig", "ITensor", "ITimingCache",
    "NetworkDefinitionCreationFlag", "OnnxParser", "OnnxParserFlag", "OnnxParserRefitter",
    "ParserError", "PreviewFeature", "ProfilingVerbosity", "QuantizationFlag", "Refitter",
    "Runtime", "RuntimePlatform", "SerializationFlag", "TensorFormat", "TilingOptimizationLevel",
)  # fmt: skip
_LIBRARIES = (
    "libnvinfer.so*", "libnvinfer_plugin.so*", "libnvonnxparser.so*",
    "libtensorrt_rtx.so*", "libtensorrt_onnxparser_rtx.so*",
)  # fmt: skip
"""In the order in which they need each other."""
_LIBRARY_FOLDERS = (".", "lib", "lib64")
_PACKAGE_FOLDERS = (".", "python", "lib/python3*/site-packages", "lib/python3*/dist-packages")
_MISSING_LIBRARY = re.compile(r"(\S+\.so[.\d]*): cannot open shared object file")
_DRIVER_ERRORS = {
    3: "it is not initialised",
    35: "it is older than this CUDA",
    100: "there is no device",
    803: "it does not match the installed CUDA",
    804: "it is older than this CUDA",
    999: "it gives no reason",
}

DATA_TYPES = {
    "fp32": "FLOAT", "fp16": "HALF", "bf16": "BF16", "fp8": "FP8", "fp4": "FP4", "e8m0": "E8M0",
    "int64": "INT64", "int32": "INT32", "int8": "INT8", "int4": "INT4", "uint8": "UINT8",
    "bool": "BOOL",
}  # fmt: skip
"""TensorRT's names of its types, by precision."""


@dataclass(frozen=True)
class Library:
    """A library that was loaded."""

    module: Any
    capabilities: LibraryCapabilities


class _Chosen:
    """Stands for the module that was chosen."""

    module: Any = None

    def __getattr__(self, name: str) -> Any:
        if self.module is None:
            raise RuntimeError("no TensorRT library was chosen in this process")
        return getattr(self.module, name)


trt: Any = _Chosen()
"""The chosen module."""


def find_library(choice: str = AUTO) -> Library:
    """Load a library and make it the one that this process uses.

    Args:
        choice: ``tensorrt``, ``tensorrt_rtx``, a folder that has one of them, or ``auto``: the
            first of these two that works.

    Raises:
        UnavailableError: It is not there or cannot be used; the message says why.
    """
    choices = MODULES if choice in ("", AUTO) else (choice,)
    tried = []
    for candidate in choices:
        capabilities = probe(candidate)
        if capabilities.usable:
            return use(sys.modules[capabilities.module], capabilities)
        tried.append(capabilities)
    first = tried[0]
    if len(tried) == 1:
        where = TITLES.get(choice, visible(choice))
        raise UnavailableError(f"{where} cannot be used: {first.why}", hint=first.hint or None)
    reasons = "; ".join(f"{TITLES[one.module]}: {one.why}" for one in tried)
    raise UnavailableError(
        f"no TensorRT library can be used here: {reasons}",
        hint=f"Install one, for example with {install_command('rtx')}, or choose its folder",
    )


def use(module: Any, capabilities: LibraryCapabilities | None = None) -> Library:
    """Make a loaded module the library of this process."""
    trt.module = module
    return Library(module, capabilities or capabilities_of(module))


@contextlib.contextmanager
def using(module: Any) -> Iterator[Library]:
    """Use a module for a while, then the one that was used before."""
    before = trt.module
    try:
        yield use(module)
    finally:
        trt.module = before


def load_plugins(
    library: Library,
    owner: trt.Builder | trt.Runtime,
    logger: trt.ILogger,
    plugins: Sequence[str],
) -> None:
    """Load libraries of plugins for a builder or a runtime; those of TensorRT come with it.

    Raises:
        UnavailableError: One cannot be loaded.
    """
    trt.init_libnvinfer_plugins(logger, "")
    if plugins and "IPluginRegistry.load_library" not in library.capabilities.has:
        raise UnavailableError(f"{library.capabilities.title} cannot load plugin libraries")
    for plugin in plugins:
        if not Path(plugin).is_file():
            raise UnavailableError("the plugin library does not exist", where=plugin)
        if owner.get_plugin_registry().load_library(plugin) is None:
            raise UnavailableError(
                "the plugin library cannot be loaded",
                where=plugin,
                hint="The log says why: it may need another library, or another TensorRT",
            )


def probe(choice: str) -> LibraryCapabilities:
    """Load a library and return what it has, or why it cannot be used."""
    if choice in MODULES:
        return replace(_load(choice), name=choice)
    return replace(_load_from(Path(choice).expanduser()), name=choice)


def _load_from(folder: Path) -> LibraryCapabilities:
    """Load the library that a folder has: a Python package, or the shared libraries of one."""
    if not folder.is_dir():
        return LibraryCapabilities("", "", why="the folder does not exist")
    package = _package_in(folder)
    libraries = _libraries_in(folder)
    if package is None and not libraries:
        hint = f"It needs a Python package {' or '.join(MODULES)}, or libnvinfer.so"
        return LibraryCapabilities("", "", why="the folder has no TensorRT", hint=hint)
    try:
        for library in libraries:
            ctypes.CDLL(str(library), mode=ctypes.RTLD_GLOBAL)
    except OSError as error:
        return LibraryCapabilities("", "", path=str(folder), why=_import_problem(error, ""))
    if package is not None:
        sys.path.insert(0, str(package.parent))
        importlib.invalidate_caches()
        return _load(package.name)
    is_rtx = any("tensorrt_rtx" in library.name for library in libraries)
    capabilities = _load("tensorrt_rtx" if is_rtx else "tensorrt")
    if capabilities.usable or capabilities.version:
        return capabilities
    wheels = sorted(folder.glob(f"python/*cp{sys.version_info[0]}{sys.version_info[1]}*.whl"))
    wheel = wheels[0] if wheels else "the wheel in its folder python"
    why = f"the folder has the shared libraries but no Python package ({capabilities.why})"
    return replace(capabilities, path=str(folder), why=why, hint=f"pip install {wheel}")


def _package_in(folder: Path) -> Path | None:
    if folder.name in MODULES and (folder / "__init__.py").is_file():
        return folder
    for pattern in _PACKAGE_FOLDERS:
        for place in [folder] if pattern == "." else sorted(folder.glob(pattern)):
            for module in MODULES:
                if (place / module / "__init__.py").is_file():
                    return place / module
    return None


def _libraries_in(folder: Path) -> list[Path]:
    for name in _LIBRARY_FOLDERS:
        libraries = [
            min(files) for pattern in _LIBRARIES if (files := [*(folder / name).glob(pattern)])
        ]
        if libraries:
            return libraries
    return []


def _load(name: str) -> LibraryCapabilities:
    """Import a module by its name."""
    hint = _install_hint(name)
    try:
        module = importlib.import_module(name)
    # The seam: bindings raise whatever their loading meets.
    except Exception as error:  # noqa: BLE001
        return LibraryCapabilities(name, name, why=_import_problem(error, name), hint=hint)
    if not hasattr(module, "Builder") or not hasattr(module, "__version__"):
        places = [Path(place) for place in getattr(module, "__path__", ())]
        del sys.modules[name]
        if any((place / "__init__.pyi").is_file() for place in places):
            why = NOT_INSTALLED[1]
        else:
            why = f"the module {name} that is installed is not TensorRT: it has no Builder"
        return LibraryCapabilities(name, name, why=why, hint=hint)
    capabilities = capabilities_of(module)
    no_driver = _driver_problem()
    if no_driver and name == "tensorrt":
        why = f"it needs an NVIDIA driver to build: {no_driver}"
        return replace(capabilities, no_driver=no_driver, why=why, hint=_driver_hint())
    return replace(capabilities, no_driver=no_driver)


def _install_hint(name: str) -> str:
    """Return the command that brings a library; on a Jetson, JetPack's TensorRT is the one."""
    system = system_tensorrt() if name == "tensorrt" else None
    return install_command(_EXTRAS[name]) if system is None else system[1]


def _driver_hint() -> str:
    if Jetson().board is None:
        return "Install the driver of the GPU"
    return "It is a part of Jetson Linux; a container sees it with --runtime nvidia"


def _import_problem(error: Exception, module: str) -> str:
    if isinstance(error, ModuleNotFoundError):
        if error.name == module:
            return NOT_INSTALLED[0]
        return f"it needs the Python module {visible(str(error.name))}"
    text = visible(" ".join(str(error).split()))
    if missing := _MISSING_LIBRARY.search(text):
        return f"a shared library is missing: {missing[1]}"
    return f"loading it failed: {text[:300] or type(error).__name__}"


def _driver_problem() -> str:
    """Return why no CUDA driver works here, or an empty text."""
    try:
        driver = ctypes.CDLL("libcuda.so.1")
        status = int(driver.cuInit(0))
    except (OSError, AttributeError):
        return "there is no NVIDIA driver (libcuda.so.1)"
    if status == 0:
        return ""
    return f"the NVIDIA driver fails with error {status}: {_DRIVER_ERRORS.get(status, 'unknown')}"


def capabilities_of(module: Any) -> LibraryCapabilities:
    """Ask a loaded module what it has; makes no object of it."""
    name = str(getattr(module, "__name__", "tensorrt"))
    has = {name for name in _ASKED if hasattr(module, name)}
    for kind in sorted(has):
        has |= {f"{kind}.{member}" for member in _members(module, kind)}
    flags = _members(module, "BuilderFlag")
    capabilities = [_capability(name) for name in _members(module, "ComputeCapability")]
    return LibraryCapabilities(
        name=name,
        module=name,
        version=str(module.__version__),
        path=str(Path(str(getattr(module, "__file__", None) or ".")).parent),
        # Up to 1.4 the bindings of TensorRT-RTX have flags for types, which it never took.
        world=WEAK if "FP16" in flags and name != "tensorrt_rtx" else STRONG,
        flags=frozenset(flags),
        pools=frozenset(_members(module, "MemoryPoolType")),
        tactic_sources=frozenset(_members(module, "TacticSource")),
        has=frozenset(has),
        compute_capabilities=tuple(text for text in capabilities if text),
    )


def _members(module: Any, kind: str) -> list[str]:
    """Return the public names of a class; of an enumeration, its members alone."""
    owner = getattr(module, kind, None)
    if owner is None:
        return []
    members = getattr(owner, "__members__", None)
    return [name for name in (members or dir(owner)) if not name.startswith("_")]


def _capability(name: str) -> str:
    """Return ``8.9`` for ``SM89``, an empty text for what is no compute capability."""
    match = re.fullmatch(r"SM(\d+)(\d)", name)
    return f"{match[1]}.{match[2]}" if match else ""


def main() -> None:
    """Write the capabilities of the library ``sys.argv[1]`` as JSON into the file ``argv[2]``."""
    capabilities = probe(sys.argv[1])
    Path(sys.argv[2]).write_text(json.dumps(encode(capabilities)), encoding="utf-8")


_LIMIT_S = 60.0
_MODULE = "dld_tui.backends.tensorrt.library"
_LONGEST = 300


def probe_in_process(
    choice: str, limit_s: float = _LIMIT_S
) -> Generator[float, None, LibraryCapabilities]:
    """Return what a library can do, or why it cannot be used; yield the seconds that pass."""
    with temporary_folder("tensorrt") as folder:
        answer = folder / "capabilities.json"
        end = yield from run_tool(_MODULE, [choice, str(answer)], limit_s)
        try:
            if not end.timed_out and not end.crashed:
                return decode(LibraryCapabilities, json.loads(answer.read_text(encoding="utf-8")))
        except (OSError, ValueError, ActivityError):
            pass  # it says why below
        module = choice if choice in MODULES else ""
        return LibraryCapabilities(choice, module, why=_what_happened(end, limit_s))


def _what_happened(end: ToolEnd, limit_s: float) -> str:
    if end.timed_out:
        return f"loading it took over {limit_s:.0f} s"
    if end.crashed:
        return f"loading it crashed with {end.crashed}"
    last = (end.output.strip().splitlines() or ["it gave no reason"])[-1]
    return f"loading it failed: {last[:_LONGEST]}"


def library_check(capabilities: LibraryCapabilities) -> Check:
    """Return the line of ``dld doctor``."""
    group, name = "Backends", capabilities.name
    if not capabilities.usable:
        state = MISSING if capabilities.why in NOT_INSTALLED else BROKEN
        return Check(group, name, state, capabilities.why, capabilities.hint)
    world = "layers may be constrained" if capabilities.world == "weak" else "strongly typed only"
    parts = [capabilities.version, world]
    if capabilities.no_driver:
        parts.append(f"builds engines but cannot load them: {capabilities.no_driver}")
    return Check(group, name, GOOD, ", ".join(parts))
