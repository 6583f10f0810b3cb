"""Stochastic gradients that touch only the rows of the ratings in a batch.

The gradient of the log-likelihood is a sum over ratings, each of which has C rows of F. A step
takes B of N ratings and adds N/B times their gradients to their rows. The other rows do not change:
prior and noise are applied, exactly, when a row is next used (`lazy`). The work of a step does not
depend on the numbers of ratings, users or items.

With H_a, the mean precision of row a under its prior and its ratings, a step of time τ = h B / N
moves the row by ½ (τ / H_a) times its gradient. A pass of N / B steps takes the time h, the step
size, in units of the posterior width of the rows. The noise of the gradient is then h / 4 of the
noise of the diffusion, for every row and for every B. H_a is fixed at the end of the warm-up.

In rows with fewer ratings than entries, the ratings determine some directions far better than a
mean precision says. Their H_a is that of as many ratings as entries, and a step that would move a
prediction beyond its rating ends at the rating. Standard deviations of what such rows predict are
still up to a tenth too large at the default step, and fits warn of it.

The steps move b / c instead of the bias b, with c the root mean square of the entries of the
factors, so that one H_a suits all entries of a row.

A constant gradient G_a joins the prior of row a, whose mean it moves by Λ⁻¹ G_a. That is how the
gradient at the centre enters (control variate), and the sum of the gradients that the ratings had
when they were last used (SAGA): a step then adds N/B times differences to these. The sum changes
with every rating that is used; therefore SAGA brings its rows up to date before every change. A
rating that was not used yet, or one of whose rows has fewer ratings than twice its entries, is
remembered as zero, which is as unbiased as any value: a gradient that acts until the rating is used
again would overshoot there. So it would in the long steps of the warm-up, which remember nothing.
"""

import warnings
from dataclasses import dataclass, field

import numpy as np

from .._base.jit import entry, inlined
from .._base.validation import Parameters, is_real, is_whole
from ..exceptions import InvalidParameterError, StepSizeWarning
from ..kernels.layout import frozen
from .gibbs_updates import draw_column, draw_hyper
from .lazy import bring_rows, flow, kinetic_flow
from .noise import draw_noise
from .sampler import Sampler
from .start import warm_start

__all__ = ["SPARSE_GRADIENTS", "SparseGradient", "SparseSGHMC", "SparseSGLD"]
__all__ += ["likelihood_gradient", "sparse_pass"]

CHUNK = 1 << 18  # approximate number of ratings of one call of the kernel
ANNEAL = 4.0  # step size at the beginning of the warm-up, during which it falls to h
AUTO_STEP = 0.4  # step size h for "auto"
AUTO_BATCH = 64  # largest number of ratings of a batch for "auto"
SPARSE_GRADIENTS = ("minibatch", "control_variate", "saga")
MOST_NUMBERS = 1 << 28  # largest number of entries of the table of SAGA (2 GB)
# Fits warn if more than this share of the rows with ratings has fewer ratings than entries.
THIN_SHARE = 0.2
# Fits warn below this number of ratings for each entry of all rows if the noise is inferred: the
# noise is then too large.
FEW_RATINGS = 2.5


@inlined
def _load(codes, n, F, w, alpha, m, rows_out):
    """Copy the rows of rating n into rows_out[m]; return the precision ω of its noise."""
    omega = alpha
    for i in range(codes.shape[1]):
        a = codes[n, i]
        omega *= w[a]
        for k in range(F.shape[1]):
            rows_out[m, i, k] = F[a, k]
    return omega


@inlined
def _expect(rows, m, c, total):
    """Return f of the rating with rows[m]; the sum of its factors is written to `total`."""
    K, f = rows.shape[2] - 1, 0.0
    for k in range(K):
        total[k] = 0.0
    for i in range(rows.shape[1]):
        f += c * rows[m, i, K]
        for k in range(K):
            f += total[k] * rows[m, i, k]
            total[k] += rows[m, i, k]
    return f


@inlined
def _reach(codes, n, rows, m, H, c, total, weight):
    """Return weight Σ_i |z_i|² / H_i, by how much a step moves f of a rating.

    The unit is the residual of the rating.
    """
    reach = 0.0
    for i in range(rows.shape[1]):
        square = c * c
        for k in range(rows.shape[2] - 1):
            square += (total[k] - rows[m, i, k]) ** 2
        reach += weight * square / H[codes[n, i]]
    return reach


@inlined
def _push(rows, m, scale, c, total):
    """Replace each row of rows[m] by `scale` times its z: ``total - p``, and c for the bias."""
    K = rows.shape[2] - 1
    for i in range(rows.shape[1]):
        for k in range(K):
            rows[m, i, k] = scale * (total[k] - rows[m, i, k])
        rows[m, i, K] = scale * c


@inlined
def _bring_row(a, i, until, state, step, motion, H, prior, rng, yy, u):
    """Move row a, of column i, under prior and noise to the time `until`, if it is behind."""
    (F, velocity, last), (kinetic, gamma), (V, lam, means, own, _) = state, motion, prior
    behind = step * (until - last[a])
    if behind > 0.0:
        mean = means[a if own else i]
        if kinetic:
            kinetic_flow(behind, H[a], gamma, mean, V[i], lam[i], rng, yy, u, F[a], velocity[a])
        else:
            flow(behind, H[a], mean, V[i], lam[i], rng, yy, F[a])
        last[a] = until


@inlined
def _remember(table, push, omega, keep, change_out):
    """Compare the gradient `push` of a rating with the remembered one, and remember it (SAGA).

    push ← push - ω table; table ← former push / ω if `keep`, else 0; change_out ← ω times the
    change of table.
    """
    for i in range(push.shape[0]):
        for k in range(push.shape[1]):
            old, new = table[i, k], push[i, k] / omega if keep else 0.0
            push[i, k] -= omega * old
            change_out[i, k] = omega * (new - old)
            table[i, k] = new


@inlined
def _pull_mean(g, V, lam, work):
    """Replace g by Λ⁻¹ g, by which a change g of the constant gradient moves the mean of a row."""
    for j in range(g.shape[0]):
        work[j] = 0.0
        for k in range(g.shape[0]):
            work[j] += V[k, j] * g[k]
        work[j] /= lam[j]
    for k in range(g.shape[0]):
        g[k] = 0.0
        for j in range(g.shape[0]):
            g[k] += V[k, j] * work[j]


@entry
def add_table(codes, table, w, alpha, gradient_out):
    """Add ω times the remembered gradients of all ratings to their rows of gradient_out (SAGA)."""
    for n in range(codes.shape[0]):
        omega = alpha
        for i in range(codes.shape[1]):
            omega *= w[codes[n, i]]
        for i in range(codes.shape[1]):
            for k in range(table.shape[2]):
                gradient_out[codes[n, i], k] += omega * table[n, i, k]


@entry
def sparse_pass(ratings, starts, B, state, now, step, motion, noise, c, H, prior, brakes, rng):
    """Make a step for each of `starts`, with the B consecutive ratings that begin there.

    Parameters
    ----------
    ratings : tuple
        (codes, y, table, kept) of shapes (N, C), (N,), (N, C, D) and (N,), in random order; a batch
        is B consecutive ones. `table` has the gradients over ω of the ratings when they were last
        used (SAGA), which change where `kept` is True; or it has no rows.
    starts : ndarray of int64
    B : int
    state, now, step, motion, H : see `bring_rows`
        Biases in F are divided by `c`. Gradients change the velocities if rows have them.
    noise : tuple
        (w, alpha): weights of the rows, and the precision of the noise.
    c : float
        The divisor of biases: see the module.
    prior : tuple
        (V, lam, means, own, centre): eigenvectors and eigenvalues of the precisions of the
        columns, (C, D, D) and (C, D); their means, one for each row if `own` is True, which SAGA
        changes; and the point at which the gradients are subtracted (control variate), if `centre`
        has rows.
    brakes : tuple
        (patience, caution): rows are brought up to date if they are behind by the time `patience`
        or more. The step of a rating that would move its f by b times the residual is divided by
        max(1, `caution` + b): 1 gives implicit steps, 0 only shortens steps that overshoot.
    rng : numpy.random.Generator
    """
    (codes, y, table, kept), (F, velocity, last), (w, alpha) = ratings, state, noise
    kinetic, (patience, caution), (V, lam, means, _, centre) = motion[0], brakes, prior
    N, C, D = codes.shape[0], codes.shape[1], F.shape[1]
    inverse = (1.0 if kinetic else 0.5) * step * N / B
    push, moves, at_centre = np.empty((B, C, D)), np.empty((B, C, D)), np.empty((1, C, D))
    gains, omega, batch = np.empty((B, C)), np.empty(B), np.empty(B, np.int64)
    total, yy, u, remembers = np.empty(D), np.empty(D), np.empty(D), table.shape[0] > 0
    for s in range(starts.shape[0]):
        for m in range(B):
            n = starts[s] + m
            batch[m] = n if n < N else n - N
            for i in range(C):
                a = codes[batch[m], i]
                if step * (now - last[a]) >= patience or remembers:
                    _bring_row(a, i, now, state, step, motion, H, prior, rng, yy, u)
        for m in range(B):  # its own loop, so that the processor fetches many rows at once
            omega[m] = _load(codes, batch[m], F, w, alpha, m, push)
            for i in range(C):
                gains[m, i] = inverse / H[codes[batch[m], i]]
        for m in range(B):
            n = batch[m]
            scale = omega[m] * (y[n] - _expect(push, m, c, total))
            brake = caution + _reach(codes, n, push, m, H, c, total, inverse * omega[m])
            _push(push, m, scale, c, total)
            if centre.shape[0] > 0:
                _load(codes, n, centre, w, alpha, 0, at_centre)
                scale = omega[m] * (y[n] - _expect(at_centre, 0, c, total))
                _push(at_centre, 0, scale, c, total)
                push[m] -= at_centre[0]
            if remembers:
                _remember(table[n], push[m], omega[m], kept[n], moves[m])
                for i in range(C):
                    _pull_mean(moves[m, i], V[i], lam[i], yy)
            if brake > 1.0:
                push[m] /= brake
        rows_out = velocity if kinetic else F
        for m in range(B):
            for i in range(C):
                a, gain = codes[batch[m], i], gains[m, i]
                for k in range(D):
                    rows_out[a, k] += gain * push[m, i, k]
        now += 1
        if remembers:  # move rows to the end of the step by the gradients it began with
            for m in range(B):
                for i in range(C):
                    _bring_row(
                        codes[batch[m], i], i, now, state, step, motion, H, prior, rng, yy, u
                    )
            for m in range(B):
                for i in range(C):
                    for k in range(D):
                        means[codes[batch[m], i], k] += moves[m, i, k]


@entry
def likelihood_gradient(codes, y, F, w, alpha, c, gradient_out):
    """Add the gradient of the log-likelihood of all ratings with respect to F to gradient_out.

    Biases in F are divided by `c`.
    """
    C, D = codes.shape[1], F.shape[1]
    total, push = np.empty(D), np.empty((1, C, D))
    for n in range(codes.shape[0]):
        omega = _load(codes, n, F, w, alpha, 0, push)
        _push(push, 0, omega * (y[n] - _expect(push, 0, c, total)), c, total)
        for i in range(C):
            for k in range(D):
                gradient_out[codes[n, i], k] += push[0, i, k]


@dataclass
class SparseMemory:
    """The memory of a sparse sampler from pass to pass; its steps divide all biases by `c`."""

    codes: np.ndarray
    y: np.ndarray
    last: np.ndarray
    velocity: np.ndarray
    now: int = 0
    c: float = 1.0
    H: np.ndarray = field(default_factory=lambda: np.empty(0))
    centre: np.ndarray = field(default_factory=lambda: np.empty((0, 0)))
    table: np.ndarray = field(default_factory=lambda: np.empty((0, 0, 0)))  # gradients / ω (SAGA)
    kept: np.ndarray = field(default_factory=lambda: np.empty(0, bool))


def curvatures(model, chain, c):
    """Return H of each row, its mean precision under prior and ratings.

    It is that of rows whose biases are divided by c.
    """
    problem = model.problem
    scaled = np.append(np.ones(problem.rank), c)
    squares = np.append(np.full(problem.rank, (chain.F[:, :-1] ** 2).mean()), c * c)
    mean_square = squares.mean() * max(1, problem.n_columns - 1)
    H, counts = np.empty(problem.n_rows), problem.counts()
    counts = np.where(counts > 0, np.maximum(counts, problem.rank + 1), 0)
    for column, (_, precision) in enumerate(chain.hyper):
        rows = problem.rows(column)
        prior = (np.diag(precision) * scaled**2).mean()
        H[rows] = prior + chain.noise.alpha * chain.noise.w[rows] * counts[rows] * mean_square
    return H


def bring_column(model, chain, column, step, motion, prior):
    """Bring all rows of a column up to date; `sparse_pass` explains the arguments."""
    (V, lam, means, own, _), memory, rows = prior, chain.memory, model.problem.rows(column)
    state = chain.F, memory.velocity, memory.last
    of_column = V[column], lam[column], means if own else means[column][None], own
    limits = rows.start, rows.stop
    bring_rows(*limits, state, memory.now, step, motion, memory.H, of_column, chain.rng)


STEP_SIZES = "'auto' or a number in (0, 4)"
BATCH_SIZES = "'auto', an int in the range [1, inf) or a float in the range (0.0, 1.0]"


def is_step_size(value):
    """Whether a value is one of `STEP_SIZES`."""
    return (isinstance(value, str) and value == "auto") or (is_real(value) and 0.0 < value < 4.0)


def is_batch_size(value):
    """Whether a value is one of `BATCH_SIZES`."""
    if isinstance(value, str):
        return value == "auto"
    return value >= 1 if is_whole(value) else is_real(value) and 0.0 < value <= 1.0


class SparseGradient(Sampler):
    """Base of the samplers with sparse stochastic gradients: see `skbayes_sg.factorisation.sparse`.

    After the steps of a pass all rows are brought up to date; then (μ, Λ) of the columns and the
    noise are drawn exactly given the rows.
    """

    warmup = 20
    kinetic = False
    gamma = 1.0
    gradient = "minibatch"

    def time_of_a_pass(self):
        """The step size h, the time of a pass."""
        value = self.step_size
        if not is_step_size(value):
            Parameters(self).fail("step_size", STEP_SIZES)
        return AUTO_STEP if isinstance(value, str) else float(value)

    def ratings_a_step(self, problem):
        """Number of ratings of a batch."""
        value, n_ratings = self.batch_size, problem.n_ratings
        if not is_batch_size(value):
            Parameters(self).fail("batch_size", BATCH_SIZES)
        if isinstance(value, str):
            return int(np.clip(n_ratings // 20, 1, AUTO_BATCH))
        return min(int(value), n_ratings) if is_whole(value) else max(1, round(value * n_ratings))

    def check(self, problem, noise="known"):
        """Check the parameters, and warn where ratings are so few that the sampler is inexact.

        It warns if many rows have fewer ratings than entries, or if the noise is inferred from few
        ratings for each entry of all rows.
        """
        self._check_parameters(problem)
        rated, size = problem.counts()[problem.counts() > 0], problem.rank + 1
        share = problem.n_ratings / (len(rated) * size)
        if (rated < size).mean() > THIN_SHARE:
            few = f"{(rated < size).sum()} of {len(rated)} categories"
            found = f"{few} have fewer ratings than the {size} numbers of their row"
            wrong = "the standard deviations of their predictions are up to a tenth too large"
        elif noise != "known" and share < FEW_RATINGS:
            found = f"There are only {share:.1f} ratings for each number that they determine"
            wrong = "the noise and the spread of predictions are up to a quarter too large"
        else:
            return
        warnings.warn(
            f"{found}: {wrong} with {self!r}. Use sampler='gibbs', which is exact, a smaller rank "
            "or a smaller step_size.",
            StepSizeWarning,
            stacklevel=4,
        )

    def begin(self, model, chain, n_jobs=None):
        """Move the chain to near the posterior, and put the ratings into random order."""
        self._check_parameters(model.problem)
        warm_start(model, chain, n_jobs)
        self.new_memory(model, chain)

    def _check_parameters(self, problem):
        """Raise `InvalidParameterError` for parameters that are not accepted."""
        self.time_of_a_pass(), self.ratings_a_step(problem)
        if not (is_real(self.patience) and 0.0 <= self.patience < np.inf):
            Parameters(self).fail("patience", "a finite number of at least 0")
        self._check_gradient(problem)

    def _check_gradient(self, problem):
        """Raise `InvalidParameterError` for an unknown gradient, or a table that is too large."""
        if self.gradient not in SPARSE_GRADIENTS:
            Parameters(self).fail("gradient", f"one of {list(SPARSE_GRADIENTS)}")
        numbers = problem.n_ratings * problem.n_columns * problem.width
        if self.gradient == "saga" and numbers > MOST_NUMBERS:
            raise InvalidParameterError(
                f"gradient='saga' remembers {numbers / 1e9:.1f}e9 numbers, the gradients of all "
                f"ratings, which take {8e-9 * numbers:.0f} GB. Use 'minibatch', or a lower rank."
            )

    def new_memory(self, model, chain):
        """Give the chain its memory: ratings in random order, and the time zero for all rows."""
        problem = model.problem
        order = chain.rng.permutation(problem.n_ratings)
        ratings = frozen(problem.codes[order], np.int32), frozen(problem.y[order])
        last = np.zeros(problem.n_rows, np.int64)
        chain.memory = SparseMemory(*ratings, last, np.zeros_like(chain.F))

    def _prepare(self, model, chain, warming):
        """Set c, H, the velocities and the centre for the steps of a pass.

        After the warm-up they are not set again.
        """
        memory = chain.memory
        if warming or not len(memory.H):
            before, memory.c = memory.c, float(np.sqrt((chain.F[:, :-1] ** 2).mean()))
            memory.table[..., -1:] *= memory.c / before
            memory.H = curvatures(model, chain, memory.c)
            memory.velocity = chain.rng.standard_normal(chain.F.shape) / np.sqrt(memory.H[:, None])
            if self.gradient == "control_variate":
                memory.centre = self._find_centre(model, chain)

    def _find_centre(self, model, chain, sweeps=3):
        """Find rows near the mode given (μ, Λ) and the noise, by alternating least squares."""
        before = chain.F.copy()
        for _ in range(sweeps):
            for column in reversed(range(model.problem.n_columns)):
                chain.F[model.problem.rows(column)] = draw_column(model, chain, column)
        centre, chain.F[:] = chain.F.copy(), before
        return centre

    def _progress(self, model, chain):
        """Return the step size of this pass, and whether the pass belongs to the warm-up."""
        h, k = self.time_of_a_pass(), chain.passes
        if k >= chain.n_warmup or self.kinetic:  # kicks are never implicit, so h is constant
            return h, k < chain.n_warmup
        return h * max(1.0, ANNEAL / h) ** (1.0 - k / chain.n_warmup), True

    def sweep(self, model, chain, n_jobs=None):
        """Make a pass of steps; then draw (μ, Λ) and the noise."""
        h, warming = self._progress(model, chain)
        self._prepare(model, chain, warming)
        self._steps(model, chain, h, warming)
        for column in reversed(range(model.problem.n_columns)):
            draw_hyper(model, chain, column)
        draw_noise(model, chain, n_jobs)

    def _steps(self, model, chain, h, warming):
        """Make the steps of a pass, and bring all rows up to date."""
        problem, memory = model.problem, chain.memory
        n_steps = max(1, problem.n_ratings // self.ratings_a_step(problem))
        step, prior = self.take_steps(model, chain, h, warming, n_steps)
        chain.F[:, -1] /= memory.c
        for column in range(problem.n_columns):
            bring_column(model, chain, column, step, (self.kinetic, self.gamma), prior)
        chain.F[:, -1] *= memory.c

    def take_steps(self, model, chain, h, warming, n_steps):
        """Make steps with batches that begin at random places.

        Return the time of a step, and the priors in the coordinates of the steps (`_prior`).

        Parameters
        ----------
        model : skbayes_sg.factorisation.chains.RatingModel
        chain : skbayes_sg.factorisation.chains.FactorChain
            A chain with its memory.
        h : float
            Step size: the time of a pass.
        warming : bool
            Whether the steps are implicit.
        n_steps : int
        """
        if not len(chain.memory.H):
            self._prepare(model, chain, True)
        memory, N, B = chain.memory, model.problem.n_ratings, self.ratings_a_step(model.problem)
        step = (0.5 * self.gamma if self.kinetic else 1.0) * h * B / N
        prior = self._prior(model, chain, warming)
        chain.F[:, -1] /= memory.c
        starts = chain.rng.integers(0, N, n_steps)
        table = memory.table[:0] if warming else memory.table
        ratings = memory.codes, memory.y, table, memory.kept
        state = chain.F, memory.velocity, memory.last
        motion, noise = (self.kinetic, self.gamma), (chain.noise.w, float(chain.noise.alpha))
        brakes = float(self.patience), float(warming and not self.kinetic)
        law = step, motion, noise, memory.c, memory.H, prior, brakes
        size = max(1, CHUNK // B)
        for k in range(0, n_steps, size):
            some = starts[k : k + size]
            sparse_pass(ratings, some, B, state, memory.now, *law, chain.rng)
            memory.now += len(some)
        chain.F[:, -1] *= memory.c
        return step, prior

    def _prior(self, model, chain, warming):
        """Return the priors in the coordinates of the steps, the `prior` of `sparse_pass`.

        While the chain is `warming`, SAGA remembers no gradients, and its prior is that of
        "minibatch".
        """
        c, memory, problem = chain.memory.c, chain.memory, model.problem
        scaled = np.append(np.ones(problem.rank), c)
        pairs = [np.linalg.eigh(L * np.outer(scaled, scaled)) for _, L in chain.hyper]
        V, lam = np.stack([v for _, v in pairs]), np.stack([values for values, _ in pairs])
        means = np.stack([mean / scaled for mean, _ in chain.hyper])
        centre, noise = np.empty((0, problem.width)), (chain.noise.w, float(chain.noise.alpha))
        if self.gradient == "minibatch" or (self.gradient == "saga" and warming):
            return V, lam, means, False, centre
        G = np.zeros_like(chain.F)
        if self.gradient == "control_variate":
            centre = memory.centre / scaled
            likelihood_gradient(memory.codes, memory.y, centre, *noise, c, G)
        else:
            if not len(memory.table):
                memory.table = np.zeros((problem.n_ratings, problem.n_columns, problem.width))
                fewest = problem.counts()[memory.codes].min(axis=1)
                memory.kept = fewest >= 2 * problem.width
            add_table(memory.codes, memory.table, *noise, G)
        own = np.empty_like(G)  # a constant gradient G moves the mean by Λ⁻¹ G
        for column in range(problem.n_columns):
            rows = problem.rows(column)
            own[rows] = means[column] + ((G[rows] @ V[column]) / lam[column]) @ V[column].T
        return V, lam, own, True, centre


class SparseSGLD(SparseGradient):
    """Stochastic gradient Langevin dynamics with sparse steps and an exact, lazy prior.

    Compared with `Gibbs`, the standard deviations of predictions are too large by 2 to 3 % at the
    default step size where the noise is known
    (``tests/factorisation/test_sparse.py::test_stationary_laws``), and by 4 to 10 % where it is
    inferred, in proportion to the step size; fits measure it
    (``tests/factorisation/test_step_check.py``). Where the noise is inferred from less than 2.5
    ratings for each number that they determine, they are too large by 10 to 25 %, and fits warn of
    it.
    Categories without ratings have exactly their prior law
    (``tests/factorisation/test_sparse.py::test_a_row_left_alone_moves_by_its_prior_exactly``). For
    categories with fewer ratings than a row has entries, steps are shortened so that none moves a
    prediction beyond its rating: there the law is approximate, with standard deviations up to a
    tenth too large, and fits warn of it (``tests/factorisation/test_sparse.py``, the tests of rows
    with few ratings).

    Parameters
    ----------
    step_size : "auto" or float in (0, 4), default="auto"
        h, the time that a pass over the ratings takes: the h of
        :math:`\\theta' = \\theta - (h/2) P \\nabla U + \\sqrt h P^{1/2} \\xi` with P the inverse of
        the mean precision of each row. It falls from 4 to this during the warm-up. "auto" is 0.4.
    batch_size : "auto", int or float, default="auto"
        Number of ratings of a step, or their share in (0, 1]. "auto" is 64, at most a twentieth of
        all. The law hardly depends on it.
    patience : float, default=0.1
        The time, in the unit of `step_size`, that a row may be behind when one of its ratings is
        used. 0 brings every row up to date at every use, which takes several times longer.
    gradient : {"minibatch", "control_variate", "saga"}, default="minibatch"
        With "control_variate" (SGLD-CV), the gradient of each rating is compared with that at a
        centre near the mode, which alternating least squares find at the end of the warm-up; with
        "saga" (SAGA-LD), with the one that the rating had when it was last used, which takes a
        table of the size ratings x columns x (rank + 1).

    Raises
    ------
    InvalidParameterError
        By `fit`, for a parameter outside of its range, and for a table that takes too much memory.

    Warns
    -----
    StepSizeWarning
        By `fit`, where there are few ratings for each number that they determine.

    References
    ----------
    S. Ahn, A. Korattikara, N. Liu, S. Rajan and M. Welling (2015). Large-scale distributed Bayesian
    matrix factorization using stochastic gradient MCMC. KDD.

    Examples
    --------
    >>> import numpy as np
    >>> from skbayes_sg import BayesianPMF
    >>> from skbayes_sg.factorisation import SparseSGLD
    >>> user, item = np.divmod(np.arange(600), 20)
    >>> y = np.sin(user) * np.cos(item)
    >>> model = BayesianPMF(rank=2, sampler=SparseSGLD(step_size=0.2), random_state=0)
    >>> model.fit(np.column_stack([user, item]), y).score(np.column_stack([user, item]), y) > 0.9
    True
    """

    def __init__(self, step_size="auto", batch_size="auto", patience=0.1, gradient="minibatch"):
        self.step_size = step_size
        self.batch_size = batch_size
        self.patience = patience
        self.gradient = gradient


class SparseSGHMC(SparseGradient):
    """Stochastic gradient Hamiltonian Monte Carlo with sparse kicks and an exact, lazy prior.

    Between two uses of a row, prior, friction and noise move its position and velocity. The law
    after any time is normal, in two dimensions for each eigenvector. Gradients kick the velocity.

    Parameters
    ----------
    step_size : "auto" or float in (0, 4), default="auto"
        h. A pass takes the time friction times h/2, so that the noise of the gradients is h/4 of
        the noise that belongs to the friction, as for `SparseSGLD`. "auto" is 0.4.
    friction : float, default=1.0
        γ, in units of the frequency of the rows.
    batch_size, patience, gradient : see `SparseSGLD`

    Raises
    ------
    InvalidParameterError
        By `fit`, for a friction that is not positive and finite, and where `SparseSGLD` raises it.

    References
    ----------
    T. Chen, E. B. Fox and C. Guestrin (2014). Stochastic gradient Hamiltonian Monte Carlo. ICML.

    Examples
    --------
    >>> import numpy as np
    >>> from skbayes_sg import BayesianPMF
    >>> from skbayes_sg.factorisation import SparseSGHMC
    >>> user, item = np.divmod(np.arange(600), 20)
    >>> y = np.sin(user) * np.cos(item)
    >>> model = BayesianPMF(rank=2, sampler=SparseSGHMC(friction=2.0), random_state=0)
    >>> model.fit(np.column_stack([user, item]), y).score(np.column_stack([user, item]), y) > 0.9
    True
    """

    kinetic = True

    def __init__(
        self, step_size="auto", friction=1.0, batch_size="auto", patience=0.1, gradient="minibatch"
    ):
        self.step_size = step_size
        self.friction = friction
        self.batch_size = batch_size
        self.patience = patience
        self.gradient = gradient

    def _check_parameters(self, problem):
        Parameters(self).positive("friction", ())
        super()._check_parameters(problem)

    @property
    def gamma(self):
        """The friction."""
        return float(self.friction)
