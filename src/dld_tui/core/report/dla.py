"""What the layers of an engine have to do with a deep learning accelerator (DLA).

The GPU hands a part of the network to the DLA and goes on: the row of the part is the time to hand
it over. The time that the DLA needs is in the row that first waits for its result, which may be
called a copy (seen in profiles of TensorRT 7 on a Jetson Xavier, where a reformatter of 6 µs beside
a part took 93 % of the pass).
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from dld_tui.core.types import TextEnum


class DlaKind(TextEnum):
    """The types of layers that TensorRT does not name for a deep learning accelerator."""

    PART = "DLA"
    TRANSFER = "DLA transfer"
    WAIT = "DLA wait"


_PART = r"\{(?!ForeignNode\[)[^{}\[\]]*\}"
"""TensorRT 7 lists the nodes of a part; a range of nodes is of the DLA only if its type says so."""
_FORMS = (
    (re.compile(rf"^{_PART}$"), DlaKind.PART),
    (re.compile(rf"^data to nvm$| to nvm$|^{_PART} input reformatter \d+$"), DlaKind.TRANSFER),
    # What reads the result of a part waits for it before it copies.
    (re.compile(rf" from nvm$| finish$|^{_PART} output reformatter \d+$"), DlaKind.WAIT),
)
_COPY = re.compile(
    r"(?P<of>.+) (?:(?P<side>in|out)put reformatter \d+|copy)"
    r"|Reformatting CopyNode for (?P<new_side>In|Out)put Tensor \d+ to (?P<new_of>.+)",
    re.DOTALL,
)
_FINISH = " finish"
_LONGEST = 4000


def kind_of_name(name: str) -> DlaKind | None:
    """Return what a layer's name alone says; None where it does not tell of a DLA."""
    end = name.rfind("}")
    if end > _LONGEST and name.startswith("{") and not re.search(r"[{}\[\]]", name[1:end]):
        name = "{}" + name[end + 1 :]  # hundreds of nodes: what is around them decides
    name = name[:_LONGEST]
    return next((kind for form, kind in _FORMS if form.search(name)), None)


def dla_kinds(layers: Iterable[tuple[str, str]]) -> list[DlaKind | None]:
    """Return what each layer has to do with a DLA, None for most.

    A copy of what a part writes waits for the part, and so does a copy directly behind it.

    Args:
        layers: Name and type of all layers, in the order of execution.
    """
    listed = list(layers)
    kinds = [DlaKind.PART if kind == DlaKind.PART else kind_of_name(name) for name, kind in listed]
    parts = {name for (name, _), kind in zip(listed, kinds, strict=True) if kind is DlaKind.PART}
    is_behind = False
    for at, (name, _) in enumerate(listed if parts else ()):
        if kinds[at] is None:
            kinds[at] = _of_copy(name, parts, is_behind=is_behind)
        if not name.endswith(_FINISH):
            is_behind = kinds[at] is DlaKind.PART
    return kinds


def _of_copy(name: str, parts: set[str], *, is_behind: bool) -> DlaKind | None:
    copy = _COPY.fullmatch(name)
    if copy is None:
        return None
    side = (copy["side"] or copy["new_side"] or "").lower()
    if side == "in" and (copy["of"] or copy["new_of"]) in parts and not is_behind:
        return DlaKind.TRANSFER
    is_of_part = side == "out" and (copy["of"] or copy["new_of"]) in parts
    return DlaKind.WAIT if is_of_part or is_behind else None
