"""Progress, early stop and estimators on the way, through scikit-learn's callbacks."""

import copy
import pickle

import numpy as np
import pytest
from problems import STOCHASTIC, binary, quick
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skbayes_sg import BayesianLinearRegression
from skbayes_sg._base.callbacks import TASKS
from skbayes_sg.exceptions import SamplerDivergedError

pytest.importorskip("sklearn.callback", reason="scikit-learn has callbacks from 1.9 on")
pytestmark = pytest.mark.filterwarnings(
    "ignore::skbayes_sg.exceptions.SamplerConvergenceWarning",
    "ignore::skbayes_sg.exceptions.StepSizeWarning",
)
PATHS = {"exact": {"sampler": "hmc"}, "stochastic": STOCHASTIC}
SHAPES = {"exact": (60, 3), "stochastic": (3000, 3)}


class Recorder:
    """Counts calls; stops after so many tasks; keeps what estimators on the way predict."""

    def __init__(self, stop_after=None, rows=None):
        self.stop_after, self.rows = stop_after, rows
        self.calls, self.tasks, self.predictions, self.draws = [], 0, [], []

    def setup(self, estimator, context):
        self.calls.append("setup")

    def teardown(self, estimator, context):
        self.calls.append("teardown")

    def on_fit_task_begin(self, estimator, context, *, X=None, y=None, metadata=None):
        self.calls.append("begin")

    def on_fit_task_end(
        self, estimator, context, *, X=None, y=None, metadata=None, fitted_estimator=None
    ):
        self.calls.append("end")
        if context.task_name != "draws":
            return None
        self.tasks += 1
        return self.stop_after is not None and self.tasks >= self.stop_after


class Watcher(Recorder):
    """A recorder that asks for a fitted estimator."""

    def on_fit_task_end(self, estimator, context, *, fitted_estimator=None, X=None, y=None):
        if fitted_estimator is not None and context.task_name == "draws":
            self.predictions.append(fitted_estimator.predict_proba(self.rows))
            self.draws.append(fitted_estimator.posterior_.n_draws)
        return super().on_fit_task_end(estimator, context)


@pytest.fixture(params=PATHS)
def case(request):
    X, y = binary(*SHAPES[request.param])
    return quick(**{**PATHS[request.param], "n_draws": 200}), X, y


@pytest.mark.slow_for("stochastic")
def test_number_of_tasks(case):
    model, X, y = case
    recorder = Recorder()
    model.set_callbacks(recorder).fit(X, y)
    assert 1 <= recorder.tasks <= TASKS
    assert recorder.calls.count("begin") == recorder.calls.count("end") <= TASKS + 1
    assert (recorder.calls[0], recorder.calls[-1]) == ("setup", "teardown")


@pytest.mark.slow_for("stochastic")
def test_callbacks_do_not_change_draws(case):
    model, X, y = case
    expected = copy.deepcopy(model).fit(X, y).posterior_.flat
    watched = model.set_callbacks(Watcher(rows=X[:5])).fit(X, y).posterior_.flat
    assert np.array_equal(watched, expected)


@pytest.mark.slow_for("stochastic")
def test_early_stop_keeps_the_draws_so_far(case):
    model, X, y = case
    model.set_params(n_draws=20_000, thin=5)
    model.set_callbacks(Recorder(stop_after=2)).fit(X, y)
    n = model.posterior_.n_draws
    assert 1 <= n < 20_000
    assert np.isfinite(model.posterior_.flat).all()
    assert model.n_steps_ == model.n_warmup_ + model.thin_ * n
    assert model.predict_proba(X).shape == (len(X), 2)
    assert np.allclose(model.coef_, model.posterior_.mean("coef"))
    whole = copy.deepcopy(model).set_callbacks().set_params(n_draws=n).fit(X, y)
    assert np.array_equal(whole.posterior_.flat, model.posterior_.flat)


@pytest.mark.slow_for("stochastic")
def test_estimators_on_the_way(case):
    model, X, y = case
    watcher = Watcher(rows=X[:7])
    model.set_params(n_draws=5000).set_callbacks(watcher).fit(X, y)
    assert watcher.draws == sorted(watcher.draws)
    assert watcher.draws[-1] == 5000
    assert np.array_equal(watcher.predictions[-1], model.predict_proba(X[:7]))
    if len(set(watcher.draws)) > 1:
        n = watcher.draws[0]
        own = model.posterior_["coef"][:, :n].reshape(-1, X.shape[1])
        b = model.posterior_["intercept"][:, :n].reshape(-1)
        by_hand = (1.0 / (1.0 + np.exp(-(own @ X[:7].T + b[:, None])))).mean(axis=0)
        assert np.allclose(watcher.predictions[0][:, 1], by_hand, atol=1e-12)


def test_callbacks_are_torn_down_after_errors():
    X, y = binary()
    recorder = Recorder()
    model = quick(sampler="sgld", step_size=100.0).set_callbacks(recorder)
    with pytest.raises(SamplerDivergedError):
        model.fit(X, y)
    assert recorder.calls[-1] == "teardown"
    model.set_params(sampler="hmc", step_size="auto").fit(X, y)
    assert model.predict(X).shape == (60,)


def test_an_error_in_a_callback_leaves_the_estimator_as_it_was(case):
    model, X, y = case

    class Broken(Recorder):
        def on_fit_task_end(self, estimator, context, **data):
            raise RuntimeError("broken callback")

    before = model.fit(X, y).predict_proba(X[:9]).tobytes()
    with pytest.raises(RuntimeError, match="broken callback"):
        model.set_callbacks(Broken()).fit(X, y)
    assert model.predict_proba(X[:9]).tobytes() == before


def test_an_interrupt_from_a_callback(case):
    model, X, y = case

    class Interrupting(Recorder):
        def on_fit_task_end(self, estimator, context, **data):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        model.set_callbacks(Interrupting()).fit(X, y)
    assert not hasattr(model, "posterior_")


@pytest.mark.slow
def test_through_a_grid_search_over_a_pipeline():
    from sklearn.callback import ProgressBar  # noqa: F401  (the protocol exists)

    X, y = binary(90, 3)
    pipe = make_pipeline(StandardScaler(), quick())
    recorder = Recorder()
    pipe[-1].set_callbacks(recorder)
    grid = {"bayesianlogisticregression__prior": ["normal", "laplace"]}
    search = GridSearchCV(pipe, grid, cv=2).fit(X, y)
    assert search.best_estimator_.predict(X).shape == (90,)
    pickle.loads(pickle.dumps(search.best_estimator_)).predict(X)
    assert search.best_estimator_[-1].posterior_.n_draws == 25


def test_an_auto_propagated_callback():
    class Propagated(Recorder):
        max_propagation_depth = None

    X, y = binary(90, 3)
    recorder = Propagated()
    pipe = make_pipeline(StandardScaler(), quick()).set_callbacks(recorder)
    pipe.fit(X, y)
    assert 1 <= recorder.tasks <= TASKS
    assert recorder.calls.count("begin") == recorder.calls.count("end")


@pytest.mark.slow
@pytest.mark.parametrize("options", [{"prior": "horseshoe"}, {"prior": "laplace"}])
def test_gibbs_samplers_can_be_followed_and_stopped(options):
    """The draws so far are kept, also where fewer than these are wanted."""
    rng = np.random.default_rng(0)
    rows = rng.standard_normal((12, 15))
    recorder = Recorder(stop_after=10)
    model = BayesianLinearRegression(n_draws=200, n_chains=2, thin=2, random_state=0, **options)
    fit = clone(model).set_callbacks(recorder).fit(rows, rows[:, 0])
    assert "gibbs" in fit.sampler_
    assert fit.posterior_.n_draws == 200 * 10 // TASKS
    whole = clone(model).fit(rows, rows[:, 0])
    np.testing.assert_array_equal(fit.posterior_.flat, whole.posterior_.flat[:, :40])
    few = clone(model).set_params(keep=100).set_callbacks(Recorder(stop_after=10))
    assert few.fit(rows, rows[:, 0]).posterior_.n_draws == 40
