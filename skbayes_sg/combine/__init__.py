"""Combine draws from posteriors of parts of the data into draws from the posterior of all of it.

For disjoint parts x_1, ..., x_S of the rows, each with its share of the prior,

    p(θ | x) ∝ Π_s f_s(θ),      f_s(θ) = p(θ)^(1/S) p(x_s | θ),

whatever the parts are. The methods differ in how they multiply the *subposteriors* f_s, which are
known only by their draws. Nothing here depends on a model: draws may come from anywhere.
"""

from ._base import Combiner
from .agreement import agreement
from .consensus import Consensus, consensus_average
from .kde_product import Nonparametric, Semiparametric, kernel_product, semiparametric_product
from .parametric import Parametric, gaussian_product
from .weierstrass import Weierstrass, weierstrass_product

__all__ = ["Combiner", "Consensus", "Nonparametric", "Parametric", "Semiparametric", "Weierstrass"]
__all__ += ["agreement", "consensus_average", "gaussian_product", "kernel_product"]
__all__ += ["semiparametric_product", "weierstrass_product"]

COMBINERS = {
    "consensus": Consensus,
    "parametric": Parametric,
    "nonparametric": Nonparametric,
    "semiparametric": Semiparametric,
    "weierstrass": Weierstrass,
}
