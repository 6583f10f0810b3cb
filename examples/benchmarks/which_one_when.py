"""Samplers and gradients beside each other: time, rows read, effective draws, errors.

    python examples/benchmarks/which_one_when.py [--only PROBLEM] [--limit 3] [--quick]

Every pair has 4 chains of 250 draws and everything else "auto". The reference is a long run of
Hamiltonian Monte Carlo. Errors: of means, in posterior standard deviations, and the standard
deviation that is furthest off as a ratio; with 1000 draws means are known to 0.1 or so in the worst
of twenty parameters, standard deviations to 6 %. Seconds are those of
one processor; a fit that is not done in `limit` of them is stopped, and left out by name. The table
of the documentation is that of ``--limit 6``.
"""

import contextlib
import signal
import time
import warnings

import numpy as np
from _problems import imbalanced, rare_levels, well_conditioned
from _tables import Parser, save, show

from skbayes_sg import BayesianLogisticRegression
from skbayes_sg.diagnostics.convergence import ess_bulk
from skbayes_sg.exceptions import SamplerDivergedError
from skbayes_sg.subsampling import Adaptive

SAMPLERS = ("baoab", "sgld", "sghmc", "sgnht")
GRADIENTS = {
    "minibatch": {"gradient": "minibatch"},
    "control_variate": {"gradient": "control_variate"},
    "taylor": {"gradient": "taylor"},
    "saga": {"gradient": "saga"},
    "svrg": {"gradient": "svrg"},
    "cv, adaptive": {"gradient": "control_variate", "subsampling": Adaptive(preferential=True)},
}


def easy():
    """Small enough for the reference to be had in a minute."""
    return well_conditioned(20_000, 20)


def small():
    """For ``--quick``."""
    return well_conditioned(2000, 3)


class TookTooLong(KeyboardInterrupt):
    pass


@contextlib.contextmanager
def at_most(seconds):
    """An error when the time is over: all phases of a fit let signals in many times a second."""

    def stop(*_):
        raise TookTooLong

    before = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0.0)
        signal.signal(signal.SIGPROF, before)


def fitted(X, y, prior, limit, **options):
    model = BayesianLogisticRegression(prior=prior, random_state=0, **options)
    with warnings.catch_warnings(record=True) as caught, at_most(limit):
        warnings.simplefilter("always")
        began = time.process_time()
        model.fit(X, y)
    return model, time.process_time() - began, [w.category.__name__ for w in caught]


def exact(X, y, prior):
    draws = 300 if len(X) > 10_000 else 1000
    model, _, _ = fitted(X, y, prior, 600.0, sampler="hmc", n_draws=draws)
    return model.posterior_.mean(), model.posterior_.std()


def row(problem, sampler, name, data, truth, limit):
    line = {"problem": problem, "sampler": sampler, "gradient": name}
    options = {"sampler": sampler, "n_draws": 250} | GRADIENTS[name]
    try:
        model, seconds, warned = fitted(*data, limit, **options)
    except KeyboardInterrupt:
        return line | {"left out": f"not done in {limit:g} s"}
    except (SamplerDivergedError, ValueError) as error:
        return line | {"left out": f"{type(error).__name__}: {str(error)[:60]}"}
    return line | measured(model, seconds, truth) | {"warned": len(warned)}


def measured(model, seconds, truth):
    (mean, sd), posterior = truth, model.posterior_
    size = float(ess_bulk(posterior.flat).min())
    ratio = posterior.std() / sd
    read = model.n_steps_ * posterior.n_chains * float(np.mean(model.batch_sizes_))
    read *= 2.0 if model.gradient_ == "svrg" else 1.0  # its passes read as many as its steps
    row = {"seconds": seconds, "rows a step": float(np.mean(model.batch_sizes_))}
    row |= {"step": model.step_size_, "rows/draw": read / size, "min ESS": size}
    row |= {"mean off": float(np.abs((posterior.mean() - mean) / sd).max())}
    return row | {"sd ratio": float(ratio[np.abs(np.log(ratio)).argmax()])}


def in_words(lines):
    for problem in dict.fromkeys(line["problem"] for line in lines):
        here = [line for line in lines if line["problem"] == problem and "seconds" in line]
        fast = min(here, key=lambda line: line["seconds"] / line["min ESS"])
        few = min(here, key=lambda line: line["rows/draw"])
        print(f"{problem}: quickest an effective draw {fast['sampler']} with {fast['gradient']},")
        print(f"    fewest rows {few['sampler']} with {few['gradient']}.")


def main():
    parser = Parser(__doc__)
    parser.add_argument("--only", choices=["imbalanced", "rare_levels", "easy"])
    parser.add_argument("--limit", type=float, default=3.0)
    args, lines = parser.parse_args(), []
    problems = (small,) if args.quick else (imbalanced, rare_levels, easy)
    for problem in problems:
        if args.only and args.only != problem.__name__:
            continue
        data = problem()
        truth = exact(*data)
        for sampler in SAMPLERS[:2] if args.quick else SAMPLERS:
            for name in GRADIENTS:
                lines.append(row(problem.__name__, sampler, name, data, truth, args.limit))
                print(*lines[-1].values(), flush=True)
    done = [line for line in lines if "seconds" in line]
    show(done)
    save(args.output, "which_one_when", lines)
    for line in lines:
        if "left out" in line:
            print(*line.values())
    in_words(lines)


if __name__ == "__main__":
    main()
