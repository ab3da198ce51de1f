"""A language team that stops when it chooses, against teams of a fixed number of rounds; docs/stopping.md.

    python benchmarks/language_rounds.py       (about two CPU-minutes; resumes from results/language_rounds.json)

Teams that stop are the rows of `rloo` of results/language_team.json. The others have the same seeds, budget, signal and
learning rate, which was tuned for the teams that stop.
"""

from __future__ import annotations

import json
from pathlib import Path

from benchmarks.language.questions import PARTS, PRICE
from benchmarks.language.training import train_language
from benchmarks.language_team import RESULTS as STOPPING
from benchmarks.language_team import SETTINGS

RESULTS = Path(__file__).parent / "results" / "language_rounds.json"
SIGNAL, RATE, SEEDS, ROUNDS = "rloo", 0.002, 4, (2, 3)


def best(rounds: int) -> float:
    """The mean reward of the best team of so many rounds, over questions of 1 to `PARTS` parts.

    Examples:
      >>> [round(best(rounds), 3) for rounds in (1, 2, 3)]
      [0.511, 0.689, 0.7]
    """
    return sum(min(rounds, parts) / parts for parts in range(1, PARTS + 1)) / PARTS - PRICE * rounds


def main() -> None:
    """Run what is missing, and write the mean rewards of the last teams by seed."""
    stored = json.loads(STOPPING.read_text())["rows"]
    learned = {row["seed"]: row["final"] for row in stored if (row["signal"], row["learning_rate"]) == (SIGNAL, RATE)}
    found = json.loads(RESULTS.read_text()) if RESULTS.is_file() else {}
    found["0"] = {"best": 1 - PRICE * (1 + PARTS) / 2, "final": {str(seed): learned[seed] for seed in range(SEEDS)}}
    for rounds in ROUNDS:
        row = found.setdefault(str(rounds), {"best": best(rounds), "final": {}})
        for seed in map(str, range(SEEDS)):
            if seed not in row["final"]:
                row["final"][seed] = train_language(SIGNAL, SETTINGS, int(seed), RATE, rounds).final
                RESULTS.write_text(json.dumps(found, indent=1) + "\n")
                print(rounds, seed, row["final"][seed], flush=True)


if __name__ == "__main__":
    main()
