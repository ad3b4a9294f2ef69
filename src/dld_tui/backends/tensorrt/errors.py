"""What the errors of TensorRT's parser, builder and runtime (8 to 11) mean, as lines that help."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from dld_tui.core.dataclass import dataclass
from dld_tui.core.errors import ActivityError, DldError, InputError, UnavailableError
from dld_tui.core.files.recognise import EngineHeader
from dld_tui.core.text import clip, visible
from dld_tui.core.types import NodePlace

if TYPE_CHECKING:
    import tensorrt as trt

    from dld_tui.core.model.document.document import Document
    from dld_tui.core.model.document.node import Node

_LONGEST = 8_000
_NAME_CELLS = 80
_SHOWN = 300
_NODE = re.compile(
    r"(?:for node|[Nn]ode|[Ll]ayer) (?:name: ?)?"
    r"(?P<node>\{.{1,2000}?\}|\[.{1,2000}?\]|'[^']{1,2000}'|\"[^\"]{1,2000}\"|[^\s'\"{\[(]\S{0,500})"
)
_PREFIX = re.compile(
    r"^(?:\d+: )?(?:I?\w+::\w+: )?(?:\[[^\]]{1,200}\] )?(?:Error Code \d+: )?"
    r"(?P<kind>[A-Z][\w ]{2,40}?(?: Error| Failure)|Myelin|Cask|Cudnn|Cuda Runtime)? ?"
)
_SOURCE = re.compile(
    r"(?:\.?\s*\(?In (?:function )?[\w:~]+ at \S+:\d+\)?)+\.?\s*$|\s*\(\s*\)\s*$|^\[[^\]]{1,200}\]$"
)
_FRAME = re.compile(r"--- (?:Begin|End) node ---")
_ASSERTION = re.compile(r"^.{0,200}?Assertion failed: [^:]{1,300}(?:::[^:]{1,300})*: (?=\S)")


@dataclass(frozen=True)
class _Kind:
    """A kind of failure that has a sentence of its own."""

    signs: re.Pattern[str]
    message: str
    hint: str
    error: type[DldError] = ActivityError


def _kind(signs: str, message: str, hint: str, error: type[DldError] = ActivityError) -> _Kind:
    return _Kind(re.compile(signs, re.IGNORECASE | re.DOTALL), message, hint, error)


_KINDS = (
    _kind(
        r"supported compute capabilit|unsupported SM\b|target GPU SM \S+ is not supported"
        r"|compute capability .{0,40}(?:not supported|unsupported)"
        r"|GPU .{0,80}(?:not|no longer) supported",
        "this library does not support the compute capability of the device",
        "Use a library that does, or build for another device with --compute-capability",
        UnavailableError,
    ),
    _kind(
        r"CUDA initialization failure|no CUDA-capable device|driver version is insufficient",
        "it needs an NVIDIA driver and GPU, and found none that works",
        "Run dld doctor",
        UnavailableError,
    ),
    _kind(
        r"CHECK\(status == CUDA_SUCCESS\)",
        "it needs an NVIDIA driver and GPU for this build, as for engines that can be refitted",
        "Build without --refit-mode, or on a machine with a GPU",
        UnavailableError,
    ),
    _kind(
        r"out of memory|outOfMemory|insufficient memory|failed to allocate|bad_alloc"
        r"|memory allocation failed",
        "out of memory",
        "Free memory of the device, lower --workspace, or make the largest shapes smaller",
    ),
    _kind(
        r"plugin not found|could not find plugin|no plugin creator|no importer registered"
        r"|pluginCreator|creator && ",
        "an operator that TensorRT does not have, and no plugin for it",
        "Give the plugin's library with --plugins",
    ),
    _kind(
        r"no scaling factors|missing scale and zero-point|calibration failure"
        r"|calibrator.{0,60}(?:null|required|must)|int8.{0,80}no calibrator",
        "INT8 without calibration: the model has no Q/DQ nodes and there is no calibration",
        "Give --calibration-cache or --calibration-inputs, or a model with Q/DQ nodes",
    ),
    _kind(
        r"obeys? .{0,80}(?:constraint|precision)|reduced-precision constraints"
        r"|no supported formats|(?:could not|cannot) find any supported formats",
        "no implementation has the requested precision",
        "Use --typing prefer, or leave this layer in another precision",
    ),
    _kind(
        r"could not find any implementation|no implementation|no valid tactic"
        r"|no viable tactic|no tactics to implement",
        "no implementation for a layer",
        "Raise --workspace, allow another precision, or change the layer",
    ),
    _kind(
        r"no optimization profile|profile .{0,120}(?:inconsistent|invalid|not valid)"
        r"|kMIN|kOPT|kMAX",
        "the optimization profiles do not fit the model",
        "Give the shapes of every input: --min-shapes, --opt-shapes, --max-shapes",
    ),
    _kind(
        r"nvinfer_lean",
        "the lean runtime is missing, which a version-compatible engine contains",
        "Add --exclude-lean-runtime, or install the lean runtime",
    ),
    _kind(
        r"refit|STRIP_PLAN",
        "the engine cannot be made refittable as requested",
        "Build without --refit-mode",
    ),
    _kind(
        r"\bDLA\b",
        "the network does not fit the DLA",
        "Add --gpu-fallback, or build for the GPU",
    ),
)

_PLUGIN = next(kind for kind in _KINDS if kind.signs.search("plugin not found"))
_MEMORY = next(kind for kind in _KINDS if kind.signs.search("out of memory"))
_PARSER_KINDS = (_MEMORY, _PLUGIN)
_INITIALIZER = re.compile(r"Failed to import initializer: (?!In node)([^:]{1,400})\s*$")


def build_error(errors: Sequence[str], where: str, library: str) -> DldError:
    """Return the error of a build that gave no engine.

    Args:
        errors: What the library said at level error, the oldest first. Untrusted texts.
        where: The model.
        library: Its name and version.
    """
    texts = [text[:_LONGEST] for text in errors]
    details = _details(texts)
    for kind in _KINDS:
        for text in reversed(texts):
            if kind.signs.search(text):
                message = f"{library}: {kind.message}"
                node = _node_in(text)
                if not node:
                    message += f" ({short(text)})"
                place = f"{where}: layer {node}" if node else where
                return kind.error(message, where=place, hint=kind.hint, details=details)
    return ActivityError(
        f"{library} cannot build it{_reason(texts)}",
        where=where,
        details=details,
    )


def _node_in(text: str) -> str:
    match = _NODE.search(text)
    if not match:
        return ""
    name = match["node"].rstrip(".,:;)")
    return _quoted(name.strip("'\"")) if name else ""


def short(text: str) -> str:
    """Return one sentence of a message, without codes and places in source files."""
    text = " ".join(text[:_LONGEST].split())
    match = _PREFIX.match(text)
    rest = text[match.end() :] if match else text
    if rest.startswith("(") and match and match["kind"]:
        rest = rest[1:].rstrip(")")
    text = visible(_ASSERTION.sub("", _SOURCE.sub("", rest or text))).rstrip(". ")
    return text if len(text) <= _SHOWN else text[:_SHOWN] + "…"


@dataclass(frozen=True)
class ParserProblem:
    """One error of the ONNX parser."""

    message: str
    node: int
    """Position in its graph; -1 when it is about no node."""
    name: str
    op_type: str
    functions: tuple[str, ...]
    """The calls of local functions that lead to it, the outermost first."""
    code: str

    @property
    def tells_why(self) -> bool:
        """Whether the message is more than that something is false."""
        return not _FALSE.fullmatch(self.message)


_FALSE = re.compile(r"(?:Assertion failed: )?false\W*")


def parser_problems(parser: trt.OnnxParser, has: Iterable[str]) -> list[ParserProblem]:
    """Return what a parser complains about; `has` are the capabilities of the library."""
    known = frozenset(has)
    problems = []
    for index in range(parser.num_errors):
        error = parser.get_error(index)
        can = {name for name in ("node_name", "node_operator") if f"ParserError.{name}" in known}
        stack = "ParserError.local_function_stack" in known
        problems.append(
            ParserProblem(
                str(error.desc()),
                int(error.node()),
                str(error.node_name()) if "node_name" in can else "",
                str(error.node_operator()) if "node_operator" in can else "",
                tuple(map(str, error.local_function_stack())) if stack else (),
                str(getattr(error.code(), "name", error.code())),
            )
        )
    return problems


def parser_error(
    problems: Sequence[ParserProblem], log_lines: Sequence[str], document: Document, library: str
) -> DldError:
    """Return the error of a model that the parser refuses; names the node and where it is.

    Args:
        problems: Of the parser.
        log_lines: What it said at level error. Untrusted texts.
        library: Its name and version.
    """
    model = document.path or Path("the model")
    details = _details(log_lines)
    if not problems:
        message = f"{library} cannot read it{_reason(log_lines)}"
        return InputError(message, where=str(model), details=details)
    problem = problems[0]
    text = problem.message
    kind = next((kind for kind in _PARSER_KINDS if kind.signs.search(text)), None)
    message = f"cannot be parsed: {short(text)}"
    if lost := _INITIALIZER.search(text):
        name = _quoted(lost[1].strip())
        message = f"the values of the initializer {name} cannot be read: are its data there?"
    elif kind is _PLUGIN and problem.op_type:
        message = f"unknown operator or plugin {visible(problem.op_type)}"
    elif kind:
        message = f"{kind.message} ({short(text)})"
    if len(problems) > 1:
        message += f"; and {len(problems) - 1:,} more"
    error = ActivityError(
        f"{library}: {message}",
        where=f"{model}{_where(problem)}",
        hint=kind.hint if kind else None,
        details=details or _details([reported.message for reported in problems]),
    )
    error.finding = _finding(problem, document)
    return error


def _where(problem: ParserProblem) -> str:
    """Return for example ``: node 'da0' (DeformAttn, number 0) of function 'f'``."""
    if problem.node < 0 and not problem.name:
        return ""
    name = _quoted(problem.name) if problem.name else ""
    about = [visible(problem.op_type)] if problem.op_type else []
    if problem.node >= 0:
        about.append(f"number {problem.node}")
    calls = [clip(visible(call), _NAME_CELLS) for call in reversed(problem.functions)]
    inside = "".join(f" in {call}" for call in calls)
    return f": node {name}".rstrip() + (f" ({', '.join(about)})" if about else "") + inside


def _finding(problem: ParserProblem, document: Document) -> NodePlace | None:
    node = _find(problem, document)
    if node is None:
        return None
    path = None if document.path is None else str(document.path.absolute())
    return NodePlace(path, tuple(node.scope.path), node.ref, node.name, node.op_type)


def _find(problem: ParserProblem, document: Document) -> Node | None:
    """Return the node: by its position in the main graph if that fits, else by its name."""

    def fits(node: Node) -> bool:
        same_name = not problem.name or node.name == problem.name
        return same_name and (not problem.op_type or node.op_type == problem.op_type)

    main = document.main
    if not problem.functions and 0 <= problem.node < len(main.nodes):
        node = main.nodes[problem.node]
        if fits(node):
            return node
    nodes = [
        node
        for scope in document.scopes()
        for node in scope.nodes
        if fits(node) and (problem.name or scope.index_of(node) == problem.node)
    ]
    return nodes[0] if nodes and (problem.name or len(nodes) == 1) else None


def _quoted(name: str) -> str:
    return f"'{clip(visible(name), _NAME_CELLS, keep='middle')}'"


def _details(texts: Sequence[str]) -> str:
    """Return what a library said, a line each, without the frame of its dumps of nodes."""
    lines = [" ".join(text[:_LONGEST].split()) for text in texts]
    return "\n".join(visible(line) for line in lines if not _FRAME.search(line))


_CAPABILITIES = re.compile(r"[Ss]upported compute capabilit\w*:\s*(None|[\d., >]*\d)")
_NEVER = re.compile(r"does not support this compute capability|SM \S+ is not supported")
_RUNTIME_PLUGIN = re.compile(
    r"could not find plugin:?\s*(\S+)|[Pp]lugin creator not found.*?[Nn]ame:? ?(\S+)"
    r"|Cannot deserialize plugin (?:layer |with type )?['\"]?([\w:]+)"
    r"|(IPluginCreator) not found",
)
_RUNTIME_MEMORY = re.compile(
    r"[Oo]ut ?[Oo]f ?[Mm]emory|OUT_OF_MEMORY|std::bad_alloc|failed to allocate|bad_alloc"
)
_VERSION = re.compile(
    r"not compatible with this version|[Vv]ersion tag does not match|expecting library version"
    r"|[Ss]erialization.{0,40}(?:assertion|version).{0,60}(?:failed|does not match)"
)
_DEVICE = re.compile(
    r"incompatible device|different (?:GPU|device)|generated on.{0,40}device"
    r"|[Cc]ompute capabilit|platform.{0,30}(?:mismatch|does not match)"
)
_DAMAGED = re.compile(
    r"[Mm]agic tag|truncated|[Dd]eserializ.{0,40}(?:fail|error)|corrupt|[Cc]hecksum|size.*mismatch"
)


def loading_problem(
    errors: Iterable[str], header: EngineHeader | None, library: str, device: str, where: str
) -> DldError:
    """Return why an engine was not loaded.

    Args:
        errors: What the library said. Untrusted text.
        header: What the engine says of itself.
        library: Which one it is, such as ``TensorRT 10.13.0``.
        device: Of the machine, such as ``compute capability 9.0``; empty when unknown.
        where: The file.
    """
    log_lines = list(errors)
    text = "\n".join(log_lines)
    made_with = header.text if header is not None else "an unknown library"
    if match := _CAPABILITIES.search(text):
        return _unsupported(match[1], bool(_NEVER.search(text)), library, device, where)
    if _VERSION.search(text):
        return InputError(
            f"the engine was built by {made_with}, but this is {library}",
            where=where,
            hint="Build it again with this version, or as version compatible",
        )
    if plugin := _RUNTIME_PLUGIN.search(text):
        name = next((part for part in plugin.groups() if part), "")
        known = f": {visible(name)}" if name and name != "IPluginCreator" else ""
        return UnavailableError(
            f"a plugin is missing{known}", where=where, hint="Give its library with --plugins FILE"
        )
    if _RUNTIME_MEMORY.search(text):
        return out_of_memory(where)
    if _DEVICE.search(text):
        gpu = f", not for this one ({device})" if device else ""
        return InputError(
            f"the engine was built for another GPU{gpu}; it is of {made_with}",
            where=where,
            hint="Build it again on this GPU, or as hardware compatible",
        )
    if _DAMAGED.search(text):
        return InputError(
            f"the engine is damaged or of another library: it is of {made_with}",
            where=where,
            details=_details(log_lines),
        )
    return ActivityError(
        f"{library} does not load the engine{_reason(log_lines)}",
        where=where,
        details=_details(log_lines),
    )


def _unsupported(listed: str, never: bool, library: str, device: str, where: str) -> DldError:
    """Return the error of TensorRT-RTX, whose engines name the compute capabilities they run on."""
    gpu = f" ({device})" if device else ""
    numbers = ", ".join(listed.replace(",", " ").split()).replace("None", "none")
    if never:
        return UnavailableError(
            f"{library} does not run on this GPU{gpu}; supported compute capabilities of the"
            f" engine: {numbers}",
            where=where or None,
            hint="Use a GPU that it supports, or TensorRT",
        )
    return InputError(
        f"the engine does not run on this GPU{gpu}; its supported compute capabilities: {numbers}",
        where=where,
        hint="Build it again for this GPU, see --compute-capability",
    )


def running_problem(errors: Iterable[str], doing: str, where: str) -> DldError:
    """Return why an engine does not do what was asked of it."""
    log_lines = list(errors)
    text = "\n".join(log_lines)
    if _RUNTIME_MEMORY.search(text):
        return out_of_memory(where)
    return ActivityError(
        f"{doing} failed{_reason(log_lines)}", where=where, details=_details(log_lines)
    )


def out_of_memory(where: str) -> ActivityError:
    """Return the error of a GPU whose memory is full."""
    return ActivityError(
        "the GPU does not have enough memory for the engine",
        where=where,
        hint="Use a smaller batch or profile, or end other programs on the GPU",
    )


def _reason(texts: Sequence[str]) -> str:
    """Return what was said last but for places in the library's sources; for after a sentence."""
    reason = next((reason for text in reversed(texts) if (reason := short(text))), "")
    return f": {reason or 'it gave no reason'}"
