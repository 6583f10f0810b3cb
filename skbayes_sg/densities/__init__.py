"""Posteriors whose rows see all parameters, and not only linear predictors."""
