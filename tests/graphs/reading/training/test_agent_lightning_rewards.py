"""Rewards of Agent Lightning: which dimension counts, and what a link leads to."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from graphs.errors import NothingReadError
from graphs.logs import read

CALL = {"gen_ai.response.id": "a"}


def span(number: int, name: str = "agentlightning.annotation", rollout: str = "r", **attributes: Any) -> dict[str, Any]:
    return {"rollout_id": rollout, "attempt_id": "0", "sequence_id": number, "span_id": f"s{number}", "name": name,
            "attributes": attributes}  # fmt: skip


def call(number: int = 1, rollout: str = "r") -> dict[str, Any]:
    return span(number, "openai.chat.completion", rollout, **CALL)


def reward(*parts: tuple[str, Any], **links: str) -> dict[str, Any]:
    """Attributes of a reward with dimensions of these names ("" for none) and values, and links of these keys."""
    attributes: dict[str, Any] = {}
    for number, (name, value) in enumerate(parts):
        stem = f"agentlightning.reward.{number}"
        attributes |= {f"{stem}.value": value} | ({f"{stem}.name": name} if name else {})
    for number, (key, value) in enumerate(links.items()):
        stem = f"agentlightning.link.{number}"
        attributes |= {f"{stem}.key_match": key.replace("__", "."), f"{stem}.value_match": value}
    return attributes


def lines(folder: Path, *records: Any) -> Path:
    path = folder / "log.jsonl"
    path.write_text("\n".join(map(json.dumps, records)))
    return path


def channels(path: Path) -> dict[str, float]:
    evidence = read(path).evidence
    return {
        name.removeprefix("rewards."): float(evidence[name].array[0])
        for name in evidence
        if name.startswith("rewards.")
    }


def refused(path: Path) -> list[tuple[str, str]]:
    with pytest.raises(NothingReadError) as caught:
        read(path)
    return [(problem.kind, problem.trace) for problem in caught.value.problems]


def test_the_first_dimension_counts_whether_or_not_it_has_a_name(tmp_path: Path) -> None:
    """The last one without a name was the outcome."""
    path = lines(tmp_path, call(), span(2, **reward(("", 0.0), ("", 1.0), ("style", 0.5))))
    assert channels(path) == {"team": 0.0, "reward.1": 1.0, "style": 0.5}


@pytest.mark.parametrize(
    ("parts", "kind"),
    [
        ((("acc", 0.0), ("team", 1.0)), "bad-value"),
        ((("acc", 0.0), ("early", 1.0)), "bad-value"),
    ],
)
def test_dimensions_that_would_replace_another_are_refused(
    tmp_path: Path, parts: tuple[tuple[str, float], ...], kind: str
) -> None:
    """The last of a name was the outcome."""
    assert refused(lines(tmp_path, call(), span(2, **reward(*parts)))) == [(kind, "r")]


@pytest.mark.parametrize("links", [{"gen_ai__response__id": "b"}, {"span_id": "s9"}, {"custom": "x"},
                                   {"gen_ai__response__id": "a", "span_id": "s9"}])  # fmt: skip
def test_a_reward_whose_link_leads_nowhere_is_left_out_alone(tmp_path: Path, links: dict[str, str]) -> None:
    """It was the outcome, and later refused the rollout."""
    path = lines(tmp_path, call(), span(2, **reward(("", 1.0), **links)), span(3, **reward(("", 0.5))))
    traces = read(path)
    assert [(problem.kind, problem.trace) for problem in traces.problems] == [("unknown-span", "r")]
    assert traces.reward[0] == 0.5 and "event_reward" not in traces.evidence


def test_a_link_to_the_second_span_of_a_call_leads_to_the_call(tmp_path: Path) -> None:
    """The reward was the outcome."""
    path = lines(tmp_path, call(), call(2), span(3, **reward(("", 0.25), span_id="s2")), span(4, **reward(("", 1.0))))
    traces = read(path)
    assert float(traces.reward[0]) == 1.0 and traces.evidence["event_reward"].amounts.tolist() == [0.25]


def test_two_numbers_of_one_dimension_are_no_outcome(tmp_path: Path) -> None:
    """The last of a name was the outcome, then the rollout was refused."""
    traces = read(lines(tmp_path, call(), span(2, **reward(("acc", 0.0), ("acc", 1.0)))))
    assert [problem.kind for problem in traces.problems] == ["unsettled-rewards"]
    assert not traces.reward_channels and traces.sizes.traces == 1


def test_an_earlier_reward_of_another_name_is_a_step(tmp_path: Path) -> None:
    """One of the outcome's own name is not: a verdict on an earlier attempt was added to that on the last."""
    again = {"gen_ai.response.id": "b"}
    steps = [span(2, **reward(("shape", 0.25))), span(3, **reward(("solved", 0.0)))]
    before = span(0, **reward(("shape", 0.5)))
    last = [span(4, "openai.chat.completion", **again), span(5, **reward(("solved", 1.0)))]
    traces = read(lines(tmp_path, before, call(), *steps, *last))
    assert channels(tmp_path / "log.jsonl") == {"team": 1.0, "early": 0.5}
    assert traces.evidence["event_reward"].amounts.tolist() == [0.25]
    assert traces.evidence["value"].array[traces.evidence["value"].mask].tolist() == [0.0]
    assert [problem.kind for problem in traces.problems] == ["earlier-outcome"]


def test_a_span_of_a_wrong_type_is_its_rollouts(tmp_path: Path) -> None:
    """Its `trace_id` took the place of the rollout's id, and the rollout was read without the span."""
    bad = span(2, **reward(("", 0.0))) | {"trace_id": "tracer", "attempt_id": 0}
    assert refused(lines(tmp_path, call(), span(1, **reward(("", 1.0))), bad)) == [("bad-type", "r")]
