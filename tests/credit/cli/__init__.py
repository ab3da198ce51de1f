"""The command line: every command on small corpora, every exit code, and nothing heavy before it is needed."""
