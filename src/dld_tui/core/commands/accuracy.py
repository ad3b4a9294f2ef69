"""Errors of tensors, and the precisions and tactics that a search found."""

from __future__ import annotations

from dld_tui.core.commands.model import Command, table

# fmt: off
_WORKSPACE = table(
    "workspace",
    ("accuracy.compare", "accuracy.compare", "", "", "compare accuracy",
     "Run the model in two ways, or beside another one, and show the errors of its tensors."),
    ("accuracy.edits", "accuracy.compare_edits", "", "file", "accuracy of edits",
     "Run the file and the model as it is now, and show where their tensors differ."),
    ("accuracy.search", "accuracy.search_precision", "", "", "search precision",
     "Find the fewest nodes that must stay in fp32 when the model runs in fp16, bf16 or int8."),
    ("accuracy.tactics", "accuracy.isolate_tactic", "", "", "isolate tactic",
     "Find the TensorRT tactics that make the results of the model wrong."),
    common="document",
)
_ACCURACY = table(
    "accuracy",
    ("accuracy.node", "go_to_node", "s", "tensor_node", "go to node",
     "Show the node that makes the tensor in the model."),
    ("accuracy.filter", "filter", "f", "", "filter",
     "Show all tensors, only those that are not within their tolerance, or only the outputs."),
    ("accuracy.first", "first", "d", "diverges", "first divergence",
     "Go to the first tensor, as the model computes, that is not within its tolerance."),
    ("accuracy.order", "in_order", "t", "", "in order",
     "List the tensors in the order of the computation, or the largest errors first."),
    ("accuracy.remarks", "remarks", "i", "", "remarks",
     "Show all that is said of the comparison: how it was run, and what was not compared."),
    ("accuracy.again", "subject.again", "f5", "", "again",
     "Show the form again, as it was filled for this model."),
    ("accuracy.csv", "save_csv", "w", "", "save csv", "Write all tensors as a CSV file."),
    footer="accuracy.node accuracy.filter accuracy.first accuracy.order accuracy.remarks"
    " accuracy.again accuracy.csv",
)
_PRECISION = table(
    "precision",
    ("precision.apply", "apply", "a", "precisions", "apply",
     "Set the precisions in the editor, as one step; of int8 show the form of the quantization."),
    ("precision.node", "go_to_node", "s", "kept_node", "go to node",
     "Show the node in the model."),
    ("precision.script", "save_script", "w", "precisions", "save script",
     "Write the edit script that sets the precisions, or for int8 the names of the nodes."),
    ("precision.again", "subject.again", "f5", "", "again",
     "Show the form again, as it was filled for this model."),
    footer="precision.apply precision.node precision.script precision.again",
)
_TACTICS = table(
    "tactics",
    ("tactics.copy", "copy_command", "y", "avoids", "copy command",
     "Copy the command that builds without the tactics."),
    ("tactics.again", "subject.again", "f5", "", "again",
     "Show the form again, as it was filled for this model."),
    ("tactics.remarks", "remarks", "i", "", "remarks", "Show all that is said of the search."),
    footer="tactics.copy tactics.remarks tactics.again",
)
_TUNED = table(
    "tuned",
    ("tuned.open", "open_model", "o", "faster", "open model", "Open the faster model."),
    ("tuned.compare", "compare", "c", "faster", "compare profiles",
     "Compare the profiles of the model as it is and of the faster one."),
    ("tuned.copy", "copy", "y", "faster", "copy settings",
     "Copy the settings as Python, as C++ or as a command."),
    ("tuned.again", "again", "f5", "", "again", "Show the form again."),
    footer="tuned.open tuned.compare tuned.copy tuned.again",
)
_RESULT = table(
    "result",
    ("result.copy", "copy", "y", "", "copy", "Copy what is said above the table."),
    ("result.csv", "save_csv", "w", "", "save csv", "Write the table as a CSV file."),
    footer="result.copy result.csv",
)
# fmt: on

ROWS: tuple[Command, ...] = (*_WORKSPACE, *_ACCURACY, *_PRECISION, *_TACTICS, *_TUNED, *_RESULT)
