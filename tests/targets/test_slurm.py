"""Jobs through a scheduler: a real Slurm, by ``srun`` as the launcher of a target."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from dld_tui.activities.tune import Request
from dld_tui.core.events import Cancelled, Finished, Log
from dld_tui.core.params import to_json
from dld_tui.core.settings.saved_targets import Connection
from dld_tui.core.tune.result import load_result
from tests.support import models
from tests.support.jobs import wait_until
from tests.support.slurm import Slurm
from tests.support.ssh_jobs import REAL, script, target_of

pytestmark = pytest.mark.ssh


@pytest.fixture(scope="module")
def slurm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Slurm]:
    """Give a cluster of one core: of two jobs one waits."""
    cluster = Slurm(tmp_path_factory.mktemp("slurm"), cores=1).start()
    yield cluster
    cluster.stop()


def test_a_job_runs_where_slurm_puts_it(connection: Connection, slurm: Slurm) -> None:
    target = target_of(connection, launcher=slurm.launcher, environment={"DLD_PROOF": "there"})
    with target.start("fake", script(["variable", "SLURM_JOB_ID"])) as job:
        assert job.result()["value"].isdecimal()
    with target.start("fake", script(["variable", "DLD_PROOF"])) as job:
        assert job.result() == {"value": "there"}
    wait_until(lambda: not slurm.jobs(), "an empty queue")


def test_jobs_wait_for_a_free_core_and_say_so(
    connection: Connection, slurm: Slurm, tmp_path: Path
) -> None:
    target = target_of(connection, launcher=slurm.launcher)
    gate = tmp_path / "gate"
    with target.start("fake", script(["wait_for", str(gate)], ["finish"])) as first:
        wait_until(lambda: slurm.jobs() == ["RUNNING"], "the job runs")
        with target.start("fake", script(["finish", {"second": True}])) as second:
            wait_until(lambda: sorted(slurm.jobs()) == ["PENDING", "RUNNING"], "one waits")
            gate.touch()
            first.result()
            events = list(second.events())
            assert any(isinstance(one, Log) and "waiting for resources" in one.text
                       for one in events)  # fmt: skip
            assert events[-1] == Finished({"second": True})


def test_cancel_takes_a_job_out_of_the_queue(
    connection: Connection, slurm: Slurm, tmp_path: Path
) -> None:
    target = target_of(connection, launcher=slurm.launcher)
    with target.start("fake", script(["wait_for", str(tmp_path / "never")])) as job:
        wait_until(lambda: slurm.jobs() == ["RUNNING"], "the job runs")
        job.cancel()
        assert isinstance(job.wait(), Cancelled)
    wait_until(lambda: not slurm.jobs(), "an empty queue")


def test_tuning_runs_on_the_node_and_brings_its_result(
    connection: Connection, slurm: Slurm, tmp_path: Path
) -> None:
    model = models.write(tmp_path, models.CHAIN)
    output = tmp_path / "found.tune.json"
    request = Request(model, output, budget=1, only=("threads-1", "basic"))
    target = target_of(connection, REAL, launcher=slurm.launcher)
    with target.start("tune", to_json(request)) as job:
        job.result()
    tried = {one.key for one in load_result(output).candidates}
    assert "as it is" in tried
    assert len(tried) > 1
