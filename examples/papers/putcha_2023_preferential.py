"""Preferential subsampling (Putcha, Nemeth and Fearnhead 2023): figures 2 and 3, with exact errors.

    python examples/papers/putcha_2023_preferential.py

Figure 2: SGLD, SGLD-PS, SGLD-CV and SGLD-CV-PS against the rows of a step, on every tenth row of
covertype classes 2 and 4 (28,605 rows, 1 % of the second class; the paper has classes and columns
that are not at hand). Instead of the kernel Stein discrepancy: root mean square errors of means, in
standard deviations, and of log standard deviations, beside a long run of Hamiltonian Monte Carlo.

Figure 3: adaptive batches on balanced made data (10,000 rows, five parameters), beside fixed
batches of the same size at most, and fixed batches of as many rows on average.
"""

import numpy as np
from _papers import errors, figure, fit, read, reference, standardised, write
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
FIXED = {
    "sampler": "sgld", "step_size": STEP, "preconditioner": "hessian", "n_warmup": 200, "thin": 20,
    "n_draws": 2000,
}  # fmt: skip


def against_rows():
    data = read("covtype_2v4_286k.npz")
    X, y = standardised(data["X"][::10]), data["y"][::10].astype(int)
    mean, sd = reference(X, y)
    found = {}
    for name, (gradient, scheme) in METHODS.items():
        for share in SHARES:
            n = max(1, round(share * len(X)))
            model = fit(X, y, gradient=gradient, subsampling=scheme, batch_size=n, **FIXED)
            found[name, share] = errors(model, mean, sd)
            off, spread = found[name, share]
            print(f"{name:12}{n:6} rows a step: means off by {off:7.3f} sd, log sd by {spread:.3f}")
    return found


def adaptive():
    X, y = make_classification(10_000, 4, n_informative=4, n_redundant=0, random_state=0)
    X, rows = standardised(X), []
    mean, sd = reference(X, y)
    for weights in (None, "hessian"):
        own = {"preferential": weights is not None, "weights": weights or "posterior"}
        fixed = Preferential(weights=weights) if weights else Uniform()
        for n in (10, 40):
            model = fit_cv(X, y, Adaptive(max_size=10 * n, **own), n)
            used = float(model.batch_sizes_.mean())
            fewer = max(1, round(used))
            rows.append(("adaptive", weights, n, used, *errors(model, mean, sd)))
            for kind, size in (("fixed", n), ("fixed, as many", fewer)):
                model = fit_cv(X, y, fixed, size)
                rows.append((kind, weights, n, size, *errors(model, mean, sd)))
    return rows


def fit_cv(X, y, scheme, n):
    options = FIXED | {"n_draws": 4000}
    return fit(X, y, gradient="control_variate", subsampling=scheme, batch_size=n, **options)


def draw(found, rows):
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
    last.legend(fontsize=7)
    write(made, "putcha_2023_preferential")


def in_words(found, rows):
    at = 0.001
    for part, what in ((0, "means"), (1, "log sd")):
        gains = [found[name, at][part] / found[f"{name}-PS", at][part]
                 for name in ("SGLD", "SGLD-CV")]  # fmt: skip
        print(f"At 0.1 % of the rows preferential chances divide the error of {what} by "
              f"{gains[0]:.1f} for SGLD and by {gains[1]:.1f} for SGLD-CV.")  # fmt: skip
    best = min(METHODS, key=lambda name: found[name, at][1])
    print(f"The smallest error of sd there is that of {best}.")
    for kind, weights, n, used, off, spread in rows:
        name = "SGLD-CV-PS" if weights else "SGLD-CV"
        print(f"{name:11} n = {n:3} {kind:15} {used:6.1f} rows: means off by {off:.3f} sd, log sd "
              f"by {spread:.4f}")  # fmt: skip
    share = np.mean([row[3] / row[2] for row in rows if row[0] == "adaptive"])
    off = {kind: np.mean([row[5] for row in rows if row[0] == kind])
           for kind in ("adaptive", "fixed", "fixed, as many")}  # fmt: skip
    print(f"Adaptive batches use {share:.0%} of the rows; log sd is off by {off['adaptive']:.4f}, "
          f"with\nfixed batches by {off['fixed']:.4f}, with fixed batches of as many rows on "
          f"average by {off['fixed, as many']:.4f}:")  # fmt: skip
    print("rows in proportion to the squared distance have the mean noise of a fixed batch of")
    print("their mean size. What is saved is that the fixed batch was larger than needed.")


def main():
    found, rows = against_rows(), adaptive()
    in_words(found, rows)
    draw(found, rows)


if __name__ == "__main__":
    main()
