"""INT8 calibration from a folder of inputs to a cache, for TensorRT 8 to 10.16.

The inputs are read and checked before the build starts; the library then takes one set after
another from the memory of the GPU. A cache that exists is used instead of them.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dld_tui.backends.tensorrt.cuda import Cuda
from dld_tui.backends.tensorrt.library import Library
from dld_tui.backends.tensorrt.runtime import dtype_name, sizes_of
from dld_tui.core import fmt
from dld_tui.core.dataclass import dataclass
from dld_tui.core.errors import DldError, InputError, UnavailableError, UsageError
from dld_tui.core.files.source import open_error
from dld_tui.core.files.writer import write_bytes
from dld_tui.core.model.document.metadata import Profile
from dld_tui.core.model.inputs.feeds import load_input_sets
from dld_tui.core.model.inputs.shapes import AnyArray, InputSpec
from dld_tui.core.tensorrt.settings import BuildSettings
from dld_tui.core.text import visible

if TYPE_CHECKING:
    import tensorrt as trt
else:
    from dld_tui.backends.tensorrt.library import trt

_HEAD = re.compile(rb"TRT-\d+-(?P<kind>\w+)\s*\n")
_KINDS = {
    "EntropyCalibration2": "IInt8EntropyCalibrator2",
    "EntropyCalibration": "IInt8EntropyCalibrator",
    "MinMaxCalibration": "IInt8MinMaxCalibrator",
}
"""What the first line of a cache says, and the class that reads it."""
_DEFAULT = "IInt8EntropyCalibrator2"


@dataclass(frozen=True)
class Batch:
    """One set of inputs."""

    folder: Path
    arrays: dict[str, AnyArray]
    """By name, in the network's order."""


def calibrator_for(
    config: trt.IBuilderConfig,
    network: trt.INetworkDefinition,
    settings: BuildSettings,
    library: Library,
    profiles: Sequence[Profile] = (),
    cuda: Cuda | None = None,
) -> object:
    """Give a build its calibrator, and return what must live until the build has ended.

    Args:
        config: Gets the calibrator.
        network: Its inputs are what a set has to hold.
        settings: The cache, the folder of inputs, and the device.
        library: What builds.
        profiles: The first one's usual shapes are those of the sets, where the network leaves
            some open.
        cuda: The device; None opens it when inputs are needed.

    Raises:
        UsageError: There is neither a cache nor a folder of inputs.
        InputError: A set lacks an input, or one has another type or shape than the network; or the
            cache is none.
        UnavailableError: The library has no such calibrator, or there is no GPU.
        ActivityError: The GPU has not enough memory for a set.
    """
    cache = settings.calibration_cache
    known = _read_cache(cache) if cache is not None else b""
    kind = _kind_of(known, cache) if known else _DEFAULT
    if kind not in library.capabilities.has:
        raise UnavailableError(f"{library.capabilities.title} has no {kind}")
    batches: list[Batch] = []
    if not known:
        if settings.calibration_inputs is None:
            raise UsageError(
                "there is no calibration cache yet, and there are no inputs to make one",
                where=str(cache),
                hint="Give a folder with --calibration-inputs",
            )
        batches = read_batches(settings.calibration_inputs, network, profiles)
        if cuda is None:
            cuda = Cuda(settings.device)
    calibrator = _calibrator(kind, _Feed(cuda, batches), known, cache)
    config.int8_calibrator = calibrator
    return calibrator


def read_batches(
    folder: Path, network: trt.INetworkDefinition, profiles: Sequence[Profile]
) -> list[Batch]:
    """Return the sets of a folder, checked.

    Raises:
        InputError: A set lacks an input, or one has another type or shape than the network.
    """
    specs = list(_specs(network, profiles[0] if profiles else {}))
    batches = []
    for input_set in load_input_sets(folder, specs):
        arrays = {name: v for name, v in input_set.values.items() if not isinstance(v, list)}
        batches.append(Batch(input_set.folder, {spec.name: arrays[spec.name] for spec in specs}))
    if not batches:
        raise InputError("the set of inputs does not exist", where=str(folder))
    first = batches[0]
    for batch in batches:
        for name, array in batch.arrays.items():
            before = first.arrays[name]
            if array.shape != before.shape:
                raise InputError(
                    f"input {visible(name)} has shape {fmt.shape(array.shape)}, but"
                    f" {fmt.shape(before.shape)} in {first.folder.name}: all sets need one shape",
                    where=str(batch.folder),
                )
    return batches


def _specs(network: trt.INetworkDefinition, profile: Profile) -> Iterator[InputSpec]:
    """Return the inputs with the shapes that the library calibrates with."""
    for index in range(network.num_inputs):
        tensor = network.get_input(index)
        dims = sizes_of(tensor.shape)
        if any(size < 0 for size in dims) and tensor.name in profile:
            dims = tuple(profile[tensor.name].opt)
        free = tuple(None if size < 0 else size for size in dims)
        yield InputSpec(tensor.name, dtype_name(tensor.dtype), free)


def _read_cache(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return b""
    except OSError as error:
        raise open_error(path, error) from None


def _kind_of(cache: bytes, path: Path | None) -> str:
    match = _HEAD.match(cache)
    if match is None:
        raise InputError("is not a TensorRT calibration cache", where=str(path))
    kind = match["kind"].decode()
    if kind not in _KINDS:
        raise InputError(f"is a calibration cache of {kind}, which is not used", where=str(path))
    return _KINDS[kind]


class _Feed:
    """Puts one set after another into the memory of the GPU, always at the same addresses.

    Raises:
        ActivityError: There is not enough memory.
    """

    def __init__(self, cuda: Cuda | None, batches: Sequence[Batch]) -> None:
        self._cuda, self._left = cuda, list(batches)
        self._device: dict[str, int] = {}
        self._host: dict[str, int] = {}
        self._stream = 0
        if cuda is not None and batches:
            self._stream = cuda.stream()
            try:
                for name, array in batches[0].arrays.items():
                    self._host[name] = cuda.allocate_host(array.nbytes)
                    self._device[name] = cuda.allocate(array.nbytes)
            except DldError:
                self.close()
                raise

    def next(self, names: Sequence[str]) -> list[int] | None:
        """Return where the next set is, in the order of `names`; None when there is none left."""
        if self._cuda is None or not self._left:
            self.close()
            return None
        batch = self._left.pop(0)
        try:
            for name, array in batch.arrays.items():
                host = self._host[name]
                self._cuda.write_host(host, array.tobytes())
                self._cuda.copy_to_device(self._device[name], host, array.nbytes, self._stream)
            self._cuda.synchronize(self._stream)
            return [self._device[name] for name in names]
        except (DldError, KeyError):  # nothing may pass through the library, which then says so
            self.close()
            return None

    def close(self) -> None:
        """Give the memory back."""
        cuda = self._cuda
        if cuda is None:
            return
        with contextlib.suppress(DldError):
            for address in self._device.values():
                cuda.free(address)
            for address in self._host.values():
                cuda.free_host(address)
            if self._stream:
                cuda.destroy_stream(self._stream)
        self._device.clear()
        self._host.clear()
        self._stream = 0


def _calibrator(kind: str, feed: _Feed, known: bytes, path: Path | None) -> Any:
    base: Any = getattr(trt, kind)

    class Calibrator(base):
        """Takes what the library asks for."""

        def __init__(self) -> None:
            base.__init__(self)

        def get_batch_size(self) -> int:
            """Return 1: a set is what the network takes at once, its batch included."""
            return 1

        def get_batch(self, names: list[str]) -> list[int] | None:
            """Return the addresses of the next set."""
            return feed.next(names)

        def read_calibration_cache(self) -> bytes | None:
            """Return the cache that was there."""
            return known or None

        def write_calibration_cache(self, cache: Any) -> None:
            """Keep a new cache."""
            if path is not None and not known:
                with contextlib.suppress(DldError):
                    write_bytes(path, bytes(cache), overwrite=True)

    return Calibrator()
