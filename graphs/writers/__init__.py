"""Writers: the native format and OTLP JSON from `graphs.Traces`, and files that appear whole or not at all."""
