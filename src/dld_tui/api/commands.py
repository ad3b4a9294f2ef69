"""Commands that run jobs, as functions: their arguments are the settings of the request.

``dld profile tensorrt`` is ``profile_tensorrt``, ``dld convert fp16`` is ``convert_fp16``.
Signatures and help come from the requests; ``commands.pyi`` repeats them for editors and type
checkers (``python -m scripts.library_stubs`` writes it).
"""

from __future__ import annotations

import functools
import inspect
import textwrap
import typing
from collections.abc import Callable, Iterator
from difflib import get_close_matches
from inspect import Parameter
from pathlib import Path
from typing import Any

from dld_tui.activities import registry
from dld_tui.activities.registry import Activity
from dld_tui.api.requests import report_setting, run_activity
from dld_tui.core.params import Setting, settings_of


def activities() -> dict[str, str]:
    """Return the activity of each function, those that packages add included."""
    names: dict[str, str] = {}
    for about in registry.activities():
        if _is_command(about):
            # What is an option of another command is a function of its own.
            names[about.id if _name(about) in names else _name(about)] = about.id
    return names


def _is_command(about: Activity) -> bool:
    # `gate` of :mod:`.runs` can also tell its progress, and measure commands.
    return about.id != "gate" and (about.command is not None or about.id == "doctor")


def _name(about: Activity) -> str:
    words = about.command.words if about.command is not None else (about.id,)
    words = words[1:] if words[0] == "run" else words
    if about.id == "profile_onnxruntime":
        return "profile"
    if any(word.startswith("-") for word in words):
        return about.id
    return "_".join(words).replace("-", "_")


def __dir__() -> list[str]:
    return sorted(activities())


@functools.cache
def __getattr__(name: str) -> Callable[..., Any]:
    if name not in activities():
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return _function(name, registry.load(activities()[name]))


def _function(name: str, activity: Activity) -> Callable[..., Any]:
    signature = signature_of(activity)

    def function(*values: Any, **settings: Any) -> Any:
        for key in settings.keys() - signature.parameters.keys():
            matches = get_close_matches(key, signature.parameters, 1)
            hint = f"; did you mean {matches[0]!r}?" if matches else f"; help({name}) lists all"
            raise TypeError(f"{name}() has no argument {key!r}{hint}")
        try:
            given = signature.bind(*values, **settings).arguments
        except TypeError as error:
            raise TypeError(f"{name}() is {error}") from None
        about = {key: given.pop(key) for key in ("target", "force", "progress") if key in given}
        return run_activity(activity.id, given, **about)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = documentation(activity)
    function.__signature__ = signature  # type: ignore[attr-defined]
    return function


def signature_of(activity: Activity) -> inspect.Signature:
    """Return the signature of a function: what stands without a flag, then keywords."""
    settings = [s for s in settings_of(activity.request) if not s.param.internal]
    positional = [s for s in settings if s.param.positional]
    is_optional = False
    parameters = []
    for setting in [*positional, *(s for s in settings if not s.param.positional)]:
        by_place = setting.param.positional and not is_optional
        is_optional = is_optional or not setting.required
        parameters.append(
            Parameter(
                setting.name,
                Parameter.POSITIONAL_OR_KEYWORD if by_place else Parameter.KEYWORD_ONLY,
                default=Parameter.empty if setting.required else setting.default,
                annotation=annotation(setting),
            )
        )
    parameters += [
        Parameter("target", Parameter.KEYWORD_ONLY, default=None, annotation="str | None"),
        Parameter("force", Parameter.KEYWORD_ONLY, default=False, annotation="bool"),
        Parameter("progress", Parameter.KEYWORD_ONLY, default=None, annotation="Progress | None"),
    ]
    return inspect.Signature(parameters, return_annotation=returned(activity))


def annotation(setting: Setting) -> str:
    """Return the type of an argument."""
    about = setting.param
    if typing.get_origin(setting.type) is tuple:
        is_path = typing.get_args(setting.type)[0] is Path
        kind = "str | Path" if is_path else "str"
        text = f"{kind} | Sequence[{kind}]"
        if any(sign in about.metavar for sign in ":="):
            text += " | Mapping[str, Any]"
        return text
    if setting.type is Path:
        text = "str | Path"
        text += " | Document" if setting.name == "model" else ""
        text += " | Mapping[str, Any]" if about.kind == "folder" else ""
    elif about.choices:
        text = f"Literal[{', '.join(map(repr, about.choices))}]"
    else:
        text = setting.type.__name__
        text += " | float | Sequence[str | float]" if setting.type is str else ""
    return f"{text} | None" if setting.optional else text


def returned(activity: Activity) -> str:
    """Return the type of the result; a report is opened."""
    result = activity.result
    kinds = typing.get_args(result) or (result,)
    if report_setting(activity.request) is not None:
        return "Report"
    return " | ".join(map(_name_of, kinds))


def _name_of(kind: type[Any]) -> str:
    """Return the name of a result: with its module where that alone says of what it is."""
    is_vague = kind.__name__ == "Result"
    return f"{kind.__module__}.{kind.__name__}" if is_vague else kind.__name__


def documentation(activity: Activity) -> str:
    """Return the help of a function: the command's own, and that of its settings."""
    return "\n".join([
        activity.help, "",
        "Args:", *_arguments(activity), "",
        "Raises:",
        "    DldError: A setting is wrong, a file exists, or the job failed.",
        "    TypeError: There is no such setting, or one is missing.",
    ])  # fmt: skip


def _arguments(activity: Activity) -> Iterator[str]:
    params = {setting.name: setting.param for setting in settings_of(activity.request)}
    for name, parameter in signature_of(activity).parameters.items():
        about = params.get(name)
        text = _SHARED[name] if about is None else about.help
        unit = f" In {about.unit}." if about is not None and about.unit else ""
        says_nothing = parameter.default in (Parameter.empty, None, (), "")
        default = "" if says_nothing else f" Default: {parameter.default!r}."
        yield from textwrap.wrap(
            f"{name}: {text}{unit}{default}", 92, initial_indent="    ",
            subsequent_indent="        ",
        )  # fmt: skip


_SHARED = {
    "target": "Where to run it, as `dld target list` names it; this machine by default.",
    "force": "Replace files that exist.",
    "progress": "Called with each stage of the job and each line of its log, such as `print`.",
}
