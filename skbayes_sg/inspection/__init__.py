"""Looks at fitted estimators."""
