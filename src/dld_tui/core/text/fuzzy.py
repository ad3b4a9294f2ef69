"""Fuzzy search as fzf does it: letters in order, best where they begin words and stand together.

The score is that of fzf's optimal algorithm (Smith-Waterman with affine gaps and bonuses at word
boundaries, ``src/algo/algo.go`` of github.com/junegunn/fzf). Lists of tens of thousands of texts
are narrowed key by key, and only the candidates that can come first are scored.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

_MATCH = 16
_GAP_START = -3
_GAP_EXTENSION = -1
_BOUNDARY = _MATCH // 2
_CAMEL = _BOUNDARY + _GAP_EXTENSION
_CONSECUTIVE = -(_GAP_START + _GAP_EXTENSION)
_FIRST_FACTOR = 2
"""Weight of the bonus of the first letter."""

_PREFIX = 1000
"""Bonus of a text that begins with the query: more than letters inside can score."""
_WHOLE_WORD = 200
"""Further bonus when that beginning is a whole word."""
_MOST_SCORED = 300
"""The most matches that are scored; the others follow in their own order."""
_LONGEST = 160
"""The most characters of a text that count for the score."""


def score(query: str, text: str) -> int | None:
    """Return how well a text fits a query, higher is better, or None when it does not.

    Words of the query, at blanks, must each be found, in any order; case does not matter. An empty
    query fits everything with 0.
    """
    words = query.lower().split()
    total = 0
    for word in words:
        word_score = _word_score(word, text)
        if word_score is None:
            return None
        total += word_score
    return total + (_beginning(words[0], text.lower()) if words else 0)


def _beginning(word: str, lowered: str) -> int:
    """Return the bonus of a text that begins with a word."""
    if not lowered.startswith(word):
        return 0
    return _PREFIX + (0 if lowered[len(word) : len(word) + 1].isalnum() else _WHOLE_WORD)


def _word_score(word: str, text: str) -> int | None:
    lowered = _lower(text)
    if not _has(word, lowered):
        return None
    lowered, text = lowered[:_LONGEST], text[:_LONGEST]
    if not _has(word, lowered):
        return 0
    bonuses = _bonuses(text)
    scores: list[int] = []
    runs: list[int] = []
    for place, letter in enumerate(word):
        scores, runs = _row(letter, place == 0, lowered, bonuses, scores, runs)
    return max(scores)


def _row(
    letter: str,
    first: bool,
    text: str,
    bonuses: Sequence[int],
    scores: Sequence[int],
    runs: Sequence[int],
) -> tuple[list[int], list[int]]:
    """Return for each position in a text the best score ending there, and the length of its run.

    Args:
        letter: The letter of the query that this row is about.
        first: Whether it is the query's first.
        text: The lower-case text.
        bonuses: The bonus of each position in the text.
        scores: The row of the letter before.
        runs: The lengths of runs for the letter before.
    """
    new_scores, new_runs = [], []
    left, in_gap = 0, False
    for at, other in enumerate(text):
        taken, run = 0, 0
        before = _MATCH if first else (scores[at - 1] if at else 0)
        if other == letter and before:
            run = 1 if first else runs[at - 1] + 1
            bonus = bonuses[at]
            if first:
                taken = before + bonus * _FIRST_FACTOR
            else:
                if run > 1:
                    begin = bonuses[at - run + 1]
                    if bonus >= _BOUNDARY and bonus > begin:
                        run = 1
                    else:
                        bonus = max(bonus, _CONSECUTIVE, begin)
                taken = before + _MATCH + bonus
        skipped = left + (_GAP_EXTENSION if in_gap else _GAP_START) if left else 0
        in_gap = taken < skipped
        left = max(taken, skipped, 0)
        new_scores.append(left)
        new_runs.append(0 if in_gap else run)
    return new_scores, new_runs


def _bonuses(text: str) -> list[int]:
    """Return the bonus of a match at each position: higher where a word begins."""
    bonuses = []
    previous = " "
    for char, following in zip(text, text[1:] + " ", strict=True):
        if not char.isalnum():
            bonuses.append(_BOUNDARY if previous.isalnum() else 0)
        elif not previous.isalnum():
            bonuses.append(_BOUNDARY)
        elif char.isupper() and (previous.islower() or following.islower()):
            bonuses.append(_CAMEL)  # in PRelu, too
        elif char.isdigit() and not previous.isdigit():
            bonuses.append(_CAMEL)
        else:
            bonuses.append(0)
        previous = char
    return bonuses


def _has(word: str, lowered: str) -> bool:
    at = -1
    for letter in word:
        at = lowered.find(letter, at + 1)
        if at < 0:
            return False
    return True


def _lower(text: str) -> str:
    lowered = text.lower()
    # A few letters become two, which would move the others away from their bonuses.
    return lowered if len(lowered) == len(text) else text


class FuzzyIndex:
    """Texts to search again and again while a query is typed.

    A query that continues the last one only searches the matches of the last one.
    """

    def __init__(self, texts: Iterable[str] = ()) -> None:
        self._texts: list[str] = []
        self._lowered: list[str] = []
        self._query = ""
        self._found: Sequence[int] = range(0)
        self.extend(texts)

    def __len__(self) -> int:
        return len(self._texts)

    def extend(self, texts: Iterable[str]) -> None:
        """Add texts behind those that are there."""
        new = list(texts)
        self._texts += new
        self._lowered += [_lower(text) for text in new]
        self._query, self._found = "", range(len(self._texts))

    def search(self, query: str) -> Sequence[int]:
        """Return the places of the texts that fit a query, the best first.

        Args:
            query: Words at blanks; an empty query gives everything in its own order. Ties keep the
                shorter text before the longer one, then the order of the texts.
        """
        query = query.lower()
        words = query.split()
        if not query.startswith(self._query):
            self._found = range(len(self._texts))
        for word in words:
            self._found = _holding(word, self._found, self._lowered)
        self._query = query
        if not words:
            return self._found
        return self._ranked(words)

    def _ranked(self, words: Sequence[str]) -> list[int]:
        first, rest = self._best_candidates(words[0])
        texts = self._texts

        def key(at: int) -> tuple[int, int]:
            text = texts[at]
            points = sum(_word_score(word, text) or 0 for word in words)
            points += _beginning(words[0], self._lowered[at])
            return -points, len(text)

        return sorted(first, key=key) + rest

    def _best_candidates(self, word: str) -> tuple[list[int], list[int]]:
        """Return the matches to score, and the others."""
        best_candidates = list(self._found)
        if len(best_candidates) <= _MOST_SCORED:
            return best_candidates, []
        lowered = self._lowered
        whole = [at for at in best_candidates if word in lowered[at]]
        begins = [at for at in whole if lowered[at].startswith(word)]
        ordered = dict.fromkeys([*begins, *whole, *best_candidates])
        best_candidates = list(ordered)
        return best_candidates[:_MOST_SCORED], best_candidates[_MOST_SCORED:]


def _holding(word: str, places: Iterable[int], lowered: Sequence[str]) -> list[int]:
    """Return the places whose texts have the letters of a word in order."""
    first, others = word[0], word[1:]
    matching = []
    for at in places:
        text = lowered[at]
        end = text.find(first)
        for letter in others:
            if end < 0:
                break
            end = text.find(letter, end + 1)
        if end >= 0:
            matching.append(at)
    return matching
