"""Every published name leads to a function, or says why no log allows one and what can be used instead."""

from __future__ import annotations

import inspect

import numpy as np
import pytest

import credit
from credit.law_batches import regular
from credit.published import PUBLISHED, find_method, key_of

SURVEY = """shared GRPO, MAGRPO, MAPoRL, MARFT, Dr. MAS, CoLLM-MAAC, LangMARL, MALT, MATPO, Puppeteer, Agent Q-Mix,
    M-GRPO, MarsRL, C3, SHARP, HERA, Kimi PARL, WideSeek-R1, Context-Folding, MARSHAL, DEPART, Agent Lightning,
    SPIRAL, RLOO, REINFORCE++, GiGPO, COMA, QMIX, VDN"""


@pytest.mark.parametrize("title", [" ".join(title.split()) for title in SURVEY.split(",")])
def test_every_method_of_the_survey_is_found_by_its_name(title: str) -> None:
    paper = PUBLISHED[key_of(title)]
    assert paper.note
    if paper.method is None:
        assert paper.status == ("reconstructed" if paper.reward else "not computable") and paper.portable
        assert not paper.reward or callable(getattr(credit, paper.reward))
        reason = "is a reward, not a method" if paper.reward else "not computable from logs"
        with pytest.raises(credit.CreditError, match=f"{reason}.*what can be used"):
            find_method(title)
    else:
        assert paper.status in ("released", "reconstructed", "formula")
        method = find_method(title)
        assert method.needs == credit.METHODS[paper.method].needs
        assert set(paper.options) <= set(inspect.signature(credit.METHODS[paper.method].fn).parameters)


def test_names_of_papers_are_keys() -> None:
    assert [key_of(x) for x in ("Dr. MAS", "dr-mas", "REINFORCE++", " WideSeek-R1 ")] == [
        "dr_mas",
        "dr_mas",
        "reinforce_pp",
        "wideseek_r1",
    ]
    with pytest.raises(credit.CreditError, match="did you mean grpo"):
        find_method("gpro")
    assert find_method("OpenRLHF group norm") is credit.METHODS["openrlhf_group_norm"]


def test_a_published_name_brings_its_options() -> None:
    batch = regular(0, {})
    shared = find_method("shared GRPO")(batch.graph, batch.reward)
    rows = find_method("Dr. MAS")(batch.graph, batch.reward)
    by_trace = np.asarray(shared.advantage)
    assert all(len(set(by_trace[batch.graph.trace_ids == t])) == 1 for t in range(batch.graph.num_traces))
    assert not np.array_equal(by_trace, rows.advantage)
