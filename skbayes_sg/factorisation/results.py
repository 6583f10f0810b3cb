"""Results of a fit: fitted attributes from the chains, and a check of their agreement."""

import warnings

import numpy as np

from .._base.categories import keys
from ..diagnostics import convergence
from ..diagnostics.verdict import disagree
from ..exceptions import SamplerConvergenceWarning
from ..posterior import Posterior
from .chains import N_PROBES

__all__ = ["fitted_attributes", "warn_unless_converged"]

LEAST_DRAWS = 8  # of a chain


def fitted_attributes(setup, chains, store, n_draws, data):
    """The fitted attributes that follow from the first draws of all chains.

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
    posterior = _posterior(setup, chains, n_draws, data["centre_"], data["scale_"])
    return {
        "posterior_": posterior,
        "noise_std_": float(posterior.mean("noise_std")),
        "draws_": {} if store is None else _gathered(store, chains, n_draws),
        "moments_": _moments(chains, data["offsets_"]) if store is None else {},
        "diagnostics_": _diagnostics(posterior),
    }


def _posterior(setup, chains, n_draws, centre, scale):
    """The posterior of the traced quantities in the unit of y; no rotation changes them."""
    traces = np.stack([chain.trace[:n_draws] for chain in chains])
    flat = np.concatenate([scale * traces[..., :1], centre + scale * traces[..., 1:]], axis=-1)
    n_probes = flat.shape[-1] - 2
    shapes = {"noise_std": (), "mean": (), "probes": (n_probes,)}
    labels = ["noise_std", "mean", *(f"probes[{k}]" for k in range(n_probes))]
    origin = {"sampler": type(setup.sampler).__name__, "thin": setup.thin}
    return Posterior(flat, shapes, labels, origin)


def _gathered(store, chains, n_draws):
    """The draws of all chains; those from other processes are copied into the store."""
    for chain in chains:
        if not np.shares_memory(chain.kept.F, store.F):
            for mine, made in zip(store, chain.kept, strict=True):
                mine[chain.number] = made
    return {name: array[:, :n_draws] for name, array in store._asdict().items()}


def _moments(chains, offsets):
    """Mean and variance of the predictions of known pairs, sorted by their keys."""
    n_draws = sum(chain.kept.count for chain in chains)
    g, f, squares, other = sum(chain.kept.sums for chain in chains) / n_draws
    key = keys(chains[0].kept.codes, offsets)
    key, first = np.unique(key, return_index=True)
    variance = np.maximum(squares - f**2, 0.0) + other
    return {"keys": key, "mean": g[first], "variance": variance[first]}


def _diagnostics(posterior):
    """Effective sample sizes and R-hat of the noise, and of probes: a tenth has worse values."""
    probes = posterior["probes"]
    probes, noise = probes[..., probes.std(axis=(0, 1)) > 0.0], posterior["noise_std"]
    found = dict.fromkeys(("ess", "rhat", "noise_ess", "noise_rhat"), np.nan)
    if probes.shape[1] < LEAST_DRAWS:
        return found
    if probes.shape[2]:
        ess, rhat = convergence.ess_bulk(probes), convergence.rhat(probes)
        found |= {"ess": float(np.nanquantile(ess, 0.1)), "rhat": float(np.nanquantile(rhat, 0.9))}
    if np.ptp(noise) > 0.0:  # not where it is given
        own = {"noise_ess": convergence.ess_bulk(noise), "noise_rhat": convergence.rhat(noise)}
        found |= {name: float(value) for name, value in own.items()}
    return found


def warn_unless_converged(diagnostics, n_made):
    """Issue a `SamplerConvergenceWarning` if chains, or parts of a chain, disagree.

    Parameters
    ----------
    diagnostics : dict of str to float
    n_made : int
        Draws of all chains.
    """
    examined = {f"one in ten of {N_PROBES} predictions examined": "", "the noise": "noise_"}
    for what, name in examined.items():
        rhat, ess = diagnostics[f"{name}rhat"], diagnostics[f"{name}ess"]
        if disagree(rhat, ess, n_made):
            warnings.warn(
                f"The chains have not converged: {what} has an R-hat of {rhat:.2f} and an "
                f"effective sample size of {ess:.0f} of {n_made} draws, or worse. "
                "Increase n_draws, thin or n_warmup.",
                SamplerConvergenceWarning,
                stacklevel=3,
            )
            return
