"""BibTeX of the papers of a method, from its reference and a table of papers: what neither states is left out."""

from __future__ import annotations

import functools
import inspect
import re
import unicodedata
from typing import NamedTuple

from credit.methods.catalog import CATALOG, CatalogRow
from credit.methods.method_page import plain_function
from credit.methods.method_row import Method
from credit.methods.papers import PAPERS, REPOSITORIES
from credit.methods.published import PUBLISHED, find_method, key_of
from credit.methods.registry import METHODS
from graphs.errors import CreditError

__all__ = ["FIELDS", "NoPaperError", "bibtex"]

FIELDS = ("author", "title", "year")
"""Fields that a complete entry has."""

_PERSON = r"(?:van |de )?[A-Z][a-zà-ÿ]+"
_AUTHORS = re.compile(
    rf"(?:the leave-one-out baseline of )?({_PERSON}(?:, {_PERSON})*(?: and {_PERSON}| et al\.)?)"
    r',? (?:ICLR )?((?:19|20)\d\d)\b(?:, "([^"]+)")?'
)
"""How a part of a reference begins that states surnames and a year, and a title."""
_NAME = re.compile(r"([A-Z][^:,]*?)(?: 20\d\d)?, (?:arXiv|OpenReview)")
_ID, _FORUM = re.compile(r"arXiv:(\d{4}\.\d{4,5})"), re.compile(r"OpenReview (\w+)")
_CODE = re.compile(rf"(?:[\w-]+: )?({'|'.join(map(re.escape, REPOSITORIES))})(?![\w-])(?:: [\w/-]+)? ?([\w./]*)")
"""How a part of a reference begins that states code, with the file or function."""


class NoPaperError(CreditError):
    """No paper of a method is known, and no repository."""


class _Source(NamedTuple):
    people: str
    year: str
    name: str
    title: str
    id: str = ""
    forum: str = ""
    code: str = ""

    @property
    def key(self) -> str:
        first = re.split(r", | and | et al\.", self.people)[0].split()
        plain = unicodedata.normalize("NFKD", first[-1] if first else self.name).encode("ascii", "ignore").decode()
        return f"{re.sub(r'[^a-z0-9]', '', plain.lower()) or 'arxiv'}{self.year}"

    def entry(self) -> str:
        known = PAPERS.get(self.id or self.forum or self.key)
        people, title = (known.authors, known.title) if known else (self.people, self.title)
        key = self._replace(people=people).key + (f"-{self.id}" if self.id else "")
        note = [known.place] if known and known.place else [] if known else [self.name]
        note += [f"OpenReview {self.forum}"] if self.forum else []
        url = f"https://arxiv.org/abs/{self.id}" if self.id else ""
        if self.code:
            key = re.sub(r"[^a-z0-9._]+", "-", f"{self.name} {self.code}".lower()).removesuffix("-code")
            commit = _commit(self.name, self.code) if key != self.name.lower() else ""
            url = f"https://github.com/{REPOSITORIES[self.name]}"
            note = [self.code, f"commit {commit}" if commit else ""]
        fields = {"author": re.sub(r" et al\.$", " and others", people).replace(", ", " and ")}
        fields |= {"title": f"{{{title}}}" if title else "", "year": self.year}
        fields |= {"eprint": self.id, "archivePrefix": "arXiv" if self.id else "", "url": url}
        fields |= {"note": ", ".join(filter(None, note))}
        return (
            f"@misc{{{key},\n" + ",\n".join(f"  {field} = {{{text}}}" for field, text in fields.items() if text) + "\n}"
        )


def bibtex(*names: str) -> str:
    """An entry for each paper and repository that sources of methods name, without the fields that are not known.

    An entry of several methods stands once. One key never has two contents.

    Args:
      names: keys of `METHODS`, published names, or names of `credit methods --catalog`.

    Raises:
      CreditError: nothing has one of the names.
      NoPaperError: no paper of one is known.

    Examples:
      >>> print(bibtex("dr_grpo"))
      @misc{liu2025-2503.20783,
        author = {Zichen Liu and Changyu Chen and Wenjun Li and Penghui Qi and Tianyu Pang and Chao Du and Wee Sun Lee and Min Lin},
        title = {{Understanding R1-Zero-Like Training: A Critical Perspective}},
        year = {2025},
        eprint = {2503.20783},
        archivePrefix = {arXiv},
        url = {https://arxiv.org/abs/2503.20783}
      }
    """  # noqa: E501
    return "\n\n".join(dict.fromkeys(source.entry() for name in names for source in _sources(name)))


def _sources(name: str) -> list[_Source]:
    row = next((row for row in CATALOG if row.name.lower() == name.lower()), None)
    published = None if name in METHODS else PUBLISHED.get(key_of(name))
    if published is not None and published.paper:
        sources = [published.paper]
    elif published is not None and published.method is None:
        row = row or next((row for row in CATALOG if key_of(row.name) == key_of(name)), None)
        sources = [_of_catalog(row)] if row else [f"{published.title}, without a reference here"]
    elif row is None or name in METHODS or published is not None:
        method = find_method(name)
        sources = [_documented(method), method.reference]
    else:
        sources = [_of_catalog(row)]
    found: dict[str, _Source] = {}
    for part in (part for source in sources for part in source.split("; ")):
        if (paper := _paper(part)) is not None:
            place = paper.id or paper.forum or paper.key
            both = zip(found.get(place, paper), paper, strict=True)
            found[place] = _Source(*(max(fields, key=len) for fields in both))  # whichever states more
        elif code := _CODE.match(part) if part in sources[-1] else None:  # a docstring says more than a name of code
            found[code[1]] = _Source("", "", code[1], code[1], code=code[2] or "code")
    if not found:
        stated = "its docstring has no `Reference:` with a paper" if ":" in name else sources[-1] or "none is stated"
        raise NoPaperError(f"The source of {name!r} names no paper to cite: {stated}")
    return list(found.values())


def _documented(method: Method) -> str:
    """The reference in the docstring."""
    text = (inspect.getdoc(plain_function(method.fn)) or "").partition("\nReference:")[2]
    return " ".join(text.partition("\nExamples:")[0].split())


@functools.cache
def _commit(name: str, code: str) -> str:
    """The commit of a repository's code where the docstring of any method states it, else ""."""
    named = re.compile(rf"\b{re.escape(name)}\b[^;]*?{re.escape(code)}[^;]*? at ([0-9a-f]{{7}})\b")
    stated = filter(None, (named.search(_documented(method)) for method in METHODS.values()))
    return next((found[1] for found in stated), "")


def _of_catalog(row: CatalogRow) -> str:
    at = f"arXiv:{row.paper}" if _ID.fullmatch(f"arXiv:{row.paper}") else f"OpenReview {row.paper}"
    return f"{row.name}, {at}" if row.paper else f"{row.name}, of which the survey states no paper"


def _paper(part: str) -> _Source | None:
    """What a part of a reference states; None where it names no paper, as of code."""
    authors, name = _AUTHORS.match(part), _NAME.match(part)
    arxiv, forum = (match[1] if (match := pattern.search(part)) else "" for pattern in (_ID, _FORUM))
    if not (authors or arxiv or forum):
        return None
    people, year, title = authors.groups("") if authors else ("", "", "")
    return _Source(people, year or _year(arxiv), name[1] if name and not authors else "", title, arxiv, forum)


def _year(arxiv: str) -> str:
    """The year that an arXiv id begins with; "" without one.

    Examples:
      >>> _year("2602.08847"), _year("")
      ('2026', '')
    """
    return f"20{arxiv[:2]}" if arxiv else ""
