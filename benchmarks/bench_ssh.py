"""Send a large file to a target on loopback, beside scp; and what a prepared job costs more."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from benchmarks import harness, models, ssh_tasks
from tests.support.sshd import Sshd


def main(argv: list[str]) -> int:
    """Print the table; return 1 when a bound is missed."""
    parser = harness.parser(__doc__)
    parser.add_argument("--megabytes", type=int, default=1000, help="size of the file")
    parser.add_argument("--rounds", type=int, default=3, help="runs of each peer")
    options = parser.parse_args(argv)
    if shutil.which("scp") is None:
        sys.exit("scp is not installed")
    size = options.megabytes * 1_000_000
    with harness.work_folder(4 * size) as folder, _server(folder / "server") as sshd:
        file = folder / "file.bin"
        with file.open("wb") as output:
            for _ in range(options.megabytes):
                output.write(os.urandom(1_000_000))
        config = folder / "connection.json"
        config.write_text(json.dumps(_connection_to(sshd, folder)))
        private = harness.private_folders(folder)
        ours, peer = [], []
        for attempt in range(options.rounds):
            peer.append(_scp(sshd.port, sshd.user_key, folder, file))
            ours.append(
                harness.fresh(
                    ssh_tasks.send_over_ssh, config, file, folder / f"sent{attempt}", **private
                )
            )
        model = folder / "model.onnx"
        models.write_weights_model(model, megabytes=2)
        starts = [
            harness.fresh(ssh_tasks.start_over_ssh, config, model, **private)
            for _ in range(options.rounds + 1)
        ][1:]
    sent, start = harness.medians(ours), harness.medians(starts)
    scp = sorted(peer)[len(peer) // 2]
    table = harness.Table(f"SSH on loopback, {options.megabytes} MB, medians of {options.rounds}")
    table.add("send and verify", sent["seconds"], scp, unit="s", bound=scp / 0.7, rule="scp / 0.7")
    table.add("send it again", sent["again_bytes"] / 1e6, unit="MB", bound=1, rule="1 MB")
    table.add(
        "start of a job", start["remote_s"], start["local_s"], unit="s",
        bound=start["local_s"] + 1.5, rule="local + 1.5 s",
    )  # fmt: skip
    table.add("second run sends", start["bytes"] / 1e6, unit="MB", bound=1, rule="1 MB")
    return table.finish()


@contextmanager
def _server(folder: Path) -> Iterator[Sshd]:
    """Yield the OpenSSH server of the tests, which takes the key of the caller."""
    sshd = Sshd(folder).start()
    try:
        yield sshd
    finally:
        sshd.kill()


def _connection_to(sshd: Sshd, folder: Path) -> dict[str, object]:
    """Return the fields of a connection to a server, as JSON data."""
    return {
        "name": "bench",
        "host": sshd.host,
        "port": sshd.port,
        "user": sshd.user,
        "auth": "key",
        "key": str(sshd.user_key),
        "known_hosts": str(sshd.known_hosts()),
        "config": False,
        "directory": str(folder / "deployed"),
        "python": sys.executable,
    }


def _scp(port: int, key: Path, folder: Path, file: Path) -> float:
    command = ["scp", "-q", "-P", str(port), "-i", str(key), "-F", "none"]
    for option in ("StrictHostKeyChecking=no", "UserKnownHostsFile=/dev/null", "LogLevel=ERROR"):
        command += ["-o", option]
    target = folder / "scp.bin"
    target.unlink(missing_ok=True)
    start = time.perf_counter()
    subprocess.run([*command, str(file), f"127.0.0.1:{target}"], check=True)
    took = time.perf_counter() - start
    target.unlink()
    return took


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
