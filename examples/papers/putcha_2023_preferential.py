"""Preferential subsampling (Putcha, Nemeth and Fearnhead 2023): figures 2 and 3, with exact errors.

    python examples/papers/putcha_2023_preferential.py [--quick]

Figure 2: SGLD, SGLD-PS, SGLD-CV and SGLD-CV-PS against the rows of a step, on every tenth row of
covertype classes 2 and 4 (28,605 rows, 1 % of the second class; the paper has classes and columns
that are not at hand). Instead of the kernel Stein discrepancy: root mean square errors of means, in
standard deviations, and of log standard deviations, beside a long run of Hamiltonian Monte Carlo.

Figure 3: adaptive batches on balanced made data (10,000 rows, five parameters), beside fixed
batches of the same size at most, and fixed batches of as many rows on average.
"""

import numpy as np
from _papers import (
    Parser,
    errors,
    figure,
    fit,
    needed,
    plain_ticks,
    reference,
    save_figure,
    some,
    standardised,
)
from sklearn.datasets import make_classification

from skbayes_sg.subsampling import Adaptive, Preferential, Uniform

STEP = 0.1
SHARES = (0.0003, 0.001, 0.003, 0.01)
METHODS = {
    "SGLD": ("minibatch", Uniform()),
    "SGLD-PS": ("minibatch", Preferential(weights="gradient")),
    "SGLD-CV": ("control_variate", Uniform()),
    "SGLD-CV-PS": ("control_variate", Preferential(weights="hessian")),
}
FIXED = {"sampler": "sgld", "step_size": STEP, "preconditioner": "hessian"}
FIXED |= {"n_warmup": 200, "thin": 20}


def against_rows(n_rows, n_draws):
    data = needed("covtype_2v4_286k.npz")
    X, y = some(n_rows, data["X"][::10], data["y"][::10].astype(int))
    X = standardised(X)
    mean, sd = reference(X, y, n_draws)
    found = {}
    for name, (gradient, scheme) in METHODS.items():
        for share in SHARES:
            n = max(1, round(share * len(X)))
            options = FIXED | {"gradient": gradient, "subsampling": scheme, "batch_size": n}
            model = fit(X, y, n_draws=n_draws, **options)
            found[name, share] = errors(model, mean, sd)
            off, spread = found[name, share]
            print(f"{name:12}{n:6} rows a step: means off by {off:7.3f} sd, log sd by {spread:.3f}")
    return found


def adaptive(n_rows, n_draws):
    X, y = make_classification(n_rows, 4, n_informative=4, n_redundant=0, random_state=0)
    X, rows = standardised(X), []
    mean, sd = reference(X, y, n_draws)
    for weights in (None, "hessian"):
        own = {"preferential": weights is not None, "weights": weights or "posterior"}
        fixed = Preferential(weights=weights) if weights else Uniform()
        for n in (10, 40):
            model = fit_cv(X, y, Adaptive(max_size=10 * n, **own), n, n_draws)
            used = float(model.batch_sizes_.mean())
            fewer = max(1, round(used))
            rows.append(("adaptive", weights, n, used, *errors(model, mean, sd)))
            for kind, size in (("fixed", n), ("fixed, as many", fewer)):
                model = fit_cv(X, y, fixed, size, n_draws)
                rows.append((kind, weights, n, size, *errors(model, mean, sd)))
    return rows


def fit_cv(X, y, scheme, n, n_draws):
    options = FIXED | {"n_draws": 2 * n_draws}
    return fit(X, y, gradient="control_variate", subsampling=scheme, batch_size=n, **options)


def draw(found, rows, folder):
    made, axes = figure(1, 3)
    for axis, part, title in zip(axes[0], (0, 1), ("means, in sd", "log sd"), strict=False):
        for name in METHODS:
            values = [found[name, share][part] for share in SHARES]
            axis.loglog(SHARES, values, "o-", label=name, markersize=3)
        axis.set(xlabel="share of the rows a step", title=f"rms error of {title}")
    axes[0, 0].legend(fontsize=7)
    last = axes[0, 2]
    for kind, mark in (("adaptive", "o"), ("fixed", "s"), ("fixed, as many", "x")):
        here = [row for row in rows if row[0] == kind]
        last.loglog([r[3] for r in here], [r[5] for r in here], mark, label=kind)
    last.set(xlabel="rows a step, on average", title="SGLD-CV(-PS): rms error of log sd")
    plain_ticks(last, (5, 10, 20, 40))
    plain_ticks(last, (0.02, 0.025, 0.03), "y")
    last.legend(fontsize=7)
    save_figure(folder, "putcha_2023_preferential", made)


def in_words(found, rows):
    at = 0.001
    for part, what in ((0, "means"), (1, "log sd")):
        without, with_ps = (
            np.array([found[f"{name}{tail}", at][part] for name in ("SGLD", "SGLD-CV")])
            for tail in ("", "-PS")
        )
        gains = "by {:.1f} for SGLD and by {:.1f} for SGLD-CV".format(*(without / with_ps))
        print(f"At 0.1 % of the rows preferential chances divide the error of {what}")
        print(f"    {gains}.")
    best = min(METHODS, key=lambda name: found[name, at][1])
    print(f"The smallest error of sd there is that of {best}.")
    for kind, weights, n, used, off, spread in rows:
        name = "SGLD-CV-PS" if weights else "SGLD-CV"
        wrong = f"means off by {off:.3f} sd, log sd by {spread:.4f}"
        print(f"{name:11} n = {n:3} {kind:15} {used:6.1f} rows: {wrong}")
    share = np.mean([row[3] / row[2] for row in rows if row[0] == "adaptive"])
    off = {
        kind: np.mean([row[5] for row in rows if row[0] == kind])
        for kind in ("adaptive", "fixed", "fixed, as many")
    }
    print(f"Adaptive batches use {share:.0%} of the rows; log sd is off by {off['adaptive']:.4f},")
    print(f"with fixed batches by {off['fixed']:.4f}, with fixed batches of as many rows on")
    print(f"average by {off['fixed, as many']:.4f}:")
    print("rows in proportion to the squared distance have the mean noise of a fixed batch of")
    print("their mean size. What is saved is that the fixed batch was larger than needed.")


def main():
    parser = Parser(__doc__)
    parser.add_argument("--draws", type=int, default=2000, quick=100)
    options = parser.parse_args()
    found = against_rows(5000 if options.quick else 100_000, options.draws)
    rows = adaptive(1000 if options.quick else 10_000, options.draws)
    in_words(found, rows)
    if options.output:
        draw(found, rows, options.output)


if __name__ == "__main__":
    main()
