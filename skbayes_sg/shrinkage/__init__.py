"""Scales of coefficients that are sampled with them: one in all, one a block, or one a column.

The place to begin is `choose`, which says in which case which method is used:

`choose`       the rule, and what cannot be done
`quadrature`   linear regression with one scale: no chain, exact draws
`horseshoe`    Gibbs sampling under the regularised horseshoe
`effective`    the effective number of coefficients that are not zero
`reference`    where in the scales the posterior is: the mode of their Laplace marginal
`collapse`     coefficients in coordinates in which the posterior hardly depends on the scales
`path`         such coordinates along the modes at many scales, for one scale and few rows
`potential`    the exact potential of coefficients and scales
`alternating`  coefficients and one scale in turn, where steps of both together are short
`independent`  draws of both with importance weights, or chains in lockstep: all other models

Under the horseshoe `local_scales` draws the scales given the coefficients, and the coefficients are
updated as `horseshoe` says:

`normal_rows`       coefficients whose rows are normal, drawn or integrated out
`collapsed_scales`  trajectories of the scales with the coefficients integrated out
`approximated`      proposals under normal rows that approximate any likelihood
`augmented`         normal rows given latent variables: classes and Student's t
`horseshoe_hmc`     trajectories of all parameters given the scales
"""
