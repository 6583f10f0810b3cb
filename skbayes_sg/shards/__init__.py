"""Rows that lie in parts: in files, with workers, on other machines."""
