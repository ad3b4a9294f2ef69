"""The commands of trtexec: its options by version (8.0 to 11.5), written, read and explained.

Settings become the equivalent trtexec command. A pasted command of trtexec 8 to 11, or
of Polygraphy's ``convert`` and ``run``, becomes settings; notes say what became of options that
a later version removed.
"""

from __future__ import annotations

import re
import shlex
import typing
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from pathlib import PurePath
from types import MappingProxyType
from typing import Any, NamedTuple, TypeAlias

from dld_tui.core.dataclass import dataclass
from dld_tui.core.errors import UsageError
from dld_tui.core.params import Setting, problem_with, settings_of
from dld_tui.core.tensorrt.run_settings import MeasureSettings, RunSettings
from dld_tui.core.tensorrt.settings import SHAPES, BuildSettings
from dld_tui.core.tensorrt.trtexec_arguments import plain_arguments, with_profile
from dld_tui.core.text import clip, visible
from dld_tui.core.types import JSON

Version: TypeAlias = "tuple[int, int]"

# fmt: off
_SINCE = {
    "8.0": (
        "--allowGPUFallback --avgRuns --avgTiming --batch --best --buildOnly --calib "
        "--deploy --device --dumpOutput --dumpProfile --dumpRefit --duration "
        "--explicitBatch --explicitPrecision --exportOutput --exportProfile --exportTimes "
        "--exposeDMA --fp16 --help --inputIOFormats --int8 --iterations --loadEngine "
        "--loadInputs --maxBatch --maxShapes --maxShapesCalib --minShapes --minShapesCalib "
        "--minTiming --model --noBuilderCache --noDataTransfers --noTF32 --nvtxMode --onnx "
        "--optShapes --optShapesCalib --output --outputIOFormats --percentile --plugins "
        "--refit --safe --saveEngine --separateProfileRun --serialized --shapes --sleepTime "
        "--sparsity --streams --tacticSources --threads --timeDeserialize --timeRefit "
        "--timingCacheFile --uff --uffInput --uffNHWC --useCudaGraph --useDLACore "
        "--useSpinWait --verbose --warmUp --workspace -h "
    ),
    "8.2": (
        "--consistency --directIO --dumpLayerInfo --exportLayerInfo --idleTime "
        "--precisionConstraints --profilingVerbosity --restricted --useManagedMemory "
    ),
    "8.4": (
        "--layerOutputTypes --layerPrecisions --memPoolSize --std -v "
    ),
    "8.5": (
        "--heuristic --persistentCacheRatio --preview "
    ),
    "8.6": (
        "--buildDLAStandalone --builderOptimizationLevel --dumpRawBindingsToFile "
        "--dynamicPlugins --excludeLeanRuntime --fp8 --hardwareCompatibilityLevel "
        "--ignoreParsedPluginLibs --infStreams --layerDeviceTypes --leanDLLPath "
        "--maxAuxStreams --setPluginsToSerialize --skipInference --staticPlugins --tempdir "
        "--tempfileControls --useRuntime --vc --versionCompatible "
    ),
    "10.0": (
        "--allocationStrategy --allowWeightStreaming --bf16 --calibProfile "
        "--dumpOptimizationProfile --errorOnTimingCacheMiss --getPlanVersionOnly "
        "--markDebug --noCompilationCache --pi --pluginInstanceNorm --profile "
        "--saveDebugTensors --stripWeights --stronglyTyped --useProfile "
        "--weightStreamingBudget --weightless "
    ),
    "10.1": (
        "--int4 --stripAllWeights "
    ),
    "10.2": (
        "--runtimePlatform "
    ),
    "10.4": (
        "--maxTactics "
    ),
    "10.6": (
        "--monitorMemory "
    ),
    "10.7": (
        "--asyncFileReader "
    ),
    "10.8": (
        "--l2LimitForTiling --tilingOptimizationLevel "
    ),
    "10.11": (
        "--uint8AsymmetricQuantizationDLA "
    ),
    "10.12": (
        "--distributiveIndependence --markUnfusedTensorsAsDebugTensors "
        "--saveAllDebugTensors "
    ),
    "10.13": (
        "--dumpKernelText --remoteAutoTuningConfig --safetyPlugins "
    ),
    "10.14": (
        "--decomposableAttentions --refitFromOnnx "
    ),
    "10.15": (
        "--cpuOnly --enablePluginOverride "
    ),
    "10.16": (
        "--adjustForDLA --reportCapabilityDLA "
    ),
    "11.0": (
        "--includeDataTransfers --noCudaGraph --noSpinWait "
    ),
    "11.1": (
        "--accuracyAlgorithm --accuracyThreshold --atol --continue --dryRun "
        "--helpBuildRoute --loadRefOutputs --refPair --rtol --saveAllEngines "
        "--setBuildRoute --tuneBuildRouteFile --tuneBuildRoutes --tuningCacheFile "
        "--tuningResultFile --tuningSearch --tuningTimeOut "
    ),
    "11.5": (
        "--independentWeightLayouts --loadEngineSo --saveEngineSo "
    ),
}
"""Options by the release that added them; 8.0 includes earlier ones."""
_LAST = {
    "8.6": (
        "--batch --buildOnly --deploy --explicitBatch --explicitPrecision --heuristic "
        "--maxBatch --minTiming --model --nvtxMode --output --uff --uffInput --uffNHWC "
        "--workspace "
    ),
    "10.16": (
        "--best --bf16 --calib --calibProfile --fp16 --fp8 --int4 --layerOutputTypes "
        "--layerPrecisions --maxShapesCalib --minShapesCalib --optShapesCalib "
        "--precisionConstraints --restricted --weightless --int8 "
    ),
}
"""Options that later releases lack, by the last one that has them."""
# fmt: on


def version_of(text: str) -> Version:
    """Return a version such as ``10.16.1`` or ``11`` as two numbers."""
    parts = [int(part) if part.isdecimal() else 0 for part in text.split(".")[:2]]
    return (parts[0], parts[1] if len(parts) > 1 else 99)


SINCE: dict[str, Version] = {
    option: version_of(release) for release, options in _SINCE.items() for option in options.split()
}
LAST: dict[str, Version] = {
    option: version_of(release) for release, options in _LAST.items() for option in options.split()
}


def has_option(option: str, version: Version) -> bool:
    """Return whether the trtexec of a version has an option."""
    # No option went away within a major version.
    return SINCE.get(option, (99, 0)) <= version <= (LAST.get(option, (99, 0))[0], 99)


LEFT_OUT = "has no:"
"""Ends the words before the options that trtexec lacks."""
_NEVER = ("--batch", "--workspace", "--plugins", "--streams", "--output", "--best")
"""Spellings that mean something else in trtexec, or are old."""
DEFAULT_ON_IN_11 = {
    "use_cuda_graph": ("--useCudaGraph", "--noCudaGraph"),
    "spin_wait": ("--useSpinWait", "--noSpinWait"),
    "no_data_transfers": ("--noDataTransfers", "--includeDataTransfers"),
}
"""Settings that trtexec has on by default since 11, and the flags that turn them on and off."""

_DONE = ("model", "output", "memory_pools", "workspace", *SHAPES, *DEFAULT_ON_IN_11, "layer_passes")


def print_command(settings: BuildSettings, version: str = "10.16") -> str:
    """Return the command line of trtexec that does the same.

    Options that the trtexec of this version lacks stand in a comment at its end.

    Args:
        settings: What to build, and to measure when it has the settings of a measurement.
        version: The version of TensorRT, such as ``10.13`` or ``11.1``.
    """
    release = version_of(version)
    parts: list[str] = []
    lacking: list[str] = []
    for option, value in _options(settings, release):
        text = option if value is None else f"{option}={value}"
        (parts if has_option(option, release) else lacking).append(_quoted(text))
    lacking += [_quoted(text) for text in _own(settings, release)]
    command = " ".join(["trtexec", *parts])
    if lacking:
        command += f" # trtexec {release[0]} {LEFT_OUT} {' '.join(lacking)}"
    return command


def _options(settings: BuildSettings, release: Version) -> Iterator[tuple[str, str | None]]:
    """Return the options of trtexec with their values, for all versions."""
    if not isinstance(settings, RunSettings) or settings.prebuilt != settings.model:
        yield "--onnx", str(settings.model)
    elif settings.engine is None:
        yield "--loadEngine", str(settings.model)
    if isinstance(settings, MeasureSettings):
        if settings.output is not None:
            yield "--saveEngine", str(settings.output)
    else:
        yield "--saveEngine", str(settings.engine_path)
    yield from _profiles(settings, release)
    pools = [f"workspace:{_text(settings.workspace)}M"] if settings.workspace is not None else []
    if pools or settings.memory_pools:
        yield "--memPoolSize", ",".join([*pools, *settings.memory_pools])
    for setting in settings_of(type(settings)):
        if setting.name not in _DONE:
            yield from _option(setting, getattr(settings, setting.name))
    if isinstance(settings, MeasureSettings):
        yield from _measuring(settings, release)
    else:
        yield "--skipInference", None


def _profiles(settings: BuildSettings, release: Version) -> Iterator[tuple[str, str | None]]:
    profiles = settings.shape_profiles
    several = len(profiles) > 1 and has_option("--profile", release)
    for number, profile in enumerate(profiles if several else profiles[:1]):
        if several:
            yield "--profile", str(number)
        for name in SHAPES:
            if name in profile:
                yield f"--{name.split('_')[0]}Shapes", ",".join(profile[name])
    for number, profile in enumerate(() if several else profiles[1:], start=1):
        for name in SHAPES:
            if name in profile:
                text = with_profile(number, ",".join(profile[name]))
                yield f"--{name.replace('_', '-')}", text


def _measuring(settings: MeasureSettings, release: Version) -> Iterator[tuple[str, str | None]]:
    for name, (positive, negative) in DEFAULT_ON_IN_11.items():
        is_on = getattr(settings, name)
        if release >= (11, 0) and not is_on:
            yield negative, None
        elif release < (11, 0) and is_on:
            yield positive, None
    if settings.layer_passes != 0:
        yield "--dumpProfile", None
        if release < (11, 0):
            yield "--separateProfileRun", None


def _option(setting: Setting, value: Any) -> Iterator[tuple[str, str | None]]:
    """Return the option of one setting in trtexec; nothing when it has none."""
    always = setting.name == "verbosity"
    if value is None or (value == setting.default and not always):
        return
    for flag, meaning in setting.param.flags:
        if value == meaning and type(value) is type(meaning) and _is_known(flag):
            yield flag, None
            return
    option = trtexec_spelling(setting)
    if option is None or not _expressible(setting, value):
        return
    if setting.type is bool:
        if value:
            yield option, None
    elif typing.get_origin(setting.type) is tuple and setting.name.endswith("plugins"):
        yield from ((option, item) for item in value)
    elif typing.get_origin(setting.type) is tuple:
        yield option, ",".join(value)
    else:
        words = {ours: theirs for theirs, ours in setting.param.words}
        yield option, words.get(value, _text(value))


def _expressible(setting: Setting, value: Any) -> bool:
    if setting.name == "tactic_sources":
        return all(source[:1] in "+-" for source in value)
    return not (setting.type is bool and not value)


def trtexec_spelling(setting: Setting) -> str | None:
    """Return the option of trtexec for a setting, or None."""
    known = [option for option in setting.param.spellings if _is_known(option)]
    return known[-1] if known else None


def _is_known(option: str) -> bool:
    return option not in _NEVER and option in SINCE


def _own(settings: BuildSettings, release: Version) -> Iterator[str]:
    """Return the options that no trtexec has, in our spelling."""
    for setting in settings_of(type(settings)):
        value = getattr(settings, setting.name)
        if setting.name in _DONE and setting.name != "layer_passes":
            continue
        if value is None or value == setting.default or any(True for _ in _option(setting, value)):
            continue
        yield from _our_option(setting, value)


def _our_option(setting: Setting, value: Any) -> Iterator[str]:
    flag = setting.param.spellings[0]
    if setting.type is bool:
        yield flag if value else f"--no-{flag.removeprefix('--')}"
        return
    items: Iterable[Any] = value if isinstance(value, tuple) else (value,)
    yield from (f"{flag}={_text(item)}" for item in items)


def _quoted(text: str) -> str:
    """Return a word for a shell; names in single quotes stay readable."""
    if "'" in text and not any(char in text for char in '"$`!\\'):
        return f'"{text}"'
    return shlex.quote(text)


def _text(value: Any) -> str:
    if isinstance(value, float):
        return str(int(value)) if value == int(value) else repr(value)
    return str(value)


_MOST = 200_000
"""Characters of a command."""
_TOOLS = ("trtexec", "tensorrt_rtx", "polygraphy")
_OURS = "ours"
_RUNNING = re.compile(r"&&&& \w+ TensorRT\.trtexec \[TensorRT v(\d+)\](?: \[b\d+\])? # ")
_END = re.compile(r"\||&&|\|\||;|&|\d?>.*|<")
"""Words that begin another command in a shell."""
_MEANT = frozenset(
    (
        "--dumpProfile", "--separateProfileRun", "--skipInference", "--buildOnly",
        "--explicitBatch", "--trt", "--onnx",
    )
)  # fmt: skip
"""Options for what is always done here."""
_REPORTS = frozenset(
    (
        "--avgRuns", "--dumpLayerInfo", "--dumpOptimizationProfile", "--dumpRefit",
        "--exportProfile", "--exportTimes",
    )
)  # fmt: skip
"""Options about printing or writing what a report contains."""
_ELSEWHERE = {
    **dict.fromkeys(
        (
            "--tuneBuildRoutes", "--tuneBuildRouteFile", "--tuningSearch", "--tuningTimeOut",
            "--helpBuildRoute", "--dryRun",
        ),
        "dld routes searches build routes, with this option, too",
    ),
    **dict.fromkeys(
        ("--tuningCacheFile", "--continue", "--saveAllEngines", "--tuningResultFile"),
        "a search of dld routes goes on by itself where it was stopped",
    ),
    **dict.fromkeys(
        (
            "--loadRefOutputs", "--refPair", "--accuracyAlgorithm", "--accuracyThreshold", "--atol",
            "--rtol",
        ),
        "dld routes and dld accuracy compare with ONNX Runtime's results, by --tolerance",
    ),
}  # fmt: skip
"""Options of trtexec's tuner by what does the same here."""
_POLYGRAPHY_VALUES = frozenset(
    ("--convert-to", "--model-type", "--data-loader-script", "--save-inputs", "--save-outputs")
)


class ParsedCommand(NamedTuple):
    """The content of a command."""

    values: dict[str, JSON]
    """Settings by name, as in :class:`RunSettings`; those that the command does not set are
    missing."""
    notes: tuple[str, ...]
    """Notes about options that were left out, one sentence each. Untrusted text."""


class CommandWords(NamedTuple):
    """A command, taken apart."""

    tool: str
    version: str
    """From the head of a log; else empty."""
    words: list[str]
    left_out: list[str]
    """What our own command says beyond the tool's options."""
    notes: list[str]


def parse_command(text: str, version: str = "") -> ParsedCommand:
    """Return the settings of a command of trtexec or Polygraphy.

    Args:
        text: The command as it was typed, or the line of a log that repeats it.
        version: The version of TensorRT whose defaults hold; by default what the command shows.

    Raises:
        UsageError: It is no such command, or a value cannot be read.
    """
    command = command_words(text)
    reader = _Reader(command.tool)
    for word in command.notes:
        reader.notes.append(word)
    if _is_of_11(command, version):
        reader.values |= dict.fromkeys(DEFAULT_ON_IN_11, True)
    reader.read(plain_arguments(command.words))
    reader.tool = _OURS
    reader.read(plain_arguments(command.left_out))
    return reader.finished("--skipInference" in command.words or "--buildOnly" in command.words)


def for_build(parsed: ParsedCommand) -> ParsedCommand:
    """Return the build settings of a command: shapes to measure with become the optimal ones."""
    from dld_tui.core.tensorrt.settings import SHAPES, BuildSettings

    known = {setting.name for setting in settings_of(BuildSettings)}
    values = {name: value for name, value in parsed.values.items() if name in known}
    if "shape" in parsed.values and not any(name in values for name in SHAPES):
        values["opt_shapes"] = parsed.values["shape"]
    dropped = [name for name in parsed.values if name not in known and name != "shape"]
    flags = [setting_flag(name) for name in dropped if name not in DEFAULT_ON_IN_11]
    notes = parsed.notes
    if flags:
        notes = (*notes, f"{', '.join(flags)}: for dld profile tensorrt, not for a build")
    return ParsedCommand(values, notes)


def setting_flag(name: str) -> str:
    """Return our flag of a setting."""
    return next(s.param.spellings[0] for s in settings_of(RunSettings) if s.name == name)


def command_words(text: str) -> CommandWords:
    """Take a command apart.

    Raises:
        UsageError: It is no command of trtexec or Polygraphy.
    """
    if len(text) > _MOST:
        raise UsageError(f"the command is longer than {_MOST:,} characters")
    head = _RUNNING.search(text)
    version = _header_version(head[1]) if head else ""
    text = text[head.end() :] if head else text
    try:
        tokens = shlex.split(text.replace("\\\n", " ").replace("\\\r\n", " "))
    except ValueError as error:
        raise UsageError(f"the command cannot be read: {error}") from None
    if "#" in tokens:
        comment = tokens[tokens.index("#") + 1 :]
        tokens = tokens[: tokens.index("#")]
        marks = LEFT_OUT.split()
        is_ours = comment[2:4] == marks
        left_out = comment[4:] if is_ours else []
    else:
        left_out = []
    tool, words = _tool(tokens)
    notes = []
    for at, word in enumerate(words):
        if _END.fullmatch(word):
            notes.append(f"what follows {word!r} is left out")
            words = words[:at]
            break
    return CommandWords(tool, version, words, left_out, notes)


def _header_version(digits: str) -> str:
    """Return the version of ``101601`` or ``8601``: two digits each but for the first number."""
    number = int(digits[:9])
    if number >= 100_000:
        return f"{number // 10_000}.{number // 100 % 100}"
    return f"{number // 1000}.{number // 100 % 10}"


def _tool(tokens: list[str]) -> tuple[str, list[str]]:
    for at, token in enumerate(tokens):
        name = PurePath(token).name.removesuffix(".exe")
        if name == "polygraphy":
            if tokens[at + 1 : at + 2] not in (["convert"], ["run"]):
                raise UsageError("only polygraphy convert and polygraphy run build engines")
            return name, tokens[at + 2 :]
        if name in _TOOLS:
            return "trtexec", tokens[at + 1 :]
        if token.startswith("--"):
            return "trtexec", tokens[at:]
    raise UsageError("not a command of trtexec or polygraphy", hint='Write "trtexec --onnx=…"')


def _is_of_11(command: CommandWords, version: str) -> bool:
    version = version or command.version
    if version:
        return version_of(version) >= (11, 0)
    options = {word.partition("=")[0] for word in command.words}
    return any(off in options for _, off in DEFAULT_ON_IN_11.values())


@lru_cache(maxsize=1)
def _settings() -> Mapping[str, Setting]:
    settings = {}
    for setting in settings_of(RunSettings):
        settings.update({spelling: setting for spelling in setting.param.spellings})
    return MappingProxyType(settings)


class _Reader:
    """Reads plain arguments into values."""

    def __init__(self, tool: str) -> None:
        self.tool = tool
        self.values: dict[str, JSON] = {}
        self.notes: list[str] = []
        self._set: set[str] = set()
        self._flags: set[str] = set()
        self._others: list[str] = []

    def read(self, arguments: list[str]) -> None:
        """Read arguments."""
        waiting = list(arguments)
        while waiting:
            word = waiting.pop(0)
            option, equals, value = word.partition("=")
            if not word.startswith("-") or word == "-":
                self._others.append(word)
            elif (setting := self._setting(option)) is not None:
                if setting.type is bool:
                    self._switch(setting, option, value if equals else "true")
                    continue
                if not equals:
                    if not waiting or waiting[0].startswith("--"):
                        raise UsageError(f"{option} has no value")
                    value = waiting.pop(0)
                self._put(setting, option, value)
            elif self._is_flag(option):
                self._flags.add(option)
            else:
                self._unknown(option)
                if option in _POLYGRAPHY_VALUES and not equals and waiting:
                    waiting.pop(0)

    def _setting(self, option: str) -> Setting | None:
        if self.tool == "polygraphy" and option in ("-o", "--output"):
            option = "--saveEngine"
        if self.tool == "trtexec" and option in ("-o", "--output"):
            return None
        if option in ("-v", "-vv"):
            option = "--verbose"
        setting = _settings().get(option)
        if setting is None and option.startswith("--no-"):
            setting = _settings().get(f"--{option.removeprefix('--no-')}")
            setting = setting if setting is not None and setting.type is bool else None
        return setting

    def _is_flag(self, option: str) -> bool:
        return any(option == flag for s in settings_of(RunSettings) for flag, _ in s.param.flags)

    def _switch(self, setting: Setting, option: str, value: str) -> None:
        is_on = value.lower() not in ("false", "0", "off")
        negative = option not in setting.param.spellings and option.startswith("--no-")
        self._set.add(setting.name)
        self.values[setting.name] = is_on != negative

    def _put(self, setting: Setting, option: str, text: str) -> None:
        if setting.name == "batch" and self.tool == "trtexec":
            self.notes.append(
                "--batch: an implicit batch is gone since 10; here it is the size of"
                " a first dimension that is open"
            )
        if typing.get_origin(setting.type) is tuple:
            items = self.values.setdefault(setting.name, [])
            assert isinstance(items, list)
            items.append(text)
            return
        value: JSON = text
        if setting.param.choices:
            value = word_of(setting, text)
        elif setting.type in (int, float):
            try:
                value = setting.type(text)
            except ValueError:
                raise UsageError(f"{option} is {text!r}, which is not a number") from None
        if problem := problem_with(setting, value):
            raise UsageError(f"{option} is {problem}")
        self._set.add(setting.name)
        self.values[setting.name] = value

    def _unknown(self, option: str) -> None:
        shown = clip(visible(option), 60)
        if option in _MEANT:
            return
        if option in _REPORTS:
            self.notes.append(f"{shown}: the report and the layer information hold this")
        elif option in _ELSEWHERE:
            self.notes.append(f"{shown}: {_ELSEWHERE[option]}")
        elif self.tool == "trtexec" and option not in SINCE:
            self.notes.append(f"{shown}: trtexec has no such option")
        else:
            self.notes.append(f"{shown}: not a setting here, left out")

    def finished(self, only_build: bool) -> ParsedCommand:
        """Return all that was read."""
        for setting in settings_of(RunSettings):
            for flag, meaning in setting.param.flags:
                if flag in self._flags and setting.name not in self._set:
                    self.values[setting.name] = meaning
        self._take_model()
        model, output = self.values.get("model"), self.values.get("output")
        if only_build and model and output == f"{PurePath(str(model)).stem}.engine":
            del self.values["output"]
        return ParsedCommand(self.values, tuple(dict.fromkeys(self.notes)))

    def _take_model(self) -> None:
        models = [word for word in self._others if word.lower().endswith(".onnx")]
        models += [word for word in self._others if word not in models]
        if models:
            self.values["model"] = models[0]
        elif "engine" in self.values:
            self.values["model"] = self.values["engine"]
        for word in models[1:]:
            self.notes.append(f"{clip(visible(word), 60)!r} is not an option, left out")


def word_of(setting: Setting, text: str) -> str:
    """Return the choice that a word means, or the word itself."""
    words = {word.lower(): choice for word, choice in setting.param.words}
    words |= {choice.lower(): choice for choice in setting.param.choices}
    return words.get(text.lower(), text)


_FP16 = (
    "precision is part of the ONNX graph: write it with `dld convert fp16`, or set precisions on"
    " layers and build with `dld build`, which puts the casts in a copy"
)
_QUANTIZE = "quantize the ONNX graph with QuantizeLinear and DequantizeLinear beforehand"
_SHAPES = "give the ranges to --minShapes, --optShapes and --maxShapes alone"
_NO_CALIBRATION = f"calibration was removed: {_QUANTIZE}"
_NETWORK = "only ONNX models are read"
_INSTEAD = {
    "--fp16": _FP16,
    "--bf16": "precision is part of the ONNX graph: set bf16 on layers and build with `dld build`",
    "--int8": _QUANTIZE,
    "--fp8": _QUANTIZE,
    "--int4": _QUANTIZE,
    "--best": f"each type must be in the ONNX graph: {_FP16}; {_QUANTIZE}",
    "--calib": _NO_CALIBRATION,
    "--calibProfile": _NO_CALIBRATION,
    "--minShapesCalib": _SHAPES,
    "--optShapesCalib": _SHAPES,
    "--maxShapesCalib": _SHAPES,
    "--precisionConstraints": "the types of the ONNX graph always hold",
    "--layerPrecisions": "set the precision on the layers of the model; `dld build` then puts the"
    " casts in a copy",
    "--layerOutputTypes": "put Cast nodes after the layers",
    "--weightless": "now --stripWeights",
    "--workspace": "now --memPoolSize=workspace:SIZE, in MiB",
    "--batch": "the batch is a dimension: give it with --shapes",
    "--maxBatch": "the batch is a dimension: give it with --maxShapes",
    "--explicitBatch": "always so; leave it out",
    "--explicitPrecision": "always so; leave it out",
    "--buildOnly": "now --skipInference",
    "--nvtxMode": "now --profilingVerbosity",
    "--minTiming": "use --avgTiming",
    "--heuristic": "use --builderOptimizationLevel=2",
    "--deploy": _NETWORK,
    "--model": _NETWORK,
    "--output": _NETWORK,
    "--uff": _NETWORK,
    "--uffInput": _NETWORK,
    "--uffNHWC": _NETWORK,
}
_RENAMED = ("--weightless", "--workspace", "--buildOnly", "--nvtxMode")
_CHANGED_IN_11 = {
    "--stronglyTyped": "always so now; leave it out",
    "--plugins": "deprecated: use --staticPlugins",
    "--streams": "deprecated: use --infStreams",
    "--directIO": "deprecated",
    "--separateProfileRun": "always so now; leave it out",
    "--allowWeightStreaming": "works without --stronglyTyped",
    "--tacticSources": "cuDNN, cuBLAS and cuBLAS-LT were removed as sources",
    "--inputIOFormats": "the type must be that of the graph's input; the format is free",
    "--outputIOFormats": "the type must be that of the graph's output; the format is free",
}
_DEFAULTS_IN_11 = {
    "use_cuda_graph": "a CUDA graph is used by default",
    "spin_wait": "spin wait is on by default",
    "no_data_transfers": "inputs and outputs are not copied by default: latency is without copies",
}


@dataclass(frozen=True)
class OptionChange:
    """What became of one option."""

    option: str
    """Untrusted text."""
    status: str
    """``kept``, ``changed``, ``renamed``, ``removed``, ``default``, ``newer`` or ``unknown``."""
    text: str


def explain(text: str, version: str = "11") -> list[OptionChange]:
    """Return the effect of a command in a version of trtexec: a line per option, then defaults.

    Args:
        text: A command of trtexec of any version from 8.
        version: The version that would run it.

    Raises:
        UsageError: It is not a command of trtexec.
    """
    command = command_words(text)
    release = version_of(version)
    options = [word.partition("=")[0] for word in command.words if word.startswith("-")]
    lines = [_explained(option, release) for option in dict.fromkeys(options)]
    if release >= (11, 0):
        lines += _defaults(options)
    return lines


def _explained(option: str, release: Version) -> OptionChange:
    shown = clip(visible(option), 60)
    if option not in SINCE:
        return OptionChange(shown, "unknown", "trtexec has no such option")
    if SINCE[option] > release:
        return OptionChange(shown, "newer", f"only since {_release_text(SINCE[option])}")
    if not has_option(option, release):
        status = "renamed" if option in _RENAMED else "removed"
        instead = _INSTEAD.get(option, "nothing replaces it")
        return OptionChange(
            shown, status, f"removed after {_release_text(LAST[option])}: {instead}"
        )
    if release >= (11, 0):
        positive = {on: _DEFAULTS_IN_11[name] for name, (on, _) in DEFAULT_ON_IN_11.items()}
        if option in positive:
            return OptionChange(shown, "changed", f"{positive[option]}; leave it out")
        if option in _CHANGED_IN_11:
            return OptionChange(shown, "changed", _CHANGED_IN_11[option])
    return OptionChange(shown, "kept", "")


def _defaults(options: list[str]) -> list[OptionChange]:
    """Return the defaults that a command gets in version 11."""
    lines = []
    for name, (positive, negative) in DEFAULT_ON_IN_11.items():
        if positive not in options and negative not in options:
            text = f"{_DEFAULTS_IN_11[name]}; add this option for figures like those of 10"
            lines.append(OptionChange(negative, "default", text))
    if "--separateProfileRun" not in options and "--dumpProfile" in options:
        text = "layers are always measured in a run of their own"
        lines.append(OptionChange("--separateProfileRun", "default", text))
    return lines


def _release_text(version: Version) -> str:
    return f"{version[0]}.{version[1]}"


__all__ = [
    "OptionChange",
    "ParsedCommand",
    "explain",
    "for_build",
    "parse_command",
    "print_command",
]
