"""Several methods on the same traces, and the judgement files beside them: their claims by name."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from credit.methods.availability import availability
from credit.methods.option_texts import parse_options
from credit.methods.running import Request, expect_outcomes, has_outcomes, run
from graphs.array_files import read_array
from graphs.errors import CreditError
from graphs.text import counted

if TYPE_CHECKING:
    from estimators.base import Credit
    from graphs.errors import Problem
    from graphs.traces.batch import Traces

__all__ = ["ClaimRequest"]

BESIDE = ("rloo", "turn_baseline", "gae", "critic", "c3")
"""Methods to compare with those that are recommended, as far as the log has their evidence."""
MOST = 3  # each method is a column


@dataclasses.dataclass(frozen=True)
class ClaimRequest:
    """Requested claims: methods with their options and evidence, as texts, and files of judgements.

    Attributes:
      names: names of methods.
      given: their options, METHOD.KEY=VALUE.
      also: evidence that they can do without, METHOD.NAME.
      files: judgement files.
      critic: the folder of a fitted critic, whose values take the place of logged ones; None for none.
      dense: a .npy file of the numbers of each event with which it was fitted, or None.
    """

    names: tuple[str, ...]
    given: tuple[str, ...] = ()
    also: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    critic: str | None = None
    dense: str | None = None

    def check(self, *, least: int = 1) -> None:
        """Check the names and the options; no log is needed. A judgement file counts as a method.

        No name at all is right: `settled` takes the recommended ones.

        Raises:
          CreditError: no method of a name, a method named twice, an option or evidence of none of them, a wrong value;
            fewer methods than `least`.
        """
        if self.dense is not None and self.critic is None:
            raise CreditError("--dense has the features of a fitted critic; expected --critic with it")
        least = max(least - (1 if self.files else 0), 0)
        if 0 < len(self.names) < least:
            raise CreditError(
                f"--methods names {counted(len(self.names), 'method')}; expected {least} or more, separated by commas"
            )
        for name in self.names:
            if self.names.count(name) > 1:
                raise CreditError(f"--methods names {name!r} twice")
        for flag, texts in (("--option", self.given), ("--evidence", self.also)):
            for text in texts:
                if not any(text.startswith(f"{name}.") for name in self.names):
                    form = "METHOD.KEY=VALUE" if flag == "--option" else "METHOD.NAME"
                    known = f"a METHOD of {', '.join(self.names)}" if self.names else "METHOD among --methods"
                    raise CreditError(f"{flag} {text!r}; expected {form} with {known}")
        for name in self.names:
            parse_options(name, self.options(name))

    def settled(self, traces: Traces, *, least: int = 1) -> ClaimRequest:
        """The request with the methods that `credit.choose` recommends, where neither methods nor judges are named.

        Of two methods or more, others that the log allows stand beside them.

        Args:
          traces: what was read.
          least: how many methods are needed; 0 for a caller that can do without outcomes.

        Raises:
          CreditError: no trace has an outcome, and one method or more is needed; the log allows fewer than `least`.
        """
        if self.names or (self.files and least < 2):
            return self
        if least:
            expect_outcomes(traces)
        elif not has_outcomes(traces):
            return self
        from credit.advice import methods_to_read

        names = methods_to_read(traces)
        if least > 1:
            states = availability(traces)
            beside = [name for name in BESIDE if states[name].state == "computable"]
            names = tuple(dict.fromkeys([*names, *beside]))[: max(MOST, len(names))]
        if len(names) + len(self.files) < least:
            raise CreditError(
                f"the log allows {', '.join(names)} of the usual methods; expected --methods with {least} or more names"
            )
        return dataclasses.replace(self, names=names)

    def options(self, name: str) -> list[str]:
        """The options of one method, KEY=VALUE."""
        return _of(name, self.given)

    def compute(
        self, traces: Traces, names: Iterable[str], *, progress: Callable[[Iterable[str]], Iterable[str]] = iter
    ) -> dict[str, Credit]:
        """The results of some of the methods, by name.

        Args:
          traces: what was read.
          names: some of the methods.
          progress: wraps the names, say in a progress bar.

        Raises:
          CreditError: no trace has an outcome; the log lacks evidence that a method needs; a method has no such option,
            or refuses the option's value.
        """
        arrays = self.of_critic(traces, names := tuple(names))
        return {
            name: run(
                traces, name, evidence=_of(name, self.also), **arrays[name], **parse_options(name, self.options(name))
            )
            for name in progress(names)
        }

    def of_critic(self, traces: Traces, names: Sequence[str]) -> dict[str, dict[str, Any]]:
        """What each of some methods takes from the critic, by name.

        Args:
          traces: what was read.
          names: some methods.

        Raises:
          CreditError: none of them takes what a critic gives; it cannot be read, or was fitted on other columns.
        """
        if self.critic is None or not names:
            return {name: {} for name in names}
        from credit.critics.fitting import load_critic

        features = None if self.dense is None else read_array(Path(self.dense), "a .npy file of numbers")
        evidence = load_critic(self.critic).evidence(traces, dense=features)
        taken = {name: {k: x for k, x in evidence.items() if k in Request.of(name).takes} for name in names}
        if not any(taken.values()):
            which = " and ".join(map(repr, names))
            raise CreditError(f"method {which} takes no evidence of a critic, which gives {', '.join(evidence)}")
        return taken

    def run(
        self, traces: Traces, *, progress: Callable[[Iterable[str]], Iterable[str]] = iter
    ) -> tuple[Traces, dict[str, Credit]]:
        """All claims by name, and the traces with the problems of the judgement files added to theirs.

        Raises:
          CreditError: a method cannot be computed; a judgement file cannot be read, has no row that can be used, or
            mixes units; a judge has the name of a method or of another file's judge.
        """
        claims = self.compute(traces, self.names, progress=progress)
        problems: list[Problem] = []
        for file in self.files:
            from credit.reports.judgements import read_judgements

            judged = read_judgements(traces, file)
            for judge, claim in judged.claims.items():
                if judge in claims:
                    raise CreditError(f"{file}: judge {judge!r} has the name of another claim; expected distinct names")
                claims[judge] = claim
            problems += judged.problems
        return dataclasses.replace(traces, problems=(*traces.problems, *problems)), claims


def _of(name: str, texts: Iterable[str]) -> list[str]:
    """The texts "METHOD.REST" of one method, as "REST"."""
    return [text.removeprefix(f"{name}.") for text in texts if text.startswith(f"{name}.")]
