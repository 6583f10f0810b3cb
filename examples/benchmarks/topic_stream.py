"""A stream of documents of known topics through `BayesianLDA.partial_fit`.

    python examples/benchmarks/topic_stream.py [--documents 100000] [--seeds 3] [--quick]

Documents of 100 tokens from 20 topics over 2000 words are made and forgotten in parts of 10,000 or
fewer. For each seed: seconds of the fits, the largest total variation of a topic from the truth
after alignment, and the growth of memory. A seed is right if no topic is 0.05 away.
"""

import time

import numpy as np

try:
    import resource
except ImportError:  # on Windows
    resource = None
from _corpora import made_documents, made_topics
from _tables import Parser, save, show

from skbayes_sg import BayesianLDA
from skbayes_sg.topics import align_topics, topic_distances

PART, LENGTH, K, V = 10_000, 100, 20, 2000


def megabytes():
    """The largest memory of this process so far; unknown on Windows."""
    if resource is None:
        return float("nan")
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def run(seed, n_documents, n_chains):
    rng = np.random.default_rng([seed, 7])
    topics = made_topics(K, V, rng)
    model = BayesianLDA(K, n_chains=n_chains, random_state=seed)
    clock = processor = after_one = 0.0
    size = min(PART, n_documents // 2)
    for part in range(n_documents // size):
        X = made_documents(topics, size, LENGTH, rng)
        started = time.perf_counter(), time.process_time()
        model.partial_fit(X)
        clock += time.perf_counter() - started[0]
        processor += time.process_time() - started[1]
        if part == 1:
            after_one = megabytes()
    order = align_topics(model.components_, topics)
    distances = topic_distances(model.components_[order], topics)
    row = {"seed": seed, "documents": model.n_documents_, "mean TV": float(distances.mean())}
    row |= {"largest TV": float(distances.max()), "seconds": clock, "processor seconds": processor}
    row |= {"microseconds a document": 1e6 * processor / n_documents}
    return row | {"MB since the second part": megabytes() - after_one}


def main():
    parser = Parser(__doc__)
    parser.add_argument("--documents", type=int, default=100_000, quick=400)
    parser.add_argument("--seeds", type=int, default=3, quick=1)
    parser.add_argument("--n-chains", type=int, default=1)
    arguments = parser.parse_args()
    rows = []
    for seed in range(arguments.seeds):
        rows.append(run(seed, arguments.documents, arguments.n_chains))
        print(rows[-1], flush=True)
    show(rows)
    print(f"right: {sum(row['largest TV'] < 0.05 for row in rows)} of {len(rows)}")
    save(arguments.output, "topic_stream", rows)


if __name__ == "__main__":
    main()
