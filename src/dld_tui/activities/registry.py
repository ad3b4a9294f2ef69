"""Activities: one object each, from which all else that is said and done about it comes.

The wizard, the command line, the palette, the job page, the worker and what opens afterwards know
no activity by its name. A new one is a module here, a conversion one of ``convert``, with a
``Request`` dataclass and a ``run`` generator, and one row in :data:`ACTIVITIES`; or an
:class:`Activity` in another package, declared as an entry point of the group
``dld_tui.activities``.

What an activity consists of is given as it is, or by reference, ``module:name``, so that a list of
activities imports none of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from dld_tui.core.codec import decode
from dld_tui.core.errors import UnavailableError, UsageError
from dld_tui.core.params import RequestData, from_json, to_json
from dld_tui.core.settings.plugins import Plugin, plugins, resolve
from dld_tui.core.text import visible
from dld_tui.core.types import JSON


@dataclass(frozen=True)
class Command:
    """How the command line runs an activity."""

    words: tuple[str, ...]
    """After ``dld``. The first is ``convert`` or ``profile``, or a word of the table of commands;
    ``("run", NAME)`` is for anybody."""
    summary: str = ""
    """In the list of a group's commands."""
    show: Any = "dld_tui.cli.jobs.activity:show_fields"
    """Function (or reference) that prints (result, as_json) and may return an exit status."""
    several: Any = "dld_tui.cli.jobs.activity:compare_reports"
    """Function (or reference) that prints the reports of several targets (paths, as_json) and
    returns an exit status."""
    rewrite: Any = None
    """Function (or reference) that brings the arguments of other tools to ours."""
    click: Any = None
    """A whole click command (or reference), where the settings alone are not enough."""
    help: str = ""
    """Of the command; by default that of the activity."""


@dataclass(frozen=True)
class Modification:
    """How the menu of batch modifications offers a conversion for the open model."""

    key: str
    """A letter that no other one has."""
    ending: str
    """What is added to the name of the file."""
    edit: str
    """The title of the edit in the history."""
    preview: bool = False
    """Whether a preview offers to go on to the form."""


@dataclass(frozen=True)
class Activity:
    """Something that runs as a job."""

    id: str
    title: str
    help: str
    """One sentence."""
    request: Any
    """The class (or reference) of its requests, a dataclass whose fields are made with
    :func:`dld_tui.core.params.param`."""
    run: Any
    """A generator (or reference) that takes a request and yields events; it ends with one
    ``Finished`` or raises a ``DldError``."""
    command: Command | None = None
    result: Any = None
    """The class (or reference) of its results, a dataclass; JSON data where there is none."""
    form: Any = "dld_tui.screens.activity.form:ActivityScreen"
    """The screen (or reference) that asks for the settings: called with (id, values)."""
    of_open_model: bool = False
    """Whether the form in a model's tab runs what is seen there, edits included."""
    result_view: Any = "dld_tui.screens.activity.results:opened_file"
    """What opens afterwards: a function (or reference) that takes (result, values) and returns a
    page, the path of a file to open, a text to show, or None."""
    reasons: Any = None
    """Function (or reference) that takes the values of a form, and the facts of the TensorRT
    library or None, and returns why settings cannot be used, by name; that of ``""`` says why
    nothing can be run."""
    synonyms: tuple[str, ...] = ()
    """Other words under which the palette finds it."""
    offered: bool = False
    """Whether the menu of activities lists it; helpers and conversions are not there."""
    page_command: str = ""
    """The command of a model's page that shows the form for what is open there."""
    modification: Modification | None = None
    package: str = ""
    """The package that adds it; empty for our own. Fit for a terminal."""
    problem: str = ""
    """Why the entry point cannot be loaded. Fit for a terminal."""

    @property
    def words(self) -> tuple[str, ...]:
        """The words of its command line."""
        return ("dld", *(self.command.words if self.command else self.id.split("_")))


def _own(id: str, title: str, help: str, *, room: str = "", **about: Any) -> Activity:
    """Return an activity of our own, whose request and run are in the module of its name.

    That of a conversion is in ``convert``, that of another one in `room`, if it is given.
    """
    name = f"{room}.{id}" if room else id.replace("convert_", "convert.", 1)
    module = f"dld_tui.activities.{name}"
    about.setdefault("result", f"{module}:Result")
    return Activity(id, title, help, f"{module}:Request", f"{module}:run", **about)


def _convert(name: str, summary: str, show: str = "show_conversion", **about: Any) -> Command:
    return Command(("convert", name), summary, f"dld_tui.cli.jobs.results:{show}", **about)


_TRTEXEC = "dld_tui.core.tensorrt.trtexec_arguments:plain_arguments"
_LIBRARY = "dld_tui.core.tensorrt.availability:library_reasons"

ACTIVITIES: tuple[Activity, ...] = (
    _own(
        "profile_onnxruntime",
        "Profile with ONNX Runtime",
        "Measure the latency of a model and of each of its layers with ONNX Runtime.",
        command=Command(
            ("profile", "onnxruntime"),
            "Profile with ONNX Runtime.",
            "dld_tui.cli.jobs.results:show_onnxruntime",
        ),
        synonyms=("benchmark", "latency", "measure", "ort"),
        page_command="model.profile",
        offered=True,
    ),
    _own(
        "tune",
        "Tune",
        "Find the fastest way to run a model whose results are near enough.",
        result="dld_tui.core.tune.result:TuneResult",
        command=Command(
            ("tune",),
            show="dld_tui.cli.jobs.results:show_tune",
            several="dld_tui.cli.jobs.results:show_several",
        ),
        result_view="dld_tui.screens.report.tuned:TuneScreen.of_job",
        synonyms=("optimise", "optimize", "faster", "speed up", "sweep", "auto tune", "threads"),
        page_command="model.tune",
        offered=True,
    ),
    _own(
        "start_up",
        "Measure the start",
        "Say what making a session takes, by stage, and which provider each node is given.",
        result="dld_tui.core.report.start_up:StartUp",
        command=Command(("startup",), show="dld_tui.cli.jobs.results:show_start_up"),
        result_view="dld_tui.screens.activity.results:of_start_up",
        synonyms=("session creation", "load time", "start-up", "startup", "fallback", "provider"),
        page_command="model.start_up",
    ),
    _own(
        "memory",
        "Count the memory",
        "Say what memory a run of a model needs, before it is run, and what is alive at the peak.",
        result="dld_tui.core.cost.memory:MemoryPlan",
        command=Command(("memory",), show="dld_tui.cli.jobs.results:show_memory"),
        result_view="dld_tui.screens.activity.results:of_memory",
        synonyms=("peak", "activations", "out of memory", "arena", "footprint"),
        page_command="model.memory",
    ),
    _own(
        "critical_path",
        "Find the critical path",
        "Say what running nodes at once could save, and where to cut a model for two devices.",
        result="dld_tui.core.cost.critical_path:CriticalPath",
        command=Command(("path",), show="dld_tui.cli.jobs.results:show_critical_path"),
        result_view="dld_tui.screens.activity.results:of_critical_path",
        synonyms=("parallelism", "longest path", "split", "pipeline"),
        page_command="report.path",
    ),
    _own(
        "build_tensorrt",
        "Build a TensorRT engine",
        "Build an engine of a model with TensorRT or TensorRT-RTX.",
        command=Command(("build",), click="dld_tui.cli.jobs.build:command"),
        result_view="dld_tui.screens.activity.results:built_engine",
        reasons=_LIBRARY,
        synonyms=("compile", "plan", "trtexec"),
        page_command="model.build",
        offered=True,
    ),
    _own(
        "profile_tensorrt",
        "Profile with TensorRT",
        "Build or load an engine, and measure its latency and each of its layers.",
        command=Command(
            ("profile", "tensorrt"),
            "Profile with TensorRT.",
            "dld_tui.cli.jobs.results:show_tensorrt",
            _TRTEXEC,
        ),
        reasons=_LIBRARY,
        synonyms=("benchmark", "latency", "measure", "trtexec"),
        page_command="model.profile_tensorrt",
        offered=True,
    ),
    _own(
        "refit_engine",
        "Refit an engine",
        "Put the weights of a model into an engine that was built for it.",
        command=Command(("refit",), show="dld_tui.cli.jobs.results:show_refit"),
        result_view="dld_tui.screens.activity.results:refitted_engine",
        synonyms=("weights", "update"),
        offered=True,
    ),
    _own(
        "accuracy",
        "Compare accuracy",
        "Say whether two models, or two ways to run one, give the same results.",
        result="dld_tui.core.accuracy.result:AccuracyReport",
        command=Command(("accuracy",), click="dld_tui.cli.jobs.accuracy:command"),
        of_open_model=True,
        result_view="dld_tui.screens.accuracy.page:AccuracyScreen.of_job",
        reasons="dld_tui.core.accuracy.engine_settings:comparison_reasons",
        synonyms=("debug", "difference", "polygraphy run"),
        page_command="accuracy.compare",
        offered=True,
    ),
    _own(
        "search_precision",
        "Search the precision",
        "Find the fewest nodes that must stay in fp32 when a model runs in fp16 or bf16.",
        command=Command(
            ("accuracy", "--search", "fp16"), click="dld_tui.cli.jobs.accuracy:command"
        ),
        result="dld_tui.core.accuracy.search:PrecisionResult",
        of_open_model=True,
        result_view="dld_tui.screens.accuracy.searches:PrecisionScreen.of_job",
        reasons="dld_tui.core.accuracy.engine_settings:greyed",
        synonyms=("mixed precision", "debug precision"),
        page_command="accuracy.search",
        offered=True,
    ),
    _own(
        "isolate_tactic",
        "Isolate a tactic",
        "Find the TensorRT tactics that make a model's results wrong.",
        result="dld_tui.core.accuracy.tactics:TacticReport",
        command=Command(("tactics",), click="dld_tui.cli.jobs.results:command"),
        of_open_model=True,
        result_view="dld_tui.screens.accuracy.searches:TacticsScreen.of_job",
        reasons=_LIBRARY,
        synonyms=("kernel", "debug build"),
        page_command="accuracy.tactics",
        offered=True,
    ),
    _own(
        "tune_routes",
        "Tune build routes",
        "Find the knobs of TensorRT's compiler that give a model the fastest engine.",
        result="dld_tui.core.tensorrt.build_routes:RouteSearch",
        command=Command(("routes",), show="dld_tui.cli.jobs.results:show_routes", rewrite=_TRTEXEC),
        of_open_model=True,
        result_view="dld_tui.screens.activity.results:of_routes",
        reasons="dld_tui.core.tensorrt.availability:route_reasons",
        synonyms=("global performance tuner", "gptuner", "knobs", "compiler options"),
        offered=True,
    ),
    _own(
        "profile_llm",
        "Profile a language model",
        "Measure a decoder: time to first token, tokens a second, prefill apart.",
        command=Command(
            ("profile", "llm"),
            "Profile prefill and decode of a decoder.",
            "dld_tui.cli.jobs.results:show_llm",
        ),
        synonyms=("tokens", "decoder", "genai", "prefill", "kv cache"),
        offered=True,
    ),
    _own(
        "reduce_model",
        "Reduce a failing model",
        "Find the smallest part of a model with which a command still fails.",
        result="dld_tui.core.conversion.reduction:Reduction",
        command=Command(("reduce",), show="dld_tui.cli.jobs.results:show_reduction"),
        result_view="dld_tui.screens.activity.results:of_reduction",
        of_open_model=True,
        synonyms=("bisect", "debug reduce", "minimal reproducer", "delta debugging"),
        offered=True,
    ),
    _own(
        "selftest",
        "Self-test",
        "Try what there is on this machine end to end, with models that are made for it.",
        room="machine",
        result="dld_tui.core.machine.health:SelfTest",
        command=Command(("selftest",), show="dld_tui.cli.jobs.results:show_selftest"),
        result_view="dld_tui.screens.activity.results:of_selftest",
        synonyms=("self test", "smoke test", "does it work", "bug report", "verify installation"),
        offered=True,
    ),
    _own(
        "time_pair",
        "Measure two versions in turns",
        "Measure a base and another version of a model in one process, by turns.",
    ),
    _own(
        "infer_shapes",
        "Infer shapes",
        "Infer the types and shapes of all values of a model.",
    ),
    _own(
        "check_full",
        "Full check",
        "Check a model with onnx's full checker and Polygraphy's lint.",
    ),
    _own(
        "check_sound",
        "Check a result",
        "Say whether the result of a conversion has errors that the model has not.",
    ),
    _own(
        "convert_fp16",
        "Convert to float16",
        "Convert a model to float16; the result is tried before it is written.",
        command=_convert("fp16", "Convert to float16."),
        result="dld_tui.core.conversion.result:HalfResult",
        synonyms=("fp16", "half", "half precision", "float16"),
        modification=Modification("f", "fp16", "convert to fp16"),
    ),
    _own(
        "convert_bf16",
        "Convert to bfloat16",
        "Convert a model to bfloat16; its values are compared before it is written.",
        command=_convert("bf16", "Convert to bfloat16."),
        result="dld_tui.core.conversion.result:OwnHalfModel",
        synonyms=("bf16", "brain float", "bfloat16"),
        modification=Modification("b", "bf16", "convert to bf16"),
    ),
    _own(
        "convert_precisions",
        "Cast to layer precisions",
        "Add the casts that give layers the precisions that they are set to.",
        command=_convert("precisions", "Cast to the precisions of layers.", "show_precisions"),
        result="dld_tui.core.conversion.result:PrecisionsResult",
        synonyms=("insert casts", "write precisions"),
        modification=Modification("p", "cast", "cast for the layers' precisions", preview=True),
    ),
    _own(
        "convert_sanitize",
        "Sanitize",
        "Make a model as small as Polygraphy, onnxslim and onnxsim can; it computes the same.",
        command=_convert("sanitize", "Fold constants, remove what is unused."),
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
        "Convert a model to another version of the ai.onnx operators.",
        command=_convert(
            "opset",
            "Convert to another version of the operators.",
            "show_opset",
            help="Convert a model to another version of the ai.onnx operators.\n\nBy the version"
            " converter of onnx; metadata, documentation and local functions are kept. Prints what"
            " changed. Exit status 1 when a part could not be converted, or values are wrong.",
        ),
        result="dld_tui.core.conversion.result:ConvertedOpset",
        modification=Modification("o", "opset", "convert the opset"),
    ),
    _own(
        "convert_shape",
        "Change dimensions",
        "Make dimensions dynamic or fixed, with the constants that hold their size.",
        command=_convert("shape", "Make dimensions dynamic or fixed."),
        result="dld_tui.core.conversion.result:ResizedModel",
        synonyms=("batch size", "dynamic batch", "dynamic axes", "fix the shape", "input size"),
        modification=Modification("d", "shape", "change dimensions"),
    ),
    _own(
        "convert_quantize",
        "Quantize",
        "Quantize a model with ONNX Runtime, with calibration inputs or dynamically.",
        command=_convert("quantize", "Quantize weights and values.", "show_quantization"),
        result="dld_tui.core.conversion.result:QuantizationResult",
        synonyms=("int8", "int4", "quantise", "quantization", "ptq", "calibrate", "qdq", "fp8"),
        modification=Modification("q", "quantized", "quantize"),
    ),
    _own(
        "convert_dequantize",
        "Dequantize weights",
        "Put floating point weights in the place of those that are stored in 4 or 8 bits.",
        command=_convert("dequantize", "Weights of few bits in floating point again."),
        result="dld_tui.core.conversion.result:DequantizedModel",
        synonyms=("int4 to float", "dequantise", "undo quantization", "unpack weights"),
        modification=Modification("u", "float", "dequantize weights"),
    ),
    _own(
        "convert_external",
        "Weights to a data file",
        "Move the weights of a model to a file beside it.",
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
        "Take the weights out of a model, and keep their hashes.",
        command=_convert("strip", "Take the weights out."),
        result="dld_tui.core.conversion.result:StrippedModel",
        synonyms=("without weights", "anonymise", "share without weights"),
        modification=Modification("s", "stripped", "strip the weights"),
    ),
    _own(
        "convert_restore",
        "Restore weights",
        "Give a stripped model its weights again.",
        command=_convert("restore", "Put the weights back."),
        result="dld_tui.core.conversion.result:MovedWeights",
        synonyms=("weights back",),
        modification=Modification("r", "restored", "restore the weights"),
    ),
    _own(
        "run_tool",
        "Custom tool",
        "Run a program of the user on a model.",
    ),
    _own(
        "tensorrt_libraries",
        "TensorRT libraries",
        "Say which TensorRT libraries there are and what each has.",
        room="machine",
    ),
    _own(
        "doctor",
        "Doctor",
        "Say which libraries, GPUs and folders work.",
        room="machine",
    ),
)
"""Our own; :func:`activities` has those of other packages, too."""


def activities() -> tuple[Activity, ...]:
    """Return all activities, those that other packages add last."""
    known = {activity.id for activity in ACTIVITIES}
    found = plugins("activities", Activity)
    return (*ACTIVITIES, *(_added(plugin) for plugin in found if plugin.name not in known))


def _added(plugin: Plugin[Activity]) -> Activity:
    name, package, value = visible(plugin.name), visible(plugin.package), plugin.value
    if value is not None and value.id == plugin.name:
        return replace(value, title=visible(value.title), help=visible(value.help), package=package)
    problem = visible(plugin.problem) or f"the activity of {name} has another id"
    return Activity(
        plugin.name, name, f"unavailable: {problem}", None, None, package=package, problem=problem,
        command=Command(("run", plugin.name), f"unavailable: {problem}"), offered=True,
    )  # fmt: skip


def find(activity_id: str) -> Activity:
    """Return an activity, not imported yet.

    Raises:
        UsageError: There is no activity of this name.
    """
    for activity in ACTIVITIES:
        if activity.id == activity_id:
            return activity
    known = activities()  # other packages are asked where none of ours is meant
    for activity in known:
        if activity.id == activity_id:
            return activity
    names = ", ".join(activity.id for activity in known)
    raise UsageError(f"there is no activity {activity_id!r}", hint=f"Known activities: {names}")


def load(activity_id: str) -> Activity:
    """Return an activity whose request and run are imported.

    Raises:
        UsageError: There is no activity of this name.
        UnavailableError: It cannot be imported here; the message says why.
    """
    activity = find(activity_id)
    if activity.problem:
        raise UnavailableError(f"unavailable: {activity.problem}", where=activity.title)
    try:
        return replace(
            activity,
            request=resolve(activity.request),
            run=resolve(activity.run),
            result=resolve(activity.result),
        )
    except UnavailableError as error:
        raise UnavailableError(error.message, where=activity.title) from error


def request_data(activity_id: str, values: Mapping[str, JSON]) -> RequestData:
    """Return the values of a form as a request, which a target on another machine needs.

    Raises:
        UsageError: There is no such activity, or a value cannot be used.
        UnavailableError: The activity cannot be imported here.
    """
    return to_json(from_json(load(activity_id).request, dict(values)))


def decode_result(activity_id: str, data: JSON) -> Any:
    """Return the result of a job as the activity declares it.

    Raises:
        ActivityError: It is of another form.
    """
    try:
        kind = resolve(find(activity_id).result)
    except UsageError:  # of a package that is not installed any more
        return data
    return data if kind is None else decode(kind, data)


def why_unavailable(activity: Activity) -> str | None:
    """Return why an activity cannot be loaded here, or None when it can."""
    try:
        load(activity.id)
    except UnavailableError as error:
        return error.message
    return None
