"""Runs of the kernels for `test_jit.py`, each in a process of its own.

jit_runs.py float64 OUT.npz   chains of every gradient and sampler on dense rows
jit_runs.py csr OUT.npz       the same on sparse rows
jit_runs.py values OUT.npz    a few kernels; prints how often the cache served them
"""

import json
import sys
import warnings

import cases
import numpy as np
import probe
from numba.core.dispatcher import Dispatcher
from scenes import make_scene

from skbayes_sg import BayesianLogisticRegression, models
from skbayes_sg._base.jit import pointer
from skbayes_sg.kernels.layout import CURVATURE, DERIVATIVE
from skbayes_sg.priors.table import prior_gradient
from skbayes_sg.subsampling import preferential


def combinations(storage):
    """(name, kernels) of every gradient with every sampler, the schemes in turn.

    Sparse rows for Langevin chains only: Metropolis chains have the same gradient, and each more
    type of rows costs ten seconds of compilation.
    """
    schemes = list(cases.SUBSAMPLING)
    for model in ("logistic", "softmax"):
        scene = make_scene(model, "student_t", n_rows=12, storage=storage)
        frame = scene.frame(kind="hessian")
        for name, case in cases.METROPOLIS.items() if storage == "float64" else ():
            yield f"{model} {name}", probe.Probe(frame, dynamics=case.dynamics)
        for g, gradient in cases.GRADIENTS.items():
            if gradient.all_rows:
                continue
            for number, (name, case) in enumerate(cases.LANGEVIN.items()):
                scheme = schemes[number % len(schemes)]
                rule = cases.SUBSAMPLING[scheme]
                yield (
                    f"{model} {g} {name} {scheme}",
                    probe.Probe(
                        frame, gradient.gradient, rule.scheme, case.dynamics, batch_size=5,
                        chances=rule.chances(12),
                    ),
                )  # fmt: skip


def draws(storage):
    """Draws of every combination and, of dense rows, of one long chain and of two fits."""
    found = {}
    for name, kernels in combinations(storage):
        start, adapt = np.zeros((2, kernels.dimension)), kernels.setup.is_metropolis
        h = cases.schedules.Constant(0.1) if adapt else cases.SCHEDULES["polynomial"][0]
        found[name], _ = kernels.sample(start, 5, 12, step_size=h, adapt=adapt)
    return found | (longer_draws() if storage == "float64" else {})


def longer_draws():
    """Draws of one long chain, and of two fits."""
    found = {}
    scene = make_scene("logistic", n_rows=30)
    long = probe.Probe(
        scene.frame(kind="hessian"), cases.GRADIENTS["taylor"].gradient,
        cases.SUBSAMPLING["uniform"].scheme, cases.DYNAMICS["sgld"].dynamics, batch_size=5,
    )  # fmt: skip
    found["long"], _ = long.sample(
        np.zeros((1, 3)), 6, 10, thin=100, step_size=cases.schedules.Constant(0.3)
    )
    X, y = scene.posterior.X, scene.posterior.y
    for name, options in {
        "fit hmc": {"sampler": "hmc"},
        "fit baoab": {"sampler": "baoab", "gradient": "taylor", "batch_size": 10, "step_size": 0.1},
    }.items():
        model = BayesianLogisticRegression(
            n_draws=8, n_chains=2, n_warmup=20, thin=1, random_state=0, **options
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # short on purpose
            found[name] = model.fit(X, y).posterior_.flat
    return found


def values():
    """Values of kernels that compile fast."""
    scene, thresholds = make_scene("logistic", "student_t", n_rows=12), np.empty(12)
    alias, eta = np.empty(12, dtype=np.int64), np.linspace(-3.0, 3.0, 12)[:, None]
    preferential._alias_table(cases.uneven(12), thresholds, alias)
    terms, model = np.empty((12, 1)), scene.target.model
    cases.GRADIENTS["minibatch"].gradient.terms(
        scene.target.data.facts, pointer(model.derivative, DERIVATIVE),
        pointer(model.curvature, CURVATURE), np.arange(12), 0, 12, eta,
        np.empty((12, 1)), terms,
    )  # fmt: skip
    gradient = scene.target.prior_gradient(scene.point())
    return {"thresholds": thresholds, "alias": alias, "terms": terms, "gradient": gradient}


def cache_statistics():
    """(hits, misses) of the kernels that `values` calls."""
    kernels = (
        models.Logistic.derivative, prior_gradient, preferential._alias_table,
        cases.GRADIENTS["minibatch"].gradient.terms,
    )  # fmt: skip
    hits = misses = 0
    for kernel in kernels:
        if isinstance(kernel, Dispatcher):
            hits += sum(kernel.stats.cache_hits.values())
            misses += sum(kernel.stats.cache_misses.values())
    return hits, misses


def main(what, out):
    """Run, save the results, and report on the cache."""
    found = values() if what == "values" else draws(what)
    np.savez(out, **found)
    print(json.dumps(cache_statistics()))


if __name__ == "__main__":
    main(*sys.argv[1:])
