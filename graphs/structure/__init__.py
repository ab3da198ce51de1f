"""Structure of event graphs: spawn forest, prefixes, critical path, topology and NetworkX graphs."""
