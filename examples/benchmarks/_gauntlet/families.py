"""The tables of the gauntlet: each family is a function of a random generator that makes a `Case`.

A family is one way in which real tables are difficult. What it leaves open, such as the estimator,
the numbers of rows and columns and some of the settings, is drawn at random.
"""

from dataclasses import dataclass, field

import numpy as np
from scipy import sparse
from scipy.special import expit

from skbayes_sg.priors import (
    Gamma,
    HalfCauchy,
    HalfNormal,
    InverseGamma,
    Laplace,
    Normal,
    StudentT,
)

LOGISTIC, POISSON = "BayesianLogisticRegression", "BayesianPoissonRegressor"
NEGATIVE = "BayesianNegativeBinomialRegressor"
LINEAR, ROBUST = "BayesianLinearRegression", "BayesianRobustRegression"
PMF, LDA = "BayesianPMF", "BayesianLDA"
ROWS = (LOGISTIC, LINEAR, ROBUST, POISSON)
SETTINGS = 0.4  # chance of a setting that is not the default


@dataclass
class Case:
    """A table, an estimator and its settings."""

    estimator: str
    X: object
    y: object = None
    weight: object = None
    exposure: object = None
    options: dict = field(default_factory=dict)
    seconds: float = 120.0  # of processor time that the fit may take
    unusable: str = ""  # why the fit must be refused
    table: object = None  # what the fit gets for X, if it is not X

    def fit(self):
        """The fitted estimator."""
        import skbayes_sg
        from skbayes_sg import custom

        home = custom if self.estimator.startswith("Custom") else skbayes_sg
        model = getattr(home, self.estimator)(random_state=0, **self.options)
        rows = {"y": self.y, "sample_weight": self.weight, "exposure": self.exposure}
        rows = {name: value for name, value in rows.items() if value is not None}
        return model.fit(self.X if self.table is None else self.table, **rows)

    def __str__(self):
        options = ", ".join(f"{name}={value!r}" for name, value in self.options.items())
        stored = "CSR" if sparse.issparse(self.X) else getattr(self.X, "dtype", "data frame")
        size = f"{self.X.shape[0]} x {self.X.shape[1]} {stored}"
        return f"{self.estimator}({options}) on {size}{', weights' * (self.weight is not None)}"


# -- pieces ---------------------------------------------------------------------------------------


def whole(rng, low, high):
    """A whole number, uniform on the logarithmic scale."""
    return int(np.exp(rng.uniform(np.log(low), np.log(high + 1))))


def pick(rng, *choices):
    return choices[rng.integers(len(choices))]


def columns(rng, n, d):
    """Columns as tables have them: normal, skewed, counts, flags, correlated with each other."""
    kinds = {
        "normal": lambda: rng.normal(size=n),
        "skewed": lambda: rng.lognormal(size=n),
        "counts": lambda: rng.poisson(2.0, n),
        "flag": lambda: rng.random(n) < rng.uniform(0.1, 0.5),
        "uniform": lambda: rng.uniform(0.0, 10.0, n),
    }
    X = np.stack([kinds[pick(rng, *kinds)]() for _ in range(d)], axis=1).astype(float)
    if d > 1 and rng.random() < 0.5:
        X[:, 0] = 0.9 * standard(X)[:, 1] + 0.5 * rng.normal(size=n)
    return X


def standard(X):
    sd = X.std(axis=0)
    return (X - X.mean(axis=0)) / np.where(sd > 0.0, sd, 1.0)


def levels(rng, n, L, power=1.0):
    """Levels of a categorical column, some of them rare; each comes at least once."""
    p = 1.0 / np.arange(1, L + 1) ** power
    return rng.permutation(np.r_[np.arange(L), rng.choice(L, max(n - L, 0), p=p / p.sum())])


def one_hot(level):
    return np.eye(level.max() + 1)[level]


def predictor(rng, X, strength=None):
    """A linear predictor of unit size, or another."""
    Z = standard(X)
    eta = Z @ (rng.normal(size=Z.shape[1]) * (rng.random(Z.shape[1]) < 0.6))
    strength = rng.uniform(0.2, 2.0) if strength is None else strength
    return strength * (eta - eta.mean()) / max(eta.std(), 1e-9)


def labels(rng, eta, shift=0.0):
    """Labels of both kinds by a logistic law."""
    y = (rng.random(len(eta)) < expit(eta + shift)).astype(int)
    y[[np.argmin(eta), np.argmax(eta)]] = 0, 1
    return y


def counts(rng, eta, rate=None):
    rate = np.exp(rng.uniform(-2.0, 3.0)) if rate is None else rate
    y = rng.poisson(rate * np.exp(np.minimum(eta, 8.0))).astype(float)
    y[np.argmax(eta)] = max(1.0, y[np.argmax(eta)])
    return y


def response(rng, estimator, eta):
    if estimator == LOGISTIC:
        return labels(rng, eta, rng.uniform(-2.0, 1.0))
    if estimator == POISSON:
        return counts(rng, eta)
    noise = rng.standard_t(3, len(eta)) if estimator == ROBUST else rng.normal(size=len(eta))
    return rng.normal() * 3.0 + eta + rng.uniform(0.2, 2.0) * noise


def a_prior(rng, estimator, scale=None):
    s = float(np.round(np.exp(rng.uniform(-1.5, 1.5)), 2)) if scale is None else scale
    named = ["laplace", "student_t"] if scale is None else []
    return pick(rng, Normal(scale=s), Laplace(scale=s), StudentT(df=4, scale=s), *named)


def setting(rng, estimator, n):
    """A setting that users have: mostly none."""
    if rng.random() > SETTINGS:
        return {}
    found = [
        lambda: {"prior": a_prior(rng, estimator)},
        lambda: {"prior": a_prior(rng, estimator)},
        lambda: {"fit_intercept": False},
        lambda: {"n_chains": 2, "n_draws": 500},
        lambda: {"sampler": "hmc"} if n <= 2000 else {"gradient": "taylor"},
        lambda: {"sampler": "importance"},
        lambda: {"gradient": pick(rng, "control_variate", "saga", "svrg")},
        lambda: {"n_subposteriors": 2, "combine": pick(rng, "consensus", "weierstrass")},
        lambda: {"intercept_prior": Normal(scale=float(pick(rng, 1.0, 5.0)))},
        lambda: {"preconditioner": "diagonal"},
        lambda: {"n_draws": 2500, "keep": 500},
    ]
    if estimator in (LINEAR, ROBUST):
        prior = pick(rng, "half_cauchy", "half_normal", HalfNormal(scale=2.0), InverseGamma())
        found += [lambda: {"noise_prior": prior}]
    if estimator == LINEAR:
        found += [lambda: {"noise": float(pick(rng, 0.5, 2.0))}]
    return pick(rng, *found)()


def stored(rng, X):
    """The table in one of the forms that users have."""
    form = rng.random()
    return X.astype(np.float32) if form < 0.1 else as_sparse(rng, X) if form < 0.25 else X


def as_sparse(rng, X):
    """A sparse table: by rows or columns, of the old kind or the new, with stored zeros."""
    kinds = sparse.csr_matrix, sparse.csr_array, sparse.csc_matrix, sparse.csc_array
    found = pick(rng, *kinds)(X)
    if rng.random() < 0.2:
        found.data[rng.random(found.nnz) < 0.1] = 0.0
    return found.astype(np.float32) if rng.random() < 0.2 else found


def row_case(rng, X, estimators=ROWS, *, eta=None, y=None, strength=None, settings=None, **more):
    estimator = pick(rng, *estimators)
    if y is None:
        y = response(rng, estimator, predictor(rng, X, strength) if eta is None else eta)
    options = setting(rng, estimator, len(y)) if settings is None else settings
    return Case(estimator, X, y, options=options, **more)


# -- families -------------------------------------------------------------------------------------


def plain(rng):
    X = columns(rng, whole(rng, 50, 5000), whole(rng, 1, 15))
    made = row_case(rng, X)
    made.X = stored(rng, X)
    return made


def tiny(rng):
    n = whole(rng, 4, 50)
    return row_case(rng, columns(rng, n, whole(rng, 1, 5)))


def rare_levels(rng):
    n, L = whole(rng, 500, 10_000), whole(rng, 5, 40)
    X = np.column_stack([columns(rng, n, whole(rng, 1, 4)), one_hot(levels(rng, n, L, 1.5))])
    return row_case(rng, X)


def one_class_levels(rng):
    """Some levels have one label only, or no count at all."""
    n, L = whole(rng, 300, 5000), whole(rng, 4, 25)
    level = levels(rng, n, L)
    effect = rng.normal(size=L)
    effect[rng.random(L) < 0.3] = pick(rng, -8.0, 8.0)
    estimator, eta = pick(rng, LOGISTIC, LOGISTIC, POISSON), effect[level]
    y = labels(rng, eta, -1.0) if estimator == LOGISTIC else counts(rng, np.minimum(eta, 2.0))
    return row_case(rng, one_hot(level), [estimator], y=y)


def many_levels(rng):
    n, L = whole(rng, 2000, 20_000), whole(rng, 50, 300)
    level = levels(rng, n, L, rng.uniform(0.0, 1.2))
    X = one_hot(level)
    X = sparse.csr_array(X) if rng.random() < 0.5 else X
    eta = rng.normal(size=L)[level]
    return row_case(rng, X, (LOGISTIC, LINEAR, POISSON), eta=eta, settings={})


def near_separable(rng):
    n, d = whole(rng, 50, 2000), whole(rng, 1, 8)
    X = columns(rng, n, d)
    y = (predictor(rng, X, 1.0) > rng.normal()).astype(int)
    flipped = rng.choice(n, rng.integers(0, 4), replace=False)
    y[flipped] = 1 - y[flipped]
    y[:2] = 0, 1
    return row_case(rng, X, [LOGISTIC], y=y)


def separable_wide_prior(rng):
    X = columns(rng, whole(rng, 50, 500), whole(rng, 1, 4))
    y = labels(rng, predictor(rng, X, 1000.0))
    scale = float(pick(rng, 2.5, 10.0))
    prior = pick(rng, Normal(scale=scale), StudentT(df=4, scale=scale), Laplace(scale=scale))
    return row_case(rng, X, [LOGISTIC], y=y, settings={"prior": prior})


def collinear(rng):
    n, d = whole(rng, 100, 3000), whole(rng, 2, 6)
    X = columns(rng, n, d)
    mixed = standard(X) @ rng.normal(size=(d, whole(rng, 1, 3)))
    mixed += 10.0 ** -rng.uniform(1, 6) * rng.normal(size=mixed.shape)
    return row_case(rng, np.c_[X, mixed])


def duplicate_columns(rng):
    X = columns(rng, whole(rng, 50, 3000), whole(rng, 1, 5))
    again = X[:, rng.integers(0, X.shape[1], whole(rng, 1, 3))] * pick(rng, 1.0, -1.0, 2.0)
    return row_case(rng, np.c_[X, again])


def duplicate_rows(rng):
    """Few distinct rows, each of them many times."""
    n, d = whole(rng, 500, 50_000), whole(rng, 1, 4)
    X = rng.integers(0, pick(rng, 2, 3, 5), (n, d)).astype(float)
    combine = pick(rng, "consensus", "weierstrass", "parametric")
    settings = {"n_subposteriors": 4, "combine": combine} if rng.random() < 0.3 else None
    return row_case(rng, X, settings=settings)


def offsets(rng):
    X = columns(rng, whole(rng, 50, 5000), whole(rng, 1, 5))
    moved = X + 10.0 ** rng.uniform(1, 7, X.shape[1]) * pick(rng, 1.0, -1.0)
    wide = {"intercept_prior": Normal(scale=1e9)} if rng.random() < 0.3 else None
    return row_case(rng, moved, eta=predictor(rng, X), settings=wide)


def scales(rng):
    X = columns(rng, whole(rng, 50, 5000), whole(rng, 2, 6))
    return row_case(rng, X * 10.0 ** rng.uniform(-5, 5, X.shape[1]), eta=predictor(rng, X))


def heavy_priors(rng):
    """Student-t and Cauchy priors of all scales, often with correlated columns."""
    n, d = whole(rng, 50, 1000), whole(rng, 1, 6)
    X = columns(rng, n, d)
    if rng.random() < 0.5:
        X = X[:, :1] + 0.2 * rng.normal(size=(n, d))
    prior = StudentT(df=float(pick(rng, 1, 2, 4)), scale=float(10 ** rng.uniform(-2, 1)))
    return row_case(rng, X, settings={"prior": prior})


def tight_priors(rng):
    X = columns(rng, whole(rng, 50, 2000), whole(rng, 1, 6))
    prior = a_prior(rng, None, scale=float(10.0 ** rng.uniform(-3.0, -0.5)))
    prior.loc = float(pick(rng, 0.0, 0.0, 1.0))
    return row_case(rng, X, settings={"prior": prior})


def weights(rng):
    X = columns(rng, whole(rng, 50, 3000), whole(rng, 1, 6))
    n = len(X)
    made = row_case(rng, X)
    w = pick(rng, rng.lognormal(0.0, 1.5, n), rng.integers(0, 4, n).astype(float), rng.random(n))
    w[np.isin(made.y, [0, 1])] += 0.01
    made.weight = w * pick(rng, 1.0, 1.0, 10.0, 0.1)
    return made


def few_events(rng):
    n, d = whole(rng, 300, 50_000), whole(rng, 1, 5)
    X, events = columns(rng, n, d), whole(rng, 1, 15)
    chance = np.exp(predictor(rng, X, 1.0))
    y = np.zeros(n)
    y[rng.choice(n, events, replace=False, p=chance / chance.sum())] = 1.0
    return row_case(rng, X, (LOGISTIC, POISSON, NEGATIVE), y=y)


def overdispersion(rng):
    X = columns(rng, whole(rng, 50, 5000), whole(rng, 1, 6))
    n = len(X)
    rate = np.exp(rng.uniform(-1.0, 5.0) + np.minimum(predictor(rng, X), 6.0))
    y = rng.poisson(rate * rng.gamma(0.5, 2.0, n)).astype(float)
    y[rng.random(n) < rng.choice([0.0, 0.5])] = 0.0
    y[0] = pick(rng, 1.0, 50.0, 1e4)
    return row_case(rng, X, [POISSON, NEGATIVE], y=y)


def outliers(rng):
    """Scattered and clustered outliers, of few and of many rows."""
    n, d = whole(rng, 20, 500), whole(rng, 1, 4)
    X = columns(rng, n, d)
    y = predictor(rng, X, 2.0) + rng.uniform(0.02, 1.0) * rng.normal(size=n)
    wrong = rng.random(n) < rng.uniform(0.01, 0.45)
    size = 10.0 ** rng.uniform(0.5, 2.0)
    if rng.random() < 0.5:
        y[wrong] = size + 0.5 * rng.normal(size=wrong.sum())
    else:
        y[wrong] += size * rng.standard_cauchy(wrong.sum())
    return row_case(rng, X, (ROBUST, ROBUST, LINEAR), y=y)


def more_columns_than_rows(rng):
    n = whole(rng, 15, 100)
    return row_case(rng, columns(rng, n, n + whole(rng, 1, 100)))


def wide_priors(rng):
    """Fewer rows than columns, and priors that leave predictors free between walls of rows."""
    n, scale = whole(rng, 10, 60), float(np.round(np.exp(rng.uniform(-0.7, 3.9)), 2))
    X = columns(rng, n, n + whole(rng, 1, 2 * n))
    X = standard(X) if rng.random() < 0.5 else X
    prior = pick(rng, Normal(scale=scale), Normal(scale=scale), Laplace(scale=scale))
    settings = {"prior": prior} | ({} if rng.random() < 0.7 else {"fit_intercept": False})
    if rng.random() < 0.2:
        eta = np.stack([predictor(rng, X) for _ in range(3)], axis=1)
        y = (eta + rng.gumbel(size=eta.shape)).argmax(axis=1)
        y[:2] = 0, 1
        return row_case(rng, X, [LOGISTIC], y=y, settings=settings)
    estimator = pick(rng, LOGISTIC, POISSON, POISSON, NEGATIVE, ROBUST)
    eta = predictor(rng, X)
    y = counts(rng, eta) if estimator == NEGATIVE else response(rng, estimator, eta)
    return row_case(rng, X, [estimator], y=y, settings=settings)


def many_classes(rng):
    n, d, K = whole(rng, 100, 2000), whole(rng, 1, 6), whole(rng, 3, 12)
    K = whole(rng, 13, 60) if rng.random() < 0.2 else K
    X = columns(rng, n, d)
    eta = np.stack([predictor(rng, X) for _ in range(K)], axis=1) + rng.normal(size=K)
    y = (eta + rng.gumbel(size=eta.shape)).argmax(axis=1)
    y[:2] = 0, 1
    return row_case(rng, X, [LOGISTIC], y=y)


def sparse_text(rng):
    """Few words a document, weighted by tf-idf or not."""
    n, p = whole(rng, 200, 2000), whole(rng, 30, 250)
    rate = 10.0 / np.arange(1, p + 1)
    X = rng.poisson(np.minimum(rate * rng.gamma(1.0, 1.0, (n, 1)), 20.0)).astype(float)
    X[0, X.sum(axis=0) == 0] = 1.0
    if rng.random() < 0.6:
        X *= np.log(n / (X > 0).sum(axis=0)) + 1.0
        X /= np.maximum(np.sqrt((X**2).sum(axis=1, keepdims=True)), 1e-9)
    made = row_case(rng, X, (LOGISTIC, LOGISTIC, POISSON, LINEAR))
    made.X = as_sparse(rng, X)
    return made


def large(rng):
    n, d = whole(rng, 50_000, 500_000), whole(rng, 2, 10)
    n = 1_000_000 if rng.random() < 0.1 else n
    settings = {} if rng.random() < 0.7 else {"gradient": pick(rng, "taylor", "svrg")}
    estimators = (LOGISTIC, LINEAR, POISSON)
    return row_case(rng, columns(rng, n, d), estimators, settings=settings, seconds=240.0)


def constant_columns(rng):
    """Columns that are constant, zero, or different in one row; constant responses."""
    X = columns(rng, whole(rng, 50, 2000), whole(rng, 1, 4))
    n = len(X)
    flat = pick(rng, np.zeros(n), np.full(n, pick(rng, 1.0, 7.3)), np.eye(n)[0])
    y = np.full(n, pick(rng, 0.0, 1.0, -3.3)) if rng.random() < 0.2 else None
    return row_case(rng, np.c_[X, flat], ROWS if y is None else (LINEAR, ROBUST), y=y)


def leverage(rng):
    """Columns with a few enormous values."""
    n, d = whole(rng, 50, 3000), whole(rng, 1, 4)
    X = pick(rng, rng.standard_cauchy((n, d)), rng.lognormal(0.0, 3.0, (n, d)))
    return row_case(rng, X, eta=predictor(rng, np.sign(X) * np.log1p(np.abs(X))))


def integers(rng):
    n, d = whole(rng, 50, 3000), whole(rng, 1, 6)
    X = rng.integers(0, [pick(rng, 2, 5, 100, 10_000) for _ in range(d)], (n, d))
    made = row_case(rng, X.astype(float))
    made.X = X
    made.y = np.round(made.y).astype(int) if made.estimator != LOGISTIC else made.y
    return made


def hardly_any_noise(rng):
    X = columns(rng, whole(rng, 50, 1000), whole(rng, 1, 6))
    y = predictor(rng, X) + 10.0 ** rng.uniform(-8, -2) * rng.normal(size=len(X))
    return row_case(rng, X, (LINEAR, ROBUST), y=y)


def units_of_y(rng):
    X = columns(rng, whole(rng, 50, 3000), whole(rng, 1, 5))
    dependent = rng.random() < 0.5  # columns whose sum is the intercept
    if dependent:
        X = np.c_[X, one_hot(levels(rng, len(X), whole(rng, 2, 6)))]
    y = response(rng, ROBUST, predictor(rng, X)) * 10.0 ** rng.uniform(-10, 10)
    y = y + y.std() * pick(rng, 0.0, 100.0, 1e5)
    # The references do not cross from zero to a coefficient of 1e9 under Student's t priors.
    settings = {} if dependent or rng.random() < 0.6 else None
    return row_case(rng, X, (LINEAR, ROBUST), y=y, settings=settings)


def powers(rng):
    """Powers of a year, or of a number around zero, and products of columns."""
    years = rng.integers(1950, 2021, whole(rng, 50, 1000)).astype(float)
    x = pick(rng, years, rng.normal(size=200))
    X = np.stack([x**k for k in range(1, whole(rng, 2, 3) + 1)], axis=1)
    return row_case(rng, X, eta=predictor(rng, np.c_[x, np.sin(x / 10.0)]))


def imbalanced(rng):
    n, d = whole(rng, 1000, 20_000), whole(rng, 1, 8)
    X = columns(rng, n, d)
    y = labels(rng, predictor(rng, X), rng.uniform(-7.0, -3.0))
    settings = {"class_weight": "balanced"} if rng.random() < 0.5 else None
    return row_case(rng, X, [LOGISTIC], y=y, settings=settings)


def flat_priors(rng):
    X = columns(rng, whole(rng, 20, 2000), whole(rng, 1, 6))
    settings = {"prior": "flat", "intercept_prior": "flat"}
    return row_case(rng, X, strength=rng.uniform(0.0, 1.0), settings=settings)


def exposures(rng):
    """Counts with exposures."""
    X = columns(rng, whole(rng, 50, 3000), whole(rng, 1, 5))
    exposure = rng.lognormal(0.0, 1.5, len(X))
    y = rng.poisson(exposure * np.exp(np.minimum(predictor(rng, X, 0.5), 5.0))).astype(float)
    y[0] = max(y[0], 1.0)
    made = row_case(rng, X, [POISSON, NEGATIVE], y=y)
    made.exposure = exposure
    return made


def bimodal(rng):
    """A column twice, nearly, under a Cauchy prior that wants one of them to be zero."""
    n, d = whole(rng, 100, 500), whole(rng, 2, 3)
    z = rng.normal(size=n)
    X = z[:, None] + rng.uniform(0.05, 0.4) * rng.normal(size=(n, d))
    settings = {"prior": StudentT(df=1, scale=float(10 ** rng.uniform(-2.5, -0.5)))}
    settings |= {"fit_intercept": bool(rng.random() < 0.5)}
    return row_case(rng, X, eta=rng.uniform(0.5, 2.0) * z, settings=settings)


def noise_priors(rng):
    X = columns(rng, whole(rng, 10, 500), whole(rng, 1, 5))
    scale = float(10 ** rng.uniform(-2, 2))
    inverse = InverseGamma(0.5, scale), InverseGamma(3.0, scale)
    prior = pick(rng, HalfCauchy(scale), HalfNormal(scale), *inverse)
    made = row_case(rng, X, (LINEAR, ROBUST), settings={"noise_prior": prior})
    if made.estimator == ROBUST:
        made.options["df_prior"] = pick(rng, None, Gamma(2.0, 1.0), HalfNormal(scale=5.0))
    return made


def clusters(rng):
    """Rows that contradict each other: two or three lines through a cloud of responses."""
    n, d = whole(rng, 20, 300), whole(rng, 1, 3)
    X, group = columns(rng, n, d), rng.choice(3, n, p=[0.6, 0.35, 0.05])
    lines = 10.0 ** rng.uniform(0.0, 2.0) * rng.normal(size=(d + 1, 3))
    y = np.take_along_axis(np.c_[standard(X), np.ones(n)] @ lines, group[:, None], axis=1)[:, 0]
    return row_case(rng, X, [ROBUST], y=y + rng.uniform(0.02, 1.0) * rng.normal(size=n))


def one_row_a_level(rng):
    """As many levels as rows, or nearly so; with a column of numbers beside them."""
    n = whole(rng, 20, 150)
    level = rng.permutation(np.r_[np.arange(n), rng.integers(0, n, whole(rng, 1, n))])
    X = np.column_stack([one_hot(level), rng.normal(size=len(level))])
    return row_case(rng, X)


def ordinal(rng):
    """Answers on a scale of one to five in all columns, and in the response of a regression."""
    n, d = whole(rng, 50, 2000), whole(rng, 2, 12)
    common = rng.normal(size=(n, 1))
    X = np.clip(np.round(3.0 + common + rng.normal(size=(n, d))), 1.0, 5.0)
    made = row_case(rng, X)
    if made.estimator in (LINEAR, ROBUST):
        made.y = np.clip(np.round(3.0 + made.y), 1.0, 5.0)
    return made


def extremes(rng):
    """Numbers at the ends of what a float holds."""
    X = columns(rng, whole(rng, 20, 500), whole(rng, 1, 4))
    made = row_case(rng, X, settings={})
    power = float(pick(rng, 10, 50, 100, 150, 200, 300)) * pick(rng, -1.0, 1.0)
    what = pick(rng, "weights", "y", "X", "one column", "one row", "offset of y")
    scale = 10.0**power
    if what == "weights":
        made.weight = rng.random(len(X)) * scale
    elif what == "y" and made.estimator != LOGISTIC:
        made.y = made.y * scale
    elif what == "offset of y" and made.estimator in (LINEAR, ROBUST):
        made.y = made.y + 10.0 ** rng.uniform(5, 15)
    elif what == "one row":
        X[0] *= scale
    else:
        X[:, : X.shape[1] if what == "X" else 1] *= scale
    return made


def unusable(rng):
    """Tables that a fit must refuse, and say why."""
    made = plain(rng)
    X, y = np.asarray(make_dense(made.X), float), made.y.astype(float)
    kinds = "nan in X", "infinity in X", "text in X", "mixed dates", "nan in y", "one class"
    what = pick(rng, *kinds, "dates in y", "negative weights", "lengths", "negative counts")
    made.X, made.y, made.unusable, made.options = X, y, what, {}
    if what.endswith("in X"):
        X[rng.integers(len(X)), 0] = np.inf if what == "infinity in X" else np.nan
        made.X = X.astype(str) + "a" if what == "text in X" else X
    elif what == "nan in y":
        y[0] = np.nan
    elif what == "one class":
        made.estimator, made.y = LOGISTIC, np.ones(len(y))
    elif what in ("dates in y", "mixed dates"):
        days = np.datetime64("2020-01-01") + rng.integers(0, 1000, len(y))
        made.estimator = LINEAR
        if what == "dates in y":
            made.y = days
        else:
            import pandas as pd

            made.X = pd.DataFrame({"a": X[:, 0], "day": days})
    elif what == "negative weights":
        made.weight = np.r_[-1.0, np.ones(len(y) - 1)]
    elif what == "lengths":
        made.y = y[:-1]
    else:
        made.estimator, made.y = POISSON, np.r_[-1.0, np.abs(y[1:])]
    return made


def make_dense(X):
    return X.toarray() if sparse.issparse(X) else X


def wide(rng):
    """More columns than any chain likes, and several classes of them."""
    n, p = whole(rng, 200, 2000), whole(rng, 400, 3000)
    X = (rng.random((n, p)) < 20.0 / p) * rng.lognormal(size=(n, p))
    estimator = pick(rng, LOGISTIC, LOGISTIC, LINEAR, POISSON)
    beta = rng.normal(size=(p, pick(rng, 1, 3, 10, 30))) * (rng.random((p, 1)) < 0.05)
    eta = X @ beta
    y = response(rng, estimator, standard(eta[:, :1])[:, 0])
    if estimator == LOGISTIC and eta.shape[1] > 1:
        y = (eta + rng.gumbel(size=eta.shape)).argmax(axis=1)
    return Case(estimator, as_sparse(rng, X), y, seconds=60.0)


def ratings(rng):
    n_users, n_items, rank = whole(rng, 10, 200), whole(rng, 5, 100), whole(rng, 1, 4)
    pairs = np.argwhere(rng.random((n_users, n_items)) < rng.uniform(0.1, 0.5))
    pairs = np.array([[0, 0], [1, 1], [0, 1]]) if len(pairs) < 3 else pairs
    U, V = rng.normal(size=(n_users, rank)), rng.normal(size=(n_items, rank))
    y = 3.0 + (U[pairs[:, 0]] * V[pairs[:, 1]]).sum(axis=1) + 0.5 * rng.normal(size=len(pairs))
    if rng.random() < 0.5:
        y = np.clip(np.round(y), 1, 5)
    options = {"rank": pick(rng, 2, 8), "n_chains": pick(rng, 1, 2)}
    return Case(PMF, pairs, y, options=options)


def topics(rng):
    D, V, K = whole(rng, 10, 300), whole(rng, 10, 300), whole(rng, 2, 8)
    phi, theta = rng.dirichlet(np.full(V, 0.1), K), rng.dirichlet(np.full(K, 0.2), D)
    sizes = rng.poisson(rng.uniform(5, 100), D)
    X = np.stack([rng.multinomial(n, p / p.sum()) for n, p in zip(sizes, theta @ phi, strict=True)])
    X = sparse.csr_array(X) if rng.random() < 0.5 else X
    return Case(LDA, X, options={"n_components": pick(rng, K, 10)})


# What tables have beside ordinary columns: functions of the generator and of the columns so far.
AWKWARD = {
    "codes": lambda rng, X: rng.integers(0, pick(rng, 3, 40, 99_999), (len(X), 1)),
    "days": lambda rng, X: 18_000.0 + rng.integers(0, pick(rng, 7, 900), (len(X), 1)),
    "levels": lambda rng, X: one_hot(levels(rng, len(X), whole(rng, 2, min(len(X) // 3, 40)), 1.5)),
    "copy": lambda rng, X: X[:, :1] * pick(rng, 1.0, -2.0),
    "nearly a copy": lambda rng, X: standard(X[:, :1]) + 0.01 * rng.normal(size=(len(X), 1)),
    "constant": lambda rng, X: np.full((len(X), 1), pick(rng, 0.0, 1.0, 7.3)),
    "units": lambda rng, X: rng.normal(size=(len(X), 1)) * 10.0 ** rng.uniform(-4, 5),
    "money": lambda rng, X: rng.lognormal(8.0, 2.0, (len(X), 1)),
    "one row": lambda rng, X: np.eye(len(X))[:, :1],
    "product": lambda rng, X: X[:, :1] * X[:, -1:],
    "square": lambda rng, X: X[:, -1:] ** 2,
}


def several(rng):
    """Several difficulties at once, of columns, rows, response, weights and settings."""
    X = columns(rng, whole(rng, 15, 3000), whole(rng, 1, 4))
    for kind in rng.choice(list(AWKWARD), rng.integers(1, 5)):
        X = np.column_stack([X, AWKWARD[kind](rng, X)])
    if rng.random() < 0.3:
        X = X[rng.integers(0, len(X), whole(rng, len(X), 4 * len(X)))]
    n, made = len(X), row_case(rng, X, (LOGISTIC, LOGISTIC, LINEAR, ROBUST, ROBUST, POISSON))
    y = made.y
    if made.estimator == POISSON and rng.random() < 0.3:
        made.estimator = NEGATIVE
    if made.estimator in (LINEAR, ROBUST):
        wrong = rng.random(n) < pick(rng, 0.0, 0.0, 0.02, 0.2)
        y[wrong] += y.std() * 10.0 ** rng.uniform(0.0, 2.0) * rng.standard_cauchy(wrong.sum())
        made.y = np.round(y) if rng.random() < 0.3 else y
    elif rng.random() < 0.3:  # rare events
        y[rng.random(n) < 0.95] = 0
        y[rng.integers(n)] = 1
        y[0] = 0
    if rng.random() < 0.2:
        made.weight = pick(rng, rng.integers(1, 4, n), rng.lognormal(0.0, 1.0, n)).astype(float)
    made.X = stored(rng, X)
    return made


FAMILIES = {
    made.__name__: made
    for made in [
        plain, tiny, rare_levels, one_class_levels, many_levels, near_separable,
        separable_wide_prior, collinear, duplicate_columns, duplicate_rows, offsets, scales,
        heavy_priors, tight_priors, weights, few_events, overdispersion, outliers,
        more_columns_than_rows, many_classes, sparse_text, large, constant_columns, leverage,
        integers, hardly_any_noise, units_of_y, powers, imbalanced, flat_priors, exposures,
        bimodal, noise_priors, clusters, one_row_a_level, ordinal, extremes, unusable, wide,
        ratings, topics, wide_priors, several,
    ]
}  # fmt: skip
