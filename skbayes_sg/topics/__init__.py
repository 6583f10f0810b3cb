r"""Topic models: samplers of topics, perplexities of any topics, alignment of labels.

*Document completion*: one half of the tokens of a document determines its mix of topics, and the
other half is predicted. With :math:`\hat\theta_d^s` the mix under the topics :math:`\varphi^s`, s =
1..S (posterior draws, several fits, or a single one),

.. math::

    \hat p(w \mid d) = \frac{1}{S} \sum_s \sum_k \hat\theta^s_{dk} \varphi^s_{kw}, \qquad
    \text{perplexity} = \exp\Bigl(-\frac{1}{N} \sum_d \sum_{i \in \text{held-out half}}
        \log \hat p(w_{di} \mid d)\Bigr).

*Left to right*: the perplexity is :math:`\exp(-\sum_d \log \hat p(w_d) / N)`, with an unbiased
estimate :math:`\hat p` of p(w_d | φ), the probability of a whole document under any mix.

Lower is better; uniform topics have the perplexity V, the number of words. Fits can be compared by
their perplexities only on the same documents, split in the same way.
"""

from .alignment import align_topics, topic_distances
from .perplexity import (
    completion_log_likelihood,
    completion_perplexity,
    left_to_right_log_likelihood,
    split_documents,
)
from .topic_posterior import TopicPosterior

__all__ = ["TopicPosterior", "align_topics", "completion_log_likelihood", "completion_perplexity"]
__all__ += ["left_to_right_log_likelihood", "split_documents", "topic_distances"]
