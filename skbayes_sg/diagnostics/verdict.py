"""A verdict on draws: whether they are trustworthy, and if not, why and what to do.

Every finding has a measured value, the limit that it exceeds, and a remedy. A limit has two parts:
an error that matters (a share of a posterior standard deviation), and the Monte Carlo error of the
measurement times `SIGMAS`, so that few draws alone do not raise an alarm.
"""

import html
import textwrap
from collections.abc import Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from . import convergence
from ._draws import as_chains, as_labels, as_weights, check_same_shape
from .score_moments import score_moments
from .stein import kernel_stein_discrepancy, merged

__all__ = ["Finding", "Verdict", "check_draws"]

# Limits of measurements, beyond which there is a finding, and numbers of draws.
RHAT = 1.05  # R-hat
ESS_SHARE = 0.1  # smallest effective sample size, as a share of the draws
SIGMAS = 5.0  # Monte Carlo standard errors that a measured error must exceed as well
SHIFT = 0.2  # error of a mean, in posterior standard deviations
RATIO = 0.2  # relative error of a variance
MEAN_RATIO = 0.1  # average over all directions of the relative error of variances
DISTANCE = 0.5  # distance of coupled chains of steps τ and τ/2, in posterior standard deviations
BIAS = 0.2  # bias of a mean due to the step size, in posterior standard deviations
SD_BIAS = 0.1  # relative bias of a standard deviation due to the step size
NOISE = 0.1  # share of a variance that gradient noise (and the step size) adds
EXCURSION = 12.0  # nats by which the farthest draw is less likely than posterior draws can be
KSD_Z = 12.0  # z-score of the kernel Stein discrepancy
KSD_DRAWS = 1000  # most draws of all chains from which the kernel Stein discrepancy is computed
CONFLICT = 5.0  # standard deviations between the prior and what the data alone say
TAIL = 0.45  # 1/df of a Student's t tail, which has no variance from 0.5 on
ROUNDING = 1.0  # rounding error of the response, in units of the standard deviation of the noise
DIVERGENT = 0.002  # share of trajectories that diverge
WALL = 0.01  # share of trajectories that meet walls, beyond which scores do not judge draws
PARETO_K = 0.7  # Pareto k of importance weights, above which averages do not converge
# Posterior standard deviations by which quadratics in place of earlier rows (`partial_fit`) may
# have moved a mean: an upper estimate, and a note from `SHIFT` on.
UPDATE = 0.6
MODE_GAP = 0.01  # error of the share of a mode in the draws, reported as 0 where chains cross
FEW_DRAWS = 100  # with fewer draws of each chain, R-hat may exceed its limit by chance
LEAST_DRAWS = 50  # fewest draws of each chain with which scores are examined
LEAST_OF_TAILS = 400  # fewest draws of all chains with which the shape of tails is estimated
MOST_NUMBERS = 20_000_000  # most numbers, draws times parameters, whose moments are checked

# Names of findings about the posterior itself, whose draws may be as good as can be.
OF_THE_POSTERIOR = ("heavy tail", "no noise")
# Measurements that a fit judges itself, with warnings of their own.
JUDGED = (
    "coupled_distance", "inflation", "n_modes", "pareto_k", "update_error", "effects_slow",
    "shards_disagree",
)  # fmt: skip

# What the user should do, one text for each cause.
FEW = "With so few draws of each chain this may be chance: raise n_draws."
CHAINS = "Raise n_warmup, thin or n_draws, or leave step_size, thin and n_warmup to 'auto'."
BATCHES = "Shuffle rows before they are divided into batches, or begin with a larger batch."
MODES = "Use sampler='auto', or a prior with lighter tails or a larger scale."
TIES = "Use a noise_prior that excludes noise far below the resolution of the response."
QUANTILES = "Mean and standard deviation depend on the farthest draws: report quantiles."
STEP = "Use step_size='auto' and batch_size='auto', a smaller step, or sampler='hmc'."
WEIGHTS = "Use sampler='hmc', which needs no weights."
NARROW = (
    "The posterior is too narrow for the steps in some places, and the draws may lack them: use "
    "parameters that depend less on each other, tighter priors, or a smaller step_size."
)
WALLS = (
    "They turn back there, and the draws are right if R-hat and effective sample sizes are. For "
    "faster chains use parameters whose support is fixed, such as log(a - max(y)) in the place of "
    "a bound a."
)
NOT_FINITE = "No check tells anything about such draws: find out where they come from."
APART = "Are they random parts of the rows, and sample weights counts? Else use fewer shards."
COMBINED = "Use fewer subposteriors, another combination, or n_subposteriors=1."


@dataclass(frozen=True)
class Finding:
    """A reason not to trust draws, or a note.

    Parameters
    ----------
    name : str
        What was examined, such as "R-hat".
    text : str
        What was found.
    remedy : str
        What to do.
    value, limit : float
        What was measured, and what it should not exceed.
    is_note : bool
        Whether the finding concerns the model and the data, not the draws.

    Examples
    --------
    >>> from skbayes_sg.diagnostics import Finding
    >>> Finding("R-hat", "1.2 (age)", "Raise n_warmup.", 1.2, 1.05).name
    'R-hat'
    """

    name: str
    text: str
    remedy: str
    value: float
    limit: float
    is_note: bool = False


class Verdict:
    """Whether draws can be trusted, with one screen of text that says why.

    Parameters
    ----------
    findings : sequence of Finding
        What exceeds its limit.
    passed : dict of str to str
        What is within its limit: its name, and what was measured.
    unknown : sequence of str
        What could not be examined, and why.

    Attributes
    ----------
    trustworthy : bool
        Whether all findings are notes; also the truth value of the verdict.

    Examples
    --------
    >>> import numpy as np
    >>> from skbayes_sg.diagnostics import check_draws
    >>> draws = np.random.default_rng(0).normal(size=(4, 1000, 2))
    >>> bool(check_draws(draws, -draws))
    True
    >>> print(check_draws(draws, -2.0 * draws).findings[0].name)  # the density is narrower
    spread
    """

    def __init__(self, findings: Any, passed: Any, unknown: Sequence[str] = ()) -> None:
        self.findings, self.passed, self.unknown = tuple(findings), dict(passed), tuple(unknown)

    @property
    def trustworthy(self) -> bool:
        """Whether all findings are notes."""
        return all(finding.is_note for finding in self.findings)

    def __bool__(self):
        return self.trustworthy

    def _headline(self):
        """One line that says whether the draws are trustworthy, and if not, what is wrong."""
        wrong = [finding.name for finding in self.findings if not finding.is_note]
        if wrong:
            return f"not trustworthy: {', '.join(dict.fromkeys(wrong))}"
        notes = " (with notes)" if self.findings else ""
        return "trustworthy" + notes

    def __repr__(self):
        lines = [self._headline()]
        for finding in self.findings:
            mark = "note" if finding.is_note else "  !!"
            text = f"{mark} {finding.name}: {finding.text} {finding.remedy}"
            lines += textwrap.wrap(text, 96, subsequent_indent="     ", break_on_hyphens=False)
        lines += [f"  ok {name}: {text}" for name, text in self.passed.items()]
        lines += [f"   ? {text}" for text in self.unknown]
        return "\n".join(lines)

    def _repr_html_(self):
        rows = [
            ("note" if f.is_note else "not ok", f.name, f"{f.text} {f.remedy}")
            for f in self.findings
        ]
        rows += [("ok", name, text) for name, text in self.passed.items()]
        rows += [("not known", "", text) for text in self.unknown]
        body = "".join(
            "<tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in row) + "</tr>"
            for row in rows
        )
        return f"<p><b>{html.escape(self._headline())}</b></p><table>{body}</table>"


def said_of(findings):
    """The text of a warning about findings: what was found, and each remedy once."""
    said = " ".join(f"{f.name}: {f.text}" for f in findings)
    remedies = " ".join(dict.fromkeys(f.remedy for f in findings))
    return f"{said} {remedies} posterior_.check() says more."


def disagree(rhat, ess, total):
    """Whether chains of `total` draws have not converged, by R-hat or by effective sample size."""
    return rhat > RHAT or ess < ESS_SHARE * total


def disagreement(worst, total, name_of=None, which="The chains", of=""):
    """A message if chains of `total` draws have not converged, or "".

    `worst` is from `skbayes_sg.diagnostics.convergence.worst_of_chains`, whose parameters have
    names by `name_of`; `of` says what was judged if these have none. The remedy is to follow.
    """
    ess, slow, rhat, apart = worst
    if not disagree(rhat, ess, total):
        return ""
    apart, slow = ("", of) if name_of is None else (f" ({name_of(j)})" for j in (apart, slow))
    return (
        f"{which} have not converged: R-hat {rhat:.3f}{apart}, smallest effective sample size "
        f"{ess:.0f} of {total} draws{slow}. "
    )


def _in_units_of(text, limit):
    """The limit as text, in percent if `text` contains a percentage."""
    return f"{100.0 * limit:.3g}%" if "%" in text else f"{limit:.3g}"


class _Examination:
    """Collects the findings, the checks that passed, and what could not be examined."""

    def __init__(self, labels, evidence):
        self.labels, self.findings, self.passed, self.unknown = labels, [], {}, []
        # The remedy for draws that are not from the posterior.
        self.remedy = COMBINED if "combined" in evidence else STEP

    @contextmanager
    def of(self, labels):
        """Context manager in which `labels` are the names of the parameters."""
        own, self.labels = self.labels, labels
        yield
        self.labels = own

    def worst(self, name, values, limits, text, remedy, note=False, bound=None, needed=False):
        """Judge the value of each parameter by its own limit, and report the worst of them.

        A `text` without a place for the value says what is wrong, so that nothing is reported where
        all is well. `bound` is the limit in words, for texts that count in other units than the
        values. If all values are NaN, there is a finding only if the measurement is `needed`.
        """
        values, limits = np.broadcast_arrays(np.asarray(values, float), limits)
        if values.size == 0 or np.isnan(values).all():
            if needed and values.size:
                said = "it cannot be known from so few draws."
                self.findings.append(Finding(name, said, remedy, np.nan, float(limits.flat[0])))
            return
        excess = np.where(np.isnan(values), -np.inf, values / np.maximum(limits, 1e-300))
        j = int(np.argmax(excess))
        label = f" ({self.labels[j]})" if values.size > 1 else ""
        said, limit = text.format(value=values[j]) + label, float(limits[j])
        if bound is None and "{value" in text:
            bound = _in_units_of(text, limit)
        if excess[j] > 1.0:
            said += f", the limit is {bound}." if bound else "."
            self.findings.append(Finding(name, said, remedy, float(values[j]), limit, note))
        elif bound and not note:
            self.passed[name] = said

    def measured(self, name, errors, matters, mcse, text):
        """Judge errors that exceed both the size that `matters` and `SIGMAS` Monte Carlo errors.

        An error above the size that matters but within its Monte Carlo error is reported as
        unknown: it is neither a finding nor passed.
        """
        errors = np.abs(errors)
        self.worst(name, errors, np.maximum(matters, SIGMAS * mcse), text, self.remedy)
        if name in self.passed and np.nanmax(errors) > matters:
            del self.passed[name]
            said = text.format(value=np.nanmax(errors))
            self.unknown.append(f"{name}: {said}, within its Monte Carlo error. Make more draws.")


def check_draws(
    draws: np.ndarray,
    scores: np.ndarray | None = None,
    *,
    weights: np.ndarray | None = None,
    labels: Sequence[str] | None = None,
    evidence: dict[str, Any] | None = None,
    noisy: bool = False,
    moments: Any = None,
) -> Verdict:
    r"""Examine draws by their scores and the measurements of the fit.

    * **draws** that are NaN or infinite, of which nothing else is examined.
    * **R-hat** above 1.05, or an **effective sample size** below a tenth of the draws: the chains
      do not agree, or have hardly moved; or there are too few draws to know either. The effective
      sample size of **group effects**, of at most a hundred levels of a column, is judged likewise.
    * a note on **few draws**: the Monte Carlo error of a mean is above 0.2 standard deviations.
    * **mean** and **spread**: according to the scores (`score_moments`), a mean is wrong by more
      than 0.2 standard deviations, a variance by more than 20 %, or all variances by more than 10 %
      on average. These and the KSD need 50 draws of each chain. Where independent draws have few
      rows for their parameters, predictors of the rows are judged likewise.
    * **KSD**: the kernel Stein discrepancy of 1000 draws is larger than chance allows. It detects
      what means and variances do not, such as a missed mode that affects the scores. Of draws that
      importance weights certify it is a note: where scores have heavy tails it is large by chance.
    * **step**: coupled chains with half the time step are more than 0.5 standard deviations away,
      or differ in a mean by more than 0.2 or in a standard deviation by more than 10 %; **noise**
      of the gradient adds more than a tenth to a variance, or is predicted to do so together with
      the step; the **farthest draw** is where the posterior has no mass: a rare batch has thrown a
      chain out.
    * **divergences**: more than 0.2 % of the trajectories of HMC or MALA lose more than 20 nats of
      energy, so that chains do not enter the narrowest places of the posterior.
    * a note on **walls**: more than 1 % of the trajectories meet places behind which the likelihood
      is zero. Scores cannot judge such draws, and are not kept.
    * **importance weights** of independent draws: their Pareto k is above 0.7, so that averages do
      not converge; **modes**: not all were found, or draws do not have the modes' shares;
      **earlier rows**, which `partial_fit` has replaced by quadratics, may have moved a mean by
      more than 0.6 standard deviations.
    * **shards**: the combination of subposteriors has come with a warning that they do not agree;
      without scores there is a note if the draws of the shards allow for a mean that is wrong by
      more than 0.2 standard deviations, though that may be chance.
    * a **heavy tail**: far out the density falls as slowly as that of a Student's t prior, or as
      that of coefficients with flat priors and hardly more rows, by weight, than there are of them,
      so that mean and spread of a parameter are unreliable, if they exist.
    * **no noise**: the coefficients fit all rows exactly (of a robust regression: so many that the
      others count as outliers), or the response is so far from zero that it has no more digits. The
      noise is then the rounding error of the response, as are the spreads of all coefficients that
      the rows determine.
    * a note on **tails of the draws** whose shape is that of laws without a fourth moment
      (`skbayes_sg.diagnostics.convergence.tail_shape`), as with hardly more rows than parameters:
      quantiles are what they should be, but mean and standard deviation depend on the farthest
      draws.
    * a note on **prior and data** that contradict each other: the data alone put a parameter more
      than five standard deviations from where its prior puts it. The draws are correct all the
      same.

    What is measured from draws must also exceed five Monte Carlo standard errors; a mean or a
    variance that is off by more than its limit, but not by more than these, is reported as not
    known. No check can detect a mode that no chain has visited and that affects no gradient.

    Parameters
    ----------
    draws : array of shape (n_chains, n_draws, d)
    scores : array of the same shape, optional
        Gradient of the log density at each draw.
    weights : array of shape (n_draws,), optional
        Weights of the draws of every chain; all the same if None.
    labels : sequence of str, optional
        Names of the parameters.
    evidence : dict, optional
        Measurements of the fit, as in `Posterior.evidence`: a dict of arrays. Among its keys are
        "pareto_k", "n_modes" with "mode_gap" and "mode_spread", "coupled_distance", "mean_bias",
        "sd_bias", "inflation", "noise_share", "update_error", "heavy_tail" and "divergent". To
        limits of measurements with Monte Carlo errors, such as "mean_bias_mcse", five of these are
        added.
    noisy : bool, default=False
        Whether the scores are estimates, so that the diagonal of the kernel must be left out.
    moments : skbayes_sg.posterior.moments.RunningMoments, optional
        Moments of all draws that were made, if `draws` are only some of them: R-hat and effective
        sample sizes then refer to all of them.

    Returns
    -------
    Verdict

    Raises
    ------
    ValueError
        If draws do not have three axes, scores do not have their shape or are not finite, weights
        are negative, all zero or not one for each draw, or labels are not one for each parameter.

    Examples
    --------
    >>> import numpy as np
    >>> from skbayes_sg.diagnostics import check_draws
    >>> draws = np.random.default_rng(0).normal(size=(4, 500, 1))
    >>> draws[3] += 2.0  # a chain that is elsewhere
    >>> print(check_draws(draws))  # doctest: +ELLIPSIS
    not trustworthy: R-hat, effective sample size
      !! R-hat: ..., the limit is 1.05. Raise n_warmup, thin or n_draws, ...
       ? mean, spread and KSD need scores, which were not kept
    """
    draws = as_chains("draws", draws)
    names = as_labels(labels, draws.shape[2])
    if scores is not None:
        scores = np.asarray(scores, dtype=np.float64)
        check_same_shape(draws, scores)
    if weights is not None:
        weights = as_weights(weights, draws)[: draws.shape[1]]
    known = {"weights": weights, "evidence": evidence, "moments": moments}
    return examined(draws, names, (draws, scores, names), noisy=noisy, **known)


def examined(draws, labels, scored, *, weights, evidence, noisy, moments):
    """The `Verdict` of `check_draws`, with scores that may refer to other coordinates.

    `scored` are draws, scores and labels of coordinates that have a density. The parameters may
    have none, if one of them follows from the others.
    """
    examination, unknown = _Examination(labels, evidence or {}), []
    if not _check_finite(examination, draws, moments):
        unknown = ["all else needs finite draws"]
        return Verdict(examination.findings, examination.passed, unknown)
    _check_chains(examination, draws, weights, moments, evidence or {})
    _check_tails(examination, draws, weights, evidence or {})
    if draws.shape[1] < LEAST_DRAWS:
        few = f"{LEAST_DRAWS} draws of each chain, of which {draws.shape[1]} were kept"
        unknown.append(f"mean, spread and KSD need {few}")
    elif "wall" in (evidence or {}):
        unknown.append("mean, spread and KSD need a density that falls to zero where it ends")
    elif scored[1] is None:
        unknown.append("mean, spread and KSD need scores, which were not kept")
        _check_shift_of_shards(examination, evidence or {})
    else:
        with examination.of(scored[2]):
            check_moments(examination, *scored[:2], weights)
            certified = np.max((evidence or {}).get("pareto_k", np.inf)) < PARETO_K
            _check_kernel(examination, *scored[:2], weights, noisy, certified)
    _check_evidence(examination, evidence or {})
    return Verdict(examination.findings, examination.passed, examination.unknown + unknown)


def _check_finite(examination, draws, moments):
    """Whether all draws are finite, also those that were made and not kept; a finding if not."""
    finite = np.isfinite(draws).all(axis=(0, 1))
    if moments is not None:
        finite &= np.isfinite(moments.mean())
    wrong, n = np.flatnonzero(~finite), len(finite)
    if len(wrong):
        text = f"{len(wrong)} of {n} parameters have draws that are NaN or infinite "
        text += f"({examination.labels[wrong[0]]}{', ...' if len(wrong) > 1 else ''})."
        examination.findings.append(Finding("draws", text, NOT_FINITE, float(len(wrong)), 0.0))
    return not len(wrong)


def _check_shift_of_shards(examination, evidence):
    """Add a note if the draws of shards allow for a mean that is wrong, though it may be chance.

    A second one tells of shards that are farther apart than random parts of the rows, for which
    errors of means are larger than predicted. Scores would tell; without them nothing else does.
    """
    text = "their draws allow for a mean that is off by {value:.2f} posterior sd"
    shift = evidence.get("shards_shift", np.nan)
    examination.worst("shards", shift, SHIFT, text, COMBINED, note=True)
    text = "their means are {value:.2f} times as far apart as their widths imply, so that means "
    text += "may be off by a few tenths of a posterior sd"
    times = evidence.get("shards_apart", np.nan)
    examination.worst("distance of shards", times, 1.0, text, APART, note=True)


def remedy_for_chains(n_draws):
    """The text that says what to do about chains that do not agree."""
    return FEW if n_draws < FEW_DRAWS else CHAINS


def _check_chains(examination, draws, weights, moments, evidence):
    """Judge R-hat and effective sample sizes of all draws that were made.

    `moments` has the sums over draws of which only some were kept, or is None.
    """
    share, seen = np.min(evidence.get("resampled_share", 1.0)), getattr(moments, "seen", None)
    n_draws = draws.shape[1] if seen is None else seen
    remedy, by_chance = remedy_for_chains(n_draws), "independent" in evidence
    total = draws.shape[0] * n_draws
    if moments is None:
        # Parameters that are the same in all draws are constants, unless there is a single draw.
        moving = (np.ptp(draws.reshape(total, -1), axis=0) > 0.0) | (total == 1)
        ratios = np.where(moving, convergence.rhat(draws), 1.0)
    else:
        ratios = moments.rhat()
    # Of independent draws the sizes are known, and an estimate differs by chance alone: the
    # smallest of many estimates would be too small.
    if by_chance:
        sizes = np.full(len(ratios), share * total)
    elif moments is None:
        sizes = np.where(moving, share * convergence.ess_least(draws, weights), total)
    else:
        sizes = share * moments.ess()
    limit, needed = np.inf if by_chance and n_draws < FEW_DRAWS else RHAT, not by_chance
    examination.worst("R-hat", ratios, limit, "{value:.3f}", remedy, needed=needed)
    short = np.where(sizes > 0.0, total / sizes, np.inf)
    j = int(np.argmax(short))
    said = f"{sizes[j]:.0f} of {total} draws" if np.isfinite(sizes[j]) else "not known"
    least = f"{ESS_SHARE * total:.0f}"
    name, most = "effective sample size", 1.0 / ESS_SHARE
    examination.worst(name, short, most, said, remedy, bound=least, needed=needed)
    if not any(finding.name == name for finding in examination.findings):
        with np.errstate(divide="ignore"):
            error = 1.0 / np.sqrt(sizes)
        text = "a mean is known to within {value:.2f} posterior sd"
        examination.worst("few draws", error, SHIFT, text, "Raise n_draws.", note=True)


def _check_tails(examination, draws, weights, evidence):
    """Add a note if tails are so heavy that standard deviations depend on the farthest draws."""
    if draws.shape[0] * draws.shape[1] < LEAST_OF_TAILS:
        return
    shapes = convergence.tail_shape(draws, weights, evidence.get("resampled_share", 1.0))
    text = "the shape k of the tail is {value:.2f} or more"
    limit = convergence.FOURTH_MOMENT
    examination.worst("tails of the draws", shapes, limit, text, QUANTILES, note=True)


def check_moments(examination, draws, scores, weights):
    """Judge means and variances by the scores.

    Of draws with more than `MOST_NUMBERS` numbers, only some are used, evenly spaced.
    """
    each = max(LEAST_DRAWS, MOST_NUMBERS // (draws.shape[0] * draws.shape[2]))
    draws, scores, weights = _spaced(each, draws, scores, weights)
    found, measured = score_moments(draws, scores, weights=weights), examination.measured
    away = "off by {value:.2f} posterior sd"
    measured("mean", found.shift, SHIFT, found.shift_mcse, away)
    away = "a variance off by {value:.0%}"
    measured("spread", found.ratio - 1.0, RATIO, found.ratio_mcse, away)
    average, error = [found.mean_ratio - 1.0], found.mean_ratio_mcse
    measured("spread on average", average, MEAN_RATIO, error, "variances off by {value:.0%}")


def are_contradicted(draws, scores):
    """Whether `check_draws` would judge means or variances of draws as wrong, by their scores."""
    examination = _Examination([""] * draws.shape[2], {})
    if draws.shape[1] >= LEAST_DRAWS and np.isfinite(scores).all():
        check_moments(examination, draws, scores, None)
    return bool(examination.findings)


def quick_findings(posterior):
    """The findings about a posterior from its scores and from the evidence of the fit; no notes.

    These are the checks of `check_draws` without R-hat, effective sample sizes and errors of the
    step size, which fits judge while they sample. The kernel Stein discrepancy is left out where
    importance weights certify the draws, because it would take longer than the sampling.
    """
    evidence = posterior.evidence or {}
    examination = _Examination(posterior.labels, evidence)
    known = posterior.scores is not None and posterior.n_draws >= LEAST_DRAWS
    with np.errstate(all="ignore"):
        if known and np.isfinite(posterior.scores).all():
            draws, scores, labels = posterior._with_density
            with examination.of(labels):
                check_moments(examination, draws, scores, posterior.weights)
                if "pareto_k" not in evidence:
                    noisy = not posterior.has_exact_scores
                    _check_kernel(examination, draws, scores, posterior.weights, noisy)
        _check_evidence(examination, evidence, skipped=JUDGED)
    return [f for f in examination.findings if not f.is_note]


def _check_kernel(examination, draws, scores, weights, noisy, certified=False):
    """Judge the kernel Stein discrepancy of at most `KSD_DRAWS` draws by its z-score.

    A large one is only a note if importance weights have `certified` the draws.
    """
    some, s, w = _spaced(max(2, KSD_DRAWS // draws.shape[0]), draws, scores, weights)
    x, s, of_each = merged(some, s, w)
    ksd = kernel_stein_discrepancy(x, s, weights=of_each, diagonal=not noisy)
    # Dependent draws vary more, so the z-score is scaled by the smallest effective sample size.
    total = some.shape[0] * some.shape[1]
    ess = np.nan_to_num(convergence.ess_bulk(some, w), nan=1.0)
    z = ksd.z * min(1.0, float(ess.min()) / total)
    said = f"{float(ksd):.3g}, z-score {{value:.1f}}"
    note = certified and z > KSD_Z  # scores with heavy tails make it large by chance
    examination.worst("KSD", [z], KSD_Z, said, examination.remedy, note)


def _spaced(n, draws, scores, weights):
    """At most n evenly spaced draws of each chain, with their scores and weights."""
    if n >= draws.shape[1]:
        return draws, scores, weights
    kept = np.unique(np.linspace(0, draws.shape[1] - 1, n).astype(int))
    return draws[:, kept], scores[:, kept], None if weights is None else np.asarray(weights)[kept]


def _check_evidence(examination, evidence, skipped=()):
    """Judge each measurement of the fit, by its limit plus `SIGMAS` of its Monte Carlo errors.

    `skipped` has the keys of measurements that are not judged.
    """

    def judge(key, name, limit, text, remedy=STEP, note=False):
        """Judge the measurement `key`, if there is one, under the name of its finding."""
        if key in evidence and key not in skipped:
            limits = limit + SIGMAS * evidence.get(f"{key}_mcse", 0.0)
            examination.worst(name, np.abs(evidence[key]).ravel(), limits, text, remedy, note)

    judge("pareto_k", "importance weights", PARETO_K, "Pareto k is {value:.2f}", WEIGHTS)
    if "n_modes" in evidence and "n_modes" not in skipped:
        _check_modes(examination, evidence)
    hardly = "one draw in {value:.0f} is effective"
    judge("effects_slow", "group effects", 1.0 / ESS_SHARE, hardly, CHAINS)
    judge("predictor_mean", "mean of predictors", SHIFT, "off by {value:.2f} posterior sd", WEIGHTS)
    away = "a variance off by {value:.0%}"
    judge("predictor_spread", "spread of predictors", RATIO, away, WEIGHTS)
    away = "coupled chains at half the time step are {value:.2f} sd away"
    judge("coupled_distance", "step", DISTANCE, away)
    judge("mean_bias", "step bias", BIAS, "{value:.2f} posterior sd")
    judge("sd_bias", "step bias of spread", SD_BIAS, "{value:.0%} of a posterior sd")
    judge("inflation", "step and noise", NOISE, "predicted to change a variance by {value:.1%}")
    judge("noise_share", "noise", NOISE, "gradient noise adds {value:.1%} to a variance")
    beyond = "{value:.0f} nats beyond the tails of the posterior"
    judge("excursion", "farthest draw", EXCURSION, beyond)
    apart = "their combination does not hold (see combine_check_)"
    judge("shards_disagree", "shards", 0.5, apart, COMBINED)
    moved = "posterior means may be off by {value:.2f} posterior sd"
    error = np.max(np.abs(evidence.get("update_error", 0.0)))
    is_small = SHIFT < error <= UPDATE
    judge("update_error", "earlier rows", SHIFT if is_small else UPDATE, moved, BATCHES, is_small)
    degrees = 1.0 / max(np.max(evidence.get("heavy_tail", 1.0)), 1e-9)
    falls = f"the density falls as that of Student's t with df={degrees:.3g}"
    heavy = "Its mean and spread are unreliable, if they exist, however many draws are made: use a "
    heavy += "normal prior, or quantiles."
    judge("heavy_tail", "heavy tail", TAIL, falls, heavy)
    exact = "so many rows are fitted exactly that the noise is the rounding error of the response"
    exact += (
        ", or the response is so far from zero that its rounding error is as large as the noise"
    )
    noise = (
        "Give the noise, or a noise_prior that keeps it away from zero; subtract a constant from "
    )
    noise += "a response far from zero."
    judge("rounding", "no noise", ROUNDING, exact, noise)
    judge("divergent", "divergences", DIVERGENT, "{value:.1%} of the trajectories diverge", NARROW)
    met = "{value:.0%} of the trajectories meet one, behind which the likelihood is zero"
    judge("wall", "walls", WALL, met, WALLS, note=True)
    apart = "the data alone are {value:.1f} standard deviations from the prior"
    remedy = "Is the prior meant for these units? Standardise the columns or widen it. If a column "
    remedy += "separates the classes, any prior is as far from the data."
    judge("prior_conflict", "prior and data", CONFLICT, apart, remedy, note=True)


def _check_modes(examination, evidence):
    """Judge whether all modes were found, and whether the draws have the modes' shares."""
    n = int(evidence["n_modes"][0])
    if "modes_left" in evidence:
        text = f"{n} looked at, and others are likely."
        examination.findings.append(Finding("modes", text, MODES, float(n), float(n)))
    elif "noiseless_mode" in evidence:
        text = "one was left out, where some rows are fitted exactly and there is no noise."
        examination.findings.append(Finding("modes", text, TIES, n + 1.0, float(n)))
    elif n == 1:
        examination.passed["modes"] = "one found"
    gap, said = evidence.get("mode_gap", [0.0]), f"{n} found, a share off by {{value:.0%}}"
    if n > 1:
        examination.worst("modes", gap, MODE_GAP, said, MODES)
    without = "those without draws would add {value:.0%} to a variance"
    spread = evidence.get("mode_spread", [0.0])
    if spread[0] > RATIO:
        examination.worst("modes", spread, RATIO, without, MODES)
