"""The table of activities.

Forms, the command line, the palette, the job page and the worker read this table, so that an
activity with a row is in all of them. Only what starts a certain activity names it: a command of a
page, a dialog of a result, or what a target needs for it. To add an activity, add a module here (in
``convert`` for a conversion) with a ``Request`` dataclass and a ``run`` generator, and one row in
:data:`ACTIVITIES`. Other packages declare an :class:`Activity` as an entry point of the group
``dld_tui.activities``.

Fields hold objects or references, ``module:name``, so that listing activities imports none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from dld_tui.core.codec import decode
from dld_tui.core.dataclass import dataclass
from dld_tui.core.errors import UnavailableError, UsageError
from dld_tui.core.params import RequestData, current_id, from_json, to_json
from dld_tui.core.process.plugins import plugins, resolve, skip
from dld_tui.core.text import visible
from dld_tui.core.types import JSON


@dataclass(frozen=True)
class Joining:
    """How results of several targets become one."""

    known: Callable[[Any, Path], Any]
    """Returns what an earlier run of a request wrote to a path; None if nothing of it is there."""
    join: Callable[[Mapping[str, Any], Path], Any]
    """Writes the results by target to a path as one, and returns that."""


@dataclass(frozen=True)
class Command:
    """Command of an activity."""

    words: tuple[str, ...]
    """Words after ``dld``: ``convert`` or ``profile`` and a name, a word of the table of commands,
    or ``("run", NAME)`` for activities of other packages."""
    summary: str = ""
    """Summary in the help of the group."""
    show: Any = "dld_tui.cli.jobs.activity:show_fields"
    """Function (or reference) that prints (result, as_json) and may return an exit status."""
    several: Any = "dld_tui.cli.jobs.activity:compare_reports"
    """Function (or reference) that prints the reports of several targets (paths, as_json) and
    returns an exit status."""
    joining: Any = None
    """:class:`Joining` (or reference) by which several targets have one result, which `show` then
    prints in the place of `several`."""
    rewrite: Any = None
    """Function (or reference) that translates arguments of other tools."""
    printing: Any = None
    """Function (or reference) that returns click options whose values `show` takes by name."""
    click: Any = None
    """Complete click command (or reference), if the settings alone are not enough."""
    help: str = ""
    """Help of the command; by default that of the activity."""


@dataclass(frozen=True)
class Modification:
    """Entry of a conversion in the menu for the open model."""

    key: str
    """Unique letter."""
    ending: str
    """Suffix of the default file name."""
    edit: str
    """Title of the edit in the history."""
    preview: bool = False
    """Whether a preview comes before the form."""


@dataclass(frozen=True)
class Activity:
    """Something that runs as a job: profile, build, convert, …."""

    id: str
    title: str
    help: str
    """One sentence."""
    request: Any
    """Request dataclass (or reference); its fields come from
    :func:`dld_tui.core.params.param`."""
    run: Any
    """Generator (or reference) that takes a request and yields events. It ends with one
    ``Finished`` or raises a ``DldError``."""
    command: Command | None = None
    result: Any = None
    """Result dataclass (or reference); None for plain JSON data."""
    form: Any = "dld_tui.screens.activity.form:ActivityScreen"
    """Screen (or reference) with the form: called with (id, values)."""
    of_open_model: bool = False
    """Whether the form in a model's tab runs the edited model."""
    result_view: Any = "dld_tui.screens.results.views:opened_file"
    """Function (or reference) that takes (result, values) and returns what opens afterwards: a
    page, the path of a file, a text, or None."""
    reasons: Any = None
    """Function (or reference) that takes the values of a form and the capabilities of the TensorRT
    library (or None). It returns the reason for each unavailable setting by name; the reason
    under ``""`` disables the activity."""
    synonyms: tuple[str, ...] = ()
    """Search words of the palette."""
    offered: bool = False
    """Whether the menu of activities lists it; False for conversions, what only the page of a model
    or report starts, and helpers."""
    of_report: bool = False
    """Whether pages of reports, and of models with one, list it: its request takes a report."""
    page_command: str = ""
    """Command of a model's page that opens the form for that model."""
    modification: Modification | None = None
    package: str = ""
    """Package that adds it, safe for a terminal; empty for built-in activities."""

    @property
    def words(self) -> tuple[str, ...]:
        """Words of the command line."""
        return ("dld", *(self.command.words if self.command else self.id.split("_")))


_PACKAGES = ("check", "convert", "profile")
"""Packages with modules of activities whose ids begin with the package."""


def _own(id: str, title: str, help: str, *, module: str = "", **about: Any) -> Activity:
    """Return a built-in activity with the request and run of a module.

    By default the module has its name; ``convert_fp16`` is the module ``convert.fp16``.
    """
    package, _, rest = id.partition("_")
    module = module or (f"{package}.{rest}" if package in _PACKAGES else id)
    module = f"dld_tui.activities.{module}"
    about.setdefault("result", f"{module}:Result")
    return Activity(id, title, help, f"{module}:Request", f"{module}:run", **about)


_PRINTING = "dld_tui.cli.reports.report:printing_options"


def _convert(name: str, summary: str, show: str = "show_conversion", **about: Any) -> Command:
    return Command(("convert", name), summary, f"dld_tui.cli.jobs.results:{show}", **about)


_TRTEXEC = "dld_tui.core.tensorrt.trtexec_arguments:plain_arguments"
_LIBRARY = "dld_tui.core.tensorrt.availability:library_reasons"

ACTIVITIES: tuple[Activity, ...] = (
    _own(
        "profile_onnxruntime",
        "Profile with ONNX Runtime",
        "Measure the latency of a model and its layers with ONNX Runtime.",
        command=Command(
            ("profile", "onnxruntime"),
            "Profile with ONNX Runtime.",
            "dld_tui.cli.jobs.results:show_onnxruntime",
            printing=_PRINTING,
        ),
        synonyms=("benchmark", "latency", "measure", "ort"),
        page_command="model.profile",
        offered=True,
    ),
    _own(
        "tune",
        "Tune",
        "Search for the fastest conversion and session settings within a tolerance.",
        result="dld_tui.core.tune.result:TuneResult",
        command=Command(
            ("tune",),
            show="dld_tui.cli.jobs.results:show_tune",
            several="dld_tui.cli.jobs.results:show_several",
        ),
        result_view="dld_tui.screens.results.tuning:TuneScreen.of_job",
        synonyms=("optimise", "optimize", "faster", "speed up", "sweep", "auto tune", "threads"),
        page_command="model.tune",
        offered=True,
    ),
    _own(
        "placement",
        "Place Q/DQ",
        "Find the places of QuantizeLinear and DequantizeLinear with the lowest latency.",
        result="dld_tui.core.tune.placement:PlacementResult",
        command=Command(("placement",), show="dld_tui.cli.jobs.results:show_placement"),
        of_open_model=True,
        result_view="dld_tui.screens.results.table:of_placement",
        reasons="dld_tui.core.accuracy.engine_settings:engine_reasons",
        synonyms=("quantize", "int8", "autotune", "explicit quantization", "insert qdq", "ptq"),
        offered=True,
    ),
    _own(
        "sweep",
        "Sweep",
        "Measure a model at several sizes, prompts, threads, providers and precisions.",
        result="dld_tui.core.report.sweep:Sweep",
        command=Command(
            ("sweep",),
            show="dld_tui.cli.jobs.results:show_sweep",
            joining="dld_tui.activities.sweep.targets:JOINING",
        ),
        result_view="dld_tui.screens.results.sweep:of_sweep",
        synonyms=(
            "batch sizes",
            "sequence length",
            "scaling",
            "throughput",
            "knee",
            "threads",
            "precision",
            "prompt length",
            "context length",
        ),
        page_command="model.sweep",
        offered=True,
        module="sweep.job",
    ),
    _own(
        "load",
        "Load",
        "Measure throughput and latency of several clients on one session.",
        result="dld_tui.core.report.load:LoadResult",
        command=Command(("load",), show="dld_tui.cli.jobs.results:show_load"),
        result_view="dld_tui.screens.results.table:of_load",
        synonyms=("clients", "concurrency", "throughput", "saturation", "queue", "server"),
        page_command="model.load",
        offered=True,
    ),
    _own(
        "gate",
        "Gate: stop a slower model",
        "Fail if a new version is slower, or a model misses a requirement.",
        command=Command(("gate",), click="dld_tui.cli.jobs.gate:command"),
        result_view="dld_tui.screens.results.table:of_gate",
        synonyms=("regression", "slower", "require", "requirements", "budget", "latency limit"),
        page_command="model.gate",
        offered=True,
    ),
    _own(
        "startup",
        "Measure session startup",
        "Measure session creation by stage, and show the provider of each node.",
        result="dld_tui.core.report.startup:SessionStartup",
        command=Command(("startup",), show="dld_tui.cli.jobs.results:show_startup"),
        result_view="dld_tui.screens.results.table:of_startup",
        synonyms=("session creation", "load time", "start-up", "startup", "fallback", "provider"),
        page_command="model.start_up",
    ),
    _own(
        "providers",
        "Providers",
        "Show which nodes each execution provider takes, why not, and what would help.",
        result="dld_tui.core.report.provider_support:ProvidersResult",
        command=Command(("providers",), show="dld_tui.cli.jobs.results:show_providers"),
        result_view="dld_tui.screens.results.table:of_providers",
        synonyms=("execution provider", "supported operators", "fallback", "coverage", "ep", "npu"),
        page_command="model.providers",
    ),
    _own(
        "memory",
        "Predict memory",
        "Predict and measure the memory of a run: weights, peak of activations, live tensors.",
        result="dld_tui.core.model.cost.memory:MemoryPlan",
        command=Command(("memory",), show="dld_tui.cli.jobs.results:show_memory"),
        result_view="dld_tui.screens.results.table:of_memory",
        synonyms=("peak", "activations", "out of memory", "arena", "footprint"),
        page_command="model.memory",
    ),
    _own(
        "build",
        "Build a TensorRT engine",
        "Build an engine from a model with TensorRT or TensorRT-RTX.",
        command=Command(("build",), click="dld_tui.cli.jobs.build:command"),
        result_view="dld_tui.screens.results.views:built_engine",
        reasons=_LIBRARY,
        synonyms=("compile", "plan", "trtexec"),
        page_command="model.build",
        offered=True,
    ),
    _own(
        "profile_tensorrt",
        "Profile with TensorRT",
        "Build or load an engine, and measure the latency of it and its layers.",
        command=Command(
            ("profile", "tensorrt"),
            "Profile with TensorRT.",
            "dld_tui.cli.jobs.results:show_tensorrt",
            _TRTEXEC,
            printing=_PRINTING,
        ),
        reasons=_LIBRARY,
        synonyms=("benchmark", "latency", "measure", "trtexec"),
        page_command="model.profile_tensorrt",
        offered=True,
    ),
    _own(
        "refit",
        "Refit an engine",
        "Replace the weights of an engine with those of a model.",
        command=Command(("refit",), show="dld_tui.cli.jobs.results:show_refit"),
        result_view="dld_tui.screens.results.views:refitted_engine",
        synonyms=("weights", "update"),
        offered=True,
    ),
    _own(
        "accuracy",
        "Compare accuracy",
        "Compare the tensors of two models, or of two ways to run one model.",
        result="dld_tui.core.accuracy.result:AccuracyReport",
        command=Command(("accuracy",), click="dld_tui.cli.jobs.accuracy:command"),
        of_open_model=True,
        result_view="dld_tui.screens.results.accuracy:AccuracyScreen.of_job",
        reasons="dld_tui.core.accuracy.engine_settings:comparison_reasons",
        synonyms=("debug", "difference", "polygraphy run"),
        page_command="accuracy.compare",
        offered=True,
        module="accuracy.job",
    ),
    _own(
        "score",
        "Accuracy on a dataset",
        "Judge a model, before and after a conversion, on labelled samples.",
        result="dld_tui.core.accuracy.scores:DatasetScores",
        command=Command(("accuracy",), click="dld_tui.cli.jobs.accuracy:command"),
        result_view="dld_tui.screens.results.table:of_scores",
        synonyms=("dataset", "labels", "top-1", "f1", "mean average precision", "word error rate"),
        offered=True,
        module="accuracy.score",
    ),
    _own(
        "search_precision",
        "Search precision",
        "Find the fewest nodes that must stay in fp32 with fp16, bf16 or int8.",
        command=Command(
            ("accuracy", "--search", "fp16"), click="dld_tui.cli.jobs.accuracy:command"
        ),
        result="dld_tui.core.accuracy.search:PrecisionResult",
        of_open_model=True,
        result_view="dld_tui.screens.results.accuracy:PrecisionScreen.of_job",
        reasons="dld_tui.core.accuracy.engine_settings:disabled_settings",
        synonyms=("mixed precision", "debug precision"),
        page_command="accuracy.search",
        offered=True,
        module="accuracy.search",
    ),
    _own(
        "tactics",
        "Isolate a tactic",
        "Find the TensorRT tactics that give wrong results.",
        result="dld_tui.core.accuracy.tactics:TacticReport",
        command=Command(("tactics",), click="dld_tui.cli.jobs.results:command"),
        of_open_model=True,
        result_view="dld_tui.screens.results.accuracy:TacticsScreen.of_job",
        reasons=_LIBRARY,
        synonyms=("kernel", "debug build"),
        page_command="accuracy.tactics",
        offered=True,
    ),
    _own(
        "profile_llm",
        "Profile a language model",
        "Measure prefill and decode of an LLM: time to first token, tokens per second.",
        command=Command(
            ("profile", "llm"),
            "Profile prefill and decode of a decoder.",
            "dld_tui.cli.jobs.results:show_llm",
        ),
        synonyms=("tokens", "decoder", "genai", "prefill", "kv cache"),
        offered=True,
    ),
    _own(
        "reduce",
        "Reduce a failing model",
        "Find the smallest model with which a command still fails.",
        result="dld_tui.core.conversion.reduction:Reduction",
        command=Command(("reduce",), show="dld_tui.cli.jobs.results:show_reduction"),
        result_view="dld_tui.screens.results.views:of_reduction",
        of_open_model=True,
        synonyms=("bisect", "debug reduce", "minimal reproducer", "delta debugging"),
        offered=True,
    ),
    _own(
        "selftest",
        "Self-test",
        "Test all backends of this machine end to end with built-in models.",
        module="machine.selftest",
        result="dld_tui.core.machine.health:SelfTest",
        command=Command(("selftest",), show="dld_tui.cli.jobs.results:show_selftest"),
        result_view="dld_tui.screens.results.table:of_selftest",
        synonyms=("self test", "smoke test", "does it work", "bug report", "verify installation"),
        offered=True,
    ),
    _own(
        "time_pair",
        "Measure two versions alternately",
        "Measure a baseline and a new version of a model alternately in one process.",
    ),
    _own(
        "infer_shapes",
        "Infer shapes",
        "Infer the types and shapes of all tensors of a model.",
    ),
    _own(
        "check_full",
        "Full check",
        "Check a model with onnx's full checker and Polygraphy's lint.",
    ),
    _own(
        "check_sound",
        "Check a result",
        "Check whether the result of a conversion has new errors.",
    ),
    _own(
        "convert_fp16",
        "Convert to float16",
        "Convert a model to float16; the result is verified before it is written.",
        command=_convert("fp16", "Convert to float16."),
        result="dld_tui.core.conversion.result:HalfResult",
        synonyms=("fp16", "half", "half precision", "float16"),
        modification=Modification("f", "fp16", "convert to float16"),
    ),
    _own(
        "convert_bf16",
        "Convert to bfloat16",
        "Convert a model to bfloat16; the result is verified before it is written.",
        command=_convert("bf16", "Convert to bfloat16."),
        result="dld_tui.core.conversion.result:OwnHalfModel",
        synonyms=("bf16", "brain float", "bfloat16"),
        modification=Modification("b", "bf16", "convert to bfloat16"),
    ),
    _own(
        "convert_precisions",
        "Cast to layer precisions",
        "Insert casts so that layers run in their assigned precision.",
        command=_convert("precisions", "Insert casts for layer precisions.", "show_precisions"),
        result="dld_tui.core.conversion.result:PrecisionsResult",
        synonyms=("insert casts", "write precisions"),
        modification=Modification("p", "cast", "insert casts for layer precisions", preview=True),
    ),
    _own(
        "convert_sanitize",
        "Sanitize",
        "Fold constants and remove unused nodes with Polygraphy, onnxslim and onnxsim.",
        command=_convert("sanitize", "Fold constants, remove unused nodes."),
        result="dld_tui.core.conversion.result:SanitizedModel",
        synonyms=(
            "simplify",
            "onnxsim",
            "onnxslim",
            "fold constants",
            "constant folding",
            "optimise",
            "optimize",
            "clean up",
        ),
        modification=Modification("z", "sanitized", "sanitize"),
    ),
    _own(
        "convert_tensors",
        "Convert tensors",
        "Convert weights and constants to another element type.",
        command=_convert("tensors", "Convert weights to another type.", "show_tensors"),
        result="dld_tui.core.conversion.result:TensorsResult",
        synonyms=("weights to fp16", "type of the weights", "compress weights"),
        modification=Modification("t", "tensors", "convert tensors"),
    ),
    _own(
        "convert_opset",
        "Convert the opset",
        "Convert a model to another version of the ai.onnx opset.",
        command=_convert(
            "opset",
            "Convert to another opset.",
            "show_opset",
            help=(
                "Convert a model to another version of the ai.onnx opset, node by "
                "node.\n\nPreserves metadata, documentation and local functions. "
                "Prints the changes. Exit status 1 if a part could not be converted or outputs "
                "are outside the tolerance."
            ),
        ),
        result="dld_tui.core.conversion.result:ConvertedOpset",
        modification=Modification("o", "opset", "convert the opset"),
    ),
    _own(
        "convert_shape",
        "Change dimensions",
        "Make dimensions dynamic or fixed, and adapt constants that contain their size.",
        command=_convert("shape", "Make dimensions dynamic or fixed."),
        result="dld_tui.core.conversion.result:ResizedModel",
        synonyms=("batch size", "dynamic batch", "dynamic axes", "fix the shape", "input size"),
        modification=Modification("d", "shape", "change dimensions"),
    ),
    _own(
        "convert_merge",
        "Merge models",
        "Merge models into one: outputs of each become inputs of the next.",
        command=Command(("merge",), show="dld_tui.cli.jobs.results:show_conversion"),
        result="dld_tui.core.conversion.result:MergedModel",
        synonyms=(
            "compose",
            "join",
            "append a model",
            "combine",
            "connect models",
            "chain",
            "concatenate models",
        ),
        modification=Modification("m", "merged", "merge models"),
    ),
    _own(
        "convert_clean",
        "Clean",
        "Write a model down in another way: constants, shared weights, unused parts, order.",
        command=_convert("clean", "Constants, equal weights, unused parts, texts, order."),
        result="dld_tui.core.conversion.result:CleanedModel",
        synonyms=(
            "dead code",
            "unused initializers",
            "deduplicate",
            "shared weights",
            "extract constants",
            "topological sort",
            "doc strings",
            "initializers as inputs",
            "weights off inputs",
            "constant nodes to initializers",
            "duplicate weights",
            "remove unused weights",
        ),
        modification=Modification("c", "clean", "clean"),
    ),
    _own(
        "convert_fold",
        "Fold nodes",
        "Replace nodes by initializers with what they compute from constants.",
        command=_convert("fold", "Replace nodes by what they compute."),
        result="dld_tui.core.conversion.result:FoldedModel",
        synonyms=("precompute", "constant folding of nodes", "bake", "to a constant"),
        modification=Modification("l", "folded", "fold nodes"),
    ),
    _own(
        "convert_io",
        "Change inputs and outputs",
        "Change the element types and layouts of inputs and outputs.",
        command=_convert("io", "Change types and layouts of inputs and outputs."),
        result="dld_tui.core.conversion.result:ChangedTerminals",
        synonyms=(
            "int64 to int32",
            "nchw to nhwc",
            "input type",
            "input layout",
            "keep io types",
            "channels last",
            "cast input",
        ),
        modification=Modification("n", "io", "change inputs and outputs"),
    ),
    _own(
        "convert_prepend",
        "Pre-process an input",
        "Add nodes before an input: uint8 to float, layout, resize, crop, mean and deviation.",
        command=Command(("prepend",), show="dld_tui.cli.jobs.results:show_conversion"),
        result="dld_tui.core.conversion.result:ChangedTerminals",
        synonyms=(
            "preprocessing",
            "normalize",
            "mean and std",
            "uint8 input",
            "resize",
            "bgr",
            "normalise image",
        ),
        modification=Modification("x", "prepended", "process an input"),
    ),
    _own(
        "convert_append",
        "Post-process an output",
        "Add nodes behind an output: softmax, argmax, the largest values, a detector's NMS.",
        command=Command(("append",), show="dld_tui.cli.jobs.results:show_conversion"),
        result="dld_tui.core.conversion.result:ChangedTerminals",
        synonyms=(
            "postprocessing",
            "top-k",
            "topk",
            "nms",
            "non max suppression",
            "yolo",
            "probabilities",
        ),
        modification=Modification("y", "appended", "process an output"),
    ),
    _own(
        "convert_quantize",
        "Quantize",
        "Quantize a model: static, dynamic or weight-only.",
        command=_convert("quantize", "Quantize weights and activations.", "show_quantization"),
        result="dld_tui.core.conversion.result:QuantizationResult",
        synonyms=("int8", "int4", "quantise", "quantization", "ptq", "calibrate", "qdq", "fp8"),
        modification=Modification("q", "quantized", "quantize"),
    ),
    _own(
        "convert_dequantize",
        "Dequantize weights",
        "Replace weights of 4 or 8 bits with floating point weights.",
        command=_convert("dequantize", "Convert quantized weights to floating point."),
        result="dld_tui.core.conversion.result:DequantizedModel",
        synonyms=("int4 to float", "dequantise", "undo quantization", "unpack weights"),
        modification=Modification("u", "float", "dequantize weights"),
    ),
    _own(
        "convert_external",
        "Weights to a data file",
        "Move the weights of a model to a data file beside it.",
        command=_convert("external", "Move weights to a data file."),
        result="dld_tui.core.conversion.result:MovedWeights",
        synonyms=("external data", "save as external data"),
        modification=Modification("e", "external", "move weights to a data file"),
    ),
    _own(
        "convert_inline",
        "Weights into the model",
        "Move the weights of data files into the model.",
        command=_convert("inline", "Move weights into the model."),
        result="dld_tui.core.conversion.result:MovedWeights",
        synonyms=("inline", "one file", "internal data"),
        modification=Modification("i", "inline", "move weights into the model"),
    ),
    _own(
        "convert_strip",
        "Strip weights",
        "Remove the weights of a model; keep their hashes.",
        command=_convert("strip", "Remove the weights."),
        result="dld_tui.core.conversion.result:StrippedModel",
        synonyms=("without weights", "anonymise", "share without weights"),
        modification=Modification("s", "stripped", "strip the weights"),
    ),
    _own(
        "convert_restore",
        "Restore weights",
        "Restore the weights of a stripped model.",
        command=_convert("restore", "Restore the weights."),
        result="dld_tui.core.conversion.result:MovedWeights",
        synonyms=("weights back",),
        modification=Modification("r", "restored", "restore the weights"),
    ),
    _own(
        "tool",
        "Custom tool",
        "Run a custom program on a model.",
    ),
    _own(
        "tensorrt_libraries",
        "TensorRT libraries",
        "List the installed TensorRT libraries and their features.",
        module="machine.tensorrt_libraries",
    ),
    _own(
        "doctor",
        "Doctor",
        "Check libraries, GPUs and folders.",
        module="machine.doctor",
        result_view="dld_tui.screens.results.table:of_doctor",
    ),
)
"""Built-in activities; :func:`activities` adds those of other packages."""


def activities() -> tuple[Activity, ...]:
    """Return all activities, those of other packages last."""
    known = {activity.id for activity in ACTIVITIES}
    added = []
    for plugin in plugins("activities", Activity):
        activity = plugin.value
        if activity.id != current_id(plugin.name) or activity.id in known:
            problem = f"its activity {activity.id!r} is one of dld's, or has another name"
            skip("activities", plugin, problem)
            continue
        added.append(
            replace(
                activity,
                title=visible(activity.title),
                help=visible(activity.help),
                package=visible(plugin.package),
            )
        )
    return (*ACTIVITIES, *added)


def find(activity_id: str) -> Activity:
    """Return an activity without importing it; its id may be one of an earlier version.

    Raises:
        UsageError: The activity is unknown.
    """
    activity_id = current_id(activity_id)
    for activity in ACTIVITIES:
        if activity.id == activity_id:
            return activity
    known = activities()  # other packages are asked where none of ours is meant
    for activity in known:
        if activity.id == activity_id:
            return activity
    names = ", ".join(activity.id for activity in known)
    raise UsageError(f"unknown activity {activity_id!r}", hint=f"Known activities: {names}")


def load(activity_id: str) -> Activity:
    """Return an activity whose request and run are imported.

    Raises:
        UsageError: The activity is unknown.
        UnavailableError: It cannot be imported here; the message has the reason.
    """
    activity = find(activity_id)
    try:
        return replace(
            activity,
            request=resolve(activity.request),
            run=resolve(activity.run),
            result=resolve(activity.result),
        )
    except UnavailableError as error:
        raise UnavailableError(error.message, where=activity.title) from error


def request_data(
    activity_id: str, values: Mapping[str, JSON], replaces: Iterable[str] = ()
) -> RequestData:
    """Return the values of a form as a request for a target.

    Args:
        activity_id: The activity.
        values: Those of the form.
        replaces: See :class:`RequestData`.

    Raises:
        UsageError: The activity is unknown, or a value is invalid.
        UnavailableError: The activity cannot be imported here.
    """
    return to_json(from_json(load(activity_id).request, dict(values)), replaces)


def decode_result(activity_id: str, data: JSON) -> Any:
    """Return the result of a job as the activity declares it.

    Raises:
        ActivityError: The data does not have this form.
    """
    try:
        kind = resolve(find(activity_id).result)
    except UsageError:  # of a package that is not installed any more
        return data
    return data if kind is None else decode(kind, data)


def why_unavailable(activity: Activity) -> str | None:
    """Return the reason why an activity cannot be loaded here, or None if it can."""
    try:
        load(activity.id)
    except UnavailableError as error:
        return error.message
    return None
