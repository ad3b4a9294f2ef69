"""Arguments as trtexec and Polygraphy take them, normalised to one value per option.

Both the command line of ``dld build`` and pasted commands pass through :func:`plain_arguments`;
its output matches the declaration of the settings.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence

from dld_tui.core.errors import UsageError
from dld_tui.core.model.inputs.shape_texts import Shape, shape_text, shapes_in
from dld_tui.core.text import clip, shortened, visible

_SIZE = re.compile(
    r"(?P<number>\d+(?:\.\d*)?(?:E[+-]?\d+)?|\.\d+)\s*(?P<suffix>[KMG]|)(?P<bytes>I?B)?"
)
_UUID = re.compile(r"(?:MIG|GPU)-[\w/-]+")
_MEBIBYTES = {"": 1.0, "K": 2.0**-10, "M": 1.0, "G": 2.0**10}


def split_items(text: str) -> list[str]:
    """Return the items of a list whose commas outside of brackets and quotes separate.

    Single quotes are how trtexec takes names that hold a comma or a colon; they stay.
    """
    items, item, depth, quoted = [], "", 0, False
    for char in text:
        quoted ^= char == "'"
        depth += (char == "[") - (char == "]")
        if char == "," and depth <= 0 and not quoted:
            items.append(item.strip())
            item = ""
        else:
            item += char
    items.append(item.strip())
    return [item for item in items if item]


def named_value(item: str) -> tuple[str, str]:
    """Return name and value of ``NAME:VALUE``; names may hold colons, and be in single quotes.

    Raises:
        UsageError: There is no colon, or no name before it.
    """
    name, colon, value = item.rpartition(":")
    name = name.strip()
    if len(name) > 1 and name[0] == name[-1] == "'":
        name = name[1:-1]
    if not colon or not name:
        raise UsageError(f"{item!r} is not NAME:VALUE")
    return name, value.strip()


def mebibytes(text: str) -> float:
    """Return a size in MiB, as trtexec takes it: ``1024``, ``1G``, ``512K``, ``65536B``.

    Raises:
        UsageError: It is no size.
    """
    match = _SIZE.fullmatch(text.strip().upper())
    if match is None:
        raise UsageError(f"{text!r} is not a size", hint="Write 1024M, 1G or 0.5G")
    unit = 2.0**-20 if match["bytes"] and not match["suffix"] else _MEBIBYTES[match["suffix"]]
    return float(match["number"]) * unit


def device_text(device: str | int) -> str:
    """Return a device: a number, or the UUID of a GPU or of a part of one.

    Raises:
        UsageError: It is neither.
    """
    text = str(device).strip()
    if text.isdecimal():
        return str(int(text))
    if _UUID.fullmatch(text):
        return text
    raise UsageError(
        f"--device {text!r} is not a number", hint="Write 0, 1, …, MIG-UUID or GPU-UUID"
    )


MOST_PROFILES = 256
_PROFILE = re.compile(r"profile=(\d{1,4});")


def with_profile(number: int, text: str) -> str:
    """Return a text of shapes that says which profile it is of, from 0."""
    return f"profile={number};{text}"


def split_profile(text: str) -> tuple[int | None, str]:
    """Return (profile or None, the shapes) of a text."""
    match = _PROFILE.match(text)
    return (int(match[1]), text[match.end() :]) if match else (None, text)


def parse_profile_shapes(
    texts: Iterable[str], names: Collection[str] | None, flag: str
) -> list[dict[str, Shape]]:
    """Return the shapes by input name, one dictionary a profile.

    An input that comes again begins the next profile. Names may hold one ``*``.

    Args:
        texts: What the user gave.
        names: The inputs of the model; None when they are not known.
        flag: The option, for errors.

    Raises:
        UsageError: A text is not a shape, or a name is not one of `names`.
    """
    profiles: list[dict[str, Shape]] = []
    current = 0
    for text in texts:
        number, shapes = split_profile(text)
        if number is not None:
            current = number
        if current >= MOST_PROFILES:
            raise UsageError(f"{flag}: profile {current} is too much; 0 to {MOST_PROFILES - 1}")
        for name, shape in shapes_in(shapes, flag, are_values=True):
            for known in _known(name.strip(), names, flag):
                if current < len(profiles) and known in profiles[current]:
                    if number is not None:
                        raise UsageError(
                            f"{flag} gives input {shortened(known)} twice in profile {current}"
                        )
                    current += 1
                profiles += [{} for _ in range(current + 1 - len(profiles))]
                profiles[current][known] = shape
    return profiles


def plain_texts(texts: Iterable[str], flag: str) -> tuple[str, ...]:
    """Return texts of shapes in the one plain form: one input a text, as trtexec takes it.

    Raises:
        UsageError: A text is not a shape.
    """
    profiles = parse_profile_shapes(texts, None, flag)
    if len(profiles) == 1:
        return _texts(profiles[0])
    numbered = enumerate(map(_texts, profiles))
    return tuple(with_profile(number, text) for number, shapes in numbered for text in shapes)


def _texts(shapes: Mapping[str, Shape]) -> tuple[str, ...]:
    return tuple(f"{_quoted(name)}:{shape_text(shape)}" for name, shape in shapes.items())


def _quoted(name: str) -> str:
    return f"'{name}'" if ":" in name or "," in name else name


def _known(name: str, names: Collection[str] | None, flag: str) -> list[str]:
    bare = name[1:-1] if len(name) > 2 and name[0] == name[-1] and name[0] in "'\"" else name
    if names is None:
        return [bare]
    for candidate in (name, bare):
        if candidate in names:
            return [candidate]
    if bare.count("*") == 1:
        start, _, end = bare.partition("*")
        candidates = [n for n in names if len(n) >= len(start + end) and n.startswith(start)]
        if matching := [n for n in candidates if n.endswith(end)]:
            return matching
    listed = ", ".join(map(shortened, list(names)[:20])) or "none"
    raise UsageError(
        f"{flag} names {clip(visible(name), 60)!r}, which is not an input of the model",
        hint=f"Its inputs: {listed}",
    )


SHAPE_OPTIONS = frozenset(
    (
        "--min-shapes", "--minShapes", "--trt-min-shapes", "--opt-shapes", "--optShapes",
        "--trt-opt-shapes", "--max-shapes", "--maxShapes", "--trt-max-shapes",
    )
)  # fmt: skip
_NAMED = re.compile(r"[^-].*:.*")
_WORD = re.compile(r"\+?[A-Za-z]\w*|-[A-Z_]{3,}")
_NUMBERS = re.compile(r"\d+\.\d+")
_LIBRARY = re.compile(r"[^-].*\.(so|dll)[\d.]*")
_SEVERAL = {
    "--trt-min-shapes": _NAMED,
    "--trt-opt-shapes": _NAMED,
    "--trt-max-shapes": _NAMED,
    "--input-shapes": _NAMED,
    "--pool-limit": _NAMED,
    "--memory-pool-limit": _NAMED,
    "--layer-precisions": _NAMED,
    "--tactic-sources": _WORD,
    "--preview-features": _WORD,
    "--compute-capabilities": _NUMBERS,
    "--plugins": _LIBRARY,
    "--tiling-optimization-level": _WORD,
}
"""Polygraphy's options that take several values, and what these look like."""
_EMPTY = {"--tactic-sources": "NONE"}
"""What an option without a value means."""
_TILING = {"none": "0", "fast": "1", "moderate": "2", "full": "3"}
_BYTES = re.compile(r"[\d.]+(?:[eE][+-]?\d+)?")


def plain_arguments(arguments: Sequence[str]) -> list[str]:
    """Return arguments with one value per option, as ``--option=value``.

    ``--profile=N`` is added to the shapes that follow it, ``--onnx=MODEL`` becomes the model, lists
    of Polygraphy become repeated options, and its sizes in bytes get a unit.

    Raises:
        UsageError: ``--profile`` has no number, or a size cannot be read.
    """
    plain: list[str] = []
    profile: int | None = None
    waiting = list(arguments)
    while waiting:
        argument = waiting.pop(0)
        if argument == "--":
            return [*plain, argument, *waiting]
        option, equals, value = argument.partition("=")
        values = [value] if equals else _following(option, waiting)
        if option in ("--profile", "--onnx") and not values and waiting:
            values = [waiting.pop(0)]
        if option == "--profile":
            profile = _profile(values)
        elif option == "--onnx" and values:
            plain += values
        elif option in SHAPE_OPTIONS and profile is not None and values:
            plain += [f"{option}={with_profile(profile, value)}" for value in values]
        elif values:
            plain += [f"{option}={_plain(option, value)}" for value in values]
        else:
            plain.append(argument)
    return plain


def _following(option: str, waiting: list[str]) -> list[str]:
    """Take the values after an option that takes several; empty for other options."""
    form = _SEVERAL.get(option)
    if form is None:
        if option in SHAPE_OPTIONS and waiting and not waiting[0].startswith("--"):
            return [waiting.pop(0)]
        return []
    following = []
    while waiting and form.fullmatch(waiting[0]):
        following.append(waiting.pop(0))
    if not following and option in _EMPTY:
        following.append(_EMPTY[option])
    return following


def _profile(values: Sequence[str]) -> int:
    text = values[0] if values else ""
    if not text.isdecimal() or len(text) > 4 or int(text) >= MOST_PROFILES:
        raise UsageError(f"--profile {text!r} is not a number from 0 to {MOST_PROFILES - 1}")
    return int(text)


def _plain(option: str, value: str) -> str:
    if option in ("--pool-limit", "--memory-pool-limit"):
        # Polygraphy counts bytes where trtexec counts mebibytes.
        pool, _, size = value.rpartition(":")
        return f"{pool}:{size}B" if _BYTES.fullmatch(size) else value
    if option == "--workspace" and not _BYTES.fullmatch(value):
        return repr(mebibytes(value))
    if option in ("--tilingOptimizationLevel", "--tiling-optimization-level"):
        return _TILING.get(value.lower(), value)
    return value
