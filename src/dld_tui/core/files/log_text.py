"""The lines that a program wrote, out of what logging systems wrap around them."""

from __future__ import annotations

import json
import re

from dld_tui.core.text import without_escapes

_TIME = r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d+)?(?: ?(?:Z|[+-]\d\d:?\d\d))?"
_DAY = r"[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d"
_CRI = rf"{_TIME} (?:stdout|stderr) ([FP]) ?"
"""Of a container runtime of Kubernetes; ``P`` marks a line that goes on in the next one."""
_PREFIXES = (
    r"\[pod/[^\]\s]+\] ",  # kubectl logs --prefix
    r"[\w.-]+ +\| ?",  # docker compose logs
    r"#\d+ \d+\.\d+ ",  # docker build --progress plain
    _CRI,
    rf"{_TIME} \d\d[OE][ +]",  # GitLab
    rf"(?:{_TIME}|{_DAY}) \S+ [^\s:]+\[\d+\]: ",  # journalctl
    rf"{_DAY} \S+ [^\s:]+: ",
    rf"\[{_TIME}\] ",  # Jenkins
    rf"(?:{_TIME}|{_DAY}) ",  # docker logs --timestamps, GitHub Actions, ts
    r"\[\d+,\d+\]<std\w+>: ?",  # mpirun --tag-output
    r"\d+: ",  # srun --label
)
_JSON_LINE = (
    r'\s*\{(?:\s*"log"\s*:\s*"|(?=[^\n]*"stream"\s*:\s*"std(?:out|err)")[^\n]*"log"\s*:\s*")'
)
"""Of Docker's own files."""
_LOOKED_AT = 50
"""Lines of which most have to begin alike: a line of the tool that collected them may be first."""


def unwrapped(text: str) -> str:
    """Return a log without colours and without what each line was given in front.

    Known are Docker (its files, ``logs --timestamps``, ``compose logs``, builds), Kubernetes,
    GitHub Actions, GitLab, Jenkins, journalctl, ``ts``, ``mpirun`` and ``srun``.
    """
    text = without_escapes(text)
    if re.match(_JSON_LINE, text):
        text = "".join(map(_logged, text.splitlines()))
    for prefix in map(re.compile, _PREFIXES):
        begins = [line for line in text[: 1 << 16].splitlines()[:_LOOKED_AT] if line.strip()]
        if sum(prefix.match(line) is not None for line in begins) <= 0.8 * len(begins):
            continue
        text = "".join(_without(prefix, line) for line in text.splitlines())
    return text


def _logged(line: str) -> str:
    """Return what a line of Docker's file has; nothing where it is damaged or cut."""
    try:
        value = json.loads(line)
    except ValueError:
        return ""
    logged = value.get("log") if isinstance(value, dict) else None
    return logged if isinstance(logged, str) else ""


def _without(prefix: re.Pattern[str], line: str) -> str:
    match = prefix.match(line)
    if match is None:
        return f"{line}\n"
    goes_on = prefix.pattern == _CRI and match[1] == "P"
    return line[match.end() :] + ("" if goes_on else "\n")
