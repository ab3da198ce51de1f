"""The native format: the survey's form and its extension, read, written, and as its schema says."""
