"""Rollout dumps of trainers: verl, SkyRL, NeMo-RL, NeMo Gym, tinker-cookbook, and TRL's completions.

    {input, output, gts, score, step, …}                                            verl, `rollout_data_dir`
    {input_prompt, output_response, score, stop_reason, env_class, …}               SkyRL
    {content, rewards, token_ids, token_loss_mask, generation_logprobs, …}          NeMo-RL, `train_data_stepN.jsonl`
    {responses_create_params, response, reward, _ng_task_index, _ng_rollout_index}  NeMo Gym
    {split, iteration, group_idx, traj_idx, steps, final_reward, total_reward, …}   tinker-cookbook
    step, prompt, completion, REWARD…, advantage                                    TRL, `completions_N.parquet`

A row is a trace, whatever its text: rows of equal text are different rollouts. Rows of one prompt at one step are a
group. Where no model is stated, runs in different folders are different systems. `docs/formats/rollouts.md` has the
whole mapping.

`rows` reads rows with one text, `row_parts` many of them at once, `outputs` joins those of one rollout. `nemo_gym`
reads rows with messages and tools, `nemo_rl` those with tokens, `tinker` those with steps, `trl` the Parquet files.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator

from graphs.errors import Problem, TraceError
from graphs.formats.rollouts.nemo_gym import FailedRow, GymRow, GymRows, read_failed, read_gym
from graphs.formats.rollouts.nemo_rl import NEMO_RL, NemoRow, read_nemo_rl
from graphs.formats.rollouts.outputs import Rollouts, may_be_an_output, split_rollouts
from graphs.formats.rollouts.row_parts import begins_with_a_row, read_lines
from graphs.formats.rollouts.rows import ROW, SKYRL, VERL, Row, read_row
from graphs.formats.rollouts.tinker import TINKER, TinkerRow, read_tinker
from graphs.formats.rollouts.trl import read_completions
from graphs.reading.addresses import real_folder
from graphs.reading.copied_files import without_copied_files
from graphs.reading.documents import Document, documents
from graphs.reading.files import short_names, systems
from graphs.reading.json_problems import JSON_ERRORS
from graphs.reading.keys import opening
from graphs.reading.source import Source
from graphs.reading.tables.rows import is_parquet
from graphs.traces.part import Part
from graphs.traces.record import TraceRecord

__all__ = ["COMPLETIONS", "RECORDS", "read", "sniff"]

RECORDS = (Row, GymRow, FailedRow, NemoRow, TinkerRow)

COMPLETIONS = frozenset({"step", "prompt", "completion", "advantage"})
"""Columns that TRL's Parquet files have."""

_GYM = frozenset({"responses_create_params", "response"})
_GYM_FAILED = frozenset({"_ng_failure_class"})  # a run without a rollout
_GYM_KEY = re.compile(rb'"responses_create_params"\s*:')


def sniff(head: bytes) -> bool:
    """Whether the content begins as a row of one of the trainers."""
    keys = frozenset(opening(head).keys)
    if _GYM_KEY.match(head.lstrip().removeprefix(b"{").lstrip()):
        return True
    return any(needed <= keys for needed in (VERL, SKYRL, NEMO_RL, TINKER, _GYM, _GYM_FAILED))


def read(sources: list[Source]) -> Iterator[Part | TraceRecord | Problem]:
    """A trace for each row.

    Problem kinds, the row refused: those of `graphs.reading.json_problems`, "unknown-item" (a row of no known
    trainer), "empty-id" (a blank `uid`), "non-finite-reward", "unknown-tool-call", "bad-value", and
    of Parquet files "bad-header", "bad-parquet", "too-large". The rollout refused: "lost-row" (not all of its outputs,
    of several steps, or in several files), "duplicate-id" (two rows of one output). Named while the rollout is read:
    "repeated-run" (an output that stands twice). Named once a file, while its rows read: "several-rewards", several
    reward functions whose weights the file does not hold; "mixed-ids", a `uid`, `step` or `_ng_task_index` that some
    rows have and others do not.
    """
    sources, copies = without_copied_files(sources)
    yield from copies
    folders = {source.name: real_folder(source.name) for source in sources}
    systems_of = functools.cache(lambda system: systems(system, folders))
    for item in _read(sources):
        headings = item.headings if isinstance(item, Part) else [item] if isinstance(item, TraceRecord) else []
        for heading in headings:
            if not heading.model:
                heading.system = systems_of(heading.system)[heading.file]
        yield item


def _read(sources: list[Source]) -> Iterator[Part | TraceRecord | Problem]:
    tables = [source for source in sources if is_parquet(source)]
    names = short_names(sources)
    for source in tables:
        yield from read_completions(source, names[source.name])
    others = [source for source in sources if source not in tables]
    names = short_names(others)
    split = split_rollouts(others) if len(others) > 1 else frozenset()
    uids: set[type] = set()
    for source in others:
        file, gym = names[source.name], GymRows()
        try:
            is_rows = begins_with_a_row(source)
        except OSError:
            is_rows = False  # `documents` notes the reason
        if is_rows:
            yield from read_lines(source, file, _read_one, uids, split)
        else:
            yield from _read_documents(source, file, gym, split)
            yield from gym.mixed_ids(source.name)
        source.release()


def _read_documents(
    source: Source, file: str, gym: GymRows, split: frozenset[tuple[str, str]]
) -> Iterator[TraceRecord | Problem]:
    """The rows of a file that is a list, or whose first line is no row with one text."""
    rollouts: Rollouts | None = None
    outputs: dict[int, Document] = {}

    def document_of(_: int, offset: int) -> Document | None:
        return outputs.get(offset)

    for document in documents(source):
        gym.count(document.raw)
        offset = document.place.offset
        if rollouts is None and b'"uid"' in document.raw and may_be_an_output(_row(document.raw)):
            rows = [(each, _row(each.raw)) for each in documents(source)]
            outputs |= {each.place.offset: each for each, row in rows if may_be_an_output(row)}
            of_places = ((each.place.number, each.place.offset, row) for each, row in rows)
            rollouts = Rollouts(of_places, source.lost, functools.partial(_text, source, outputs), split)
        if rollouts is None or offset not in rollouts:
            yield from _read_one(document, file)
        else:
            yield from rollouts.read(offset, source.name, file, _read_one, document_of)


def _row(raw: bytes) -> Row | None:
    try:
        return ROW.decode(raw)
    except JSON_ERRORS:
        return None


def _text(source: Source, outputs: dict[int, Document], offset: int) -> bytes:
    if offset in outputs:
        return outputs[offset].raw
    return source.lost[offset].text if offset in source.lost else b""


def _read_one(document: Document, file: str) -> Iterator[TraceRecord | Problem]:
    """The record of a row, or what is wrong with it."""
    raw = document.raw
    try:
        if b'"responses_create_params"' in raw:
            yield from read_gym(document, file)
        elif b'"_ng_failure_class"' in raw:
            yield read_failed(document, file)
        elif b'"traj_idx"' in raw and set(opening(raw).keys) >= TINKER:
            yield from read_tinker(document, file)
        elif b'"generation_logprobs"' in raw and set(opening(raw).keys) >= NEMO_RL:
            yield from read_nemo_rl(document, file)
        else:
            yield from read_row(document, file)
    except TraceError as error:
        yield error.problem
