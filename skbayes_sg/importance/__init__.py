"""Independent draws with a certificate: a warped Gaussian proposal and importance weights.

In the coordinates φ of the frame, θ = θ̂ + F φ with F Fᵀ = H⁻¹, the negative log posterior is a
quadratic plus the remainders of the rows. Where few rows have remainders that matter, these depend
on few projections of φ; a map T of each projection carries the normal law to the law along it, so
that φ = T(ψ), ψ ~ N(0, I), is nearly a draw. What is left is corrected by importance weights, and
Pareto k says whether they can be trusted. One file a step, in the order in which they are taken:

`remainders`   how far each row is from its quadratic
`directions`   along which projections the heaviest rows lie
`warps`        the map T of each
`proposal`     ψ with the moments of N(0, I), and φ
`fit`          the proposal that follows from these: which rows are exact, what is warped
`fourth_order` what the other rows add to their quadratics, as polynomials of φ
`potential`    U at many draws: exact in chosen rows, to second or fourth order in the others
`certificate`  Pareto k and the effective sample size of the weights; resampling
`lockstep`     Hamiltonian Monte Carlo in ψ, where the proposal is not good enough
`mixture`      one proposal a mode, for posteriors with several modes
`flat_tails`   whether the posterior has tails where the proposal has no draws
`sample`       draws of a proposal, weighed, judged and resampled
`scores`       gradients by which draws are judged, exact where expansions would mislead
"""
