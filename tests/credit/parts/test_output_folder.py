"""The folder of parts holds the rows of one run, whatever was in it, or the run is refused. No cluster is started."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import credit
from credit.methods.chunked import ChunkedMethod
from credit.ray import assign, compose, corpus_parts
from credit.ray.jobs import Advantages
from credit.ray.output_folder import OutputFolder
from credit.ray.part_runs import made_from
from credit.ray.run_mark import RunMark, claim, mark_file, read_mark
from graphs.errors import CreditError, NothingReadError
from graphs.logs.chunk_pieces import UnreadableError
from graphs.logs.chunks import read_chunks

GROUPS = 5


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    """Five groups of two traces with an event each: parts of one group by `events=2`."""
    file = tmp_path / "logs" / "log.jsonl"
    file.parent.mkdir()
    event = {"id": "e", "type": "message", "agent": "x"}
    traces = [
        {"trace_id": f"t{group}{i}", "task_id": f"q{group}", "events": [event], "rewards": {"team": float(i)}}
        for group in range(GROUPS)
        for i in range(2)
    ]
    file.write_text("".join(json.dumps(trace) + "\n" for trace in traces))
    return file.parent


@pytest.fixture
def out(tmp_path: Path) -> Path:
    return tmp_path / "out"


def run(logs: Path | str, out: Path | str, **more: Any) -> Any:
    return assign(logs, output=out, **{"method": "rloo", "events": 2, **more})


def content(folder: Path) -> list[str]:
    return sorted(str(file.relative_to(folder)) for file in folder.rglob("*") if file.is_file())


def check(out: Path, parts: Any) -> None:
    """The rows of the folder are those of one process, and as many as are reported."""
    table = pq.read_table(out)
    assert parts.rows == table.num_rows == 2 * GROUPS
    assert sorted(table["trace"].to_pylist()) == sorted(f"t{group}{i}" for group in range(GROUPS) for i in range(2))
    assert {str(file.absolute()) for file in parts.files} == {str(file) for file in out.glob("*.parquet")}


def _cut(out: Path) -> None:
    file = out / "part-00002.parquet"
    file.write_bytes(file.read_bytes()[:100])


def _other_rows(out: Path) -> None:
    pq.write_table(pq.read_table(out / "part-00002.parquet").slice(0, 1), out / "part-00002.parquet")


@pytest.mark.slow
@pytest.mark.parametrize(
    "damage", [lambda out: (out / "part-00002.parquet").unlink(), _cut, _other_rows], ids=["gone", "cut", "other rows"]
)
@pytest.mark.usefixtures("cluster")
def test_a_part_that_is_not_as_its_note_says_is_made_again(
    logs: Path, out: Path, damage: Callable[[Path], None]
) -> None:
    assert run(logs, out).resumed == 0
    damage(out)
    again = run(logs, out)
    assert again.resumed == GROUPS - 1
    check(out, again)


def test_a_killed_run_is_resumed_and_its_parts_are_no_other_runs(cluster: Any, logs: Path, out: Path) -> None:
    cluster.left = 3
    with pytest.raises(KeyboardInterrupt):
        run(logs, out)
    cluster.left = 1 << 30
    for more in ({"events": 4}, {"events": 1000}, {"limits": credit.Limits(events=9)}):
        with pytest.raises(CreditError, match=r"holds part \d of another run .* name another folder, or remove"):
            run(logs, out, **more)
    parts = run(logs, out)
    assert parts.resumed == 3
    check(out, parts)


@pytest.mark.parametrize("more", [{"method": "dr_mas"}, {"options": {"singleton": "zero"}}, {"actions_only": True}])
@pytest.mark.usefixtures("cluster")
def test_another_computation_is_refused_before_a_log_is_read(logs: Path, out: Path, more: dict[str, Any]) -> None:
    run(logs, out)
    before = content(out)
    with pytest.raises(CreditError, match=r"holds another run, 'assign rloo'; expected an empty folder"):
        run(logs.parent / "absent", out, **more)
    assert content(out) == before


@pytest.mark.parametrize("more", [{"method": "dr_mas"}, {"events": 4}])
def test_two_runs_given_one_empty_folder_keep_apart(cluster: Any, logs: Path, out: Path, more: dict[str, Any]) -> None:
    """The second began while the first computed, or both before either had written: it removed the first's parts."""
    real, refused = cluster.get, []

    def second_meanwhile(task: Any) -> Any:
        cluster.get = real
        if not refused:
            with pytest.raises(CreditError, match="holds another run, 'assign rloo'") as caught:
                run(logs, out, **more)
            refused.append(caught)
        cluster.get = second_meanwhile
        return real(task)

    cluster.get = second_meanwhile
    check(out, run(logs, out))
    assert refused


@pytest.mark.usefixtures("cluster")
def test_what_another_run_wrote_meanwhile_is_not_removed(logs: Path, out: Path) -> None:
    """Somebody empties the folder of a run and starts another there; then the first is refused."""
    run(logs, out)
    mark = out / "_parts" / "run"
    chunks = credit.read_chunks(logs, events=2)
    job = Advantages(ChunkedMethod("dr_mas"), False)
    first = OutputFolder(out, made_from(chunks, job), job)
    kept = content(out)
    first.remove()
    assert content(out) == kept
    mark.write_bytes(b"{")  # of a process that was killed while it wrote
    first.remove()
    assert content(out) == kept
    with pytest.raises(CreditError, match="holds another run, 'unknown'"):
        run(logs, out)


def test_a_part_that_is_not_seen_is_named(cluster: Any, logs: Path, out: Path) -> None:
    """As of a node that has a folder of its own under this path: the command ended in a traceback."""
    real = cluster.get

    def elsewhere(task: Any) -> Any:
        done = real(task)
        for file in out.glob("_parts/0*.json"):
            file.unlink()
        return done

    cluster.get = elsewhere
    with pytest.raises(
        CreditError, match=r"part 0 was written and is not in .* expected a folder that every node sees"
    ):
        run(logs, out)


@pytest.mark.usefixtures("cluster")
def test_rights_links_and_copies_of_a_log_keep_the_parts(logs: Path, out: Path) -> None:
    run(logs, out)
    file = logs / "log.jsonl"
    file.chmod(0o600)
    os.link(file, logs.parent / "kept")
    assert run(logs, out).resumed == GROUPS
    before, text = file.stat(), file.read_text()
    file.write_text(text.replace("1.0", "9.0"))
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))
    with pytest.raises(CreditError, match="holds part 0 of another run"):
        run(logs, out)


@pytest.mark.slow
@pytest.mark.usefixtures("cluster")
def test_a_folder_with_a_colon_is_no_address(logs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("run:3/out", "a::b"):
        check(tmp_path / name, run(logs, name))


def test_later_parts_of_another_run_are_refused(cluster: Any, logs: Path, out: Path) -> None:
    """A cluster may have ended them before the first, of a huge group."""
    run(logs, out)
    for number in range(2):
        (out / f"part-{number:05d}.parquet").unlink()
        (out / "_parts" / f"{number:05d}.json").unlink()
    with pytest.raises(CreditError, match="holds part 2 of another run"):
        run(logs, out, events=1000)
    check(out, run(logs, out))


def test_a_part_before_its_note_is_its_runs_own(cluster: Any, logs: Path, out: Path) -> None:
    """A process may be killed between the two."""
    run(logs, out)
    (out / "_parts" / "00003.json").unlink()
    check(out, run(logs, out))
    (out / "_parts" / "00003.json").unlink()
    for note in (out / "_parts").glob("0*.json"):
        note.unlink()
    with pytest.raises(CreditError, match=r"holds 'part-00000\.parquet', which is not of this run"):
        run(logs, out, events=4)


@pytest.mark.parametrize("name", ["old.parquet", "deep/er/old.parquet", "part-00000.parquet", "part-00099.parquet"])
@pytest.mark.usefixtures("cluster")
def test_other_tables_in_the_folder_are_refused_and_stay(logs: Path, out: Path, name: str) -> None:
    (out / name).parent.mkdir(parents=True)
    pq.write_table(pa.table({"trace": ["old"]}), out / name)
    (out / "_hidden.parquet").write_bytes(b"readers pass over it")
    with pytest.raises(CreditError, match=f"holds '{name}', which is not of this run; expected an empty folder"):
        run(logs, out)
    assert content(out) == sorted([name, "_hidden.parquet"])


@pytest.mark.slow
@pytest.mark.parametrize(("method", "words"), [("gae", "needs evidence"), ("rloo", "no trace has an outcome")])
@pytest.mark.usefixtures("cluster")
def test_a_refused_run_leaves_nothing(logs: Path, tmp_path: Path, method: str, words: str) -> None:
    (tmp_path / "kept").mkdir()
    for out in (tmp_path / "new" / "out", tmp_path / "kept"):
        with pytest.raises(CreditError, match=words):
            run(logs, out, method=method, reward="team" if method == "gae" else "absent")
    assert not (tmp_path / "new").exists() and list((tmp_path / "kept").iterdir()) == []


def test_a_refused_part_ends_the_others_and_leaves_nothing(cluster: Any, logs: Path, out: Path) -> None:
    file = logs / "log.jsonl"
    cluster.left = 1
    with pytest.raises(KeyboardInterrupt):
        run(logs, out)
    assert cluster.cancelled == GROUPS - 1  # an interrupt leaves no task that goes on to write
    cluster.left, cluster.cancelled = 1 << 30, 0
    real = cluster.get
    met: list[Any] = []

    def rewritten_meanwhile(task: Any) -> Any:
        met.append(task)
        if len(met) == 2:
            file.write_text(file.read_text().replace("1.0", "9.0"))
        return real(task)

    cluster.get = rewritten_meanwhile
    with pytest.raises(CreditError, match="it changed while it was read in chunks"):
        run(logs, out)
    assert cluster.cancelled == GROUPS - 2 and content(out) == []


def test_a_log_that_cannot_be_read_for_once_keeps_the_finished_parts(cluster: Any, logs: Path, out: Path) -> None:
    """A storage that gave no answer in one part removed all parts, those of earlier runs among them."""
    file, away = logs / "log.jsonl", logs.parent / "away"
    real = cluster.get
    met: list[Any] = []

    def gone_meanwhile(task: Any) -> Any:
        met.append(task)
        if len(met) == 3:
            file.rename(away)
        return real(task)

    cluster.get = gone_meanwhile
    with pytest.raises(UnreadableError, match="cannot be read any more"):
        run(logs, out)
    assert [name for name in content(out) if name.endswith(".parquet")] == ["part-00000.parquet", "part-00001.parquet"]


@pytest.mark.usefixtures("cluster")
def test_a_run_without_a_usable_trace_leaves_nothing(tmp_path: Path, out: Path) -> None:
    event = {"id": "e", "type": "no such type", "agent": "x"}
    (tmp_path / "log.jsonl").write_text(json.dumps({"trace_id": "t", "task_id": "q", "events": [event]}) + "\n")
    with pytest.raises(NothingReadError):
        run(tmp_path / "log.jsonl", out)
    assert not out.exists()


@pytest.mark.slow
@pytest.mark.usefixtures("cluster")
def test_paths_are_those_of_the_caller(logs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Workers have a current folder of their own."""
    monkeypatch.chdir(tmp_path)
    parts = run("logs", "out")
    check(tmp_path / "out", parts)
    assert set(pq.read_table("out")["file"].to_pylist()) == {"logs/log.jsonl"}  # as one process names it
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    check(tmp_path / "here", run(logs, "."))


def test_a_mark_appears_whole_and_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that was killed between making the mark and writing it left an empty one, which refused every run."""
    mark = RunMark("parts", "job", "rloo")
    for place in (tmp_path / "links", tmp_path / "no-links"):
        mark_file(place).parent.mkdir(parents=True)
        assert claim(place, mark) and not claim(place, RunMark("", "", "other"))
        assert read_mark(place) == mark and [file.name for file in mark_file(place).parent.iterdir()] == ["run"]
        monkeypatch.setattr(os, "link", no_links)
    mark_file(tmp_path / "links").write_bytes(b"\xff\xfe")
    other = read_mark(tmp_path / "links")
    assert other is not None and other.words == "unknown"


def no_links(*_: object) -> None:
    raise PermissionError(1, "Operation not permitted")


def test_what_is_no_folder_is_refused_before_anything_is_read(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    addresses = (
        "s3://b/out",
        "abfss+x://b",
        "simplecache::s3://b",
        "zip://x::s3://b",
        Path("s3://b/out"),
        "file:///out",
    )
    given = [(address, "is an address") for address in addresses]
    for output, words in (("", "output is ''"), *given, (tmp_path / "file", "is a file")):
        with pytest.raises(CreditError, match=words):
            run(tmp_path / "absent", output)


@pytest.mark.slow
@pytest.mark.usefixtures("cluster")
def test_parts_among_the_logs_are_no_logs(logs: Path) -> None:
    for resumed in (0, GROUPS):
        parts = run(logs, logs / "out")
        assert parts.problems == () and parts.resumed == resumed
        check(logs / "out", parts)
    traces = credit.read(logs)
    assert traces.problems == () and traces.sizes.traces == 2 * GROUPS
    assert len(traces.ignored) == 2 * GROUPS + 1


def test_bad_arguments_are_refused_before_tasks_start(tmp_path: Path) -> None:
    """Each part would refuse them on its own."""
    cases: list[tuple[dict[str, Any], str]] = [
        ({"options": {"bogus": 1}}, "method 'rloo' has no option 'bogus'"),
        ({"options": {"singleton": "drop"}}, "rloo: singleton is 'drop'"),
        ({"method": "grpo", "options": {"eps": -1}}, "grpo: eps is -1; expected a finite number"),
        ({"method": "grpo", "options": {"eps": "x"}}, "grpo: eps is 'x'; expected a finite number"),
        ({"evidence": ("value",)}, "method 'rloo' takes no evidence 'value'"),
    ]
    for more, words in cases:
        with pytest.raises(CreditError, match=words):
            run(tmp_path / "absent", tmp_path / "out", **more)
    for also, words in (({"rule": "x"}, "rule is 'x'; expected one of incr"), ({"level": "x"}, "level is 'x'; expect")):
        with pytest.raises(CreditError, match=words):
            compose(tmp_path / "absent", output=tmp_path / "out", methods=["rloo"], **also)  # type: ignore[arg-type]


def test_a_note_on_the_batch_stands_once_and_counts_the_parts_that_have_it(
    logs: Path, out: Path, cluster: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It stood as often as there were parts."""
    monkeypatch.setattr(corpus_parts, "connected", lambda: cluster)
    file = logs / "log.jsonl"
    traces = [json.loads(line) for line in file.read_text().splitlines()]
    for number, trace in enumerate(traces):
        trace["evidence"] = {"policy_version": number % 2 if number >= 4 else 0}
    file.write_text("".join(json.dumps(trace) + "\n" for trace in traces))
    (whole,) = credit.read(logs).problems
    survey, _ = corpus_parts.survey_of_parts(read_chunks(logs, events=2), iter)
    chunks = read_chunks(logs, events=2)
    assert len([*chunks]) == GROUPS
    for (note,) in (survey.problems, run(logs, out).problems, chunks.problems):
        assert (note.kind, note.count, note.expected) == ("several-versions", 3, whole.expected)


def test_a_survey_of_parts_names_a_channel_that_no_trace_has(
    logs: Path, cluster: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It gave no word, where the survey of one process did."""
    monkeypatch.setattr(corpus_parts, "connected", lambda: cluster)
    found, _ = corpus_parts.survey_of_parts(read_chunks(logs, events=2, reward="taem"), iter)
    assert found.problems == credit.read(logs, reward="taem").problems
    assert [problem.kind for problem in found.problems] == ["no-such-channel"]
