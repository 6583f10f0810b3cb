"""The table of all parameters: its columns and its layout."""

import html
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..diagnostics import convergence

__all__ = ["Summary", "heading", "summarise"]

_FORMATS = {"rhat": "{:.3f}"} | dict.fromkeys(["ess", "ess_bulk", "ess_tail", "high_k"], "{:.0f}")
_FORMATS |= dict.fromkeys(["elpd", "se", "elpd_diff", "diff_se", "p_loo"], "{:.1f}")
HEAVY = "heavy tails where mcse_sd is nan: report quantiles, mean and sd depend on a few draws"
_BIAS = {"bias": "mean_bias", "bias_mcse": "mean_bias_mcse", "noise": "noise_share"}


def summarise(posterior, mass):
    """Return the `Summary` of a posterior, with central intervals of probability `mass`."""
    columns = {"mean": posterior.mean(), "sd": posterior.std()}
    if posterior.n_draws or posterior.moments is None:
        ends = posterior.interval(mass)
        columns |= {f"{50 - 50 * mass:g}%": ends[0], f"{50 + 50 * mass:g}%": ends[1]}
    known = posterior.evidence
    bias = {column: known[name] for column, name in _BIAS.items() if name in known}
    columns |= _accuracy(posterior)
    return Summary(posterior.labels, columns | bias, heading(posterior) + _of_tails(columns))


def _accuracy(posterior):
    """Columns with R-hat, effective sample sizes and Monte Carlo errors of all draws made."""
    flat, weights, moments = posterior.flat, posterior.weights, posterior.moments
    if moments is not None:
        return {"rhat": moments.rhat(), "ess": moments.ess(), "mcse_mean": moments.mcse_mean()}
    # Effective sample sizes are reduced by this factor where resampling has repeated draws.
    share = posterior.evidence.get("resampled_share", 1.0)
    return {
        "rhat": convergence.rhat(flat),
        "ess_bulk": share * convergence.ess_bulk(flat, weights),
        "ess_tail": share * convergence.ess_tail(flat, weights),
        "mcse_mean": convergence.mcse_mean(flat, weights) / share**0.5,
        "mcse_sd": convergence.mcse_sd(flat, weights, share),
    }


def _of_tails(columns):
    """A line for the heading if standard deviations have no Monte Carlo error, else no text."""
    if "mcse_sd" not in columns:
        return ""
    no_error = np.isnan(columns["mcse_sd"]) & np.isfinite(columns["mcse_mean"])
    return f"\n{HEAVY}" if (no_error & (columns["mcse_mean"] > 0.0)).any() else ""


def heading(posterior):
    """One line that says how many draws there are and how they were made."""
    made = ", ".join(f"{key} {value}" for key, value in posterior.origin.items())
    draws = "draws" if posterior.weights is None else "weighted draws"
    number = f"{posterior.n_draws} {draws}"
    if posterior.moments is not None:
        number = f"{posterior.moments.seen} draws, {posterior.n_draws} of them kept"
    return f"{posterior.n_chains} chains x {number}" + (f": {made}" if made else "")


class Summary:
    """A table with one row for each parameter, which prints as text or as HTML in notebooks.

    Parameters
    ----------
    labels : sequence of str
        Name of each row.
    columns : dict of str to array
        Values of each column, one for each row; ``summary[column]`` returns them.
    heading : str
        A line above the table.

    Attributes
    ----------
    max_rows : int
        Largest number of rows shown, 60 by default; `to_frame` has all rows.

    Examples
    --------
    >>> from skbayes_sg.posterior import Summary
    >>> Summary(["coef[age]"], {"mean": [0.5], "rhat": [1.0]}, "4 chains x 1000 draws")
    4 chains x 1000 draws
               mean   rhat
    coef[age]   0.5  1.000
    """

    max_rows = 60

    def __init__(self, labels: Sequence[str], columns: Any, heading: str) -> None:
        self.labels, self.columns, self.heading = tuple(labels), dict(columns), heading

    def __getitem__(self, column):
        """A column, with one value for each parameter."""
        return self.columns[column]

    def to_frame(self) -> Any:
        """The table as a `pandas.DataFrame`, with the labels as index."""
        import pandas as pd

        return pd.DataFrame(self.columns, index=list(self.labels))

    def _cells(self, i):
        """The formatted values of row i."""
        return [
            _FORMATS.get(name, "{:.3g}").format(values[i]) for name, values in self.columns.items()
        ]

    def _shown(self):
        """Indices of the rows to show; None stands for rows that are left out in the middle."""
        n, half = len(self.labels), self.max_rows // 2
        return list(range(n)) if n <= self.max_rows else [*range(half), None, *range(n - half, n)]

    def __repr__(self):
        rows = [["", *self.columns]]
        for i in self._shown():
            rows.append(["..."] if i is None else [self.labels[i], *self._cells(i)])
        widths = [max(len(row[k]) for row in rows if len(row) > k) for k in range(len(rows[0]))]
        lines = [
            row[0].ljust(widths[0])
            + "".join(f"  {cell:>{w}}" for cell, w in zip(row[1:], widths[1:], strict=False))
            for row in rows
        ]
        return "\n".join([self.heading, *lines])

    def _repr_html_(self):
        head = "".join(f"<th>{html.escape(name)}</th>" for name in ("", *self.columns))
        body = "".join(
            "<tr><td>...</td></tr>"
            if i is None
            else f"<tr><th>{html.escape(self.labels[i])}</th>"
            + "".join(f"<td>{cell}</td>" for cell in self._cells(i))
            + "</tr>"
            for i in self._shown()
        )
        return f"<p>{html.escape(self.heading)}</p><table><tr>{head}</tr>{body}</table>"
