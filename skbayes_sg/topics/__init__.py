"""Topic models: samplers of topics, perplexities of any topics, alignment of labels."""

from .alignment import align_topics, topic_distances
from .perplexity import (
    completion_log_likelihood,
    completion_perplexity,
    left_to_right_log_likelihood,
    split_documents,
)

__all__ = [
    "align_topics",
    "completion_log_likelihood",
    "completion_perplexity",
    "left_to_right_log_likelihood",
    "split_documents",
    "topic_distances",
]
