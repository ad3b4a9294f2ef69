"""Copy the types of TensorRT to where the type checker reads them, with their syntax mended.

The package `tensorrt-stubs` names a parameter `in` and puts one without a default after those that
have one, which no Python parser takes; and what it calls `bool` is TensorRT's own. The copy is in
`.venv/typings`, which is on `mypy_path`; where it is missing, the names of TensorRT are unchecked.
Run by `make` after the installation.
"""

from __future__ import annotations

import ast
import importlib.metadata
import re
import shutil
import sys
from pathlib import Path

PACKAGE = "tensorrt-stubs"
MENDS = (
    (re.compile(r"\bin: (?=list\[)"), "in_: "),
    (re.compile(r"(def add_scale_nd\(.*), channel_axis: int\)"), r"\1, channel_axis: int = ...)"),
    (re.compile(r"(-> |: |\[|\| )bool\b(?! #)"), r"\1builtins.bool"),
    (re.compile(r"^from __future__ import annotations\n"), r"\g<0>import builtins\n"),
)


def mended(text: str) -> str:
    """Return the text of a stub file as valid Python.

    Raises:
        SyntaxError: It has other mistakes, too.
    """
    for pattern, new in MENDS:
        text = pattern.sub(new, text)
    ast.parse(text)
    return text


def main() -> int:
    """Copy; without the package there is nothing to do."""
    target = Path(sys.prefix) / "typings"
    shutil.rmtree(target, ignore_errors=True)
    try:
        files = importlib.metadata.files(PACKAGE) or []
    except importlib.metadata.PackageNotFoundError:
        print(f"{PACKAGE} is not installed: the names of TensorRT are not checked", file=sys.stderr)
        return 0
    for file in files:
        if file.suffix == ".pyi":
            path = target / str(file)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(mended(file.read_text(encoding="utf-8")), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
