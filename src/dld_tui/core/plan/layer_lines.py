"""Layers as lines of text: the inspector's ``ONELINE`` form, and the verbose build log.

Both become the objects that the inspector's JSON has.
"""

from __future__ import annotations

import re

from dld_tui.core.types import JSON

_HEAD = re.compile(r"Name: (?P<name>.*?), LayerType: (?P<type>[^,]*)(?P<rest>.*)$", re.DOTALL)
_LIST_NAMES = ("Inputs", "Outputs", "Constants")
_LIST_END = re.compile(r"\}\s*\]")
_BETWEEN = re.compile(r"\}\s*,\s*\{")
_FORMATS = (", Format/Datatype: ", ", Format/DataType: ")
_PAIR = re.compile(r", (?=[A-Z][A-Za-z/]*:(?: |$))")
_NUMBERS = re.compile(r"-?\d+")
_COUNTED = re.compile(r'\{"Type": "([^"]*)", "Count": (\d+)\}')

_VERBOSE = re.compile(
    r"Layer\((?P<type>[^)]*)\): (?P<name>.*), Tactic: (?P<tactic>[^,]*), (?P<io>.*)$"
)
_VALUE_TYPE = re.compile(
    r" ?\((?P<new>\w{1,16})\[(?P<new_dims>[^\]]{0,400})\]\)"
    r"|\[(?P<old>\w{1,16})\((?P<old_dims>[^)]{0,400})\)\]"
)
_LONGEST = 32_000
LAYER_START = re.compile(r"(?:Name: .*, LayerType: |Layer\(\w*\): )")
"""How such a line begins."""


def layer_of_line(line: str) -> dict[str, JSON] | None:
    """Return the object of a line; None when it is of no layer."""
    if len(line) > _LONGEST:
        return None
    if line.startswith("Layer("):
        return _verbose(line)
    head = _HEAD.match(line)
    if head is None:
        return None
    layer: dict[str, JSON] = {"Name": head["name"], "LayerType": head["type"]}
    rest = head["rest"]
    for name in _LIST_NAMES:
        found, rest = _cut_list(rest, name)
        if found is not None:
            layer[name] = found
    for pair in _PAIR.split(rest):
        key, colon, value = pair.removeprefix(", ").partition(":")
        if colon and key:
            layer[key] = _value(value.removeprefix(" "))
    return layer


# Foreign text of any length goes through these, so nothing in them searches twice.
def _cut_list(text: str, name: str) -> tuple[list[JSON] | None, str]:
    """Return the tensors of a list and the text without it; None where there is no such list."""
    before, found, after = text.partition(f", {name}: [")
    if not found:
        return None, text
    if after.startswith("]"):
        return [], before + after[1:]
    end = _LIST_END.search(after)
    if end is None:
        return None, text
    pieces = _BETWEEN.split(after[: end.start()].strip().removeprefix("{"))
    return [_tensor(piece.strip()) for piece in pieces], before + after[end.end() :]


def _tensor(text: str) -> JSON:
    form = ""
    for key in _FORMATS:
        head, found, tail = text.rpartition(key)
        if found:
            text, form = head, tail
            break
    text, _, dims = text.rpartition(", Dimensions: [")
    name, found, location = text.rpartition(", Location: ")
    tensor: dict[str, JSON] = {"Name": (name if found else text).removeprefix("Name: ")}
    if found:
        tensor["Location"] = location
    tensor["Dimensions"] = _dims(dims)
    tensor["Format/Datatype"] = form.strip()
    return tensor


def _value(text: str) -> JSON:
    counted = _COUNTED.fullmatch(text)
    if counted:
        return {"Type": counted[1], "Count": int(counted[2][:18])}
    if re.fullmatch(r"-?\d{1,18}", text):
        return int(text)
    if re.fullmatch(r"\[[-\d, ]*\]", text):
        return _dims(text)
    return text


def _dims(text: str) -> list[JSON]:
    return [int(number) for number in _NUMBERS.findall(text) if len(number) < 19]


def _verbose(line: str) -> dict[str, JSON] | None:
    found = _VERBOSE.match(line)
    if found is None:
        return None
    inputs, _, outputs = found["io"].rpartition(" -> ")
    return {
        "Name": found["name"],
        "LayerType": found["type"],
        "Inputs": _verbose_tensors(inputs),
        "Outputs": _verbose_tensors(outputs),
        "TacticValue": found["tactic"],
    }


def _verbose_tensors(text: str) -> list[JSON]:
    tensors: list[JSON] = []
    begin = 0
    for found in _VALUE_TYPE.finditer(text):
        dims = found["new_dims"] if found["new_dims"] is not None else found["old_dims"]
        # ``32:8`` is 32 channels in vectors of 8.
        numbers: list[JSON] = [
            int(part.partition(":")[0])
            for part in dims.split(",")
            if re.fullmatch(r"\s*-?\d{1,18}(?::\d+)?\s*", part)
        ]
        name = text[begin : found.start()].removeprefix(",").strip()
        tensors.append(
            {
                "Name": name,
                "Dimensions": numbers,
                "Format/Datatype": found["new"] or found["old"],
            }
        )
        begin = found.end()
    return tensors
