"""Records traces of a team of language models that really learned, with what each decision was worth by re-running.

    python tests/recordings/record_language_team.py FOLDER

writes two files in the native format, as they lie beside this one. The team (`benchmarks.language`) is warmed up and
trained with `rloo` for 12,000 events, so that it is right in part. `language_team.jsonl` has 8 questions of 8 traces.
Each event states its tokens and log-probabilities, and as `value` the mean reward of 200 runs that repeat the trace's
tokens before the event and draw it anew, with `replay_stderr`. `language_team_siblings.jsonl` has the same traces
beside one run each from up to three of their decisions, as C3 takes them.
"""

from __future__ import annotations

import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

from benchmarks.language.log import Values, as_traces
from benchmarks.language.questions import draw_questions
from benchmarks.language.signals import rerun
from benchmarks.language.team import DECISIONS, Said, Team, play
from benchmarks.language.training import LanguageSettings, train_language
from graphs.writers import native

GROUPS, SIZE, RUNS = 8, 8, 200


def values(team: Team, said: Said) -> Values:
    """The mean reward of `RUNS` runs from each decision of each trace."""
    n = len(said.reward)

    @jax.jit
    def rewards(start: jax.Array, keys: jax.Array) -> jax.Array:
        return jax.lax.map(lambda key: play(team, said.question, key, said, start).reward, keys)

    of_decisions = [
        np.asarray(rewards(jnp.full(n, d), jax.random.split(jax.random.key(100 + d), RUNS))) for d in range(DECISIONS)
    ]
    table = np.stack(of_decisions, axis=2).astype(np.float64)  # [runs, n, D]
    return Values(table.mean(axis=0).round(6), (table.std(axis=0, ddof=1) / RUNS**0.5).round(6), RUNS)


def main(folder: Path) -> None:
    """Write both files."""
    settings = LanguageSettings(events=12_000, warm_steps=25)
    team = train_language("rloo", settings, 0, 0.002).team
    said = jax.jit(play)(team, draw_questions(GROUPS, SIZE, jax.random.key(7)), jax.random.key(8))
    native.write(as_traces(team, said, SIZE, values=values(team, said)), folder / "language_team.jsonl")
    runs = jax.jit(rerun)(team, said, jax.random.key(9))
    native.write(as_traces(team, said, SIZE, reruns=runs), folder / "language_team_siblings.jsonl")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
