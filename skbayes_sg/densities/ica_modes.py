"""The modes of independent component analysis, up to the order and the signs of the sources.

Two sources that are nearly normal may be turned into each other, so that U has further minima.
FastICA minimises another function, and its answer may lie near a minimum that is far from the
lowest (in 5 of 10 random parts of an EEG with 16 to 32 channels, by 2 to 29 nats; with its first 24
channels by 54). Descents begin there and at rotations that are drawn at random: at least `FEWEST`,
since each of two minima that are found equally often is then missed in one run of 256, and more
until the lowest has been found `TIMES` times, or until there are as many as a model of their cost
allows.
"""

import numpy as np

from .._base import streams
from ..geometry.modes import log_laplace
from ..recipe.price import TOLD_SECONDS, seconds_of_rows, warn_if_long
from .around import mode_near
from .ica import LOGISTIC_SD, aligned

__all__ = ["aligned_to_modes", "maxima_of_sources"]

TIMES = 3  # times that the lowest minimum must have been found
FEWEST, MOST = 8, 20  # smallest and largest number of descents
SEARCH_SECONDS = 10.0  # largest predicted time of more than the fewest descents
GRADIENTS = 150  # predicted number of gradients of a descent
SAME = 0.1  # nats within which two minima count as equally low
WINDOW = 15.0  # minima that are so many nats above the lowest do not matter
LIKE = 0.99  # cosine of all pairs of rows of two unmixing matrices from which they are the same


def maxima_of_sources(target, starts, request):
    """Return the unmixing matrices at minima of U that matter, flattened, the lowest first.

    They are found by descents from `starts` (one, d²), the answer of FastICA, and from random
    rotations. All have the order and the signs of the sources of the first.
    """
    d, start = int(np.sqrt(target.n_parameters) + 0.5), starts[0]
    rng = streams.child(streams.of_recipe(request.seed))
    most = _most_descents(target) if d > 1 else 1
    ends, U, times = [], np.empty(0), 0
    while len(ends) < most and (times < TIMES or len(ends) < FEWEST):
        ends.append(mode_near(target, start))
        U = np.append(U, target.value_and_gradient(ends[-1])[0])
        times = int((U < U.min() + SAME).sum())
        start = LOGISTIC_SD * np.linalg.qr(rng.standard_normal((d, d)))[0].ravel()
    low = [ends[k].reshape(d, d) for k in np.argsort(U) if U[k] < U.min() + WINDOW]
    return _distinct(aligned(np.array(low), low[0]))


def aligned_to_modes(W, modes):
    """Return draws W (S, d, d) with the order and the signs of the sources of their nearest mode.

    That of each draw is the one of `modes` whose Laplace approximation is largest there. Order and
    signs of another mode would differ from draw to draw, where two sources are turned by half of a
    right angle.
    """
    places = [frame.centre.theta.reshape(W.shape[1:]) for frame in modes.frames]
    found = np.array([aligned(W, place) for place in places])
    if len(places) == 1:
        return found[0]
    log_p = [
        log_laplace(frame, own.reshape(len(W), -1))
        for frame, own in zip(modes.frames, found, strict=True)
    ]
    return found[np.argmax(log_p, axis=0), np.arange(len(W))]


def _most_descents(target):
    """The largest number of descents; a `LongRunWarning` if they are predicted to take long."""
    seconds = GRADIENTS * seconds_of_rows(target, target.n_rows)
    most = int(np.clip(SEARCH_SECONDS / seconds, FEWEST, MOST))
    told = f"The search for unmixing matrices, in up to {most} descents,"
    warn_if_long(most * seconds, told, "Use fewer components (n_components).", TOLD_SECONDS)
    return most


def _distinct(W):
    """Return those of aligned matrices W (n, d, d), flattened, that are like no earlier one."""
    unit = W / np.linalg.norm(W, axis=2, keepdims=True)
    kept = []
    for k in range(len(W)):
        if not any((unit[k] * unit[j]).sum(axis=1).min() > LIKE for j in kept):
            kept.append(k)
    return list(W[kept].reshape(len(kept), -1))
