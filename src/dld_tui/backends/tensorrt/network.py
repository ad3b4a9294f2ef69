"""From a model to TensorRT's network: the parser, plugins, types of layers, inputs and outputs."""

from __future__ import annotations

import contextlib
import fnmatch
import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dld_tui.backends.tensorrt.errors import build_error, parser_error, parser_problems
from dld_tui.backends.tensorrt.library import DATA_TYPES, Library
from dld_tui.backends.tensorrt.log import BuildLog, logger_of
from dld_tui.core import fmt
from dld_tui.core.dataclass import dataclass
from dld_tui.core.errors import UnavailableError, UsageError
from dld_tui.core.files.recognise import FileKind, recognise
from dld_tui.core.model.tensors.value_types import PLACEHOLDERS
from dld_tui.core.tensorrt.availability import member_of
from dld_tui.core.tensorrt.capabilities import STRONG, LibraryCapabilities, newest_opset
from dld_tui.core.tensorrt.settings import BuildSettings
from dld_tui.core.tensorrt.trtexec_arguments import named_value
from dld_tui.core.text import quoted

if TYPE_CHECKING:
    import tensorrt as trt

    from dld_tui.core.model.document.document import Document
    from dld_tui.core.model.document.scope import Scope
else:
    from dld_tui.backends.tensorrt.library import trt

_PROTOBUF_LIMIT = 2**31 - 1
_METADATA = re.compile(r"\[ONNX Layer: ([^\]\x1e\x1f]*)")
_WHOLE = ("INT64", "INT32", "UINT8", "BOOL")
"""Types that no precision of a layer replaces: of indices, shapes and conditions."""
_FORMATS = {
    "chw": "LINEAR",
    "linear": "LINEAR",
    **{name: name.upper() for name in ("chw2", "hwc8", "chw4", "chw16", "chw32", "dhwc8")},
    **{name: name.upper() for name in ("cdhw32", "hwc", "dla_linear", "dla_hwc4", "hwc16", "dhwc")},
}
_ASTERISK_SKIPS = ("CONSTANT", "SHAPE", "PLUGIN", "PLUGIN_V2", "PLUGIN_V3")


@dataclass
class Network:
    """A parsed network, with what must live as long as it."""

    network: trt.INetworkDefinition
    parser: trt.OnnxParser
    builder: trt.Builder
    strong: bool
    """True when the types of the model alone decide."""
    functions: frozenset[str] = frozenset()
    """Names of the model's local functions."""
    constrained: int = 0
    """Layers that were given a precision."""
    remarks: list[str] = field(default_factory=list)
    """What could not be done as asked. Fit for a terminal."""


def is_strong(settings: BuildSettings, capabilities: LibraryCapabilities) -> bool:
    """Return whether a build is strongly typed."""
    return capabilities.world == STRONG or settings.typing == "strong"


@contextlib.contextmanager
def model_file(document: Document) -> Iterator[Path]:
    """Give the model as a binary ONNX file that the parser can read, with its payloads.

    The document's own file when it is that; else a small view of it, which refers to the payloads
    where they are. Inputs whose free dimensions are all named ``?`` lose that name in the view:
    TensorRT lets dimensions of one name have one size only.

    Raises:
        SaveError: The view cannot be written.
    """
    path = document.path
    tied = _is_tied(document)
    if path is not None and not tied and _can_be_parsed(document, path):
        yield path
        return
    from dld_tui.core.files.model_set import discard_view, external_view
    from dld_tui.core.model.document.serialise import skeleton_bytes

    skeleton = skeleton_bytes(document)
    view = external_view(
        _untied(skeleton) if tied else skeleton,
        document.blobs,
        None if path is None else path.parent,
        external=document.external,
        values=True,
    )
    try:
        yield view
    finally:
        discard_view(view)


def _can_be_parsed(document: Document, path: Path) -> bool:
    if document.dirty or document.changed_on_disk():
        return False
    try:
        return recognise(path) is FileKind.ONNX and path.stat().st_size <= _PROTOBUF_LIMIT
    except OSError:
        return False


def _is_tied(document: Document) -> bool:
    """Return whether an input has a dimension with a name that only stands for one."""
    main = document.main
    kinds = (main.value_type(name) for name in main.inputs)
    return any(dim in PLACEHOLDERS for kind in kinds if kind for dim in kind.dims or ())


def _untied(skeleton: bytes) -> bytes:
    """Return a model whose inputs and outputs have no such names."""
    import onnx

    model = onnx.ModelProto.FromString(skeleton)
    for value in (*model.graph.input, *model.graph.output):
        for dim in value.type.tensor_type.shape.dim:
            if dim.WhichOneof("value") == "dim_param" and dim.dim_param in PLACEHOLDERS:
                dim.ClearField("dim_param")
    return model.SerializeToString()


def builder_for(log: BuildLog, library: Library, where: str) -> trt.Builder:
    """Return the library's builder, which tells all to a log.

    Raises:
        UnavailableError: The library makes none here; says why.
    """
    try:
        return trt.Builder(logger_of(log))
    # The bindings raise what they have when the library makes no builder.
    except (TypeError, RuntimeError) as error:
        failure = build_error([*log.errors, str(error)], where, library.capabilities.title)
        raise UnavailableError(
            failure.message, hint=failure.hint, details=failure.details
        ) from None


_PARSER_FLAGS = {
    setting: member_of(setting)
    for setting in ("plugin_override", "adjust_for_dla", "report_dla", "dla_uint8")
}
"""Settings that are a flag of the parser."""


def parse(
    builder: trt.Builder,
    path: Path,
    document: Document,
    settings: BuildSettings,
    library: Library,
    log: BuildLog,
) -> Network:
    """Parse a model.

    Args:
        builder: What the network is for.
        path: The file, see :func:`model_file`.
        document: The model, to say where errors are.
        settings: Of the build.
        log: Where its logger writes.

    Raises:
        ActivityError: An operator is not supported, or the model is not valid; names the node.
        InputError: The file cannot be read.
    """
    from dld_tui.core.model.document.local_functions import key_of

    capabilities = library.capabilities
    strong = is_strong(settings, capabilities)
    flags = 0
    if strong and capabilities.world != STRONG:
        if "NetworkDefinitionCreationFlag.STRONGLY_TYPED" not in capabilities.has:
            raise UsageError(f"{capabilities.title} has no strong typing")
        flags |= 1 << int(trt.NetworkDefinitionCreationFlag.STRONGLY_TYPED)
    if "NetworkDefinitionCreationFlag.EXPLICIT_BATCH" in capabilities.has:
        flags |= 1 << int(trt.NetworkDefinitionCreationFlag.EXPLICIT_BATCH)
    network = builder.create_network(flags)
    parser = trt.OnnxParser(network, builder.logger)
    if "OnnxParserFlag.NATIVE_INSTANCENORM" in capabilities.has:
        native = trt.OnnxParserFlag.NATIVE_INSTANCENORM
        (parser.set_flag if settings.native_instance_norm else parser.clear_flag)(native)
    for setting, flag in _PARSER_FLAGS.items():
        if getattr(settings, setting):
            parser.set_flag(getattr(trt.OnnxParserFlag, flag))
    if settings.report_dla:
        target = builder.create_builder_config()
        target.default_device_type = trt.DeviceType.DLA
        target.DLA_core = settings.dla_core or 0
        parser.set_builder_config(target)
    if not parser.parse_from_file(str(path)):
        raise parser_error(
            parser_problems(parser, capabilities.has),
            list(log.errors),
            document,
            capabilities.title,
        )
    functions = frozenset(key_of(function)[1] for function in document.functions)
    parsed = Network(network, parser, builder, strong, functions)
    newest, asked = newest_opset(capabilities), document.opset_imports.get("", 0)
    if newest is not None and asked > newest:
        parsed.remarks.append(
            f"the model is of opset {asked}, the parser of {capabilities.title} was written for"
            f" {newest} at most: where results are off, try dld convert opset --to {newest}"
        )
    _set_formats(parsed, settings, capabilities)
    return parsed


def layers(network: trt.INetworkDefinition) -> Iterator[trt.ILayer]:
    """Yield the layers of a network."""
    for index in range(network.num_layers):
        yield network.get_layer(index)


def node_names(layer: trt.ILayer, functions: Collection[str] = ()) -> set[str]:
    """Return the names of the ONNX nodes that a layer was parsed from, as far as it says them.

    Behind a node in a body stand the calls around it: ``act | mid (Inner) | one (Outer)``.
    A node of a local function is called ``act (Inner)``, as names are its own there.
    """
    texts = _METADATA.findall(str(getattr(layer, "metadata", "") or ""))
    names = set()
    for text in texts or [layer.name]:
        name, _, around = text.strip().partition(" | ")
        caller = around.partition(" | ")[0].rpartition(" (")[2].removesuffix(")")
        names |= {text.strip(), f"{name} ({caller})" if caller in functions else name}
    return names


def wanted_precisions(document: Document, settings: BuildSettings) -> dict[str, str]:
    """Return the precision of each node that has one, by the name that TensorRT gives the node.

    What the command says comes after what the model says.

    Raises:
        UsageError: A precision cannot be read.
    """
    from dld_tui.core.model.document.metadata import PRECISIONS, precision_of

    wanted = {}
    for scope in document.scopes():
        for node in scope.nodes:
            if precision := precision_of(node):
                if precision not in PRECISIONS:
                    raise UsageError(f"{quoted(node.name)} has the unknown precision {precision!r}")
                wanted[_qualified(parser_name(node.name, node.outputs), scope)] = precision
    for item in settings.layer_precision:
        name, kind = named_value(item)
        if kind not in PRECISIONS:
            raise UsageError(f"{kind!r} is not a precision", hint=f"Known: {', '.join(PRECISIONS)}")
        named = {_qualified(name, scope) for scope in document.scopes() if scope.nodes_named(name)}
        wanted.update(dict.fromkeys(named or {name}, kind))
    return wanted


def _qualified(name: str, scope: Scope) -> str:
    """Return what :func:`node_names` calls a node of a scope."""
    from dld_tui.core.model.document.local_functions import enclosing_function, key_of

    function = enclosing_function(scope)
    return name if function is None else f"{name} ({key_of(function)[1]})"


def parser_name(name: str, outputs: Sequence[str]) -> str:
    """Return the name by which the parser calls a node: its own, or by its first output."""
    first = next((output for output in outputs if output), "")
    return name or f"node_of_{first}"


def set_precisions(network: Network, wanted: dict[str, str], settings: BuildSettings) -> None:
    """Constrain the layers of a weakly typed network; `wanted` as of :func:`wanted_precisions`.

    Raises:
        UsageError: A setting cannot be read, or the library lacks the type.
    """
    types = {name: _data_type(kind) for name, kind in wanted.items()}
    outputs = {}
    for item in settings.layer_output_type:
        name, kinds = named_value(item)
        outputs[name] = [_data_type(kind) for kind in kinds.split("+")]
    used: set[str] = set()
    for layer in layers(network.network) if types or outputs else ():
        names = node_names(layer, network.functions)
        for name, kind in matching_entries(types, names):
            used.add(name)
            if _takes(layer, kind, exact="*" not in name):
                layer.precision = kind
                network.constrained += 1
        for name, kinds in matching_entries(outputs, names):
            used.add(name)
            if _takes(layer, kinds[0], exact="*" not in name):
                for index in range(layer.num_outputs):
                    layer.set_output_type(index, kinds[min(index, len(kinds) - 1)])
    missing = sorted(name for name in {*types, *outputs} - used)
    if missing:
        shown = fmt.listed(missing, 8, quoted)
        network.remarks.append(f"no layer has the name of {shown}: its type is not set")
    if used and settings.typing not in ("obey", "prefer"):
        count = fmt.plural(network.constrained, "layer")
        network.remarks.append(
            f"{count} with a precision of its own: the builder may use another without"
            " --typing obey or prefer"
        )


def matching_entries(table: dict[str, Any], names: set[str]) -> list[tuple[str, Any]]:
    """Return the entry for a layer: by a name, else by the last pattern that fits."""
    exact = [(name, table[name]) for name in names if name in table]
    if exact:
        return exact[:1]
    patterns = [
        (name, value)
        for name, value in table.items()
        if "*" in name
        and any(fnmatch.fnmatchcase(candidate, _pattern(name)) for candidate in names)
    ]
    return patterns[-1:]


def _pattern(name: str) -> str:
    """Return a name whose asterisks alone stand for other text."""
    return "*".join(re.sub(r"([\[?])", r"[\1]", part) for part in name.split("*"))


def _takes(layer: trt.ILayer, kind: trt.DataType, exact: bool) -> bool:
    """Return whether a layer can be given a type: shapes and constants keep theirs."""
    if layer.type.name in (_ASTERISK_SKIPS if not exact else _ASTERISK_SKIPS[:2]):
        return False
    whole = all(layer.get_output(index).dtype.name in _WHOLE for index in range(layer.num_outputs))
    return kind.name in _WHOLE if whole else True


def _data_type(text: str) -> trt.DataType:
    name = DATA_TYPES.get(text.strip().lower(), "")
    dtype: trt.DataType | None = getattr(trt.DataType, name, None) if name else None
    if dtype is None:
        raise UsageError(f"{text!r} is not a type that this library has")
    return dtype


def _set_formats(
    parsed: Network, settings: BuildSettings, capabilities: LibraryCapabilities
) -> None:
    network = parsed.network
    inputs = [network.get_input(index) for index in range(network.num_inputs)]
    outputs = [network.get_output(index) for index in range(network.num_outputs)]
    for texts, tensors, flag in (
        (settings.input_formats, inputs, "--input-formats"),
        (settings.output_formats, outputs, "--output-formats"),
    ):
        if not texts:
            continue
        if len(texts) not in (1, len(tensors)):
            raise UsageError(f"{flag} has {len(texts)} items for {len(tensors)} tensors")
        for index, tensor in enumerate(tensors):
            _set_format(parsed, tensor, texts[index if len(texts) > 1 else 0], flag)


def _set_format(network: Network, tensor: trt.ITensor, text: str, flag: str) -> None:
    kind, _, forms = text.partition(":")
    dtype = _data_type(kind)
    mask = 0
    for form in (forms or "chw").lower().split("+"):
        member = getattr(trt.TensorFormat, _FORMATS.get(form, "-"), None)
        if member is None:
            raise UsageError(
                f"{flag} {text!r}: unknown format {form!r}",
                hint=f"Known: {', '.join(_FORMATS)}",
            )
        mask |= 1 << int(member)
    if network.strong and tensor.dtype != dtype:
        raise UsageError(
            f"{flag} {text!r}: {quoted(tensor.name)} is {tensor.dtype.name}, and a strongly typed"
            " network keeps the types of the model",
            hint="Change the type in the model",
        )
    if not network.strong:
        tensor.dtype = dtype
    tensor.allowed_formats = mask
