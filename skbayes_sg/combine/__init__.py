"""Posteriors of parts of the data -> the posterior of all of it. Draws in, draws out.

Of disjoint parts x_1, ..., x_S of the rows, each with its share of the prior,

    p(θ | x) ∝ Π_s f_s(θ),      f_s(θ) = p(θ)^(1/S) p(x_s | θ),

whatever the parts are. What differs is how the *subposteriors* f_s, known by draws alone, are
multiplied. Nothing here knows of models: the functions also serve draws from elsewhere.
"""

from ._base import Combiner
from .agreement import agreement
from .consensus import Consensus, consensus_average
from .kde_product import Nonparametric, Semiparametric, kernel_product, semiparametric_product
from .parametric import Parametric, gaussian_product
from .weierstrass import Weierstrass, weierstrass_product

__all__ = [
    "Combiner", "Consensus", "Nonparametric", "Parametric", "Semiparametric", "Weierstrass",
    "agreement", "consensus_average", "gaussian_product", "kernel_product",
    "semiparametric_product", "weierstrass_product",
]  # fmt: skip

COMBINERS = {
    "consensus": Consensus,
    "parametric": Parametric,
    "nonparametric": Nonparametric,
    "semiparametric": Semiparametric,
    "weierstrass": Weierstrass,
}
