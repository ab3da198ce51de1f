"""BibTeX of methods: every paper that a source names, and nothing that it does not state."""

from __future__ import annotations

import re

import pytest
from click.testing import CliRunner

from credit.cli import cli
from credit.methods.citations import bibtex
from credit.methods.published import PUBLISHED
from credit.methods.registry import METHODS
from graphs.errors import CreditError

OF_CODE = {"maac", "verl_grpo", "verl_rloo", "trl_grpo", "openrlhf_group_norm", "slime_grpo", "prime_rl_grpo",
           "rllm_reinforce_pp", "igrpo", "hierarchical_grpo"}  # fmt: skip
"""Methods whose sources are code alone."""
FIELDS = re.compile(r"^  (\w+) = \{(.*)\},?$", re.MULTILINE)


@pytest.mark.parametrize("name", METHODS)
def test_each_paper_of_a_reference_has_an_entry_with_no_more_than_is_stated(name: str) -> None:
    method = METHODS[name]
    if name in OF_CODE:
        with pytest.raises(CreditError, match="names no paper to cite: "):
            bibtex(name)
        return
    text = bibtex(name)
    stated = f"{method.reference} {' '.join((method.fn.__doc__ or '').split())}"
    assert set(re.findall(r"arXiv:([\d.]+\d)", method.reference)) <= set(re.findall(r"eprint = \{(.*?)\}", text))
    for field, value in FIELDS.findall(text):
        words = re.findall(r"[^\W\d_]{2,}", value) if field in ("author", "title", "note") else [value]
        known = {"and", "others", "arXiv"} | ({value} if field == "year" else set())
        assert set(words) <= known or all(word in stated or word in known for word in words), (field, value)
        assert field != "author" or not re.search(r"[A-Z]{2}", value), "a method's name is no author"
    keys = re.findall(r"^@misc\{([a-z0-9.-]+),$", text, re.MULTILINE)
    assert len(set(keys)) == len(keys) == text.count("@misc{")


def test_published_names_have_their_own_papers() -> None:
    named = CliRunner().invoke(cli, ["methods", "rloo", "--bibtex"])
    assert named.exit_code == 0 and "title = {{Buy 4 REINFORCE samples, get a baseline for free!}}" in named.stdout
    assert "author = {Kool and van Hoof and Welling}" in named.stdout and "eprint = {2402.14740}" in named.stdout
    for key, paper in PUBLISHED.items():
        for arxiv in re.findall(r"arXiv:([\d.]+\d)", paper.paper):
            assert f"eprint = {{{arxiv}}}" in bibtex(key), key
    assert "Shao" not in bibtex("dapo") and "author = {Yu and others}" in bibtex("dapo")
    assert "--bibtex takes one name" in CliRunner().invoke(cli, ["methods", "--bibtex"]).stderr
    assert "no method is called" in CliRunner().invoke(cli, ["methods", "rlo", "--bibtex"]).stderr
