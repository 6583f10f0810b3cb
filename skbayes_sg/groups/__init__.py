"""Group effects: columns with many levels, each with an effect of its own, partially pooled.

For factors k = 1, ..., K (columns of X), rows i in the level l = l_k(i) of each,

    η_i = x_i·β + b + Σ_k u_{k, l_k(i)},      u_{k,l} ~ N(0, τ_k²),

under the likelihood of any row model, with a prior of each scale τ_k. `choose` says which sampler
runs, and is the place to begin; `problem` holds what samplers see, `columns` turns columns of any
type into level numbers, and `rows` adds the effects of known and unknown levels to the predictors
of new rows.
"""
