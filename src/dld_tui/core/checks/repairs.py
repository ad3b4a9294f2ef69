"""The edits that repair findings.

Each is made when it is asked for, as paths and refs change with every edit; only then is the module
loaded that makes it.
"""

from __future__ import annotations

from collections.abc import Sequence

from dld_tui.core.checks.findings import Finding, Repair
from dld_tui.core.model import edits
from dld_tui.core.model.document.transactions import Edit


def _path(finding: Finding) -> list[str]:
    return [] if finding.scope is None else list(finding.scope.path)


def _ref(finding: Finding) -> str:
    assert finding.node is not None  # findings with these repairs are about one
    return finding.node.ref


def set_ir_version(version: int) -> Repair:
    """Set the IR version."""
    return Repair(lambda _: edits.metadata.set_model_field(field="ir_version", value=version))


def set_opset(domain: str, version: int | None) -> Repair:
    """Import an operator set in a version; None removes the import."""
    return Repair(lambda _: edits.metadata.set_opset(domain=domain, version=version))


def cast_input(index: int, dtype: str) -> Repair:
    """Cast an input of the node."""
    return Repair(
        lambda of: edits.nodes.cast_input(
            scope=_path(of), node=_ref(of), index=index, dtype=dtype
        )
    )  # fmt: skip


def remove_attribute(name: str) -> Repair:
    """Remove an attribute of the node."""
    return Repair(
        lambda of: edits.attributes.remove_attribute(
            scope=_path(of), node=_ref(of), attribute=name
        )
    )  # fmt: skip


def replace_uses(value: str, by: str) -> Repair:
    """Give the users of a value another one."""
    return Repair(lambda of: edits.links.replace_uses(scope=_path(of), value=value, by=by))


def remove_initializers(names: Sequence[str]) -> Repair:
    """Remove initializers that nothing uses."""
    return Repair(
        lambda of: edits.repairs.remove_unused(scope=_path(of), nodes=False, names=list(names))
    )


def remove_repeated_initializers(names: Sequence[str]) -> Repair:
    """Keep one of several equal initializers of a name."""
    return Repair(
        lambda of: edits.repairs.remove_repeated_initializers(scope=_path(of), names=list(names))
    )


def remove_value_info(value: str) -> Repair:
    """Remove the declared type of a value."""
    return Repair(lambda of: edits.repairs.remove_value_info(scope=_path(of), values=[value]))


def own_outputs(value: str) -> Repair:
    """Output a copy of an outer value."""
    return Repair(lambda of: edits.repairs.own_outputs(scope=_path(of), values=[value]))


def rename_shadowing(value: str) -> Repair:
    """Rename a value that has the name of an outer one."""
    return Repair(lambda of: edits.repairs.rename_shadowing(scope=_path(of), value=value))


def _set_inferred_type(finding: Finding) -> Edit | None:
    known = finding.inferred_type
    if known is None or finding.value is None:
        return None
    dims = None if known.dims is None else list(known.dims)
    return edits.inputs_outputs.set_value_type(
        value=finding.value, dtype=known.dtype, dims=dims, scope=_path(finding)
    )


NAME_GRAPH = Repair(lambda of: edits.repairs.name_graph(scope=_path(of)))
TRIM_LINKS = Repair(lambda of: edits.repairs.trim_links(scope=_path(of), node=_ref(of)))
RENAME_DUPLICATES = Repair(lambda of: edits.repairs.rename_duplicate_nodes(scope=_path(of)))
DELETE_FUNCTION = Repair(lambda of: edits.functions.delete_function(scope=_path(of)))
SORT_NODES = Repair(lambda of: edits.repairs.sort_nodes(scope=_path(of)))
REMOVE_NODES = Repair(lambda of: edits.repairs.remove_unused(scope=_path(of), initializers=False))
MERGE_TRANSPOSES = Repair(lambda of: edits.repairs.merge_transposes(scope=_path(of), node=_ref(of)))
WEIGHTS_OFF_INPUTS = Repair(
    lambda _: edits.cleaning.clean(passes=["weights-off-inputs"]), changes_interface=True
)
SET_INFERRED_TYPE = Repair(_set_inferred_type, needs_type=True)
"""Declares what shape inference has found."""
