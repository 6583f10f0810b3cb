"""Default fits against reference posteriors: worst error of means and of standard deviations.

    python examples/benchmarks/reference_posteriors.py [--draws 10000] [--seeds 1] [--only NAME]

The reference of each problem is importance sampling from a t distribution where that is efficient;
else a long run on the full data of another sampler than the default's: of MALA where that was
Hamiltonian Monte Carlo, of Hamiltonian Monte Carlo where it was not. Prints a table and writes
`reference_posteriors.json`.
"""

import argparse
import json
import time
import warnings
from pathlib import Path

import numpy as np
from _problems import SMALL
from _references import importance_sampling

from skbayes_sg import BayesianLogisticRegression
from skbayes_sg.diagnostics.convergence import ess_bulk

GATE_MEAN, GATE_SD = 0.05, 0.05


def reference(X, y, prior, pilot):
    """(name, mean, sd, smallest ESS) of the exact posterior."""
    flat = pilot.posterior_.flat.reshape(-1, pilot.posterior_.flat.shape[-1])
    weighted = importance_sampling(X, y, prior, flat.mean(axis=0), np.cov(flat.T))
    if weighted is not None:
        return "weights", *weighted
    sampler, thin = ("mala", 100) if pilot.sampler_ == "hmc" else ("hmc", "auto")
    fit = BayesianLogisticRegression(
        prior=prior, sampler=sampler, thin=thin, n_draws=20_000, random_state=987654, n_jobs=-1
    )
    flat = fit.fit(X, y).posterior_.flat
    squares = (flat - flat.mean(axis=(0, 1))) ** 2
    ess = min(ess_bulk(flat).min(), ess_bulk(squares).min())
    return sampler, flat.mean((0, 1)), flat.std((0, 1)), ess


def compare(problem, draws, seed):
    X, y, prior = problem()
    began = time.perf_counter()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        fit = BayesianLogisticRegression(
            prior=prior, n_draws=draws, random_state=seed, n_jobs=-1
        ).fit(X, y)
    seconds = time.perf_counter() - began
    kind, mean, sd, size = reference(X, y, prior, fit)
    flat = fit.posterior_.flat
    error = np.abs(flat.mean((0, 1)) - mean) / sd
    ratio = flat.std((0, 1)) / sd
    return {
        "problem": problem.__name__, "n": X.shape[0], "d": X.shape[1], "seed": seed,
        "sampler": fit.sampler_, "gradient": fit.gradient_, "batch_size": fit.batch_size_,
        "step_size": fit.step_size_, "seconds": seconds, "min_ess": fit.diagnostics_["min_ess"],
        "reference": kind, "reference_ess": float(size),
        "error": float(error.max()), "sd_low": float(ratio.min()), "sd_high": float(ratio.max()),
        "warnings": [w.category.__name__ for w in caught],
        "diagnostics": fit.diagnostics_,
    }  # fmt: skip


def verdict(row):
    inside = row["error"] <= GATE_MEAN and abs(row["sd_low"] - 1) <= GATE_SD
    inside = inside and abs(row["sd_high"] - 1) <= GATE_SD
    return "ok" if inside else ("warned" if row["warnings"] else "MISS")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--draws", type=int, default=10_000)
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--only")
    args = parser.parse_args()
    rows = []
    print(f"{'problem':27}{'n':>7}{'d':>5} {'sampler':8}{'rows':>6}{'step':>8}{'s':>7}{'ESS':>8}"
          f"{'against':>9}{'ESS':>8}{'err':>7}{'sd low':>8}{'high':>7}  verdict")  # fmt: skip
    for problem in SMALL:
        if problem() is None or (args.only and args.only != problem.__name__):
            continue
        for seed in range(args.seeds):
            row = compare(problem, args.draws, seed)
            rows.append(row)
            print(
                f"{row['problem']:27}{row['n']:7}{row['d']:5} {row['sampler']:8}"
                f"{row['batch_size']:6}{row['step_size']:8.3g}{row['seconds']:7.2f}"
                f"{row['min_ess']:8.0f}{row['reference']:>9}"
                f"{row['reference_ess']:8.0f}{row['error']:7.3f}{row['sd_low']:8.3f}"
                f"{row['sd_high']:7.3f}  {verdict(row)} {' '.join(row['warnings'])}",
                flush=True,
            )
    Path("reference_posteriors.json").write_text(json.dumps(rows, indent=1))


if __name__ == "__main__":
    main()
