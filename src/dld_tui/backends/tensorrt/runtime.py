"""A loaded engine: its inputs and outputs, its layers, and the refitting of its weights.

Loading an engine runs code that it holds, so a file is loaded only where the user trusts it.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dld_tui.backends.tensorrt.errors import loading_problem, running_problem
from dld_tui.backends.tensorrt.library import DATA_TYPES, Library, load_plugins
from dld_tui.backends.tensorrt.log import BuildLog, logger_of
from dld_tui.core.dataclass import dataclass
from dld_tui.core.errors import DldError, InputError, SaveError, UnavailableError, UsageError
from dld_tui.core.files.model_set import binary_file
from dld_tui.core.files.recognise import EngineHeader, engine_header
from dld_tui.core.files.source import open_error
from dld_tui.core.tensorrt.trtexec_arguments import mebibytes
from dld_tui.core.text import visible
from dld_tui.core.types import ELEMENT_BITS, PRECISION_DTYPES, PlainValues

if TYPE_CHECKING:
    import tensorrt as trt
else:
    from dld_tui.backends.tensorrt.library import trt

_HEAD = 36
_DTYPES = {name: PRECISION_DTYPES[precision] for precision, name in DATA_TYPES.items()}
"""Element types, by TensorRT's names."""

Ranges = tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]


@dataclass(frozen=True)
class Binding:
    """An input or output of an engine."""

    name: str
    """Untrusted text."""
    is_input: bool
    dtype: str
    """By ONNX's name, such as ``float32``."""
    dims: tuple[int, ...]
    """-1 where it is free."""
    on_host: bool
    """True for a shape tensor: its values, in the host's memory, decide shapes."""
    linear: bool
    """False when its elements are not in plain row-major order."""
    ranges: tuple[Ranges, ...] = ()
    """(min, opt, max) of each optimization profile; of a shape tensor, of its values."""

    def shape(self, profile: int) -> tuple[int, ...]:
        """Return the shape of a profile's optimum; what is free in no profile is 1."""
        if self.on_host or profile >= len(self.ranges):
            return tuple(1 if size < 0 else size for size in self.dims)
        return self.ranges[profile][1]


def trusted_bytes(path: Path, trust: bool) -> tuple[bytes, EngineHeader]:
    """Return an engine file and what its header tells.

    Raises:
        UsageError: The user does not say that the file can be trusted.
        InputError: It cannot be read, or is no engine.
    """
    try:
        with path.open("rb") as file:
            head = file.read(_HEAD)
            header = engine_header(head)
            if header is None:
                raise InputError("is not a TensorRT engine", where=str(path))
            if not trust:
                raise UsageError(
                    "an engine can contain executable code: load it only if you trust who made it",
                    where=str(path),
                    hint="Confirm with --trust",
                )
            return head + file.read(), header
    except OSError as error:
        raise open_error(path, error) from None
    except MemoryError:
        raise InputError("does not fit into memory", where=str(path)) from None


class Engine:
    """An engine in the memory of the GPU.

    Args:
        library: What to load it with.
        data: The engine's bytes.
        log: Gets what the library says.
        where: The file, for errors.
        device: The GPU in words, for errors.
        plugins: Libraries of plugins to load before.
        dla_core: The DLA core to run on, where the engine uses one.

    Raises:
        InputError: The engine is damaged, of another version or for another device.
        UnavailableError: This library cannot run engines here, or a plugin is missing.
        ActivityError: There is not enough memory, or the library says something else.
    """

    def __init__(
        self,
        library: Library,
        data: bytes,
        log: BuildLog,
        where: str = "",
        device: str = "",
        plugins: Sequence[str] = (),
        dla_core: int | None = None,
    ) -> None:
        self.library, self.where, self.log = library, where, log
        self._require(library)
        self.logger = logger_of(log)
        header = engine_header(data[:_HEAD])
        self._runtime = self._make_runtime(header, device)
        load_plugins(library, self._runtime, self.logger, plugins)
        if dla_core is not None:
            self._choose_dla(dla_core)
        if "Runtime.engine_host_code_allowed" in library.capabilities.has:
            # Version compatible engines bring their runtime along; trust was asked for before.
            self._runtime.engine_host_code_allowed = True
        engine = self._runtime.deserialize_cuda_engine(data)
        if engine is None:
            raise loading_problem(log.errors, header, library.capabilities.title, device, where)
        self.engine: trt.ICudaEngine = engine
        self.bindings = tuple(self._bindings())

    @staticmethod
    def _require(library: Library) -> None:
        capabilities = library.capabilities
        if capabilities.no_driver:
            raise UnavailableError(
                f"{capabilities.title} cannot load engines here: {capabilities.no_driver}"
            )
        if (
            not {"ICudaEngine.num_io_tensors", "IExecutionContext.execute_async_v3"}
            <= capabilities.has
        ):
            raise UnavailableError(
                f"{capabilities.title} is too old to run engines: 8.5 or later is"
            )

    def _make_runtime(self, header: EngineHeader | None, device: str) -> trt.Runtime:
        try:
            return trt.Runtime(self.logger)
        # The bindings raise what they have when the library makes no runtime.
        except (TypeError, RuntimeError) as error:
            log_lines = [*self.log.errors] or [str(error)]
            title = self.library.capabilities.title
            raise loading_problem(log_lines, header, title, device, self.where) from None

    def _choose_dla(self, core: int) -> None:
        count = self._runtime.num_DLA_cores
        if core >= count:
            cores = f"has {count}" if count else "has none"
            raise UnavailableError(f"there is no DLA core {core}: the device {cores}")
        self._runtime.DLA_core = core

    def _bindings(self) -> Iterator[Binding]:
        engine = self.engine
        for index in range(engine.num_io_tensors):
            name = engine.get_tensor_name(index)
            is_input = engine.get_tensor_mode(name) == trt.TensorIOMode.INPUT
            on_host = engine.get_tensor_location(name) == trt.TensorLocation.HOST
            yield Binding(
                name=name,
                is_input=is_input,
                dtype=dtype_name(engine.get_tensor_dtype(name)),
                dims=sizes_of(engine.get_tensor_shape(name)),
                on_host=on_host,
                linear=engine.get_tensor_format(name) == trt.TensorFormat.LINEAR,
                ranges=tuple(self._ranges(name, on_host)) if is_input else (),
            )

    def _ranges(self, name: str, on_host: bool) -> Iterator[Ranges]:
        # The bindings name the arguments of the values the other way round than they take them.
        values: Any = getattr(self.engine, "get_tensor_profile_values", None)
        if values is None:  # TensorRT 8
            values = self.engine.get_profile_shape_input
        for profile in range(self.engine.num_optimization_profiles):
            shapes: Any = (
                values(profile, name)
                if on_host
                else self.engine.get_tensor_profile_shape(name, profile)
            )
            if len(shapes) == 3:
                low, best, high = (sizes_of(shape) for shape in shapes)
                yield low, best, high

    @property
    def inputs(self) -> tuple[Binding, ...]:
        """The inputs, in the engine's order."""
        return tuple(binding for binding in self.bindings if binding.is_input)

    @property
    def outputs(self) -> tuple[Binding, ...]:
        """The outputs, in the engine's order."""
        return tuple(binding for binding in self.bindings if not binding.is_input)

    def layer_information(self) -> str:
        """Return what the library's inspector says of the layers, as JSON text.

        Raises:
            ActivityError: It says nothing.
        """
        inspector = self.engine.create_engine_inspector()
        text = inspector.get_engine_information(trt.LayerInformationFormat.JSON)
        if not text:
            raise running_problem(self.log.errors, "Reading the layers", self.where)
        return str(text)

    def memory_bytes(self) -> int | None:
        """Return the bytes that a run's activations need on the device."""
        for name in ("device_memory_size_v2", "device_memory_size"):
            size = getattr(self.engine, name, None)
            if size is not None:
                return int(size)
        return None

    def stream_weights(self, budget: str) -> int | None:
        """Let weights that can be streamed stay on the host but for a budget.

        Args:
            budget: Such as ``512M`` or ``50%``; ``-1`` lets the library choose, an empty text
                leaves them all on the device.

        Returns:
            The bytes on the device; None when the engine streams no weights.

        Raises:
            UsageError: The budget is no size.
        """
        engine = self.engine
        most = int(getattr(engine, "streamable_weights_size", 0))
        text = budget.strip()
        if not most or not text:
            return None
        if text == "-1":
            chosen = int(engine.get_weight_streaming_automatic_budget())
        elif text.endswith("%"):
            chosen = int(most * _percent(text) / 100)
        else:
            chosen = int(mebibytes(text) * (1 << 20))
        engine.weight_streaming_budget_v2 = min(chosen, most)
        return int(engine.weight_streaming_budget_v2)

    def description(self) -> PlainValues:
        """Return what a report keeps of the engine."""
        engine = self.engine
        values: PlainValues = {
            "layers": engine.num_layers,
            "profiles": engine.num_optimization_profiles,
            "refittable": engine.refittable,
            "activation_bytes": self.memory_bytes(),
            "profiling_verbosity": engine.profiling_verbosity.name,
        }
        return {name: value for name, value in values.items() if value is not None}


def _percent(text: str) -> float:
    try:
        value = float(text.rstrip("%"))
    except ValueError:
        value = -1.0
    if not 0 <= value <= 100:
        raise UsageError(f"{text!r} is not a share", hint="Write 0% to 100%")
    return value


def dtype_name(kind: trt.DataType) -> str:
    """Return ONNX's name of a type, such as ``float32``."""
    name = str(kind.name)
    return _DTYPES.get(name, name.lower())


def sizes_of(dims: Any) -> tuple[int, ...]:
    """Return the library's own kind of shape as a tuple."""
    return tuple(int(size) for size in dims)


def buffer_bytes(engine: trt.ICudaEngine, binding: Binding, shape: tuple[int, ...]) -> int:
    """Return the bytes of an input or output, with the padding of vectorised formats."""
    sizes = list(shape)
    if not binding.linear:
        axis = engine.get_tensor_vectorized_dim(binding.name)
        lanes = engine.get_tensor_components_per_element(binding.name)
        if 0 <= axis < len(sizes) and lanes > 1:
            sizes[axis] = -(-sizes[axis] // lanes) * lanes
    count = 1
    for size in sizes:
        count *= max(0, size)
    bits = ELEMENT_BITS.get(binding.dtype)
    if bits is None:
        return count * int(engine.get_tensor_dtype(binding.name).itemsize)
    return -(-count * bits // 8)


@contextlib.contextmanager
def failures(engine: Engine, doing: str) -> Iterator[None]:
    """Turn what the bindings raise into one line, with what the library said."""
    engine.log.errors.clear()
    try:
        yield
    except DldError:
        raise
    # The seam: bindings raise TypeErrors and RuntimeErrors of their own.
    except (TypeError, ValueError, RuntimeError) as error:
        log_lines = [*engine.log.errors] or [str(error)]
        raise running_problem(log_lines, doing, engine.where) from error


if TYPE_CHECKING:
    import tensorrt as trt
else:
    from dld_tui.backends.tensorrt.library import trt

_SHOWN = 3


def refit(engine: Engine, model: Path) -> int:
    """Give an engine the weights of a model, and return how many.

    Raises:
        InputError: The engine cannot be refitted, or the model has not its weights.
        UnavailableError: The library is too old to read weights from ONNX.
        ActivityError: The library refuses.
    """
    if "OnnxParserRefitter.refit_from_file" not in engine.library.capabilities.has:
        raise UnavailableError(
            f"{engine.library.capabilities.title} cannot refit an engine from a model: 10.0 or"
            " later can"
        )
    if not engine.engine.refittable:
        raise InputError(
            "the engine cannot be refitted",
            where=engine.where,
            hint="Build it with --refit, or with --strip-weights",
        )
    with failures(engine, "Refitting"):
        refitter = trt.Refitter(engine.engine, engine.logger)
        parser = trt.OnnxParserRefitter(refitter, engine.logger)
        with binary_file(model) as file:
            if not parser.refit_from_file(str(file)):
                raise _mismatch(engine, parser, model)
        missing = refitter.get_missing_weights()
        if missing:
            names = ", ".join(visible(name) for name in missing[:_SHOWN])
            raise InputError(
                f"the model lacks {len(missing):,} of the engine's weights: {names}",
                where=str(model),
            )
        if not refitter.refit_cuda_engine():
            raise running_problem(engine.log.errors, "Refitting", engine.where)
        return len(refitter.get_all_weights())


def _mismatch(engine: Engine, parser: trt.OnnxParserRefitter, model: Path) -> InputError:
    reasons = [parser.get_error(index).desc() for index in range(parser.num_errors)]
    reason = visible(
        " ".join((reasons or [*engine.log.errors] or ["it gives no reason"])[-1].split())
    )
    return InputError(f"its weights do not fit the engine: {reason[:300]}", where=str(model))


def refitted_bytes(engine: Engine) -> bytes:
    """Return the engine as a file, with the weights that it has now.

    Weights are written even where the engine came without them.

    Raises:
        ActivityError: The library does not write it.
    """
    capabilities = engine.library.capabilities
    with failures(engine, "Writing the engine"):
        if "SerializationFlag.EXCLUDE_WEIGHTS" in capabilities.has:
            config = engine.engine.create_serialization_config()
            config.clear_flag(trt.SerializationFlag.EXCLUDE_WEIGHTS)
            keeps = getattr(trt.SerializationFlag, "INCLUDE_REFIT", None)
            if keeps is not None:  # later versions write an engine that is refitted no more
                config.set_flag(keeps)
            refitted = engine.engine.serialize_with_config(config)
        else:
            refitted = engine.engine.serialize()
        if refitted is None:
            raise running_problem(engine.log.errors, "Writing the engine", engine.where)
        try:
            return bytes(refitted)
        except MemoryError:
            raise SaveError("the engine does not fit into memory", where=engine.where) from None
