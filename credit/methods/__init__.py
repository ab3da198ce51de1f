"""Methods by name: the registry, published names, running them on traces, advice."""
