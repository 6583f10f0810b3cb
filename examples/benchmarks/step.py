"""A step against the memory limit, in microseconds, on made rows of 55 float64.

    python examples/benchmarks/step.py [--rows 435000] [--steps 20000] [--quick]

The limit is what it takes to read the rows of a batch and add them up once, in the same order: a
dot product and an axpy for each, in the same kernels and nothing else. SVRG is timed with its
passes over all rows, every N/n steps.
"""

import time

import numpy as np
from _problems import well_conditioned
from _tables import Parser, save, show

from skbayes_sg._base.jit import jit
from skbayes_sg.dynamics import BAOAB
from skbayes_sg.engine.run import Setup, new_chains, sample
from skbayes_sg.engine.target import Target
from skbayes_sg.geometry.frame import build_frame
from skbayes_sg.geometry.mode import find_centre
from skbayes_sg.gradients import SAGA, SVRG, ControlVariate, Minibatch, Taylor
from skbayes_sg.kernels.layout import FACT_WEIGHT
from skbayes_sg.kernels.rows import predictors, scatter
from skbayes_sg.models import Logistic
from skbayes_sg.priors import Normal
from skbayes_sg.schedules import Constant
from skbayes_sg.subsampling import Blocks, Preferential, Uniform, UniformWithoutReplacement


@jit
def gather(data, theta, rng, N, n, block, steps, rows, coefficients, terms, g_out):
    """Only what no sampler can do without: read n rows, and add them up."""
    for _ in range(steps):
        first = int(rng.random() * (N - n))
        for k in range(n):
            rows[k] = first + k if block else int(rng.random() * N)
        predictors(data, theta, rows, 0, n, terms)
        scatter(data, rows, 0, n, coefficients, terms, g_out)


def best(work, n_steps, repeats=5):
    times = []
    for _ in range(repeats):
        began = time.perf_counter()
        work()
        times.append(time.perf_counter() - began)
    return min(times) / n_steps * 1e6


def limit(target, n, block, n_steps):
    rng, rows = np.random.Generator(np.random.SFC64(0)), np.empty(n, dtype=np.int64)
    D = target.n_parameters
    args = target.data, np.zeros(D), rng, target.n_rows, n, block
    rest = rows, np.ones(n), np.empty((n, 1)), np.zeros(D)
    gather(*args, 1, *rest)
    return best(lambda: gather(*args, n_steps, *rest), n_steps)


def step(frame, gradient, scheme, n, n_steps):
    N, D = frame.target.n_rows, frame.target.n_parameters
    pieces = frame.problem(gradient), frame.target.model, gradient, scheme, BAOAB()
    limits = {"bounds": np.full(D, 1e6), "chances": np.full(N, 1 / N)}
    setup = Setup(*pieces, n, step_size=Constant(0.01), **limits)
    chains = new_chains(setup, np.zeros((1, D)), 0)
    sample(setup, chains, 1, 100, n_jobs=1)
    return best(lambda: sample(setup, chains, 1, n_steps, n_jobs=1), n_steps)


def main():
    parser = Parser(__doc__)
    parser.add_argument("--rows", type=int, default=435_000, quick=5000)
    parser.add_argument("--steps", type=int, default=20_000, quick=100)
    options = parser.parse_args()
    X, y, _ = well_conditioned(options.rows)
    prior = np.concatenate([Normal()._table((55,)), Normal(scale=10.0)._table((1,))])
    target = Target(X, y.astype(float), np.ones(len(y)), Logistic(), prior, n_jobs=-1)
    assert (target.data.facts[:, FACT_WEIGHT] == 1.0).all()
    frame = build_frame(
        target, find_centre(target, dense=True, rng=np.random.default_rng(0)), "hessian"
    )
    rows = []
    for n in (10, 100):
        for scheme in (Uniform(), UniformWithoutReplacement(), Preferential(), Blocks()):
            least = limit(target, n, isinstance(scheme, Blocks), options.steps)
            for gradient in (Minibatch(), ControlVariate(), Taylor(), SAGA(), SVRG()):
                took = step(frame, gradient, scheme, n, options.steps)
                row = {"rows": n, "subsampling": type(scheme).__name__, "us": took}
                row |= {"gradient": type(gradient).__name__, "limit us": least}
                rows.append(row | {"ratio": took / least})
    show(rows)
    save(options.output, "step", rows)


if __name__ == "__main__":
    main()
