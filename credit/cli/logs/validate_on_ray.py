"""`credit validate --engine ray`: parts of native logs side by side, whose counts are added up."""

from __future__ import annotations

from typing import Any

from credit.cli.shared.engines import options_of_parts
from credit.cli.shared.progress import steps
from credit.cli.shared.reading import check_channel, stderr, tell_sources
from credit.ray.cluster import EVENTS, chunks_on_cluster
from credit.ray.corpus_parts import survey_of_parts
from credit.reports.corpus import Survey

__all__ = ["survey_on_ray"]


def survey_on_ray(paths: tuple[str, ...], events: int | None, reading: dict[str, Any]) -> tuple[Survey, str]:
    """Run `credit.ray.validate` with a progress bar; return its counts and the substitute for outcomes.

    Raises:
      CreditError: as `credit.ray.validate`; or no trace has the reward that was asked for by name.
    """
    console = stderr()
    chunks = chunks_on_cluster(paths, EVENTS if events is None else events, **options_of_parts(reading))
    corpus, instead = survey_of_parts(
        chunks, lambda numbers: map(int, steps(console, map(str, numbers), "counting part"))
    )
    tell_sources(chunks.sources)
    check_channel(reading["reward_channel"], corpus.reward_channels)
    return corpus, instead
