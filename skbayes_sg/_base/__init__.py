"""Below everything: compilation, checks, threads, weights."""
