"""Run tests with other versions of ONNX Runtime than the one that is installed.

Each version is put into a folder of its own, which comes before the installed one; the other
packages stay. Run it with ``make runtimes``, or ``python -m scripts.runtimes VERSION...``.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from packaging.requirements import Requirement

from scripts.resolve import ROOT, declared

TESTED = (
    "tests/backends/test_value_check.py",
    "tests/backends/test_onnxruntime.py",
    "tests/backends/test_onnxruntime_errors.py",
    "tests/backends/test_onnxruntime_options.py",
    "tests/backends/test_onnxruntime_tensors.py",
    "tests/backends/test_onnxruntime_verdict.py",
    "tests/activities/test_accuracy.py",
    "tests/activities/test_convert_quantize.py",
    "tests/activities/test_profile_onnxruntime.py",
    "tests/activities/test_startup.py",
    "tests/api/test_api.py",
)
"""What depends on the version: its options, errors, profiles, conversions and outputs."""


def oldest() -> str:
    """Return the lower bound of the extra ``cpu``."""
    (bound,) = [one for one in declared(("cpu",)) if Requirement(one).name == "onnxruntime"]
    (version,) = [one.version for one in Requirement(bound).specifier if one.operator == ">="]
    return f"{version}.0" if version.count(".") == 1 else version


def install(version: str, folder: Path) -> Path:
    """Put one version into a folder below `folder`, unless it is there, and return where.

    Args:
        version: A version, or ``newest``.
        folder: Where versions are kept.

    Raises:
        subprocess.CalledProcessError: It cannot be installed.
    """
    there = folder / version
    if version == "newest" or not there.exists():
        wanted = "onnxruntime" if version == "newest" else f"onnxruntime=={version}"
        command = [sys.executable, "-m", "pip", "install", "--quiet", "--upgrade", "--no-deps"]
        subprocess.run([*command, "--target", str(there), wanted], check=True)
    return there


def run(there: Path, tests: Sequence[str]) -> int:
    """Run tests with the ONNX Runtime in a folder, and return the exit status of pytest."""
    paths = [str(there), *filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}
    code = "import onnxruntime; print('ONNX Runtime', onnxruntime.__version__, flush=True)"
    subprocess.run([sys.executable, "-c", code], env=environment, check=True)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *tests]
    return subprocess.run(command, cwd=ROOT, env=environment).returncode


def main() -> int:
    """Test the versions one after another; exit status 1 if tests of one fail."""
    parser = argparse.ArgumentParser(description="Test with other versions of ONNX Runtime.")
    parser.add_argument("versions", nargs="*", default=[oldest(), "newest"])
    parser.add_argument("--folder", type=Path, default=ROOT / ".venv-runtimes")
    parser.add_argument("--tests", nargs="+", default=TESTED)
    given = parser.parse_args()
    failed = []
    for version in given.versions:
        if run(install(version, given.folder), given.tests):
            failed.append(version)
    if failed:
        print(f"tests failed with ONNX Runtime {', '.join(failed)}", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
