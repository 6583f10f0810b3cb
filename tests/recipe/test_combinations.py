"""Pieces that do not go together, and values that pieces refuse: errors of `fit` that say why."""

import re

import numpy as np
import pytest
from problems import binary, quick

from skbayes_sg.dynamics import HMC, SGLD
from skbayes_sg.exceptions import InvalidParameterError
from skbayes_sg.gradients import SAGA, SVRG, ControlVariate, Full, Minibatch, Taylor
from skbayes_sg.recipe.request import Request
from skbayes_sg.subsampling import Adaptive, AllRows, Preferential, Uniform

N = 300

SENSELESS = [
    ({"sampler": HMC(), "gradient": Taylor()}, ("sampler=HMC()", "gradient=Taylor()")),
    ({"sampler": HMC(), "gradient": SAGA()}, ("sampler=HMC()", "gradient=SAGA()")),
    ({"sampler": HMC(), "subsampling": Uniform()}, ("sampler=HMC()", "subsampling=Uniform()")),
    ({"sampler": HMC(), "batch_size": 20}, ("sampler=HMC()", "batch_size=20")),
    ({"gradient": Full(), "subsampling": Uniform()}, ("gradient=Full()", "subsampling=Uniform()")),
    ({"gradient": Full(), "batch_size": 20}, ("gradient=Full()", "batch_size=20")),
    (
        {"gradient": Full(), "subsampling": Adaptive()},
        ("gradient=Full()", "subsampling=Adaptive()"),
    ),
    (
        {"gradient": SAGA(), "subsampling": Adaptive()},
        ("subsampling=Adaptive()", "gradient=SAGA()"),
    ),
    (
        {"gradient": SVRG(), "subsampling": Adaptive()},
        ("subsampling=Adaptive()", "gradient=SVRG()"),
    ),
    (
        {"gradient": Minibatch(), "subsampling": Adaptive()},
        ("subsampling=Adaptive()", "gradient=Minibatch()"),
    ),
]


@pytest.mark.parametrize(("asked", "names"), SENSELESS, ids=lambda x: " ".join(map(str, x)))
def test_senseless_combinations_name_both_arguments(asked, names):
    with pytest.raises(ValueError, match="does not go with") as error:
        Request(**asked).check(N)
    for name in names:
        assert name in str(error.value)


SENSIBLE = [
    {},
    {"sampler": HMC()},
    {"sampler": HMC(), "gradient": Full(), "subsampling": AllRows(), "batch_size": N},
    {"gradient": Full(), "batch_size": N},
    {"sampler": SGLD(), "gradient": SAGA(), "subsampling": Preferential(), "batch_size": 20},
    {"gradient": SVRG(anchor_size=21), "batch_size": 20},
    {"gradient": SVRG(anchor_size=N), "batch_size": 20},
    {"subsampling": Adaptive(), "batch_size": 20},
    *({"gradient": g, "subsampling": Adaptive()} for g in (Taylor(), ControlVariate())),
    {"gradient": Taylor(), "subsampling": Adaptive(min_size=20), "batch_size": 10},
]


@pytest.mark.parametrize("asked", SENSIBLE, ids=str)
def test_sensible_combinations_pass(asked):
    Request(**asked).check(N)


REFUSED = [
    ({"gradient": SVRG(anchor_size=20)}, "anchor_size of SVRG(anchor_size=20)", "batch_size=20"),
    ({"gradient": SVRG(anchor_size=5)}, "anchor_size of SVRG(anchor_size=5)", "batch_size=20"),
    ({"gradient": SVRG(anchor_size=301)}, "anchor_size of SVRG(anchor_size=301)", "300"),
    ({"gradient": SVRG(anchor_size=0)}, "anchor_size of SVRG(anchor_size=0)", "at least 1"),
    ({"gradient": SVRG(anchor_size=50.0)}, "anchor_size of SVRG(anchor_size=50.0)", "an int"),
    ({"gradient": SVRG(refresh=2.5)}, "refresh of SVRG(refresh=2.5)", "got 2.5"),
    ({"gradient": SVRG(refresh=0)}, "refresh of SVRG(refresh=0)", "at least 1"),
    ({"gradient": SVRG(refresh=True)}, "refresh of SVRG(refresh=True)", "got True"),
    ({"gradient": SVRG(refresh="often")}, "refresh of SVRG(refresh='often')", "got 'often'"),
    ({"gradient": SAGA(table="x")}, "table of SAGA(table='x')", "'full_pass' or 'online'"),
    ({"gradient": SAGA(table=None)}, "table of SAGA(table=None)", "'full_pass' or 'online'"),
    ({"subsampling": Adaptive(min_size=0)}, "min_size of Adaptive(min_size=0)", "at least 1"),
    ({"subsampling": Adaptive(max_size=2.5)}, "max_size of Adaptive(max_size=2.5)", "an int"),
    (
        {"subsampling": Adaptive(min_size=9, max_size=8)},
        "min_size of Adaptive(max_size=8, min_size=9)",
        "8",
    ),
    ({"subsampling": Adaptive(min_size=41)}, "min_size of Adaptive(min_size=41)", "40"),
    ({"subsampling": Adaptive(weights="x")}, "weights of Adaptive(weights='x')", "'hessian'"),
    ({"subsampling": Preferential(weights="x")}, "weights of Preferential(weights='x')", "got 'x'"),
    ({"subsampling": Preferential(uniform_share=-0.1)}, "uniform_share of Preferential", "[0, 1]"),
    ({"subsampling": Adaptive(uniform_share=7.0)}, "uniform_share of Adaptive", "got 7.0"),
    ({"gradient": Taylor(share=1.5)}, "share of Taylor(share=1.5)", "[0, 1]"),
]  # fmt: skip


@pytest.mark.parametrize(("asked", "who", "why"), REFUSED, ids=lambda x: str(x))
def test_values_that_pieces_refuse(asked, who, why):
    # And a fit that fails leaves the estimator as it was.
    X, y = binary(N, 3)
    model = quick(sampler="hmc").fit(X, y)
    before = dict(vars(model))
    model.set_params(sampler="auto", batch_size=20, step_size=0.1, **asked)
    with pytest.raises(InvalidParameterError, match=re.escape(who)) as error:
        model.fit(X, y)
    assert why in str(error.value)
    after = vars(model)
    assert after.keys() == before.keys()
    for name in (name for name in before if name.endswith("_")):
        assert after[name] is before[name]
    assert np.isfinite(model.predict_proba(X)).all()


@pytest.mark.parametrize(
    "asked", [{"gradient": SAGA(table="x")}, {"subsampling": Adaptive(min_size=0)}], ids=str
)
def test_values_are_refused_even_where_all_rows_are_used(asked):
    X, y = binary(60, 3)
    with pytest.raises(InvalidParameterError):
        quick(**asked).fit(X, y)
