"""Structure of event graphs: spawn forest, prefixes, critical path, topology, NetworkX graphs."""
