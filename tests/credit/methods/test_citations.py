"""BibTeX of methods: every paper that a source names, with author, title, year and place, or a sentence."""

from __future__ import annotations

import contextlib
import re
from pathlib import Path

import pytest
from click.testing import CliRunner

from credit.cli import cli
from credit.methods.catalog import CATALOG
from credit.methods.citations import NoPaperError, bibtex
from credit.methods.papers import PAPERS, REPOSITORIES
from credit.methods.published import PUBLISHED
from credit.methods.registry import METHODS

UNKNOWN = {"hera", "kimi_parl", "depart", "otb", "tir_otb"}
"""Published names whose papers were not found."""
FIELDS = re.compile(r"^  (\w+) = \{(.*)\},?$", re.MULTILINE)


@pytest.mark.parametrize("name", dict.fromkeys([*METHODS, *PUBLISHED]))
def test_each_paper_has_author_title_year_and_place(name: str) -> None:
    if name in UNKNOWN:
        with pytest.raises(NoPaperError, match="names no paper to cite: "):
            bibtex(name)
        return
    text = bibtex(name)
    entries = {entry.partition("{")[2].partition(",")[0]: dict(FIELDS.findall(entry)) for entry in text.split("\n\n")}
    assert len(entries) == text.count("@misc{")
    for key, fields in entries.items():
        if fields.get("url", "").startswith("https://github.com/"):
            assert fields["url"].removeprefix("https://github.com/") in REPOSITORIES.values()
            continue
        assert {"author", "title", "year"} <= fields.keys(), key
        assert fields["title"].startswith("{") and re.search(r"[a-z]", fields["title"])
        assert not re.search(r"[A-Z]{3}", fields["author"]), "a method's name is no author"
        arxiv = fields.get("eprint")
        assert arxiv is None or (fields["url"] == f"https://arxiv.org/abs/{arxiv}" and key.endswith(f"-{arxiv}"))
    stated = PUBLISHED[name].paper if name not in METHODS else METHODS[name].reference
    assert set(re.findall(r"arXiv:([\d.]+\d)", stated)) <= {fields.get("eprint") for fields in entries.values()}
    assert "hapley1953" in text or re.search("arxiv.org/abs|github.com|note = ", text), "a place to look it up"


def test_a_paper_is_of_the_people_and_the_year_that_a_reference_names() -> None:
    """The table against what references state themselves: a row under another paper's id has other surnames."""
    stated = [f"{method.reference} {' '.join((method.fn.__doc__ or '').split())}" for method in METHODS.values()]
    pattern = re.compile(r"([A-Z][a-zà-ÿ]+)(?:, [A-Z]\w+)*(?: and [A-Z]\w+| et al\.)? (?:19|20)\d\d, arXiv:([\d.]+\d)")
    rows = [row for text in [*stated, *(paper.paper for paper in PUBLISHED.values())] for row in pattern.findall(text)]
    checked = {(person, arxiv) for person, arxiv in rows if person in PAPERS[arxiv].authors}
    others = {person for person, arxiv in rows if person not in PAPERS[arxiv].authors}
    assert len(checked) > 25 and others <= {"Dudik"}, "written without its accent in one reference"
    assert not [key for key, paper in PAPERS.items() if "  " in paper.authors + paper.title or ",," in paper.authors]


def test_published_names_have_their_own_papers() -> None:
    named = CliRunner().invoke(cli, ["methods", "rloo", "--bibtex"])
    assert named.exit_code == 0 and "title = {{Buy 4 REINFORCE samples, get a baseline for free!}}" in named.stdout
    assert "author = {Wouter Kool and Herke van Hoof and Max Welling}" in named.stdout and not named.stderr
    assert "Shao" not in bibtex("dapo") and "author = {Qiying Yu and " in bibtex("dapo")
    assert "left out" in CliRunner().invoke(cli, ["methods", "dapo", "--bibtex"]).stderr  # further authors
    code = bibtex("verl_grpo")
    assert "DeepSeekMath" in code and "https://github.com/verl-project/verl" in code
    assert "compute_grpo_outcome_advantage" in code and "doi:10.1007/BF00992696" in bibtex("discounted_return")
    assert "eprint = {2505.20732}" in bibtex("spa_rl") and "note = {RED}" in bibtex("RED"), "of the catalog, as stated"
    assert "--bibtex takes names of methods" in CliRunner().invoke(cli, ["methods", "--bibtex"]).stderr
    assert "no method is called" in CliRunner().invoke(cli, ["methods", "rlo", "--bibtex"]).stderr


def test_a_key_has_one_content_whatever_is_cited() -> None:
    """`@misc{verl,` stood for six functions; BibTeX then refuses the second as a repeated entry."""
    contents: dict[str, set[str]] = {}
    for name in {*METHODS, *PUBLISHED, *(row.name for row in CATALOG)}:
        with contextlib.suppress(NoPaperError):
            for entry in bibtex(name).split("\n\n"):
                contents.setdefault(entry.split(",")[0], set()).add(entry)
    assert {key for key, entries in contents.items() if len(entries) > 1} == set() and len(contents) > 100
    shown = CliRunner().invoke(cli, ["methods", "opo", "verl_grpo", "prime_rl_grpo", "grpo", "--bibtex"]).stdout
    joined = ["methods", "opo,verl_grpo, prime_rl_grpo,grpo", "--bibtex"]  # as `bench` takes them
    assert CliRunner().invoke(cli, joined).stdout == shown
    keys = re.findall(r"@misc{(.*),", shown)
    assert keys == [
        "hao2025-2505.23585", "verl-compute_opo_outcome_advantage", "shao2024-2402.03300",
        "verl-compute_grpo_outcome_advantage", "prime-rl-algo-grpo.py",
    ]  # fmt: skip
    assert "note = {compute_opo_outcome_advantage, commit 1dda039}" in shown
    assert "note = {algo/grpo.py, commit 559b447}" in shown and "note = {compute_grpo_outcome_advantage}" in shown


def test_a_method_without_a_paper_does_not_keep_the_others_from_being_cited(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "uncited_mine.py").write_text("def b(graph, reward):\n    return None\n")
    monkeypatch.syspath_prepend(tmp_path)
    shown = CliRunner().invoke(cli, ["methods", "grpo", "uncited_mine:b", "hera", "--bibtex"])
    assert shown.exit_code == 0 and "eprint = {2402.03300}" in shown.stdout
    assert "left out: The source of 'uncited_mine:b' names no paper to cite: its docstring has no" in shown.stderr
    assert "left out: The source of 'hera' names no paper" in shown.stderr
    alone = CliRunner().invoke(cli, ["methods", "uncited_mine:b", "--bibtex"])
    assert alone.exit_code == 1 and "names no paper to cite" in alone.stderr and not alone.stdout
