"""What the end of a fit tells: draws out of range, parameters without a meaning, bad evidence."""

import warnings

import numpy as np

from ..diagnostics.verdict import OF_THE_POSTERIOR, quick_findings, said_of
from ..dynamics import Exact, Importance
from ..exceptions import SamplerConvergenceWarning, SamplerDivergedError, UnusedParameterWarning
from ._saved import defaults_of

__all__ = ["raise_if_infinite", "warn_of_idle", "warn_of_unused", "warn_untrustworthy"]


def raise_if_infinite(posterior, estimator):
    """`SamplerDivergedError` if a parameter is beyond the range of floats in some draw."""
    finite = np.isfinite(posterior.flat).all(axis=(0, 1))
    if not finite.all():
        raise SamplerDivergedError(
            f"{estimator}: draws of {posterior.labels[int(np.argmin(finite))]} have left the range "
            "of floats. Use priors with lighter tails, or a longer warm-up."
        )


def warn_of_unused(estimator, sampler):
    """`UnusedParameterWarning` if `thin` or `n_warmup` was given, and the draws are independent."""
    asked = {"thin": estimator.thin_, "n_warmup": estimator.n_warmup_}
    given = {name: getattr(estimator, name) for name in asked}
    unused = [
        f"{name}={given[name]!r}"
        for name, used in asked.items()
        if not isinstance(given[name], str) and given[name] != used
    ]
    if unused and isinstance(sampler, Exact | Importance):
        have = "has" if len(unused) == 1 else "have"
        warnings.warn(
            f"{' and '.join(unused)} {have} no effect: the draws are independent (sampler_="
            f"{estimator.sampler_!r}), and not steps of a chain. Leave it to 'auto', or ask for "
            "chains, such as sampler='hmc'.",
            UnusedParameterWarning,
            stacklevel=2,
        )


def warn_of_idle(estimator, n_parts):
    """`UnusedParameterWarning` for parameters that others leave without a meaning.

    `n_parts` is the number of subposteriors that were combined, or of shards.
    """
    needs = {
        "intercept_prior": ("fit_intercept", estimator.fit_intercept, "True"),
        "noise_prior": ("noise", isinstance(getattr(estimator, "noise", ""), str), "'infer'"),
        "combine": ("n_subposteriors", n_parts != 1, "2 or more"),
    }
    defaults = defaults_of(type(estimator))
    for name, (other, has_use, needed) in needs.items():
        if has_use or name not in defaults:
            continue
        value, default = getattr(estimator, name), defaults[name]
        if value is default or (isinstance(value, str) and value == default):
            continue
        warnings.warn(
            f"{name}={value!r} has no effect with "
            f"{other}={getattr(estimator, other)!r}: it needs {other} to be {needed}.",
            UnusedParameterWarning,
            stacklevel=2,
        )


def warn_untrustworthy(posterior):
    """`SamplerConvergenceWarning` about all findings of `quick_findings`, if there are any."""
    findings = quick_findings(posterior)
    if findings:
        first = "The draws disagree with what is known of the posterior."
        if all(finding.name in OF_THE_POSTERIOR for finding in findings):
            first = "The posterior itself is degenerate."
        warnings.warn(f"{first} {said_of(findings)}", SamplerConvergenceWarning, stacklevel=2)
