"""HOW a batch of rows becomes a gradient: one file for each estimator."""

from ._base import Gradient
from .control_variate import ControlVariate
from .full import Full
from .minibatch import Minibatch
from .saga import SAGA
from .svrg import SVRG
from .tabulated import Tabulated
from .taylor import Taylor

GRADIENTS = {
    "full": Full,
    "minibatch": Minibatch,
    "control_variate": ControlVariate,
    "taylor": Taylor,
    "tabulated": Tabulated,
    "saga": SAGA,
    "svrg": SVRG,
}

__all__ = ["SAGA", "SVRG", "ControlVariate", "Full", "Gradient", "Minibatch", "Tabulated", "Taylor"]
