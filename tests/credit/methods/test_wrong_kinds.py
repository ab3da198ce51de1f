"""Every public function that is no method, with arguments of a wrong kind: the error is the library's and names it."""

from __future__ import annotations

import contextlib
import inspect
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow
import pytest

import credit
from graphs.argument_kinds import checked_kinds

WRONG: dict[str, Any] = {
    "None": None, "string": "x", "bytes": b"x", "integer": 3, "negative": -1, "float": 1.5, "nan": float("nan"),
    "bool": True, "list": [1, 2], "strings": ["x"], "nones": [None], "dict": {"x": 1}, "empty": {}, "set": {1},
    "object": object(), "array": np.zeros(3), "matrix": np.zeros((2, 2)), "texts": np.array(["a"]),
}  # fmt: skip
"""Also tried: a graph, a result and a batch in place of each argument."""


@pytest.fixture(scope="module")
def calls(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[Callable[..., Any], list[Any], dict[str, Any]]]:
    """A call of each function that works, or that its first argument alone could mend: positional and by keyword."""
    log = tmp_path_factory.mktemp("logs") / "log.jsonl"
    events = [{"id": "1", "type": "message", "agent": "x", "value": 0.5}]
    lines = [{"trace_id": n, "task_id": "k", "events": events, "rewards": {"team": i}} for i, n in enumerate("abc")]
    log.write_text("\n".join(map(json.dumps, lines)))
    traces = credit.read(log)
    graph, reward = traces.graph, traces.reward
    amount = np.zeros(graph.num_events, np.float32)
    what = {"estimand": "increment", "source": "s", "centred": True, "own_outcome": False}
    claim = credit.claim(graph, amount, **what)
    table, numbers = pyarrow.table({"a": [1.0]}), np.zeros(3)
    out = log.parent / "table.csv"
    one_law = [law for law in credit.laws.LAWS if law != "finite"]
    return {
        "advantage": (credit.compose(graph, reward, [claim]).advantage, ["control"], {"beta": 0.5}),
        "audit": (credit.audit, [graph, reward, {"a": claim}], {}),
        "check": (credit.check, [credit.rloo], {"skip": one_law}),
        "choose": (credit.choose, [traces], {}),
        "claim": (credit.claim, [graph, amount], what),
        "compare": (credit.compare, [traces, {"a": claim}], {}),
        "compose": (credit.compose, [graph, reward, [claim]], {}),
        "explain": (credit.explain, [traces, "a", "1", {"a": claim}], {}),
        "fit_critic": (credit.fit_critic, [None], {}),
        "from_columns": (credit.from_columns, [], {"group": [0, 0], "trace": [0, 1], "reward": [1.0, 0.0]}),
        "from_torch": (credit.from_torch, [numbers], {}),
        "load_critic": (credit.load_critic, [log.parent], {}),
        "read": (credit.read, [log], {}),
        "read_chunks": (lambda *a, **k: list(credit.read_chunks(*a, **k)), [log], {"events": 3}),
        "read_store": (credit.read_store, [None], {}),
        "run": (credit.run, [traces, "rloo"], {}),
        "shapley_plan": (credit.shapley_plan, [["a", "b"]], {"budget": 8}),
        "stack": (credit.stack, [graph, reward, claim, claim], {}),
        "table": (credit.table, [traces, claim], {}),
        "to_pandas": (credit.to_pandas, [table], {}),
        "to_torch": (credit.to_torch, [numbers], {}),
        "write_table": (credit.write_table, [table, out], {}),
    }


OWN = {"progress", "map_files", "fn", "method", "after_epoch"}
"""Arguments that are functions: any other function is of the right kind, and its own errors are its own."""

NAMES = sorted(
    name
    for name in dir(credit)
    if inspect.isfunction(getattr(credit, name)) and name not in credit.METHODS and not name.startswith("_")
)


def test_no_function_is_left_out(calls: dict[str, Any]) -> None:
    assert sorted(calls) == sorted([*NAMES, "advantage"])


@pytest.mark.slow
@pytest.mark.parametrize("name", ["advantage", *NAMES])
def test_a_wrong_kind_is_refused_by_name_or_taken(name: str, calls: dict[str, Any], tmp_path: Path) -> None:
    call, given, options = calls[name]
    function = credit.read_chunks if name == "read_chunks" else call
    if name == "advantage":
        function = credit.ledger.training.advantage
    parameters = inspect.signature(function).parameters.values()
    keywords = [p.name for p in parameters if p.kind is p.KEYWORD_ONLY and p.name not in OWN]
    wrong = WRONG | {"graph": calls["claim"][1][0], "result": calls["table"][1][1], "batch": calls["table"][1][0]}
    for value in wrong.values():
        tries = [([*given[:at], value, *given[at + 1 :]], options) for at in range(len(given))]
        tries += [(given, {**options, keyword: value}) for keyword in keywords]
        for args, kwargs in tries:
            with contextlib.suppress(credit.CreditError):  # anything else fails the test
                call(*args, **kwargs)


@pytest.mark.parametrize(
    ("name", "at", "value", "words"),
    [
        ("audit", 2, [], "claims is [], of type list; expected a mapping of strings to results of methods"),
        ("choose", "inputs", 3, "inputs is 3, of type int; expected a list of strings"),
        ("claim", 1, np.zeros(3, np.float32), "amount has shape (3,); expected (128,), one entry for each event"),
        ("claim", "stderr", np.zeros(3), "stderr has shape (3,); expected (128,), one entry for each event"),
        ("compose", 1, "x", "reward is 'x', of type str; expected an array of numbers"),
        ("stack", 2, None, "messages is None, of type NoneType; expected what a method returns"),
        ("advantage", "baseline", np.zeros(3), "baseline has shape (3,); expected (128,), one entry for each trace"),
        ("advantage", "beta", np.zeros(3), "beta has shape (3,); expected a number, or (1,), one for each claim"),
        ("read_store", 0, "x", "store is 'x', of type str; expected a LightningStore of Agent Lightning"),
        ("shapley_plan", "seed", 1.5, "seed is 1.5, of type float; expected an integer"),
    ],
)
def test_a_wrong_kind_is_named(name: str, at: int | str, value: Any, words: str, calls: dict[str, Any]) -> None:
    """A baseline of three numbers for 128 traces was taken: the last of them stood for all others."""
    call, given, options = calls[name]
    args, kwargs = list(given), dict(options)
    if isinstance(at, int):
        args[at] = value
    else:
        kwargs[at] = value
    with pytest.raises(credit.CreditError) as caught:
        call(*args, **kwargs)
    assert words in str(caught.value)


def test_kinds_inside_unions_lists_and_mappings() -> None:
    @checked_kinds()
    def function(first: int | None, *, names: list[str] | dict[str, float] = [], **rest: float) -> int:  # noqa: B006
        return first or 0

    assert function(None) == 0 and function(np.int32(3), names={"a": 1.0}, other="free") == 3
    for args, kwargs, words in (
        (("x",), {}, "first is 'x', of type str; expected an integer or None"),
        ((True,), {}, "first is True, of type bool"),
        ((1,), {"names": ["a", 2]}, "expected a list of strings or a mapping of strings to numbers"),
        ((1,), {"names": {"a": "b"}}, "names is {'a': 'b'}"),
        ((1,), {"names": "ab"}, "names is 'ab', of type str"),
    ):
        with pytest.raises(credit.CreditError) as caught:
            function(*args, **kwargs)
        assert words in str(caught.value)
