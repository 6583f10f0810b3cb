"""Posteriors in which the likelihood of a row may be any function of all parameters."""
