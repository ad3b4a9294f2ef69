"""Finding operators and versions of operator sets."""

from __future__ import annotations

from collections.abc import Mapping

from dld_tui.core.operators import contrib
from dld_tui.core.operators.onnx_schemas import (
    newest_onnx,
    onnx_operators,
    onnx_schema,
    onnx_versions,
)
from dld_tui.core.operators.schema import OperatorSchema
from dld_tui.core.types import plain_domain


def schema_for(op_type: str, domain: str, opset_version: int | None) -> OperatorSchema | None:
    """Return the schema of an operator, None when it is unknown in that version.

    Args:
        op_type: The operator's name, e.g. ``Conv``.
        domain: Its operator set; ``""`` and ``ai.onnx`` are the same.
        opset_version: The version that the model imports; None for the newest.
    """
    domain = plain_domain(domain)
    if domain == contrib.DOMAIN:
        return contrib.contrib_schemas().get(op_type)
    versions = onnx_versions(op_type, domain)
    if not versions:
        return contrib.standard_schema(op_type, opset_version) if domain == "" else None
    if opset_version is None:
        opset_version = versions[-1]
    return onnx_schema(op_type, domain, opset_version) if opset_version >= versions[0] else None


def operators(opset_imports: Mapping[str, int]) -> list[OperatorSchema]:
    """Return all operators of the imported operator sets, by domain and name.

    Deprecated ones are included and say so; domains that are not known have none.
    """
    found: list[OperatorSchema] = []
    for domain, version in sorted({plain_domain(d): v for d, v in opset_imports.items()}.items()):
        if domain == contrib.DOMAIN:
            found.extend(contrib.contrib_schemas().values())
            continue
        schemas = (onnx_schema(name, domain, version) for name in onnx_operators().get(domain, ()))
        found.extend(schema for schema in schemas if schema is not None)
    return found


def newest_opset(domain: str = "") -> int | None:
    """Return the newest version of an operator set that is known here, None for an unknown set."""
    domain = plain_domain(domain)
    if domain == contrib.DOMAIN:
        return 1
    return newest_onnx(domain) if domain in onnx_operators() else None


def known_domains() -> list[str]:
    """Return the operator sets that are known here; ``""`` is ai.onnx."""
    return sorted([*onnx_operators(), contrib.DOMAIN])


DEFAULT_OPSET = 20
"""What a new model imports: the newest that TensorRT 10.0 takes, so that most runtimes do."""

_LEAST_IR = 3
_FIRST_LISTED = 7
"""The first version of ai.onnx that is offered: ONNX Runtime takes none before it."""
RUNTIMES: tuple[tuple[str, int, int | None], ...] = (
    ("ONNX Runtime", 7, None),
    ("TensorRT 10.0", 9, 20),
    ("TensorRT 10.15", 9, 24),
    ("TensorRT 11", 9, 25),
)
"""Runtime, first and last version of ai.onnx that it documents to take; None: by its release.

Sources: onnxruntime.ai/docs/reference/compatibility.html; docs/operators.md of onnx/onnx-tensorrt
at 10.0 and 10.15; "ONNX Opset Guide" of docs.nvidia.com/deeplearning/tensorrt for 11.
"""


def known_versions(domain: str = "") -> tuple[int, ...]:
    """Return the versions of an operator set that may be imported, the oldest first.

    Very old ones of ai.onnx are left out. There are none for an unknown set.
    """
    newest = newest_opset(domain)
    if newest is None:
        return ()
    return tuple(range(_FIRST_LISTED if domain == "" else 1, newest + 1))


def least_ir_version(imports: Mapping[str, int]) -> int:
    """Return the least IR version of a file that imports some operator set versions."""
    from onnx.helper import OP_SET_ID_VERSION_MAP as TABLE

    needed = (TABLE.get((domain or "ai.onnx", version)) for domain, version in imports.items())
    return max((version for version in needed if version is not None), default=_LEAST_IR)


def importable_version(domain: str, ir_version: int) -> int:
    """Return the newest version of an operator set that a file of an IR version can import.

    Where every known version needs a newer file, this is the oldest one; for an unknown set it
    is 1.
    """
    newest = newest_opset(domain) or 1
    if domain == contrib.DOMAIN or domain not in onnx_operators():
        return newest
    fitting = (v for v in range(newest, 0, -1) if least_ir_version({domain: v}) <= ir_version)
    return next(fitting, 1)


def runtimes_for(version: int) -> list[str]:
    """Return the runtimes that document to take a version of ai.onnx."""
    return [name for name, first, last in RUNTIMES if last is not None and first <= version <= last]
