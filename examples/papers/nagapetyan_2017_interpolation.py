"""Between the Taylor and the plain gradient (Nagapetyan et al. 2017): the end of section 3.4.

    python examples/papers/nagapetyan_2017_interpolation.py [--quick]

The paper proposes to interpolate between the two to have "the best of both worlds", and shows no
experiment. Here: the exact noise of ``Taylor(share)`` (trace of the covariance of the whitened
gradient of one uniform row, as a share of that of N plain rows at the mode) against the distance
from the mode, for some shares and for the share that is best at each distance; logistic regression
with made data, mean over ten random directions. Two columns of data: normal, and with heavy tails.
"""

import numpy as np
from _papers import Parser, figure, make_frame, save_figure, save_table

from skbayes_sg.models import Logistic
from skbayes_sg.priors import Normal

SHARES = (0.0, 0.5, 0.9, 1.0)
DISTANCES = np.geomspace(0.3, 300.0, 13)  # posterior standard deviations


def problem(N, heavy):
    rng = np.random.default_rng(N)
    X = np.column_stack(
        [np.ones(N), rng.standard_t(2.5, (N, 2)) if heavy else rng.normal(size=(N, 2))]
    )
    p = 1.0 / (1.0 + np.exp(-X @ [0.3, 1.0, -0.5]))
    return make_frame(X, (rng.random(N) < p).astype(float), Logistic(), Normal(), "hessian")


def rows_at(frame, theta):
    """Whitened gradients of all rows, and their expansions at the mode: (N, 3) each."""
    X, y, mode = frame.target.X, frame.target.labels()[:, 0], frame.centre.theta
    p, at = (1.0 / (1.0 + np.exp(-X @ t)) for t in (theta, mode))
    expansion = at - y + at * (1.0 - at) * (X @ (theta - mode))
    return ((p - y)[:, None] * X) @ frame.F, (expansion[:, None] * X) @ frame.F


def noise(a, share, b):
    """Trace of the covariance of N a_i - share N b_i for one uniform row i."""
    return len(a) ** 2 * (a - share * b).var(axis=0).sum()


def curves(frame, n_directions):
    """{share: noise at each distance}, and the best share at each distance."""
    rng, found, best = np.random.default_rng(0), {share: [] for share in (*SHARES, "best")}, []
    unit = noise(rows_at(frame, frame.centre.theta)[0], 0.0, 0.0)
    for distance in DISTANCES:
        values, shares = [], []
        for _ in range(n_directions):
            z = rng.standard_normal(3)
            a, b = rows_at(frame, frame.theta(distance * z / np.linalg.norm(z)))
            covariance = ((a - a.mean(axis=0)) * (b - b.mean(axis=0))).sum()
            share = float(np.clip(covariance / ((b - b.mean(axis=0)) ** 2).sum(), 0.0, 1.0))
            values.append([noise(a, s, b) / unit for s in (*SHARES, share)])
            shares.append(share)
        for share, value in zip(found, np.mean(values, axis=0), strict=True):
            found[share].append(float(value))
        best.append(float(np.mean(shares)))
    return found, best


def main():
    parser = Parser(__doc__)
    parser.add_argument("--rows", type=int, default=10_000, quick=300)
    parser.add_argument("--directions", type=int, default=10, quick=2)
    options = parser.parse_args()
    made, axes = figure(1, 2, width=4.2, height=3.4)
    table = []
    for axis, heavy in zip(axes[0], (False, True), strict=True):
        name = "heavy tails" if heavy else "normal columns"
        found, best = curves(problem(options.rows, heavy), options.directions)
        for share, values in found.items():
            style = "k:" if share == "best" else "-"
            axis.loglog(DISTANCES, values, style, label=f"share {share}")
        axis.set(title=name, xlabel="distance from the mode, in sd")
        for k, distance in enumerate(DISTANCES):
            row = {"columns": name, "distance": float(distance), "best share": best[k]}
            table.append(row | {f"share {s}": v[k] for s, v in found.items()})
        crossing = DISTANCES[np.argmax(np.array(found[1.0]) > np.array(found[0.0]))]
        plain = np.array(found[0.0]) < np.array(found[1.0])
        where = f"from about {crossing:.2g} sd on" if plain.any() else "nowhere"
        print(f"{name}: the plain gradient has less noise than Taylor's {where};")
        print(
            "    best shares: "
            + ", ".join(f"{d:.2g} sd {s:.2f}" for d, s in zip(DISTANCES, best, strict=True))
        )
    axes[0, 0].set_ylabel("noise of one row, plain at the mode = 1")
    axes[0, 0].legend(fontsize=8)
    save_table(options.output, "nagapetyan_2017_interpolation", table)
    if options.output:
        save_figure(options.output, "nagapetyan_2017_interpolation", made)


if __name__ == "__main__":
    main()
