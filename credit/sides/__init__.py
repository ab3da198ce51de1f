"""Two sides of a corpus, such as before and after a change: what differs between them, and what may be behind it."""
