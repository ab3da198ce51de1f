"""Groups of traces that are compared with each other.

A group is a task under one policy. Runs of one task by two models, or under two harnesses, are not samples of one
policy: a baseline over both credits the choice of the model to the agents' actions. The key of a group therefore
consists of the task, the model and the system (the harness that ran the team), where the log states them. Agents may
have other models than their trace: traces of a task in which one agent begins with unlike models are of unlike
policies. With which it goes on, as after a call that failed, and which agents act, is no other policy.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from graphs.errors import CreditError
from graphs.text import excerpt

__all__ = ["GROUP_KEYS", "check_group_by", "group_names", "of_their_task", "with_models_of_agents"]

GROUP_KEYS = ("task", "model", "system")
"""Names allowed in `group_by`; all of them are the default."""


def check_group_by(group_by: str | Iterable[str]) -> tuple[str, ...]:
    """The key of groups, in the order of `GROUP_KEYS`.

    Raises:
      CreditError: `group_by` is not a sequence of names among `GROUP_KEYS`, each at most once, with "task" among them.
    """
    names = [group_by] if isinstance(group_by, str) else list(group_by)
    if "task" not in names or len(set(names)) < len(names) or not set(names) <= set(GROUP_KEYS):
        expected = f"names among {', '.join(GROUP_KEYS)}, 'task' among them, each once"
        raise CreditError(f"group_by is {excerpt(group_by)}; expected {expected}")
    return tuple(name for name in GROUP_KEYS if name in names)


def group_names(
    tasks: Sequence[str], models: Sequence[str], systems: Sequence[str], group_by: str | Iterable[str] = GROUP_KEYS
) -> list[str]:
    """The name of each trace's group. Traces with equal names are in one group.

    The name is the task. Where the traces of a task form several groups, the model or system follows in brackets.

    Args:
      tasks, models, systems: one entry for each trace; "" where the log states none.
      group_by: names among `GROUP_KEYS`.

    Raises:
      CreditError: `group_by` is not a sequence of names among `GROUP_KEYS`, each at most once, with "task" among them.

    Examples:
      >>> group_names(["q1", "q1", "q2"], ["small", "large", "small"], ["", "", ""])
      ['q1 [small]', 'q1 [large]', 'q2']
      >>> group_names(["q1", "q1", "q2"], ["small", "large", "small"], ["", "", ""], ("task",))
      ['q1', 'q1', 'q2']
    """
    chosen = check_group_by(group_by)
    columns = (tasks, models if "model" in chosen else [""] * len(tasks), systems if "system" in chosen else None)
    keys = list(zip(columns[0], columns[1], columns[2] or [""] * len(tasks), strict=True))
    policies: dict[str, set[tuple[str, str]]] = {}
    for task, model, system in keys:
        policies.setdefault(task, set()).add((model, system))
    names: dict[tuple[str, str, str], str] = {}
    taken = {task for task, pairs in policies.items() if len(pairs) == 1}
    differs = {task: [len(set(side)) > 1 for side in zip(*pairs, strict=True)] for task, pairs in policies.items()}
    for key in keys:
        if key in names:
            continue
        task, model, system = key
        name = task
        if len(policies[task]) > 1:
            stated = [text or "unknown" for text, shown in zip((model, system), differs[task], strict=True) if shown]
            name = f"{task} [{', '.join(stated)}]"
            while name in taken:  # another task may have this name
                name += "'"
            taken.add(name)
        names[key] = name
    return [names[key] for key in keys]


def with_models_of_agents(
    tasks: Sequence[str], models: Sequence[str], systems: Sequence[str], of_agents: Sequence[Mapping[str, str]]
) -> list[str]:
    """The model of each trace with those of agents that have unlike ones in traces of its task, model and system.

    Args:
      tasks, models, systems: as of `group_names`.
      of_agents: of each trace the model with which each agent first acts.

    Examples:
      >>> teams = [{"lead": "m", "coder": "x"}, {"lead": "m", "coder": "y"}, {"lead": "m", "tester": "x"}]
      >>> with_models_of_agents(["q"] * 3, ["m"] * 3, [""] * 3, teams)
      ['m; coder: x', 'm; coder: y', 'm']
    """
    found: dict[tuple[str, str, str], dict[str, set[str]]] = {}
    keys = list(zip(tasks, models, systems, strict=True))
    for key, agents in zip(keys, of_agents, strict=True):
        for agent, model in agents.items():
            found.setdefault(key, {}).setdefault(agent, set()).add(model)
    unlike = {key: sorted(name for name, of in agents.items() if len(of) > 1) for key, agents in found.items()}
    return [
        "; ".join([key[1], *(f"{name}: {agents[name] or 'unknown'}" for name in unlike.get(key, ()) if name in agents)])
        for key, agents in zip(keys, of_agents, strict=True)
    ]


def of_their_task(
    tasks: Sequence[str], models: Sequence[str], systems: Sequence[str], cut: Sequence[bool]
) -> list[str]:
    """The models of traces, and of cut ones that state none that of their task and system, if there is one alone.

    The log of a killed run lacks the lines that would tell; a group of its own would take its outcome out of all
    comparisons.

    Args:
      tasks, models, systems: as of `group_names`.
      cut: whether the log lacks lines of a trace.

    Examples:
      >>> of_their_task(["q", "q", "q", "r"], ["m", "", "", ""], [""] * 4, [False, True, False, True])
      ['m', 'm', '', '']
    """
    known: dict[tuple[str, str], set[str]] = {}
    for task, model, system in zip(tasks, models, systems, strict=True):
        known.setdefault((task, system), set()).update({model} - {""})
    return [
        next(iter(known[task, system])) if of and not model and len(known[task, system]) == 1 else model
        for task, model, system, of in zip(tasks, models, systems, cut, strict=True)
    ]
