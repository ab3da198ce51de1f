"""Counterfactual methods: replays, contrasts, other policies, difference rewards."""
