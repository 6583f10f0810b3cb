"""Results of a fit: fitted attributes from the chains."""

import numpy as np

from .._base.categories import keys
from .factor_posterior import FactorPosterior
from .step_check import biases

__all__ = ["fitted_attributes", "posterior_of"]


def fitted_attributes(setup, chains, store, n_draws, data):
    """Return the fitted attributes that follow from the first `n_draws` draws of all chains.

    Parameters
    ----------
    setup : skbayes_sg.factorisation.chains.FactorSetup
    chains : list of skbayes_sg.factorisation.chains.FactorChain
    store : FactorDraws or None
        Where the draws are kept; None for running moments.
    n_draws : int
        Number of draws of each chain.
    data : dict
        The first result of `skbayes_sg.factorisation.ratings.learn_ratings`.
    """
    posterior = posterior_of(setup, chains, n_draws, data["centre_"], data["scale_"])
    return {
        "posterior_": posterior,
        "noise_std_": float(posterior.mean("noise_std")),
        "draws_": {} if store is None else _gathered(store, chains, n_draws),
        "moments_": _moments(chains, data["offsets_"]) if store is None else {},
        "diagnostics_": posterior.convergence() | posterior.evidence,
    }


def posterior_of(setup, chains, n_draws, centre, scale):
    """The posterior, in the unit of y, of the traced quantities, which no rotation changes."""
    traces = np.stack([chain.trace[:n_draws] for chain in chains])
    noise, others = scale * traces[..., 0], centre + scale * traces[..., 1:]
    origin = {"sampler": type(setup.sampler).__name__, "thin": setup.thin}
    problem = setup.model.problem
    evidence = {"numbers_a_rating": problem.n_rows * problem.width / problem.n_ratings}
    evidence |= _examined(setup, chains, n_draws, noise)
    return FactorPosterior(noise, others[..., 0], others[..., 1:], origin, evidence)


def _examined(setup, chains, n_draws, noise_std):
    """What Gibbs sweeps from some of the draws say of their biases: see `step_check`."""
    done = int((setup.examined < n_draws).sum())
    predictions, misfits = (
        np.stack([array[:done] for array in arrays])
        for arrays in zip(*(chain.continued for chain in chains), strict=True)
    )
    return biases(predictions, misfits, noise_std)


def _gathered(store, chains, n_draws):
    """Return the first `n_draws` draws of all chains as a dict of arrays.

    Draws that come from other processes are copied into the store.
    """
    for chain in chains:
        if not np.shares_memory(chain.kept.F, store.F):
            for mine, made in zip(store, chain.kept, strict=True):
                mine[chain.number] = made
    return {name: array[:, :n_draws] for name, array in store._asdict().items()}


def _moments(chains, offsets):
    """Mean and variance of the predictions of known rows, sorted by the keys of the rows."""
    n_draws = sum(chain.kept.count for chain in chains)
    g, f, squares, other = sum(chain.kept.sums for chain in chains) / n_draws
    key = keys(chains[0].kept.codes, offsets)
    key, first = np.unique(key, return_index=True)
    variance = np.maximum(squares - f**2, 0.0) + other
    return {"keys": key, "mean": g[first], "variance": variance[first]}
