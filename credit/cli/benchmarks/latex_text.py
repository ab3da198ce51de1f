"""Words and formulas as LaTeX, with no other package than those of tables."""

from __future__ import annotations

import re

__all__ = ["typeset"]

_HELD = re.compile(r" (?=[%=/×−])|(?<=[=/×−]) ")
"""Spaces at which no line may end: within a formula, and between a number and what it counts."""
_SPECIAL = {ord(sign): f"\\{sign}" for sign in "&%$#_{}"} | {
    ord("\\"): r"\textbackslash{}",
    ord("~"): r"\textasciitilde{}",
    ord("\N{NO-BREAK SPACE}"): "~",
    ord("^"): r"\textasciicircum{}",
    ord("<"): r"\textless{}",
    ord(">"): r"\textgreater{}",
    ord("–"): "--",
    ord("−"): "$-$",
    ord("₀"): "$_0$",
    ord("²"): "$^2$",
    ord("°"): r"$^\circ$",
    ord("×"): r"$\times$",
    ord("∇"): r"$\nabla$",
    ord("Σ"): r"$\Sigma$",
    ord("τ"): r"$\tau$",
    ord("|"): "$|$",
    ord("`"): "",
    ord("†"): r"\dag{}",
    ord("‡"): r"\ddag{}",
}
_ATOM = (
    r"(?:\|(?:[A-Z∇ −]|[a-z](?![a-z])){1,14}\|²?"  # no word in it
    r"|\([A-Z][A-Z₀²*∇ −]{0,12}\)|sqrt\([][A-Za-z² −]{1,20}\)|E\[[A-Za-z² ()]{1,14}\]|[∇Σ]|[A-Zm][₀²°*]?(?![A-Za-z]))"
)
_FORMULA = re.compile(rf"((?<!\w){_ATOM}(?:(?: [−/=] | )?{_ATOM})*)")
_SIGNS = {
    "E[": r"\mathrm{E}[",
    "E ": r"\mathrm{E}\,",
    " sign(": r"\,\mathrm{sign}(",
    "∇": r"\nabla ",
    "Σ ": r"\sum ",
    "J*": "J^*",
    "₀": "_0",
    "²": "^2",
    "°": r"^\circ",
    "−": "-",
}


def typeset(text: str) -> str:
    r"""The text as LaTeX, a formula as one piece of mathematics.

    Args:
      text: of any characters.

    Examples:
      >>> print(typeset("bias: |E g − ∇J| / |∇J| of a_b, 5 %"))
      bias: $|\mathrm{E}\,g - \nabla J| / |\nabla J|$ of a\_b, 5~\%
      >>> print(typeset("m / sqrt(E[A²] − m²), T = 10, |x and y|, |&|"))
      $m / \sqrt{\mathrm{E}[A^2] - m^2}$, T~=~10, $|$x and y$|$, $|$\&$|$
    """
    parts = _FORMULA.split(text)
    return "".join(_formula(part) if place % 2 else _words(part) for place, part in enumerate(parts))


def _words(text: str) -> str:
    return _HELD.sub("\N{NO-BREAK SPACE}", text).translate(_SPECIAL)


def _formula(text: str) -> str:
    """A formula as mathematics; a letter or brackets without a sign of one are words."""
    if not re.search(r"[|∇Σ₀²°]|sqrt\(|E\[", text):
        return _words(text)
    for sign, as_math in _SIGNS.items():
        text = text.replace(sign, as_math)
    root = re.sub(r"sqrt[(](.*)[)]", r"\\sqrt{\1}", text)
    return f"${root}$"
