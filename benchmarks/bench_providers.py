"""How often the published tables say what an installed provider does, node by node.

Over folders of models and every N-th one-operator model of the onnx package, each provider that is
here (or the parser of its library) is asked, and its table is read. A model that a provider refuses
as a whole has no assignment: for it counts whether the table has a node that it does not take.
"""

from __future__ import annotations

import itertools
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import onnx

from benchmarks import harness
from benchmarks.prediction_models import backend_cases
from dld_tui.activities.providers import Request, run
from dld_tui.core.errors import DldError
from dld_tui.core.events import Finished
from dld_tui.core.model.operators.provider_tables import Support
from dld_tui.core.report.provider_support import Basis, ProviderSupport


def supports(request: Request) -> list[ProviderSupport]:
    """Return what providers take."""
    *_, last = run(request)
    assert isinstance(last, Finished)
    return list(last.result.providers)


def refused(provider: ProviderSupport) -> Counter[tuple[tuple[str, ...], str, str]]:
    """Return the nodes that a provider does not take at all."""
    return Counter(
        (node.scope, node.node, node.op_type)
        for node in provider.nodes
        if node.support is Support.NOT
    )


class Tally:
    """The counts of one provider."""

    def __init__(self) -> None:
        self.models = self.nodes = self.wrong = self.whole = self.foreseen = 0
        self.operators: Counter[str] = Counter()
        """Operators on which table and provider differ; ``-`` where the table takes more."""

    def add(self, asked: ProviderSupport, read: ProviderSupport) -> None:
        """Compare two answers on one model."""
        if asked.basis is Basis.TABLE:
            if asked.why:
                self.whole += 1
                self.foreseen += bool(read.not_taken)
            return
        there, table = refused(asked), refused(read)
        self.models += 1
        self.nodes += asked.total
        for sign, nodes in (("-", there - table), ("+", table - there)):
            self.wrong += nodes.total()
            for (_, _, op_type), count in nodes.items():
                self.operators[f"{sign}{op_type}"] += count


def models(folders: list[Path], every: int, scratch: Path) -> Iterator[Path]:
    """Yield the models of folders, and one-operator models."""
    for folder in folders:
        found = sorted(folder.rglob("*.onnx")) if folder.is_dir() else [folder]
        yield from (path for path in found if path.name[0] != ".")
    if every:
        for case in itertools.islice(backend_cases(), 0, None, every):
            path = scratch / f"{case.name}.onnx"
            path.write_bytes(case.model)
            yield path


def main(argv: list[str]) -> int:
    """Compare, and print a row for each provider."""
    parser = harness.parser(__doc__)
    parser.add_argument("folders", nargs="*", type=Path, help="models, and folders of models")
    parser.add_argument("--providers", default="CPU,CUDA,Tensorrt,NvTensorRTRTX,OpenVINO,QNN")
    parser.add_argument("--every", type=int, default=0, help="take every N-th one-operator model")
    parser.add_argument("--ep-library", action="append", default=[])
    parser.add_argument("--provider-option", action="append", default=[])
    options = parser.parse_args(argv)
    tallies: dict[str, Tally] = {}
    libraries = tuple(options.ep_library)
    with tempfile.TemporaryDirectory() as scratch:
        for path in models(options.folders, options.every, Path(scratch)):
            try:
                common = {"ep_library": libraries, "provider": options.providers}
                given = tuple(options.provider_option)
                asked = supports(Request(path, provider_option=given, **common))
                read = supports(Request(path, tables=True, **common))
            except (DldError, onnx.checker.ValidationError) as error:
                print(f"{path.name}: {error}", file=sys.stderr)
                continue
            for one, table in zip(asked, read, strict=True):
                tally = tallies.setdefault(one.name, Tally())
                before = tally.wrong
                tally.add(one, table)
                if tally.wrong > before and not options.every:
                    print(f"{one.name} {path.name}: {tally.wrong - before} of {one.total} differ")
    for name, tally in tallies.items():
        if not tally.nodes and not tally.whole:
            continue
        agree = tally.nodes - tally.wrong
        share = f", {100 * agree / tally.nodes:.2f} %" if tally.nodes else ""
        print(
            f"{name}: {tally.models} models, {agree:,} of {tally.nodes:,} nodes agree{share};"
            f" {tally.foreseen} of {tally.whole} models refused as a whole foreseen"
        )
        print("    " + ", ".join(f"{op} {n}" for op, n in tally.operators.most_common(12)))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
