"""Other words under which the palette finds a command: those of other tools, and of other people.

To every command that has some, the words by its id; commas part them.
"""

from __future__ import annotations

from collections.abc import Mapping

_WORDS: Mapping[str, str] = {
    "accuracy.compare": "accuracy, error, errors of tensors, is it still right, polygraphy run,"
    " tolerance",
    "accuracy.search": "mixed precision, debug precision, keep in fp32, sensitive layers",
    "accuracy.tactics": "debug build, wrong results, kernel",
    "app.activities": "jobs, run, menu of activities",
    "app.close": "leave, back",
    "app.compare": "diff, difference, what changed, compare",
    "app.compare_reports": "compare profiles, diff reports, regression, faster or slower",
    "app.ended_jobs": "results, job results, log of the job, last job",
    "app.help": "keys, shortcuts, key bindings, keybindings, hotkeys, manual, cheat sheet",
    "app.operators": "operator reference, schemas, onnx operators",
    "app.quit": "exit, leave, q, bye, quit with save, :q, :wq",
    "app.redraw": "refresh, repaint, clear screen",
    "app.settings": "preferences, options, configuration, config, mouse, glyphs, ascii",
    "app.start": "home, recent files, recent, welcome, browse files",
    "app.targets": "ssh, remote, machine, machines, add a machine, host, jetson, device",
    "app.theme": "theme, dark, light, colour scheme, color scheme",
    "app.tools": "plugin, script, external program, shell",
    "check.again": "validate again, recheck",
    "check.full": "validate, checker, onnx checker, verify",
    "check.polygraphy": "lint",
    "edit.copy": "copy, yank",
    "edit.copy_name": "clipboard, yank name",
    "edit.cut": "cut",
    "edit.delete": "remove, erase",
    "edit.export_script": "script, record edits",
    "edit.rewrite": "pattern, match, replace subgraph, fuse, graph rewriting, rule",
    "edit.extract": "subgraph, submodel, cut out, extract subgraph, split the model",
    "edit.many": "change all, bulk edit",
    "edit.change": "set attribute, attribute, change value, stride, modify attribute",
    "edit.paste": "paste",
    "edit.redo": "again",
    "edit.undo": "revert last, back out",
    "file.open": "load, file, browse",
    "finding.fix": "quick fix, fix, mend",
    "finding.fix_all": "fix all, fix everything",
    "function.list": "local functions",
    "go.back": "previous place, jump back",
    "go.body": "subgraph body, enter, go into",
    "go.destination": "consumer, user, what uses this",
    "go.source": "producer, what makes this",
    "graph.focus": "neighbours, neighbors, around this node, surroundings",
    "graph.overlay": "heat, heatmap, heat map, colour, color, hot nodes",
    "graph.picture": "export, image, screenshot, png, svg, jpeg, export image,"
    " picture of the graph, diagram, print",
    "graph.view": "overview, rails, boxes, layout of the graph, switch view",
    "graph.zoom_in": "zoom, magnify",
    "layer.precision": "layer precisions, force fp16, set precision",
    "link.bypass": "skip node, remove and reconnect, short circuit",
    "link.connect": "wire, link, attach",
    "link.disconnect": "unwire, unlink, detach",
    "link.insert": "insert, insert node, add between",
    "link.replace": "rewire, redirect",
    "list.search": "find, find a node, find node, grep, search nodes",
    "model.build": "tensorrt, engine, trtexec, compile, plan, trt",
    "model.convert_opset": "opset, upgrade, downgrade, version of the operators",
    "model.metadata": "doc string, producer, ir version, properties, description",
    "model.modify": "convert, batch modification, conversions",
    "model.new": "create a model, empty model",
    "model.opsets": "opset import, imports of operators, domains",
    "model.profile": "benchmark, latency, slowest, slowest node, speed, measure, time, timing, ort,"
    " onnx runtime, bottleneck, run",
    "model.profile_tensorrt": "benchmark on the gpu, trtexec profile",
    "model.profiles": "dynamic shapes, optimization profiles, min opt max",
    "model.save": "write, store",
    "model.save_as": "another name, save a copy, export model",
    "node.add": "add node, new node, insert operator, create node",
    "pane.1": "nodes, explorer, tree, list of nodes",
    "pane.2": "network, show graph, canvas",
    "pane.3": "details, properties of the node, node details",
    "pane.4": "errors, warnings, problems, checks",
    "tab.close": "close file, close model",
    "tensor.edit": "edit weights, change a weight, values, elements",
    "tensor.initializers": "weights, biggest weights, largest weights, parameters, tensors,"
    " biggest, largest, constants and weights",
    "view.beside": "split, side by side, second model",
    "view.by": "group, by type, sort nodes",
    "view.clear_filters": "show all, reset filters",
    "view.documentation": "docs, operator documentation, what does this do",
    "view.grow": "bigger pane, wider pane, wider, bigger, enlarge, resize",
    "view.maximise": "maximize, full screen, fullscreen, zoom pane",
    "view.reset": "default layout",
    "view.shrink": "narrower, resize pane, less room",
}

SYNONYMS: Mapping[str, tuple[str, ...]] = {
    id: tuple(word.strip() for word in words.split(",")) for id, words in _WORDS.items()
}
"""The words by the id of the command, in lower case."""
