"""A tokenizer of a few dozen pieces, trained on the texts at hand: byte-pair encoding of words.

Every word, with a space before it, begins as its characters. Then the most frequent pair of neighbours becomes one
piece, over and over; of equally frequent pairs the first in the alphabet. Encoding repeats the merges in that order.
"""

from __future__ import annotations

import collections
import dataclasses
import itertools
from collections.abc import Iterable, Sequence

from graphs.errors import CreditError

__all__ = ["WordPieces", "train_pieces"]


@dataclasses.dataclass(frozen=True)
class WordPieces:
    """A trained tokenizer.

    Attributes:
      pieces: text of each id: reserved names first, then characters, then merges.
      merges: pairs of texts, in the order in which they were learned.
      reserved: how many ids are names that no text is encoded to.
    """

    pieces: tuple[str, ...]
    merges: tuple[tuple[str, str], ...]
    reserved: int

    def encode(self, text: str) -> list[int]:
        """Ids of a text, word by word.

        Raises:
          CreditError: a character that the training texts do not have.
        """
        known = {piece: number for number, piece in enumerate(self.pieces) if number >= self.reserved}
        ids = []
        for word in _words(text):
            unknown = sorted(set(word) - known.keys())
            if unknown:
                raise CreditError(f"text {text!r} has the character {unknown[0]!r}, which no training text has")
            for pair in self.merges:
                word = _merged(word, pair)
            ids += [known[piece] for piece in word]
        return ids

    def decode(self, ids: Iterable[int]) -> str:
        """The text of some ids; reserved ones stand as their names."""
        return "".join(self.pieces[i] for i in ids).strip()


def train_pieces(texts: Iterable[str], size: int, reserved: Sequence[str] = ()) -> WordPieces:
    """Learn merges from texts until there are `size` ids.

    Examples:
      >>> pieces = train_pieces(["low lower lowest"], 12)
      >>> [pieces.pieces[i] for i in pieces.encode("lowest")]
      [' lowe', 's', 't']

    Args:
      texts: what is encoded later, or text like it.
      size: ids in all; fewer if no pair is left.
      reserved: names of ids that no text is encoded to.

    Raises:
      CreditError: `size` does not hold the reserved names and the characters.
    """
    counts = collections.Counter(tuple(word) for text in texts for word in _words(text))
    characters = sorted({c for word in counts for c in word})
    merges: list[tuple[str, str]] = []
    room = size - len(reserved) - len(characters)
    if room < 0:
        raise CreditError(f"size is {size}; expected {size - room} or more: reserved names and characters")
    while len(merges) < room:
        pairs: collections.Counter[tuple[str, str]] = collections.Counter()
        for word, times in counts.items():
            for pair in itertools.pairwise(word):
                pairs[pair] += times
        if not pairs:
            break
        best = min(pairs, key=lambda pair: (-pairs[pair], pair))
        merges.append(best)
        merged: collections.Counter[tuple[str, ...]] = collections.Counter()
        for word, times in counts.items():
            merged[tuple(_merged(word, best))] += times
        counts = merged
    return WordPieces((*reserved, *characters, *("".join(pair) for pair in merges)), tuple(merges), len(reserved))


def _words(text: str) -> list[tuple[str, ...]]:
    """Words as characters, each with a space before it."""
    return [(" ", *word) for word in text.split()]


def _merged(word: Sequence[str], pair: tuple[str, str]) -> tuple[str, ...]:
    out: list[str] = []
    for piece in word:
        if out and (out[-1], piece) == pair:
            out[-1] += piece
        else:
            out.append(piece)
    return tuple(out)
