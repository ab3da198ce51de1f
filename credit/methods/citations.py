"""BibTeX of the papers of a method, from what its reference states: what that does not state is left out."""

from __future__ import annotations

import inspect
import re
import unicodedata
from typing import NamedTuple

from credit.methods.catalog import CATALOG
from credit.methods.method_page import plain_function
from credit.methods.published import PUBLISHED, find_method, key_of
from credit.methods.registry import METHODS
from graphs.errors import CreditError

__all__ = ["NoPaperError", "bibtex"]

_PERSON = r"(?:van |de )?[A-Z][a-zà-ÿ]+"
_AUTHORS = re.compile(
    rf"(?:the leave-one-out baseline of )?({_PERSON}(?:, {_PERSON})*(?: and {_PERSON}| et al\.)?)"
    r',? (?:ICLR )?((?:19|20)\d\d)\b(?:, "([^"]+)")?'
)
"""How a part of a reference begins that states surnames and a year, and a title."""
_NAME = re.compile(r"([A-Z][^:,]*?)(?: 20\d\d)?, (?:arXiv|OpenReview)")
_ID, _FORUM = re.compile(r"arXiv:(\d{4}\.\d{4,5})"), re.compile(r"OpenReview (\w+)")


class NoPaperError(CreditError):
    """The source of a method is code alone."""


class _Paper(NamedTuple):
    people: str
    year: str
    name: str
    title: str
    id: str
    forum: str

    @property
    def key(self) -> str:
        first = re.findall(r"[A-Z][a-zà-ÿ]+", self.people)
        plain = unicodedata.normalize("NFKD", first[0] if first else self.name).encode("ascii", "ignore").decode()
        return f"{re.sub(r'[^a-z0-9]', '', plain.lower()) or 'arxiv'}{self.year}" + (f"-{self.id}" if self.id else "")

    def entry(self) -> str:
        authors = re.sub(r" et al\.$", " and others", self.people).replace(", ", " and ")
        fields = {"author": authors, "title": f"{{{self.title}}}" if self.title else "", "year": self.year}
        fields |= {"eprint": self.id, "archivePrefix": "arXiv" if self.id else ""}
        note = self.name or (f"OpenReview {self.forum}" if self.forum else "")
        lines = [f"  {name} = {{{value}}}" for name, value in (fields | {"note": note}).items() if value]
        return f"@misc{{{self.key},\n" + ",\n".join(lines) + "\n}"


def bibtex(name: str) -> str:
    """An entry for each paper that the source of a method names; fields that are not known are left out.

    Args:
      name: a key of `METHODS`, a published name, or a name of `credit methods --catalog`.

    Raises:
      CreditError: nothing has that name.
      NoPaperError: its source names no paper.

    Examples:
      >>> print(bibtex("dr_grpo"))
      @misc{liu2025-2503.20783,
        author = {Liu and others},
        year = {2025},
        eprint = {2503.20783},
        archivePrefix = {arXiv}
      }
    """
    row = next((row for row in CATALOG if row.name.lower() == name.lower()), None)
    published = None if name in METHODS else PUBLISHED.get(key_of(name))
    if published is not None and published.paper:
        sources = [published.paper]
    elif row is None or name in METHODS or (published is not None and published.method is not None):
        method = find_method(name)
        documented = (inspect.getdoc(plain_function(method.fn)) or "").partition("\nReference:")[2]
        sources = [" ".join(documented.partition("\nExamples:")[0].split()), method.reference]
    else:
        at = f"arXiv:{row.paper}" if _ID.fullmatch(f"arXiv:{row.paper}") else f"OpenReview {row.paper}"
        sources = [f"{row.name}, {at}"]
    papers: dict[str, _Paper] = {}
    for part in (part for source in sources for part in source.split("; ")):
        if (paper := _paper(part)) is not None:
            place = paper.id or paper.forum or paper.key
            both = zip(papers.get(place, paper), paper, strict=True)
            papers[place] = _Paper(*(max(fields, key=len) for fields in both))  # whichever states more
    if not papers:
        raise NoPaperError(f"The source of {name!r} names no paper to cite: {sources[-1] or 'none is stated'}")
    return "\n\n".join(paper.entry() for paper in papers.values())


def _paper(part: str) -> _Paper | None:
    """What a part of a reference states; None where it names no paper, as of code."""
    authors, name = _AUTHORS.match(part), _NAME.match(part)
    found = (_ID.search(part), _FORUM.search(part))
    if not (authors or any(found)):
        return None
    people, year, title = authors.groups("") if authors else ("", "", "")
    arxiv, forum = (match[1] if match else "" for match in found)
    return _Paper(people, year or _year(arxiv), name[1] if name and not authors else "", title, arxiv, forum)


def _year(arxiv: str) -> str:
    """The year that an arXiv id begins with; "" without one.

    Examples:
      >>> _year("2602.08847"), _year("")
      ('2026', '')
    """
    return f"20{arxiv[:2]}" if arxiv else ""
