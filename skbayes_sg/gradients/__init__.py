"""HOW a batch of rows becomes an estimate of the gradient: one file for each estimator."""

from ._base import Gradient
from .control_variate import ControlVariate
from .full import Full
from .minibatch import Minibatch
from .saga import SAGA
from .svrg import SVRG
from .taylor import Taylor

GRADIENTS = {
    "full": Full,
    "minibatch": Minibatch,
    "control_variate": ControlVariate,
    "taylor": Taylor,
    "saga": SAGA,
    "svrg": SVRG,
}

__all__ = ["SAGA", "SVRG", "ControlVariate", "Full", "Gradient", "Minibatch", "Taylor"]
