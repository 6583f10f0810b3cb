"""Dask: partitions are sampled where they lie, on a real cluster of two worker processes."""

import os

import joblib
import numpy as np
import pytest
from problems import STOCHASTIC, binary, quick
from sklearn.base import clone

from skbayes_sg import BayesianLinearRegression
from skbayes_sg._base.tables import is_dask
from skbayes_sg.shards.dask import parts_of

distributed = pytest.importorskip("distributed", reason="needs dask[distributed]")
dask = pytest.importorskip("dask")
da = pytest.importorskip("dask.array")

pytestmark = [
    pytest.mark.filterwarnings("ignore::skbayes_sg.exceptions.SamplerConvergenceWarning"),
    pytest.mark.filterwarnings("ignore::skbayes_sg.exceptions.StepSizeWarning"),
    pytest.mark.filterwarnings("ignore::skbayes_sg.exceptions.SubposteriorWarning"),
]
X, y = binary(150)
w = np.random.default_rng(0).uniform(0.5, 2.0, 150)
CUTS = ((50, 60, 40), 3)
PARTS = [(X[a:b], y[a:b], w[a:b]) for a, b in ((0, 50), (50, 110), (110, 150))]
ROWS = [da.from_array(X, CUTS), da.from_array(y, CUTS[:1]), da.from_array(w, CUTS[:1])]


@pytest.fixture(scope="module")
def client():
    """Two processes, one of which a test kills: they are started again."""
    settings = {
        "distributed.scheduler.allowed-failures": 0,
        "distributed.comm.timeouts.connect": "60s",
        "distributed.worker.memory.terminate": False,
    }
    with (
        dask.config.set(settings),
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None,
            host="127.0.0.1",
        ) as cluster,
        distributed.Client(cluster) as client,
    ):  # fmt: skip
        yield client


@pytest.fixture(scope="module")
def wanted():
    """What the same shards give in this process."""
    return quick(**STOCHASTIC).fit_shards(PARTS).posterior_.flat


# -- on a cluster ----------------------------------------------------------------------------------


@pytest.mark.slow
def test_partitions_on_a_cluster_give_the_draws_of_shards_here(client, wanted):
    found = quick(**STOCHASTIC).fit(*ROWS)
    np.testing.assert_array_equal(found.posterior_.flat, wanted)
    held = client.persist(ROWS)
    found = quick(**STOCHASTIC).fit(*held)
    np.testing.assert_array_equal(found.posterior_.flat, wanted)
    assert len(found.subposteriors_) == 3


@pytest.mark.slow
def test_shards_of_a_fit_on_the_backend_of_joblib(client):
    model = quick(**STOCHASTIC, n_subposteriors=3)
    here = clone(model).fit(X, y, sample_weight=w)
    with joblib.parallel_config("dask"):
        there = clone(model).fit(X, y, sample_weight=w)
        chains = quick(**STOCHASTIC).fit(X, y)
    np.testing.assert_array_equal(there.posterior_.flat, here.posterior_.flat)
    np.testing.assert_array_equal(
        chains.posterior_.flat, quick(**STOCHASTIC).fit(X, y).posterior_.flat
    )


@pytest.mark.slow
def test_warnings_come_back_with_the_shard(client):
    with pytest.warns(match=r"shard \d of 3: "):
        quick(sampler="hmc", n_draws=5, n_warmup=0, combine="weierstrass").fit(*ROWS)


@pytest.mark.slow
def test_errors_on_a_cluster_name_the_shard(client):
    model = quick()
    bad = ROWS[0].map_blocks(lambda block: np.where(len(block) == 60, np.nan, block))
    with pytest.raises(ValueError, match="shard 1 of 3: Input X contains NaN"):
        model.fit(bad, *ROWS[1:])
    assert not [name for name in vars(model) if name.endswith("_")]


@pytest.mark.slow
def test_a_worker_that_dies_is_an_error_that_names_the_shard(client):
    def die(block):
        if len(block) == 40:
            os._exit(1)
        return block

    model = quick()
    with pytest.raises(RuntimeError, match=r"shard \d of 3: its worker died"):
        model.fit(ROWS[0].map_blocks(die, meta=np.empty((0, 3))), *ROWS[1:])
    assert not [name for name in vars(model) if name.endswith("_")]
    client.wait_for_workers(2)
    assert np.isfinite(quick().fit(*ROWS).coef_).all()  # the next fit works


# -- without one -----------------------------------------------------------------------------------


@pytest.mark.slow
def test_partitions_without_a_cluster(wanted):
    for n_jobs in (1, 2):
        found = quick(**STOCHASTIC, n_jobs=n_jobs).fit(*ROWS)
        np.testing.assert_array_equal(found.posterior_.flat, wanted)


def test_columns_in_chunks_and_rows_cut_otherwise(wanted):
    columns = da.from_array(X, (CUTS[0], 2))
    other = da.from_array(y, ((75, 75),))
    found = quick(**STOCHASTIC).fit(columns, other, w)
    np.testing.assert_array_equal(found.posterior_.flat, wanted)


def test_dataframes():
    dd = pytest.importorskip("dask.dataframe", reason="needs dask[dataframe]")
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(X, columns=["a", "b", "c"]).assign(y=y)
    parts = dd.from_pandas(frame, npartitions=3)
    found = quick().fit(parts[["a", "b", "c"]], parts["y"])
    assert found.feature_names_in_.tolist() == ["a", "b", "c"]
    assert len(found.subposteriors_) == 3
    there, here = parts[["a", "b", "c"]], frame[["a", "b", "c"]]
    np.testing.assert_array_equal(found.predict_proba(there), found.predict_proba(here))
    with pytest.raises(ValueError, match="must be in the same order"):
        found.predict(parts[["c", "b", "a"]])


def test_empty_partitions_are_left_out():
    """As after a filter."""
    rows = da.from_array(np.arange(150), CUTS[:1]) < 110
    found = quick().fit(*(own[rows] for own in ROWS))
    wanted = quick().fit_shards(PARTS[:2])
    np.testing.assert_array_equal(found.posterior_.flat, wanted.posterior_.flat)
    with pytest.raises(ValueError, match="X has no rows in any of its 3 partitions"):
        quick().fit(*(own[rows & ~rows] for own in ROWS))
    with pytest.raises(ValueError, match="shard 1 of 2: Found array with 0 sample"):
        quick().fit_shards([PARTS[0], (X[:0], y[:0])])


def test_regression():
    Y = X @ [1.0, -1.0, 0.5]
    model = BayesianLinearRegression(n_draws=50, random_state=0)
    found = clone(model).fit(ROWS[0], da.from_array(Y, CUTS[:1]))
    here = clone(model).fit_shards([(part[0], part[0] @ [1.0, -1.0, 0.5]) for part in PARTS])
    np.testing.assert_array_equal(found.coef_, here.coef_)


def test_what_is_of_dask():
    assert is_dask(X, ROWS[1])
    assert not is_dask(X, y, None)


@pytest.mark.parametrize(
    ("rows", "text"),
    [
        ((X, ROWS[1]), "X must be one too"),
        ((ROWS[0], y[:-1]), "y has 149 rows, and X has 150"),
        ((ROWS[0], da.from_array(y[:-1], 50)), "y has 3 partitions|inconsistent|149"),
        ((ROWS[0][ROWS[0][:, 0] > 0], y), "y must be a Dask collection with the same partitions"),
        ((ROWS[0], da.from_array(y, 150), ROWS[2][:100]), "sample_weight has 2 partitions"),
    ],
    ids=["X", "rows", "cuts", "unknown", "weights"],
)
def test_collections_that_do_not_go_together(rows, text):
    with pytest.raises(ValueError, match=text):
        quick().fit(*rows)


@pytest.mark.slow
def test_partitions_of_unknown_lengths():
    rows = ROWS[0][:, 0] > -10.0
    parts = parts_of(ROWS[0][rows], y=ROWS[1][rows])
    assert len(parts) == 3
    found = quick().fit(ROWS[0][rows], ROWS[1][rows])
    assert len(found.subposteriors_) == 3
