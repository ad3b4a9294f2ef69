"""Libraries of execution providers that ONNX Runtime loads at run time, from 1.23 on.

A library finds its devices when it is registered; a session gets one of them.
"""

from __future__ import annotations

import functools
import json
import sys
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from dld_tui.backends.onnxruntime.runtime import SUFFIX, load, version
from dld_tui.core.errors import DldError, InputError, UnavailableError, UsageError
from dld_tui.core.events import result_of
from dld_tui.core.machine.health import BROKEN, GOOD, Check
from dld_tui.core.text import visible

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
        """For people; free of foreign text."""
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
        runtime.register_execution_provider_library(str(library), str(library))
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
            answer = json.loads(end.said.strip().splitlines()[-1])
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
