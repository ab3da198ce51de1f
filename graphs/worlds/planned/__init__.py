"""A lead with a plan and its workers: later choices depend on earlier ones."""
