"""Traces on the host: records from readers, their evidence, and the batch that joins them."""
