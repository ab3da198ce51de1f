"""What the reader of a format stands on: sources, decoding with places, tables, and the rules for damaged records.

`graphs.formats` has the readers, and `graphs.logs` leads from paths to a batch through both.
"""
