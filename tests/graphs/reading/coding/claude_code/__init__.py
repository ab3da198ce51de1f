"""Reading Claude Code sessions: calls, effects, agents inline and in files of their own, and what is refused."""
