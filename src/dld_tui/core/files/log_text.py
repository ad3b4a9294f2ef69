"""The lines that a program wrote, out of what logging systems wrap around them."""

from __future__ import annotations

import json
import re

_COLOUR = re.compile(r"\x1b\[[0-9;:?]*[ -/]*[@-~]")
_TIME = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:[.,]\d+)?(?:Z|[+-]\d\d:?\d\d)"
_CRI = re.compile(rf"{_TIME} (?:stdout|stderr) ([FP]) ?")
"""Of a container runtime of Kubernetes; ``P`` marks a line that goes on in the next one."""
_PREFIXES = (
    re.compile(r"\[pod/[^\]\s]+\] "),  # kubectl logs --prefix
    re.compile(r"[\w.-]+ +\| ?"),  # docker compose logs
    _CRI,
    re.compile(rf"{_TIME} "),  # docker logs --timestamps, GitHub Actions
    re.compile(r"[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d \S+ [^\s:]+: "),  # journalctl
    re.compile(r"\d+: "),  # srun --label
)
_JSON_LINE = re.compile(r'\s*\{\s*"log"\s*:\s*"')
"""Of Docker's own files."""
_LOOKED_AT = 50
"""Lines that have to begin alike."""


def unwrapped(text: str) -> str:
    """Return a log without colours and without what each line was given in front.

    Known are Docker (its files, ``logs --timestamps``, ``compose logs``), Kubernetes, GitHub
    Actions, journalctl and ``srun --label``.
    """
    if "\x1b[" in text:
        text = _COLOUR.sub("", text)
    if _JSON_LINE.match(text):
        text = "".join(map(_logged, text.splitlines()))
    for prefix in _PREFIXES:
        begins = [line for line in text[: 1 << 16].splitlines()[:_LOOKED_AT] if line.strip()]
        if not begins or not all(prefix.match(line) for line in begins):
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
    goes_on = prefix is _CRI and match[1] == "P"
    return line[match.end() :] + ("" if goes_on else "\n")
