"""Inner tensors of a network as outputs of its engine, so that their values can be had.

What is an output cannot be fused away, so an engine with more outputs may take other kernels than
one without.
"""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Iterable, Iterator
from typing import TYPE_CHECKING

from dld_tui.backends.tensorrt_errors import build_error
from dld_tui.backends.tensorrt_library import Library
from dld_tui.backends.tensorrt_log import BuildLog, logger_of
from dld_tui.backends.tensorrt_network import Network, layers, load_plugins, model_file, parse
from dld_tui.core.errors import UnavailableError
from dld_tui.core.tensorrt.settings import BuildSettings

if TYPE_CHECKING:
    import tensorrt as trt

    from dld_tui.core.document.document import Document
else:
    from dld_tui.backends.tensorrt_library import trt

NO_TENSOR = "TensorRT's parser makes no tensor of this name: it folds it or joins it with another"
SHAPE = "TensorRT takes it for a shape, which no output holds"
CONSTANT = "it is a constant in TensorRT"
_NO_ARRAYS = ("INT4", "FP4", "E8M0")


def reasons_against(
    library: Library, document: Document, settings: BuildSettings, names: Collection[str]
) -> dict[str, str]:
    """Return the tensors of a model that cannot be outputs of its engine, and why; parses it.

    Args:
        library: What would build it.
        document: The model.
        settings: Of the build.
        names: Tensors of the main graph. Foreign text.

    Raises:
        ActivityError: The model cannot be parsed; names the node.
        UnavailableError: A library of plugins is missing, or the library cannot build here.
    """
    with _parsed(library, document, settings) as made:
        found = _reasons(made.network)
    return {name: found.get(name, NO_TENSOR) for name in names if found.get(name, NO_TENSOR)}


def mark(made: Network, names: Iterable[str]) -> None:
    """Make tensors of a network outputs, in plain row-major order; what is not there is left out.

    The outputs that it has stay.
    """
    network = made.network
    own = {network.get_output(index).name for index in range(network.num_outputs)}
    wanted = set(names) - own
    for layer in layers(network):
        for index in range(layer.num_outputs):
            tensor = layer.get_output(index)
            if tensor.name in wanted:
                wanted.discard(tensor.name)
                tensor.allowed_formats = 1 << int(trt.TensorFormat.LINEAR)
                network.mark_output(tensor)


@contextlib.contextmanager
def _parsed(library: Library, document: Document, settings: BuildSettings) -> Iterator[Network]:
    log = BuildLog(None, lambda _: None)
    try:
        builder = trt.Builder(logger_of(log))
    # The bindings raise what they have when the library makes no builder.
    except (TypeError, RuntimeError) as error:
        said = [*log.errors, str(error)]
        found = build_error(said, str(document.path), library.facts.title)
        raise UnavailableError(found.message, hint=found.hint, details=found.details) from None
    load_plugins(builder, settings, library.facts)
    with model_file(document) as path:
        yield parse(builder, path, document, settings, library, log)


def _reasons(network: trt.INetworkDefinition) -> dict[str, str]:
    """Return why each tensor of a network cannot be an output; an empty text where it can."""
    found = {}
    for layer in layers(network):
        is_constant = layer.type == trt.LayerType.CONSTANT
        for index in range(layer.num_outputs):
            tensor = layer.get_output(index)
            reason = CONSTANT if is_constant else ""
            if tensor.is_shape_tensor and not tensor.is_execution_tensor:
                reason = SHAPE
            elif tensor.dtype.name in _NO_ARRAYS:
                reason = f"an output of type {tensor.dtype.name} cannot be read here"
            found[tensor.name] = reason
    return found
