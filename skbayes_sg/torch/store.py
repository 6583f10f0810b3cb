"""Draws of the parameters of a module, in memory of a stated size."""

import tempfile
from pathlib import Path

import numpy as np

from ..estimators._store import check_draw_store
from ..posterior.moments import kept_draws

__all__ = ["ModulePosterior", "Store"]


class Store:
    """Storage for draws as chains make them: moments of all draws, and some draws in full.

    Parameters
    ----------
    n_chains, n_draws, n_kept, n_parameters : int
        The size of the store; `n_draws` is that of each chain, of which `n_kept` are kept, evenly
        spaced.
    dtype : {"float32", "float16", "float64"}
    folder : str, Path or None
        Where a file for the draws is made; they are held in memory if None.
    weights : array of shape (n_draws,) or None
        Weight of each draw of a chain in the moments; None for equal weights.
    """

    def __init__(self, n_chains, n_draws, n_kept, n_parameters, dtype, folder, weights):
        self.kept = kept_draws(n_draws, n_kept)
        self.where = {int(draw): place for place, draw in enumerate(self.kept)}
        self.weights = np.ones(n_draws) if weights is None else weights
        shape = (n_chains, n_kept, n_parameters)
        self.draws = _on_disk(folder, shape, dtype) if folder else np.zeros(shape, dtype)
        self.others = [[{}] * n_kept for _ in range(n_chains)]  # tensors not in θ
        self.total, self.mean = 0.0, np.zeros(n_parameters)
        self.square = np.zeros(n_parameters)  # Σ w (θ - mean)²

    def clear(self):
        """Forget all draws; new ones are written to the same place."""
        self.total = 0.0
        self.mean[:] = self.square[:] = 0.0

    def add(self, chain_number, k, flat):
        """Add the present parameters of a chain as its draw k."""
        theta = flat.theta.detach().cpu().double().numpy()
        self._add_moments(theta, float(self.weights[k]))
        if k in self.where:
            place = self.where[k]
            self.draws[chain_number, place] = theta
            own = self.others[chain_number]
            own[place] = flat.others(own[place - 1] if place else {})

    def _add_moments(self, theta, w):
        """Update the weighted mean and sum of squares by a draw of weight w (West 1979)."""
        if w == 0.0:
            return
        self.total += w
        off = theta - self.mean
        self.mean += (w / self.total) * off
        self.square += w * off * (theta - self.mean)


def _on_disk(folder, shape, dtype):
    """Return a memory-mapped array in a new file of a folder."""
    Path(folder).mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile(
        dir=folder, prefix="draws-", suffix=".bin", delete=False
    ) as file:
        path = file.name
    return np.memmap(path, dtype=dtype, mode="w+", shape=shape)


def checked_store(n_chains, n_draws, n_kept, n_parameters, dtype, folder, weights):
    """Return a `Store`; `DrawStoreWarning` if it is large, `MemoryError` if it does not fit."""
    remedy = (
        "Keep fewer draws (keep=20), hold them in half precision (draws_dtype='float16'), or in a "
        "file (draws_folder='...')."
    )
    if not folder:
        itemsize = np.dtype(dtype).itemsize
        check_draw_store(n_chains, n_kept, n_parameters, itemsize, remedy)
    return Store(n_chains, n_draws, n_kept, n_parameters, dtype, folder, weights)


class ModulePosterior:
    """Draws of the parameters of a module, and the evidence on its predictions.

    Weights of networks have no meaning by themselves: units can be exchanged and rescaled without a
    change of any prediction. Therefore this class has means and standard deviations of weights, but
    neither R-hat nor a verdict for them; `check` judges predictions.

    Parameters
    ----------
    store : Store
        The draws.
    slices, shapes : dict
        Where the parameters of each name are in a draw, and their shapes.
    weights : array of shape (n_kept,) or None
        Weights of the kept draws of each chain.
    temperature : float
        T of the law that was sampled, the 1/T-th power of the posterior.
    diagnostics : dict of str to float
        See `skbayes_sg.torch.BayesianModuleClassifier`.
    altered : sequence of str
        Names of what makes the law differ from the posterior of the module.

    Attributes
    ----------
    draws : array of shape (n_chains, n_draws, n_parameters)
        The draws that were kept.

    Examples
    --------
    >>> import warnings
    >>> import torch
    >>> from sklearn.datasets import load_iris
    >>> from skbayes_sg.torch import BayesianModuleClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> model = BayesianModuleClassifier(torch.nn.Linear(4, 3), n_draws=10, n_chains=2)
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore")  # the chains are short
    ...     model = model.fit(X, y)
    >>> model.posterior_
    ModulePosterior: 2 chains x 10 draws of 15 parameters, temperature 1
    >>> model.posterior_["weight"].shape
    (2, 10, 3, 4)
    """

    def __init__(self, store, slices, shapes, weights, temperature, diagnostics, altered=()):
        self.draws, self.others = store.draws, store.others
        self._mean, self._std = store.mean, np.sqrt(store.square / store.total)
        self.slices, self.shapes = dict(slices), dict(shapes)
        self.weights, self.temperature = weights, temperature
        self.diagnostics, self.altered = dict(diagnostics), tuple(altered)

    @property
    def names(self):
        """The names of the parameters of the module."""
        return tuple(self.slices)

    @property
    def n_chains(self):
        """Number of chains."""
        return self.draws.shape[0]

    @property
    def n_draws(self):
        """Number of draws of each chain that were kept."""
        return self.draws.shape[1]

    def __getitem__(self, name):
        """Return the draws of a parameter, (n_chains, n_draws, *shape)."""
        return self._part(self.draws, name)

    def __contains__(self, name):
        return name in self.slices

    def _part(self, values, name):
        if name not in self.slices:
            raise KeyError(f"{name!r}: the parameters are {list(self.slices)}.")
        return values[..., self.slices[name]].reshape(*values.shape[:-1], *self.shapes[name])

    def mean(self, name=None):
        """Mean over all draws, also those that were not kept.

        Parameters
        ----------
        name : str, optional
            A parameter; all of them in one vector if None.

        Returns
        -------
        ndarray
        """
        return self._mean if name is None else self._part(self._mean, name)

    def std(self, name=None):
        """Standard deviation over all draws, also those that were not kept.

        Parameters
        ----------
        name : str, optional
            A parameter; all of them in one vector if None.

        Returns
        -------
        ndarray
        """
        return self._std if name is None else self._part(self._std, name)

    def check(self):
        """Whether predictions can be trusted: a verdict with reasons and remedies.

        Returns
        -------
        skbayes_sg.diagnostics.Verdict
        """
        from .evidence import verdict

        return verdict(self.diagnostics, self.temperature, self.altered)

    def __repr__(self):
        altered = f", altered by {', '.join(self.altered)}" if self.altered else ""
        return (
            f"ModulePosterior: {self.n_chains} chains x {self.n_draws} draws of "
            f"{self.draws.shape[2]} parameters, temperature {self.temperature:g}{altered}"
        )
