"""Held-out perplexity of topic models: the default beside scikit-learn, gensim and tomotopy.

    python examples/benchmarks/topics.py [--corpus kos] [--topics 20] [--gradients] [--quick]

Document completion, for all by the same function: a fifth of the documents is held out, one half of
the tokens of each is observed and the other half predicted (`completion_perplexity`, same α for
all). All are given the same α, β, and vocabulary, the words of the training documents. Of the
others those are run that are installed (pip install gensim tomotopy); several models of tomotopy
train in processes, since training holds Python's lock. Seconds are those of the fit on the clock,
and of all processors; scoring is not counted. ``--gradients`` adds the samplers with stochastic
gradients, at the level of the Gibbs sampler to which they are to come near. The table of the
documentation is that of ``--corpus ap kos --topics 20 50``.
"""

import os
import time
from concurrent.futures import ProcessPoolExecutor
from importlib.util import find_spec

import numpy as np
from _corpora import load
from _tables import Parser, save, show, some
from sklearn.decomposition import LatentDirichletAllocation

from skbayes_sg import BayesianLDA
from skbayes_sg.topics import completion_perplexity, split_documents

ALPHA, BETA = 0.1, 0.05


def split(name, n_documents):
    """Training documents, two halves of the held-out ones; words that occur in the training.

    Of all documents, or of some at random.
    """
    X, _ = load(name)
    (X,) = some(n_documents or X.shape[0], X)
    order = np.random.default_rng(0).permutation(X.shape[0])
    n_test = X.shape[0] // 5
    train, test = X[np.sort(order[n_test:])], X[np.sort(order[:n_test])]
    used = np.flatnonzero(train.sum(axis=0))
    return train[:, used], *split_documents(test[:, used], random_state=0)


# -- one function a method: (documents, K, seed) -> list of topic-word matrices -------------------


def unigram(X, K, seed):
    return [X.sum(axis=0)[None] + BETA]


def sklearn_batch(X, K, seed, n_iterations=20):
    model = LatentDirichletAllocation(
        K, doc_topic_prior=ALPHA, topic_word_prior=BETA, max_iter=n_iterations, random_state=seed
    )
    return [model.fit(X).components_]


def sklearn_online(X, K, seed, n_iterations=20):
    priors = {"doc_topic_prior": ALPHA, "topic_word_prior": BETA}
    online = {"learning_method": "online", "total_samples": X.shape[0]}
    model = LatentDirichletAllocation(
        K, max_iter=n_iterations, random_state=seed, **priors, **online
    )
    return [model.fit(X).components_]


def gensim(X, K, seed, passes=10):
    from gensim.matutils import Sparse2Corpus
    from gensim.models import LdaModel

    corpus = Sparse2Corpus(X.tocsr(), documents_columns=False)
    names = dict(enumerate(map(str, range(X.shape[1]))))
    priors = {"alpha": [ALPHA] * K, "eta": BETA}
    model = LdaModel(corpus, K, names, passes=passes, random_state=seed, eval_every=None, **priors)
    return [model.get_topics()]


def _tomotopy_states(X, K, seed, n_burn, n_states, thin):
    import tomotopy

    model = tomotopy.LDAModel(k=K, alpha=ALPHA, eta=BETA, seed=seed)
    model.optim_interval = 0
    for d in range(X.shape[0]):
        row = slice(X.indptr[d], X.indptr[d + 1])
        model.add_doc(np.repeat(X.indices[row], X.data[row].astype(int)).astype(str).tolist())
    states = []
    model.train(n_burn, workers=1)
    order = np.array([int(word) for word in model.used_vocabs])
    for _ in range(n_states):
        model.train(thin, workers=1)
        topics = np.empty((K, X.shape[1]))
        topics[:, order] = [model.get_topic_word_dist(k) for k in range(K)]
        states.append(topics)
    return states


def tomotopy(X, K, seed, n_models=1, n_burn=290, n_states=1, thin=10, n_processes=2):
    if n_models == 1:
        return _tomotopy_states(X, K, seed, n_burn, n_states, thin)
    with ProcessPoolExecutor(n_processes) as pool:
        runs = [
            pool.submit(_tomotopy_states, X, K, seed + 100 * m, n_burn, n_states, thin)
            for m in range(n_models)
        ]
        return [phi for run in runs for phi in run.result()]


def ours(X, K, seed, **options):
    model = BayesianLDA(
        K, doc_topic_prior=ALPHA, topic_word_prior=BETA, random_state=seed, **options
    ).fit(X)
    return list(model.predictive_components_.reshape(-1, K, X.shape[1]))


def methods(n_jobs, gradients):
    """(name, package, function, options)."""
    several = {"n_models": 4, "n_burn": 50, "n_states": 5, "n_processes": n_jobs}
    found = [
        ("unigram", None, unigram, {}),
        ("scikit-learn, batch, 20", None, sklearn_batch, {}),
        ("scikit-learn, online, 20", None, sklearn_online, {}),
        ("gensim, 10 passes", "gensim", gensim, {}),
        ("tomotopy, 100 sweeps", "tomotopy", tomotopy, {"n_burn": 90}),
        ("tomotopy, 300 sweeps", "tomotopy", tomotopy, {}),
        ("tomotopy, mean of 10 states", "tomotopy", tomotopy, {"n_burn": 300, "n_states": 10}),
        ("tomotopy, 4 models x 5 states", "tomotopy", tomotopy, several),
        ("BayesianLDA, one state", None, ours, {"n_chains": 1, "n_draws": 1, "n_warmup": 90}),
        ("BayesianLDA, one chain", None, ours, {"n_chains": 1}),
        ("BayesianLDA", None, ours, {"n_jobs": n_jobs}),
    ]
    if gradients:
        for form in ("saga", "control_variate", "minibatch"):
            options = {"sampler": "cir", "gradient": form, "n_jobs": n_jobs}
            found.append((f"BayesianLDA, cir, {form}", None, ours, options))
    return [row for row in found if row[1] is None or find_spec(row[1])]


def clocks():
    """Seconds on the clock, and of all processors: this process and those it has waited for."""
    return np.array([time.perf_counter(), sum(os.times()[:4])])


def main():
    parser = Parser(__doc__)
    parser.add_argument("--corpus", nargs="+", default=["kos"])
    parser.add_argument("--topics", nargs="+", type=int, default=[20], quick=[5])
    parser.add_argument("--documents", type=int, quick=200, help="at random (default: all)")
    parser.add_argument("--n-jobs", type=int, default=2)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--gradients", action="store_true")
    arguments = parser.parse_args()
    rows = []
    for name in arguments.corpus:
        train, observed, held_out = split(name, arguments.documents)
        for K in arguments.topics:
            for label, _, function, options in methods(arguments.n_jobs, arguments.gradients):
                function(train[:50], 5, 0, **options)  # compiles
                began = clocks()
                topics = function(train, K, arguments.seed, **options)
                clock, processor = clocks() - began
                perplexity = completion_perplexity(
                    topics, observed, held_out, ALPHA, n_jobs=arguments.n_jobs
                )
                row = {"corpus": name, "topics": K, "method": label, "perplexity": perplexity}
                row |= {"seconds": float(clock), "processor seconds": float(processor)}
                rows.append(row)
                print(*row.values(), flush=True)
    show(rows)
    save(arguments.output, "topics", rows)


if __name__ == "__main__":
    main()
