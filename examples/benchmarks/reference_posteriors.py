"""Default fits against reference posteriors: worst error of means and of standard deviations.

    python examples/benchmarks/reference_posteriors.py [--draws 10000] [--seeds 1] [--quick]

The reference of each problem is importance sampling from a t distribution where that is efficient;
else a long run on the full data of another sampler than the default's: of MALA where that was
Hamiltonian Monte Carlo, of Hamiltonian Monte Carlo where it was not.
"""

import time
import warnings

import numpy as np
from _problems import EASY, SMALL
from _references import importance_sampling
from _tables import Parser, save

from skbayes_sg import BayesianLogisticRegression
from skbayes_sg.diagnostics.convergence import ess_bulk

GATE_MEAN, GATE_SD = 0.05, 0.05


def reference(X, y, prior, pilot):
    """(name, mean, sd, smallest ESS) of the exact posterior."""
    flat = pilot.posterior_.sampled.reshape(-1, pilot.posterior_.flat.shape[-1])
    weighted = importance_sampling(X, y, prior, flat.mean(axis=0), np.cov(flat.T))
    if weighted is not None:
        return "weights", *weighted
    sampler, thin = ("mala", 100) if pilot.sampler_ == "hmc" else ("hmc", "auto")
    fit = BayesianLogisticRegression(
        prior=prior, sampler=sampler, thin=thin, n_draws=20_000, random_state=987654, n_jobs=-1
    )
    flat = fit.fit(X, y).posterior_.sampled
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
    flat = fit.posterior_.sampled
    error = np.abs(flat.mean((0, 1)) - mean) / sd
    ratio = flat.std((0, 1)) / sd
    row = {"problem": problem.__name__, "n": X.shape[0], "d": X.shape[1], "seed": seed}
    row |= {"sampler": fit.sampler_, "gradient": fit.gradient_, "batch_size": fit.batch_size_}
    row |= {"step_size": fit.step_size_, "seconds": seconds}
    row |= {"min_ess": fit.diagnostics_["min_ess"], "reference": kind, "reference_ess": size}
    row |= {"error": error.max(), "sd_low": ratio.min(), "sd_high": ratio.max()}
    return row | {"warnings": [w.category.__name__ for w in caught]}


COLUMNS = {  # title: name, format
    "problem": ("problem", "27"),
    "n": ("n", "7"),
    "d": ("d", "5"),
    "sampler": ("sampler", ">20"),
    "rows": ("batch_size", "6"),
    "step": ("step_size", "8.3g"),
    "s": ("seconds", "7.2f"),
    "ESS": ("min_ess", "8.0f"),
    "against": ("reference", ">9"),
    "its ESS": ("reference_ess", "8.0f"),
    "error": ("error", "7.3f"),
    "sd low": ("sd_low", "8.3f"),
    "high": ("sd_high", "7.3f"),
}


def header():
    widths = [form.lstrip(">").split(".")[0] for _, form in COLUMNS.values()]
    titles = zip(COLUMNS, widths, strict=True)
    return "".join(f"{title:{'>' if k else ''}{width}}" for k, (title, width) in enumerate(titles))


def in_words(row):
    cells = "".join(f"{row[name]:{form}}" for name, form in COLUMNS.values())
    return f"{cells}  {verdict(row)} {' '.join(row['warnings'])}"


def verdict(row):
    inside = row["error"] <= GATE_MEAN and abs(row["sd_low"] - 1) <= GATE_SD
    inside = inside and abs(row["sd_high"] - 1) <= GATE_SD
    return "ok" if inside else ("warned" if row["warnings"] else "MISS")


def main():
    parser = Parser(__doc__)
    parser.add_argument("--draws", type=int, default=10_000, quick=500)
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--only")
    args = parser.parse_args()
    rows = []
    print(header(), " verdict")
    for problem in EASY[4:] if args.quick else SMALL:
        if problem() is None or (args.only and args.only != problem.__name__):
            continue
        for seed in range(args.seeds):
            rows.append(compare(problem, args.draws, seed))
            print(in_words(rows[-1]), flush=True)
    save(args.output, "reference_posteriors", rows)


if __name__ == "__main__":
    main()
