"""A verdict on quantities that chains should agree about where single parameters have no meaning.

An example are predictions of a model whose parameters are not identified.
"""

import warnings
from typing import NamedTuple

import numpy as np

from ..exceptions import SamplerConvergenceWarning
from .verdict import NOT_FINITE, Finding, Verdict, said_of

__all__ = ["Judgement", "of_finite", "verdict_of", "warn_of"]


class Judgement(NamedTuple):
    """A measured value beside the limit that it should not exceed."""

    name: str  # what was examined
    text: str  # what was found, in words
    value: float  # the measured value, NaN where it is not known
    limit: float
    bound: object  # the limit in the units of the text
    remedy: str  # what the user should do where the value exceeds the limit
    is_note: bool = False  # whether draws can be trusted even where the value exceeds the limit


def of_finite(what, draws):
    """Yield the `Judgement` of quantities (..., n) that are NaN or infinite, if there are such.

    Statistics of chains leave them out.
    """
    wrong = int((~np.isfinite(draws)).any(axis=tuple(range(draws.ndim - 1))).sum())
    if wrong:
        text = f"{wrong} of {draws.shape[-1]} are NaN or infinite in some draws"
        yield Judgement(what, text, float(wrong), 0.0, 0, NOT_FINITE)


def verdict_of(judgements):
    """The `Verdict` in which each `Judgement` is a finding, passed, or (for NaN) unknown.

    If all are unknown, there is a note on few draws.
    """
    findings, passed, unknown = [], {}, []
    for name, text, value, limit, bound, remedy, is_note in judgements:
        if np.isnan(value):
            unknown.append(f"{name}: not known")
        elif value > limit:
            said = f"{text}, the limit is {bound}."
            findings.append(Finding(name, said, remedy, float(value), limit, is_note))
        else:
            passed[name] = text
    if not findings and not passed:
        said = "whether chains agree cannot be known."
        findings.append(Finding("few draws", said, "Raise n_draws.", np.nan, np.nan, is_note=True))
    return Verdict(findings, passed, unknown)


def warn_of(verdict, stacklevel, categories=()):
    """Warn of all findings of a verdict that are not notes, once for each category of warning.

    `categories` has pairs of the name of a finding and its category of warning; all other findings
    come with `SamplerConvergenceWarning`.
    """
    of_name, found = dict(categories), {}
    for finding in verdict.findings:
        if not finding.is_note:
            found.setdefault(of_name.get(finding.name, SamplerConvergenceWarning), []).append(
                finding
            )
    for category, findings in found.items():
        warnings.warn(said_of(findings), category, stacklevel=stacklevel + 1)
