"""How the jobs of a target are run."""

from __future__ import annotations

from dataclasses import dataclass, field

from dld_tui.targets.ssh.link import Patience

# Not `-m`, and nothing of the current folder: see dld_tui.targets.process.
_BOOTSTRAP = (
    "import sys; sys.path[0:1] = sys.argv.pop().split('\\n'); from {module} import main; main()"
)


@dataclass(frozen=True)
class Setup:
    """How jobs of a target are run."""

    patience: Patience = field(default_factory=Patience)
    worker: str = "dld_tui.activities.worker"
    """The module on the target that serves a request."""
    paths: tuple[str, ...] = ()
    """More folders of modules there."""
    route: str = "auto"
    """One of :data:`.deploy.ROUTES`."""
    pip_options: tuple[str, ...] = ()

    def command(self, python: str, package: str) -> list[str]:
        """Return the command of a worker.

        Args:
            python: The Python that runs it.
            package: The folder of our package there.
        """
        code = _BOOTSTRAP.format(module=self.worker)
        return [python, "-c", code, "\n".join([*self.paths, package])]
