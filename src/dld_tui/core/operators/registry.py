"""Finding operators: by name and version for a node, or all of them for a palette."""

from __future__ import annotations

from collections.abc import Mapping

from dld_tui.core.domains import plain_domain
from dld_tui.core.operators import contrib
from dld_tui.core.operators.onnx_schemas import onnx_schema, onnx_versions
from dld_tui.core.operators.schema import OperatorSchema


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
    versions = onnx_versions().get(domain, {}).get(op_type)
    if versions is None:
        return None
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
        schemas = (onnx_schema(name, domain, version) for name in onnx_versions().get(domain, ()))
        found.extend(schema for schema in schemas if schema is not None)
    return found


def newest_opset(domain: str = "") -> int | None:
    """Return the newest version of an operator set that is known here, None for an unknown set."""
    domain = plain_domain(domain)
    if domain == contrib.DOMAIN:
        return 1
    from onnx import defs

    if domain == "":
        return defs.onnx_opset_version()
    names = onnx_versions().get(domain)
    if names is None:
        return None
    return max(versions[-1] for versions in names.values())


def known_domains() -> list[str]:
    """Return the operator sets that are known here; ``""`` is ai.onnx."""
    return sorted([*onnx_versions(), contrib.DOMAIN])
