"""A person who answers as the test says, and what this person was asked."""

from __future__ import annotations

from collections.abc import Iterable


class Answers:
    """Gives its answers in order; without one left it gives up.

    Args:
        secrets: What is typed.
        trusts: What is answered to every question that wants yes or no.
    """

    def __init__(self, secrets: Iterable[str] = (), *, trusts: bool = False) -> None:
        self.left = list(secrets)
        self.trusts = trusts
        self.questions: list[str] = []
        self.details: list[str] = []

    def secret(self, question: str) -> str | None:
        self.questions.append(question)
        return self.left.pop(0) if self.left else None

    def confirm(self, question: str, detail: str) -> bool:
        self.questions.append(question)
        self.details.append(detail)
        return self.trusts
