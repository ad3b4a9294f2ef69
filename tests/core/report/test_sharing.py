"""How the shares of fused layers are told; their figures are in test_node_shares of the oracles."""

from __future__ import annotations

from dld_tui.core.report.records import Layer, NodeLink
from dld_tui.core.report.sharing import cost_shares, sharing_note

TWO = (NodeLink((), "a", "a", "Conv", share=0.9), NodeLink((), "b", "b", "Relu", share=0.1))


def test_the_note_names_what_was_shared_by() -> None:
    layers = [
        Layer("x", "FusedConv", nodes=TWO, shared_by="macs"),
        Layer("y", "FusedConv", nodes=TWO, shared_by="macs"),
        Layer("z", "Gelu", nodes=TWO, shared_by="bytes"),
        Layer("old", "FusedConv", nodes=TWO),
        Layer("alone", "Conv", nodes=TWO[:1]),
    ]
    assert sharing_note(layers) == (
        "the time of a layer made of several nodes is an estimate, shared by their"
        " multiply-accumulates (2), by the bytes they move (1), equally, as nothing is known of"
        " their cost (1)"
    )
    assert sharing_note(layers[-1:]) == ""


def test_one_node_has_all() -> None:
    assert cost_shares([(None, "Conv")]) == ([1.0], "equal")
