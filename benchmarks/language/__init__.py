"""A small team of language models that learns: a lead that calls workers, and workers that answer in tokens."""
