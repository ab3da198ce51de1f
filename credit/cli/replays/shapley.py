"""`credit shapley plan` and `solve`: which coalitions of agents to evaluate, and shares from their values."""

from __future__ import annotations

from pathlib import Path

import click

from credit.cli.shared.answers import json_option, plain_table, print_json, stderr, stdout, words
from credit.cli.shared.commands import SEED, Command, Number
from credit.cli.shared.outputs import check_folder, output_option
from graphs.text import counted

__all__ = ["shapley"]

LEGEND = (
    "share: the unit's Shapley value, its mean contribution over all orders of joining. stderr: its standard error, "
    "wider by Student's t where samples are few: ± 1.96 of it is a 95 % interval; inf where the evaluations cannot "
    "tell. total: the value of all units less that of none, without an interval: its few repeats show too little noise."
)

_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)
_NEW = click.Path(dir_okay=False, path_type=Path)


@click.group(short_help="Plan coalitions, solve for Shapley shares.")
def shapley() -> None:
    """Shapley shares of a team: plan which coalitions to evaluate, then solve.

    Evaluate the rows of the plan yourself, and write {"row": 0, "value": 1.0} for each, a line of JSON.
    """


@shapley.command(
    "plan",
    cls=Command,
    short_help="Choose the coalitions to evaluate.",
    examples="credit shapley plan --units planner,solver,critic --budget 64 -o plan.jsonl",
)
@click.option("--units", required=True, metavar="NAME,...", help="The units: agents, roles or sub-teams.")
@click.option("--budget", required=True, type=click.IntRange(1), help="Evaluations that can be made.")
@click.option(
    "--noise",
    type=Number(0),
    default=0.0,
    show_default=True,
    help="Standard deviation between evaluations of one coalition; at most 0.5 for success or failure.",
)
@click.option("--parents", metavar="NAME,...", help="The unit that spawned each unit, in order; '-' for a root.")
@click.option("--seed", type=SEED, default=0, show_default=True, help="Of the coalitions drawn.")
@output_option("A .jsonl file.", required=True, metavar="PLAN", suffixes=())
@json_option
def shapley_plan(
    units: str, budget: int, noise: float, parents: str | None, seed: int, output: Path, as_json: bool
) -> None:
    """Write the coalitions to evaluate, one JSON line each: {"row": 0, "team": ["planner"]}.

    Evaluate each row: run the team with these units only, and write {"row": 0, "value": 1.0} to a file for
    `credit shapley solve`. Equal options give equal plans.
    """
    from credit.replay import shapley_game

    names = [name.strip() for name in units.split(",")]
    spawners = [] if parents is None else [None if p.strip() == "-" else p.strip() for p in parents.split(",")]
    game = shapley_game.shapley_plan(names, budget, noise=noise, seed=seed, parents=spawners)
    shapley_game.write_game(game, output)
    console = stderr()
    console.print(words(f"{game.choice.method}: {game.choice.reason}"), soft_wrap=True)
    console.print(words(f"wrote {counted(game.plan.evaluations, 'row')} to {output}"), soft_wrap=True)
    if as_json:
        choice = {"method": game.choice.method, "reason": game.choice.reason}
        print_json(choice | {"rows": game.plan.evaluations, "output": str(output)})


@shapley.command(
    "solve",
    cls=Command,
    short_help="Solve for shares from evaluated coalitions.",
    examples="credit shapley solve plan.jsonl values.jsonl",
)
@click.argument("plan", type=_FILE)
@click.argument("evaluations", type=_FILE)
@click.option("--pending", type=_NEW, metavar="FILE", help="Write the rows without a value, if any, and stop.")
@click.option("--log", type=_FILE, metavar="LOG", help="Add the shares to a copy of this native log; needs --output.")
@click.option("--output", "-o", type=_NEW, metavar="OUT", help="The copy, a .jsonl file; the units are agent names.")
@json_option
@click.pass_context
def shapley_solve(
    ctx: click.Context,
    plan: Path,
    evaluations: Path,
    pending: Path | None,
    log: Path | None,
    output: Path | None,
    as_json: bool,
) -> None:
    """Solve for the Shapley shares of the units of PLAN from EVALUATIONS, JSON lines {"row": 0, "value": 1.0}.

    With --log, each agent's share becomes the evidence `share` of its events, for `credit assign --method shapley`.
    """
    import numpy as np

    from credit.replay.json_lines import write_lines
    from credit.replay.shapley_game import read_evaluations, read_game

    if (log is None) != (output is None):
        raise click.UsageError("--log and --output come together", ctx)
    for path, option in ((pending, "--pending"), (output, "--output")):
        if path is not None:
            check_folder(path, option)
            if path.resolve() in {p.resolve() for p in (plan, evaluations, log) if p is not None}:
                raise click.BadParameter(f"{str(path)!r} is an input; expected another file", param_hint=option)
    game = read_game(plan)
    values = read_evaluations(game, evaluations)
    missing = np.flatnonzero(np.isnan(values)).tolist()
    if missing and pending is not None:
        write_lines(pending, ({"row": row, "team": game.team(row)} for row in missing))
        stderr().print(words(f"wrote {counted(len(missing), 'row')} without a value to {pending}"), soft_wrap=True)
        return
    if missing:
        raise click.ClickException(
            f"{evaluations}: {len(missing)} of {len(values)} rows have no value, first row {missing[0]}; "
            "--pending FILE lists them"
        )
    shares = game.solve(values)
    share, error = np.asarray(shares.share).tolist(), np.asarray(shares.stderr).tolist()
    if log is not None and output is not None:
        from credit.replay.added_evidence import add_shares

        counts = add_shares(log, output, dict(zip(game.units, zip(share, error, strict=True), strict=True)))
        stderr().print(words(f"wrote shares of {counted(counts, 'agent')} to {output}"), soft_wrap=True)
    if as_json:
        rows = [{"unit": u, "share": s, "stderr": e} for u, s, e in zip(game.units, share, error, strict=True)]
        total = {"total": float(shares.total), "total_stderr": float(shares.total_stderr)}
        choice = {"method": game.choice.method, "reason": game.choice.reason}
        print_json({"shares": rows, **total, "evaluations": int(shares.evaluations), **choice})
        return
    table = plain_table("unit", "#share", "#stderr")
    for unit, amount, spread in zip(game.units, share, error, strict=True):
        table.add_row(*map(words, (unit, f"{amount:.4g}", f"{spread:.2g}")))
    table.add_row(*map(words, ("total", f"{float(shares.total):.4g}", "")))
    stdout().print(table)
    stdout().print(words(f"{game.choice.method}: {game.choice.reason}"), soft_wrap=True)
    stdout().print(LEGEND, soft_wrap=True)
