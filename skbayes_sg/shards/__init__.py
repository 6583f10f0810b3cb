"""Rows in parts: files, workers, machines."""
