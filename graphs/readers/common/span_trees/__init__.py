"""Trees of classified spans, as tracing exports have them, and the events that they make."""
