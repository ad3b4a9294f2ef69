"""Record what the real Python bindings of TensorRT have: classes, members, signatures.

The module of bindings needs a handful of C functions of TensorRT's libraries, and calls them only
when an object is made. Empty libraries that define these functions therefore let any version be
imported on a machine without TensorRT and without a GPU. The record of each version is what the
fake of the tests is made of (tests/support/fake_tensorrt_classes.py).

Usage: ``python -m scripts.tensorrt_bindings [VERSION …]`` downloads the wheels, and writes
tests/data/tensorrt/VERSION.json.gz. It needs a C compiler, nm and readelf.
"""

from __future__ import annotations

import ctypes
import gzip
import importlib
import json
import re
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / "tests" / "data" / "tensorrt"
PACKAGES = {
    "8.6.1": "tensorrt-bindings",
    "10.0.1": "tensorrt-cu12-bindings",
    "10.3.0": "tensorrt-cu12-bindings",  # JetPack 6
    "10.13.0.35": "tensorrt-cu12-bindings",
    "10.16.1.11": "tensorrt-cu12-bindings",
    "11.4.0.106": "tensorrt-cu13-bindings",
    "1.4.0.76": "tensorrt-rtx-cu13-bindings",
    "1.5.0.114": "tensorrt-rtx-cu13-bindings",
    "1.6.1.120": "tensorrt-rtx-cu13-bindings",
    "1.7.1.116": "tensorrt-rtx-cu13-bindings",
}
"""Version to the package that has its bindings; 1.4 to 1.7 are TensorRT-RTX."""
_PIP = ["-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps"]
_NEEDED = re.compile(r"\(NEEDED\).*\[(lib(?:nv|tensorrt)[^\]]*)\]")
_UNDEFINED = re.compile(
    r"\b(_ZN\d+nv\w+|create\w+_INTERNAL|get\w*PluginRegistry|getNvOnnxParserVersion"
    r"|initLibNvInferPlugins)$",
    re.MULTILINE,
)
_PREFIX = re.compile(r"\btensorrt(?:_rtx)?_bindings\.tensorrt(?:_rtx)?\.")
_SPELLINGS = [
    (re.compile(pattern), name)
    for pattern, name in (
        (r"\b(?:List|collections\.abc\.Sequence)\[", "list["),
        (r"\bTuple\[", "tuple["),
        (r"\b(?:collections\.abc|typing|typing_extensions)\.", ""),
        (r"\bSupportsInt\b", "int"),
        (r"\bSupportsFloat\b", "float"),
        (r"\bCapsuleType\b", "capsule"),
        (r"\bBuffer\b", "buffer"),
        (r"\b(?:nvinfer1|nvonnxparser)::(?:v_\d+_\d+::)?", ""),  # pybind11 knew no name for it
        (r"::", "."),
    )
]
_OVERLOAD = re.compile(r"^\d+\. ", re.MULTILINE)


class NotRecordedError(Exception):
    """A version cannot be recorded here; the message says why."""


def record(version: str, work: Path) -> dict[str, Any]:
    """Return the classes, enumerations and functions of the bindings of a version.

    Args:
        version: A key of `PACKAGES`.
        work: A folder for the wheel and the empty libraries.

    Raises:
        NotRecordedError: There is no wheel for this Python, no compiler, or it cannot be imported.
    """
    _run(
        [
            sys.executable,
            *_PIP,
            "--only-binary=:all:",
            "--dest",
            str(work),
            f"{PACKAGES[version]}=={version}",
        ]
    )
    for wheel in work.glob("*.whl"):
        zipfile.ZipFile(wheel).extractall(work)
    try:
        extension = next(work.glob("tensorrt*_bindings/*.so"))
    except StopIteration:
        raise NotRecordedError(f"the wheel of {version} has no bindings") from None
    libraries = _empty_libraries(extension, work)
    command = [sys.executable, "-m", "scripts.tensorrt_bindings", "--read", str(extension.parent)]
    found: dict[str, Any] = json.loads(_run([*command, *map(str, libraries)]))
    return found


def _empty_libraries(extension: Path, work: Path) -> list[Path]:
    """Make the libraries that the bindings name; the first defines all that is undefined."""
    names = _NEEDED.findall(_run(["readelf", "--dynamic", str(extension)]))
    undefined = _UNDEFINED.findall(_run(["nm", "-D", "--undefined-only", str(extension)]))
    source = work / "empty.c"
    source.write_text("".join(f"void *{name}(void) {{ return 0; }}\n" for name in undefined))
    nothing = work / "nothing.c"
    nothing.write_text("")
    for name in names:
        text = source if name == names[0] else nothing
        compiler = ["cc", "-w", "-shared", "-fPIC", f"-Wl,-soname,{name}", str(text)]
        _run([*compiler, "-o", str(work / name)])
    return [work / name for name in names]


def _run(command: list[str]) -> str:
    try:
        done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT)
    except OSError as error:
        raise NotRecordedError(str(error)) from error
    if done.returncode:
        raise NotRecordedError((done.stderr.strip() or f"{command[0]} failed").splitlines()[-1])
    return done.stdout


def read(package: Path, libraries: list[str]) -> dict[str, Any]:
    """Import the bindings over empty libraries, and return what they have."""
    for library in libraries:
        ctypes.CDLL(library, mode=ctypes.RTLD_GLOBAL)
    sys.path.insert(0, str(package.parent))
    module = importlib.import_module(package.name)
    classes: dict[str, Any] = {}
    for name, value in vars(module).items():
        if isinstance(value, type) and value.__name__ == name:
            _class(value, name, classes)
    return {
        "version": module.__version__,
        "classes": dict(sorted(classes.items())),
        "types": {
            name: value.name
            for name, value in sorted(vars(module).items())
            if type(value).__name__ == "DataType"
        },
        "functions": {
            name: _signatures(value)
            for name, value in sorted(vars(module).items())
            if type(value).__name__ == "builtin_function_or_method"
        },
    }


def _class(kind: type, name: str, classes: dict[str, Any]) -> None:
    members = getattr(kind, "__members__", None)
    if members is not None:
        classes[name] = {
            "members": {key: int(value) for key, value in members.items()},
            "properties": {
                key: None
                for key, value in vars(kind).items()
                if isinstance(value, property) and key not in ("name", "value")
            },
        }
        return
    found: dict[str, Any] = {
        "bases": [base.__name__ for base in kind.__bases__ if "pybind11" not in base.__name__],
        "methods": {},
        "statics": {},
        "properties": {},
        "constants": [],
    }
    for key, value in sorted(vars(kind).items()):
        if isinstance(value, property):
            found["properties"][key] = _annotation(value)
        elif isinstance(value, type):
            if value.__name__ == key:
                _class(value, f"{name}.{key}", classes)
        elif hasattr(type(value), "__members__"):
            found["constants"].append(key)
        elif isinstance(value, staticmethod):
            found["statics"][key] = _signatures(value.__func__)
        elif type(value).__name__ == "builtin_function_or_method":
            found["statics"][key] = _signatures(value)
        elif type(value).__name__ == "instancemethod" and (key[0] != "_" or key in _SPECIAL):
            found["methods"][key] = [signature[1:] for signature in _signatures(value)]
    classes[name] = {key: value for key, value in found.items() if value}


_SPECIAL = {"__init__", "__len__", "__getitem__", "__setitem__", "__bool__", "__call__"}


def _annotation(value: property) -> str | None:
    """Return the type that a property may be set to, or None for one that is only read."""
    if value.fset is None:
        return None
    signatures = list(_signatures(value.fset))
    return signatures[0][-1][1] if signatures and signatures[0] else "object"


def _signatures(function: Any) -> list[list[list[str]]]:
    """Return [name, type, default] of each parameter of each overload; no default is two items."""
    text = _PREFIX.sub("", function.__doc__ or "")
    if "Overloaded function." in text.partition("\n\n")[0] + text[:400]:
        heads = [part.partition("\n")[0] for part in _OVERLOAD.split(text)[1:]]
    else:
        heads = [text.partition("\n")[0]]
    return [list(_parameters(head)) for head in heads if "(" in head]


def _parameters(head: str) -> Iterator[list[str]]:
    """Split a signature; it need not be valid Python (`in: list`, a default before none)."""
    depth = 0
    text = ""
    for character in head[head.index("(") :]:
        depth += (character in "([{<") - (character in ")]}>")
        if depth == 0 or (depth == 1 and character == ","):
            if text.strip():
                yield _parameter(text)
            text = ""
            if depth == 0:
                return
        elif depth > 1 or character != "(":
            text += character


def _plain(kind: str) -> str:
    """Return a type in one spelling: each generation of pybind11 has its own."""
    for pattern, name in _SPELLINGS:
        kind = pattern.sub(name, kind)
    return kind


def _parameter(text: str) -> list[str]:
    declared, has_default, default = text.partition(" = ")
    name, _, kind = declared.partition(":")
    parameter = [name.strip(), _plain(kind.strip() or "object")]
    return [*parameter, default.strip()] if has_default else parameter


def main(argv: list[str]) -> int:
    """Record versions; all that are known without arguments."""
    if argv[:1] == ["--read"]:
        print(json.dumps(read(Path(argv[1]), argv[2:])))
        return 0
    FOLDER.mkdir(parents=True, exist_ok=True)
    for version in argv or PACKAGES:
        with tempfile.TemporaryDirectory() as work:
            try:
                found = record(version, Path(work))
            except NotRecordedError as error:
                print(f"TensorRT {version}: {error}", file=sys.stderr)
                return 1
        text = json.dumps(found, separators=(",", ":"))
        path = FOLDER / f"{version}.json.gz"
        path.write_bytes(gzip.compress(text.encode(), mtime=0))
        members = sum(len(one.get("members", ())) for one in found["classes"].values())
        print(f"{version}: {len(found['classes'])} classes, {members} members of enumerations")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
