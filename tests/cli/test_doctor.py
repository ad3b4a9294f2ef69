from __future__ import annotations

import importlib.metadata

import pytest

from dld_tui.activities.machine.doctor import Result
from dld_tui.cli.setup import doctor
from dld_tui.core.machine.health import BROKEN, GOOD, MISSING, Check
from dld_tui.core.process.installation import in_environment
from tests.support.cli import Dld


@pytest.fixture
def checks(monkeypatch: pytest.MonkeyPatch) -> list[Check]:
    """Return the checks that the worker will send."""
    sent: list[Check] = []

    def run_activity(activity_id: str, request: object, target: str | None) -> Result:
        return Result(list(sent))

    monkeypatch.setattr(doctor, "run_activity", run_activity)
    return sent


def test_what_is_missing_comes_with_its_command(dld: Dld, checks: list[Check]) -> None:
    checks += [
        Check("Backends", "onnxruntime", GOOD, "1.23.2"),
        Check("Backends", "tensorrt", MISSING, "not installed", "pip install x"),
        Check("GPU", "GPU 0", GOOD, "odd\x1bname"),
    ]
    outcome = dld("doctor")
    assert outcome.status == 0
    assert outcome.out.startswith(
        "Backends\n"
        "  ✓ onnxruntime  1.23.2\n"
        "  – tensorrt     not installed\n"
        f"                 → {in_environment('pip install x')}\n"
        "\n"
        "GPU\n"
        "  ✓ GPU 0        odd\\x1bname\n"
    )


def test_broken_is_a_finding(dld: Dld, checks: list[Check]) -> None:
    checks.append(Check("Backends", "cupti", BROKEN, "no permission"))
    outcome = dld("doctor", "--json")
    assert outcome.status == 1
    assert outcome.json["problems"] == 1
    assert outcome.json["checks"][0]["name"] == "cupti"
    groups = {check["group"] for check in outcome.json["checks"]}
    assert groups == {"Backends", "Terminal", "Agents"}


def test_this_machine(dld: Dld) -> None:
    outcome = dld("doctor", "--json")
    groups = {check["group"] for check in outcome.json["checks"]}
    assert groups == {"Python", "Folders", "Backends", "GPU", "Terminal", "Agents"}
    (sdk,) = (check for check in outcome.json["checks"] if check["group"] == "Agents")
    assert (sdk["name"], sdk["found"]) == ("mcp", importlib.metadata.version("mcp"))


ANEW = "/usr/bin/python3.10 -m venv --system-site-packages .venv, then install dld-tui there"


def test_a_target_is_not_told_to_install_what_jobs_bring(
    dld: Dld, checks: list[Check], monkeypatch: pytest.MonkeyPatch
) -> None:
    about = [Check("Target", "host", GOOD, "orin")]
    monkeypatch.setattr(doctor, "_target_checks", lambda name: about)
    checks += [
        Check("Python", "textual", MISSING, "not installed", "pip install textual"),
        Check("Python", "protobuf", GOOD, "7"),
        Check("Backends", "onnxruntime", MISSING, "not installed", "pip install 'dld-tui[cpu]'"),
        Check("Backends", "cuda", MISSING, "no driver", "install the driver"),
        Check("Backends", "tensorrt", MISSING, "not seen", f"sudo apt install x && {ANEW}"),
    ]
    found = dld("doctor", "--target", "orin", "--json").json["checks"]
    assert [check["name"] for check in found] == [
        "host", "protobuf", "onnxruntime", "cuda", "tensorrt",
    ]  # fmt: skip
    assert [check["fix"] for check in found[2:]] == [
        "installed with the first job that uses it", "install the driver",
        "sudo apt install x && dld target edit orin --python /usr/bin/python3.10",
    ]  # fmt: skip
