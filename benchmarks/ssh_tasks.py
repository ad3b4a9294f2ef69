"""What the SSH benchmark measures, each in a process of its own."""

from __future__ import annotations

import json
import shutil
import time
from pathlib import Path

from dld_tui.activities.profile.onnxruntime import Request
from dld_tui.core.events import Finished, Started
from dld_tui.core.params import RequestData, to_json
from dld_tui.core.settings.saved_targets import Connection
from dld_tui.core.settings.secrets import Nobody
from dld_tui.targets.base import Target
from dld_tui.targets.process import LocalTarget
from dld_tui.targets.ssh import loop
from dld_tui.targets.ssh.channel import Agent
from dld_tui.targets.ssh.job import SshJob
from dld_tui.targets.ssh.link import Link, RetryPolicy
from dld_tui.targets.ssh.target import SshTarget
from dld_tui.targets.ssh.transfer import KnownHashes, LocalFile, Upload


def send_over_ssh(config: str, file: str, directory: str) -> dict[str, float]:
    """Send a file, verified, over a connection that stands, as a fresh target would get it."""
    agent = Agent(Link(_connection(config, directory=directory), Nobody()))
    loop.call(agent.make_ready())
    local = LocalFile.at(Path(file))
    first = Upload(agent, RetryPolicy(), KnownHashes())
    start = time.perf_counter()
    loop.call(first.send([local]))
    took = time.perf_counter() - start
    again = Upload(agent, RetryPolicy(), KnownHashes())
    loop.call(again.send([local]))
    loop.call(agent.link.close())
    shutil.rmtree(directory)
    return {"seconds": took, "again_bytes": again.amount.sent}


def start_over_ssh(config: str, model: str) -> dict[str, float]:
    """Start a job on a prepared target, and here, until its worker says so; end to end."""
    remote = SshTarget(_connection(config))
    request = to_json(
        Request(Path(model), Path(model).with_suffix(".dldprof"), iterations=1, layer_passes=0)
    )
    here_s, _ = _run(LocalTarget(), request)
    _run(remote, request)  # makes the target ready
    there_s, sent = _run(remote, request)
    return {"local_s": here_s, "remote_s": there_s, "bytes": sent}


def _run(target: Target, request: RequestData) -> tuple[float, float]:
    """Return the seconds until the job has started, and the bytes that were sent for it."""
    Path(str(request["output"])).unlink(missing_ok=True)
    start = time.perf_counter()
    started = 0.0
    with target.start("profile_onnxruntime", request) as job:
        for event in job.events():
            if isinstance(event, Started):
                started = time.perf_counter() - start
        if not isinstance(event, Finished):
            raise SystemExit(f"the job did not finish: {event}")
        return started, job.bytes_sent if isinstance(job, SshJob) else 0


def _connection(config: str, directory: str = "") -> Connection:
    data = json.loads(Path(config).read_text(encoding="utf-8"))
    for name in ("key", "known_hosts"):
        data[name] = Path(data[name])
    if directory:
        data["directory"] = directory
    return Connection(**data)
