"""HOW the state moves: one file a sampler."""

from ._base import Dynamics, Metropolis
from .baoab import BAOAB
from .hmc import HMC
from .leimkuhler_matthews import LeimkuhlerMatthews
from .mala import MALA
from .sgld import SGLD

DYNAMICS = {
    "sgld": SGLD,
    "leimkuhler_matthews": LeimkuhlerMatthews,
    "baoab": BAOAB,
    "mala": MALA,
    "hmc": HMC,
}

__all__ = ["BAOAB", "HMC", "MALA", "SGLD", "Dynamics", "LeimkuhlerMatthews", "Metropolis"]
