"""Writers of `graphs.traces.batch.Traces`: the native format, the survey's form, OTLP JSON and verifiers episodes."""
