"""A verdict on quantities that chains should agree about where single parameters have no meaning.

Such as predictions, where the parameters themselves are not identified.
"""

import warnings
from typing import NamedTuple

import numpy as np

from ..exceptions import SamplerConvergenceWarning
from .verdict import Finding, Verdict, said_of

__all__ = ["Judgement", "verdict_of", "warn_of"]


class Judgement(NamedTuple):
    """Something that was measured, beside what it should not exceed."""

    name: str  # what was examined
    text: str  # what was found
    value: float  # NaN where it is not known
    limit: float
    bound: object  # the limit in the units of the text
    remedy: str


def verdict_of(judgements):
    """The `Verdict` of judgements."""
    findings, passed, unknown = [], {}, []
    for name, text, value, limit, bound, remedy in judgements:
        if np.isnan(value):
            unknown.append(f"{name}: not known")
        elif value > limit:
            said = f"{text}, the limit is {bound}."
            findings.append(Finding(name, said, remedy, float(value), limit))
        else:
            passed[name] = text
    return Verdict(findings, passed, unknown)


def warn_of(verdict, stacklevel, categories=()):
    """Warn of all that a verdict finds wrong with draws, once for each category of warning.

    `categories` has pairs of the name of a finding and its category.
    """
    of_name, found = dict(categories), {}
    for finding in verdict.findings:
        if not finding.is_note:
            found.setdefault(of_name.get(finding.name, SamplerConvergenceWarning), []).append(
                finding
            )
    for category, findings in found.items():
        warnings.warn(said_of(findings), category, stacklevel=stacklevel + 1)
