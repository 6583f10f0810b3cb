"""HOW the state of a chain moves: one file for each sampler."""

from ._base import Dynamics, Metropolis
from .baoab import BAOAB
from .exact import Exact
from .hmc import HMC
from .importance import Importance
from .leimkuhler_matthews import LeimkuhlerMatthews
from .mala import MALA
from .sghmc import SGHMC
from .sgld import SGLD
from .sgnht import SGNHT

DYNAMICS = {
    "sgld": SGLD,
    "leimkuhler_matthews": LeimkuhlerMatthews,
    "baoab": BAOAB,
    "sghmc": SGHMC,
    "sgnht": SGNHT,
    "mala": MALA,
    "hmc": HMC,
}

__all__ = ["BAOAB", "HMC", "MALA", "SGHMC", "SGLD", "SGNHT", "Dynamics", "Exact"]
__all__ += ["Importance", "LeimkuhlerMatthews", "Metropolis"]
