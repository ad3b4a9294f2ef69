"""Random things to type at the program, and what slow and quick typing of them leads to.

``python -m tests.support.sequences 0 2000 --beside 3 --to found.jsonl`` types all of these, three
at a time, and writes a line of JSON for each: its number, the seconds, and what differs.
"""

from __future__ import annotations

import argparse
import difflib
import json
import random
import shutil
import tempfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from time import monotonic
from typing import Any

from tests.support import models
from tests.support.typist import Programs, Typist, keys_of

TEXTS = (models.CHAIN, models.BRANCHES, models.FUNCTIONS, models.layered(), models.SHADY)
"""The models that sequences are typed at, by their numbers in turn."""
_WORDS = ("relu", "conv", "w", "add_1", "x", "0", "7", "a b", "float32[1]", "identity", "s>1")
_PHRASES = """
/{} /{}<enter> /{}<esc> r{}<enter> re{}<enter> ge{}<enter> <^p>{}<enter> <^p>{}<esc>
a{}<enter> a{}<enter><enter> c{}<enter> R{}<enter> I{}<enter> d<enter> d<enter><enter> dd
<enter>e{}<enter> <enter>j<enter> <enter>jje 3jje{}<enter> <tab>{} <^o>{}<esc> f{}<enter>
<space><space>d<enter> yp D x{}<esc> .j<enter> .{} i<enter> <^s> <^w> <^t>i{} u uu <^y> m
1 2 3 4 2jj<enter> 2v 2vv 4j<enter> 4f ? ?<esc> <f2>jj<enter> <f2><esc> s <backspace> gg G
jjj kk l h n N <esc> <esc><esc> <enter><enter> <enter><enter><enter> O{}<enter> F<esc>
P<enter> M<esc> w<esc> o{}<enter> b B t <f4><esc> <f4>j<enter><esc> <^n><esc> <^q> q - =
"""
_KEYS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/.,<>[]{}=-+*%!;:'_"
_NAMED = """
<enter> <enter> <enter> <enter> <esc> <esc> <esc> <tab> <backtab> <up> <down> <left> <right>
<space> <backspace> <home> <end> <pgdn> <pgup> <del>
"""


def sequence(seed: int) -> str:
    """Return a sequence of two to nine pieces: things people type, and any keys."""
    draw = random.Random(seed)
    pieces = []
    for _ in range(draw.randint(2, 9)):
        kind = draw.random()
        if kind < 0.65:
            pieces.append(draw.choice(_PHRASES.split()).replace("{}", draw.choice(_WORDS)))
        elif kind < 0.85:
            pieces.append(draw.choice(_NAMED.split()))
        else:
            pieces.append(draw.choice(_KEYS))
    # In one write these begin with what terminals send for function keys and arrows.
    return "".join(pieces).replace("<esc>O", "<esc>").replace("<esc>[", "<esc>")


@dataclass
class Outcome:
    """Where both ways of typing have led."""

    keys: str
    slow: dict[str, Any]
    quick: dict[str, Any]

    @property
    def fault(self) -> str:
        """What is wrong; empty when both are in the same state and nothing failed."""
        faults = [f"{way}: {fault}" for way, state in (("slow", self.slow), ("quick", self.quick))
                  for fault in state.get("faults", ())]  # fmt: skip
        if faults:
            return f"{self.keys!r}: {'; '.join(faults)}"
        for part in ("ended", "documents", "focus", "screens", "told"):
            slow, quick = self.slow.get(part), self.quick.get(part)
            if slow != quick:
                lines = difflib.unified_diff(_lines(slow), _lines(quick), "slow", "quick", n=1)
                return "\n".join([f"{self.keys!r} differs in {part}:", *lines])
        return ""


def _lines(part: Any) -> list[str]:
    if isinstance(part, list) and part and isinstance(part[-1], list):
        return [row for rows in part for row in rows]
    return [repr(part)]


def compare(
    programs: Programs, model: bytes, keys: str, *, size: tuple[int, int] = (80, 24), ahead: bool
) -> Outcome:
    """Type a sequence at a model in both ways.

    Args:
        programs: Starts the program.
        model: The file that is opened.
        keys: As :func:`~tests.support.typist.keys_of` reads them.
        size: Of the terminal.
        ahead: The quick typist does not wait until the model is open.
    """
    states = []
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place) / "m"  # both see the same paths
        for quick in (False, True):
            folder.mkdir()
            (folder / "model.onnx").write_bytes(model)
            with programs.start(folder, "model.onnx", size=size) as typist:
                states.append(_typed(typist, keys, quick=quick, ahead=ahead))
            shutil.rmtree(folder)
    return Outcome(keys, *states)


def _typed(typist: Typist, keys: str, *, quick: bool, ahead: bool) -> dict[str, Any]:
    if quick and ahead and not keys.startswith("<esc>"):  # which would stop the opening
        typist.wait_for_screen()
    else:
        typist.settle(0.3)
    if quick:
        typist.write("".join(keys_of(keys)))
    else:
        typist.slowly(keys_of(keys))
    typist.settle(0.7)
    return typist.state()


def compare_number(programs: Programs, number: int) -> Outcome:
    """Type a sequence by its number, which says the model, the terminal and the pace, too."""
    model = models.parse(TEXTS[number % len(TEXTS)]).SerializeToString()
    size = (80, 24) if number % 3 else (200, 50)
    return compare(programs, model, sequence(number), size=size, ahead=not number % 4)


def main() -> None:
    """Type many sequences."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("first", type=int)
    parser.add_argument("end", type=int)
    parser.add_argument("--beside", type=int, default=2, help="so many at a time")
    parser.add_argument("--to", type=Path, required=True, help="file of JSON lines")
    options = parser.parse_args()
    with Programs() as programs, options.to.open("a", buffering=1) as file:

        def run(number: int) -> None:
            began = monotonic()
            try:
                fault = compare_number(programs, number).fault
            except (OSError, TimeoutError) as error:
                fault = f"{sequence(number)!r}: {type(error).__name__}: {error}"
            file.write(json.dumps([number, round(monotonic() - began, 1), fault]) + "\n")

        with ThreadPoolExecutor(options.beside) as pool:
            list(pool.map(run, range(options.first, options.end)))


if __name__ == "__main__":
    main()
