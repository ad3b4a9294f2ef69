"""The features of a TensorRT library as data, collected where the library is installed.

Versions differ in their features, and TensorRT-RTX differs from all of them, so a library is asked
for each name instead of being judged by its version. The numbers behind the names change between
versions: only names are kept.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from importlib import metadata
from types import MappingProxyType
from typing import Any

from dld_tui.core.dataclass import dataclass

AUTO = "auto"
MODULES = ("tensorrt", "tensorrt_rtx")
"""The modules, in the order in which :data:`AUTO` tries them."""
TITLES: Mapping[str, str] = MappingProxyType(
    {"tensorrt": "TensorRT", "tensorrt_rtx": "TensorRT-RTX"}
)
WEAK, STRONG = "weak", "strong"
"""How precision is chosen: builder flags and layer constraints; or the types of the model only."""
NOT_INSTALLED = ("not installed", "only type stubs are installed under its name")
"""The reasons why a library cannot be used that ask for nothing to be mended."""


@dataclass(frozen=True)
class LibraryCapabilities:
    """A library that was found, or the reason why it cannot be used."""

    name: str
    """The request: ``tensorrt``, ``tensorrt_rtx`` or a path."""
    module: str
    """The module it is imported as."""
    version: str = ""
    path: str = ""
    """The folder of the module. Untrusted text, as all texts here."""
    world: str = ""
    """:data:`WEAK` or :data:`STRONG`; empty when unknown."""
    flags: frozenset[str] = frozenset()
    """Names of ``BuilderFlag``."""
    pools: frozenset[str] = frozenset()
    """Names of ``MemoryPoolType``."""
    tactic_sources: frozenset[str] = frozenset()
    """Names of ``TacticSource``."""
    has: frozenset[str] = frozenset()
    """Public members of its classes and enumerations, as ``CLASS.MEMBER``: for example
    ``IBuilderConfig.builder_optimization_level``, ``ILayer.precision``,
    ``HardwareCompatibilityLevel.AMPERE_PLUS``, ``OnnxParserFlag.NATIVE_INSTANCENORM``; a class
    itself, such as ``IInt8EntropyCalibrator2``, is there under its plain name."""
    compute_capabilities: tuple[str, ...] = ()
    """What engines can be built for without the device, such as ``8.9``; empty: this device."""
    why: str = ""
    """Why it cannot be used; empty when it can."""
    hint: str = ""
    """What would mend that."""
    no_driver: str = ""
    """Why no engine can be loaded here, though one can be built; empty when one can."""
    extra: Mapping[str, Any] = field(default_factory=dict)
    """More that was found, such as the version of the ONNX parser."""

    @property
    def usable(self) -> bool:
        """True when an engine can be built with it."""
        return not self.why

    @property
    def title(self) -> str:
        """Its product name and version, such as ``TensorRT-RTX 1.7.1``."""
        return f"{TITLES.get(self.module, self.module)} {self.version}".strip()

    @property
    def version_numbers(self) -> tuple[int, ...]:
        """The version as numbers, for comparison; empty when it has other parts."""
        parts = self.version.split(".")
        return tuple(int(part) for part in parts) if all(p.isdecimal() for p in parts) else ()


_OPSETS = {
    (8, 0): 13, (8, 5): 17, (9, 0): 19, (10, 0): 20, (10, 14): 23, (11, 0): 24, (11, 5): 25,
}  # fmt: skip
"""The newest operator set by the version of TensorRT that brought it, as the parser's documents
say; of 10.14 and 11.0 by the newest operators (Attention, Swish) that their release notes name."""


def newest_opset(capabilities: LibraryCapabilities) -> int | None:
    """Return the newest operator set that a library's parser is written for; None if unknown."""
    known = [opset for since, opset in _OPSETS.items() if capabilities.version_numbers >= since]
    return max(known, default=None) if capabilities.module == "tensorrt" else None


DEFAULT_VERSION = "10.16"
"""The last version whose types are weak; taken where nothing is installed."""
RTX_VERSION = "11"
"""The version of TensorRT that TensorRT-RTX is most like."""


def trtexec_version(library: str) -> str:
    """Return the version of trtexec that goes with a library, such as ``10.13.0``.

    Args:
        library: As in the settings of a build.
    """
    if library == "tensorrt_rtx":
        return RTX_VERSION
    for name in ("tensorrt", "tensorrt-cu13", "tensorrt-cu12"):
        try:
            return metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return DEFAULT_VERSION
