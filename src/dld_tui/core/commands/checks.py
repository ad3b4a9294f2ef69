"""Findings and checks."""

from __future__ import annotations

from dld_tui.core.commands.model import Command, table

# fmt: off
_WORKSPACE = table(
    "workspace",
    ("finding.fix", "checks.fix", "", "fixable", "repair",
     "Repair what the finding under the cursor is about."),
    ("finding.fix_rule", "checks.fix_rule", "", "fixable", "repair all",
     "Repair all findings of the same rule."),
    ("finding.fix_all", "checks.fix_all", "", "repairs", "repair everything",
     "Make every repair that is safe, as one step."),
    ("finding.only_rule", "checks.only_rule", "", "finding", "only this rule",
     "Show only findings of this rule, or those of all rules again."),
    ("check.again", "checks.check", "", "", "check again",
     "Check the whole model again, data files too."),
    ("check.speed", "checks.toggle_speed", "", "", "speed check",
     "Look for what keeps the model from running fast on a GPU, too; or stop doing so."),
    ("check.full", "checks.check_full", "f7", "", "full check",
     "Check the model as it is with onnx's full checker."),
    ("check.polygraphy", "checks.check_polygraphy", "shift+f7", "", "Polygraphy lint",
     "Run every node on random data with Polygraphy's lint, where it is installed."),
    ("model.modify", "conversion.choose", "f8", "", "modify",
     "Make another model of this one: in float16, sanitized, quantized, with other weights."),
    ("model.preview_precisions", "conversion.preview_precisions", "", "", "preview casts",
     "Show the casts that the layers' precisions need and what they lose, and offer a copy."),
    ("model.convert_opset", "conversion.convert_opset", "", "", "convert opset",
     "Convert the model to another version of the ai.onnx operators."),
    common="document", menus={"finding.fix_all": "finding"},
)
_FINDINGS = table(
    "findings",
    ("findings.fix", "fix", "f", "", "repair", "Repair what the finding is about."),
    ("findings.fix_rule", "fix_rule", "F", "", "repair all",
     "Repair all findings of the same rule."),
    ("findings.only_rule", "only_rule", "o", "", "only this rule",
     "Show only findings of this rule, or those of all rules again."),
    ("findings.clear", "clear", "escape", "", "show all", "Clear the filter of the findings."),
    palette=False,
)
# fmt: on

ROWS: tuple[Command, ...] = (*_WORKSPACE, *_FINDINGS)
