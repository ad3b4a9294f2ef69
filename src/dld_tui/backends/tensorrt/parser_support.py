"""Which nodes the parser of an installed TensorRT library takes, asked as the provider asks it.

ONNX Runtime's providers give the parser the whole graph, and then each part that it returns, until
all parts are taken (``GetSupportedList`` in tensorrt_execution_provider.cc). That needs neither a
GPU nor a build, and runs in a fork, within limits: it is native code.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dld_tui.backends.tensorrt.errors import parser_problems, short
from dld_tui.backends.tensorrt.library import find_library
from dld_tui.core.errors import ActivityError, DldError
from dld_tui.core.files.proto_fields import text_of
from dld_tui.core.model.document.locations import names_used
from dld_tui.core.model.operators.native import trial_limits
from dld_tui.core.process.child import CrashError, LimitError, RefusedError, compute
from dld_tui.core.text import visible

if TYPE_CHECKING:
    import onnx


def parser_support(
    model: onnx.ModelProto, path: Path, library: str
) -> tuple[str, list[int], dict[int, str]]:
    """Return the library, the numbers of nodes of the main graph that it takes, and reasons.

    Args:
        model: Without local functions, and with the types of all values.
        path: A file in the folder of its data.
        library: ``tensorrt`` or ``tensorrt_rtx``.

    Raises:
        ActivityError: There is no answer; says why.
    """
    try:
        limits = trial_limits(model.ByteSize(), 0)
        data = json.loads(compute(lambda: _answer(model, path, library), limits))
    except (LimitError, CrashError, RefusedError) as error:
        raise ActivityError(f"the parser gave no answer: {visible(str(error))}") from None
    if "fault" in data:
        raise ActivityError(str(data["fault"]))
    reasons = {int(number): str(reason) for number, reason in data["reasons"].items()}
    return str(data["title"]), list(data["taken"]), reasons


def _answer(model: onnx.ModelProto, path: Path, library: str) -> bytes:
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)  # of the fork: the library writes there
    try:
        found = find_library(library)
    except DldError as error:
        return json.dumps({"fault": error.message}).encode()
    trt = found.module
    logger = trt.Logger(trt.Logger.INTERNAL_ERROR)
    builder = trt.Builder(logger)
    reasons: dict[int, str] = {}
    taken: list[int] = []
    waiting: list[Sequence[int]] = [range(len(model.graph.node))]
    while waiting:
        numbers = waiting.pop()
        network = builder.create_network(0)  # the parser does not keep it
        parser = trt.OnnxParser(network, logger)
        part = _part(model, numbers)
        if parser.supports_model_v2(part.SerializeToString(), str(path)):
            taken += numbers
            continue
        groups = [parser.get_subgraph_nodes(at) for at in range(parser.num_subgraphs)]
        waiting += [[numbers[at] for at in group] for group in groups if len(group) < len(numbers)]
        for problem in parser_problems(parser, found.capabilities.has):
            if 0 <= problem.node < len(numbers) and problem.tells_why:
                reasons.setdefault(numbers[problem.node], short(problem.message))
    data: dict[str, Any] = {"title": found.capabilities.title, "taken": taken, "reasons": reasons}
    return json.dumps(data).encode()


def _part(model: onnx.ModelProto, numbers: Sequence[int]) -> onnx.ModelProto:
    """Return a model of some nodes of the main graph; what else they use are inputs."""
    import onnx

    graph = model.graph
    if len(numbers) == len(graph.node):
        return model
    nodes = [graph.node[number] for number in numbers]
    kinds = {text_of(info.name): info for info in (*graph.input, *graph.value_info, *graph.output)}
    produced = {text_of(name) for node in nodes for name in node.output if name}
    used = names_used(nodes)
    stored = {text_of(tensor.name) for tensor in graph.initializer}
    rest = [node for at, node in enumerate(graph.node) if at not in set(numbers)]
    wanted = names_used(rest) | {text_of(info.name) for info in graph.output}
    part = onnx.ModelProto(ir_version=model.ir_version, opset_import=model.opset_import)
    part.graph.node.extend(nodes)
    part.graph.initializer.extend(t for t in graph.initializer if text_of(t.name) in used)
    part.graph.input.extend(
        kinds[name] for name in sorted(used - produced - stored) if name in kinds
    )  # fmt: skip
    part.graph.output.extend(kinds[name] for name in sorted(produced & wanted) if name in kinds)
    part.graph.value_info.extend(kinds[name] for name in sorted(produced - wanted) if name in kinds)
    return part
