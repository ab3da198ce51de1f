"""Traces on the host: records of readers, their evidence, and the batch they become."""
