"""ONNX Runtime's own profile: a JSON array of Chrome trace events, of versions 1.0 to 1.31.

An event is written when it ends, so the file is in the order of ends, and `ts` is not
monotone. A kernel's time is its ``<node>_kernel_time`` event; a run of the model is a
``model_run`` event, which comes after the kernels of that run. All numbers within ``args`` are
strings. An If, Loop or Scan includes the time of its body; self times exclude it.

::

    profile = OrtProfile(path)
    for run in profile.passes():        # streams: one pass in memory
        for event in run.events: profile.kernels[event.kernel]
    profile.warnings

The names of kernels show how ONNX Runtime's optimizer changed the nodes (:func:`clues`):

=====================================  ==========================================================
name of the kernel                     what it says
=====================================  ==========================================================
``X_token_12``                         ``X``, made unique
``T_nchwc``, ``T_bn_nchwc``,           makes tensor ``T``, in blocked layout
``T_mul_nchwc``
``X/QuickGeluFusion/``,                node ``X`` and neighbours, fused
``X/MatMulAddFusion``, ``fused X``
``X_quant``, ``X_transformed``         node ``X``, rewritten
``InsertedPrecisionFreeCast_T``        tensor ``T`` in another type
``Conv_12``                            a node without a name, the 12th that is not a Constant
``If_0_then_branch__Inline_0__X``      node ``X`` of a branch that was inlined, since its condition
                                       is known
``_inlfunc_F_token_3_T``               tensor ``T`` of a call of function ``F``, inlined
=====================================  ==========================================================
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Literal, NamedTuple, TypeAlias

from dld_tui.core.dataclass import dataclass
from dld_tui.core.errors import InputError
from dld_tui.core.report.formats.json_stream import ArrayReader
from dld_tui.core.report.formats.trace_events import SelfTimes
from dld_tui.core.report.records import NOTHING_KNOWN, Cost, Dims, PassState
from dld_tui.core.types import DTYPES, JSON, CancelCheck, Foreign, ProgressCallback

_TOKEN = re.compile(r"_token_\d+$")
_FUSION = re.compile(r"^(.+?)/\w+Fusion/?$")
_INLINED = re.compile(r"^(.+?)_(then_branch|else_branch)__Inline_\d+__(.*)$", re.DOTALL)
_FUNCTION = "_inlfunc_"
_FUNCTION_TOKEN = re.compile(r"^token_\d+_")
_INDEX = re.compile(r"^(.+)_(\d{1,9})$")
_NODE_SUFFIXES = ("_quant", "_transformed")
_NODE_PREFIXES = ("fused ",)
_CAST = "InsertedPrecisionFreeCast_"
_BLOCKED = "_nchwc"


@dataclass(frozen=True)
class Clue:
    """What a name reveals about the original graph."""

    kind: Literal["node", "tensor", "index"]
    text: str
    """A node's name, a tensor's name, or the decimal number of a node without a name."""
    exact: bool = False
    """True for an unchanged name, False for one derived by a rule."""


def clues(name: str, op_type: str) -> Iterator[Clue]:
    """Yield what the name of a kernel says, the most certain first."""
    yield Clue("node", name, exact=True)
    whole = _TOKEN.sub("", name)
    for base in dict.fromkeys((name, whole)):
        if base != name:
            yield Clue("node", base)
        if base.endswith(_BLOCKED):
            yield from (Clue("tensor", tensor) for tensor in blocked_tensors(base))
        elif base.startswith(_CAST):
            yield Clue("tensor", base[len(_CAST) :])
        fusion = _FUSION.match(base)
        if fusion is not None:
            yield Clue("node", fusion.group(1))
        for suffix in _NODE_SUFFIXES:
            if base.endswith(suffix):
                yield Clue("node", base[: -len(suffix)])
        for prefix in _NODE_PREFIXES:
            if base.startswith(prefix):
                yield Clue("node", base[len(prefix) :])
        index = _INDEX.match(base)
        if index is not None and index.group(1) == op_type:
            yield Clue("index", index.group(2))


def blocked_tensors(name: str) -> Iterator[str]:
    """Yield the tensors that a node named ``…_nchwc`` may make, the likeliest first."""
    tensor = _TOKEN.sub("", name)[: -len(_BLOCKED)]
    for plain in dict.fromkeys((tensor, without_cast(tensor))):
        yield plain
        for suffix in ("_bn", "_mul"):
            if plain.endswith(suffix):
                yield plain[: -len(suffix)]


def is_blocked(name: str) -> bool:
    """Return True for the name of a node in blocked layout."""
    return _TOKEN.sub("", name).endswith(_BLOCKED)


def without_cast(tensor: str) -> str:
    """Return a tensor's name before ONNX Runtime changed its type."""
    return tensor.removeprefix(_CAST)


def split_inlined_branch(name: str) -> tuple[str, str, str] | None:
    """Return (If node, attribute, rest of the name) of an inlined branch's node, or None."""
    match = _INLINED.match(name)
    return (match.group(1), match.group(2), match.group(3)) if match else None


def split_inlined_function(tensor: str, functions: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Yield (function name, tensor name) pairs that an inlined tensor's name may mean."""
    if not tensor.startswith(_FUNCTION):
        return
    rest = tensor[len(_FUNCTION) :]
    for function in sorted(functions, key=len, reverse=True):
        if rest.startswith(f"{function}_"):
            inner = rest[len(function) + 1 :]
            yield function, _FUNCTION_TOKEN.sub("", inner)
            if _FUNCTION_TOKEN.match(inner):
                yield function, inner


_HOLDERS = frozenset({"If", "Loop", "Scan", "SequenceMap"})
"""Operators whose kernels run other kernels."""

_CONTRIB_HOLDERS = ("BeamSearch", "GreedySearch", "Sampling")


@dataclass(frozen=True)
class Kernel:
    """A node of the optimised graph, as it was run."""

    name: str
    """Of the optimised graph, without ``_kernel_time``."""
    op_type: str
    provider: str | None = None
    """None when the profile does not say."""
    node_index: int | None = None
    """The node's number in its (sub)graph; None before 1.8."""
    input_types: tuple[str, ...] = ()
    input_dims: tuple[Dims, ...] = ()
    output_types: tuple[str, ...] = ()
    output_dims: tuple[Dims, ...] = ()
    cost: Cost = NOTHING_KNOWN

    @property
    def precision(self) -> str | None:
        """The type of the first output, else of the first input; None before 1.12."""
        return next(iter(self.output_types + self.input_types), None)


def may_hold_others(op_type: str) -> bool:
    """Return True for an operator with subgraphs."""
    return op_type in _HOLDERS or op_type.endswith(_CONTRIB_HOLDERS)


def kernel_from(name: str, arguments: Foreign) -> Kernel:
    """Return the kernel of a ``_kernel_time`` event; values of wrong types are left out."""
    input_types, input_dims = _tensors(arguments.get("input_type_shape"))
    output_types, output_dims = _tensors(arguments.get("output_type_shape"))
    provider = arguments.get("provider")
    return Kernel(
        name=name,
        op_type=op_type_of(name, arguments),
        provider=provider if isinstance(provider, str) and provider else None,
        node_index=whole(index_text(arguments)),
        input_types=input_types,
        input_dims=input_dims,
        output_types=output_types,
        output_dims=output_dims,
        cost=Cost(
            activation_bytes=whole(arguments.get("activation_size")),
            parameter_bytes=whole(arguments.get("parameter_size")),
            output_bytes=whole(arguments.get("output_size")),
            arena_peak_bytes=whole(arguments.get("mem_in_use_peak")),
            arena_bytes=whole(arguments.get("mem_arena_held")),
        ),
    )


def op_type_of(name: str, arguments: Foreign) -> str:
    """Return the operator's type; the kernel's name if the event lacks it."""
    op_type = arguments.get("op_name")
    return op_type if isinstance(op_type, str) and op_type else name


def index_text(arguments: Foreign) -> JSON:
    """Return the node's number in its graph as the profile has it: ``graph_index`` before 1.16."""
    return arguments.get("node_index", arguments.get("graph_index"))


def whole(value: JSON) -> int | None:
    """Return a number that may be written as a string; None when it is not one."""
    if isinstance(value, str) and len(value) <= 20:
        try:
            return int(value)
        except ValueError:
            return None
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _tensors(value: JSON) -> tuple[tuple[str, ...], tuple[Dims, ...]]:
    """Return types and shapes of ``[{"float": [1, 3]}, {}, …]``; ``{}`` is an omitted input."""
    types: list[str] = []
    shapes: list[Dims] = []
    for item in value if isinstance(value, list) else []:
        if not isinstance(item, dict):
            continue
        for name, dims in item.items():
            types.append(DTYPES.get(name, name))
            shapes.append(tuple(whole(dim) for dim in dims) if isinstance(dims, list) else None)
    return tuple(types), tuple(shapes)


EVENT_LIMIT = 1_000_000
"""ONNX Runtime stops recording there, without a note in the file."""

_KERNEL = "_kernel_time"
_FENCE = "_fence_before"
_LARGEST_TIME_US = 1e15

_Event: TypeAlias = "tuple[int, float, float, int, int]"
"""(kernel, start, duration, thread, how many runs had ended before)."""
_MOST_RUNS_AT_ONCE = 64
"""An event that as many runs ended without is of none."""


class KernelEvent(NamedTuple):
    """One run of a kernel; times in microseconds since profiling began."""

    kernel: int
    """Index in `OrtProfile.kernels`."""
    start_us: float
    duration_us: float
    self_us: float
    thread: int


@dataclass(frozen=True)
class ProfilePass:
    """One ``model_run``."""

    index: int
    start_us: float
    duration_us: float
    state: PassState
    events: tuple[KernelEvent, ...]
    """By start time; a nesting kernel before the nested ones."""
    top_level: int = 0
    """How many of them ran inside no other one: the same for every run that went through."""


class OrtProfile:
    """A profile, read once, as a stream.

    Attributes:
        path: The file.
        kernels: The kernels read so far.
        warnings: Damaged and missing parts, for display; complete after the last pass.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.kernels: list[Kernel] = []
        self.warnings: list[str] = []
        self._argument_names: set[str] = set()
        self._fences = False
        self._in_use_before: dict[str | None, int] = {}
        """Bytes of the arena of a provider: weights."""
        self._numbers: dict[tuple[str, str], int] = {}
        self._pending: list[_Event] = []
        self._open_fences: set[str] = set()
        self._events = 0
        self._known_events = 0
        self._bad_events = 0
        self._repeated = 0
        self._outside = 0
        self._run_is_damaged = False
        self._damage_seen = 0
        self._runs: set[tuple[float, float, int]] = set()
        self._passes = 0
        self._run_threads: set[int] = set()
        self._last_end = -math.inf
        self._overlapped = False

    @property
    def version(self) -> str:
        """The ONNX Runtime versions that write such events, e.g. ``1.12 to 1.15``.

        Empty without kernels.
        """
        if not self.kernels:
            return ""
        if "node_index" in self._argument_names:
            return "1.16 to 1.21" if self._fences else "1.22 or later"
        if "input_type_shape" in self._argument_names:
            return "1.12 to 1.15"
        return "1.8 to 1.11" if "graph_index" in self._argument_names else "1.0 to 1.7"

    def passes(
        self,
        progress: ProgressCallback | None = None,
        cancelled: CancelCheck | None = None,
    ) -> Iterator[ProfilePass]:
        """Yield the runs of the model, in the order of their ends.

        Args:
            progress: Called with (bytes read, bytes in all).
            cancelled: Asked about once per megabyte.

        Raises:
            InputError: The file cannot be read, is empty, or is not such a profile.
            CancelledError: `cancelled` returned True.
        """
        reader = ArrayReader(self.path, progress, cancelled)
        for event in reader.objects():
            self._events += 1
            if reader.damage.skipped > self._damage_seen:
                # It may have been a kernel of this run, so no sum of the run is known.
                self._damage_seen, self._run_is_damaged = reader.damage.skipped, True
            profile_pass = self._take(event)
            if profile_pass is not None:
                yield profile_pass
        if self._pending:
            yield self._unfinished()
        self._close(reader)

    def _take(self, event: Foreign) -> ProfilePass | None:
        name, category = event.get("name"), event.get("cat")
        self._known_events += category in ("Node", "Session")
        if not isinstance(name, str):
            self._bad_events += 1
        elif category == "Node":
            if name.endswith(_KERNEL):
                self._take_kernel(name[: -len(_KERNEL)], event)
            elif name.endswith(_FENCE):
                self._fences = True
                self._open_fences.add(name[: -len(_FENCE)])
        elif category == "Session" and name == "model_run":
            times = _times(event)
            if times is None:
                self._bad_events += 1
                self._run_is_damaged = True
            elif times in self._runs:
                self._repeated += 1
            else:
                self._runs.add(times)
                return self._end_run(*times)
        return None

    def _take_kernel(self, name: str, event: Foreign) -> None:
        self._open_fences.discard(name)
        times = _times(event)
        arguments = event.get("args")
        if times is None:
            self._bad_events += 1
            self._run_is_damaged = True
            return
        if not isinstance(arguments, dict):
            arguments = {}
        key = (name, str(index_text(arguments)))
        number = self._numbers.get(key)
        if number is None:
            number = self._numbers[key] = len(self.kernels)
            self.kernels.append(self._with_memory(kernel_from(name, arguments), arguments))
            self._argument_names.update(arguments)
        self._pending.append((number, *times, self._passes))

    def _with_memory(self, kernel: Kernel, arguments: Foreign) -> Kernel:
        """Record the memory in use after the first run of a kernel: later passes use one block."""
        used = whole(arguments.get("mem_bytes_requested_in_use"))
        if used is not None:
            grown = whole(arguments.get("mem_requested_in_use_delta")) or 0
            before = self._in_use_before.setdefault(kernel.provider, used - grown)
            cost = replace(kernel.cost, in_use_bytes=max(0, used - before))
            return replace(kernel, cost=cost)
        return kernel

    def _end_run(self, start: float, duration: float, thread: int) -> ProfilePass:
        """Take the kernels of a run out of those that are waiting for theirs to end."""
        # Runs of several threads at once: a thread's own kernels are its run's, and those of the
        # pool go to the run that ends first.
        self._run_threads.add(thread)
        others = self._run_threads - {thread}
        mine = [e for e in self._pending if e[1] >= start and e[3] not in others]
        if len(mine) == len(self._pending):
            self._pending = []
        else:
            recorded = set(map(id, mine))
            rest = [e for e in self._pending if id(e) not in recorded]
            # Of sequential runs of one thread, events from before this one belong to none.
            since = self._passes - _MOST_RUNS_AT_ONCE if others else self._passes + 1
            self._pending = [e for e in rest if e[4] >= since]
            self._outside += len(rest) - len(self._pending)
        self._overlapped = self._overlapped or start < self._last_end
        self._last_end = max(self._last_end, start + duration)
        damaged = bool(self._open_fences) or self._run_is_damaged
        state = PassState.INCOMPLETE if damaged else PassState.MEASURED
        self._open_fences.clear()
        self._run_is_damaged = False
        return self._pass(mine, start, duration, state)

    def _unfinished(self) -> ProfilePass:
        start = min(event[1] for event in self._pending)
        end = max(event[1] + event[2] for event in self._pending)
        profile_pass = self._pass(self._pending, start, end - start, PassState.INCOMPLETE)
        self._pending = []
        return profile_pass

    def _pass(
        self, events: list[_Event], start: float, duration: float, state: PassState
    ) -> ProfilePass:
        times = SelfTimes()
        kernel_events = []
        seen: set[tuple[int, float, float, int]] = set()
        for number, began, took, thread, _ in events:
            # A kernel cannot run twice at the same time: the event is in the file twice.
            if took > 0 and (number, began, took, thread) in seen:
                self._repeated += 1
                continue
            seen.add((number, began, took, thread))
            holds = may_hold_others(self.kernels[number].op_type)
            own = times.add(thread, began, took, holds)
            kernel_events.append(KernelEvent(number, began, took, own, thread))
        # Of equal starts and durations the parent, which ends last, comes first.
        kernel_events.reverse()
        kernel_events.sort(key=lambda event: (event.start_us, -event.duration_us))
        index = self._passes
        self._passes += 1
        return ProfilePass(index, start, duration, state, tuple(kernel_events), times.outermost)

    def _close(self, reader: ArrayReader) -> None:
        damage = reader.damage
        if not self._known_events:
            content = "no event of ONNX Runtime" if self._events else "no readable event"
            raise InputError(f"the profile has {content}", where=str(self.path))
        if not self.kernels:
            self.warnings.append(
                "the profile has no kernels: the session failed, or never ran the model"
            )
        if damage.ends_early:
            self.warnings.append("the profile ends early: the process was killed, or it was cut")
        unread = damage.skipped + self._bad_events
        if unread:
            place = f", the first near byte {damage.at_byte}" if damage.at_byte is not None else ""
            self.warnings.append(
                f"{unread} {'event' if unread == 1 else 'events'} could not be read{place}"
            )
        if self._repeated:
            self.warnings.append(
                f"{self._repeated} {'event is' if self._repeated == 1 else 'events are'} in the"
                " profile twice and counted once"
            )
        if self._outside:
            self.warnings.append(
                f"{self._outside} {'kernel' if self._outside == 1 else 'kernels'} outside of all"
                " runs left out"
            )
        if self._events >= EVENT_LIMIT:
            self.warnings.append(
                f"ONNX Runtime stops recording at {EVENT_LIMIT:,} events: later passes are missing"
            )
        if self._overlapped:
            self.warnings.append(
                "runs overlapped: kernels of thread pools may be counted in another pass"
            )


def _times(event: Foreign) -> tuple[float, float, int] | None:
    """Return (start, duration, thread), or None when they are not sound."""
    start, duration, thread = _time(event.get("ts")), _time(event.get("dur")), event.get("tid", 0)
    if start is None or duration is None:
        return None
    return start, duration, whole(thread) or 0


def _time(value: JSON) -> float | None:
    if isinstance(value, str):
        value = whole(value)
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    return float(value) if 0 <= value <= _LARGEST_TIME_US else None
