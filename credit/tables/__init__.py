"""Columns in, tables out: trainer rows, advantages, files, other array libraries."""
