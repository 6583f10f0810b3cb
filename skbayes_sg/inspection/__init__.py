"""Functions that look at fitted estimators."""
